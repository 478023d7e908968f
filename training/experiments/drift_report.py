"""Draw the table and the two figures of the drift experiment from its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bleurt_repro.training.experiments.plots import error_bars, style
from bleurt_repro.training.experiments.tables import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OTHERS = "metrics that are not trained"
GREYS = ("#000000", "#666666", "#999999", "#BBBBBB")


def draw_table(results: Mapping[str, Any]) -> str:
    """Draw Kendall tau times 100 by test skew, a row a metric, and what share of the ratings each skew keeps."""
    import pandas

    columns = {
        f"test {part['alpha']:g} (n = {part['records']})": {
            row["name"]: percent(row["average"]["kendall_tau"], *row["average_intervals"]["kendall_tau"])
            for row in part["rows"]
        }
        for part in results["by_test_alpha"]
    }
    densities = results["densities"]
    alphas = [
        f"alpha {alpha:g}"
        for alpha in sorted({part["alpha"] for side in ("train", "test") for part in densities[side]})
    ]
    kept = {}
    for side in ("train", "test"):
        kept[f"{side} ratings kept"] = {
            f"alpha {part['alpha']:g}": f"{part['records']} of {part['of']} ({percent(part['records'] / part['of'])} %)"
            for part in densities[side]
        }
    return "\n".join(
        [
            "**Kendall tau** x 100 [95 % interval], average over language pairs, by skew of the test ratings\n",
            pandas.DataFrame(columns).to_markdown(disable_numparse=True) + "\n",
            pandas.DataFrame(kept, index=alphas).fillna("-").to_markdown(disable_numparse=True) + "\n",
        ]
    )


def draw_densities(results: Mapping[str, Any]) -> Figure:
    """Draw the densities of the ratings for each skew, of training and of testing (BLEURT, figure 1)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    first = None
    edges = results["densities"]["edges"]
    for place, (side, title) in enumerate((("train", "training"), ("test", "test")), start=1):
        first = axes = figure.add_subplot(1, 2, place, sharey=first)
        for i, part in enumerate(results["densities"][side]):
            look = style(i)
            label = f"alpha {part['alpha']:g}, n = {part['records']}"
            axes.stairs(
                part["density"], edges, color=look["color"], linestyle=look["linestyle"], linewidth=1.4, label=label
            )
        axes.set(title=f"{title} ratings", xlabel="human rating (standard deviations)", ylabel="density")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return figure


def draw_lines(results: Mapping[str, Any]) -> Figure:
    """Draw agreement against test skew: a panel a model, a line for each training skew (BLEURT, figure 2)."""
    from matplotlib.figure import Figure

    rows = results["by_test_alpha"][0]["rows"]
    models = list(dict.fromkeys(row["model"] for row in rows if "model" in row)) or [OTHERS]
    figure = Figure(figsize=(max(4.6 * len(models), 6), 4.6), layout="constrained")
    first = None
    for place, model in enumerate(models, start=1):
        first = axes = figure.add_subplot(1, len(models), place, sharey=first)
        trained = [row for row in rows if row.get("model") == model]
        others = [row for row in rows if "model" not in row]
        for i, row in enumerate(trained):
            _draw_line(axes, results, row["name"], f"trained with skew {row['train_alpha']:g}", i, {})
        for i, row in enumerate(others):
            _draw_line(
                axes, results, row["name"], row["name"], i, {"color": GREYS[i % len(GREYS)], "marker": "x+1|"[i % 4]}
            )
        axes.set(title=model, xlabel="skew of the test ratings (alpha)", ylabel="Kendall tau x 100 (95 % interval)")
        axes.grid(alpha=0.3)
    # under the panels, which have the same lines: inside it would hide some
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _draw_line(axes: Axes, results: Mapping[str, Any], name: str, label: str, i: int, look: dict[str, Any]) -> None:
    found = [row for part in results["by_test_alpha"] for row in part["rows"] if row["name"] == name]
    values = [row["average"]["kendall_tau"] for row in found]
    ends = [row["average_intervals"]["kendall_tau"] for row in found]
    # beside each other, so that intervals do not hide one another
    places = [part["alpha"] + 0.025 * i for part in results["by_test_alpha"]]
    bars = error_bars(values, ends, 100)
    axes.errorbar(places, [100 * value for value in values], yerr=bars, label=label, **{**style(i), **look})
