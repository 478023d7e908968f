"""The tab for two systems: who is ahead and how surely, how the scores are distributed, and where they differ."""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from bleurt_repro.metric.compare.compare import Comparison, Segment, compare
from bleurt_repro.metric.compare.report import comparison_csv, comparison_json
from bleurt_repro.metric.demo.highlight import differences_html, signed, unsigned
from bleurt_repro.metric.demo.live_results import connect, error_html, live_region, result_html
from bleurt_repro.metric.demo.shared_scorer import ReportingScorer, SharedScorer
from bleurt_repro.metric.demo.visitor_input import LIMITS, check_comparison, read_upload, segments_of
from bleurt_repro.metric.files.texts import SUFFIXES
from bleurt_repro.metric.inputs import check_references
from bleurt_repro.metric.statistics import PairedTest

NAMES = ("A", "B")
BOXES = [("Reference", "references"), ("System A", "candidates"), ("System B", "candidates")]
SOURCE_BOX = ("Source", "sources")
ELEMENTS = {
    "Reference": "compare-reference",
    "System A": "system-a",
    "System B": "system-b",
    "Source": "compare-source",
}
FILE_HEIGHT = 104
# Reference, A and B, one segment a line.
EXAMPLE = [
    """\
The ferry leaves the island at noon.
She planted three apple trees behind the house.
The trial was postponed because the witness fell ill.
Nobody expected the small team to win.
Prices rose faster than wages last year.
The bridge will be closed until April.
He thanked his neighbours for their help.
The library lends out films as well as books.
The museum has bought a portrait of the queen.
Rain is expected in the north tomorrow.
The factory employs four hundred people.
My sister teaches music at a school in the city.
The fire was put out within an hour.
They have not yet found the missing boat.
The road to the village is covered with snow.
The new law protects tenants from sudden rises in rent.
He spoke for two hours without notes.
The bakery on the corner opens at six.
Doctors advise drinking enough water in summer.
The concert was cancelled at short notice.""",
    """\
The ferry departs from the island at noon.
Behind the house she planted three apple trees.
The trial was delayed since the witness was ill.
No one thought that the small team would win.
Last year prices went up faster than wages.
The bridge remains closed until April.
He thanked the neighbours for helping him.
The library lends both films and books.
The museum has acquired a portrait of the queen.
Tomorrow, rain is expected in the north.
Four hundred people work at the factory.
My sister is a music teacher at a city school.
Within an hour the fire had been extinguished.
The missing boat has not been found so far.
The road to the village is under snow.
The new law protects tenants against sudden rent rises.
He spoke for two hours and used no notes.
The corner bakery opens at six.
In summer, doctors advise people to drink enough water.
The concert was called off at short notice.""",
    """\
The ferry arrives at the island at noon.
She planted apple behind house.
The trial was won because the judge fell ill.
Everybody expected the small team to lose the ball.
Prices rose wages than faster year.
The bridge will open in April until closed.
He asked his neighbours for money.
The library sells out books.
The museum has bought a queen.
Rain was expected in the south.
The factory employs people.
My sister learns at music.
The fire was out in a hour put.
They have found the missing boat.
The village covers snow road.
The new law protects rent from tenants.
He noted two hours without speak.
The bakery opens.
Doctors in summer water drinking.
The concert was notice short.""",
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


# The verdict.

# Fewer segments are not tested: their bootstrap says little about other segments.
FEWEST_TESTED = 20
# Below this p, a difference is shown without the remark that it may be chance. p is one-sided, and the data choose the
# side: this is the level at which the 95 % interval of the difference leaves 0 out.
SIGNIFICANT = 0.025


def verdict_html(comparison: Comparison) -> str:
    """Show who is ahead, with the figures of both systems and of their difference."""
    [test] = comparison.tests
    tested = len(comparison.segments) >= FEWEST_TESTED
    head = ("system", "BLEURT", f"{comparison.confidence:.0%} interval", "sentBLEU", "BLEU", "chrF", "ahead in")
    rows = "".join(
        f'<tr><th scope="row">{system.name}</th><td>{unsigned(system.mean)}</td>'
        f"<td>{_bounds(system.low, system.high) if tested else _NONE}</td>"
        f"<td>{system.sentbleu:.1f}</td><td>{system.bleu:.1f}</td><td>{system.chrf:.1f}</td><td>{wins}</td></tr>"
        for system, wins in zip(comparison.systems, (test.wins, test.losses), strict=True)
    )
    headings = "".join(f'<th scope="col">{name}</th>' for name in head)
    signatures = "<br>".join(escape(f"{name}: {value}") for name, value in comparison.signatures.items())
    return result_html(
        "compare",
        f'<p class="verdict">{verdict(comparison)}</p>',
        f'<div class="figures" tabindex="0" role="region" aria-label="Figures of both systems">'
        f"<table><thead><tr>{headings}</tr></thead><tbody>{rows}</tbody></table></div>",
        *(f'<p class="note warned">{escape(warning)}</p>' for warning in _warnings(comparison)),
        "<details><summary>How these figures are computed</summary>",
        f'<p class="note">p and intervals: {escape(comparison.convention)}; {comparison.resamples:,} resamples; from '
        f"{FEWEST_TESTED} segments. Differences are A \N{MINUS SIGN} B.</p>",
        *(
            [f'<p class="note">What people would prefer: {escape(comparison.preferred)}.</p>']
            if comparison.preferred
            else []
        ),
        f'<p class="note signature">{signatures}</p></details>',
    )


def verdict(comparison: Comparison) -> str:
    """Return who is ahead, by how much and how surely, in a sentence of HTML."""
    [test] = comparison.tests
    if test.difference == 0:
        return "<b>A and B have the same mean.</b>"
    ahead = test.first if test.difference > 0 else test.second
    gap = f"{abs(test.difference):.2f}" if abs(test.difference) >= 0.005 else "less than 0.01"
    count = len(comparison.segments)
    if test.p_value is None or test.low is None or test.high is None or count < FEWEST_TESTED:
        segments = "1 segment" if count == 1 else f"{count} segments"
        return f"<b>{ahead} is ahead by {gap}</b> on {segments}: too few to test, {FEWEST_TESTED} are needed."
    low, high = (test.low, test.high) if test.difference > 0 else (-test.high, -test.low)
    p_value = f"p = {test.p_value:.3f}" if test.p_value >= 0.001 else "p &lt; 0.001"
    sure = "" if test.p_value < SIGNIFICANT else " This may be chance."
    return f"<b>{ahead} is ahead by {gap}</b> ({_bounds(low, high)}; {p_value}).{sure}{_preferred(test)}"


def _preferred(test: PairedTest) -> str:
    """Return how probable it is that people prefer the system that is ahead."""
    if test.preferred is None:
        return ""
    p = test.preferred if test.difference > 0 else 1 - test.preferred
    shown = f"{100 * p:.0f} %" if p < 0.995 else "more than 99 %"
    return f" People would prefer it with a probability of <b>{shown}</b>."


_NONE = "\N{EN DASH}"


def _bounds(low: float | None, high: float | None) -> str:
    return _NONE if low is None or high is None else f"{unsigned(low)} to {unsigned(high)}"


def _warnings(comparison: Comparison) -> list[str]:
    return [f"{system.name}: {warning}." for system in comparison.systems for warning in system.warnings]


# The plots.

# Okabe and Ito's blue and vermilion, which the colour-blind tell apart: https://jfly.uni-koeln.de/color/
COLOURS = ("#0072B2", "#D55E00")
SIZE = (5.2, 3.3)
MOST_BINS = 30
FEW = 60  # segments whose bars stand apart
# Text stays text, in the page's font; black becomes the colour of the page's text, which depends on its mode.
SVG_SETTINGS: Any = {"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "demo"}


def plots_html(comparison: Comparison) -> str:
    """Draw how the scores are distributed and who is ahead in how many segments; one segment needs no plot."""
    scores = by_segment(comparison)
    if len(scores[0]) < 2:
        return ""
    return result_html("compare", '<div class="plots">', distributions(scores), differences(scores), "</div>")


def by_segment(comparison: Comparison) -> tuple[list[float], list[float]]:
    """Return the scores of A and of B."""
    first, second = zip(*(segment.scores for segment in comparison.segments), strict=True)
    return list(first), list(second)


def distributions(scores: tuple[Sequence[float], Sequence[float]]) -> str:
    """Draw the histograms of two systems' scores with their means.

    Args:
        scores: of each, one a segment.

    Returns:
        SVG, with a description.
    """
    figure, axes = _axes("Distribution of scores", "BLEURT score", "segments")
    bins = np.histogram_bin_edges(np.concatenate(scores), bins=min(MOST_BINS, max(5, len(scores[0]) // 4))).tolist()
    described = []
    for name, own, colour, line in zip(NAMES, scores, COLOURS, ("-", "--"), strict=True):
        mean = float(np.mean(own))
        axes.hist(own, bins, histtype="stepfilled", color=colour, alpha=0.25)
        axes.hist(own, bins, histtype="step", color=colour, linestyle=line)
        axes.axvline(mean, color=colour, linestyle=line, linewidth=2, label=f"{name}, mean {unsigned(mean)}")
        described.append(f"{name} from {unsigned(min(own))} to {unsigned(max(own))}, mean {unsigned(mean)}")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    return _svg(figure, f"Histogram of the scores of {len(scores[0])} segments: {'; '.join(described)}.")


def differences(scores: tuple[Sequence[float], Sequence[float]]) -> str:
    """Draw the difference of two systems in every segment, largest first.

    Args:
        scores: of each, one a segment.

    Returns:
        SVG, with a description.
    """
    figure, axes = _axes("Who is ahead, segment by segment", "segments, by difference", "A \N{MINUS SIGN} B")
    gaps = np.sort(np.subtract(*scores))[::-1]
    places = np.arange(1, len(gaps) + 1)
    width = 0.9 if len(gaps) < FEW else 1.0
    keys, described = [], []
    for name, ahead, colour in zip(NAMES, (gaps > 0, gaps < 0), COLOURS, strict=True):
        count = int(np.count_nonzero(ahead))
        axes.bar(places[ahead], gaps[ahead], width=width, color=colour, linewidth=0)
        keys.append(Patch(color=colour, label=f"{name} higher in {count}"))
        described.append(f"{name} is higher in {count}")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlim(0.5, len(gaps) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(handles=keys, loc="outside lower center", ncols=2, frameon=False, fontsize=10)
    most, least = signed(float(gaps[0])), signed(float(gaps[-1]))
    return _svg(
        figure,
        f"Differences A \N{MINUS SIGN} B of {len(gaps)} segments, from {most} to {least}: {', '.join(described)}.",
    )


def _axes(title: str, across: str, up: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlabel=across, ylabel=up)
    axes.set_title(title, loc="left", fontsize=11)
    return figure, axes


def _svg(figure: Figure, description: str) -> str:
    file = io.StringIO()
    with rc_context(SVG_SETTINGS):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    drawing = file.getvalue().replace("#000000", "currentColor")
    drawing = drawing[drawing.index("<svg ") + len("<svg ") :]
    return f'<svg role="img" aria-label="{escape(description)}" {drawing}'


# The table of segments.

ROWS = 100  # on the page; the downloads have all
PAGE = 20  # rows shown at a time
# Sorts the rows by a column's numbers, largest first and then smallest first, and shows a page of them. The listener
# stays when the table changes.
SORT_AND_TURN = f"""
const show = (page) => {{
  const rows = [...element.querySelectorAll("tbody tr")];
  rows.forEach((row, i) => {{ row.hidden = Math.floor(i / {PAGE}) !== page; }});
  element.querySelectorAll("nav button").forEach((button, i) => {{
    if (i === page) button.setAttribute("aria-current", "page"); else button.removeAttribute("aria-current");
  }});
}};
element.addEventListener("click", (event) => {{
  const button = event.target.closest("button");
  if (!button) return;
  if (button.closest("nav")) {{ show([...button.parentElement.children].indexOf(button)); return; }}
  const heading = button.closest("th");
  const order = heading.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
  const sign = order === "descending" ? -1 : 1;
  const value = (row) => Number(row.cells[heading.cellIndex].dataset.value);
  const body = heading.closest("table").tBodies[0];
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", order);
  body.append(...[...body.rows].sort((a, b) => sign * (value(a) - value(b))));
  show(0);
}});
"""


def segment_table(comparison: Comparison) -> str:
    """Show the segments of two systems, largest difference first, a page at a time.

    Args:
        comparison: of the two.
    """
    headings = ("#", "A \N{MINUS SIGN} B", *NAMES)
    head = "".join(f'<th scope="col"><button type="button">{heading}</button></th>' for heading in headings)
    shown = comparison.segments[:ROWS]
    rows = "".join(_row(segment, hidden=i >= PAGE) for i, segment in enumerate(shown))
    return result_html(
        "compare",
        f'<table class="segments"><caption>Where they differ most: {len(shown):,} of {len(comparison.segments):,} '
        "segments. <mark>Marked</mark> words are not in the reference at that place; <del>framed</del> words of the "
        "reference are missing. A heading sorts.</caption>",
        f'<thead><tr>{head}<th scope="col">texts</th></tr></thead><tbody>{rows}</tbody></table>',
        _pages(len(shown)),
    )


def _row(segment: Segment, hidden: bool) -> str:
    first, second = segment.scores
    difference = first - second
    ahead = "first" if difference > 0 else "second" if difference < 0 else ""
    cells = (
        _number(segment.number, str(segment.number)),
        _number(difference, signed(difference), ahead),
        _number(first, unsigned(first)),
        _number(second, unsigned(second)),
    )
    return f"<tr{' hidden' if hidden else ''}>{''.join(cells)}<td>{_texts(segment)}</td></tr>"


def _number(value: float, shown: str, kind: str = "") -> str:
    return f'<td class="number {kind}" data-value="{value!r}"><span>{shown}</span></td>'


def _texts(segment: Segment) -> str:
    lines = [("Source", escape(segment.source))] if segment.source is not None else []
    lines += [("Reference", escape(text)) for text in segment.references]
    for name, text in zip(NAMES, segment.candidates, strict=True):
        lines.append((name, differences_html(segment.references, text)))
    return "".join(f'<div class="text"><i>{name}</i><div dir="auto">{text}</div></div>' for name, text in lines)


def _pages(rows: int) -> str:
    count = -(-rows // PAGE)
    if count < 2:
        return ""
    buttons = "".join(
        f'<button type="button"{" aria-current=page" if i == 0 else ""}>{i * PAGE + 1}\N{EN DASH}{min(rows, (i + 1) * PAGE)}'
        "</button>"
        for i in range(count)
    )
    return f'<nav aria-label="Segments">{buttons}</nav>'


# The tab.


def build_compare_tab(shared: SharedScorer) -> None:
    """Build the tab; call it inside a `gr.Tab`."""
    gr.Markdown(f"One segment a line, or files: {', '.join(SUFFIXES)}. {LIMITS}")
    with gr.Row():
        boxes = [_input(label, role) for label, role in BOXES]
        boxes.append(_input(*SOURCE_BOX, visible=shared.scorer.layout.reads_sources))
    inputs = [component for pair in boxes for component in pair]
    with gr.Row():
        button = gr.Button("Compare", variant="primary", elem_id="compare", scale=3)
        example = gr.Button("Example", elem_id="fill-example", scale=1)
    status = live_region("compare-status")
    result = gr.HTML(elem_id="verdict", apply_default_css=False)  # in sight from the start, for the progress
    with gr.Column(visible=False, elem_id="comparison") as shown:
        with gr.Row():
            downloads = [
                gr.DownloadButton("Download CSV", elem_id="download-csv"),
                gr.DownloadButton("Download JSON", elem_id="download-json"),
            ]
        plots = gr.HTML(elem_id="plots", apply_default_css=False)
        table = gr.HTML(elem_id="segments", js_on_load=SORT_AND_TURN, apply_default_css=False)
    show = _shower(shared, Path(downloads[0].GRADIO_CACHE))
    connect("compare", [button.click], show, inputs, [shown, status, result, plots, table, *downloads], result)
    for (_, role), (box, upload) in zip((*BOXES, SOURCE_BOX), boxes, strict=True):
        upload.upload(_taker(role), upload, [box, upload, status, result], api_visibility="private")
        upload.clear(
            lambda: gr.update(interactive=True, placeholder=""),
            None,
            box,
            api_visibility="private",
            show_progress="hidden",
        )
    example.click(
        lambda: [value for text in EXAMPLE for value in (gr.Textbox(value=text, interactive=True), None)],
        None,
        inputs[: 2 * len(EXAMPLE)],
        api_visibility="private",
    )


def _input(label: str, role: str, visible: bool = True) -> tuple[gr.Textbox, gr.File]:
    """Add a text box, and a place for a file that is read instead."""
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
    return box, upload


def _taker(role: str) -> Callable[[str], tuple[Any, ...]]:
    def take(path: str) -> tuple[Any, ...]:
        try:
            found = len(read_upload(path, role))
        except ValueError as error:
            return gr.skip(), None, str(error), error_html(error)
        told = f"{found:,} segments of {Path(path).name}"
        return gr.update(value="", interactive=False, placeholder=told), gr.skip(), told, gr.skip()

    return take


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
        try:
            references = segments_of(reference, reference_file, "references", "Reference")
            candidates = (
                segments_of(first, first_file, "candidates", "System A"),
                segments_of(second, second_file, "candidates", "System B"),
            )
            reads_sources = shared.scorer.layout.reads_sources
            sources = segments_of(source, source_file, "sources", "Source") if reads_sources else None
            report = _reporter(progress, sum(map(len, candidates)))
            comparison = compare_two(shared, references, candidates, sources, report)
        except ValueError as error:
            return gr.Column(visible=False), str(error), error_html(error), "", "", None, None
        return (
            gr.Column(visible=True),
            spoken(comparison),
            verdict_html(comparison),
            plots_html(comparison),
            segment_table(comparison),
            *_written(comparison, folder),
        )

    return show


def spoken(comparison: Comparison) -> str:
    """Return the result in a sentence, for screen readers."""
    return " ".join([verdict(comparison).replace("<b>", "").replace("</b>", ""), *_warnings(comparison)])


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
    table, everything = own / "bleurt-comparison.csv", own / "bleurt-comparison.json"
    # A byte order mark: without it, spreadsheets take UTF-8 for another encoding.
    table.write_bytes(comparison_csv(comparison).encode("utf-8-sig"))
    everything.write_bytes(comparison_json(comparison).encode())
    return [str(table), str(everything)]
