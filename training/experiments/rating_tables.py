"""Ratings as tables, and what of them is scored and measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.training.experiments.measure import Sample
from bleurt_repro.training.experiments.metric_rows import Texts

if TYPE_CHECKING:
    import pandas

RATING_MEASURES = ("kendall_tau", "pearson_r")
RANK_COLUMNS = ("reference", "candidate_better", "candidate_worse")
ONE_GROUP = "all"


def read_ratings(path: str | Path, by: str, average_duplicates: bool = False) -> pandas.DataFrame:
    """Read a file of ratings.

    Args:
        path: as `rating_records` takes it.
        by: the column to group by; without it, or if it is empty, all records are one group.
        average_duplicates: make one record, with the mean score, of those of one group, reference and candidate.

    Raises:
        ValueError: if a required column is missing, or a value is not as it must be.
    """
    import pandas

    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.metric.files.records import read_records

    table = pandas.DataFrame(rating_records(path))
    if by not in table:  # a column of the user's own
        values = [record.get(by) for _, record in read_records(path)]
        table[by] = values if any(value is not None for value in values) else ONE_GROUP
    table = group_blanks(table, by)
    if average_duplicates:
        rule = {name: "mean" if name in ("score", "raw_score") else "first" for name in table if name != by}
        same = [by, "reference", "candidate"]
        table = table.groupby(same, sort=False, as_index=False).agg({n: r for n, r in rule.items() if n not in same})
    return table


def group_blanks(table: pandas.DataFrame, by: str) -> pandas.DataFrame:
    """Make one group of all records where the column to group by is missing or empty throughout."""
    if by not in table or table[by].isna().all():
        table[by] = ONE_GROUP
    if missing := int(table[by].isna().sum()):
        raise ValueError(
            f"{missing} of {len(table)} records have no {by}: give it in each, or group by another column"
        )
    return table


def rating_texts(table: pandas.DataFrame) -> Texts:
    """Give the texts of ratings: an item a record."""
    names = ["lp", "segment_id", "system"]
    return Texts(
        table["reference"].tolist(),
        table["candidate"].tolist(),
        [None if source != source else source for source in table["source"].tolist()],
        table[names].to_dict("records") if table["system"].notna().any() else None,
    )


def rating_samples(table: pandas.DataFrame, by: str, measures: Sequence[str] = RATING_MEASURES) -> list[Sample]:
    """Give what is measured of ratings: each measure in each group, in the order of the groups' names."""
    scores = table["score"].to_numpy(float)
    return [
        Sample(measure, str(group), members, scores[members])
        for measure in measures
        for group, members in sorted(table.groupby(by).indices.items())
    ]


def raw_score_samples(table: pandas.DataFrame, by: str, min_difference: float) -> list[Sample]:
    """Give daRR in each group, of pairs of a segment's candidates whose raw scores lie far enough apart.

    Args:
        table: ratings with raw_score, one record an item.
        by: the column of the groups.
        min_difference: the least difference, in points of 100.
    """
    from bleurt_repro.datasets_builders.ratings.relative_ranks import relative_ranks

    # the item stands where the system does, so that a pair names its two items
    records = [{**record, "system": i} for i, record in enumerate(table.to_dict("records"))]
    pairs: dict[str, list[tuple[int, int]]] = {}
    for pair in relative_ranks(records, min_difference):
        group = str(records[pair["system_better"]][by])
        pairs.setdefault(group, []).append((pair["system_better"], pair["system_worse"]))
    places = {group: np.array(found).T for group, found in sorted(pairs.items())}
    return [Sample("darr", group, better, worse, of_scores=True) for group, (better, worse) in places.items()]


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
    table = group_blanks(table, by)
    sources = table["source"].tolist() if "source" in table else [None] * len(table)
    items: dict[tuple[Any, str, str], int] = {}
    sides = [
        np.array(
            [items.setdefault(item, len(items)) for item in zip(sources, table["reference"], table[side], strict=True)]
        )
        for side in RANK_COLUMNS[1:]
    ]
    texts = Texts([r for _, r, _ in items], [c for _, _, c in items], [s for s, _, _ in items])
    samples = [
        Sample("darr", str(group), sides[0][members], sides[1][members], of_scores=True)
        for group, members in sorted(table.groupby(by).indices.items())
    ]
    return texts, samples, len(table)
