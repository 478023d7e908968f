"""Turn rows and samples into the figures of a results file.

Measure rows on samples, with intervals and paired tests from the same bootstrap resamples of segments.

Is one row better than another? A paired bootstrap of any measure, and Williams' test of two correlations.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from bleurt_repro.metric.statistics import CONFIDENCE, STATISTICS
from bleurt_repro.training.experiments.metric_rows import Row, Values

AVERAGE = "average"


@dataclass(frozen=True)
class Sample:
    """What a measure compares in one group.

    Attributes:
        measure: a key of `STATISTICS`.
        group: such as a language pair.
        first: items whose scores are the measure's first argument.
        second: the second argument: ratings, or, if `of_scores`, items whose scores it is.
        of_scores: as in daRR, which compares scores with scores.
    """

    measure: str
    group: str
    first: NDArray[np.intp]
    second: NDArray[Any]
    of_scores: bool = False

    def of(self, scores: Values, chosen: NDArray[np.intp] | None = None) -> float:
        """Give the measure of scores on the sample, or on some of it.

        Args:
            scores: of all items.
            chosen: places in the sample, repeated ones included.

        Raises:
            ValueError: if the scores or ratings do not vary.
        """
        first, second = (self.first, self.second) if chosen is None else (self.first[chosen], self.second[chosen])
        return STATISTICS[self.measure](scores[first], scores[second] if self.of_scores else second)

    def resamples(self, number: int, seed: int) -> Iterator[NDArray[np.intp]]:
        """Draw places with replacement, as many as the sample has, `number` times; the same for every row."""
        generator = np.random.default_rng([seed, zlib.crc32(f"{self.measure}/{self.group}".encode())])
        for _ in range(number):
            yield generator.integers(0, len(self.first), len(self.first))


@dataclass(frozen=True)
class Figure:
    """A measure of one row on one sample.

    Attributes:
        value: the mean over the row's seeds.
        by_seed: the value of each.
        resampled: the value on each resample; NaN where one did not vary.
        n: size of the sample.
    """

    value: float
    by_seed: tuple[float, ...]
    resampled: Values
    n: int

    def to_json(self) -> dict[str, Any]:
        """Give value, interval and size; low and high are None where there is no interval."""
        low, high = interval(self.resampled)
        return {"value": self.value, "low": low, "high": high, "n": self.n}


def measure(row: Row, sample: Sample, resamples: int, seed: int) -> Figure | None:
    """Measure a row on a sample; None if its file has no scores there.

    Raises:
        ValueError: naming row and group, if ratings or scores do not vary.
    """
    if all(np.isnan(vector[sample.first]).all() for vector in row.vectors):
        return None
    try:
        by_seed = tuple(sample.of(vector) for vector in row.vectors)
    except ValueError as error:
        raise ValueError(f"{row.name}, {sample.group}: {error}") from error
    places = sample.resamples(resamples, seed) if len(sample.first) > 2 else iter(())
    resampled = [np.mean([_or_nan(sample, vector, chosen) for vector in row.vectors]) for chosen in places]
    return Figure(float(np.mean(by_seed)), by_seed, np.array(resampled), len(sample.first))


def measure_average(figures: Sequence[Figure | None]) -> Figure | None:
    """Average figures of several groups, each group counting once, as the shared tasks do; None if one is missing."""
    known = [figure for figure in figures if figure is not None]
    if not known or len(known) < len(figures):
        return None
    by_seed = tuple(float(np.mean(values)) for values in zip(*(figure.by_seed for figure in known), strict=True))
    lengths = {len(figure.resampled) for figure in known}
    resampled = np.mean([figure.resampled for figure in known], axis=0) if len(lengths) == 1 else np.array([])
    return Figure(float(np.mean([f.value for f in known])), by_seed, resampled, sum(f.n for f in known))


def interval(resampled: Values, confidence: float = CONFIDENCE) -> tuple[float | None, float | None]:
    """Give the percentile interval of resampled values, those that are NaN left out; (None, None) without any."""
    known = resampled[~np.isnan(resampled)] if len(resampled) else resampled
    if not len(known):
        return None, None
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _or_nan(sample: Sample, scores: Values, chosen: NDArray[np.intp]) -> float:
    """A resample of a small group may happen not to vary."""
    try:
        return sample.of(scores, chosen)
    except ValueError:
        return float("nan")


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


def judge(rows: Sequence[Row], samples: Sequence[Sample], resamples: int, seed: int) -> dict[str, Any]:
    """Measure all rows on all samples, and compare every two rows.

    Args:
        rows: their names all different.
        samples: of one or more measures, each in the same groups or in some of them.
        resamples: bootstrap samples; 0 for no intervals.
        seed: of the bootstrap.

    Returns:
        "measures", "rows" and "comparisons", fit for JSON; and the settings of the bootstrap.

    Raises:
        ValueError: if two rows have one name, or ratings of a group do not vary.
    """
    names = [row.name for row in rows]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two rows are called {twice[0]}: give each checkpoint and file a name of its own")
    measures = list(dict.fromkeys(sample.measure for sample in samples))
    figures: dict[tuple[str, str, str], Figure | None] = {}
    steps = [(row, sample) for row in rows for sample in samples]
    for row, sample in tqdm(steps, desc="measure", unit="group", disable=None):
        figures[row.name, sample.measure, sample.group] = measure(row, sample, resamples, seed)
    for row in rows:
        for name in measures:
            found = [figures[row.name, name, sample.group] for sample in samples if sample.measure == name]
            figures[row.name, name, AVERAGE] = measure_average(found)
    return {
        "measures": measures,
        "resamples": resamples,
        "confidence": CONFIDENCE,
        "seed": seed,
        "rows": [_row(row, samples, measures, figures) for row in rows],
        "tests": {"bootstrap": BOOTSTRAP, "williams": WILLIAMS},
        "comparisons": compare_rows(rows, samples, figures, measures),
    }


def data_record(path: str | Path, records: int) -> dict[str, Any]:
    """Name a file of data by name, content and size."""
    from bleurt_repro.metric.signature import file_hash

    return {"file": Path(path).name, "sha256": file_hash(Path(path)).hex(), "records": records}


def _row(
    row: Row,
    samples: Sequence[Sample],
    measures: Sequence[str],
    figures: dict[tuple[str, str, str], Figure | None],
) -> dict[str, Any]:
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
        **({"seeds": _seeds(averages)} if len(row.vectors) > 1 else {}),
        **row.notes,
    }


def _seeds(averages: dict[str, Figure]) -> dict[str, dict[str, Any]]:
    """Give each measure's average by seed, with the standard deviation over them."""
    return {
        name: {"values": list(figure.by_seed), "deviation": float(np.std(figure.by_seed, ddof=1))}
        for name, figure in averages.items()
    }
