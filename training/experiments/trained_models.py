"""Train models for an experiment, and score with them.

The scores of a fine-tuned model are a cell; a pre-trained model is a folder. Nothing that is finished is computed again.
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
from bleurt_repro.training.training_references import find_overlap

MODELS = "models"  # folder of models while they train, in the output of the experiment
EVERY_CHECKPOINT = 1_000_000  # more checkpoints than any run has


@dataclass
class FineTuning:
    """How the models of an experiment are fine-tuned.

    Attributes:
        folder: folder of the experiment; models are in its `MODELS` while they train.
        cells: folder in which scores are kept.
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
        settings: Mapping[str, Any] | None = None,
    ) -> Row:
        """Train one model per seed, and score with each.

        Args:
            name: name of the row.
            start: model to fine-tune: encoder, pre-trained BLEURT or scorer.
            data: function that returns the ratings to train and to validate on, for a seed.
            texts: items to score.
            notes: further entries of the row in the results.
            settings: settings of the fine-tuning, which take precedence over those of the configuration.
        """
        from tqdm import tqdm

        contents = []
        for seed in tqdm(self.options.seeds, desc=name, unit="model", disable=None):
            contents.append(self._cell(name, start, data(seed), texts, seed, settings or {}))
        training = [content["training"] for content in contents]
        overlap = contents[0].get("training_references")  # the same for all seeds
        notes = {**(notes or {}), "training": training, "training_references": overlap}
        vectors = [np.array(content["scores"]) for content in contents]
        return Row(name, "model", vectors, contents[0]["signature"], notes)

    def train(self, name: str, start: str, files: tuple[Path, Path]) -> str:
        """Train a model that other models start from, with the first seed, unless it is finished already.

        Args:
            name: name of the model.
            start: model to fine-tune.
            files: ratings to train and to validate on.

        Returns:
            folder of the model; it is kept.
        """
        seed = self.options.seeds[0]
        inputs = [self._start(start), self._settings(files, seed)]
        folder = self.folder / MODELS / f"{self.cells.path(name, inputs).stem}-seed{seed}"
        self._train(start, files, seed, folder, {})
        return str(folder)

    def _cell(
        self, name: str, start: str, files: tuple[Path, Path], texts: Texts, seed: int, settings: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the scores of the model of a seed; train it first if they are not there."""
        inputs = [self._start(start), self._settings(files, seed), *([_as_options(settings)] if settings else [])]
        folder = self.folder / MODELS / f"{self.cells.path(name, inputs).stem}-seed{seed}"

        def compute() -> dict[str, Any]:
            results = self._train(start, files, seed, folder, settings)
            scored = score_texts(str(folder), texts, self.scorer_options)
            overlap = {"training_references": find_overlap(folder, texts.references)}
            if not self.options.keep_models:
                shutil.rmtree(folder)
            return {**scored, "training": training_record(results, seed), **overlap}

        scored_as = [dict(self.scorer_options)] if self.scorer_options else []
        return self.cells.get(f"model-{name}-seed{seed}", [*inputs, texts.fingerprint, *scored_as], compute)

    def _train(
        self, start: str, files: tuple[Path, Path], seed: int, folder: Path, settings: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        from bleurt_repro.training.arguments import load_config
        from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments, finetune
        from bleurt_repro.training.results import RESULTS, Result

        if (folder / RESULTS).is_file():
            return Result.read(folder)
        arguments = {"model": start, "train_file": str(files[0]), "validation_file": str(files[1]), "seed": seed}
        arguments |= {"output_dir": str(folder), "resume": True, **settings}
        return finetune(*load_config((RatingArguments, FinetuningArguments), self.options.finetune, arguments))

    def _settings(self, files: tuple[Path, Path], seed: int) -> list[Any]:
        from bleurt_repro.metric.loading.checksums import file_hash
        from bleurt_repro.training.arguments import find_config

        config = find_config(self.options.finetune, ["finetune"]).read_text(encoding="utf-8")
        return [digest(config), [file_hash(Path(file)).hex() for file in files], seed]

    def _start(self, start: str) -> str:
        from bleurt_repro.metric.loading.checksums import content_hash
        from bleurt_repro.metric.loading.find import find_checkpoint

        if start not in self._content:
            self._content[start] = content_hash(Path(find_checkpoint(start)))
        return self._content[start]


def _as_options(settings: Mapping[str, Any]) -> list[str]:
    """Return settings as options; the names of cells depend on them."""
    return [word for name, value in settings.items() for word in (f"--{name}", str(value))]


def training_record(results: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return what the results of an experiment contain of a training run."""
    figures = {name: results[name] for name in ("best", "steps", "epochs", "seconds")}
    return {"seed": seed, "train_ratings": results["data"]["train_ratings"], **figures}


def starts(options: ModelOptions) -> list[tuple[str, str]]:
    """Return the names of the trained rows and the models that they start from, without and with pre-training."""
    rows = [(f"{options.model_name} -pre", options.encoder), (options.model_name, options.pretrained)]
    return [(name, start) for name, start in rows if start]


def write_ratings(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """Write ratings as JSON lines, unless the file contains them already."""
    from bleurt_repro.metric.files.writing import json_lines, write_json_lines

    path.parent.mkdir(parents=True, exist_ok=True)
    # `datasets` would read and tokenise a new file again.
    if not path.is_file() or path.read_text(encoding="utf-8") != "".join(json_lines(records)):
        write_json_lines(path, records)
    return path


@dataclass(frozen=True)
class PreTraining:
    """How the models of an ablation are pre-trained.

    Attributes:
        folder: folder of the models, each in its own folder, from which a killed run resumes.
        encoder: encoder that all models start from.
        pairs: folder of synthetic pairs.
        config: configuration of `bleurt-repro pretrain`.
    """

    folder: Path
    encoder: str
    pairs: str
    config: str

    def run(self, leave_out: Sequence[str], steps: int = 0, every: int = 0) -> Path:
        """Pre-train, unless the model is finished already.

        Args:
            leave_out: signals that are not learnt.
            steps: number of steps; 0 for that of the configuration.
            every: number of steps after which a model is kept, again and again; 0 to keep only the best.

        Returns:
            folder of the pre-trained model.
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
                settings |= {"keep_checkpoints": True}
            pretrain(*load_config((PairArguments, PretrainingArguments), self.config, settings))
        return folder

    def stages(self, folder: Path) -> Iterator[tuple[int, Path]]:
        """Yield each number of steps after which `run` kept a model, and the model.

        Args:
            folder: folder of the pre-trained model.
        """
        checkpoints = sorted((int(path.name.split("-")[1]), path) for path in folder.glob("checkpoint-*"))
        for steps, checkpoint in checkpoints:
            stage = folder / f"steps-{steps}"
            if not (stage / "model.safetensors").is_file():
                export_checkpoint(checkpoint, folder, stage)
            yield steps, stage

    def _digest(self, steps: int, every: int) -> str:
        from bleurt_repro.training.arguments import find_config

        config = find_config(self.config, ["pretrain"]).read_text(encoding="utf-8")
        return digest([self.encoder, str(Path(self.pairs).resolve()), config, steps, every])


def export_checkpoint(checkpoint: Path, finished: Path, folder: Path) -> None:
    """Make a model to fine-tune from a checkpoint of a pre-training run.

    Args:
        checkpoint: folder that the Trainer wrote, with the weights of a `PretrainingModel`.
        finished: folder of the run, with configuration and tokenizer.
        folder: folder to write.
    """
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoTokenizer

    from bleurt_repro.metric.layout import Layout
    from bleurt_repro.training.pretraining_model import export_scorer

    config = AutoConfig.from_pretrained(finished)
    tokenizer = AutoTokenizer.from_pretrained(finished, trust_remote_code=False)
    export_scorer(config, load_file(checkpoint / "model.safetensors"), tokenizer, Layout.from_config(config), folder)
