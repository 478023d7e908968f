"""Draw the figures of the ablation from its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bleurt_repro.training.experiments.ablation import ALL, NONE, ONLY, STEPS, WITHOUT
from bleurt_repro.training.experiments.plots import error_bars, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def relative_gain(results: Mapping[str, Any], row: Mapping[str, Any], base: Mapping[str, Any]) -> tuple[float, Any]:
    """Give how much higher one row's average tau is than another's, as a share of the other's, with its interval.

    Args:
        results: of the experiment; the interval is that of the paired bootstrap in its "comparisons".
        row, base: two of its rows.

    Returns:
        the gain, and the ends of its interval (None where there is none).
    """
    level = base["average"]["kendall_tau"]
    names = {row["name"], base["name"]}
    test = next((test for test in results["comparisons"] if {test["first"], test["second"]} == names), None)
    if test is None:
        return 0.0, (None, None)
    ends = (test["low"], test["high"])
    if test["first"] == base["name"]:
        ends = (None if ends[1] is None else -ends[1], None if ends[0] is None else -ends[0])
    gain = row["average"]["kendall_tau"] / level - 1
    return gain, tuple(None if end is None else end / level for end in ends)


def draw_tasks(results: Mapping[str, Any]) -> Figure:
    """Draw one task against none, and all but one against all (BLEURT, figure 4)."""
    from matplotlib.figure import Figure

    arms = {arm: [row for row in results["rows"] if row["arm"] == arm] for arm in (NONE, ALL, ONLY, WITHOUT)}
    figure = Figure(figsize=(10, 1.4 + 0.4 * max(len(arms[ONLY]), 1)), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_gains(left, results, arms[ONLY], arms[NONE][0], "one task, over no pre-training", 0)
    _draw_gains(right, results, arms[WITHOUT], arms[ALL][0], "all tasks but one, over all", 1)
    return figure


def draw_steps(results: Mapping[str, Any]) -> Figure:
    """Draw the gain in tau over no pre-training against its steps (BLEURT, figure 5)."""
    from matplotlib.figure import Figure

    rows = results["rows"]
    none = next(row for row in rows if row["arm"] == NONE)
    stages = [none, *sorted((row for row in rows if row["arm"] == STEPS), key=lambda row: row["steps"])]
    gains = [relative_gain(results, row, none) for row in stages]
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    bars = error_bars([gain for gain, _ in gains], [ends for _, ends in gains], 100)
    axes.errorbar([row["steps"] for row in stages], [100 * gain for gain, _ in gains], yerr=bars, **style(0))
    axes.set_xlabel("pre-training steps")
    axes.set_ylabel("gain in Kendall tau over no pre-training, %\n(95 % interval)")
    axes.grid(alpha=0.3)
    return figure


def _draw_gains(
    axes: Axes, results: Mapping[str, Any], rows: list[Any], base: Mapping[str, Any], title: str, i: int
) -> None:
    gains = [relative_gain(results, row, base) for row in rows]
    bars = error_bars([gain for gain, _ in gains], [ends for _, ends in gains], 100)
    places = range(len(rows), 0, -1)
    axes.errorbar([100 * g for g, _ in gains], list(places), xerr=bars, **{**style(i), "linestyle": "none"})
    axes.axvline(0, color="#444444", linewidth=1, linestyle="--")
    axes.set_yticks(list(places), [row["signal"].replace("_", " ") for row in rows])
    axes.set(title=title, xlabel="gain in Kendall tau, % (95 % interval)")
    axes.grid(axis="x", alpha=0.3)
