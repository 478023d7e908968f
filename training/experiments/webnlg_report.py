"""Draw the table and the figure of the WebNLG experiment from its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bleurt_repro.training.experiments.plots import error_bars, style
from bleurt_repro.training.experiments.tables import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_table(results: Mapping[str, Any]) -> str:
    """Draw absolute Kendall tau times 100: a table for each way to split and aspect, a column a size."""
    import pandas

    parts = [
        f"{results['outputs']} outputs with {results['pairs']} references; {results['missing_outputs']} missing outputs "
        "left out. The highest score over the references counts. Absolute Kendall tau x 100 [95 % interval].\n"
    ]
    for (split, aspect), conditions in _panels(results).items():
        columns = {
            f"{part['training_records']} records of {part['size']} {split}s train (test: {part['test_outputs']})": {
                row["name"]: percent(*_absolute(row)) for row in part["rows"]
            }
            for part in conditions
        }
        table = pandas.DataFrame(columns).fillna("-").to_markdown(disable_numparse=True)
        parts.append(f"**{aspect}**, by {split}\n\n{table}\n")
    return "\n".join(parts)


def draw_plot(results: Mapping[str, Any]) -> Figure:
    """Draw agreement against the ratings that train: a row a way to split, a column an aspect (BLEURT, figure 3)."""
    from matplotlib.figure import Figure

    panels = _panels(results)
    splits, aspects = (list(dict.fromkeys(key[i] for key in panels)) for i in (0, 1))
    names = list(dict.fromkeys(row["name"] for part in results["conditions"] for row in part["rows"]))
    names.sort(key=lambda name: not _is_model(results, name))
    figure = Figure(figsize=(3.4 * len(aspects) + 0.6, 3.1 * len(splits) + 0.8), layout="constrained")
    for (split, aspect), conditions in panels.items():
        place = splits.index(split) * len(aspects) + aspects.index(aspect) + 1
        _draw_panel(figure.add_subplot(len(splits), len(aspects), place), conditions, names, f"{aspect}, by {split}")
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _panels(results: Mapping[str, Any]) -> dict[tuple[str, str], list[Any]]:
    panels: dict[tuple[str, str], list[Any]] = {}
    for part in results["conditions"]:
        panels.setdefault((part["split"], part["aspect"]), []).append(part)
    return panels


def _draw_panel(axes: Axes, conditions: list[Any], names: list[str], title: str) -> None:
    most = max(part["training_records"] for part in conditions)
    for i, name in enumerate(names):
        found = [(part["training_records"], row) for part in conditions for row in part["rows"] if row["name"] == name]
        if not found:
            continue
        figures = [_absolute(row) for _, row in found]
        # beside each other, so that intervals do not hide one another
        places = [records + 0.008 * most * i for records, _ in found]
        bars = error_bars([value for value, *_ in figures], [ends for _, *ends in figures], 100)
        axes.errorbar(places, [100 * value for value, *_ in figures], yerr=bars, label=name, **style(i))
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("training records (candidate, reference)")
    axes.set_ylabel("|Kendall tau| x 100 (95 % interval)")
    axes.grid(alpha=0.3)


def _is_model(results: Mapping[str, Any], name: str) -> bool:
    return any(
        row["name"] == name and row["kind"] == "model" for part in results["conditions"] for row in part["rows"]
    )


def _absolute(row: Mapping[str, Any]) -> tuple[float, float | None, float | None]:
    value, (low, high) = row["average"]["kendall_tau"], row["average_intervals"]["kendall_tau"]
    return (value, low, high) if value >= 0 or low is None else (-value, -high, -low)
