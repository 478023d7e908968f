"""The tab for one pair: its score, other metrics beside it, and what each word of the candidate does to the score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

import gradio as gr

from bleurt_repro.metric.compare.attribution import MAX_PIECES, Effect, attribute, words
from bleurt_repro.metric.compare.overlap import overlap
from bleurt_repro.metric.demo.highlight import effects_html, unsigned
from bleurt_repro.metric.demo.shared_scorer import SharedScorer
from bleurt_repro.metric.demo.visitor_input import CHARACTERS, REFERENCES, check_pair, lines_of, told_to_the_visitor

# Reference, candidate, source.
EXAMPLES = [
    ["The minister welcomed the new law.", "The minister rejected the new law.", ""],
    ["She walked home in the rain.", "In the rain, she went home on foot.", ""],
    ["The train to the coast was delayed by heavy snow.", "The train to the coast was delayed by purple snow.", ""],
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
        effects: of the candidate's words.
        signature: of the score.
    """

    candidate: str
    score: float
    percentile: float | None
    sentbleu: float
    chrf: float
    truncated: bool
    effects: list[Effect]
    signature: str


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
    )


def pair_html(pair: ScoredPair, max_length: int) -> str:
    """Show a scored pair.

    Args:
        pair: what was scored.
        max_length: tokens that the checkpoint reads.
    """
    tiles = [_tile("BLEURT", unsigned(pair.score), "main")]
    if pair.percentile is not None:
        tiles.append(_tile("percentile of human ratings", f"{pair.percentile:.0f}"))
    tiles += [_tile("sentBLEU, of 100", f"{pair.sentbleu:.1f}"), _tile("chrF, of 100", f"{pair.chrf:.1f}")]
    parts = [f'<div class="tiles">{"".join(tiles)}</div>']
    if pair.truncated:
        parts.append(
            f'<p class="note warned">This pair is longer than the {max_length} tokens that the checkpoint reads: '
            "the end of the longer text did not count.</p>"
        )
    parts += [effects_html(pair.candidate, pair.effects), _legend(pair)]
    parts.append(f'<p class="note signature">{escape(pair.signature)}</p>')
    return "".join(parts)


def _tile(name: str, value: str, kind: str = "") -> str:
    return f'<div class="tile {kind}"><b>{value}</b><span>{name}</span></div>'


def _legend(pair: ScoredPair) -> str:
    runs = "" if len(pair.effects) == len(words(pair.candidate)) else f" in {MAX_PIECES} runs or fewer"
    return (
        '<p class="note"><span class="key up">pulls the score up</span> '
        '<span class="key down">pulls it down</span> '
        f"The number below a word is the score minus the score without it{runs} "
        '(<a href="https://arxiv.org/abs/1612.08220" target="_blank" rel="noopener">Li et al., 2016</a>).</p>'
    )


def build_pair_tab(shared: SharedScorer) -> None:
    """Lay the tab out; call it inside a `gr.Tab`."""
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
            info="The text to judge.",
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
    result = gr.HTML(elem_id="pair-result", apply_default_css=False)
    gr.Examples(
        EXAMPLES, [reference, candidate, source], label="Examples", visible_columns=[0, 1], api_visibility="private"
    )
    show = _shower(shared)
    for event in (button.click, candidate.submit, reference.submit):
        event(
            show,
            [reference, candidate, source],
            result,
            api_visibility="private",
            concurrency_id="score",
            concurrency_limit=1,
        )


def _shower(shared: SharedScorer) -> Callable[[str, str, str], str]:
    def show(reference: str | None, candidate: str | None, source: str | None) -> str:
        with told_to_the_visitor():  # an untouched or hidden box is None
            pair = score_pair(shared, reference or "", candidate or "", source or "")
        return pair_html(pair, shared.scorer.layout.max_length)

    return show
