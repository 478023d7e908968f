"""Choose the best of several candidates per segment: reranking against references, or minimum Bayes risk (MBR).

MBR takes the candidates for samples of one model and chooses the one with the highest expected score, which is its mean
score with each of the other samples as the reference (Eikema and Aziz, 2020,
https://aclanthology.org/2020.coling-main.398). Equal samples are scored once and weighted by their number. Pruning
follows Cheng and Vlachos (2023, https://aclanthology.org/2023.emnlp-main.767).
"""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.metric.bulk.scoring import NO_MARK
from bleurt_repro.metric.files.records import read_records
from bleurt_repro.metric.files.texts import read_segments
from bleurt_repro.metric.files.writing import json_lines, validate_output, write_text
from bleurt_repro.metric.inputs import check_list, check_same_length, check_texts, is_blank
from bleurt_repro.metric.statistics import Values

if TYPE_CHECKING:
    from bleurt_repro.metric.options import ScoreOptions
    from bleurt_repro.metric.scorer import BleurtScorer, ScoringResult

# Number of pairs up to which segments are scored together, so that pairs of one length meet.
PAIRS_PER_PASS = 8192
# Confidence and resamples of pruning, the number of references of the first round, and the factor by which it grows. Cheng
# and Vlachos (section 4) have 0.99, 500, 8 and 2: these need more pairs for the same choice as without pruning.
CONFIDENCE, RESAMPLES = 0.999, 1000
FIRST_ROUND, GROWTH = 10, 1.25
SEED = 0
# How an output of `choose --json` begins.
OUR_CHOICES = re.compile(rb"\{\"index\": ")


@dataclass(frozen=True)
class Choice:
    """The chosen candidate of one segment.

    Attributes:
        index: index of the chosen candidate; of equal candidates or equal scores, the first.
        text: the chosen candidate.
        scores: score of each candidate, for MBR its expected score. None for a candidate that was pruned, that is blank,
            or that has no other sample to be scored with.
        pairs: number of different pairs that were scored.
    """

    index: int
    text: str
    scores: list[float | None]
    pairs: int


def choose(
    scorer: BleurtScorer,
    candidates: Sequence[Sequence[str]],
    references: Sequence[Any] | None = None,
    sources: Sequence[str] | None = None,
    aggregate: str = "max",
    prune: bool = False,
) -> list[Choice]:
    """Choose one candidate per segment.

    Args:
        scorer: scorer of a checkpoint that reads references.
        candidates: one list of texts per segment. Without references they are samples, each as often as it was drawn; a
            blank one is chosen only if all are blank.
        references: one string, or one list of strings, per segment; None chooses by MBR.
        sources: one string per segment, for a checkpoint that reads sources.
        aggregate: how to combine the scores of several references of a segment, "max" or "mean".
        prune: whether MBR leaves out candidates that are unlikely to win once some references are scored. Fewer pairs
            are scored, and the choice may differ where expected scores are close.

    Returns:
        one choice per segment, in order.

    Raises:
        TypeError: if the candidates of a segment are a bare string, or a text is not a string.
        ValueError: if lists differ in length, a segment has no candidate, or the texts do not fit the checkpoint.
    """
    segments = [check_texts(f"candidates[{i}]", texts) for i, texts in enumerate(check_list("candidates", candidates))]
    if not all(segments):
        raise ValueError(f"candidates[{segments.index([])}] is empty: every segment needs at least one candidate")
    columns: dict[str, list[Any]] = {"candidates": segments}
    for name, texts in (("references", references), ("sources", sources)):
        if texts is not None:
            columns[name] = check_list(name, texts)
    check_same_length({name: len(column) for name, column in columns.items()})
    if references is not None and prune:
        raise ValueError("prune is for a choice among samples: leave out prune, or leave out the references")
    if references is None and not scorer.layout.reads_references:
        raise ValueError(
            f"checkpoint {scorer.checkpoint} reads no references: samples cannot be the references of each other; take a "
            "checkpoint that reads them"
        )
    run = _Run(scorer, aggregate)
    choices: list[Choice] = []
    with scorer.progress_bar(len(segments), "segment") as bar:
        for start, end in _passes([len(texts) ** (1 if references is not None else 2) for texts in segments]):
            texts_of_pass = {name: column[start:end] for name, column in columns.items()}
            choices += _rerank(run, **texts_of_pass) if references is not None else _mbr(run, prune, **texts_of_pass)
            bar.update(end - start)
    run.warn()
    return choices


def _passes(pairs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return the first segment of each pass and the one after its last.

    Args:
        pairs: largest number of pairs of each segment.
    """
    start = total = 0
    for i, count in enumerate(pairs):
        if total and total + count > PAIRS_PER_PASS:
            yield start, i
            start, total = i, 0
        total += count
    if total:
        yield start, len(pairs)


class _Run:
    """Score pairs in several calls, and warn once about all of them."""

    def __init__(self, scorer: BleurtScorer, aggregate: str) -> None:
        self._scorer, self._options = scorer, replace(scorer.options, aggregate=aggregate)
        scorer.check_options(self._options)
        self._counts = dict.fromkeys(("pairs", "truncated", "unread", "blank"), 0)

    def score(self, **texts: Any) -> ScoringResult:
        """Score candidates, each with its references and source."""
        result = self._scorer.compute_quietly(**texts, options=self._options)
        for name in self._counts:
            self._counts[name] += getattr(result, name)
        return result

    def warn(self) -> None:
        """Warn about pairs whose scores need care."""
        for message in self._scorer.warnings_about(**self._counts):
            warnings.warn(message, stacklevel=3)


# --- against references --------------------------------------------------------------------------------------------


def _rerank(run: _Run, candidates: list[list[str]], **others: list[Any]) -> Iterator[Choice]:
    """Choose the candidate of each segment with the highest score against the segment's references."""
    texts = {
        name: [text for text, segment in zip(column, candidates, strict=True) for _ in segment]
        for name, column in others.items()
    }
    scores = iter(run.score(candidates=[text for segment in candidates for text in segment], **texts).scores)
    for segment, references in zip(candidates, others["references"], strict=True):
        values = [next(scores) for _ in segment]
        index = int(np.argmax(values))
        reference_count = 1 if isinstance(references, str) else len(set(references))
        yield Choice(index, segment[index], list(values), len(set(segment)) * reference_count)


# --- minimum Bayes risk --------------------------------------------------------------------------------------------


def _mbr(run: _Run, prune: bool, candidates: list[list[str]], sources: list[str] | None = None) -> Iterator[Choice]:
    """Choose the candidate of each segment with the highest expected score over the segment's other samples."""
    segments = [_Samples(texts, prune) for texts in candidates]
    unfinished = [i for i, segment in enumerate(segments) if not segment.finished]
    while unfinished:
        # One round: the pairs of all segments are scored in one call.
        pairs = [(i, row, column) for i in unfinished for row, column in segments[i].next_pairs()]
        texts = {
            "candidates": [segments[i].texts[row] for i, row, _ in pairs],
            "references": [segments[i].texts[column] for i, _, column in pairs],
        }
        if sources is not None:
            texts["sources"] = [sources[i] for i, _, _ in pairs]
        for (i, row, column), score in zip(pairs, run.score(**texts).scores, strict=True):
            segments[i].scores[row, column] = score
        for i in unfinished:
            segments[i].prune()
        unfinished = [i for i in unfinished if not segments[i].finished]
    for texts_of_segment, segment in zip(candidates, segments, strict=True):
        yield segment.choice(texts_of_segment)


class _Samples:
    """The samples of one segment, and the scores of their pairs as far as they are computed.

    Args:
        candidates: all samples, at least one.
        prune: whether candidates that are unlikely to win are left out after each round.

    Attributes:
        texts: different samples; without blank ones, unless all are blank.
        scores: score of each text with each text as its reference, (texts, texts); NaN if not computed.
    """

    def __init__(self, candidates: list[str], prune: bool) -> None:
        samples = [text for text in candidates if not is_blank(text)] or candidates
        self.texts = list(dict.fromkeys(samples))
        self.scores = np.full((len(self.texts), len(self.texts)), np.nan)
        # The references are the samples in a random order, as indices of texts: a beam or a sorted list is no sample.
        numbers = {text: i for i, text in enumerate(self.texts)}
        order = np.random.default_rng(SEED).permutation(len(samples))
        self._references = np.array([numbers[samples[i]] for i in order])
        # Each text is scored with all samples but itself, (texts, samples).
        first = np.unique(self._references, return_index=True)[1]
        self._mask = np.ones((len(self.texts), len(samples)), dtype=bool)
        self._mask[np.arange(len(self.texts)), first] = False
        self._alive = np.arange(len(self.texts))
        self._size, self._prunes, self._pairs = 0, prune, 0
        self._random = np.random.default_rng(SEED)

    @property
    def finished(self) -> bool:
        """Whether no pair is left to score."""
        return (
            self._size == len(self._references) or not self._mask.any() or (self._size > 0 and len(self._alive) == 1)
        )

    def next_pairs(self) -> list[tuple[int, int]]:
        """Begin a round: return the pairs to score, each a candidate and a reference as indices of `texts`."""
        count = len(self._references)
        self._size = min(count, max(FIRST_ROUND, math.ceil(GROWTH * self._size))) if self._prunes else count
        needed = np.zeros(self.scores.shape, dtype=bool)
        rows, columns = np.nonzero(self._mask[self._alive, : self._size])
        needed[self._alive[rows], self._references[columns]] = True
        pairs = [(row, column) for row, column in np.argwhere(needed & np.isnan(self.scores)).tolist()]
        self._pairs += len(pairs)
        return pairs

    def prune(self) -> None:
        """Leave out candidates that reach the best one in at most 0.1 % of resamples (Cheng and Vlachos, algorithm 2)."""
        if not self._prunes or self._size == len(self._references):
            return
        scores, mask = self._scores_so_far()
        draws = self._random.multinomial(self._size, np.full(self._size, 1 / self._size), RESAMPLES).T
        resampled = (scores @ draws) / np.maximum(mask @ draws, 1)  # (candidates, resamples)
        best = int(np.argmax(self._expected()))
        wins = (resampled >= resampled[best]).mean(axis=1)
        self._alive = self._alive[wins > 1 - CONFIDENCE]

    def choice(self, candidates: list[str]) -> Choice:
        """Return the choice among all samples of the segment."""
        expected: dict[str, float] = {}
        if self._size:
            expected = {self.texts[i]: score for i, score in zip(self._alive, self._expected().tolist(), strict=True)}
        text = max(expected, key=expected.__getitem__) if expected else self.texts[0]
        return Choice(candidates.index(text), text, [expected.get(text) for text in candidates], self._pairs)

    def _expected(self) -> Values:
        """Return the expected score of each candidate that is left, over the references so far."""
        scores, mask = self._scores_so_far()
        return scores.sum(axis=1) / np.maximum(mask.sum(axis=1), 1)

    def _scores_so_far(self) -> tuple[Values, Values]:
        """Return the scores of the candidates that are left, 0 where masked, and the mask; (candidates, references)."""
        mask = self._mask[self._alive, : self._size]
        scores = self.scores[np.ix_(self._alive, self._references[: self._size])]
        return np.where(mask, scores, 0.0), mask.astype(float)


# --- files ---------------------------------------------------------------------------------------------------------


def choose_files(
    options: ScoreOptions,
    *,
    candidates: str,
    references: str | None = None,
    sources: str | None = None,
    output: str = "-",
    as_json: bool = False,
    prune: bool = False,
    overwrite: bool = False,
) -> str:
    """Read samples, choose one per segment, and write the chosen texts, one per line.

    Args:
        options: how to score.
        candidates: file of records with a list `candidates`: JSON lines or Parquet.
        references, sources: files of one segment per line, or of a column of CSV, TSV, JSON lines or Parquet.
        output: file to write, or "-" for standard output.
        as_json: whether to write JSON lines with index, candidate, scores and pairs instead.
        prune: as in `choose`.
        overwrite: whether to replace an output that bleurt-repro did not write.

    Returns:
        the number of pairs that were scored, and the signature, as one line.

    Raises:
        ValueError: naming file and line, if the input is malformed, or a text has a line break that lines cannot hold.
    """
    path = None
    if output != "-":
        path = validate_output(
            output, (candidates, references, sources), OUR_CHOICES if as_json else NO_MARK, overwrite
        )
    segments = [_candidates(record, f"{candidates}, {location}") for location, record in read_records(candidates)]
    if not as_json and any("\n" in text or "\r" in text for segment in segments for text in segment):
        raise ValueError(f"{candidates}: candidates with line breaks cannot be written one per line: add --json")
    from bleurt_repro.metric.scorer import BleurtScorer  # loads torch: only once the input is known to be good

    scorer = BleurtScorer.from_options(options)
    choices = choose(
        scorer,
        segments,
        None if references is None else read_segments(references, "references"),
        None if sources is None else read_segments(sources, "sources"),
        options.aggregate,
        prune,
    )
    if as_json:
        fields = [
            {"index": choice.index, "candidate": choice.text, "scores": choice.scores, "pairs": choice.pairs}
            for choice in choices
        ]
        text = "".join(json_lines(fields))
    else:
        text = "".join(f"{choice.text}\n" for choice in choices)
    if path is None:
        sys.stdout.write(text)
    else:
        write_text(path, text)
    pairs = sum(choice.pairs for choice in choices)
    inputs = [role for role in scorer.layout.inputs if role != "source" or sources is not None]
    signature = scorer.scoring_signature(options.aggregate, inputs=inputs)
    return f"{len(choices):,} segments, {pairs:,} pairs scored; {signature}"


def _candidates(record: dict[str, Any], location: str) -> list[str]:
    texts = record.get("candidates")
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f'{location}: expected "candidates", a list of at least one string; found {list(record)[:5]}')
    return texts
