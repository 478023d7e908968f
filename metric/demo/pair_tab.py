"""The tab for one pair: its score, other metrics beside it, the words that cost, and what a score means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import gradio as gr

from bleurt_repro.metric.compare.attribution import Effect, attribute
from bleurt_repro.metric.compare.overlap import overlap
from bleurt_repro.metric.demo.highlight import FULL_COLOUR, effects_html, unsigned
from bleurt_repro.metric.demo.live_results import connect, error_html, live_region, result_html
from bleurt_repro.metric.demo.shared_scorer import SCALE_REFERENCE, ScalePoint, SharedScorer
from bleurt_repro.metric.demo.visitor_input import CHARACTERS, REFERENCES, check_pair, lines_of

# Reference, candidate, source. The first two share a reference: the same meaning in other words, and the opposite in
# nearly the same words.
EXAMPLES = [
    ["The minister welcomed the new law.", "The new law was well received by the minister.", ""],
    ["The minister welcomed the new law.", "The minister rejected the new law.", ""],
    ["The train to the coast was delayed by heavy snow.", "The train was delayed by purple snow.", ""],
    ["The storm left thousands of homes without power.\nThousands lost electricity in the storm.",
     "Because of the storm, thousands of households had no electricity.", ""],
]  # fmt: skip


@dataclass(frozen=True)
class ScoredPair:
    """All that the tab shows of a pair.

    Attributes:
        candidate: the text that was scored.
        score, percentile: by the checkpoint; the percentile is None where it has no calibration.
        sentbleu, chrf: of the pair, 0 to 100.
        truncated: whether the pair is longer than the checkpoint reads.
        effects: of the stretches of the candidate that differ from the reference.
        signature: of the score.
        warnings: what a reader of the score must know, a sentence each.
    """

    candidate: str
    score: float
    percentile: float | None
    sentbleu: float
    chrf: float
    truncated: bool
    effects: list[Effect]
    signature: str
    warnings: tuple[str, ...] = ()


def score_pair(shared: SharedScorer, reference: str, candidate: str, source: str = "") -> ScoredPair:
    """Score a pair in every way that the tab shows.

    Args:
        shared: what scores.
        reference: one reference a line; the best counts.
        candidate: the text to score.
        source: what it was made from, for a checkpoint that reads sources.

    Raises:
        ValueError: if a text is missing or too long.
    """
    references = [line for line in lines_of(reference) if line.strip()]
    if not references or not candidate.strip():
        raise ValueError("give a reference and a candidate")
    if shared.scorer.layout.reads_sources and not source.strip():
        raise ValueError("give the source, too: the checkpoint reads it")
    check_pair(references, [candidate, source])
    read = source if shared.scorer.layout.reads_sources else None
    sources = None if read is None else [read]
    result = shared.compute(references=[references], candidates=[candidate], sources=sources)
    beside = overlap([references], [candidate])
    return ScoredPair(
        candidate=candidate,
        score=result.scores[0],
        percentile=shared.percentile(result.scores[0]),
        sentbleu=beside.mean_sentbleu,
        chrf=beside.chrf,
        truncated=result.truncated > 0,
        effects=attribute(shared, references, candidate, read),
        signature=result.signature,
        warnings=result.warnings,
    )


def pair_html(pair: ScoredPair, shared: SharedScorer) -> str:
    """Show a scored pair.

    Args:
        pair: what was scored.
        shared: what scored it.
    """
    tiles = [_tile("BLEURT", unsigned(pair.score), "main")]
    if pair.percentile is not None:
        tiles.append(_tile("percentile of human ratings", f"{pair.percentile:.0f}"))
    tiles += [_tile("sentBLEU, of 100", f"{pair.sentbleu:.1f}"), _tile("chrF, of 100", f"{pair.chrf:.1f}")]
    return result_html(
        "score",
        f'<div class="tiles">{"".join(tiles)}</div>',
        *(f'<p class="note warned">{escape(warning)}</p>' for warning in pair.warnings),
        effects_html(pair.candidate, pair.effects, shared.range),
        _legend(pair, shared.range),
        scale_html(shared.scale, pair.score),
        f'<p class="note signature">{escape(pair.signature)}</p>',
    )


def _tile(name: str, value: str, kind: str = "") -> str:
    return f'<div class="tile {kind}"><b>{value}</b><span>{name}</span></div>'


def _legend(pair: ScoredPair, score_range: float) -> str:
    if not pair.effects:
        return '<p class="note">The candidate has the words of the reference.</p>'
    full = f"{FULL_COLOUR * score_range:.2f}"
    return (
        '<p class="note"><span class="key down">costs points</span> <span class="key missing">missing</span> '
        '<span class="key up">gains points</span> The number is what the reference itself would lose or gain with '
        f"these words in it, or without those that are missing. Full colour is {full} points, half of the scale.</p>"
    )


def scale_html(scale: Sequence[ScalePoint], score: float | None = None) -> str:
    """Show what a score means: examples from the same text to an unrelated one, as the checkpoint scores them.

    Args:
        scale: the examples, best first.
        score: of a pair, to be shown in its place among them.
    """
    rows = [(point.score, _scale_row(point.score, point.name, point.candidate)) for point in scale]
    if score is not None:
        rows.append((score, _scale_row(score, "<b>your candidate</b>", "", "own")))
    ordered = "".join(row for _, row in sorted(rows, key=lambda row: -row[0]))
    return (
        '<table class="scale"><caption>What a score means to this checkpoint: candidates for '
        f"\N{LEFT DOUBLE QUOTATION MARK}{SCALE_REFERENCE}\N{RIGHT DOUBLE QUOTATION MARK}</caption>"
        '<thead><tr><th scope="col">score</th><th scope="col">candidate is</th><th scope="col">example</th></tr></thead>'
        f"<tbody>{ordered}</tbody></table>"
    )


def _scale_row(score: float, name: str, candidate: str, kind: str = "") -> str:
    return f'<tr class="{kind}"><td class="number">{unsigned(score)}</td><td>{name}</td><td>{candidate}</td></tr>'


def spoken(pair: ScoredPair) -> str:
    """Return the result in a sentence, for screen readers."""
    place = "" if pair.percentile is None else f", percentile {pair.percentile:.0f} of human ratings"
    return " ".join([f"BLEURT score {unsigned(pair.score)}{place}.", *pair.warnings])


def build_pair_tab(shared: SharedScorer) -> None:
    """Build the tab; call it inside a `gr.Tab`."""
    with gr.Row():
        reference = gr.Textbox(
            label="Reference",
            info=f"What the text should say; up to {REFERENCES} references, one a line.",
            lines=3,
            max_length=CHARACTERS * 2,
            min_width=280,
            elem_id="reference",
        )
        candidate = gr.Textbox(
            label="Candidate",
            info="The text to judge. Shift + Enter scores it.",
            lines=3,
            max_length=CHARACTERS,
            min_width=280,
            elem_id="candidate",
        )
    source = gr.Textbox(
        label="Source",
        info="What the candidate was made from.",
        lines=2,
        max_length=CHARACTERS,
        visible=shared.scorer.layout.reads_sources,
    )
    button = gr.Button("Score", variant="primary", elem_id="score")
    status = live_region("pair-status")
    result = gr.HTML(scale_html(shared.scale), elem_id="pair-result", apply_default_css=False)
    gr.Examples(
        EXAMPLES, [reference, candidate, source], label="Examples", visible_columns=[0, 1], api_visibility="private"
    )
    triggers = (button.click, candidate.submit, reference.submit)
    connect("score", triggers, _shower(shared), [reference, candidate, source], [result, status])


def _shower(shared: SharedScorer) -> Callable[[str | None, str | None, str | None], tuple[str, str]]:
    def show(reference: str | None, candidate: str | None, source: str | None) -> tuple[str, str]:
        try:  # an untouched or hidden box is None
            pair = score_pair(shared, reference or "", candidate or "", source or "")
        except ValueError as error:
            return error_html(error), str(error)
        return pair_html(pair, shared), spoken(pair)

    return show
