"""What all experiments share: settings, the command that repeats a run, and cells, so that a killed run resumes.

Settings are read as defaults, a YAML file over them, and options over both.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bleurt_repro.metric.statistics import RESAMPLES

HASH_DIGITS = 12
# The folder of an experiment's cells, in its output.
CELLS = "cells"
# Settings that no figure depends on.
NOT_IN_COMMANDS = ("output", "keep_models", "cache")
SEGMENTS, ROWS = "segments", "rows"
CACHE_HELP = "Folder of checkpoints' scores, read and added to, as of `bleurt-repro score --cache`."


@dataclass
class MetricOptions:
    """Which metrics are measured, and how."""

    _argument_group_name: ClassVar[str] = "metrics"  # in --help

    checkpoint: list[str] = field(
        default_factory=list, metadata={"help": "Checkpoints, by folder, embedded name or Hub id."}
    )
    baselines: list[str] = field(
        default_factory=list,
        metadata={
            "help": "sentbleu, bleu, chrf++, ter, rouge, meteor, length_ratio, bertscore:ENCODER, moverscore:ENCODER, "
            "moverscore_v2:ENCODER, cosine:ENCODER; bertscore@LAYER:ENCODER compares the vectors of that layer."
        },
    )
    score_files: list[str] = field(
        default_factory=list, metadata={"help": "NAME=FILE: scores computed elsewhere (.scr, .txt, .jsonl, ...)."}
    )
    resamples: int = field(default=RESAMPLES, metadata={"help": "Bootstrap samples of each interval; 0 for none."})
    resample: str = field(
        default=SEGMENTS,
        metadata={
            "help": "What a bootstrap sample draws: segments (all ratings of a segment together) or rows (each rating "
            "alone, which makes intervals too narrow where outputs of one segment are alike)."
        },
    )
    permutations: int = field(
        default=0, metadata={"help": "Permutations of each test of two metrics (PERM-BOTH); 0: the bootstrap tests."}
    )
    seed: int = field(default=0, metadata={"help": "Of the bootstrap, and of what the experiment draws."})
    dtype: str | None = field(
        default=None, metadata={"help": "Precision that checkpoints score in: float32 (the default), bfloat16, ..."}
    )
    cache: str | None = field(default=None, metadata={"help": CACHE_HELP})

    def __post_init__(self) -> None:
        if self.resample not in (SEGMENTS, ROWS):
            raise ValueError(f"resample must be {SEGMENTS} or {ROWS}, found {self.resample!r}")
        for name in ("resamples", "permutations"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 (none) or more, found {getattr(self, name)}")

    @property
    def scorer_options(self) -> dict[str, Any]:
        """Arguments of `BleurtScorer` that are set: unset ones leave the names of cells as they are."""
        return {"dtype": self.dtype} if self.dtype else {}


@dataclass
class ModelOptions:
    """Which models are trained. Without encoder and pretrained none is."""

    _argument_group_name: ClassVar[str] = "models to train"  # in --help

    encoder: str | None = field(default=None, metadata={"help": "Bare encoder: the models without pre-training."})
    pretrained: str | None = field(
        default=None, metadata={"help": "What `bleurt-repro pretrain` made of it: the models with pre-training."}
    )
    finetune: str = field(default="finetune_mini", metadata={"help": "Configuration of `bleurt-repro finetune`."})
    seeds: list[int] = field(default_factory=lambda: [1], metadata={"help": "One model is trained for each."})
    keep_models: bool = field(
        default=False, metadata={"help": "Keep the trained models; by default only their scores are kept."}
    )
    model_name: str = field(default="BLEURT", metadata={"help": "What the trained rows are called."})


def read_options(kinds: Sequence[type], words: Sequence[str]) -> tuple[Any, ...]:
    """Read settings; see `parse_config`. A list is written as `--key a b` or as `--key a --key b`.

    Args:
        kinds: dataclasses of settings.
        words: of the command line.
    """
    from bleurt_repro.training.arguments import parse_config

    return parse_config(kinds, words)


def command(experiment: str, settings: Sequence[Any]) -> str:
    """Write the command that makes results: what differs from the defaults, with files and folders by their names."""
    words = [f"bleurt-repro experiment {experiment}"]
    for group in settings:
        for item in dataclasses.fields(group):
            value = getattr(group, item.name)
            default = item.default_factory() if callable(item.default_factory) else item.default
            if item.name not in NOT_IN_COMMANDS and value != default:
                shown = shlex.join(map(shorten, value if isinstance(value, list) else [value]))
                words.append(f"--{item.name.replace('_', '-')} {shown}")
    return " ".join([*words, "--output OUT"])


def shorten(value: Any) -> str:
    """Leave the folders out of an existing path, and out of the path after a baseline's or a file's name."""
    text = str(value)
    for sign in (":", "="):
        name, found, path = text.partition(sign)
        if found and Path(path).exists():
            return f"{name}{sign}{Path(path).absolute().name}"
    return Path(text).absolute().name if Path(text).exists() else text


def check_different(names: Sequence[str]) -> None:
    """Raise ValueError if two rows of a table have one name."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two rows are called {twice[0]}: give each checkpoint and file a name of its own")


class Cells:
    """A folder of cells: a cell is one metric's scores of one data set, or one trained model and its scores.

    Args:
        folder: where; made with the first cell.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, name: str, inputs: Any) -> Path:
        """Return the file of a cell.

        Args:
            name: for people.
            inputs: all that the cell's content follows from, fit for JSON; other inputs make another cell.
        """
        words = re.sub(r"[^\w+.-]+", "-", name).strip("-.")[-60:]
        return self.folder / f"{words}-{digest(inputs)}.json"

    def get(self, name: str, inputs: Any, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Read a cell, or compute and keep it.

        Args:
            name, inputs: of the cell, as in `path`.
            compute: returns what is kept, fit for JSON.
        """
        from bleurt_repro.metric.files.writing import write_text

        path = self.path(name, inputs)
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
        content = compute()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(content) + "\n")
        return content


def digest(inputs: Any) -> str:
    """Hash what is fit for JSON, whatever the order of its keys: 12 hexadecimal digits of a SHA-256."""
    text = json.dumps(inputs, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
