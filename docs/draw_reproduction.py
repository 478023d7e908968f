"""Draw the measured tables and the plots of docs/reproduction.md from results, so that no figure in it is typed.

    python docs/draw_reproduction.py docs/reproduction.md docs/results/reproduction docs/images/reproduction

Between `<!-- begin NAME -->` and `<!-- end NAME -->` stands the table of NAME.json in the folder of results, or, where there is
no such file, "not measured"; between marks of `training-time` the time that the models of each file took. Tables in `PAGES` are
long, and have a page beside their results. Each plot is written to the last folder for light and for dark pages.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.training.experiments.ablation import (
    ALL,
    NONE,
    ONLY,
    STEPS,
    WITHOUT,
    draw_steps,
    draw_tasks,
    relative_gain,
)
from bleurt_repro.training.experiments.drift import draw_densities, draw_lines
from bleurt_repro.training.experiments.drift import draw_table as draw_drift
from bleurt_repro.training.experiments.options import ROWS
from bleurt_repro.training.experiments.report import HEADINGS, PUBLISHED, draw_averages, markdown, percent
from bleurt_repro.training.experiments.webnlg import draw_plot as draw_shares
from bleurt_repro.training.experiments.webnlg import draw_table as draw_webnlg
from bleurt_repro.training.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOT_MEASURED = "not measured\n"
TRAINING_TIME = "training-time"
# Results whose tables are too long for the document, with the heading of their page.
PAGES = {"webnlg": "Figure 3: WebNLG, untrained metrics", "webnlg-models": "Figure 3: WebNLG, models"}
DARK = "#0d1117"  # of dark pages
MARKS = re.compile(r"(<!-- begin (\S+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def draw_document(text: str, folder: Path) -> str:
    """Return a document with the tables drawn from results between its marks.

    Args:
        text: the document.
        folder: of the results.
    """

    def drawn(name: str) -> str:
        return draw_training_time(folder) if name == TRAINING_TIME else _draw(folder / f"{name}.json")

    return MARKS.sub(lambda match: f"{match[1]}\n{drawn(match[2])}\n{match[3]}", text)


def draw_training_time(folder: Path) -> str:
    """Draw how many models the results in a folder trained, and how long that took; a model in two of them counts in both."""
    table = {}
    for path in sorted(folder.glob("*.json")):
        seconds = [run["seconds"] for run in _trainings(Result.read(path))]
        if seconds:
            table[path.stem] = {"models trained": str(len(seconds)), "minutes, all": f"{sum(seconds) / 60:.0f}"}
    return markdown(table)


def _trainings(part: Any) -> list[Mapping[str, Any]]:
    """Return the runs of training that a part of results names, each once."""
    if isinstance(part, Mapping):
        found = [run for name, value in part.items() if name != "training" for run in _trainings(value)]
        found += part.get("training", [])
    elif isinstance(part, list):
        found = [run for value in part for run in _trainings(value)]
    else:
        found = []
    return [run for i, run in enumerate(found) if run not in found[:i]]


def draw_plots(results: Path, images: Path) -> None:
    """Draw each plot whose results are there as NAME-light.svg and NAME-dark.svg; the same results give the same bytes.

    Args:
        results: folder of results.
        images: folder to write to, made if need be.
    """
    import matplotlib.style

    from bleurt_repro.metric.files.writing import write_bytes

    images.mkdir(parents=True, exist_ok=True)
    for name, (source, draw) in PLOTS.items():
        path = results / f"{source}.json"
        if not path.is_file():
            continue
        for mode, look, page in (("light", "default", "white"), ("dark", "dark_background", DARK)):
            faces = {f"{part}.facecolor": page for part in ("figure", "axes", "savefig", "legend")}
            stream = io.BytesIO()
            with matplotlib.style.context([look, {**faces, "svg.fonttype": "none", "svg.hashsalt": name}]):
                figure = draw(Result.read(path))
                if mode == "dark":
                    _lighten(figure)
                figure.savefig(stream, format="svg", metadata={"Date": None})
            write_bytes(images / f"{name}-{mode}.svg", stream.getvalue())


def _lighten(figure: Figure) -> None:
    """Draw lines that are black, or nearly, in the colour of text on a dark page."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb
    from matplotlib.lines import Line2D

    for line in figure.findobj(Line2D):
        if max(to_rgb(line.get_color())) < 0.3:
            line.set_color("white")
            line.set_markerfacecolor("white")
            line.set_markeredgecolor("white")
    for bars in figure.findobj(LineCollection):
        if all(max(colour[:3]) < 0.3 for colour in bars.get_colors()):
            bars.set_color("white")


def draw_wmt(results: Mapping[str, Any]) -> str:
    """Draw averages over language pairs: ours with intervals, then the published ones."""
    table = {}
    for row in results["rows"]:
        ends = row["average_intervals"]
        table[row["name"]] = {
            HEADINGS[name]: percent(row["average"].get(name), *ends.get(name, ())) for name in results["measures"]
        }
    for row in results.get("published", []):
        if row["average"]:
            table[f"{row['name']} {PUBLISHED}"] = {
                HEADINGS[name]: percent(row["average"].get(name)) for name in results["measures"]
            }
    return f"Averages over language pairs, x 100 [95 % interval].\n\n{markdown(table)}"


def draw_ablation(results: Mapping[str, Any]) -> str:
    """Draw the gains of figures 4 and 5: tau, and its gain over what the arm is compared with."""
    base = {row["arm"]: row for row in results["rows"] if row["arm"] in (NONE, ALL)}
    table = {}
    for row in results["rows"]:
        cells = {"Kendall tau x 100": percent(row["average"]["kendall_tau"])}
        against = {ALL: NONE, ONLY: NONE, STEPS: NONE, WITHOUT: ALL}.get(row["arm"])
        if against:
            gain, ends = relative_gain(results, row, base[against])
            cells["gain, % [95 % interval]"] = f"{percent(gain, *ends)} over {against}"
        table[row["name"]] = cells
    return markdown(table)


DRAWERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "wmt": draw_wmt,
    "drift": draw_drift,
    "webnlg": draw_webnlg,
    "ablation": draw_ablation,
}
# Each plot: the results that it is drawn from, and by what.
PLOTS: dict[str, tuple[str, Callable[[Mapping[str, Any]], Figure]]] = {
    "table-2": ("wmt17", draw_averages),
    "table-3": ("wmt18", draw_averages),
    "figure-1": ("drift", draw_densities),
    "figure-2": ("drift", draw_lines),
    "figure-3": ("webnlg-models", draw_shares),
    "figure-4": ("ablation", draw_tasks),
    "figure-5": ("ablation", draw_steps),
}


def _draw(path: Path) -> str:
    if not path.is_file():
        return NOT_MEASURED
    results = Result.read(path)
    version = results.versions["bleurt_repro"]
    resampled = results.get("resample", ROWS)  # version 0.1 knew nothing else
    # version 0.1 wrote options with underscores, which are accepted still
    command = re.sub(r"--\w+", lambda option: option[0].replace("_", "-"), str(results.command))
    measured = f"Measured by version {version}, intervals by resampled {resampled}, with\n\n```sh\n{command}\n```\n"
    return f"{measured}\n{DRAWERS[results.kind](results)}"


def main(arguments: list[str]) -> None:
    """Redraw a document, its plots, and the pages of long tables."""
    from bleurt_repro.metric.files.writing import write_text

    if len(arguments) != 3:
        raise ValueError(
            "expected the document, the folder of results and that of images, such as docs/reproduction.md "
            "docs/results/reproduction docs/images/reproduction"
        )
    document, results, images = map(Path, arguments)
    write_text(document, draw_document(document.read_text(encoding="utf-8"), results))
    for name, heading in PAGES.items():
        if (results / f"{name}.json").is_file():
            write_text(results / f"{name}.md", draw_page(heading, results / f"{name}.json"))
    draw_plots(results, images)


def draw_page(heading: str, path: Path) -> str:
    """Return a page with the table of one file of results."""
    return f"# {heading}\n\n{_draw(path)}"


if __name__ == "__main__":
    main(sys.argv[1:])
