"""Split ratings into training and validation sets that share no segment (BLEURT, section B.2)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SEGMENT_COLUMNS = ("source", "reference")


def split_without_overlap(
    rows: Sequence[Mapping[str, Any]], ratio: float, seed: int = 0, columns: Sequence[str] = SEGMENT_COLUMNS
) -> tuple[list[int], list[int]]:
    """Choose a validation set such that no source and no reference is in both sets.

    The paper separates sources. References are separated too, since the scorer reads them, and English news texts are
    the reference of several language pairs. Segments that differ only in case or spacing count as equal; blank or
    missing segments are not equal to any other.

    Args:
        rows: ratings.
        ratio: share of the rows to validate on, from 0 to below 1; the set has as many rows as whole groups allow.
        seed: seed of the choice of groups.
        columns: columns of the segments; a value is a string, a list of strings, or None.

    Returns:
        The indices of the training rows and of the validation rows, both ascending.

    Raises:
        ValueError: if the ratio is out of range, or the smallest group is larger than the validation set.
    """
    if not 0 <= ratio < 1:
        raise ValueError(f"the validation ratio must be at least 0 and below 1, found {ratio}")
    size = round(ratio * len(rows))
    chosen: set[int] = set()
    groups = connected_rows(rows, columns)
    random.Random(seed).shuffle(groups)
    for group in groups:
        if len(chosen) + len(group) <= size:
            chosen.update(group)
    if size and not chosen:
        raise ValueError(
            f"cannot set {size} of {len(rows)} rows apart for validation: equal segments join them into "
            f"{len(groups)} group(s), the smallest of {min(map(len, groups))} rows; give a larger ratio, or 0"
        )
    return [i for i in range(len(rows)) if i not in chosen], sorted(chosen)


def segment_folds(rows: Sequence[Mapping[str, Any]], count: int, seed: int = 0) -> list[list[int]]:
    """Divide ratings into folds such that those with the same source and reference are in one fold (RoBLEURT, 3.2).

    Args:
        rows: ratings.
        count: number of folds.
        seed: seed of the assignment.

    Returns:
        The ascending indices of the rows of each fold; folds differ in size by at most the ratings of one segment.

    Raises:
        ValueError: if there are fewer segments than folds.
    """
    segments: dict[tuple[Any, ...], list[int]] = {}
    for i, row in enumerate(rows):
        segments.setdefault(tuple(row.get(column) for column in SEGMENT_COLUMNS), []).append(i)
    if len(segments) < count:
        raise ValueError(
            f"cannot divide {len(segments)} segments into {count} folds: give fewer folds, or more ratings"
        )
    groups = list(segments.values())
    random.Random(seed).shuffle(groups)
    folds: list[list[int]] = [[] for _ in range(count)]
    for group in groups:
        min(folds, key=len).extend(group)  # the smallest fold so far
    return [sorted(fold) for fold in folds]


def connected_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = SEGMENT_COLUMNS) -> list[list[int]]:
    """Group the rows that share a segment, directly or through others.

    Args:
        rows: ratings.
        columns: columns of the segments.

    Returns:
        Lists of row indices, in the order of their first row.
    """
    # Union-find: each row points to an earlier row of its group, and the first row of a group to itself.
    parent = list(range(len(rows)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first_row: dict[str, int] = {}
    for i, row in enumerate(rows):
        for segment in _segments(row, columns):
            a, b = root(i), root(first_row.setdefault(segment, i))
            parent[max(a, b)] = min(a, b)
    groups: dict[int, list[int]] = {}
    for i in range(len(rows)):
        groups.setdefault(root(i), []).append(i)
    return list(groups.values())


def _segments(row: Mapping[str, Any], columns: Sequence[str]) -> Iterable[str]:
    for column in columns:
        value = row.get(column) or ()
        for text in (value,) if isinstance(value, str) else value:
            if segment := " ".join(text.casefold().split()):
                yield segment
