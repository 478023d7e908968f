"""What experiments write: the results file and, drawn from it alone, Markdown tables and plots as PNG and SVG.

Plots have one style, in colours that colour-blind readers tell apart, and marks that a black-and-white print tells apart.
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
# What plots call the groups of a column.
GROUPS = {"lp": "language pairs"}
MARKERS = "osD^vPX*"
LINES = ("-", "--", "-.", ":")
KINDS = {"model": "trained here", "checkpoint": "checkpoint", "baseline": "baseline", "file": "scores from a file"}


def write_report(
    output: str | Path,
    result: Result,
    texts: Mapping[str, str] | None = None,
    plots: Mapping[str, Figure] | None = None,
) -> None:
    """Write results.json and what is drawn from it; they take the place of earlier ones together.

    Args:
        output: the folder, made if need be.
        result: of an experiment.
        texts: what each file holds, such as {"table.md": ...}; by default the tables of measured rows.
        plots: by file name without extension; by default the averages of measured rows.
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
    """Draw a table for each measure, times 100, with 95 % intervals: a row a metric; published ones below and marked.

    Args:
        results: of an experiment that measures rows by group.
    """
    parts = []
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
        parts += [f"**{HEADINGS[measure]}** x 100, by {results['by']} (n = {counts})\n", markdown(table)]
    if published:
        parts.append(f"Rows marked {PUBLISHED}: {results['published_source']}.\n")
    if "clusters" in results:
        parts.append(f"{CLUSTERS}\n")
    parts += _seed_lines(rows)
    parts.append("Signatures:\n" + "".join(f"- {row['name']}: `{row['signature']}`\n" for row in rows))
    return "\n".join(parts)


CLUSTERS = (
    "Cluster: metrics of one number are not significantly different from each other (p < 0.05 begins the next one)."
)


def draw_comparisons(results: Mapping[str, Any]) -> str:
    """Draw the tests of every two rows: a line a pair, the better row first.

    Args:
        results: of an experiment that measures rows by group.
    """
    parts = []
    for measure in results["measures"]:
        tests = [test for test in results["comparisons"] if test["measure"] == measure]
        if not tests:
            continue
        table = {f"{test['first']} over {test['second']}": _test_cells(test) for test in tests}
        parts += [f"**{HEADINGS[measure]}** x 100, average\n", markdown(table)]
    notes = f"p: {results['tests']['bootstrap']}.\n"
    if "pearson_r" in results["measures"]:
        notes += f"\nWilliams: in how many groups p < 0.05 by {results['tests']['williams']}.\n"
    if "permutation" in results["tests"]:
        notes += f"\nPermutation: p by {results['tests']['permutation']}.\n"
    return "\n".join([*parts, notes])


def group_sizes(rows: Sequence[Mapping[str, Any]], measure: str) -> dict[str, int]:
    """Return the size of each group that any row has a figure of."""
    return {
        group: figures[measure]["n"] for row in rows for group, figures in row["groups"].items() if measure in figures
    }


def percent(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Write a fraction times 100 with one decimal, and its interval if there is one; "-" for None."""
    if value is None:
        return "-"
    shown = f"{100 * value:.1f}"
    return shown if low is None or high is None else f"{shown} [{100 * low:.1f}, {100 * high:.1f}]"


def markdown(table: Mapping[str, Mapping[str, str]]) -> str:
    """Draw a Markdown table; a missing cell is "-".

    Args:
        table: the cells of each row by column.
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
    return {**cells, "average": percent(row["average"].get(measure), low, high), **row.get("columns", {})}


def _published_cells(row: Mapping[str, Any], measure: str, groups: Mapping[str, int]) -> dict[str, str]:
    cells = {group: percent(row["groups"].get(group, {}).get(measure)) for group in groups}
    return {**cells, "average": percent(row["average"][measure]), **row.get("columns", {})}


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


def _seed_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        f"- {row['name']}: {HEADINGS[measure]} {', '.join(percent(value) for value in seeds['values'])}, "
        f"standard deviation {100 * seeds['deviation']:.2f}\n"
        for row in rows
        for measure, seeds in row.get("seeds", {}).items()
    ]
    return ["Averages by seed; the tables hold their means:\n" + "".join(lines)] if lines else []


def save_plot(figure: Figure, folder: Path, name: str) -> None:
    """Write `name`.png and `name`.svg; the same figure gives the same bytes."""
    import matplotlib

    from bleurt_repro.metric.files.writing import write_bytes

    for form in ("png", "svg"):
        stream = io.BytesIO()
        # without a salt, names within an SVG differ from one drawing to the next
        with matplotlib.rc_context({"svg.hashsalt": name}):
            figure.savefig(stream, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
        write_bytes(folder / f"{name}.{form}", stream.getvalue())


def style(i: int) -> dict[str, Any]:
    """Return colour, mark and line of the i-th series, for `errorbar`."""
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
    """Return the lengths below and above each value, as `errorbar` takes them; 0 where there is no interval."""
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
    """Draw each row's average of each measure with its interval, best on top, and the published ones in hollow marks.

    Args:
        results: of an experiment that measures rows by group.
    """
    from matplotlib.figure import Figure

    measures = results["measures"]
    names = len(results["rows"]) + len(results.get("published", []))
    figure = Figure(figsize=(2.0 + 4.0 * len(measures), 1.6 + 0.27 * names), layout="constrained")
    for place, measure in enumerate(measures, start=1):
        _draw_measure(figure.add_subplot(1, len(measures), place), results, measure)
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
    kinds = [*KINDS, "published"]
    for place, (value, ends, _, kind) in enumerate(entries):
        i = kinds.index(kind)
        axes.errorbar(
            [100 * value],
            [place],
            xerr=error_bars([value], [ends], 100),
            label=KINDS.get(kind, "published, without interval"),
            markerfacecolor="none" if kind == "published" else COLOURS[i],
            **{**style(i), "linestyle": "none"},
        )
    axes.set_yticks(range(len(entries)), [entry[2] for entry in entries])
    groups = GROUPS.get(results["by"], results["by"])
    axes.set_xlabel(f"{HEADINGS[measure]} x 100,\naverage over {groups}\n(95 % interval)")
    axes.grid(axis="x", alpha=0.3)
