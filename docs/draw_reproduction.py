"""Draw the measured tables and the plots of docs/reproduction.md from results, so that no figure in it is typed.

    python docs/draw_reproduction.py docs/reproduction.md docs/results/reproduction docs/images/reproduction

Between `<!-- begin NAME -->` and `<!-- end NAME -->` stands the table of NAME.json in the folder of results, or, where there is
no such file, "not measured", of `wmt19` beside the published figures; between marks of `training-time` the time that the models
of each item took, of `cost` what the runs in `MISSING` would take, of `webnlg-seeds` further seeds beside the first. Tables in
`PAGES` are long, and have a page beside their results. Each plot is written to the last folder for light and for dark pages.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
from bleurt_repro.training.experiments.report import (
    HEADINGS,
    PUBLISHED,
    draw_averages,
    markdown,
    percent,
)
from bleurt_repro.training.experiments.report import draw_table as draw_groups
from bleurt_repro.training.experiments.webnlg import draw_plot as draw_shares
from bleurt_repro.training.experiments.webnlg import draw_table as draw_webnlg
from bleurt_repro.training.experiments.wmt import published_rows
from bleurt_repro.training.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOT_MEASURED = "not measured\n"
TRAINING_TIME, COST, SEEDS = "training-time", "cost", "webnlg-seeds"
SEED_RUNS = ("webnlg-seeds", "webnlg-seeds-pretrained")  # results with further seeds of webnlg.json's models
# Results whose tables are too long for the document, with the heading of their page. Of WMT it has the averages.
PAGES = {
    "webnlg": "Figure 3: WebNLG",
    "wmt17": "Table 2: WMT 2017, by language pair",
    "wmt17-base": "Table 2: WMT 2017, base, by language pair",
    "wmt17-base-bare": "Table 2: WMT 2017, base without pre-training, by language pair",
    "wmt18": "Table 3: WMT 2018, by language pair",
    "wmt18-base": "Table 3: WMT 2018, base, by language pair",
}
# The test year of table 4, and its measures.
YEARS = {"wmt19": 2019}
MEASURES = ("kendall_tau", "darr")
DARK = "#0d1117"  # of dark pages


class Missing(NamedTuple):
    """Runs that were not made: how many pairs they train on and score in all, and the results that say how fast that is."""

    item: str
    runs: str
    trained: int
    training: str
    scored: int = 0
    scoring: str = "backends"


# The results that name the models of each item, from the folder of results.
TRAINED_FOR = {
    "Table 2": ("wmt17",),
    "Table 2, base": ("wmt17-base", "wmt17-base-bare", "../reproduction-training/14-pretrained-base"),
    "Table 3": ("wmt18",),
    "Table 3, base": ("wmt18-base", "../reproduction-training/14-pretrained-base"),
    "Figures 1 and 2": ("drift",),
    "Figure 3": ("webnlg", *SEED_RUNS),
    "Figure 4": ("ablation", "ablation-short"),
    "Figure 5": ("steps", "../reproduction-training/8-pretrained-constant"),
    "RoBLEURT": ("../robleurt-wmt17",),
    "second pre-trained model, with its teachers": tuple(
        f"../reproduction-training/{name}" for name in ("1-masked-lm", "2-translator", "3-entailment", "4-pretrained")
    ),
    "third pre-trained model, with its teachers": tuple(
        f"../reproduction-training/{name}"
        for name in ("9-masked-lm", "10-translator", "11-entailment", "12-pretrained")
    ),
}
# Pairs that a fine-tuning passes three times, by test year; and those that such a model scores.
TRAINED = {2017: 3 * 4_824, 2018: 3 * 8_543}
SCORED = {2017: 3_920, 2018: 138_199}
MISSING = (
    Missing(
        "Table 3, base",
        "two seeds more with pre-training, three without",
        5 * TRAINED[2018],
        "reproduction/wmt17-base",
        5 * SCORED[2018],
        "backends-base",
    ),
    Missing(
        "RoBLEURT",
        "16 models of `multilingual-e5-small` that read sources or not",
        16 * TRAINED[2017],
        "protocol17/e5-src-3e-5",
        16 * SCORED[2017],
        "backends-base",
    ),
)
MARKS = re.compile(r"(<!-- begin (\S+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def draw_document(text: str, folder: Path) -> str:
    """Return a document with the tables drawn from results between its marks.

    Args:
        text: the document.
        folder: of the results.
    """

    def drawn(name: str) -> str:
        whole = {TRAINING_TIME: draw_training_time, COST: draw_cost, SEEDS: draw_seeds}.get(name)
        return whole(folder) if whole else _draw(folder / f"{name}.json")

    return MARKS.sub(lambda match: f"{match[1]}\n{drawn(match[2])}\n{match[3]}", text)


def draw_training_time(folder: Path) -> str:
    """Draw how many models each item trained, and how long that took; a model of two items counts in both."""
    table = {}
    for item, names in TRAINED_FOR.items():
        paths = [path for name in names if (path := folder / f"{name}.json").is_file()]
        seconds = [run["seconds"] for path in paths for run in _trainings(Result.read(path))]
        if seconds:
            minutes = sum(seconds) / 60
            table[item] = {
                "models trained": str(len(seconds)),
                "minutes, all": f"{minutes:.0f}",
                "a model": f"{minutes / len(seconds):.1f}",
            }
    return markdown(table)


def draw_cost(folder: Path) -> str:
    """Draw what the runs in `MISSING` would take on one core, by the speed of those that were made."""
    table = {}
    for missing in MISSING:
        runs = _trainings(Result.read(folder.parent / f"{missing.training}.json"))
        per_pair = sum(run["seconds"] for run in runs) / sum(32 * run["steps"] for run in runs)
        scorer = Result.read(folder.parent / f"{missing.scoring}.json")
        rate = scorer["backends"][0]["pairs_per_second"]
        hours = (missing.trained * per_pair + missing.scored / rate) / 3600
        table[missing.item] = {
            "what was not run": missing.runs,
            "pairs trained on": f"{missing.trained:,}",
            "pairs a second": f"{1 / per_pair:.1f}",
            "pairs scored": f"{missing.scored:,}" if missing.scored else "",
            "core-hours": f"{hours:.1f}",
        }
    return markdown(table)


def draw_seeds(folder: Path) -> str:
    """Draw figure 3's models of one seed beside further seeds of those that were run again, a row a split and aspect."""
    runs = [Result.read(path) for name in SEED_RUNS if (path := folder / f"{name}.json").is_file()]
    if not runs:
        return NOT_MEASURED
    seed = 1  # of webnlg.json
    table = {}
    for first in Result.read(folder / "webnlg.json")["conditions"]:
        same = ("split", "size", "aspect")
        again = [part for run in runs for part in run["conditions"] if all(part[key] == first[key] for key in same)]
        more = {row["name"]: row for part in again for row in _models(part)}
        cells: dict[str, str] = {}
        for row in _models(first) if more else ():
            values = {seed: row["average"]["kendall_tau"]}
            if other := more.get(row["name"]):
                values |= zip(
                    (run["seed"] for run in other["training"]), other["seeds"]["kendall_tau"]["values"], strict=True
                )
            cells |= {f"{row['name']}, seed {one}": percent(value) for one, value in values.items()}
        if cells:
            table[f"{first['aspect']}, {first['size']} {first['split']}s"] = cells
    return "\n".join([*map(_measured, runs), f"Kendall tau x 100.\n\n{markdown(table)}"])


def _models(condition: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rows of a condition that were trained for it."""
    return [row for row in condition["rows"] if row["kind"] == "model"]


def _trainings(part: Any) -> list[Mapping[str, Any]]:
    """Return the runs of training that a part of results names, each once."""
    if isinstance(part, Mapping) and "steps" in part and "seconds" in part:
        found = [part]
    elif isinstance(part, Mapping):
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
    table |= _published(results.get("published", []), results["measures"])
    return f"Averages over language pairs, x 100 [95 % interval].\n\n{markdown(table)}"


def draw_unmeasured(year: int) -> str:
    """Draw the published averages of a year, with a row that says that ours is missing."""
    table = {"BLEURT mini": {HEADINGS[name]: NOT_MEASURED.strip() for name in MEASURES}}
    table |= _published(published_rows(year, MEASURES), MEASURES)
    return f"Averages over language pairs, x 100.\n\n{markdown(table)}"


def _published(rows: Sequence[Mapping[str, Any]], measures: Sequence[str]) -> dict[str, dict[str, str]]:
    return {
        f"{row['name']} {PUBLISHED}": {HEADINGS[name]: percent(row["average"].get(name)) for name in measures}
        for row in rows
        if row["average"]
    }


def draw_ablation(results: Mapping[str, Any]) -> str:
    """Draw the gains of figures 4 and 5: tau, that of each seed, and its gain over what the arm is compared with."""
    base = {row["arm"]: row for row in results["rows"] if row["arm"] in (NONE, ALL)}
    table = {}
    for row in results["rows"]:
        cells = {"Kendall tau x 100": percent(row["average"]["kendall_tau"])}
        if "seeds" in row:
            cells["of each seed"] = ", ".join(map(percent, row["seeds"]["kendall_tau"]["values"]))
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
    "table-2-base": ("wmt17-base", draw_averages),
    "table-3": ("wmt18", draw_averages),
    "table-3-base": ("wmt18-base", draw_averages),
    "figure-1": ("drift", draw_densities),
    "figure-2": ("drift", draw_lines),
    "figure-3": ("webnlg", draw_shares),
    "figure-4": ("ablation", draw_tasks),
    "figure-5": ("steps", draw_steps),
}


def _draw(path: Path, drawers: Mapping[str, Callable[[Mapping[str, Any]], str]] = DRAWERS) -> str:
    if not path.is_file():
        return draw_unmeasured(YEARS[path.stem]) if path.stem in YEARS else NOT_MEASURED
    results = Result.read(path)
    return f"{_measured(results)}\n{drawers[results.kind](results)}"


def _measured(results: Result) -> str:
    """Return the sentence and the block that name the version and the command of results."""
    version = results.versions["bleurt_repro"]
    resampled = results.get("resample", ROWS)  # version 0.1 knew nothing else
    # version 0.1 wrote options with underscores, which are accepted still
    command = re.sub(r"--\w+", lambda option: option[0].replace("_", "-"), str(results.command))
    return f"Measured by version {version}, intervals by resampled {resampled}, with\n\n```sh\n{command}\n```\n"


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
    return f"# {heading}\n\n{_draw(path, {**DRAWERS, 'wmt': draw_groups})}"


if __name__ == "__main__":
    main(sys.argv[1:])
