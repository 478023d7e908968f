"""Draw the measured tables and the plots of docs/reproduction/ from results files, so that no figure there is typed.

    python docs/draw_reproduction.py docs/reproduction docs/results/reproduction docs/images/reproduction

A page has marks, `<!-- begin NAME -->` and `<!-- end NAME -->`. Between them stands the table of NAME.json in the folder of
results. `NAME:language-pairs` stands for its Kendall tau by language pair, `wmt19` for published figures beside "not measured",
`seeds` for further seeds of figure 3, and `training-time` for the time that the models of each item took. Without its file, a
table is "not measured". Each plot is written twice, for light and for dark pages.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
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
from bleurt_repro.training.experiments.report import HEADINGS, PUBLISHED, draw_averages, percent
from bleurt_repro.training.experiments.webnlg import draw_plot as draw_shares
from bleurt_repro.training.experiments.wmt import published_rows
from bleurt_repro.training.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOT_MEASURED = "not measured"
MARKS = re.compile(r"(<!-- begin (\S+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)
TAU = "kendall_tau"
DARK = "#0d1117"  # background of dark pages
# Results with further seeds of the models in webnlg.json, whose seed is 1.
SEED_RUNS = ("webnlg-seeds", "webnlg-seeds-pretrained")
WEBNLG_SEED = 1
# Results files that record the training runs of each item, relative to the folder of results.
TRAINED_FOR = {
    "Table 2": ("wmt17",),
    "Table 2, base": ("wmt17-base", "wmt17-base-bare", "../reproduction-training/14-pretrained-base"),
    "Table 3": ("wmt18",),
    "Table 3, base": ("wmt18-base", "../reproduction-training/14-pretrained-base"),
    "Figures 1 and 2": ("drift",),
    "Figure 3": ("webnlg", *SEED_RUNS),
    "Figure 4": ("ablation",),
    "Figure 5": ("steps", "../reproduction-training/8-pretrained-constant"),
    "RoBLEURT": ("robleurt",),
    "Second pre-trained model and its teachers": tuple(
        f"../reproduction-training/{name}" for name in ("1-masked-lm", "2-translator", "3-entailment", "4-pretrained")
    ),
    "Third pre-trained model and its teachers": tuple(
        f"../reproduction-training/{name}"
        for name in ("9-masked-lm", "10-translator", "11-entailment", "12-pretrained")
    ),
}


def draw_page(text: str, folder: Path) -> str:
    """Return a page with the tables between its marks drawn from results.

    Args:
        text: page with marks.
        folder: folder of results files.
    """
    return MARKS.sub(lambda match: f"{match[1]}\n{draw(match[2], folder)}\n{match[3]}", text)


def draw(name: str, folder: Path) -> str:
    """Return the text that stands between the marks of a name."""
    if name == "training-time":
        return draw_training_time(folder)
    if name == "wmt19":
        return draw_unmeasured(2019)
    if name == "seeds":
        return draw_seeds(folder)
    source, _, view = name.partition(":")
    path = folder / f"{source}.json"
    if not path.is_file():
        return f"{NOT_MEASURED}\n"
    results = Result.read(path)
    if view == "language-pairs":
        return draw_language_pairs(results)
    return f"{command_block(results)}\n{DRAWERS[results.kind](results)}"


def command_block(results: Mapping[str, Any]) -> str:
    """Return the command that made results, as a block of shell code."""
    # older results write options with underscores, which are accepted too
    command = re.sub(r"--\w+", lambda option: option[0].replace("_", "-"), str(results["command"]))
    return f"```sh\n{command}\n```\n"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def interval(ends: Sequence[float | None]) -> str:
    """Return the ends of an interval times 100, or nothing where there is none."""
    return f"{percent(ends[0])} to {percent(ends[1])}" if None not in ends and len(ends) == 2 else ""


def draw_average(results: Mapping[str, Any]) -> str:
    """Draw averages over language pairs with their intervals, and the published averages below."""
    measures = results["measures"]
    header = ["times 100", *(cell for name in measures for cell in (HEADINGS[name], "95 % interval"))]
    rows = []
    for row in results["rows"]:
        cells = [row["name"]]
        for name in measures:
            cells += [percent(row["average"].get(name)), interval(row["average_intervals"].get(name, ()))]
        rows.append(cells)
    rows += published_cells(results.get("published", []), measures)
    return table(header, rows)


def published_cells(published: Sequence[Mapping[str, Any]], measures: Sequence[str]) -> list[list[str]]:
    """Return a table row for each published metric that has an average."""
    return [
        [
            f"{row['name']} {PUBLISHED}",
            *(cell for name in measures for cell in (percent(row["average"].get(name)), "")),
        ]
        for row in published
        if row["average"]
    ]


def draw_language_pairs(results: Mapping[str, Any]) -> str:
    """Draw Kendall tau by language pair, ours and published."""
    pairs = list(results["rows"][0]["groups"])
    rows = [(row["name"], row) for row in results["rows"]]
    rows += [(f"{row['name']} {PUBLISHED}", row) for row in results.get("published", []) if TAU in row["average"]]
    cells = []
    for name, row in rows:
        figures = [row["groups"].get(pair, {}).get(TAU) for pair in pairs]
        values = [figure["value"] if isinstance(figure, Mapping) else figure for figure in figures]
        cells.append([name, *map(percent, values)])
    return table(["Kendall tau x 100", *pairs], cells)


def draw_unmeasured(year: int) -> str:
    """Draw the published averages of a year, below a row that says that ours was not measured."""
    measures = (TAU, "darr")
    rows = [["BLEURT mini", NOT_MEASURED, NOT_MEASURED]]
    rows += [[row[0], *row[1::2]] for row in published_cells(published_rows(year, measures), measures)]
    return table(["times 100", *(HEADINGS[name] for name in measures)], rows)


def draw_drift(results: Mapping[str, Any]) -> str:
    """Draw Kendall tau by skew of the test ratings, and how many ratings each skew keeps."""
    skews = results["by_test_alpha"]
    names = [row["name"] for row in skews[0]["rows"]]
    taus = [{row["name"]: row["average"][TAU] for row in skew["rows"]} for skew in skews]
    header = ["Kendall tau x 100", *(f"test skew {skew['alpha']:g}" for skew in skews)]
    text = table(header, [[name, *(percent(tau[name]) for tau in taus)] for name in names])
    densities = []
    for train, test in zip(results["densities"]["train"], results["densities"]["test"], strict=True):
        shares = [
            cell for side in (train, test) for cell in (str(side["records"]), percent(side["records"] / side["of"]))
        ]
        densities.append([f"{train['alpha']:g}", *shares])
    return text + "\n" + table(["skew", "training ratings", "share, %", "test ratings", "share, %"], densities)


def draw_webnlg(results: Mapping[str, Any]) -> str:
    """Draw absolute Kendall tau for each aspect, a column for each number of systems or inputs that train."""
    aspects = list(dict.fromkeys(condition["aspect"] for condition in results["conditions"]))
    tables = []
    for aspect in aspects:
        columns: dict[str, dict[str, str]] = {}
        for condition in results["conditions"]:
            if condition["aspect"] == aspect:
                heading = f"{condition['size']} {condition['split']}s" if condition["size"] else "no ratings"
                columns[heading] = {row["name"]: percent(abs(row["average"][TAU])) for row in condition["rows"]}
        names = list(dict.fromkeys(name for column in columns.values() for name in column))
        rows = [[name, *(column.get(name, "-") for column in columns.values())] for name in names]
        tables.append(table([aspect, *columns], rows))
    return "\n".join(tables)


def draw_seeds(folder: Path) -> str:
    """Draw figure 3's models of the first seed beside further seeds, where those were run."""
    runs = [Result.read(path) for name in SEED_RUNS if (path := folder / f"{name}.json").is_file()]
    if not runs:
        return f"{NOT_MEASURED}\n"
    rows = []
    for first in Result.read(folder / "webnlg.json")["conditions"]:
        condition = [first[key] for key in ("split", "size", "aspect")]
        again = {
            row["name"]: row["seeds"][TAU]["values"]
            for run in runs
            for repeated in run["conditions"]
            if [repeated[key] for key in ("split", "size", "aspect")] == condition
            for row in repeated["rows"]
            if row["kind"] == "model"
        }
        for row in first["rows"]:
            if row["name"] in again:
                values = [row["average"][TAU], *again[row["name"]]]
                rows.append(
                    [first["aspect"], f"{first['size']} {first['split']}s", row["name"], *map(percent, values)]
                )
    header = ["Kendall tau x 100", "ratings of", "model", *(f"seed {WEBNLG_SEED + i}" for i in range(3))]
    return "\n".join([*map(command_block, runs), table(header, rows)])


def draw_ablation(results: Mapping[str, Any]) -> str:
    """Draw the gains of figures 4 and 5: tau, tau of each seed, and the gain over the row it is compared with."""
    bases = {row["arm"]: row for row in results["rows"] if row["arm"] in (NONE, ALL)}
    seeds = len(results["rows"][0]["seeds"][TAU]["values"])
    rows = []
    for row in results["rows"]:
        cells = [row["name"], percent(row["average"][TAU]), *map(percent, row["seeds"][TAU]["values"])]
        base = {ALL: NONE, ONLY: NONE, STEPS: NONE, WITHOUT: ALL}.get(row["arm"])
        if base:
            gain, ends = relative_gain(results, row, bases[base])
            cells += [base, percent(gain), interval(ends)]
        else:
            cells += ["", "", ""]
        rows.append(cells)
    header = ["pre-training", "Kendall tau x 100", *(f"seed {i + 1}" for i in range(seeds))]
    return table([*header, "compared with", "gain, %", "95 % interval"], rows)


def draw_robleurt(results: Mapping[str, Any]) -> str:
    """Draw Kendall tau of RoBLEURT's models, with each seed."""
    seeds = max(len(row["seeds"][TAU]["values"]) for row in results["rows"] if "seeds" in row)
    rows = []
    for row in results["rows"]:
        values = [percent(value) for value in row["seeds"][TAU]["values"]] if "seeds" in row else [""] * seeds
        rows.append([row["name"], percent(row["average"][TAU]), interval(row["average_intervals"][TAU]), *values])
    return table(["", "Kendall tau x 100", "95 % interval", *(f"seed {i + 1}" for i in range(seeds))], rows)


def draw_training_time(folder: Path) -> str:
    """Draw how many models each item trained and how long that took; a model of two items counts in both."""
    rows = []
    for item, names in TRAINED_FOR.items():
        paths = [path for name in names if (path := folder / f"{name}.json").is_file()]
        seconds = [run["seconds"] for path in paths for run in training_runs(Result.read(path))]
        if seconds:
            minutes = sum(seconds) / 60
            rows.append([item, str(len(seconds)), f"{minutes:.0f}", f"{minutes / len(seconds):.1f}"])
    return table(["item", "models trained", "minutes", "minutes per model"], rows)


def training_runs(value: Any) -> list[Mapping[str, Any]]:
    """Return the training runs that a value of a results file records, each once."""
    if isinstance(value, Mapping) and "steps" in value and "seconds" in value:
        return [value]
    runs: list[Mapping[str, Any]] = []
    if isinstance(value, Mapping):
        # the runs of a row come last, after those that it shares with other rows
        for name, inner in value.items():
            runs += [] if name == "training" else training_runs(inner)
        runs += value.get("training", [])
    elif isinstance(value, list):
        for inner in value:
            runs += training_runs(inner)
    return [run for i, run in enumerate(runs) if run not in runs[:i]]


DRAWERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "wmt": draw_average,
    "drift": draw_drift,
    "webnlg": draw_webnlg,
    "ablation": draw_ablation,
    "robleurt": draw_robleurt,
}
# Plot names, each with the results file that it is drawn from and the function that draws it.
PLOTS: dict[str, tuple[str, Callable[[Mapping[str, Any]], Figure]]] = {
    "table-2": ("wmt17", draw_averages),
    "table-2-base": ("wmt17-base", draw_averages),
    "table-3": ("wmt18", draw_averages),
    "table-3-base": ("wmt18-base", draw_averages),
    "figure-1": ("drift", draw_densities),
    "figure-2": ("drift", draw_lines),
    "figure-3": ("webnlg", draw_shares),
    "figure-4": ("ablation", draw_tasks),
    "figure-5": ("steps", draw_steps),
}


def draw_plots(results: Path, images: Path) -> None:
    """Write each plot whose results are there as NAME-light.svg and NAME-dark.svg; equal results give equal bytes.

    Args:
        results: folder of results files.
        images: folder to write to; it is made if it does not exist.
    """
    import matplotlib.style

    from bleurt_repro.metric.files.writing import write_bytes

    images.mkdir(parents=True, exist_ok=True)
    for name, (source, draw_figure) in PLOTS.items():
        path = results / f"{source}.json"
        if not path.is_file():
            continue
        for mode, look, page in (("light", "default", "white"), ("dark", "dark_background", DARK)):
            faces = {f"{area}.facecolor": page for area in ("figure", "axes", "savefig", "legend")}
            stream = io.BytesIO()
            with matplotlib.style.context([look, {**faces, "svg.fonttype": "none", "svg.hashsalt": name}]):
                figure = draw_figure(Result.read(path))
                if mode == "dark":
                    lighten_lines(figure)
                figure.savefig(stream, format="svg", metadata={"Date": None})
            write_bytes(images / f"{name}-{mode}.svg", stream.getvalue())


def lighten_lines(figure: Figure) -> None:
    """Recolour black and nearly black lines of a figure for a dark page."""
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


def main(arguments: list[str]) -> None:
    """Redraw the tables of all pages in a folder, and the plots."""
    from bleurt_repro.metric.files.writing import write_text

    if len(arguments) != 3:
        raise ValueError(
            "expected the folders of pages, results and images, such as docs/reproduction docs/results/reproduction "
            "docs/images/reproduction"
        )
    pages, results, images = map(Path, arguments)
    for page in sorted(pages.glob("*.md")):
        write_text(page, draw_page(page.read_text(encoding="utf-8"), results))
    draw_plots(results, images)


if __name__ == "__main__":
    main(sys.argv[1:])
