"""Options of everything that measures metrics: which metrics, and how intervals and tests are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bleurt_repro.metric.statistics import RESAMPLES
from bleurt_repro.training.metrics.baselines import BASELINE_NAMES

SEGMENTS, ROWS = "segments", "rows"  # what a bootstrap sample draws
CACHE_HELP = "Folder in which scores of checkpoints are kept and looked up, as of `bleurt-repro score --cache`."
DTYPE_HELP = "Precision in which checkpoints score: float32 (the default), bfloat16, ..."


@dataclass
class MetricOptions:
    """Which metrics are measured, and how."""

    _argument_group_name: ClassVar[str] = "metrics"  # heading in --help

    checkpoint: list[str] = field(
        default_factory=list, metadata={"help": "Checkpoints: folders, embedded names or Hub ids."}
    )
    baselines: list[str] = field(
        default_factory=list,
        metadata={
            "help": f"Baselines: {', '.join(BASELINE_NAMES)}; bertscore@LAYER:ENCODER uses the vectors of that layer."
        },
    )
    score_files: list[str] = field(
        default_factory=list,
        metadata={"help": "Scores of other metrics, as NAME=FILE (.scr, .txt, .jsonl, .csv, ...)."},
    )
    resamples: int = field(
        default=RESAMPLES, metadata={"help": "Number of bootstrap resamples for intervals; 0: no intervals."}
    )
    resample: str = field(
        default=SEGMENTS,
        metadata={
            "help": "Unit that the bootstrap draws: segments (all ratings of a segment together) or rows (each rating "
            "by itself, which makes intervals too narrow where the outputs of a segment are alike)."
        },
    )
    permutations: int = field(
        default=0,
        metadata={"help": "Number of permutations for each test of two metrics (PERM-BOTH); 0: bootstrap tests only."},
    )
    seed: int = field(default=0, metadata={"help": "Seed of the bootstrap and of all other random draws."})
    dtype: str | None = field(default=None, metadata={"help": DTYPE_HELP})
    cache: str | None = field(default=None, metadata={"help": CACHE_HELP})

    def __post_init__(self) -> None:
        if self.resample not in (SEGMENTS, ROWS):
            raise ValueError(f"resample must be {SEGMENTS} or {ROWS}, found {self.resample!r}")
        for name in ("resamples", "permutations"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 (none) or more, found {getattr(self, name)}")

    @property
    def scorer_options(self) -> dict[str, Any]:
        """Arguments of `BleurtScorer` that are set; those left at their defaults do not change the names of cells."""
        return {"dtype": self.dtype} if self.dtype else {}

    @property
    def names_any(self) -> bool:
        """Whether there is a metric to measure."""
        return bool(self.checkpoint or self.baselines or self.score_files)


def shorten(value: Any) -> str:
    """Return a path without its folders, also one that follows `NAME:` or `NAME=`; other text stays as it is."""
    text = str(value)
    for sign in (":", "="):
        name, separator, path = text.partition(sign)
        if separator and Path(path).exists():
            return f"{name}{sign}{Path(path).absolute().name}"
    return Path(text).absolute().name if Path(text).exists() else text


def check_different(names: Sequence[str]) -> None:
    """Raise ValueError if two rows of a table have the same name."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two rows are called {repeated[0]}: give each checkpoint and each file its own name")
