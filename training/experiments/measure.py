"""What is measured, and how: ratings and ranks as samples, the figures of each metric on them, and tests of every two.

A sample is one measure in one group, such as Kendall tau in one language pair. Figures are averaged over groups. Intervals
and tests come from the same bootstrap resamples for all metrics.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from bleurt_repro.metric.statistics import (
    CONFIDENCE,
    STATISTICS,
    Statistic,
    TiedPairs,
    Values,
    average_over,
    calibrate_ties,
    interval,
    kendall_tau,
    members,
    paired_difference,
    pairwise_accuracy,
    pearson_r,
    permutation_p_values,
    permutation_test,
    resampled_places,
    significance_clusters,
    soft_pairwise_accuracy,
    standardise,
    williams_test,
)
from bleurt_repro.training.experiments.metric_rows import Row, Texts
from bleurt_repro.training.experiments.options import MetricOptions, check_different

if TYPE_CHECKING:
    import pandas

AVERAGE = "average"
ONE_GROUP = "all"
LANGUAGE_PAIR = "lp"  # what is grouped by unless another column is named
RATING_MEASURES = ("kendall_tau", "pearson_r")
# As the WMT Metrics task measures today; they need the segment and the system of each rating.
BY_SEGMENT = ("acc_eq", "kendall_by_item", "pearson_by_item")
OF_SYSTEMS = ("kendall_by_system", "pearson_by_system", "system_kendall", "system_pearson", "system_accuracy", "spa")
MEASURES = (*STATISTICS, *BY_SEGMENT, *OF_SYSTEMS)
RANK_COLUMNS = ("reference", "candidate_better", "candidate_worse")
BOOTSTRAP = (
    "paired bootstrap, one-sided: p is the share of resamples in which the row with the higher value is not ahead, "
    "counting the observed set once more"
)
WILLIAMS = "Williams' test of Pearson's r, one-sided (https://aclanthology.org/D14-1020), of each row's first seed"
PERMUTATION = (
    "permutation test PERM-BOTH, one-sided (https://aclanthology.org/2021.tacl-1.67), of each row's first seed: scores "
    "standardised by group are exchanged item by item"
)


# Ratings and ranks.


def read_ratings(path: str | Path, by: str, average_duplicates: bool = False) -> pandas.DataFrame:
    """Read a file of ratings as a table.

    Args:
        path: as `rating_records` takes it.
        by: the column to group by; all records are one group if they have no language pair.
        average_duplicates: make one record, with the mean score, of those of one group, reference and candidate.

    Raises:
        ValueError: if a required column, or the one to group by, is missing, or a value is not as it must be.
    """
    import pandas

    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.metric.files.records import read_records

    table = pandas.DataFrame(rating_records(path))
    if by not in table:  # a column of the user's own
        values = [record.get(by) for _, record in read_records(path)]
        table[by] = values
    table = _group_blanks(table, by)
    if average_duplicates:
        rule = {name: "mean" if name in ("score", "raw_score") else "first" for name in table if name != by}
        same = [by, "reference", "candidate"]
        table = table.groupby(same, sort=False, as_index=False).agg({n: r for n, r in rule.items() if n not in same})
    return table


def _group_blanks(table: pandas.DataFrame, by: str) -> pandas.DataFrame:
    """Make one group of all records where there are no language pairs; refuse another column that is missing or empty."""
    if by not in table or table[by].isna().all():
        if by != LANGUAGE_PAIR:
            raise ValueError(
                f"no record has a {by} to group by: name another column, or leave --by out for language pairs"
            )
        table[by] = ONE_GROUP
    if missing := int(table[by].isna().sum()):
        raise ValueError(
            f"{missing} of {len(table)} records have no {by}: fill it in each, or group by another column"
        )
    return table


def rating_texts(table: pandas.DataFrame) -> Texts:
    """Return the texts of ratings: an item a record."""
    names = ["lp", "segment_id", "system"]
    return Texts(
        table["reference"].tolist(),
        table["candidate"].tolist(),
        [None if source != source else source for source in table["source"].tolist()],
        table[names].to_dict("records") if table["system"].notna().any() else None,
    )


def segment_numbers(table: pandas.DataFrame) -> NDArray[np.intp]:
    """Number the segments of ratings: records of one source and reference are translations of one segment."""
    columns = [name for name in ("source", "reference") if name in table]
    return table.groupby(columns, dropna=False, sort=False).ngroup().to_numpy(np.intp)


def rating_samples(table: pandas.DataFrame, by: str, measures: Sequence[str] = RATING_MEASURES) -> list[Sample]:
    """Return what is measured of ratings: each measure in each group, in the order of the groups' names.

    Raises:
        ValueError: if a measure is of systems, and the ratings do not name them.
    """
    scores, segments = table["score"].to_numpy(float), segment_numbers(table)
    groups = sorted(table.groupby(by).indices.items())
    found: list[Sample] = []
    for measure in measures:
        for group, chosen in groups:
            if measure in STATISTICS:
                found.append(Sample(measure, str(group), chosen, scores[chosen], segments=segments[chosen]))
            else:
                found.append(_sample_by_system(measure, str(group), table.iloc[chosen], chosen, segments))
    return found


def _sample_by_system(
    measure: str, group: str, table: pandas.DataFrame, chosen: NDArray[np.intp], segments: NDArray[np.intp]
) -> SystemSample:
    if table["system"].isna().any():
        raise ValueError(f"{measure} needs the column system in each rating, which {group} does not have")
    # a record may stand for several systems of the same output: a.1+b.2
    named = [(place, name) for place, names in enumerate(table["system"]) for name in str(names).split("+")]
    places = np.array([place for place, _ in named], dtype=np.intp)
    names = {name: number for number, name in enumerate(dict.fromkeys(name for _, name in named))}
    first, ratings = chosen[places], table["score"].to_numpy(float)[places]
    systems = np.array([names[name] for _, name in named], dtype=np.intp)
    return SystemSample(measure, group, first, ratings, segments=segments[first], systems=systems)


def raw_score_samples(table: pandas.DataFrame, by: str, min_difference: float) -> list[Sample]:
    """Return daRR in each group, of pairs of a segment's candidates whose raw scores lie far enough apart.

    Args:
        table: ratings with raw_score, one record an item.
        by: the column of the groups.
        min_difference: the least difference, in points of 100.
    """
    from bleurt_repro.datasets_builders.ratings.relative_ranks import relative_ranks

    # the item stands where the system does, so that a pair names its two items
    records = [{**record, "system": i} for i, record in enumerate(table.to_dict("records"))]
    segments = segment_numbers(table)
    pairs: dict[str, list[tuple[int, int]]] = {}
    for pair in relative_ranks(records, min_difference):
        group = str(records[pair["system_better"]][by])
        pairs.setdefault(group, []).append((pair["system_better"], pair["system_worse"]))
    places = {group: np.array(found).T for group, found in sorted(pairs.items())}
    return [
        Sample("darr", group, better, worse, of_scores=True, segments=segments[better])
        for group, (better, worse) in places.items()
    ]


def read_relative_ranks(path: str | Path, by: str) -> tuple[Texts, list[Sample], int]:
    """Read a file of relative ranks.

    Args:
        path: records with `RANK_COLUMNS`, and source if there is one.
        by: the column to group by.

    Returns:
        the different texts, daRR in each group, and the number of pairs.

    Raises:
        ValueError: if a column is missing, or a text is.
    """
    import pandas

    from bleurt_repro.metric.files.records import read_records

    table = pandas.DataFrame(record for _, record in read_records(path))
    if lacking := [name for name in RANK_COLUMNS if name not in table]:
        raise ValueError(f"{path} has no column {', '.join(lacking)}; found {', '.join(map(str, table.columns))}")
    if missing := int(table[list(RANK_COLUMNS)].isna().any(axis=1).sum()):
        raise ValueError(f"{path}: {missing} of {len(table)} records lack one of {', '.join(RANK_COLUMNS)}")
    table = _group_blanks(table, by)
    sources = table["source"].tolist() if "source" in table else [None] * len(table)
    items: dict[tuple[Any, str, str], int] = {}
    sides = [
        np.array(
            [items.setdefault(item, len(items)) for item in zip(sources, table["reference"], table[side], strict=True)]
        )
        for side in RANK_COLUMNS[1:]
    ]
    texts = Texts([r for _, r, _ in items], [c for _, _, c in items], [s for s, _, _ in items])
    segments = segment_numbers(table)
    samples = [
        Sample("darr", str(group), sides[0][chosen], sides[1][chosen], of_scores=True, segments=segments[chosen])
        for group, chosen in sorted(table.groupby(by).indices.items())
    ]
    return texts, samples, len(table)


def data_record(path: str | Path, records: int) -> dict[str, Any]:
    """Return name, content hash and size of a file of data."""
    from bleurt_repro.training.results import fingerprint

    return {**fingerprint([path])[0], "records": records}


# Samples.


@dataclass(frozen=True)
class Sample:
    """What a measure compares in one group.

    Attributes:
        measure: a key of `STATISTICS`.
        group: such as a language pair.
        first: items whose scores are the measure's first argument.
        second: the second argument: ratings, or, if `of_scores`, items whose scores it is.
        of_scores: as in daRR, which compares scores with scores.
        segments: number of each place's segment; None where each place is a segment of its own.
    """

    measure: str
    group: str
    first: NDArray[np.intp]
    second: NDArray[Any]
    of_scores: bool = False
    segments: NDArray[np.intp] | None = None

    @property
    def n(self) -> int:
        """How many ratings, pairs or systems are measured."""
        return len(self.first)

    @property
    def items(self) -> NDArray[np.intp]:
        """Items whose scores count."""
        return np.unique([self.first, self.second]) if self.of_scores else np.unique(self.first)

    def of(self, scores: Values, chosen: NDArray[np.intp] | None = None) -> float:
        """Compute the measure of scores on the sample, or on some of it.

        Args:
            scores: of all items.
            chosen: places in the sample, repeated ones included.

        Raises:
            ValueError: if the scores or ratings do not vary.
        """
        first, second = (self.first, self.second) if chosen is None else (self.first[chosen], self.second[chosen])
        return STATISTICS[self.measure](scores[first], scores[second] if self.of_scores else second)

    def resampled(self, scores: Values, number: int, seed: int, by_segment: bool = True) -> Values:
        """Compute the measure on bootstrap resamples, which are the same for every row.

        Args:
            scores: of all items.
            number: how many resamples.
            seed: of the drawing.
            by_segment: whether all places of a segment are drawn together.

        Returns:
            one value a resample, NaN where it did not vary; none of fewer than three places.
        """
        if len(self.first) < 3:
            return np.array([])
        segments = self.segments if by_segment else None
        return np.array(
            [
                self._or_nan(scores, chosen)
                for chosen in resampled_places(len(self.first), number, self._seed(seed), segments)
            ]
        )

    def describe(self, scores: Values) -> dict[str, Any]:
        """Return what else the results say of the measure of these scores."""
        return {}

    def _seed(self, seed: int) -> list[int]:
        return [seed, zlib.crc32(f"{self.measure}/{self.group}".encode())]

    def _or_nan(self, scores: Values, chosen: NDArray[np.intp]) -> float:
        """A resample of a small group may happen not to vary."""
        try:
            return self.of(scores, chosen)
        except ValueError:
            return math.nan


@dataclass(frozen=True)
class SystemSample(Sample):
    """What one of `BY_SEGMENT` or `OF_SYSTEMS` compares in one group: ratings of systems' translations of segments.

    Attributes:
        systems: number of each place's system.
    """

    systems: NDArray[np.intp] = field(default_factory=lambda: np.array([], dtype=np.intp))

    @property
    def n(self) -> int:
        """How many systems are compared, or ratings of them."""
        is_of_systems = self.measure.startswith("system_") or self.measure == "spa"
        return len(np.unique(self.systems)) if is_of_systems else len(self.first)

    def of(self, scores: Values, chosen: NDArray[np.intp] | None = None) -> float:
        """Compute the measure as `Sample.of` does.

        Raises:
            ValueError: if it is undefined, such as for a single system.
        """
        places = np.arange(len(self.first)) if chosen is None else chosen
        if self.measure in BY_SEGMENT and chosen is None:
            value = float(np.nanmean(self._by_segment(scores)))
        elif self.measure == "spa":
            value = soft_pairwise_accuracy(self._p_values(scores[self.first]), self._people)
        else:
            value = self._of_systems(scores[self.first[places]], self.second[places], self.systems[places])
        if math.isnan(value):
            raise ValueError(f"{self.measure} is undefined: no segment or system has enough different scores")
        return value

    def resampled(self, scores: Values, number: int, seed: int, by_segment: bool = True) -> Values:
        """Compute the measure on resamples of segments; SPA, which is made of tests itself, has none.

        The threshold of acc_eq is that of the whole sample.
        """
        if self.measure == "spa":
            return np.array([])
        if self.measure in BY_SEGMENT:
            values = self._by_segment(scores)
            drawn = resampled_places(len(values), number, self._seed(seed))
            return np.array([np.nanmean(values[chosen]) for chosen in drawn])
        return super().resampled(scores, number, seed, by_segment)

    def describe(self, scores: Values) -> dict[str, Any]:
        """Return the threshold of acc_eq, below which scores are a tie."""
        return {"epsilon": calibrate_ties(self._pairs, scores[self.first])[1]} if self.measure == "acc_eq" else {}

    @cached_property
    def _pairs(self) -> TiedPairs:
        return TiedPairs.within(self.second, self._segment_members)

    @cached_property
    def _segment_members(self) -> list[NDArray[np.intp]]:
        assert self.segments is not None
        return members(self.segments.tolist())

    @cached_property
    def _people(self) -> Values:
        return self._p_values(self.second)

    def _p_values(self, values: Values) -> Values:
        """Test every two systems by values of all places."""
        table = np.full((self.systems.max() + 1, len(self._segment_members)), np.nan)
        for number, places in enumerate(self._segment_members):
            table[self.systems[places], number] = values[places]
        return permutation_p_values(table)

    def _by_segment(self, scores: Values) -> Values:
        """Compute the measure in each segment; NaN where it is undefined."""
        own = scores[self.first]
        if self.measure == "acc_eq":
            _, epsilon = calibrate_ties(self._pairs, own)
            return self._pairs.accuracies(own, epsilon)
        statistic = _statistic_of(self.measure)
        return np.array([average_over(statistic, own, self.second, [places]) for places in self._segment_members])

    def _of_systems(self, own: Values, ratings: Values, systems: NDArray[np.intp]) -> float:
        if self.measure.endswith("_by_system"):
            return average_over(_statistic_of(self.measure), own, ratings, members(systems.tolist()))
        counts = np.bincount(systems, minlength=int(self.systems.max()) + 1)
        means = [np.bincount(systems, values, len(counts))[counts > 0] for values in (own, ratings)]
        of_systems = [total / counts[counts > 0] for total in means]
        return _statistic_of(self.measure)(*of_systems)


def _statistic_of(measure: str) -> Statistic:
    if measure == "system_accuracy":
        return pairwise_accuracy
    return kendall_tau if "kendall" in measure else pearson_r


# Figures.


@dataclass(frozen=True)
class Figure:
    """A measure of one row on one sample.

    Attributes:
        value: the mean over the row's seeds.
        by_seed: the value of each.
        resampled: the value on each resample; NaN where one did not vary.
        n: size of the sample.
        more: what else is reported, such as a threshold.
    """

    value: float
    by_seed: tuple[float, ...]
    resampled: Values
    n: int
    more: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return value, interval and size; low and high are None where there is no interval."""
        low, high = interval(self.resampled)
        return {"value": self.value, "low": low, "high": high, "n": self.n, **self.more}


def measure(row: Row, sample: Sample, metrics: MetricOptions) -> Figure | None:
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
    by_segment = metrics.resample == "segments"
    drawn = [sample.resampled(vector, metrics.resamples, metrics.seed, by_segment) for vector in row.vectors]
    more = sample.describe(row.vectors[0])
    return Figure(float(np.mean(by_seed)), by_seed, np.mean(drawn, axis=0), sample.n, more)


def measure_average(figures: Sequence[Figure | None]) -> Figure | None:
    """Average figures of several groups, each group counting once, as the shared tasks do; None if one is missing."""
    known = [figure for figure in figures if figure is not None]
    if not known or len(known) < len(figures):
        return None
    by_seed = tuple(float(np.mean(values)) for values in zip(*(figure.by_seed for figure in known), strict=True))
    lengths = {len(figure.resampled) for figure in known}
    resampled = np.mean([figure.resampled for figure in known], axis=0) if len(lengths) == 1 else np.array([])
    return Figure(float(np.mean([f.value for f in known])), by_seed, resampled, sum(f.n for f in known))


# (row's name, measure, group or `AVERAGE`)
Figures = Mapping[tuple[str, str, str], Figure | None]


def judge(rows: Sequence[Row], samples: Sequence[Sample], metrics: MetricOptions) -> dict[str, Any]:
    """Measure all rows on all samples, and compare every two rows.

    Args:
        rows: their names all different.
        samples: of one or more measures, each in the same groups or in some of them.
        metrics: how often and what the bootstrap draws, and how often tests permute.

    Returns:
        "measures", "rows", "comparisons" and, where there are tests, "clusters", fit for JSON; and the settings of
        the bootstrap.

    Raises:
        ValueError: if two rows have one name, or ratings of a group do not vary.
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
        "rows": [_row(row, samples, measures, figures) for row in rows],
        "tests": {**tests, **({"permutation": PERMUTATION} if metrics.permutations else {})},
        "comparisons": comparisons,
        **({"clusters": clusters} if clusters else {}),
    }


def _measure_all(
    rows: Sequence[Row], samples: Sequence[Sample], measures: Sequence[str], metrics: MetricOptions
) -> dict[tuple[str, str, str], Figure | None]:
    figures: dict[tuple[str, str, str], Figure | None] = {}
    steps = [(row, sample) for row in rows for sample in samples]
    for row, sample in tqdm(steps, desc="measure", unit="group", disable=None):
        figures[row.name, sample.measure, sample.group] = measure(row, sample, metrics)
    for row in rows:
        for name in measures:
            found = [figures[row.name, name, sample.group] for sample in samples if sample.measure == name]
            figures[row.name, name, AVERAGE] = measure_average(found)
    return figures


def _row(row: Row, samples: Sequence[Sample], measures: Sequence[str], figures: Figures) -> dict[str, Any]:
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
    """Return each measure's average by seed, with the standard deviation over them."""
    return {
        name: {"values": list(figure.by_seed), "deviation": float(np.std(figure.by_seed, ddof=1))}
        for name, figure in averages.items()
    }


# Tests of every two rows.


def compare_rows(
    rows: Sequence[Row],
    samples: Sequence[Sample],
    figures: Figures,
    measures: Sequence[str],
    metrics: MetricOptions,
) -> list[dict[str, Any]]:
    """Compare every two rows on the average of each measure, and by Williams' test in each group.

    Args:
        rows: the rows.
        samples: of all measures and groups.
        figures: by row's name, measure and group, `AVERAGE` among the groups.
        measures: in the order of the tables.
        metrics: how often tests permute.

    Returns:
        a dict for each measure and two rows, the better one `first`; "williams" holds t and p by group,
        "permutation_p" the p of the permutation test.
    """
    found = []
    for measure in measures:
        own = [sample for sample in samples if sample.measure == measure]
        for first, second in _ranked_pairs(rows, figures, measure):
            one, other = (figures[row.name, measure, AVERAGE] for row in (first, second))
            assert one is not None and other is not None
            test = {"measure": measure, "first": first.name, "second": second.name, **bootstrap_test(one, other)}
            if measure == "pearson_r":
                test["williams"] = _williams_by_group(first.vectors[0], second.vectors[0], own)
            if metrics.permutations:
                test["permutation_p"] = _permutation_p(first.vectors[0], second.vectors[0], own, metrics)
            found.append(test)
    return found


def _ranked_pairs(rows: Sequence[Row], figures: Figures, measure: str) -> list[tuple[Row, Row]]:
    """Return every two rows that have the measure, the better one first."""
    values = {row.name: figure.value for row in rows if (figure := figures[row.name, measure, AVERAGE]) is not None}
    ranked = sorted((row for row in rows if row.name in values), key=lambda row: -values[row.name])
    return [(first, second) for i, first in enumerate(ranked) for second in ranked[i + 1 :]]


def bootstrap_test(first: Figure, second: Figure) -> dict[str, Any]:
    """Compare two rows on the same resamples, by `BOOTSTRAP`.

    Args:
        first, second: figures of the same sample.

    Returns:
        "difference" (first minus second), its interval "low" and "high", and "p"; None without resamples.
    """
    same = len(first.resampled) == len(second.resampled)
    resampled = (first.resampled, second.resampled) if same else (np.array([]), np.array([]))
    found = paired_difference(first.value - second.value, *resampled)
    return {"difference": found.value, "low": found.low, "high": found.high, "p": found.p_value}


def _williams_by_group(first: Values, second: Values, samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    found = {}
    for sample in samples:
        if len(sample.first) > 3:
            r = np.corrcoef([sample.second, first[sample.first], second[sample.first]])
            t, p = williams_test(float(r[0, 1]), float(r[0, 2]), float(r[1, 2]), len(sample.first))
            found[sample.group] = {"t": t, "p": p}
    return found


def _permutation_p(first: Values, second: Values, samples: Sequence[Sample], metrics: MetricOptions) -> float:
    """Test by permutation the average of a measure over its samples."""
    items = np.unique(np.concatenate([sample.items for sample in samples]))
    both = [np.zeros(len(first)), np.zeros(len(second))]
    for own, scores in zip(both, (first, second), strict=True):
        for sample in samples:
            own[sample.items] = standardise(scores[sample.items], constant=1.0)

    def average(scores: Values) -> float:
        whole = np.zeros(len(first))
        whole[items] = scores
        return float(np.mean([_or_zero(sample, whole) for sample in samples]))

    return permutation_test(average, both[0][items], both[1][items], metrics.permutations, metrics.seed)


def _or_zero(sample: Sample, scores: Values) -> float:
    try:
        return sample.of(scores)
    except ValueError:  # exchanged scores may happen not to vary
        return 0.0


def _clusters(
    rows: Sequence[Row], figures: Figures, comparisons: Sequence[Mapping[str, Any]], measures: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Rank the rows by clusters of significance, where there are tests of the measure."""
    found = {}
    for measure in measures:
        tests = [test for test in comparisons if test["measure"] == measure]
        p_values = {(test["first"], test["second"]): test.get("permutation_p", test["p"]) for test in tests}
        if p_values and None not in p_values.values():
            known = {row.name: figures[row.name, measure, AVERAGE] for row in rows}
            values = {name: figure.value for name, figure in known.items() if figure is not None}
            found[measure] = significance_clusters(values, p_values)
    return found
