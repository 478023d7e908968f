"""What experiments write: the results file and, drawn from it alone, Markdown tables and plots as PNG and SVG.

All plots have the same style, with colours that colour-blind readers can distinguish and marks that differ in a
black-and-white print.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.training.results import COLOURS, RESULTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from bleurt_repro.training.results import Result

HEADINGS = {
    "kendall_tau": "Kendall tau",
    "kendall_by_length": "Kendall tau among segments of similar length",
    "pearson_r": "Pearson r",
    "spearman_rho": "Spearman rho",
    "darr": "daRR",
    "acc_eq": "acc_eq, pairwise accuracy with tie calibration by segment",
    "kendall_by_item": "Kendall tau by segment",
    "pearson_by_item": "Pearson r by segment",
    "kendall_by_system": "Kendall tau by system",
    "pearson_by_system": "Pearson r by system",
    "system_kendall": "Kendall tau of systems",
    "system_pearson": "Pearson r of systems",
    "system_accuracy": "Pairwise accuracy of systems",
    "spa": "SPA, soft pairwise accuracy of systems",
}
PUBLISHED = "(published)"
GROUPS = {"lp": "language pairs"}  # names of the groups of a column, in plots
MARKERS = "osD^vPX*"
LINES = ("-", "--", "-.", ":")
KINDS = {"model": "trained here", "checkpoint": "checkpoint", "baseline": "baseline", "file": "scores from a file"}


def write_report(
    output: str | Path,
    result: Result,
    texts: Mapping[str, str] | None = None,
    plots: Mapping[str, Figure] | None = None,
) -> None:
    """Write results.json and everything that is drawn from it, in place of earlier files.

    Args:
        output: folder to write; made if it does not exist.
        result: result of an experiment.
        texts: content of each text file, such as {"table.md": ...}; by default the tables of measured rows.
        plots: figures by file name without extension; by default the averages of measured rows.
    """
    from bleurt_repro.metric.files.writing import atomic_folder, write_text

    if texts is None:
        texts = {"table.md": draw_table(result), "comparisons.md": draw_comparisons(result)}
    with atomic_folder(Path(output), last=RESULTS) as unfinished:
        for name, text in texts.items():
            write_text(unfinished / name, text)
        for name, figure in ({result.kind: draw_averages(result)} if plots is None else plots).items():
            save_plot(figure, unfinished, name)
        result.write(unfinished)


def draw_table(results: Mapping[str, Any]) -> str:
    """Return a Markdown table for each measure, times 100, with 95 % intervals: one row per metric, published rows last.

    Args:
        results: results of an experiment that measures rows by group.
    """
    sections = []
    rows, published = results["rows"], results.get("published", [])
    for measure in results["measures"]:
        sizes = group_sizes(rows, measure)
        table = {row["name"]: _cells(row, measure, sizes) for row in rows}
        table |= {
            f"{row['name']} {PUBLISHED}": _published_cells(row, measure, sizes)
            for row in published
            if measure in row["average"]
        }
        for name, cluster in results.get("clusters", {}).get(measure, {}).items():
            if name in table:
                table[name]["cluster"] = str(cluster)
        counts = ", ".join(map(str, sizes.values()))
        by = f", by {results['by']}" if len(sizes) > 1 else ""
        sections += [f"**{HEADINGS[measure]}** x 100{by} (n = {counts})\n", markdown(table)]
    if published:
        sections.append(f"Rows marked {PUBLISHED}: {results['published_source']}.\n")
    if "clusters" in results:
        sections.append(f"{CLUSTERS}\n")
    sections += _seed_section(rows)
    sections += overlap_section(rows)
    sections.append("Signatures:\n" + "".join(f"- {row['name']}: `{row['signature']}`\n" for row in rows))
    return "\n".join(sections)


CLUSTERS = (
    "Cluster: metrics of one number are not significantly different from each other (p < 0.05 begins the next one)."
)


def overlap_section(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a section on how many measured references the checkpoints were fine-tuned on, in a list that may be empty.

    Args:
        rows: rows of results; those of checkpoints and models have "training_references", None if they are unknown.
    """
    lines = [f"- {row['name']}: {_overlap(row)}\n" for row in rows if "training_references" in row]
    return ["Training references among those measured:\n" + "".join(lines)] if lines else []


def _overlap(row: Mapping[str, Any]) -> str:
    overlap = row["training_references"]
    if overlap is None:
        return "training references unknown"
    if not overlap["seen"]:
        return f"none of {overlap['references']}"
    return f"**{overlap['seen']} of {overlap['references']}; its agreement is too high**"


def draw_comparisons(results: Mapping[str, Any]) -> str:
    """Return Markdown tables of the tests of every two rows: one line per pair, the better row first.

    Args:
        results: results of an experiment that measures rows by group.
    """
    sections = []
    for measure in results["measures"]:
        tests = [test for test in results["comparisons"] if test["measure"] == measure]
        if not tests:
            continue
        table = {f"{test['first']} over {test['second']}": _test_cells(test) for test in tests}
        sections += [f"**{HEADINGS[measure]}** x 100, average\n", markdown(table)]
    notes = f"p: {results['tests']['bootstrap']}.\n"
    if "pearson_r" in results["measures"]:
        notes += f"\nWilliams: number of groups with p < 0.05 by {results['tests']['williams']}.\n"
    if "permutation" in results["tests"]:
        notes += f"\nPermutation: p by {results['tests']['permutation']}.\n"
    return "\n".join([*sections, notes])


def group_sizes(rows: Sequence[Mapping[str, Any]], measure: str) -> dict[str, int]:
    """Return the size of each group that any row has a figure of."""
    return {
        group: figures[measure]["n"] for row in rows for group, figures in row["groups"].items() if measure in figures
    }


def percent(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Return a fraction times 100 with one decimal, and its interval if there is one; "-" for None."""
    if value is None:
        return "-"
    text = f"{100 * value:.1f}"
    return text if low is None or high is None else f"{text} [{100 * low:.1f}, {100 * high:.1f}]"


def markdown(table: Mapping[str, Mapping[str, str]]) -> str:
    """Return a Markdown table; a missing cell is "-".

    Args:
        table: cells by row and column.
    """
    import pandas

    return draw_frame(pandas.DataFrame.from_dict(table, orient="index"))


def draw_frame(frame: DataFrame) -> str:
    """Draw a data frame as a Markdown table; a missing cell is "-", and no name or text can end a cell."""

    from bleurt_repro.metric.files.tables import markdown_table

    rows = [[name, *row] for name, row in zip(frame.index, frame.fillna("-").astype(object).values, strict=True)]
    return markdown_table(["", *map(str, frame.columns)], rows) + "\n"


def _cells(row: Mapping[str, Any], measure: str, groups: Mapping[str, int]) -> dict[str, str]:
    cells = {}
    for group in groups:
        figure = row["groups"].get(group, {}).get(measure)
        cells[group] = percent(figure["value"], figure["low"], figure["high"]) if figure else "-"
    low, high = row.get("average_intervals", {}).get(measure, (None, None))
    # The average of one group is that group.
    average = {"average": percent(row["average"].get(measure), low, high)} if len(groups) > 1 else {}
    return {**cells, **average, **row.get("columns", {})}


def _published_cells(row: Mapping[str, Any], measure: str, groups: Mapping[str, int]) -> dict[str, str]:
    cells = {group: percent(row["groups"].get(group, {}).get(measure)) for group in groups}
    average = {"average": percent(row["average"][measure])} if len(groups) > 1 else {}
    return {**cells, **average, **row.get("columns", {})}


def p_text(p: float) -> str:
    """Return a p-value with three decimals; a smaller one is not 0."""
    return f"{p:.3f}" if p >= 0.0005 else "< 0.001"


def _test_cells(test: Mapping[str, Any]) -> dict[str, str]:
    cells = {
        "difference": percent(test["difference"], test["low"], test["high"]),
        "p": "-" if test["p"] is None else p_text(test["p"]),
    }
    if "williams" in test:
        groups = test["williams"].values()
        cells["Williams"] = f"{sum(group['p'] < 0.05 for group in groups)} of {len(groups)}"
    if "permutation_p" in test:
        cells["permutation"] = p_text(test["permutation_p"])
    return cells


def _seed_section(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        f"- {row['name']}: {HEADINGS[measure]} {', '.join(percent(value) for value in seeds['values'])}, "
        f"standard deviation {100 * seeds['deviation']:.2f}\n"
        for row in rows
        for measure, seeds in row.get("seeds", {}).items()
    ]
    if not lines:
        return []
    return [f"Averages by seed; the tables contain their means. {INTERVALS}\n" + "".join(lines)]


# Said beside all intervals of means over seeds.
INTERVALS = "Intervals come from resampled segments: they leave out the variance between seeds."


def save_plot(figure: Figure, folder: Path, name: str) -> None:
    """Write `name`.png and `name`.svg; equal figures give equal bytes."""
    import matplotlib

    from bleurt_repro.metric.files.writing import write_bytes

    for form in ("png", "svg"):
        stream = io.BytesIO()
        # Without a salt, the names in an SVG differ from one drawing to the next.
        with matplotlib.rc_context({"svg.hashsalt": name}):
            figure.savefig(stream, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
        write_bytes(folder / f"{name}.{form}", stream.getvalue())


def style(i: int) -> dict[str, Any]:
    """Return colour, mark and line of the i-th series, as arguments of `errorbar`."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": LINES[i % len(LINES)],
        "markersize": 5,
        "linewidth": 1.4,
        "elinewidth": 0.9,
        "capsize": 2,
    }


def error_bars(
    values: Sequence[float], intervals: Sequence[Sequence[float | None]], scale: float
) -> list[list[float]]:
    """Return the lengths of the bars below and above each value, as `errorbar` takes them; 0 where there is no interval."""
    below = [
        scale * max(v - (v if ends[0] is None else ends[0]), 0.0) for v, ends in zip(values, intervals, strict=True)
    ]
    above = [
        scale * max((v if ends[1] is None else ends[1]) - v, 0.0) for v, ends in zip(values, intervals, strict=True)
    ]
    return [below, above]


def add_legend(figure: Figure, columns: int) -> None:
    """Put one legend under all panels of a figure, each label once."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )


def draw_averages(results: Mapping[str, Any]) -> Figure:
    """Draw the average of each row and measure with its interval, best on top; published values have hollow marks.

    Args:
        results: results of an experiment that measures rows by group.
    """
    from matplotlib.figure import Figure

    measures = results["measures"]
    names = len(results["rows"]) + len(results.get("published", []))
    figure = Figure(figsize=(2.0 + 4.0 * len(measures), 1.6 + 0.27 * names), layout="constrained")
    for number, measure in enumerate(measures, start=1):
        _draw_measure(figure.add_subplot(1, len(measures), number), results, measure)
    add_legend(figure, 3)
    return figure


def _draw_measure(axes: Axes, results: Mapping[str, Any], measure: str) -> None:
    entries = [
        (row["average"][measure], row["average_intervals"][measure], row["name"], row["kind"])
        for row in results["rows"]
        if measure in row["average"]
    ]
    entries += [
        (row["average"][measure], (None, None), f"{row['name']} {PUBLISHED}", "published")
        for row in results.get("published", [])
        if measure in row["average"]
    ]
    entries.sort(key=lambda entry: entry[0])
    for y, (value, ends, _, kind) in enumerate(entries):
        i = [*KINDS, "published"].index(kind)
        axes.errorbar(
            [100 * value],
            [y],
            xerr=error_bars([value], [ends], 100),
            label=KINDS.get(kind, "published, without interval"),
            markerfacecolor="none" if kind == "published" else COLOURS[i],
            **{**style(i), "linestyle": "none"},
        )
    axes.set_yticks(range(len(entries)), [entry[2] for entry in entries])
    groups = GROUPS.get(results["by"], results["by"])
    axes.set_xlabel(f"{HEADINGS[measure]} x 100,\naverage over {groups}\n(95 % interval)")
    axes.grid(axis="x", alpha=0.3)
