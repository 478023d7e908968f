"""The tab for two systems: who is ahead and how surely, how the scores lie, and where they differ.

Two plots of a comparison: how the scores lie, and which system is ahead in how many segments.

The table of segments where two systems differ most: sorted by a click on a heading, words marked, text escaped.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bleurt_repro.metric.compare.compare import Comparison, Segment, compare
from bleurt_repro.metric.compare.report import write_comparison
from bleurt_repro.metric.demo.highlight import differences_html, signed, unsigned
from bleurt_repro.metric.demo.shared_scorer import ReportingScorer, SharedScorer
from bleurt_repro.metric.demo.visitor_input import (
    IN_WORDS,
    check_comparison,
    read_upload,
    segments_of,
    told_to_the_visitor,
)
from bleurt_repro.metric.files.reading import SUFFIXES
from bleurt_repro.metric.inputs import check_references

# Okabe and Ito's blue and vermilion, which the colour-blind tell apart: https://jfly.uni-koeln.de/color/
FIRST_COLOUR, SECOND_COLOUR = "#0072B2", "#D55E00"
SIZE = (5.2, 3.3)
MOST_BINS = 30
FEW = 60  # segments whose bars stand apart


def distributions(names: tuple[str, str], scores: tuple[Sequence[float], Sequence[float]]) -> Figure:
    """Draw the histograms of two systems' scores with their means.

    Args:
        names: of the systems.
        scores: of each, one a segment.
    """
    figure, axes = _axes()
    bins = np.histogram_bin_edges(np.concatenate(scores), bins=min(MOST_BINS, max(5, len(scores[0]) // 4))).tolist()
    for name, own, colour, line in zip(names, scores, (FIRST_COLOUR, SECOND_COLOUR), ("-", "--"), strict=True):
        mean = float(np.mean(own))
        axes.hist(own, bins, histtype="stepfilled", color=colour, alpha=0.25)
        axes.hist(own, bins, histtype="step", color=colour, linestyle=line)
        axes.axvline(mean, color=colour, linestyle=line, linewidth=2, label=f"{name}, mean {unsigned(mean)}")
    axes.set(xlabel="BLEURT score", ylabel="segments")
    axes.set_title("How the scores lie", loc="left", fontsize=11)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    _legend(figure)
    return figure


def differences(names: tuple[str, str], scores: tuple[Sequence[float], Sequence[float]]) -> Figure:
    """Draw the difference of two systems in every segment, largest first.

    Args:
        names: of the systems.
        scores: of each, one a segment.
    """
    figure, axes = _axes()
    gaps = np.sort(np.subtract(*scores))[::-1]
    places = np.arange(1, len(gaps) + 1)
    for name, ahead, colour in zip(names, (gaps > 0, gaps < 0), (FIRST_COLOUR, SECOND_COLOUR), strict=True):
        share = f"{name} higher in {np.count_nonzero(ahead)}"
        axes.bar(
            places[ahead], gaps[ahead], width=0.9 if len(gaps) < FEW else 1.0, color=colour, label=share, linewidth=0
        )
    axes.axhline(0, color="#444444", linewidth=0.8)
    axes.set(xlabel="segments, by difference", ylabel=f"score of {names[0]} \N{MINUS SIGN} score of {names[1]}")
    axes.set_title("Who is ahead, segment by segment", loc="left", fontsize=11)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _legend(figure)
    return figure


def _axes() -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained", dpi=160)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _legend(figure: Figure) -> None:
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=10)


# Rows on the page; the downloads have all.
ROWS = 100
# Sorts the rows by a column's numbers, largest first and then smallest first. The listener stays when the table changes.
SORT = """
element.addEventListener("click", (event) => {
  const heading = event.target.closest("th:has(button)");
  if (!heading || !event.target.closest("button")) return;
  const order = heading.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
  const sign = order === "descending" ? -1 : 1;
  const value = (row) => Number(row.cells[heading.cellIndex].dataset.value);
  const body = heading.closest("table").tBodies[0];
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", order);
  body.append(...[...body.rows].sort((a, b) => sign * (value(a) - value(b))));
});
"""


def segment_table(comparison: Comparison, names: tuple[str, str]) -> str:
    """Show the segments of two systems, largest difference first.

    Args:
        comparison: of the two.
        names: what the page calls them.
    """
    first, second = map(escape, names)
    headings = ("#", f"{first} \N{MINUS SIGN} {second}", first, second)
    head = "".join(f'<th scope="col"><button type="button">{heading}</button></th>' for heading in headings)
    rows = "".join(_row(segment, names) for segment in comparison.segments[:ROWS])
    shown = min(ROWS, len(comparison.segments))
    return (
        f'<table class="segments"><caption>Where they differ most: {shown:,} of {len(comparison.segments):,} segments. '
        "<mark>Marked</mark> words are not in the reference at that place. A heading sorts.</caption>"
        f'<thead><tr>{head}<th scope="col">texts</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def _row(segment: Segment, names: Sequence[str]) -> str:
    first, second = segment.scores
    difference = first - second
    ahead = "first" if difference > 0 else "second" if difference < 0 else ""
    cells = (
        _number(segment.number, str(segment.number)),
        _number(difference, signed(difference), ahead),
        _number(first, unsigned(first)),
        _number(second, unsigned(second)),
    )
    return f"<tr>{''.join(cells)}<td>{_texts(segment, names)}</td></tr>"


def _number(value: float, shown: str, kind: str = "") -> str:
    return f'<td class="number {kind}" data-value="{value!r}"><span>{shown}</span></td>'


def _texts(segment: Segment, names: Sequence[str]) -> str:
    lines = [("Source", escape(segment.source))] if segment.source is not None else []
    lines += [("Reference", escape(text)) for text in segment.references]
    for name, text in zip(names, segment.candidates, strict=True):
        lines.append((escape(name), differences_html(segment.references, text)))
    return "".join(f"<div><i>{name}</i> {text}</div>" for name, text in lines)


NAMES = ("A", "B")
# Below this p, a difference is shown without the remark that it may be chance. p is one-sided, and the data choose the
# side: this is the level at which the 95 % interval of the difference leaves 0 out.
SIGNIFICANT = 0.025
BOXES = [("Reference", "references"), ("System A", "candidates"), ("System B", "candidates")]
SOURCE_BOX = ("Source", "sources")
ELEMENTS = {
    "Reference": "compare-reference",
    "System A": "system-a",
    "System B": "system-b",
    "Source": "compare-source",
}
FILE_HEIGHT = 104
EXAMPLE = [
    "The ferry leaves the island at noon.\nShe planted three apple trees behind the house.\n"
    "The trial was postponed because the witness fell ill.\nNobody expected the small team to win.\n"
    "Prices rose faster than wages last year.\nThe bridge will be closed until April.\n"
    "He thanked his neighbours for their help.\nThe library lends out films as well as books.",
    "The ferry departs from the island at noon.\nShe planted three apple trees behind her house.\n"
    "The trial was postponed since the witness was ill.\nNobody had expected the small team to win.\n"
    "Last year prices rose more quickly than wages.\nThe bridge remains shut until April.\n"
    "He thanked the neighbours for helping him.\nThe library lends films as well as books.",
    "The ferry of island goes noon.\nShe plants apple tree house behind.\n"
    "The trial was later because witness bad.\nNobody expected the small team to win.\n"
    "Price rises quick than wage the last year.\nThe bridge will be closed until April.\n"
    "He thanks to neighbour help.\nLibrary gives out also film books.",
]


def compare_two(
    shared: SharedScorer,
    references: Sequence[Any],
    candidates: tuple[Sequence[str], Sequence[str]],
    sources: Sequence[str] | None = None,
    report: Callable[[int], None] = lambda done: None,
) -> Comparison:
    """Compare systems A and B within the demo's limits.

    Args:
        shared: what scores.
        references: one string or list of strings a segment.
        candidates: of A and of B.
        sources: for a checkpoint that reads them.
        report: called with the number of candidates scored since it was last called.

    Raises:
        ValueError: if lengths differ or something is too long.
    """
    systems = dict(zip(NAMES, candidates, strict=True))
    check_comparison(check_references(references), systems)
    return compare(ReportingScorer(shared, report), references, systems, sources)


def verdict_html(comparison: Comparison) -> str:
    """Say who is ahead, with the figures of both systems and of their difference."""
    [test] = comparison.tests
    rows = "".join(
        f"<tr><td>{system.name}</td><td>{unsigned(system.mean)}</td>"
        f"<td>{_bounds(system.low, system.high)}</td><td>{system.sentbleu:.1f}</td><td>{system.bleu:.1f}</td>"
        f"<td>{system.chrf:.1f}</td><td>{wins}</td></tr>"
        for system, wins in zip(comparison.systems, (test.wins, test.losses), strict=True)
    )
    head = "".join(
        f"<th>{name}</th>"
        for name in (
            "system",
            "BLEURT",
            f"{comparison.confidence:.0%} interval",
            "sentBLEU",
            "BLEU",
            "chrF",
            "ahead in",
        )
    )
    cut = sum(system.truncated for system in comparison.systems)
    warned = f'<p class="note warned">{cut} pairs were longer than the checkpoint reads.</p>' if cut else ""
    signatures = "<br>".join(escape(f"{name}: {value}") for name, value in comparison.signatures.items())
    return (
        f'<p class="verdict">{_verdict(comparison)}</p>'
        f'<div class="figures"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{warned}'
        f"<details><summary>How these figures are computed</summary>"
        f'<p class="note">p and intervals: {escape(comparison.convention)}; {comparison.resamples:,} resamples.</p>'
        f'<p class="note signature">{signatures}</p></details>'
    )


def _verdict(comparison: Comparison) -> str:
    [test] = comparison.tests
    if test.difference == 0:
        return "<b>A and B have the same mean.</b>"
    ahead = test.first if test.difference > 0 else test.second
    gap = f"{abs(test.difference):.2f}" if abs(test.difference) >= 0.005 else "less than 0.01"
    if test.p_value is None or test.low is None or test.high is None:
        return f"<b>{ahead} scores higher</b> by {gap}, in a single segment: no test is possible."
    low, high = (test.low, test.high) if test.difference > 0 else (-test.high, -test.low)
    p_value = f"p = {test.p_value:.3f}" if test.p_value >= 0.001 else "p &lt; 0.001"
    sure = "" if test.p_value < SIGNIFICANT else " This may be chance."
    return f"<b>{ahead} is ahead by {gap}</b> ({_bounds(low, high)}; {p_value}).{sure}"


def _bounds(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "\N{EN DASH}"
    return f"{unsigned(low)} to {unsigned(high)}"


def by_segment(comparison: Comparison) -> tuple[list[float], list[float]]:
    """Give the scores of A and of B."""
    first, second = zip(*(segment.scores for segment in comparison.segments), strict=True)
    return list(first), list(second)


def build_compare_tab(shared: SharedScorer) -> None:
    """Lay the tab out; call it inside a `gr.Tab`."""
    gr.Markdown(f"One segment a line, or files: {', '.join(SUFFIXES)}. {IN_WORDS}")
    with gr.Row():
        inputs = [part for label, role in BOXES for part in _input(label, role)]
        inputs += _input(*SOURCE_BOX, visible=shared.scorer.layout.reads_sources)
    with gr.Row():
        button = gr.Button("Compare", variant="primary", elem_id="compare", scale=3)
        example = gr.Button("Example", elem_id="fill-example", scale=1)
    verdict = gr.HTML(elem_id="verdict", apply_default_css=False)  # in sight from the start, for the progress
    with gr.Column(visible=False, elem_id="comparison") as shown:
        with gr.Row():
            plots = [
                gr.Plot(show_label=False, elem_id="distributions", min_width=300),
                gr.Plot(show_label=False, elem_id="differences", min_width=300),
            ]
        table = gr.HTML(elem_id="segments", js_on_load=SORT, apply_default_css=False)
        with gr.Row():
            downloads = [
                gr.DownloadButton("Download CSV", elem_id="download-csv"),
                gr.DownloadButton("Download JSON", elem_id="download-json"),
            ]
    button.click(
        _shower(shared, Path(downloads[0].GRADIO_CACHE)),
        inputs,
        [shown, verdict, *plots, table, *downloads],
        show_progress_on=verdict,
        api_visibility="private",
        concurrency_id="compare",
        concurrency_limit=1,
    )
    example.click(
        lambda: [value for text in EXAMPLE for value in (gr.Textbox(value=text, interactive=True), None)],
        None,
        inputs[: 2 * len(EXAMPLE)],
        api_visibility="private",
    )


def _input(label: str, role: str, visible: bool = True) -> list[gr.components.Component]:
    """A text box, and a place for a file that is read in its stead."""
    name = ELEMENTS[label]
    with gr.Column(visible=visible, min_width=240):
        box = gr.Textbox(label=label, lines=8, max_lines=8, elem_id=name, elem_classes="segments-box")
        upload = gr.File(
            label=f"{label}: a file instead",
            file_types=list(SUFFIXES),
            height=FILE_HEIGHT,
            elem_id=f"{name}-file",
            elem_classes="segments-file",
        )

    def take(path: str) -> dict[str, Any]:
        with told_to_the_visitor():
            found = len(read_upload(path, role))
        return gr.update(value="", interactive=False, placeholder=f"{found:,} segments of {Path(path).name}")

    upload.upload(take, upload, box, api_visibility="private")
    upload.clear(
        lambda: gr.update(interactive=True, placeholder=""),
        None,
        box,
        api_visibility="private",
        show_progress="hidden",
    )
    return [box, upload]


def _shower(shared: SharedScorer, folder: Path) -> Callable[..., tuple[Any, ...]]:
    def show(
        reference: str,
        reference_file: str | None,
        first: str,
        first_file: str | None,
        second: str,
        second_file: str | None,
        source: str,
        source_file: str | None,
        progress: gr.Progress = gr.Progress(),  # noqa: B008  # how Gradio is told that a function reports progress
    ) -> tuple[Any, ...]:
        with told_to_the_visitor():
            references = segments_of(reference, reference_file, "references", "Reference")
            candidates = (
                segments_of(first, first_file, "candidates", "System A"),
                segments_of(second, second_file, "candidates", "System B"),
            )
            reads_sources = shared.scorer.layout.reads_sources
            sources = segments_of(source, source_file, "sources", "Source") if reads_sources else None
            report = _reporter(progress, sum(map(len, candidates)))
            comparison = compare_two(shared, references, candidates, sources, report)
        scores = by_segment(comparison)
        return (
            gr.Column(visible=True),
            verdict_html(comparison),
            distributions(NAMES, scores),
            differences(NAMES, scores),
            segment_table(comparison, NAMES),
            *_written(comparison, folder),
        )

    return show


def _reporter(progress: gr.Progress, total: int) -> Callable[[int], None]:
    done = 0

    def report(more: int) -> None:
        nonlocal done
        done += more
        progress((done, total), desc="Scoring", unit="candidates")

    progress((0, total), desc="Scoring", unit="candidates")
    return report


def _written(comparison: Comparison, folder: Path) -> list[str]:
    """Write the downloads where Gradio serves them from, and later deletes them."""
    own = folder / secrets.token_hex(16)
    own.mkdir(parents=True)
    paths = [own / f"bleurt-comparison{suffix}" for suffix in (".csv", ".json")]
    for path in paths:
        write_comparison(comparison, path)
    return [str(path) for path in paths]
