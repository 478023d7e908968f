"""Compare systems on one test set: means with intervals, paired tests, and the segments where they differ most."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.calibration import FEWEST_SEGMENTS, Preference
from bleurt_repro.metric.compare.overlap import Overlap, overlap
from bleurt_repro.metric.files.tables import markdown_table
from bleurt_repro.metric.inputs import check_references, check_same_length, check_texts
from bleurt_repro.metric.scorer import ScoringResult
from bleurt_repro.metric.statistics import (
    CONFIDENCE,
    CONVENTION,
    RESAMPLES,
    TWO_SIDED,
    PairedTest,
    interval,
    paired_test,
    resampled_means,
    two_sided_p_values,
)

# A million drawn test sets fix a p-value to three digits; more would only take memory and hours.
MOST_RESAMPLES = 1_000_000
# In a notebook: how many segments, and how many characters of a text.
SHOWN, LONGEST_SHOWN = 5, 200
# tabulate's names for the forms of a table besides Markdown.
TABLE_FORMS = {"latex": "latex_booktabs", "html": "html"}
# Characters that Markdown reads as formatting; `markdown_table` escapes those that end a cell.
_MARKDOWN = re.compile(r"[\\`*_\[\]<>~#]")


class Scores(Protocol):
    """What a comparison needs of a scorer: `BleurtScorer` and anything with its `compute`.

    If it has a `reliability`, as `BleurtScorer` does, that says which system people would prefer.
    """

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
        resamples, confidence, seed: of the bootstrap, and of the exchanges of the two-sided test.
        two_sided: how two-sided p-values are computed.
        preferred: what the probabilities that people prefer a system were fitted on; None if the checkpoint has no such fit.
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
        """Return the comparison as what JSON can hold."""
        return asdict(self)

    def to_markdown(self) -> str:
        """Return the figures of the systems and their tests as Markdown tables, and how they were computed."""
        notes = "\n".join(f"- {name}: `{text}`" for name, text in self._notes().items())
        return "\n\n".join([*self._tables("markdown"), notes]) + "\n"

    def to_latex(self) -> str:
        """Return the same tables for LaTeX with the package booktabs; how they were computed stands in comments."""
        notes = [f"% {name}: {text}" for name, text in self._notes().items()]
        return "\n".join(["% bleurt-repro compare", *notes, "\n\n".join(self._tables("latex"))]) + "\n"

    def __repr__(self) -> str:
        means = ", ".join(f"{system.name}: {system.mean:.4f}" for system in self.systems)
        return f"Comparison({means}; {len(self.segments)} segments)"

    def _repr_html_(self) -> str:
        """Return the tables, and the segments that differ most, for a notebook."""
        shown = self.segments[:SHOWN]
        header = ["segment", "spread", "reference", *(system.name for system in self.systems)]
        rows = [
            [segment.number, f"{segment.spread:.4f}", _clipped(segment.references[0])]
            + [f"{score:.4f} {_clipped(text)}" for score, text in zip(segment.scores, segment.candidates, strict=True)]
            for segment in shown
        ]
        notes = "<br>".join(escape(f"{name}: {text}") for name, text in self._notes().items())
        largest = f"<p>The {len(shown)} of {len(self.segments)} segments that differ most:</p>"
        return "\n".join([*self._tables("html"), largest, table_text("html", header, rows, "left"), f"<p>{notes}</p>"])

    def _tables(self, form: str) -> list[str]:
        share = f"{self.confidence:.0%} interval"
        systems = [
            [
                own.name,
                f"{own.mean:.4f}",
                bounds(own.low, own.high),
                *(f"{x:.2f}" for x in (own.sentbleu, own.bleu, own.chrf)),
            ]
            for own in sorted(self.systems, key=lambda system: -system.mean)
        ]
        tests = [
            [f"{own.first} - {own.second}", f"{own.difference:+.4f}", bounds(own.low, own.high)]
            + ["" if p is None else f"{p:.4f}" for p in (own.p_value, own.p_two_sided)]
            + [own.wins, own.losses, own.ties]
            + ([] if self.preferred is None else ["" if own.preferred is None else f"{own.preferred:.2f}"])
            for own in self.tests
        ]
        header = ["systems", "difference", share, "p", "two-sided p", "higher", "lower", "same"]
        header += [] if self.preferred is None else ["P(people prefer it)"]
        return [
            table_text(form, ["system", "mean", share, "sentBLEU", "BLEU", "chrF"], systems),
            table_text(form, header, tests),
        ]

    def _notes(self) -> dict[str, str]:
        count = f"{self.resamples} resamples, not corrected for several tests"
        notes = {"p": f"{self.convention}; {count}", "two-sided p": f"{self.two_sided}; {count}"}
        notes |= {} if self.preferred is None else {"P(people prefer it)": self.preferred}
        notes |= self.signatures
        return {name: one_line(text) for name, text in notes.items()}


def table_text(form: str, header: Sequence[str], rows: Iterable[Sequence[object]], align: str = "right") -> str:
    """Lay out a table in which every cell is shown as the text that it is.

    Args:
        form: "markdown", "html", or "latex" with the package booktabs.
        header: names of the columns.
        rows: their cells, at least one row.
        align: of all columns but the first, which is to the left.
    """
    from tabulate import tabulate

    table = [[one_line(str(cell)) for cell in row] for row in (header, *rows)]
    if form == "markdown":
        head, *cells = ([_MARKDOWN.sub(r"\\\g<0>", cell) for cell in row] for row in table)
        return markdown_table(head, cells, align)
    columns = ("left", *[align] * (len(header) - 1))  # tabulate escapes in these two forms
    return str(tabulate(table[1:], table[0], TABLE_FORMS[form], disable_numparse=True, colalign=columns))


def one_line(text: str) -> str:
    """Return a text without line ends and the control characters that a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def bounds(low: float | None, high: float | None) -> str:
    """Return the ends of an interval as text."""
    return "no interval" if low is None or high is None else f"{low:.4f} to {high:.4f}"


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "\N{HORIZONTAL ELLIPSIS}"


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
    fitted = getattr(scorer, "reliability", None)
    preference = None if fitted is None else fitted.preference
    return Comparison(
        systems=[
            _system(name, results[name], overlaps[name], *bound) for name, bound in zip(texts, bounds, strict=True)
        ],
        tests=_tests(list(texts), scores, means, confidence, seed, preference),
        segments=_segments(several, sources, list(texts.values()), scores, list(overlaps.values())),
        signatures={
            "BLEURT": next(iter(results.values())).signature,
            **next(iter(overlaps.values())).signatures,
        },
        convention=CONVENTION,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
        preferred=None if fitted is None or preference is None else _fitted_on(fitted.source),
    )


def _fitted_on(source: Mapping[str, Any]) -> str:
    return (
        f"by the difference and its standard error, fitted on pairs of systems in {source.get('file', 'a file')} "
        f"({source.get('ratings', 'unknown')} ratings); from {FEWEST_SEGMENTS} segments"
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
    names: list[str],
    scores: NDArray[np.float64],
    means: NDArray[np.float64],
    confidence: float,
    seed: int,
    preference: Preference | None,
) -> list[PairedTest]:
    pairs = list(itertools.combinations(range(len(names)), 2))
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
            candidates=[own[i] for own in candidates],
            scores=scores[:, i].tolist(),
            sentbleu=[own.sentbleu[i] for own in overlaps],
            spread=float(np.ptp(scores[:, i])),
        )
        for i in range(len(references))
    ]
    return sorted(segments, key=lambda segment: -segment.spread)
