"""RoBLEURT's five tables, drawn from results alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bleurt_repro.training.experiments.tables import draw_table

TITLES = {
    "1": "Table 1: beside other metrics",
    "2": "Table 2: without sources, with sources, combined",
    "3": "Table 3: encoders",
    "4": "Table 4: without and with pre-training",
    "5": "Table 5: what is done with noisy ratings",
}


def draw_tables(results: Mapping[str, Any]) -> str:
    """Draw each of the paper's tables that has two rows or more, and the figures beside them.

    Args:
        results: of the experiment.
    """
    rows = {row["name"]: row for row in results["rows"]}
    parts = []
    for number, names in results["tables"].items():
        own = {**results, "rows": [rows[name] for name in names], "published": []}
        parts += [f"## {TITLES[number]}\n", draw_table(own)]
    noise, spread = results["denoising"], results["uncertainty"]
    parts.append(f"## Noise, by {noise['judges']} judges\n")
    parts += [
        f"- {year}: {found['noisy']} of {found['ratings']} ratings\n" for year, found in noise["by_year"].items()
    ]
    parts.append(
        f"\n## Uncertainty\n\nThe spread of {spread['members']} members and the absolute error of their mean: "
        f"Pearson r {spread['pearson_r']:.3f}, Spearman rho {spread['spearman_rho']:.3f}.\n"
    )
    return "\n".join(parts)
