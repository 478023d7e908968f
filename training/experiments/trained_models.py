"""Train models for an experiment and score with them.

A fine-tuned model and its scores are one cell; a pre-trained model is a folder. What is finished is not computed again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.training.experiments.options import ModelOptions
from bleurt_repro.training.metrics.cells import Cells, digest
from bleurt_repro.training.metrics.rows import Row, Texts, score_texts

# The folder of models while they train, in the experiment's output.
MODELS = "models"
# More than any run has: all its checkpoints are kept.
EVERY_CHECKPOINT = 1_000_000


@dataclass
class FineTuning:
    """How an experiment's models are trained.

    Attributes:
        folder: of the experiment; models are in its `MODELS` while they train.
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
        more: Mapping[str, Any] | None = None,
    ) -> Row:
        """Train one model a seed and score with each.

        Args:
            name: of the row.
            start: what is fine-tuned: encoder, pre-trained BLEURT or scorer.
            data: returns the ratings to train and to validate on, for a seed.
            texts: what is scored.
            notes: what the results report of the row.
            more: settings of fine-tuning over those of the configuration.
        """
        from tqdm import tqdm

        contents = []
        for seed in tqdm(self.options.seeds, desc=name, unit="model", disable=None):
            contents.append(self._cell(name, start, data(seed), texts, seed, more or {}))
        notes = {**(notes or {}), "training": [content["training"] for content in contents]}
        vectors = [np.array(content["scores"]) for content in contents]
        return Row(name, "model", vectors, contents[0]["signature"], notes)

    def _cell(
        self, name: str, start: str, files: tuple[Path, Path], texts: Texts, seed: int, more: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        inputs = [self._start(start), self._settings(files, seed), *([_as_words(more)] if more else [])]
        folder = self.folder / MODELS / f"{self.cells.path(name, inputs).stem}-seed{seed}"

        def compute() -> dict[str, Any]:
            results = self._train(start, files, seed, folder, more)
            scored = score_texts(str(folder), texts, self.scorer_options)
            if self.options.keep_models:
                for checkpoint in folder.glob("checkpoint-*"):
                    shutil.rmtree(checkpoint)
            else:
                shutil.rmtree(folder)
            return {**scored, "training": training_record(results, seed)}

        scored_as = [dict(self.scorer_options)] if self.scorer_options else []
        return self.cells.get(f"model-{name}-seed{seed}", [*inputs, texts.fingerprint, *scored_as], compute)

    def _train(
        self, start: str, files: tuple[Path, Path], seed: int, folder: Path, more: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        from bleurt_repro.training.arguments import load_config
        from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments, finetune
        from bleurt_repro.training.results import RESULTS, Result

        if (folder / RESULTS).is_file():
            return Result.read(folder)
        settings = {"model": start, "train_file": str(files[0]), "validation_file": str(files[1]), "seed": seed}
        settings |= {"output_dir": str(folder), "resume": True, **more}
        return finetune(*load_config((RatingArguments, FinetuningArguments), self.options.finetune, settings))

    def _settings(self, files: tuple[Path, Path], seed: int) -> list[Any]:
        from bleurt_repro.metric.loading.checksums import file_hash
        from bleurt_repro.training.arguments import find_config

        config = find_config(self.options.finetune).read_text(encoding="utf-8")
        return [digest(config), [file_hash(Path(file)).hex() for file in files], seed]

    def _start(self, start: str) -> str:
        from bleurt_repro.metric.loading.checksums import content_hash
        from bleurt_repro.metric.loading.open import find_checkpoint

        if start not in self._content:
            self._content[start] = content_hash(Path(find_checkpoint(start)))
        return self._content[start]


def _as_words(settings: Mapping[str, Any]) -> list[str]:
    """Write settings as options, by which cells are named."""
    return [word for name, value in settings.items() for word in (f"--{name}", str(value))]


def training_record(results: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return what an experiment's results report of a training run."""
    kept = {name: results[name] for name in ("best", "steps", "epochs", "seconds")}
    return {"seed": seed, "train_ratings": results["data"]["train_ratings"], **kept}


def starts(options: ModelOptions) -> list[tuple[str, str]]:
    """Return the rows' names and what they begin with: without pre-training and with it, those that are set."""
    named = [(f"{options.model_name} -pre", options.encoder), (options.model_name, options.pretrained)]
    return [(name, start) for name, start in named if start]


def write_ratings(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """Write ratings as JSON lines, unless the file holds them already."""
    from bleurt_repro.metric.files.writing import json_lines, write_json_lines

    path.parent.mkdir(parents=True, exist_ok=True)
    # `datasets` would read and tokenise a file again that was written again
    if not path.is_file() or path.read_text(encoding="utf-8") != "".join(json_lines(records)):
        write_json_lines(path, records)
    return path


@dataclass(frozen=True)
class PreTraining:
    """How an ablation's models are pre-trained.

    Attributes:
        folder: of the models, each in a folder of its own, from which a killed run resumes.
        encoder: what all begin with.
        pairs: the synthetic pairs.
        config: of `bleurt-repro pretrain`.
    """

    folder: Path
    encoder: str
    pairs: str
    config: str

    def run(self, leave_out: Sequence[str], steps: int = 0, every: int = 0) -> Path:
        """Pre-train, unless that is done.

        Args:
            leave_out: signals not to learn.
            steps: of training; 0 for those of the configuration.
            every: keep the model after every so many steps, too; 0 for the best alone.

        Returns:
            the folder of the pre-trained model.
        """
        from bleurt_repro.training.arguments import load_config
        from bleurt_repro.training.pretrain import PairArguments, PretrainingArguments, pretrain
        from bleurt_repro.training.results import RESULTS

        folder = (
            self.folder / f"{'-'.join(['without', *leave_out]) if leave_out else 'all'}-{self._digest(steps, every)}"
        )
        if not (folder / RESULTS).is_file():
            settings: dict[str, Any] = {"model": self.encoder, "pairs": [self.pairs], "leave_out": list(leave_out)}
            settings |= {"output_dir": str(folder), "resume": True}
            settings |= {"max_steps": steps} if steps else {}
            if every:
                settings |= {"eval_steps": every, "save_steps": every, "save_total_limit": EVERY_CHECKPOINT}
            pretrain(*load_config((PairArguments, PretrainingArguments), self.config, settings))
        if not every:
            for checkpoint in folder.glob("checkpoint-*"):
                shutil.rmtree(checkpoint)
        return folder

    def stages(self, folder: Path) -> Iterator[tuple[int, Path]]:
        """Yield each number of steps that `run` kept, with the model as it was then.

        Args:
            folder: of the pre-trained model.
        """
        found = sorted((int(path.name.split("-")[1]), path) for path in folder.glob("checkpoint-*"))
        for steps, checkpoint in found:
            stage = folder / f"steps-{steps}"
            if not (stage / "model.safetensors").is_file():
                export_checkpoint(checkpoint, folder, stage)
            yield steps, stage

    def _digest(self, steps: int, every: int) -> str:
        from bleurt_repro.training.arguments import find_config

        config = find_config(self.config).read_text(encoding="utf-8")
        return digest([self.encoder, str(Path(self.pairs).resolve()), config, steps, every])


def export_checkpoint(checkpoint: Path, finished: Path, folder: Path) -> None:
    """Make a model to fine-tune of a checkpoint of a pre-training run.

    Args:
        checkpoint: the Trainer's folder, with the weights of a `PretrainingModel`.
        finished: the run's own folder, which has configuration and tokenizer.
        folder: where to.
    """
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoTokenizer

    from bleurt_repro.metric.layout import Layout
    from bleurt_repro.training.pretraining_model import export_scorer

    config = AutoConfig.from_pretrained(finished)
    tokenizer = AutoTokenizer.from_pretrained(finished, trust_remote_code=False)
    export_scorer(config, load_file(checkpoint / "model.safetensors"), tokenizer, Layout.from_config(config), folder)
