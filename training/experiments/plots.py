"""Plots of results: PNG and SVG, one style, colours that colour-blind readers tell apart, marks that print tells apart."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.training.curves import COLOURS
from bleurt_repro.training.experiments.tables import HEADINGS, PUBLISHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^vPX*"
LINES = ("-", "--", "-.", ":")
KINDS = {"model": "trained here", "checkpoint": "checkpoint", "baseline": "baseline", "file": "scores from a file"}


def save_plot(figure: Figure, folder: Path, name: str) -> None:
    """Write `name`.png and `name`.svg; the same figure gives the same bytes."""
    import matplotlib

    from bleurt_repro.metric.atomic import write_bytes

    for form in ("png", "svg"):
        stream = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": name}):
            figure.savefig(stream, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
        write_bytes(folder / f"{name}.{form}", stream.getvalue())


def style(i: int) -> dict[str, Any]:
    """Give colour, mark and line of the i-th series, for `errorbar`."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": LINES[i % len(LINES)],
        "markersize": 5,
        "linewidth": 1.4,
        "elinewidth": 0.9,
        "capsize": 2,
    }


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
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
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
            markerfacecolor="white" if kind == "published" else COLOURS[i],
            **{**style(i), "linestyle": "none"},
        )
    axes.set_yticks(range(len(entries)), [entry[2] for entry in entries])
    axes.set_xlabel(f"{HEADINGS[measure]} x 100, average over {results['by']}\n(95 % interval)")
    axes.grid(axis="x", alpha=0.3)


def error_bars(
    values: Sequence[float], intervals: Sequence[Sequence[float | None]], scale: float
) -> list[list[float]]:
    """Give the lengths below and above each value, as `errorbar` takes them; 0 where there is no interval."""
    below = [
        scale * max(v - (v if ends[0] is None else ends[0]), 0.0) for v, ends in zip(values, intervals, strict=True)
    ]
    above = [
        scale * max((v if ends[1] is None else ends[1]) - v, 0.0) for v, ends in zip(values, intervals, strict=True)
    ]
    return [below, above]
