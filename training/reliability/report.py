"""Report how reliable P(people prefer a system) is: figures of the fit, tables drawn from results files, a summary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.metric.calibration import Preference
from bleurt_repro.metric.files.tables import markdown_table
from bleurt_repro.metric.files.writing import write_text

if TYPE_CHECKING:
    from bleurt_repro.training.reliability.fit import Comparisons
    from bleurt_repro.training.results import Result

# Sizes of test sets, probabilities, and differences of two systems' mean scores that are reported.
TEST_SETS = (100, 500, 2000)
PROBABILITIES = (0.7, 0.8, 0.9, 0.95)
DIFFERENCES = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)


def fitted_figures(preference: Preference, comparisons: Comparisons) -> dict[str, Any]:
    """Return the fitted numbers, and what they say about differences of two systems on test sets of several sizes.

    Args:
        preference: the fit.
        comparisons: comparisons of systems, for the typical deviation of the differences of two scores.
    """
    whole = comparisons.sizes == 0
    deviation = float(np.median(comparisons.errors[whole] * np.sqrt(comparisons.segments[whole])))

    def needed(p: float) -> dict[str, float]:
        """Return the difference from which on P is at least p, by size of the test set."""
        z = math.log(p / (1 - p)) / preference.slope
        return {str(n): z * math.hypot(deviation / math.sqrt(n), preference.metric_error) for n in TEST_SETS}

    return {
        **asdict(preference),
        "deviation": deviation,
        "agree": [
            {
                "difference": difference,
                **{str(n): float(preference(difference, deviation / math.sqrt(n))) for n in TEST_SETS},
            }
            for difference in DIFFERENCES
        ],
        "needed": {str(p): needed(p) for p in PROBABILITIES},
    }


def write_report(result: Result, path: str | Path) -> None:
    """Write results as JSON and, beside them, their tables as Markdown."""
    result.write(path)
    write_text(Path(path).with_suffix(".md"), draw_reliability(result))


def draw_reliability(results: Mapping[str, Any]) -> str:
    """Draw the tables of results of kind "reliability"."""
    fitted = results["fitted"]["preference"]
    rows = [[f"{row['difference']:g}", *(_percent(row[str(n)]) for n in TEST_SETS)] for row in fitted["agree"]]
    paragraphs = [
        f"`{results['command']}`",
        "## P(people prefer the system that scores higher)",
        "Probability in percent, by the difference of the mean scores and the number of segments:",
        markdown_table(["difference", *(f"{n:,} segments" for n in TEST_SETS)], rows),
        "Difference that is needed for a probability:",
        draw_needed(fitted),
    ]
    for name, figures in results["tests"].items():
        paragraphs.append(f"## Tested on {name} ({figures['ratings']:,} ratings)")
        paragraphs += _draw_preference(figures["preference"])
    signatures = [[name, f"`{signature}`"] for name, signature in results["signatures"].items()]
    return "\n\n".join([*paragraphs, markdown_table(["checkpoint", "signature"], signatures)]) + "\n"


def draw_needed(fitted: Mapping[str, Any]) -> str:
    """Draw the difference of two systems that is needed for a probability, by size of the test set."""
    rows = [[_percent(float(p)), *(f"{by_n[str(n)]:.3f}" for n in TEST_SETS)] for p, by_n in fitted["needed"].items()]
    return markdown_table(["probability, %", *(f"{n:,} segments" for n in TEST_SETS)], rows)


def draw_bins(figures: Mapping[str, Any], counted: str) -> str:
    """Draw a reliability diagram as a table: predicted and observed shares in each bin of probabilities.

    Args:
        figures: figures with bins.
        counted: name of what is counted in the bins, for the header.
    """
    rows = [
        [
            f"{row['from']:.1f} to {row['to']:.1f}",
            f"{row['n']:,}",
            _percent(row["predicted"]),
            _percent(row["observed"]),
        ]
        for row in figures["bins"]
    ]
    return markdown_table(["P", counted, "predicted, %", "observed, %"], rows)


def _draw_preference(figures: Mapping[str, Any]) -> list[str]:
    by_name = {"all": figures, **{f"{size} segments": row for size, row in figures["by_size"].items()}}
    names = ("ece", "brier", "ece_of_test", "brier_of_test")
    rows = [
        [name, str(row["pairs"]), _percent(row["observed"]), *(f"{row[key]:.3f}" for key in names)]
        for name, row in {**by_name, **figures["by_group"]}.items()
    ]
    steps = [
        [f"{row['from']:g}", str(row["pairs"]), _percent(row["predicted"]), _percent(row["agree"])]
        for row in figures["by_difference"]
    ]
    return [
        f"{figures['pairs']} pairs of systems, compared on {figures['fewest_segments']} to "
        f"{figures['most_segments']:,} segments",
        markdown_table(["", "pairs", "agree, %", "ECE", "Brier", "ECE of 1 - p", "Brier of 1 - p"], rows),
        "Reliability diagram, all sizes:",
        draw_bins(figures, "comparisons"),
        "Reliability diagram, all segments of each pair:",
        draw_bins(figures["all_segments"], "pairs"),
        "By difference, all segments of each pair:",
        markdown_table(["difference from", "pairs", "predicted, %", "agree, %"], steps),
    ]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def summary(results: Mapping[str, Any]) -> str:
    """Return the main figures of each test, one line each."""
    lines = []
    for name, tested in results["tests"].items():
        figures = tested["preference"]
        lines.append(
            f"{name}: P(people prefer a system) of {figures['pairs']} pairs: calibration error {figures['ece']:.3f}, "
            f"Brier score {figures['brier']:.3f} (1 - p of the paired test: {figures['brier_of_test']:.3f})"
        )
    return "\n".join(lines or ["fitted, not tested: give other ratings with --test"])
