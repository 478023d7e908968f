"""Compare systems on one test set: means with intervals, paired tests, and the segments where they differ most."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.compare.overlap import Overlap, overlap
from bleurt_repro.metric.inputs import check_references, check_same_length, check_texts
from bleurt_repro.metric.scorer import ScoringResult
from bleurt_repro.metric.statistics import (
    CONFIDENCE,
    CONVENTION,
    RESAMPLES,
    PairedTest,
    interval,
    paired_test,
    resampled_means,
)

# A million drawn test sets fix a p-value to three digits; more would only take memory and hours.
MOST_RESAMPLES = 1_000_000


class Scores(Protocol):
    """What a comparison needs of a scorer: `BleurtScorer` and anything with its `compute`."""

    @property
    def compute(self) -> Callable[..., ScoringResult]:
        """Score each candidate, by `references=`, `candidates=` and, where they are read, `sources=`."""
        ...


@dataclass(frozen=True)
class System:
    """One system's figures.

    Attributes:
        name: what it was called.
        mean: its corpus score, the mean over segments.
        low, high: the mean's bootstrap interval; None for a single segment.
        sentbleu, bleu, chrf: mean sentence BLEU, corpus BLEU and corpus chrF, 0 to 100.
        truncated: pairs longer than the checkpoint reads.
        warnings: what a reader of the scores must know, a sentence each.
    """

    name: str
    mean: float
    low: float | None
    high: float | None
    sentbleu: float
    bleu: float
    chrf: float
    truncated: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Segment:
    """One segment of the test set; what is by system stands in the systems' order.

    Attributes:
        number: from 1, in the files' order.
        references, source: what it was judged by; source is None where the checkpoint reads none.
        candidates, scores, sentbleu: text, score and sentence BLEU of each system.
        spread: the highest score minus the lowest.
    """

    number: int
    references: list[str]
    source: str | None
    candidates: list[str]
    scores: list[float]
    sentbleu: list[float]
    spread: float


@dataclass(frozen=True)
class Comparison:
    """Systems on one test set.

    Attributes:
        systems: in the order given.
        tests: every two of them.
        segments: largest spread first.
        signatures: of the score and, as sacreBLEU writes them, of the overlap metrics.
        convention: how p-values are computed; they are not corrected for the number of tests.
        resamples, confidence, seed: of the bootstrap.
    """

    systems: list[System]
    tests: list[PairedTest]
    segments: list[Segment]
    signatures: dict[str, str]
    convention: str
    resamples: int
    confidence: float
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as what JSON can hold."""
        return asdict(self)


def compare(
    scorer: Scores,
    references: Any,
    systems: Mapping[str, Sequence[str]],
    sources: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    aggregate: str = "max",
) -> Comparison:
    """Score systems on the same segments and test their differences.

    Args:
        scorer: what scores.
        references: one string a segment, or one list of strings a segment.
        systems: the candidates of each system by its name, two systems or more.
        sources: the texts they were made from, for a checkpoint that reads them.
        resamples, confidence, seed: of the bootstrap.
        aggregate: with several references, as in `BleurtScorer.score`.

    Raises:
        TypeError: if an item is no string.
        ValueError: if there are fewer than two systems or no segments, or if lengths differ.
    """
    if not 1 <= resamples <= MOST_RESAMPLES:
        raise ValueError(f"resamples must be from 1 to {MOST_RESAMPLES:,}, found {resamples:,}")
    several, texts = _checked(references, systems, sources)
    options = {} if aggregate == "max" else {"aggregate": aggregate}
    results = {
        name: scorer.compute(references=several, candidates=candidates, sources=sources, **options)
        for name, candidates in texts.items()
    }
    overlaps = {name: overlap(several, candidates) for name, candidates in texts.items()}
    scores = np.array([result.scores for result in results.values()], dtype=np.float64)
    means = resampled_means(scores, resamples, seed)
    bounds = [interval(column, confidence) if len(several) > 1 else (None, None) for column in means.T]
    return Comparison(
        systems=[
            _system(name, results[name], overlaps[name], *bound) for name, bound in zip(texts, bounds, strict=True)
        ],
        tests=_tests(list(texts), scores, means, confidence),
        segments=_segments(several, sources, list(texts.values()), scores, list(overlaps.values())),
        signatures={
            "BLEURT": next(iter(results.values())).signature,
            **next(iter(overlaps.values())).signatures,
        },
        convention=CONVENTION,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
    )


def _checked(
    references: Any, systems: Mapping[str, Sequence[str]], sources: Sequence[str] | None
) -> tuple[list[list[str]], dict[str, list[str]]]:
    if len(systems) < 2:
        raise ValueError(f"a comparison takes two systems or more, found {len(systems)}")
    several = check_references(references)
    texts = {name: check_texts(name, candidates) for name, candidates in systems.items()}
    counts = {"references": len(several), **{f"candidates of {name}": len(own) for name, own in texts.items()}}
    if sources is not None:
        counts["sources"] = len(check_texts("sources", sources))
    check_same_length(counts)
    if not several:
        raise ValueError("nothing to compare: expected at least one segment, found none")
    return several, texts


def _system(name: str, result: ScoringResult, own: Overlap, low: float | None, high: float | None) -> System:
    mean = float(np.mean(result.scores))
    return System(name, mean, low, high, own.mean_sentbleu, own.bleu, own.chrf, result.truncated, result.warnings)


def _tests(
    names: list[str], scores: NDArray[np.float64], means: NDArray[np.float64], confidence: float
) -> list[PairedTest]:
    return [
        paired_test((names[i], names[j]), (scores[i], scores[j]), means[:, [i, j]], confidence)
        for i, j in itertools.combinations(range(len(names)), 2)
    ]


def _segments(
    references: list[list[str]],
    sources: Sequence[str] | None,
    candidates: list[list[str]],
    scores: NDArray[np.float64],
    overlaps: list[Overlap],
) -> list[Segment]:
    segments = [
        Segment(
            number=i + 1,
            references=references[i],
            source=None if sources is None else sources[i],
            candidates=[own[i] for own in candidates],
            scores=scores[:, i].tolist(),
            sentbleu=[own.sentbleu[i] for own in overlaps],
            spread=float(np.ptp(scores[:, i])),
        )
        for i in range(len(references))
    ]
    return sorted(segments, key=lambda segment: -segment.spread)
