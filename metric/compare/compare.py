"""Compare systems on one test set: mean scores with intervals, paired tests, and the segments that differ most."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from html import escape
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.calibration import FEWEST_SEGMENTS, Preference
from bleurt_repro.metric.compare.overlap import MetricScore, Overlap, overlap, overlap_tests
from bleurt_repro.metric.compare.table import Column, SystemTable, one_line
from bleurt_repro.metric.inputs import check_references, check_same_length, check_texts
from bleurt_repro.metric.scorer import ScoringResult
from bleurt_repro.metric.statistics import (
    CONFIDENCE,
    CONVENTION,
    RESAMPLES,
    TWO_SIDED,
    PairedTest,
    interval,
    interval_text,
    paired_test,
    resampled_means,
    two_sided_p_values,
)

# A million resamples fix a p-value to three digits; more would only take memory and hours.
MOST_RESAMPLES = 1_000_000
# Number of segments, and of characters of a text, that a notebook shows.
NOTEBOOK_SEGMENTS, NOTEBOOK_CHARACTERS = 5, 200


class ScorerLike(Protocol):
    """What a comparison needs of a scorer: `BleurtScorer`, or any object with its `compute_systems`.

    If it has a `reliability`, as `BleurtScorer` has, the comparison holds P(people prefer a system).
    """

    @property
    def compute_systems(self) -> Callable[..., dict[str, ScoringResult]]:
        """Score each candidate, given `references=`, `systems=` and, for a checkpoint that reads them, `sources=`."""
        ...


@dataclass(frozen=True)
class System:
    """Scores of one system on the test set.

    Attributes:
        name: name of the system.
        mean: mean score over the segments.
        low, high: bootstrap interval of the mean; None for a single segment.
        sentence_bleu, bleu, chrf_plus_plus: mean sentence BLEU, corpus BLEU and corpus chrF++, 0 to 100.
        truncated: number of pairs longer than the checkpoint reads.
        warnings: sentences on scores that may mislead.
        precisions: BLEU's modified n-gram precisions of the corpus, from unigrams to 4-grams, 0 to 100.
        brevity_penalty: factor of BLEU, below 1 if the candidates are shorter than the references.
    """

    name: str
    mean: float
    low: float | None
    high: float | None
    sentence_bleu: float
    bleu: float
    chrf_plus_plus: float
    truncated: int
    warnings: tuple[str, ...] = ()
    precisions: tuple[float, ...] = ()
    brevity_penalty: float = 1.0


@dataclass(frozen=True)
class Segment:
    """One segment of the test set; lists have one item per system, in the order of the systems.

    Attributes:
        number: number of the segment in the files, from 1.
        references, source: texts that the candidates were compared with; source is None if the checkpoint reads none.
        candidates, scores, sentence_bleu: text, score and sentence BLEU of each system.
        spread: highest score minus lowest score.
    """

    number: int
    references: list[str]
    source: str | None
    candidates: list[str]
    scores: list[float]
    sentence_bleu: list[float]
    spread: float


@dataclass(frozen=True)
class Comparison:
    """Comparison of systems on one test set, or scores of one system.

    Attributes:
        systems: scores of each system, in the order of the input.
        tests: paired tests of every two systems; none of a single system.
        segments: all segments, those with the largest spread first.
        signatures: signature of the score, and sacreBLEU's signatures of sentence BLEU, BLEU and chrF++.
        convention: how p-values are computed; they are not corrected for the number of tests.
        resamples: number of bootstrap resamples, and of exchanges of the two-sided test.
        confidence: confidence level of the intervals.
        seed: seed of the resampling.
        two_sided: how two-sided p-values are computed.
        preferred: data that P(people prefer a system) was fitted on; None if the checkpoint has no such fit.
    """

    systems: list[System]
    tests: list[PairedTest]
    segments: list[Segment]
    signatures: dict[str, str]
    convention: str
    resamples: int
    confidence: float
    seed: int
    two_sided: str = TWO_SIDED
    preferred: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as values that JSON can hold."""
        return asdict(self)

    @cached_property
    def table(self) -> SystemTable:
        """BLEURT, BLEU and chrF++ of each system, and tests against the first one, which take a few seconds per system."""
        # The first tests are those of the first system against each other one.
        p_values = [None, *(test.p_two_sided for test in self.tests[: len(self.systems) - 1])]
        scores = [
            MetricScore(system.mean, system.low, system.high, p)
            for system, p in zip(self.systems, p_values, strict=True)
        ]
        resampling = f"ar:{self.resamples}|bs:{self.resamples}|seed:{self.seed}"
        columns = [Column("BLEURT", scores, one_line(f"{self.signatures['BLEURT']}|{resampling}"), 3)]
        segments = sorted(self.segments, key=lambda segment: segment.number)
        texts = zip(*(segment.candidates for segment in segments), strict=True)
        systems = {system.name: candidates for system, candidates in zip(self.systems, texts, strict=True)}
        tests = overlap_tests([segment.references for segment in segments], systems)
        columns += [Column(metric, tested, signature, 1) for metric, (tested, signature) in tests.items()]
        return SystemTable([one_line(name) for name in systems], columns, len(segments), self.confidence)

    def to_markdown(self) -> str:
        """Return `table` as Markdown."""
        return self.table.to_markdown()

    def to_latex(self) -> str:
        """Return `table` for LaTeX with the package booktabs."""
        return self.table.to_latex()

    def __repr__(self) -> str:
        means = ", ".join(f"{system.name}: {system.mean:.4f}" for system in self.systems)
        return f"Comparison({means}; {len(self.segments)} segments)"

    def _repr_html_(self) -> str:
        """Return the tables, and the segments that differ most, for a notebook."""
        top = self.segments[:NOTEBOOK_SEGMENTS]
        header = ["segment", "spread", "reference", *(system.name for system in self.systems)]
        rows = [
            [segment.number, f"{segment.spread:.4f}", _clip(segment.references[0])]
            + [f"{score:.4f} {_clip(text)}" for score, text in zip(segment.scores, segment.candidates, strict=True)]
            for segment in top
        ]
        notes = "<br>".join(escape(f"{name}: {text}") for name, text in self._notes().items())
        largest = f"<p>The {len(top)} of {len(self.segments)} segments that differ most:</p>"
        tables = (
            [*self._html_tables(), largest, _html_table(header, rows, "left")] if self.tests else self._html_tables()
        )
        return "\n".join([*tables, f"<p>{notes}</p>"])

    def _html_tables(self) -> list[str]:
        share = f"{self.confidence:.0%} interval"
        systems = [
            [system.name, f"{system.mean:.4f}", interval_text(system.low, system.high)]
            + [f"{overlap:.2f}" for overlap in (system.sentence_bleu, system.bleu, system.chrf_plus_plus)]
            for system in sorted(self.systems, key=lambda system: -system.mean)
        ]
        tests = [
            [f"{test.first} - {test.second}", f"{test.difference:+.4f}", interval_text(test.low, test.high)]
            + ["" if p is None else p_text(p) for p in (test.p_value, test.p_two_sided)]
            + [test.wins, test.losses, test.ties]
            + ([] if self.preferred is None else ["" if test.preferred is None else f"{test.preferred:.2f}"])
            for test in self.tests
        ]
        header = ["systems", "difference", share, "one-sided p", "two-sided p", "higher", "lower", "same"]
        header += [] if self.preferred is None else ["P(people prefer it)"]
        of_systems = _html_table(["system", "mean", share, "sentence BLEU", "BLEU", "chrF++"], systems)
        return [of_systems, _html_table(header, tests)] if tests else [of_systems]

    def _notes(self) -> dict[str, str]:
        count = f"{self.resamples} resamples, not corrected for several tests"
        notes = {}
        if self.tests:
            notes = {"one-sided p": f"{self.convention}; {count}", "two-sided p": f"{self.two_sided}; {count}"}
            notes |= {} if self.preferred is None else {"P(people prefer it)": self.preferred}
        notes |= self.signatures
        return {name: one_line(text) for name, text in notes.items()}


def _html_table(header: Sequence[str], rows: Iterable[Sequence[object]], align: str = "right") -> str:
    """Return a table in HTML in which no cell is read as markup.

    Args:
        header: names of the columns.
        rows: cells of each row, at least one row.
        align: "left" or "right", for all columns but the first.
    """
    from tabulate import tabulate

    head, *cells = ([one_line(str(cell)) for cell in row] for row in (header, *rows))
    columns = ("left", *[align] * (len(header) - 1))
    return str(tabulate(cells, head, "html", disable_numparse=True, colalign=columns))  # escapes the cells


def p_text(p: float) -> str:
    """Return a p-value as text: four decimals, or "< 0.001"."""
    return "< 0.001" if p < 0.001 else f"{p:.4f}"


def _clip(text: str) -> str:
    return text if len(text) <= NOTEBOOK_CHARACTERS else text[:NOTEBOOK_CHARACTERS] + "\N{HORIZONTAL ELLIPSIS}"


def compare(
    scorer: ScorerLike,
    references: Any,
    systems: Mapping[str, Sequence[str]],
    sources: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    aggregate: str = "max",
) -> Comparison:
    """Score systems on the same segments and test their differences; score a single system without tests.

    A candidate that is the same text in several systems has the same score in all of them.

    Args:
        scorer: `BleurtScorer`, or any object with its `compute_systems`.
        references: one string per segment, or one list of strings per segment.
        systems: candidates of each system by its name.
        sources: one source per segment, for a checkpoint that reads sources.
        resamples: number of bootstrap resamples.
        confidence: confidence level of the intervals.
        seed: seed of the resampling.
        aggregate: how to combine the scores of several references, as in `BleurtScorer.score`.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if there are no systems or no segments, or if lengths differ.
    """
    if not 1 <= resamples <= MOST_RESAMPLES:
        raise ValueError(f"resamples must be from 1 to {MOST_RESAMPLES:,}, found {resamples:,}")
    reference_lists, candidates = _check_texts(references, systems, sources)
    options = {} if aggregate == "max" else {"aggregate": aggregate}
    results = list(
        scorer.compute_systems(references=reference_lists, systems=candidates, sources=sources, **options).values()
    )
    scores = np.array([result.scores for result in results], dtype=np.float64)  # (systems, segments)
    overlaps = [overlap(reference_lists, texts) for texts in candidates.values()]
    # Resample the test set once, so that systems and tests share the resamples.
    means = resampled_means(scores, resamples, seed)  # (resamples, systems)
    has_interval = len(reference_lists) > 1
    intervals = [interval(column, confidence) if has_interval else (None, None) for column in means.T]
    reliability = getattr(scorer, "reliability", None)
    preference = None if reliability is None else reliability.preference
    rows = zip(candidates, scores, results, overlaps, intervals, strict=True)
    return Comparison(
        systems=[_system(*row) for row in rows],
        tests=_tests(list(candidates), scores, means, confidence, seed, preference),
        segments=_segments(reference_lists, sources, list(candidates.values()), scores, overlaps),
        signatures={"BLEURT": results[0].signature, **overlaps[0].signatures},
        convention=CONVENTION,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
        preferred=None if reliability is None else _describe_fit(reliability.source),
    )


def _describe_fit(source: Mapping[str, Any]) -> str:
    ratings = source.get("ratings")
    count = f"{ratings:,}" if isinstance(ratings, int) else "an unknown number of"
    return (
        f"estimated from the difference and its standard error, by a fit to systems with {count} human ratings; needs at "
        f"least {FEWEST_SEGMENTS} segments"
    )


def _check_texts(
    references: Any, systems: Mapping[str, Sequence[str]], sources: Sequence[str] | None
) -> tuple[list[list[str]], dict[str, list[str]]]:
    if not systems:
        raise ValueError("nothing to compare: expected at least one system, found none")
    reference_lists = check_references(references)
    candidates = {name: check_texts(name, texts) for name, texts in systems.items()}
    counts = {"references": len(reference_lists)}
    counts |= {f"candidates of {name}": len(texts) for name, texts in candidates.items()}
    if sources is not None:
        counts["sources"] = len(check_texts("sources", sources))
    check_same_length(counts)
    if not reference_lists:
        raise ValueError("nothing to compare: expected at least one segment, found none")
    return reference_lists, candidates


def _system(
    name: str,
    scores: NDArray[np.float64],
    result: ScoringResult,
    overlaps: Overlap,
    bootstrap: tuple[float | None, float | None],
) -> System:
    return System(
        name,
        float(np.mean(scores)),
        *bootstrap,
        sentence_bleu=overlaps.mean_sentence_bleu,
        bleu=overlaps.bleu,
        chrf_plus_plus=overlaps.chrf_plus_plus,
        truncated=result.truncated,
        warnings=result.warnings,
        precisions=overlaps.precisions,
        brevity_penalty=overlaps.brevity_penalty,
    )


def _tests(
    names: list[str],
    scores: NDArray[np.float64],
    means: NDArray[np.float64],
    confidence: float,
    seed: int,
    preference: Preference | None,
) -> list[PairedTest]:
    pairs = list(itertools.combinations(range(len(names)), 2))
    if not pairs:
        return []
    first, second = np.array(pairs).T
    two_sided = two_sided_p_values(scores[first] - scores[second], len(means), seed)
    tests = [
        paired_test((names[i], names[j]), (scores[i], scores[j]), means[:, [i, j]], confidence, float(p))
        for (i, j), p in zip(pairs, two_sided, strict=True)
    ]
    if preference is None:
        return tests
    preferred = [preference.of_scores(scores[i], scores[j]) for i, j in pairs]
    return [replace(test, preferred=p) for test, p in zip(tests, preferred, strict=True)]


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
            candidates=[texts[i] for texts in candidates],
            scores=scores[:, i].tolist(),
            sentence_bleu=[metrics.sentence_bleu[i] for metrics in overlaps],
            spread=float(np.ptp(scores[:, i])),
        )
        for i in range(len(references))
    ]
    return sorted(segments, key=lambda segment: -segment.spread)
