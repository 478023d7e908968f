"""Measure rows on samples: the agreement of each metric with people, bootstrap intervals, and tests of every two metrics.

Figures are averaged over groups. Intervals and tests use the same bootstrap resamples for all metrics.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tqdm import tqdm

from bleurt_repro.metric.statistics import CONFIDENCE, Values, interval, paired_difference, standardise
from bleurt_repro.training.metrics.options import SEGMENTS, MetricOptions, check_different
from bleurt_repro.training.metrics.rows import Row
from bleurt_repro.training.metrics.samples import BY_SEGMENT, Sample
from bleurt_repro.training.metrics.statistics import permutation_test, significance_clusters, williams_test

AVERAGE = "average"
BOOTSTRAP = (
    "paired bootstrap, one-sided: p is the share of resamples in which the row with the higher value is not ahead, "
    "counting the observed set once more"
)
WILLIAMS = "Williams' test of Pearson's r, one-sided (https://aclanthology.org/D14-1020), of each row's first seed"
PERMUTATION = (
    "permutation test PERM-BOTH, one-sided (https://aclanthology.org/2021.tacl-1.67), of each row's first seed: scores "
    "standardised by group are exchanged item by item; p counts the observed order once more"
)


@dataclass(frozen=True)
class Figure:
    """A measure of one row on one sample.

    Attributes:
        value: mean over the row's seeds.
        by_seed: value of each seed.
        resampled: value on each resample, averaged over seeds; NaN where a resample does not vary.
        n: size of the sample.
        notes: further entries of the results, such as a threshold.
    """

    value: float
    by_seed: tuple[float, ...]
    resampled: Values
    n: int
    notes: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return value, interval and size; low and high are None where there is no interval."""
        low, high = interval(self.resampled)
        return {"value": self.value, "low": low, "high": high, "n": self.n, **self.notes}


# Figures by row name, measure and group; `AVERAGE` is the group of the averages.
Figures = Mapping[tuple[str, str, str], Figure | None]


def measure_rows(rows: Sequence[Row], samples: Sequence[Sample], metrics: MetricOptions) -> dict[str, Any]:
    """Measure all rows on all samples, and compare every two rows.

    Args:
        rows: rows with different names.
        samples: samples of one or more measures, each in the same groups or in some of them.
        metrics: settings of the bootstrap and of the permutation tests.

    Returns:
        "measures", "rows", "comparisons", the settings of the bootstrap and, where there are tests, "clusters"; all fit
        for JSON.

    Raises:
        ValueError: if two rows have the same name, or a measure is undefined, for instance because the ratings of a group
            do not vary.
    """
    check_different([row.name for row in rows])
    measures = list(dict.fromkeys(sample.measure for sample in samples))
    figures = _measure_all(rows, samples, measures, metrics)
    comparisons = compare_rows(rows, samples, figures, measures, metrics)
    clusters = _clusters(rows, figures, comparisons, measures)
    tests = {"bootstrap": BOOTSTRAP, "williams": WILLIAMS}
    return {
        "measures": measures,
        "resamples": metrics.resamples,
        "resample": metrics.resample,
        "confidence": CONFIDENCE,
        "rows": [_row_record(row, samples, measures, figures) for row in rows],
        "tests": {**tests, **({"permutation": PERMUTATION} if metrics.permutations else {})},
        "comparisons": comparisons,
        **({"clusters": clusters} if clusters else {}),
    }


def measure_row(row: Row, sample: Sample, metrics: MetricOptions) -> Figure | None:
    """Measure a row on a sample; None if its file of scores has none there.

    Raises:
        ValueError: naming row and group, if the measure is undefined, for instance because scores do not vary.
    """
    if all(np.isnan(vector[sample.first]).all() for vector in row.vectors):
        return None
    try:
        by_seed = tuple(sample.compute(vector) for vector in row.vectors)
    except ValueError as error:
        raise ValueError(f"{row.name}, {sample.measure} of {sample.group}: {error}") from error
    by_segment = metrics.resample == SEGMENTS
    # The resamples of all seeds are the same, so their mean is the figure of the row on each resample.
    resampled = [sample.resample(vector, metrics.resamples, metrics.seed, by_segment) for vector in row.vectors]
    notes = sample.describe(row.vectors[0])
    return Figure(float(np.mean(by_seed)), by_seed, np.mean(resampled, axis=0), sample.n, notes)


def average_figures(figures: Sequence[Figure | None]) -> Figure | None:
    """Average the figures of several groups, each group counting once as in the shared tasks; None if one is missing."""
    present = [figure for figure in figures if figure is not None]
    if not present or len(present) < len(figures):
        return None
    by_seed = tuple(float(np.mean(values)) for values in zip(*(figure.by_seed for figure in present), strict=True))
    lengths = {len(figure.resampled) for figure in present}
    resampled = np.mean([figure.resampled for figure in present], axis=0) if len(lengths) == 1 else np.array([])
    return Figure(float(np.mean([f.value for f in present])), by_seed, resampled, sum(f.n for f in present))


def _measure_all(
    rows: Sequence[Row], samples: Sequence[Sample], measures: Sequence[str], metrics: MetricOptions
) -> dict[tuple[str, str, str], Figure | None]:
    """Return the figure of each row, measure and group, and those of the averages over groups.

    A measure by segment that is undefined for some rows, because these metrics score all candidates of a segment alike, is
    left out with a warning.

    Raises:
        ValueError: if a measure by segment is undefined for all rows, or another measure for any.
    """
    figures: dict[tuple[str, str, str], Figure | None] = {}
    undefined: dict[tuple[str, str], list[ValueError]] = {}
    steps = [(row, sample) for row in rows for sample in samples]
    for row, sample in tqdm(steps, desc="measure", unit="group", disable=None):
        try:
            figures[row.name, sample.measure, sample.group] = measure_row(row, sample, metrics)
        except ValueError as error:
            if sample.measure not in BY_SEGMENT:
                raise
            figures[row.name, sample.measure, sample.group] = None
            undefined.setdefault((sample.measure, sample.group), []).append(error)
    for errors in undefined.values():
        if len(errors) == len(rows):
            raise errors[0]
        for reason in errors:
            warnings.warn(f"{reason}. The tables leave this figure out", stacklevel=2)
    for row in rows:
        for measure in measures:
            by_group = [figures[row.name, measure, sample.group] for sample in samples if sample.measure == measure]
            figures[row.name, measure, AVERAGE] = average_figures(by_group)
    return figures


def _row_record(row: Row, samples: Sequence[Sample], measures: Sequence[str], figures: Figures) -> dict[str, Any]:
    """Return what the results hold of a row."""
    groups: dict[str, dict[str, Any]] = {}
    for sample in samples:
        if (figure := figures[row.name, sample.measure, sample.group]) is not None:
            groups.setdefault(sample.group, {})[sample.measure] = figure.to_json()
    averages = {name: figure for name in measures if (figure := figures[row.name, name, AVERAGE]) is not None}
    return {
        "name": row.name,
        "kind": row.kind,
        "signature": row.signature,
        "groups": groups,
        AVERAGE: {name: figure.value for name, figure in averages.items()},
        "average_intervals": {name: list(interval(figure.resampled)) for name, figure in averages.items()},
        **({"seeds": _seed_records(averages)} if len(row.vectors) > 1 else {}),
        **row.notes,
    }


def _seed_records(averages: dict[str, Figure]) -> dict[str, dict[str, Any]]:
    """Return the average of each measure by seed, with the standard deviation over seeds."""
    return {
        name: {"values": list(figure.by_seed), "deviation": float(np.std(figure.by_seed, ddof=1))}
        for name, figure in averages.items()
    }


# --- tests of every two rows ---------------------------------------------------------------------------------------


def compare_rows(
    rows: Sequence[Row],
    samples: Sequence[Sample],
    figures: Figures,
    measures: Sequence[str],
    metrics: MetricOptions,
) -> list[dict[str, Any]]:
    """Compare every two rows on the average of each measure, and by Williams' test in each group.

    Args:
        rows: rows that were measured.
        samples: samples of all measures and groups.
        figures: figures of all rows.
        measures: measures in the order of the tables.
        metrics: settings of the permutation tests.

    Returns:
        a dict for each measure and two rows, the better one `first`; "williams" holds t and p by group,
        "permutation_p" the p of the permutation test.
    """
    tests = []
    for measure in measures:
        of_measure = [sample for sample in samples if sample.measure == measure]
        for first, second in _ranked_pairs(rows, figures, measure):
            averages = (figures[first.name, measure, AVERAGE], figures[second.name, measure, AVERAGE])
            assert averages[0] is not None and averages[1] is not None
            bootstrap = bootstrap_test(averages[0], averages[1])
            test = {"measure": measure, "first": first.name, "second": second.name, **bootstrap}
            if measure == "pearson_r":
                test["williams"] = _williams_by_group(first.vectors[0], second.vectors[0], of_measure)
            if metrics.permutations:
                test["permutation_p"] = _permutation_p(first.vectors[0], second.vectors[0], of_measure, metrics)
            tests.append(test)
    return tests


def _ranked_pairs(rows: Sequence[Row], figures: Figures, measure: str) -> list[tuple[Row, Row]]:
    """Return every two rows that have the measure, the better one first."""
    values = {row.name: figure.value for row in rows if (figure := figures[row.name, measure, AVERAGE]) is not None}
    ranked = sorted((row for row in rows if row.name in values), key=lambda row: -values[row.name])
    return [(first, second) for i, first in enumerate(ranked) for second in ranked[i + 1 :]]


def bootstrap_test(first: Figure, second: Figure) -> dict[str, Any]:
    """Compare two rows on the same resamples, by the test `BOOTSTRAP`.

    Args:
        first, second: figures of the same sample.

    Returns:
        "difference" (first minus second), its interval "low" and "high", and "p"; all but the difference are None
        without resamples.
    """
    is_paired = len(first.resampled) == len(second.resampled)
    resampled = (first.resampled, second.resampled) if is_paired else (np.array([]), np.array([]))
    difference = paired_difference(first.value - second.value, *resampled)
    return {
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "p": difference.p_value,
    }


def _williams_by_group(first: Values, second: Values, samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    tests = {}
    for sample in samples:
        if len(sample.first) > 3:
            r = np.corrcoef([sample.second, first[sample.first], second[sample.first]])
            t, p = williams_test(float(r[0, 1]), float(r[0, 2]), float(r[1, 2]), len(sample.first))
            tests[sample.group] = {"t": t, "p": p}
    return tests


def _permutation_p(first: Values, second: Values, samples: Sequence[Sample], metrics: MetricOptions) -> float:
    """Compute the p-value of the test `PERMUTATION` on the average of a measure over its samples."""
    items = np.unique(np.concatenate([sample.items for sample in samples]))
    # Both metrics are brought to one scale in each group, since their scores are exchanged.
    standardised = []
    for scores in (first, second):
        values = np.zeros(len(scores))
        for sample in samples:
            values[sample.items] = standardise(scores[sample.items], constant=1.0)
        standardised.append(values[items])

    def average(item_scores: Values) -> float:
        scores = np.zeros(len(first))
        scores[items] = item_scores
        return float(np.mean([_compute_or_zero(sample, scores) for sample in samples]))

    return permutation_test(average, standardised[0], standardised[1], metrics.permutations, metrics.seed)


def _compute_or_zero(sample: Sample, scores: Values) -> float:
    try:
        return sample.compute(scores)
    except ValueError:  # exchanged scores may happen not to vary
        return 0.0


def _clusters(
    rows: Sequence[Row], figures: Figures, comparisons: Sequence[Mapping[str, Any]], measures: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Return the rank of each row by clusters of significance, for each measure that has tests."""
    clusters = {}
    for measure in measures:
        tests = [test for test in comparisons if test["measure"] == measure]
        p_values = {(test["first"], test["second"]): test.get("permutation_p", test["p"]) for test in tests}
        if p_values and None not in p_values.values():
            averages = {row.name: figures[row.name, measure, AVERAGE] for row in rows}
            values = {name: figure.value for name, figure in averages.items() if figure is not None}
            clusters[measure] = significance_clusters(values, p_values)
    return clusters
