"""Samples: what is measured. Human ratings or relative ranks, by group, and the measures of agreement with them.

A sample is one measure in one group, such as Kendall tau in one language pair. It holds the ratings, and computes the
measure of any metric's scores on them, once and on bootstrap resamples.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.statistics import Values, resampled_indices
from bleurt_repro.training.metrics.rows import Texts
from bleurt_repro.training.metrics.statistics import (
    STATISTICS,
    Statistic,
    TiedPairs,
    average_over,
    calibrate_ties,
    indices_by_label,
    kendall_tau,
    pairwise_accuracy,
    pearson_r,
    permutation_p_values,
    soft_pairwise_accuracy,
)

if TYPE_CHECKING:
    import pandas

ONE_GROUP = "all"  # name of the group where the ratings have no language pairs
LANGUAGE_PAIR = "lp"  # column by which ratings are grouped unless another one is named
LENGTH = "length"  # groups that are made here if the ratings have no such column
RATING_MEASURES = ("kendall_tau", "pearson_r")
# Measures of the WMT Metrics task since 2022; they need the segment and the system of each rating.
BY_SEGMENT = ("acc_eq", "kendall_by_item", "pearson_by_item")
OF_SYSTEMS = ("kendall_by_system", "pearson_by_system", "system_kendall", "system_pearson", "system_accuracy", "spa")
BY_LENGTH = "kendall_by_length"
MEASURES = (*STATISTICS, BY_LENGTH, *BY_SEGMENT, *OF_SYSTEMS)
RANK_COLUMNS = ("reference", "candidate_better", "candidate_worse")
Indices = NDArray[np.intp]


# --- ratings and ranks ---------------------------------------------------------------------------------------------


def read_ratings(path: str | Path, by: str, average_duplicates: bool = False) -> pandas.DataFrame:
    """Read a file of ratings as a table with one row per rating.

    Args:
        path: file of ratings, as `rating_records` takes it.
        by: column to group by; records without language pairs form one group. "length" makes three groups of about the
            same size, by the number of characters of the reference.
        average_duplicates: merge the ratings of equal group, reference and candidate into one, with the mean score.

    Raises:
        ValueError: if a required column or the column to group by is missing, or a value is invalid.
    """
    import pandas

    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.metric.files.records import read_records

    table = pandas.DataFrame(rating_records(path))
    if by not in table:  # a column that the project does not know
        values = [record.get(by) for _, record in read_records(path)]
        table[by] = values if by != LENGTH or any(value is not None for value in values) else _length_groups(table)
    table = _fill_groups(table, by)
    if average_duplicates:
        rules = {name: "mean" if name in ("score", "raw_score") else "first" for name in table if name != by}
        keys = [by, "reference", "candidate"]
        table = table.groupby(keys, sort=False, as_index=False).agg({n: r for n, r in rules.items() if n not in keys})
    return table


def _length_groups(table: pandas.DataFrame) -> NDArray[Any]:
    lengths = table["reference"].str.len()
    short, medium = (int(length) for length in np.quantile(lengths, (1 / 3, 2 / 3), method="lower"))
    names = [f"1. up to {short} characters", f"2. {short + 1} to {medium} characters"]
    return np.select([lengths <= short, lengths <= medium], names, f"3. over {medium} characters")


def _fill_groups(table: pandas.DataFrame, by: str) -> pandas.DataFrame:
    """Return the table with a value of `by` in each row: one group if there are no language pairs at all."""
    if by not in table or table[by].isna().all():
        if by != LANGUAGE_PAIR:
            raise ValueError(
                f"no record has a {by} to group by: name another column, or leave --by out to group by language pair"
            )
        table[by] = ONE_GROUP
    if missing := int(table[by].isna().sum()):
        raise ValueError(
            f"{missing} of {len(table)} records have no {by}: fill it in everywhere, or group by another column"
        )
    return table


def rating_texts(table: pandas.DataFrame) -> Texts:
    """Return the texts of a table of ratings, one item per rating."""
    return Texts(
        table["reference"].tolist(),
        table["candidate"].tolist(),
        [None if source != source else source for source in table["source"].tolist()],
        table[["lp", "segment_id", "system"]].to_dict("records") if table["system"].notna().any() else None,
    )


def rating_rows(table: pandas.DataFrame) -> list[dict[str, Any]]:
    """Return a table of ratings as records to train on, with None where a value is missing."""
    columns = ["year", "lp", "segment_id", "system", "source", "reference", "candidate", "score", "raw_score"]
    records = table[columns].astype(object).where(table[columns].notna(), None).to_dict("records")
    return [{**record, "year": None if record["year"] is None else int(record["year"])} for record in records]


def segment_numbers(table: pandas.DataFrame) -> Indices:
    """Return the number of each record's segment: records with equal source and reference are of one segment."""
    columns = [name for name in ("source", "reference") if name in table]
    return table.groupby(columns, dropna=False, sort=False).ngroup().to_numpy(np.intp)


def rating_samples(table: pandas.DataFrame, by: str, measures: Sequence[str] = RATING_MEASURES) -> list[Sample]:
    """Return a sample for each measure and each group, in the order of the groups' names.

    Raises:
        ValueError: if a measure is of systems, and the ratings do not name them.
    """
    scores, segments = table["score"].to_numpy(float), segment_numbers(table)
    groups = sorted(table.groupby(by).indices.items())
    samples: list[Sample] = []
    for measure in measures:
        for group, rows in groups:
            if measure == BY_LENGTH:
                tenths = _tenths(table["reference"].iloc[rows].str.len().to_numpy(float))
                samples.append(
                    LengthSample(measure, str(group), rows, scores[rows], segments=segments[rows], tenths=tenths)
                )
            elif measure in STATISTICS:
                samples.append(Sample(measure, str(group), rows, scores[rows], segments=segments[rows]))
            else:
                samples.append(_system_sample(measure, str(group), table.iloc[rows], rows, segments))
    return samples


def _tenths(lengths: Values) -> Indices:
    """Return the number of each length's tenth, from 0; equal lengths are in the same one."""
    return np.searchsorted(np.quantile(lengths, np.arange(1, 10) / 10), lengths).astype(np.intp)


def _system_sample(
    measure: str, group: str, table: pandas.DataFrame, rows: Indices, segments: Indices
) -> SystemSample:
    if table["system"].isna().any():
        raise ValueError(f"{measure} needs the column system in each rating, but some ratings of {group} have none")
    # One record may stand for several systems with the same output, such as a.1+b.2: it counts for each of them.
    pairs = [(i, name) for i, systems in enumerate(table["system"]) for name in str(systems).split("+")]
    repeated = np.array([i for i, _ in pairs], dtype=np.intp)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(name for _, name in pairs))}
    items, ratings = rows[repeated], table["score"].to_numpy(float)[repeated]
    systems = np.array([numbers[name] for _, name in pairs], dtype=np.intp)
    return SystemSample(measure, group, items, ratings, segments=segments[items], systems=systems)


def raw_score_samples(table: pandas.DataFrame, by: str, min_difference: float) -> list[Sample]:
    """Return a sample of daRR for each group: pairs of a segment's candidates whose raw scores differ enough.

    Args:
        table: ratings with raw_score, one record per item.
        by: column to group by.
        min_difference: smallest difference that makes a pair, in points of 100.
    """
    from bleurt_repro.datasets_builders.ratings.relative_ranks import relative_ranks

    # The number of the item takes the place of the system's name, so that a pair names its two items.
    records = [{**record, "system": i} for i, record in enumerate(table.to_dict("records"))]
    segments = segment_numbers(table)
    pairs: dict[str, list[tuple[int, int]]] = {}
    for pair in relative_ranks(records, min_difference):
        group = str(records[pair["system_better"]][by])
        pairs.setdefault(group, []).append((pair["system_better"], pair["system_worse"]))
    samples = []
    for group, items in sorted(pairs.items()):
        better, worse = np.array(items).T
        samples.append(Sample("darr", group, better, worse, of_scores=True, segments=segments[better]))
    return samples


def read_relative_ranks(path: str | Path, by: str) -> tuple[Texts, list[Sample], int]:
    """Read a file of relative ranks.

    Args:
        path: file of records with `RANK_COLUMNS`, and with source where there is one.
        by: column to group by.

    Returns:
        the different texts, a sample of daRR for each group, and the number of pairs.

    Raises:
        ValueError: if a column or a text is missing.
    """
    import pandas

    from bleurt_repro.metric.files.records import read_records

    table = pandas.DataFrame(record for _, record in read_records(path))
    if missing := [name for name in RANK_COLUMNS if name not in table]:
        raise ValueError(f"{path} has no column {', '.join(missing)}; found {', '.join(map(str, table.columns))}")
    if blank := int(table[list(RANK_COLUMNS)].isna().any(axis=1).sum()):
        raise ValueError(f"{path}: {blank} of {len(table)} records lack one of {', '.join(RANK_COLUMNS)}")
    table = _fill_groups(table, by)
    sources = table["source"].tolist() if "source" in table else [None] * len(table)
    # A candidate that stands in several pairs is one item.
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
        Sample("darr", str(group), sides[0][rows], sides[1][rows], of_scores=True, segments=segments[rows])
        for group, rows in sorted(table.groupby(by).indices.items())
    ]
    return texts, samples, len(table)


def data_record(path: str | Path, records: int) -> dict[str, Any]:
    """Return name, SHA-256 and number of records of a file of data."""
    from bleurt_repro.metric.loading.checksums import file_records

    return {**file_records([path])[0], "records": records}


# --- samples -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """One measure in one group.

    Attributes:
        measure: key of `STATISTICS`.
        group: name of the group, such as a language pair.
        first: items whose scores are the first argument of the measure, shape (n,).
        second: second argument of the measure, shape (n,): ratings, or items if `of_scores`.
        of_scores: whether scores are compared with scores, as in daRR.
        segments: number of the segment of each rating or pair; None if each is a segment by itself.
    """

    measure: str
    group: str
    first: Indices
    second: NDArray[Any]
    of_scores: bool = False
    segments: Indices | None = None

    @property
    def n(self) -> int:
        """Number of ratings, pairs or systems that are measured."""
        return len(self.first)

    @property
    def items(self) -> Indices:
        """Items whose scores count."""
        return np.unique([self.first, self.second]) if self.of_scores else np.unique(self.first)

    def compute(self, scores: Values, subset: Indices | None = None) -> float:
        """Compute the measure of scores on the sample, or on a subset of it.

        Args:
            scores: scores of all items.
            subset: indices into the sample, in which an index may occur several times.

        Raises:
            ValueError: if the scores or ratings do not vary.
        """
        first, second = (self.first, self.second) if subset is None else (self.first[subset], self.second[subset])
        return STATISTICS[self.measure](scores[first], scores[second] if self.of_scores else second)

    def resample(self, scores: Values, number: int, seed: int, by_segment: bool = True) -> Values:
        """Compute the measure on bootstrap resamples, which are the same for every row.

        Args:
            scores: scores of all items.
            number: number of resamples.
            seed: seed of the draws.
            by_segment: whether all ratings of a segment are drawn together.

        Returns:
            shape (number,), NaN where a resample does not vary; empty for a sample of fewer than three.
        """
        if len(self.first) < 3:
            return np.array([])
        segments = self.segments if by_segment else None
        return np.array(
            [
                self._compute_or_nan(scores, subset)
                for subset in resampled_indices(len(self.first), number, self._seed(seed), segments)
            ]
        )

    def describe(self, scores: Values) -> dict[str, Any]:
        """Return further entries of the results about the measure of these scores."""
        return {}

    def _seed(self, seed: int) -> list[int]:
        return [seed, zlib.crc32(f"{self.measure}/{self.group}".encode())]

    def _compute_or_nan(self, scores: Values, subset: Indices) -> float:
        """Compute the measure; a resample of a small group may happen not to vary."""
        try:
            return self.compute(scores, subset)
        except ValueError:
            return math.nan


@dataclass(frozen=True)
class LengthSample(Sample):
    """Kendall's tau among segments of about the same length, averaged over tenths of the lengths of one group.

    Where raters add up errors, long texts are rated worse, and a metric that only prefers short texts agrees with them.

    Attributes:
        tenths: number of the tenth of each rating, from 0, by the length of its reference.
    """

    tenths: Indices = field(default_factory=lambda: np.array([], dtype=np.intp))

    def compute(self, scores: Values, subset: Indices | None = None) -> float:
        """Compute the measure as `Sample.compute` does.

        Raises:
            ValueError: if scores or ratings do not vary in any tenth.
        """
        rows = np.arange(len(self.first)) if subset is None else subset
        groups = indices_by_label(self.tenths[rows].tolist())
        value = average_over(kendall_tau, scores[self.first[rows]], self.second[rows], groups)
        if math.isnan(value):
            raise ValueError(f"{self.measure} is undefined: scores do not vary in any tenth of the lengths")
        return value


@dataclass(frozen=True)
class SystemSample(Sample):
    """One of the measures `BY_SEGMENT` or `OF_SYSTEMS` in one group: ratings of systems' translations of segments.

    Attributes:
        systems: number of the system of each rating.
    """

    systems: Indices = field(default_factory=lambda: np.array([], dtype=np.intp))

    @property
    def n(self) -> int:
        """Number of systems that are compared, or of ratings."""
        is_of_systems = self.measure.startswith("system_") or self.measure == "spa"
        return len(np.unique(self.systems)) if is_of_systems else len(self.first)

    def compute(self, scores: Values, subset: Indices | None = None) -> float:
        """Compute the measure as `Sample.compute` does.

        Raises:
            ValueError: if it is undefined, such as for a single system.
        """
        rows = np.arange(len(self.first)) if subset is None else subset
        if self.measure in BY_SEGMENT and subset is None:
            values = self._by_segment(scores)
            value = float(np.nanmean(values)) if np.isfinite(values).any() else math.nan
        elif self.measure == "spa":
            value = soft_pairwise_accuracy(self._p_values(scores[self.first]), self._p_values_of_ratings)
        else:
            value = self._of_systems(scores[self.first[rows]], self.second[rows], self.systems[rows])
        if math.isnan(value):
            raise ValueError(f"{self.measure} is undefined: no segment or system has enough different scores")
        return value

    def resample(self, scores: Values, number: int, seed: int, by_segment: bool = True) -> Values:
        """Compute the measure on resamples of segments; SPA, which is made of tests itself, has none.

        The threshold of acc_eq is that of the whole sample.
        """
        if self.measure == "spa":
            return np.array([])
        if self.measure in BY_SEGMENT:
            values = self._by_segment(scores)
            resamples = resampled_indices(len(values), number, self._seed(seed))
            return np.array([np.nanmean(values[subset]) for subset in resamples])
        return super().resample(scores, number, seed, by_segment)

    def describe(self, scores: Values) -> dict[str, Any]:
        """Return the threshold of acc_eq: two scores that differ by no more are a tie."""
        return {"epsilon": calibrate_ties(self._pairs, scores[self.first])[1]} if self.measure == "acc_eq" else {}

    @cached_property
    def _pairs(self) -> TiedPairs:
        return TiedPairs.within(self.second, self._segment_members)

    @cached_property
    def _segment_members(self) -> list[Indices]:
        assert self.segments is not None
        return indices_by_label(self.segments.tolist())

    @cached_property
    def _p_values_of_ratings(self) -> Values:
        return self._p_values(self.second)

    def _p_values(self, values: Values) -> Values:
        """Return the p-values of the tests of every two systems, by scores or ratings of the whole sample."""
        table = np.full((self.systems.max() + 1, len(self._segment_members)), np.nan)
        for number, rows in enumerate(self._segment_members):
            table[self.systems[rows], number] = values[rows]
        return permutation_p_values(table)

    def _by_segment(self, scores: Values) -> Values:
        """Compute the measure in each segment; NaN where it is undefined."""
        sample_scores = scores[self.first]
        if self.measure == "acc_eq":
            _, epsilon = calibrate_ties(self._pairs, sample_scores)
            return self._pairs.accuracies(sample_scores, epsilon)
        statistic = _statistic(self.measure)
        return np.array(
            [average_over(statistic, sample_scores, self.second, [rows]) for rows in self._segment_members]
        )

    def _of_systems(self, scores: Values, ratings: Values, systems: Indices) -> float:
        if self.measure.endswith("_by_system"):
            return average_over(_statistic(self.measure), scores, ratings, indices_by_label(systems.tolist()))
        # A system's score is the mean over its segments; a resample may lack a system.
        counts = np.bincount(systems, minlength=int(self.systems.max()) + 1)
        means = [
            (np.bincount(systems, values, len(counts)) / np.maximum(counts, 1))[counts > 0]
            for values in (scores, ratings)
        ]
        return _statistic(self.measure)(*means)


def _statistic(measure: str) -> Statistic:
    if measure == "system_accuracy":
        return pairwise_accuracy
    return kendall_tau if "kendall" in measure else pearson_r
