"""Draw the curves of a training run from its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Okabe and Ito's palette, told apart by colour-blind readers too: https://jfly.uni-koeln.de/color/
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")


def draw_curves(results: dict[str, Any], path: Path) -> None:
    """Draw losses, and validation measures where there are any, against steps.

    Args:
        results: of a run; its "history" is the Trainer's log.
        path: the PNG or SVG file to write.
    """
    from matplotlib.figure import Figure

    history = results["history"]
    losses = _series(history, lambda name: name == "loss" or name.endswith("_loss") or "loss_" in name)
    measures = _series(history, lambda name: name in ("eval_kendall_tau", "eval_pearson_r"))
    panels = [(values, label) for values, label in ((losses, "loss"), (measures, "agreement")) if values]
    figure = Figure(figsize=(6 * max(len(panels), 1), 4), layout="constrained")
    for place, (series, label) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        kinds = list(dict.fromkeys(name.removeprefix("eval_") for name in series))
        for name, points in series.items():
            steps, values = zip(*points, strict=True)
            # A signal has one colour: dotted in training, solid in validation.
            colour = COLOURS[kinds.index(name.removeprefix("eval_")) % len(COLOURS)]
            style = "-" if name.startswith("eval_") else ":"
            marker = "o" if name.startswith("eval_") else None
            title = name.replace("eval_", "validation ").replace("_", " ")
            axes.plot(steps, values, style, marker=marker, markersize=4, color=colour, label=title)
        axes.set_xlabel("step")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


def _series(history: list[dict[str, Any]], wanted: Any) -> dict[str, list[tuple[int, float]]]:
    series: dict[str, list[tuple[int, float]]] = {}
    for entry in history:
        for name, value in entry.items():
            if wanted(name) and isinstance(value, int | float) and name != "train_loss":
                series.setdefault(name, []).append((entry["step"], value))
    return series
