"""The tab for two systems: which is better and how certain that is, the distributions of scores, and where they differ."""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bleurt_repro.metric.compare.compare import Comparison, Segment, compare
from bleurt_repro.metric.compare.report import comparison_csv, comparison_json
from bleurt_repro.metric.compare.segments import by_group, length_groups, lowest
from bleurt_repro.metric.demo.highlight import bleu_details, differences_html, signatures_html, signed, unsigned
from bleurt_repro.metric.demo.live_results import connect, error_html, live_region, message_of, result_html
from bleurt_repro.metric.demo.shared_scorer import Report, ReportingScorer, SharedScorer
from bleurt_repro.metric.demo.visitor_input import LIMITS, check_comparison, read_upload, segments_of
from bleurt_repro.metric.files.texts import SUFFIXES
from bleurt_repro.metric.inputs import check_references
from bleurt_repro.metric.statistics import PairedTest

# Names of systems whose texts were typed or pasted; an uploaded file's name is that of its system.
NAMES = ("A", "B")
# Label, role in `read_segments`, and id of each box.
BOXES = [
    ("Reference", "references", "compare-reference"),
    ("System A", "candidates", "system-a"),
    ("System B", "candidates", "system-b"),
]
SOURCE_BOX = ("Source", "sources", "compare-source")
FILE_HEIGHT = 104
# Reference, A and B, one segment per line.
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
    systems: Mapping[str, Sequence[str]],
    sources: Sequence[str] | None = None,
    report: Report = lambda scored, total: None,
) -> Comparison:
    """Compare two systems within the demo's limits.

    Args:
        shared: scorer of the demo.
        references: one string or one list of strings per segment.
        systems: candidates of each system by its name.
        sources: sources, for a checkpoint that reads them.
        report: function that is told about the progress.

    Raises:
        ValueError: if lengths differ or something is too long.
    """
    check_comparison(check_references(references), systems)
    return compare(ReportingScorer(shared, report), references, systems, sources)


def system_names(uploads: tuple[str | None, str | None]) -> list[str]:
    """Name two systems by their files, or A and B without a file; equal names are told apart by A and B.

    Args:
        uploads: path of the uploaded file of each system, if there is one.
    """
    names = [Path(upload).stem if upload else letter for upload, letter in zip(uploads, NAMES, strict=True)]
    if names[0] == names[1]:
        return [f"{name} ({letter})" for name, letter in zip(names, NAMES, strict=True)]
    return names


# The verdict.

# With fewer segments there is no test: their bootstrap says little about other segments.
FEWEST_TESTED = 20
# Above this p, a difference is shown with the remark that it may be chance. p is one-sided, and the data choose the
# side: this is the level at which the 95 % interval of the difference leaves 0 out.
SIGNIFICANT = 0.025
_NONE = "\N{EN DASH}"


def verdict_html(comparison: Comparison) -> str:
    """Return which system is ahead, with the figures of both systems and of their difference, as HTML."""
    [test] = comparison.tests
    tested = len(comparison.segments) >= FEWEST_TESTED
    headings = (
        "system",
        "BLEURT",
        f"{comparison.confidence:.0%} interval",
        "sentence BLEU",
        "BLEU",
        "chrF++",
        "ahead in",
    )
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    rows = "".join(
        f'<tr><th scope="row">{escape(system.name)}</th><td>{unsigned(system.mean)}</td>'
        f"<td>{_bounds(system.low, system.high) if tested else _NONE}</td>"
        f"<td>{system.sentence_bleu:.1f}</td><td>{system.bleu:.1f}{bleu_details(system.precisions, system.brevity_penalty)}</td>"
        f"<td>{system.chrf_plus_plus:.1f}</td><td>{wins}</td></tr>"
        for system, wins in zip(comparison.systems, (test.wins, test.losses), strict=True)
    )
    preferred = [f"What people would prefer: {escape(comparison.preferred)}."] if comparison.preferred else []
    notes = [
        f"p and intervals: {escape(comparison.convention)}; {comparison.resamples:,} resamples; from "
        f"{FEWEST_TESTED} segments. Differences are {escape(test.first)} \N{MINUS SIGN} {escape(test.second)}.",
        *preferred,
        "BLEURT and sentence BLEU are means over segments.",
    ]
    return result_html(
        "compare",
        f'<p class="verdict">{verdict(comparison)}</p>',
        f'<div class="figures" tabindex="0" role="region" aria-label="Figures of both systems">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>",
        *(f'<p class="note warned">{warning}</p>' for warning in _warnings(comparison)),
        "<details><summary>How these figures are computed</summary>",
        *(f'<p class="note">{note}</p>' for note in notes),
        signatures_html(comparison.signatures),
        "</details>",
        _lengths_html(comparison) if tested else "",
    )


def _lengths_html(comparison: Comparison) -> str:
    """Return the mean score of each system by the length of the reference, as HTML."""
    headings = ("words", "segments", *(system.name for system in comparison.systems))
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    rows = "".join(
        f'<tr><th scope="row">{group.name}</th><td>{group.segments}</td>'
        + "".join(f"<td>{unsigned(mean)}</td>" for mean in group.means)
        + "</tr>"
        for group in by_group(comparison, length_groups(comparison))
    )
    return (
        "<details><summary>Mean scores by length of the reference</summary>"
        '<div class="figures" tabindex="0" role="region" aria-label="Mean scores by length of the reference">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def verdict(comparison: Comparison) -> str:
    """Return which system is ahead, by how much and how certain that is, in a sentence of HTML."""
    [test] = comparison.tests
    if test.difference == 0:
        return f"<b>{escape(test.first)} and {escape(test.second)} have the same mean.</b>"
    ahead = escape(test.first if test.difference > 0 else test.second)
    gap = f"{abs(test.difference):.2f}" if abs(test.difference) >= 0.005 else "less than 0.01"
    count = len(comparison.segments)
    if test.p_value is None or test.low is None or test.high is None or count < FEWEST_TESTED:
        segments = "1 segment" if count == 1 else f"{count} segments"
        return f"<b>{ahead} is ahead by {gap}</b> on {segments}: too few to test, {FEWEST_TESTED} are needed."
    low, high = (test.low, test.high) if test.difference > 0 else (-test.high, -test.low)
    p_value = f"p = {test.p_value:.3f}" if test.p_value >= 0.001 else "p &lt; 0.001"
    caveat = "" if test.p_value < SIGNIFICANT else " This may be chance."
    return f"<b>{ahead} is ahead by {gap}</b> ({_bounds(low, high)}; {p_value}).{caveat}{_preferred(test)}"


def _preferred(test: PairedTest) -> str:
    """Return how probable it is that people prefer the system that is ahead."""
    if test.preferred is None:
        return ""
    probability = test.preferred if test.difference > 0 else 1 - test.preferred
    percent = (
        f"{100 * probability:.0f}\N{NO-BREAK SPACE}%" if probability < 0.995 else "more than 99\N{NO-BREAK SPACE}%"
    )
    return f" People would prefer it with a probability of <b>{percent}</b>."


def _bounds(low: float | None, high: float | None) -> str:
    return _NONE if low is None or high is None else f"{unsigned(low)} to {unsigned(high)}"


def _warnings(comparison: Comparison) -> list[str]:
    """Return what a reader must know about the scores of each system, as HTML."""
    return [escape(f"{system.name}: {warning}.") for system in comparison.systems for warning in system.warnings]


# The plots.

# Okabe and Ito's blue and vermilion, which the colour-blind tell apart: https://jfly.uni-koeln.de/color/
COLOURS = ("#0072B2", "#D55E00")
LINES = ("-", "--")
# How their keys look below a plot; the same colours and lines, in style.css.
KEYS = ("first", "second")
SIZE = (5.2, 3.0)
MOST_BINS = 30
FEW = 60  # segments whose bars stand apart
# Text stays text, in the page's font; black becomes the colour of the page's text, which depends on its mode.
SVG_SETTINGS: Any = {"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "demo"}


def plots_html(comparison: Comparison) -> str:
    """Return plots of the distribution of scores and of the difference per segment; none for a single segment."""
    if len(comparison.segments) < 2:
        return ""
    scores = scores_by_system(comparison)
    return result_html("compare", '<div class="plots">', distributions(scores), differences(scores), "</div>")


def scores_by_system(comparison: Comparison) -> dict[str, list[float]]:
    """Return the scores of each system by its name, in the order of the comparison's segments."""
    columns = zip(*(segment.scores for segment in comparison.segments), strict=True)
    return {system.name: list(column) for system, column in zip(comparison.systems, columns, strict=True)}


def distributions(scores: Mapping[str, Sequence[float]]) -> str:
    """Draw the histograms of two systems' scores, with their means.

    Args:
        scores: scores of each system, one per segment.

    Returns:
        SVG with a description and, below it, a key.
    """
    figure, axes = _axes("Distribution of scores", "BLEURT score", "segments")
    pooled = np.concatenate(list(scores.values()))
    count = len(pooled) // 2
    bins = np.histogram_bin_edges(pooled, bins=min(MOST_BINS, max(5, count // 4))).tolist()
    ranges, keys = [], []
    for (name, values), colour, line, key in zip(scores.items(), COLOURS, LINES, KEYS, strict=True):
        mean = float(np.mean(values))
        axes.hist(values, bins, histtype="stepfilled", color=colour, alpha=0.25)
        axes.hist(values, bins, histtype="step", color=colour, linestyle=line)
        axes.axvline(mean, color=colour, linestyle=line, linewidth=2)
        ranges.append(f"{name} from {unsigned(min(values))} to {unsigned(max(values))}, mean {unsigned(mean)}")
        keys.append(f'<span class="key-line {key}"></span>{escape(name)}, mean {unsigned(mean)}')
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    return _figure_html(figure, f"Histogram of the scores of {count} segments: {'; '.join(ranges)}.", keys)


def differences(scores: Mapping[str, Sequence[float]]) -> str:
    """Draw the difference of two systems in every segment, largest first.

    Args:
        scores: scores of each system, one per segment.

    Returns:
        SVG with a description and, below it, a key.
    """
    figure, axes = _axes(
        "Which system is ahead, segment by segment", "segments, by difference", "difference of scores"
    )
    first, second = scores
    gaps = np.sort(np.subtract(scores[first], scores[second]))[::-1]
    positions = np.arange(1, len(gaps) + 1)
    width = 0.9 if len(gaps) < FEW else 1.0
    counts, keys = [], []
    for name, mask, colour, key in zip(scores, (gaps > 0, gaps < 0), COLOURS, KEYS, strict=True):
        count = int(np.count_nonzero(mask))
        axes.bar(positions[mask], gaps[mask], width=width, color=colour, linewidth=0)
        counts.append(f"{name} is higher in {count}")
        keys.append(f'<span class="key-bar {key}"></span>{escape(name)} higher in {count}')
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlim(0.5, len(gaps) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    span = f"from {signed(float(gaps[0]))} to {signed(float(gaps[-1]))}"
    return _figure_html(
        figure,
        f"Differences {first} \N{MINUS SIGN} {second} of {len(gaps)} segments, {span}: {', '.join(counts)}.",
        keys,
    )


def _axes(title: str, x_label: str, y_label: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.set_title(title, loc="left", fontsize=11)
    return figure, axes


def _figure_html(figure: Figure, description: str, keys: Sequence[str]) -> str:
    file = io.StringIO()
    with rc_context(SVG_SETTINGS):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    drawing = file.getvalue().replace("#000000", "currentColor")
    drawing = drawing[drawing.index("<svg ") + len("<svg ") :]
    caption = "".join(f"<span>{key}</span>" for key in keys)
    return f'<figure><svg role="img" aria-label="{escape(description)}" {drawing}<figcaption>{caption}</figcaption></figure>'


# The table of segments.

ROWS = 100  # on the page, those that differ most; the downloads have all
LOWEST = 50  # further rows per system, those with its lowest scores
PAGE = 20  # rows shown at a time
# Sorts the rows by a column's numbers and shows a page of them: differences largest first, scores lowest first, and the
# other way round at the next click. The listener stays when the table changes.
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
  const [first, next] = heading.cellIndex > 1 ? ["ascending", "descending"] : ["descending", "ascending"];
  const order = heading.getAttribute("aria-sort") === first ? next : first;
  const sign = order === "descending" ? -1 : 1;
  const value = (row) => Number(row.cells[heading.cellIndex].dataset.value);
  const body = heading.closest("table").tBodies[0];
  for (const cell of heading.parentElement.cells) cell.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", order);
  body.append(...[...body.rows].sort((a, b) => sign * (value(a) - value(b))));
  show(0);
}});
"""


def segment_table(comparison: Comparison) -> str:
    """Return a table of segments in pages: where two systems differ most, and the lowest scores of each."""
    names = [system.name for system in comparison.systems]
    headings = "".join(
        f'<th scope="col"><button type="button" title="{escape(heading)}"><span>{escape(heading)}</span></button></th>'
        for heading in ("#", "difference", *names)
    )
    rows_of_systems = [segment for name in names for segment in lowest(comparison, name, LOWEST)]
    numbers = {segment.number for segment in (*comparison.segments[:ROWS], *rows_of_systems)}
    segments = [segment for segment in comparison.segments if segment.number in numbers]
    rows = "".join(_row(segment, names, hidden=i >= PAGE) for i, segment in enumerate(segments))
    return result_html(
        "compare",
        f'<table class="segments"><caption>Where they differ most, and the lowest scores of each: {len(segments):,} of '
        f"{len(comparison.segments):,} segments. <mark>Marked</mark> words are not in the reference at that place; "
        "<del>framed</del> words of the reference are missing. Click a heading to sort.</caption>",
        f'<thead><tr>{headings}<th scope="col">texts</th></tr></thead><tbody>{rows}</tbody></table>',
        _page_buttons(len(segments)),
    )


def _row(segment: Segment, names: Sequence[str], hidden: bool) -> str:
    first, second = segment.scores
    difference = first - second
    ahead = "first" if difference > 0 else "second" if difference < 0 else ""
    cells = (
        _cell(segment.number, str(segment.number)),
        _cell(difference, signed(difference), ahead),
        _cell(first, unsigned(first)),
        _cell(second, unsigned(second)),
    )
    return f"<tr{' hidden' if hidden else ''}>{''.join(cells)}<td>{_texts(segment, names)}</td></tr>"


def _cell(value: float, text: str, cell_class: str = "") -> str:
    return f'<td class="number {cell_class}" data-value="{value!r}"><span>{text}</span></td>'


def _texts(segment: Segment, names: Sequence[str]) -> str:
    lines = [("Source", escape(segment.source))] if segment.source is not None else []
    lines += [("Reference", escape(text)) for text in segment.references]
    for name, text in zip(names, segment.candidates, strict=True):
        lines.append((name, differences_html(segment.references, text)))
    return "".join(
        f'<div class="text"><i title="{escape(name)}">{escape(name)}</i><div dir="auto">{text}</div></div>'
        for name, text in lines
    )


def _page_buttons(row_count: int) -> str:
    page_count = -(-row_count // PAGE)
    if page_count < 2:
        return ""
    buttons = "".join(
        f'<button type="button"{" aria-current=page" if i == 0 else ""}>'
        f"{i * PAGE + 1}\N{EN DASH}{min(row_count, (i + 1) * PAGE)}</button>"
        for i in range(page_count)
    )
    return f'<nav aria-label="Segments">{buttons}</nav>'


# The tab.


def build_compare_tab(shared: SharedScorer) -> None:
    """Build the tab; call it inside a `gr.Tab`."""
    layout = shared.scorer.layout
    labels = [*BOXES, SOURCE_BOX] if layout.reads_sources else BOXES
    gr.Markdown(f"One segment per line in each box, or one file per box ({', '.join(SUFFIXES)}). {LIMITS}")
    with gr.Row():
        boxes = [
            gr.Textbox(
                label=label,
                placeholder="One segment per line",
                lines=8,
                max_lines=8,
                min_width=240,
                elem_id=elem_id,
                elem_classes="segments-box",
            )
            for label, _, elem_id in labels
        ]
    with gr.Accordion("Upload files instead", open=False, elem_id="files"), gr.Row():
        uploads = [
            gr.File(
                label=label,
                file_types=list(SUFFIXES),
                height=FILE_HEIGHT,
                min_width=240,
                elem_id=f"{elem_id}-file",
                elem_classes="segments-file",
            )
            for label, _, elem_id in labels
        ]
    with gr.Row():
        button = gr.Button("Compare", variant="primary", elem_id="compare", scale=3)
        # The example has no sources, and leaves that box as it is.
        example = gr.Button("Example", elem_id="fill-example", scale=1, visible="source" not in layout.required)
    status = live_region("compare-status")
    result = gr.HTML(elem_id="verdict", apply_default_css=False)  # in sight from the start, for the progress
    with gr.Column(visible=False, elem_id="comparison") as details:
        plots = gr.HTML(elem_id="plots", apply_default_css=False)
        with gr.Row():
            downloads = [
                gr.DownloadButton("Download CSV", size="sm", elem_id="download-csv"),
                gr.DownloadButton("Download JSON", size="sm", elem_id="download-json"),
            ]
        table = gr.HTML(elem_id="segments", js_on_load=SORT_AND_TURN, apply_default_css=False)

    for (label, role, _), box, upload in zip(labels, boxes, uploads, strict=True):
        upload.upload(
            partial(_take_upload, label, role), upload, [box, upload, status, result], api_visibility="private"
        )
        upload.clear(partial(_typed_box, label), None, box, api_visibility="private", show_progress="hidden")
    filled = example.click(
        lambda: [*(_typed_box(box[0], text) for box, text in zip(BOXES, EXAMPLE, strict=True)), *[None] * len(BOXES)],
        None,
        [*boxes[: len(BOXES)], *uploads[: len(BOXES)]],
        api_visibility="private",
    )
    show = _comparison_shower(shared, [(label, role) for label, role, _ in labels], Path(downloads[0].GRADIO_CACHE))
    outputs = [details, status, result, plots, table, *downloads]
    connect("compare", [button.click, filled.then], show, [*boxes, *uploads], outputs, result)


def _typed_box(label: str, text: str = "") -> dict[str, Any]:
    """Return the update of a text box that is to be typed into."""
    return gr.update(label=label, value=text, interactive=True, placeholder="One segment per line")


def _take_upload(label: str, role: str, path: str) -> tuple[Any, ...]:
    """Return the updates of text box, upload, status and result after a file was uploaded."""
    try:
        count = len(read_upload(path, role))
    except ValueError as error:
        return gr.skip(), None, message_of(error), error_html(error)
    name = Path(path).name
    segments = "1 segment" if count == 1 else f"{count:,} segments"
    box = gr.update(label=f"{label}: {name}", value="", interactive=False, placeholder=f"{segments} of {name}")
    return box, gr.skip(), f"{segments} of {escape(name)}", gr.skip()


def _comparison_shower(
    shared: SharedScorer, labels: Sequence[tuple[str, str]], folder: Path
) -> Callable[..., tuple[Any, ...]]:
    """Return the function that compares and shows what is in the boxes.

    Args:
        shared: scorer of the demo.
        labels: label and role of each box.
        folder: folder for the downloads.
    """

    # Gradio recognises a function that reports progress by the default value of a parameter.
    def show(progress: gr.Progress = gr.Progress(), *values: str | None) -> tuple[Any, ...]:  # noqa: B008
        texts, uploads = values[: len(labels)], values[len(labels) :]
        boxes = list(zip(labels, texts, uploads, strict=True))
        if "source" in shared.scorer.layout.optional and not (texts[-1] or uploads[-1]):
            del boxes[-1]
        try:
            references, first, second, *sources = (
                segments_of(text, upload, role, label) for (label, role), text, upload in boxes
            )
            systems = dict(zip(system_names((uploads[1], uploads[2])), (first, second), strict=True))
            comparison = compare_two(
                shared,
                references,
                systems,
                sources[0] if sources else None,
                lambda scored, total: progress((scored, total), desc="Scoring", unit="candidates"),
            )
        except ValueError as error:
            return gr.Column(visible=False), message_of(error), error_html(error), "", "", None, None
        return (
            gr.Column(visible=True),
            spoken(comparison),
            verdict_html(comparison),
            plots_html(comparison),
            segment_table(comparison),
            *_write_downloads(comparison, folder),
        )

    return show


def spoken(comparison: Comparison) -> str:
    """Return the result as a sentence of HTML, for screen readers."""
    return " ".join([verdict(comparison).replace("<b>", "").replace("</b>", ""), *_warnings(comparison)])


def _write_downloads(comparison: Comparison, folder: Path) -> list[str]:
    """Write the downloads to where Gradio serves files from and later deletes them; return their paths."""
    subfolder = folder / secrets.token_hex(16)
    subfolder.mkdir(parents=True)
    table, everything = subfolder / "bleurt-comparison.csv", subfolder / "bleurt-comparison.json"
    # A byte order mark: without it, spreadsheets read UTF-8 as another encoding.
    table.write_bytes(comparison_csv(comparison).encode("utf-8-sig"))
    everything.write_bytes(comparison_json(comparison).encode())
    return [str(table), str(everything)]
