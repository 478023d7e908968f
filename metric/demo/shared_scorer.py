"""The demo's scorer: one model and one thread for all visitors, who take turns, and examples of what its scores mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from bleurt_repro.metric.calibration import Reliability
from bleurt_repro.metric.scorer import BleurtScorer, ScoringResult

# Candidates scored in one turn: a second or a few of work, after which the next request has its turn.
TURN = 100

# One reference, its source, and candidates from the same text to an unrelated one: the points of the scale.
SCALE_REFERENCE = "The library will open on Sundays from next month."
SCALE_SOURCE = "Die Bibliothek ist ab nächstem Monat sonntags geöffnet."
SCALE_CANDIDATES = {
    "the same text": SCALE_REFERENCE,
    "the same in other words": "From next month on, the library is going to be open on Sundays.",
    "much is missing": "The library will open.",
    "only the subject is alike": "Next month the museum opens.",
    "about something else": "My brother bought a red bicycle.",
}

# The counts of pairs in a `ScoringResult`.
COUNTS = ("pairs", "truncated", "unread", "blank", "unknown")

# Called after each turn with the number of candidates scored so far, and with that of all candidates.
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class ScalePoint:
    """An example that shows what a score means.

    Attributes:
        name: how the candidate relates to the reference.
        candidate: text of the candidate.
        score: its score by the checkpoint.
    """

    name: str
    candidate: str
    score: float


class SharedScorer:
    """Scores for many visitors at the same time.

    All work is done in one thread. Requests take turns of a hundred candidates in it, so that a comparison of thousands
    does not keep a single pair waiting. One thread also keeps memory constant: each thread that runs a model holds its own
    memory, and Gradio calls from dozens.

    Args:
        checkpoint, device: checkpoint and device, as in `BleurtScorer`.

    Attributes:
        scorer: the scorer; call the methods of this class instead of its own.
        scale: examples along the checkpoint's scale, best score first.
        range: distance between the scores of the best and the worst example.

    Raises:
        ValueError: if the checkpoint cannot be loaded or reads no references.
    """

    def __init__(self, checkpoint: str, device: str | None = None) -> None:
        self.scorer = BleurtScorer(checkpoint, device=device, progress=False)
        if not self.scorer.layout.reads_references:  # BLEU and chrF++ stand beside every score
            raise ValueError(
                f"checkpoint {self.scorer.checkpoint} reads no references, which the demo needs: "
                "choose one that does, or score files with `bleurt-repro score`"
            )
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="scoring")
        self.scale = self._score_scale()
        self.range = self.scale[0].score - self.scale[-1].score

    def _score_scale(self) -> list[ScalePoint]:
        count = len(SCALE_CANDIDATES)
        scores = self.compute(
            references=[SCALE_REFERENCE] * count,
            candidates=list(SCALE_CANDIDATES.values()),
            sources=[SCALE_SOURCE] * count if "source" in self.scorer.layout.required else None,
        ).scores
        points = [ScalePoint(*item, score) for item, score in zip(SCALE_CANDIDATES.items(), scores, strict=True)]
        return sorted(points, key=lambda point: -point.score)

    def compute(
        self,
        *,
        references: Any,
        candidates: Sequence[str],
        sources: Sequence[str] | None = None,
    ) -> ScoringResult:
        """Score as `BleurtScorer.compute` does, in turns."""
        return self.compute_systems(references=references, systems={"": candidates}, sources=sources)[""]

    def compute_systems(
        self,
        *,
        references: Any,
        systems: Mapping[str, Sequence[str]],
        sources: Sequence[str] | None = None,
        report: Report = lambda scored, total: None,
    ) -> dict[str, ScoringResult]:
        """Score as `BleurtScorer.compute_systems` does, in turns.

        Args:
            references, systems, sources: texts, as in `BleurtScorer.compute_systems`; at least one system.
            report: function that is told about the progress.
        """
        turns: dict[str, list[ScoringResult]] = {name: [] for name in systems}
        count = max(len(references), *(len(candidates) for candidates in systems.values()))
        segments = max(1, TURN // len(systems))  # of a turn
        for start in range(0, count, segments):
            span = slice(start, start + segments)
            turn = self._worker.submit(
                self.scorer.compute_systems,
                references=references[span],
                systems={name: candidates[span] for name, candidates in systems.items()},
                sources=None if sources is None else sources[span],
                on_progress=lambda count: None,
            )
            for name, result in turn.result().items():
                turns[name].append(result)
            report(min(start + segments, count) * len(systems), count * len(systems))
        return {name: self._joined(results) for name, results in turns.items()}

    def _joined(self, turns: Sequence[ScoringResult]) -> ScoringResult:
        """Return the result of all turns as one."""
        scores = [score for result in turns for score in result.scores]
        counts = {name: sum(getattr(result, name) for result in turns) for name in COUNTS}
        warnings = self.scorer.warnings_about(*(counts[name] for name in ("pairs", "truncated", "unread", "blank")))
        mean = sum(scores) / len(scores) if scores else None
        signature = turns[0].signature if turns else self.scorer.signature
        return ScoringResult(scores, mean, signature, warnings=warnings, **counts)

    def percentile(self, score: float) -> float | None:
        """Return the percentile, among human ratings, of texts with this score; None without a calibration."""
        return None if self.scorer.calibration is None else self.scorer.calibration([score])[0]


@dataclass(frozen=True)
class ReportingScorer:
    """A shared scorer that reports its progress to one visitor.

    Attributes:
        shared: the shared scorer.
        report: function that is told about the progress, as in `SharedScorer.compute_systems`.
    """

    shared: SharedScorer
    report: Report

    @property
    def reliability(self) -> Reliability | None:
        """Return P(people prefer a system) as fitted for the checkpoint, or None."""
        return self.shared.scorer.reliability

    def compute_systems(
        self, *, references: Any, systems: Mapping[str, Sequence[str]], sources: Sequence[str] | None = None
    ) -> dict[str, ScoringResult]:
        """Score as `SharedScorer.compute_systems` does."""
        return self.shared.compute_systems(references=references, systems=systems, sources=sources, report=self.report)
