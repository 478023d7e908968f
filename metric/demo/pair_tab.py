"""The tab for one pair: its score, BLEU and chrF++ beside it, the effect of each difference, and what a score means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, NamedTuple

import gradio as gr

from bleurt_repro.metric.compare.attribution import Effect, attribute
from bleurt_repro.metric.compare.overlap import overlap
from bleurt_repro.metric.demo.highlight import FULL_COLOUR, bleu_details, effects_html, signatures_html, unsigned
from bleurt_repro.metric.demo.live_results import connect, error_html, live_region, message_of, result_html
from bleurt_repro.metric.demo.shared_scorer import SCALE_REFERENCE, ScalePoint, SharedScorer
from bleurt_repro.metric.demo.visitor_input import CHARACTERS, REFERENCES, check_pair


class Example(NamedTuple):
    """A pair to try; the source is only for checkpoints that read sources."""

    references: tuple[str, ...]
    candidate: str
    source: str


# By the label of their buttons. The page opens with the first.
EXAMPLES = {
    "Opposite meaning": Example(
        ("The minister welcomed the new law.",),
        "The minister rejected the law.",
        "Der Minister begrüßte das neue Gesetz.",
    ),
    "Same meaning": Example(
        ("The minister welcomed the new law.",),
        "The new law was well received by the minister.",
        "Der Minister begrüßte das neue Gesetz.",
    ),
    "Wrong word": Example(
        ("The train to the coast was delayed by heavy snow.",),
        "The train to the coast was delayed by purple snow.",
        "Der Zug an die Küste verspätete sich wegen starken Schneefalls.",
    ),
    "Two references": Example(
        ("The storm left thousands of homes without power.", "Thousands lost electricity in the storm."),
        "Because of the storm, thousands of households had no electricity.",
        "Durch den Sturm waren Tausende Haushalte ohne Strom.",
    ),
}


@dataclass(frozen=True)
class ScoredPair:
    """Everything that the tab shows of a pair.

    Attributes:
        references, candidate: texts that were scored.
        score: score by the checkpoint.
        percentile: percentile of the score among human ratings; None without a calibration, and for text that the
            checkpoint does not read.
        sentence_bleu, chrf_plus_plus: sacreBLEU's sentence BLEU and chrF++, 0 to 100.
        precisions: precisions of 1-grams to 4-grams in BLEU, without smoothing, 0 to 100.
        brevity_penalty: brevity penalty in BLEU, 0 to 1.
        truncated: whether the pair is longer than the checkpoint reads.
        effects: effects of the differences between the candidate and the reference.
        signature: signature of the score.
        signatures: sacreBLEU's signatures, by metric.
        warnings: what a reader of the score must know, one sentence each.
    """

    references: list[str]
    candidate: str
    score: float
    percentile: float | None
    sentence_bleu: float
    precisions: tuple[float, ...]
    brevity_penalty: float
    chrf_plus_plus: float
    truncated: bool
    effects: list[Effect]
    signature: str
    signatures: dict[str, str]
    warnings: tuple[str, ...] = ()


def score_pair(shared: SharedScorer, references: Sequence[str], candidate: str, source: str = "") -> ScoredPair:
    """Score a pair in every way that the tab shows.

    Args:
        shared: scorer of the demo.
        references: references of the candidate; blank ones are ignored, the best counts.
        candidate: text to score.
        source: text that the candidate was made from, for a checkpoint that reads sources.

    Raises:
        ValueError: if a text is missing or too long.
    """
    references = [text.strip() for text in references if text.strip()]
    if not references or not candidate.strip():
        raise ValueError("give a reference and a candidate")
    if "source" in shared.scorer.layout.required and not source.strip():
        raise ValueError("give the source, too: the checkpoint reads it")
    check_pair(references, [candidate, source])
    source_text = source if shared.scorer.layout.reads_sources and source.strip() else None
    sources = None if source_text is None else [source_text]
    result = shared.compute(references=[references], candidates=[candidate], sources=sources)
    overlaps = overlap([references], [candidate])
    return ScoredPair(
        references=references,
        candidate=candidate,
        score=result.scores[0],
        percentile=None if result.unread else shared.percentile(result.scores[0]),
        sentence_bleu=overlaps.mean_sentence_bleu,
        precisions=overlaps.precisions,
        brevity_penalty=overlaps.brevity_penalty,
        chrf_plus_plus=overlaps.chrf_plus_plus,
        truncated=result.truncated > 0,
        effects=attribute(shared, references, candidate, source_text),
        signature=result.signature,
        signatures=overlaps.signatures,
        warnings=result.warnings,
    )


def pair_html(pair: ScoredPair, shared: SharedScorer) -> str:
    """Return a scored pair as HTML.

    Args:
        pair: the scored pair.
        shared: scorer that scored it.
    """
    tiles = [_tile("BLEURT", unsigned(pair.score), tile_class="main")]
    if pair.percentile is not None:
        tiles.append(_tile("percentile of human ratings", f"{pair.percentile:.0f}"))
    details = bleu_details(pair.precisions, pair.brevity_penalty)
    tiles += [
        _tile("sentence BLEU, 0 to 100", f"{pair.sentence_bleu:.1f}", details),
        _tile("chrF++, 0 to 100", f"{pair.chrf_plus_plus:.1f}"),
    ]
    signatures = {"BLEURT": pair.signature} | {name: pair.signatures[name] for name in ("sentence BLEU", "chrF++")}
    return result_html(
        "score",
        f'<div class="tiles">{"".join(tiles)}</div>',
        *(f'<p class="note warned">{escape(warning)}</p>' for warning in pair.warnings),
        effects_html(pair.candidate, pair.effects, shared.range),
        _legend(pair, shared.range),
        scale_html(shared.scale, pair.score),
        signatures_html(signatures),
    )


def _tile(name: str, value: str, details: str = "", tile_class: str = "") -> str:
    return f'<div class="tile {tile_class}"><b>{value}</b><span>{name}</span>{details}</div>'


def _legend(pair: ScoredPair, score_range: float) -> str:
    if not pair.effects:
        return '<p class="note">The candidate has the same words as the reference.</p>'
    reference = "reference" if len(pair.references) == 1 else "reference that shares most words with the candidate"
    return (
        '<p class="note"><span class="key down">lowers the score</span> <span class="key up">raises it</span> '
        '<span class="key missing">missing from the candidate</span></p>'
        f'<p class="note">Numbers: change in score if this difference alone were put into the {reference}. Losses are '
        "scaled down where their sum is more than the candidate loses in all. Full colour is "
        f"{FULL_COLOUR * score_range:.2f} points, half of the scale below.</p>"
    )


def scale_html(scale: Sequence[ScalePoint], score: float) -> str:
    """Return a table of what a score means: examples from the same text to an unrelated one, and the score among them.

    Args:
        scale: examples scored by the checkpoint, best first.
        score: score of the pair.
    """
    rows = [(point.score, _scale_row(point.score, point.name, point.candidate)) for point in scale]
    rows.append((score, _scale_row(score, "<b>your candidate</b>", "", "own")))
    ordered = "".join(row for _, row in sorted(rows, key=lambda row: -row[0]))
    return (
        '<table class="scale"><caption>What a score of this checkpoint means: candidates for the reference '
        f"\N{LEFT DOUBLE QUOTATION MARK}{SCALE_REFERENCE}\N{RIGHT DOUBLE QUOTATION MARK}</caption>"
        '<thead><tr><th scope="col">score</th><th scope="col">candidate is</th><th scope="col">example</th></tr></thead>'
        f"<tbody>{ordered}</tbody></table>"
    )


def _scale_row(score: float, name: str, candidate: str, row_class: str = "") -> str:
    return f'<tr class="{row_class}"><td class="number">{unsigned(score)}</td><td>{name}</td><td>{candidate}</td></tr>'


def spoken(pair: ScoredPair) -> str:
    """Return the result as a sentence of HTML, for screen readers."""
    percentile = "" if pair.percentile is None else f", percentile {pair.percentile:.0f} of human ratings"
    return " ".join([f"BLEURT score {unsigned(pair.score)}{percentile}.", *map(escape, pair.warnings)])


def build_pair_tab(shared: SharedScorer) -> None:
    """Build the tab, filled with the first example and its result; call it inside a `gr.Tab`."""
    first = next(iter(EXAMPLES.values()))
    with gr.Row():
        with gr.Column(min_width=280):
            references = [_reference_box(i, first.references[0] if i == 0 else "") for i in range(REFERENCES)]
            add = gr.Button("Add a reference", size="sm", elem_id="add-reference")
        with gr.Column(min_width=280):
            candidate = gr.Textbox(
                first.candidate,
                label="Candidate",
                info="The text to judge. Shift + Enter scores it.",
                lines=3,
                max_length=CHARACTERS,
                elem_id="candidate",
            )
    source = gr.Textbox(
        first.source,
        label="Source",
        info="The text that the candidate was made from.",
        lines=2,
        max_length=CHARACTERS,
        visible=shared.scorer.layout.reads_sources,
    )
    inputs = [candidate, source, *references]
    button = gr.Button("Score", variant="primary", elem_id="score")
    with gr.Row(elem_classes="examples"):
        gr.HTML("Examples:", elem_classes="label", apply_default_css=False)
        examples = [gr.Button(label, size="sm", min_width=80) for label in EXAMPLES]
    status = live_region("pair-status")
    result = gr.HTML(pair_html(score_pair(shared, *first), shared), elem_id="pair-result", apply_default_css=False)

    box_count = gr.State(1)
    add.click(_add_box, box_count, [box_count, add, *references], api_visibility="private", show_progress="hidden")
    filled = [
        example_button.click(
            partial(_fill, example),
            None,
            [*inputs, box_count, add],
            api_visibility="private",
            show_progress="hidden",
        )
        for example_button, example in zip(examples, EXAMPLES.values(), strict=True)
    ]
    triggers: list[Callable[..., Any]] = [
        button.click,
        candidate.submit,
        *(box.submit for box in references),
        *(event.then for event in filled),
    ]
    connect("score", triggers, partial(_show, shared), inputs, [result, status])


def _reference_box(position: int, text: str) -> gr.Textbox:
    return gr.Textbox(
        text,
        label="Reference" if position == 0 else f"Reference {position + 1}",
        info="What the text should say." if position == 0 else "Another correct text; the best reference counts.",
        lines=3 if position == 0 else 2,
        max_length=CHARACTERS,
        visible=position == 0,
        elem_id="reference" if position == 0 else f"reference-{position + 1}",
    )


def _add_box(count: int) -> tuple[Any, ...]:
    """Show one more box for a reference; return the updates of their number, the button and the boxes."""
    count = min(count + 1, REFERENCES)
    boxes = [gr.update(visible=position < count) for position in range(REFERENCES)]
    return (count, gr.update(visible=count < REFERENCES), *boxes)


def _fill(example: Example) -> tuple[Any, ...]:
    """Return the updates that put an example into the boxes, with as many boxes as it has references."""
    count = len(example.references)
    texts = [*example.references, *[""] * (REFERENCES - count)]
    boxes = [gr.update(value=text, visible=position < count) for position, text in enumerate(texts)]
    return (example.candidate, example.source, *boxes, count, gr.update(visible=True))


def _show(shared: SharedScorer, candidate: str | None, source: str | None, *references: str | None) -> tuple[str, str]:
    try:  # an untouched or hidden box is None
        pair = score_pair(shared, [text or "" for text in references], candidate or "", source or "")
    except ValueError as error:
        return error_html(error), message_of(error)
    return pair_html(pair, shared), spoken(pair)
