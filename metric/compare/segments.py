"""Which segments to read: those with the lowest scores of a system, and mean scores by length or another group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bleurt_repro.metric.compare.attribution import word_spans
from bleurt_repro.metric.compare.compare import Comparison, Segment
from bleurt_repro.metric.statistics import mean_interval

# Words of a reference per group of lengths, and the length from which all are in one group.
LENGTH_STEP, LONG = 10, 50
# A column with more values than this is no column of groups.
MOST_GROUPS = 100


@dataclass(frozen=True)
class Group:
    """Mean scores of the segments of one group; lists have one item per system.

    Attributes:
        name: value that the segments share.
        segments: number of segments.
        means: mean score of each system.
        intervals: interval of each mean, in closed form (see `mean_interval`); (None, None) for a single segment.
    """

    name: str
    segments: int
    means: list[float]
    intervals: list[tuple[float | None, float | None]]


def lowest(comparison: Comparison, system: str, count: int) -> list[Segment]:
    """Return the segments in which a system has its lowest scores, the lowest first."""
    i = [system.name for system in comparison.systems].index(system)
    return sorted(comparison.segments, key=lambda segment: segment.scores[i])[:count]


def by_group(comparison: Comparison, values: Sequence[str]) -> list[Group]:
    """Compute the mean scores of each group of segments.

    Args:
        comparison: comparison of one or more systems.
        values: name of each segment's group, in the order of the test set.

    Returns:
        groups in the order of their names.
    """
    rows: dict[str, list[list[float]]] = {}
    for segment in comparison.segments:
        rows.setdefault(values[segment.number - 1], []).append(segment.scores)
    groups = []
    for name in sorted(rows):
        scores = np.array(rows[name])  # (segments, systems)
        sums = zip(scores.sum(axis=0).tolist(), (scores**2).sum(axis=0).tolist(), strict=True)
        intervals = [mean_interval(len(scores), *both, comparison.confidence) for both in sums]
        groups.append(Group(name, len(scores), scores.mean(axis=0).tolist(), intervals))
    return groups


def length_groups(comparison: Comparison) -> list[str]:
    """Return the group of each segment's length, in the order of the test set.

    The length is the number of words and punctuation marks of the first reference, as `word_spans` finds them.
    """
    segments = sorted(comparison.segments, key=lambda segment: segment.number)
    starts = [min(LONG, len(word_spans(segment.references[0])) // LENGTH_STEP * LENGTH_STEP) for segment in segments]
    return [f"{start} or more" if start == LONG else f"{start} to {start + LENGTH_STEP - 1}" for start in starts]
