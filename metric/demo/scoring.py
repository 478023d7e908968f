"""The demo's scorer: one model for all visitors, progress for long inputs, a percentile where there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bleurt_repro.metric.scorer import BleurtScorer, ScoringResult

# Candidates scored between two reports of progress: a few seconds of work.
CHUNK = 100


def load_scorer(checkpoint: str, device: str | None = None) -> BleurtScorer:
    """Load the checkpoint that the demo shows, and score once.

    The first call sets the tokenizer up; later ones only read, so that requests may share the scorer.
    """
    scorer = BleurtScorer(checkpoint, device=device, progress=False)
    sources = ["Bonjour."] if scorer.layout.reads_sources else None
    scorer.compute(references=["Hello."], candidates=["Hello."], sources=sources)
    return scorer


@dataclass(frozen=True)
class ReportingScorer:
    """A scorer that tells how far it has come.

    Attributes:
        scorer: what scores.
        report: called after each chunk with the number of candidates in it.
    """

    scorer: BleurtScorer
    report: Callable[[int], None]

    def compute(
        self, *, references: Any, candidates: Sequence[str], sources: Sequence[str] | None = None
    ) -> ScoringResult:
        """Score as `BleurtScorer.compute` does, in chunks."""
        scores: list[float] = []
        truncated, signature = 0, self.scorer.signature
        for start in range(0, len(candidates), CHUNK):
            part = slice(start, start + CHUNK)
            result = self.scorer.compute(
                references=references[part],
                candidates=candidates[part],
                sources=None if sources is None else sources[part],
            )
            scores += result.scores
            truncated += result.truncated
            self.report(len(result.scores))
        mean = sum(scores) / len(scores) if scores else None
        return ScoringResult(scores, mean, signature, truncated)


def percentile(scorer: BleurtScorer, score: float) -> float | None:
    """Give the percentile, among human ratings, of what has this score; None where the checkpoint has no calibration."""
    return None if scorer.calibration is None else scorer.calibration([score])[0]
