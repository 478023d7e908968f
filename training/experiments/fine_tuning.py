"""Train models for an experiment and score with them: each model and its scores are one cell."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.training.experiments.cells import Cells, digest
from bleurt_repro.training.experiments.options import ModelOptions
from bleurt_repro.training.experiments.scoring import Row, Texts, score_with

MODELS = "models"


@dataclass
class FineTuning:
    """How an experiment's models are trained.

    Attributes:
        folder: of the experiment; models lie in its `MODELS` while they train.
        cells: where models' scores are kept.
        options: configuration, seeds, and whether models are kept.
        scorer_options: further arguments of `BleurtScorer`.
    """

    folder: Path
    cells: Cells
    options: ModelOptions
    scorer_options: Mapping[str, Any] = field(default_factory=dict)
    _content: dict[str, str] = field(default_factory=dict)

    def row(
        self,
        name: str,
        start: str,
        data: Callable[[int], tuple[Path, Path]],
        texts: Texts,
        notes: Mapping[str, Any] | None = None,
        more: Sequence[str] = (),
    ) -> Row:
        """Train one model a seed and score with each.

        Args:
            name: of the row.
            start: what is fine-tuned: encoder, pre-trained BLEURT or scorer.
            data: gives the ratings to train and to validate on, for a seed.
            texts: what is scored.
            notes: what the results say of the row.
            more: options of `bleurt-repro finetune` over those of the configuration.
        """
        from tqdm import tqdm

        contents = []
        for seed in tqdm(self.options.seeds, desc=name, unit="model", disable=None):
            contents.append(self._cell(name, start, data(seed), texts, seed, more))
        notes = {**(notes or {}), "training": [content["training"] for content in contents]}
        vectors = [np.array(content["scores"]) for content in contents]
        return Row(name, "model", vectors, contents[0]["signature"], notes)

    def _cell(
        self, name: str, start: str, files: tuple[Path, Path], texts: Texts, seed: int, more: Sequence[str]
    ) -> dict[str, Any]:
        inputs = [self._start(start), self._settings(files, seed), *([list(more)] if more else [])]
        folder = self.folder / MODELS / f"{self.cells.path(name, inputs).stem}-seed{seed}"

        def compute() -> dict[str, Any]:
            results = self._train(start, files, seed, folder, more)
            scored = score_with(str(folder), texts, self.scorer_options)
            if self.options.keep_models:
                for checkpoint in folder.glob("checkpoint-*"):
                    shutil.rmtree(checkpoint)
            else:
                shutil.rmtree(folder)
            return {**scored, "training": training_record(results, seed)}

        scored_as = [dict(self.scorer_options)] if self.scorer_options else []
        return self.cells.get(f"model-{name}-seed{seed}", [*inputs, texts.fingerprint, *scored_as], compute)

    def _train(
        self, start: str, files: tuple[Path, Path], seed: int, folder: Path, more: Sequence[str]
    ) -> dict[str, Any]:
        from bleurt_repro.training.finetune import main as finetune
        from bleurt_repro.training.run import RESULTS

        if not (folder / RESULTS).is_file():
            finetune(
                ["--config", self.options.finetune, "--model", start]
                + ["--train_file", str(files[0]), "--validation_file", str(files[1])]
                + ["--seed", str(seed), "--output_dir", str(folder), "--resume", "true", *more]
            )
        return json.loads((folder / RESULTS).read_text(encoding="utf-8"))

    def _settings(self, files: tuple[Path, Path], seed: int) -> list[Any]:
        from bleurt_repro.metric.signature import file_hash
        from bleurt_repro.training.arguments import find_config

        config = find_config(self.options.finetune).read_text(encoding="utf-8")
        return [digest(config), [file_hash(Path(file)).hex() for file in files], seed]

    def _start(self, start: str) -> str:
        from bleurt_repro.metric.checkpoints import find_checkpoint
        from bleurt_repro.metric.signature import content_hash

        if start not in self._content:
            self._content[start] = content_hash(Path(find_checkpoint(start)))
        return self._content[start]


def training_record(results: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Give what an experiment's results say of a training run."""
    kept = {name: results[name] for name in ("best", "steps", "epochs", "seconds")}
    return {"seed": seed, "train_ratings": results["data"]["train_ratings"], **kept}


def starts(options: ModelOptions) -> list[tuple[str, str]]:
    """Give the rows' names and what they begin with: without pre-training and with it, those that are set."""
    named = [(f"{options.model_name} -pre", options.encoder), (options.model_name, options.pretrained)]
    return [(name, start) for name, start in named if start]


def write_ratings(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """Write ratings as JSON lines, unless they stand there already."""
    from bleurt_repro.metric.atomic import write_text

    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
    return path
