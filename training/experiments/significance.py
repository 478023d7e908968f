"""Is one row better than another? A paired bootstrap of any measure, and Williams' test of two correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bleurt_repro.training.experiments.measuring import AVERAGE, Figure, Sample, interval
from bleurt_repro.training.experiments.scoring import Row, Values

BOOTSTRAP = (
    "paired bootstrap, one-sided: p is the share of resamples in which the row with the higher value is not ahead, "
    "counting the observed set once more"
)
WILLIAMS = "Williams' test of Pearson's r, one-sided (https://aclanthology.org/D14-1020), of each row's first seed"


def bootstrap_test(first: Figure, second: Figure) -> dict[str, Any]:
    """Compare two rows on the same resamples, by `BOOTSTRAP`.

    Args:
        first, second: figures of the same sample.

    Returns:
        "difference" (first minus second), its interval "low" and "high", and "p"; None without resamples.
    """
    difference = first.value - second.value
    differences = first.resampled - second.resampled if len(first.resampled) == len(second.resampled) else np.array([])
    differences = differences[~np.isnan(differences)]
    low, high = interval(differences)
    sign = 1.0 if difference >= 0 else -1.0
    not_ahead = int(np.count_nonzero(sign * differences <= 0))
    p_value = (not_ahead + 1) / (len(differences) + 1) if len(differences) else None
    return {"difference": difference, "low": low, "high": high, "p": p_value}


def williams_test(r12: float, r13: float, r23: float, n: int) -> tuple[float, float]:
    """Test whether r12 is above r13, two correlations of the same segments that share a variable.

    Williams (1959), in the form of Steiger (1980), equation 7: https://doi.org/10.1037/0033-2909.87.2.245.

    Args:
        r12, r13: correlations of ratings with the one metric and with the other.
        r23: of the two metrics with each other.
        n: segments, at least 4.

    Returns:
        t, with n - 3 degrees of freedom, and the one-sided p-value. Two metrics that are one give 0 and 0.5.
    """
    from scipy.stats import t as student

    if n < 4:
        raise ValueError(f"Williams' test needs at least 4 segments, found {n}")
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    mean = (r12 + r13) / 2
    variance = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - r23) ** 3
    if variance <= 0:
        return (0.0, 0.5) if r12 == r13 else (math.copysign(math.inf, r12 - r13), 0.0 if r12 > r13 else 1.0)
    value = (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / variance)
    return value, float(student.sf(value, n - 3))


def compare_rows(
    rows: Sequence[Row],
    samples: Sequence[Sample],
    figures: Mapping[tuple[str, str, str], Figure | None],
    measures: Sequence[str],
) -> list[dict[str, Any]]:
    """Compare every two rows on the average of each measure, and by Williams' test in each group.

    Args:
        rows: the rows.
        samples: of all measures and groups.
        figures: by row's name, measure and group, `AVERAGE` among the groups.
        measures: in the order of the tables.

    Returns:
        a dict for each measure and two rows, the better one `first`; "williams" holds t and p by group.
    """
    found = []
    for measure in measures:
        ranked = [row for row in rows if figures[row.name, measure, AVERAGE] is not None]
        ranked.sort(key=lambda row: -_value(figures[row.name, measure, AVERAGE]))
        for i, first in enumerate(ranked):
            for second in ranked[i + 1 :]:
                one, other = (figures[row.name, measure, AVERAGE] for row in (first, second))
                assert one is not None and other is not None
                test = {"measure": measure, "first": first.name, "second": second.name, **bootstrap_test(one, other)}
                if measure == "pearson_r":
                    test["williams"] = _williams_by_group(first.vectors[0], second.vectors[0], samples)
                found.append(test)
    return found


def _williams_by_group(first: Values, second: Values, samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    found = {}
    for sample in samples:
        if sample.measure == "pearson_r" and len(sample.first) > 3:
            r = np.corrcoef([sample.second, first[sample.first], second[sample.first]])
            t, p = williams_test(float(r[0, 1]), float(r[0, 2]), float(r[1, 2]), len(sample.first))
            found[sample.group] = {"t": t, "p": p}
    return found


def _value(figure: Figure | None) -> float:
    return -math.inf if figure is None else figure.value
