"""Two plots of a comparison: how the scores lie, and which system is ahead in how many segments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bleurt_repro.metric.demo.highlight import unsigned

# Okabe and Ito's blue and vermilion, which the colour-blind tell apart: https://jfly.uni-koeln.de/color/
FIRST_COLOUR, SECOND_COLOUR = "#0072B2", "#D55E00"
SIZE = (5.2, 3.3)
MOST_BINS = 30
FEW = 60  # segments whose bars stand apart


def distributions(names: tuple[str, str], scores: tuple[Sequence[float], Sequence[float]]) -> Figure:
    """Draw the histograms of two systems' scores with their means.

    Args:
        names: of the systems.
        scores: of each, one a segment.
    """
    figure, axes = _axes()
    bins = np.histogram_bin_edges(np.concatenate(scores), bins=min(MOST_BINS, max(5, len(scores[0]) // 4))).tolist()
    for name, own, colour, line in zip(names, scores, (FIRST_COLOUR, SECOND_COLOUR), ("-", "--"), strict=True):
        mean = float(np.mean(own))
        axes.hist(own, bins, histtype="stepfilled", color=colour, alpha=0.25)
        axes.hist(own, bins, histtype="step", color=colour, linestyle=line)
        axes.axvline(mean, color=colour, linestyle=line, linewidth=2, label=f"{name}, mean {unsigned(mean)}")
    axes.set(xlabel="BLEURT score", ylabel="segments")
    axes.set_title("How the scores lie", loc="left", fontsize=11)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    _legend(figure)
    return figure


def differences(names: tuple[str, str], scores: tuple[Sequence[float], Sequence[float]]) -> Figure:
    """Draw the difference of two systems in every segment, largest first.

    Args:
        names: of the systems.
        scores: of each, one a segment.
    """
    figure, axes = _axes()
    gaps = np.sort(np.subtract(*scores))[::-1]
    places = np.arange(1, len(gaps) + 1)
    for name, ahead, colour in zip(names, (gaps > 0, gaps < 0), (FIRST_COLOUR, SECOND_COLOUR), strict=True):
        share = f"{name} higher in {np.count_nonzero(ahead)}"
        axes.bar(
            places[ahead], gaps[ahead], width=0.9 if len(gaps) < FEW else 1.0, color=colour, label=share, linewidth=0
        )
    axes.axhline(0, color="#444444", linewidth=0.8)
    axes.set(xlabel="segments, by difference", ylabel=f"score of {names[0]} \N{MINUS SIGN} score of {names[1]}")
    axes.set_title("Who is ahead, segment by segment", loc="left", fontsize=11)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _legend(figure)
    return figure


def _axes() -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained", dpi=160)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _legend(figure: Figure) -> None:
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=10)
