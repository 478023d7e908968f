"""Pre-train an encoder on synthetic pairs and their signals (BLEURT, sections 4 and B.1).

    bleurt-repro pretrain --config paper --pairs FOLDER --output-dir OUT
    bleurt-repro pretrain --config pretrain_mini --model ENCODER --pairs FOLDER --output-dir OUT [--resume]
    bleurt-repro pretrain --grid grid.yaml --config pretrain_mini --model ENCODER --pairs FOLDER --output-dir OUT
    torchrun --nproc-per-node 8 -m bleurt_repro.training.pretrain --config pretrain_paper ...

ENCODER is any `transformers` encoder, by folder or Hub id; FOLDER is what `bleurt-repro data synthetic` made, or several such
folders with the same signals. OUT becomes the checkpoint that `bleurt-repro finetune --model OUT` starts from, with
results.json and curves.png beside it. The paper's run of 800,000 steps takes days on a GPU; so the number of steps or epochs
has no default, and `--config paper` asks for that run.

From Python (`bleurt_repro.pretrain` takes the same arguments, and also draws the card and publishes the checkpoint):

    pretrain(PairArguments(model="encoder", pairs=["pairs"]), PretrainingArguments(output_dir="out", num_train_epochs=3))

A grid searches the weights of the groups of signals, on validation ratings alone (section 4.3). It names the weights to try,
and the ratings and settings of the fine-tuning that judges them:

    gammas:
      automatic_metrics: [0.1, 1, 10]
      likelihood: [0, 1]
      classification: [1, 10]
    finetune:
      config: finetune_mini
      train_file: train.jsonl
      validation_file: validation.jsonl

Each combination is pre-trained and fine-tuned in its own folder below OUT. After a kill the same command resumes: finished
combinations are kept, and the unfinished one continues. At the end OUT holds grid.json, grid.md and grid.png.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bleurt_repro.metric.files.records import read_plain_yaml
from bleurt_repro.metric.files.tables import markdown_table
from bleurt_repro.metric.files.writing import atomic_folder, write_text
from bleurt_repro.metric.layout import Layout, readable_positions, separators_of
from bleurt_repro.training.arguments import load_config, run_as_command
from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments, finetune
from bleurt_repro.training.results import COLOURS, RESULTS, Result
from bleurt_repro.training.run_arguments import RunArguments

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import EvalPrediction, TrainerCallback

# Settings of the fine-tuning in a grid search that differ between the combinations.
SET_BY_GRID = ("output_dir", "resume", "model")
PAPER_STEPS = 800_000  # BLEURT, B.1

Weights = dict[str, float]


@dataclass
class PairArguments:
    """What is trained, on which pairs."""

    _argument_group_name: ClassVar[str] = "model and pairs"  # heading in --help

    model: str = field(metadata={"help": "Encoder to start from: folder or Hub id."})
    pairs: list[str] = field(metadata={"help": "Synthetic pairs: folders that `bleurt-repro data synthetic` made."})
    max_length: int = field(
        default=512, metadata={"help": "Maximum number of tokens per pair, including special tokens."}
    )
    validation_segments: int = field(
        default=1000, metadata={"help": "Number of segments whose pairs are held out to follow the losses."}
    )
    gamma_automatic_metrics: float = field(
        default=1.0, metadata={"help": "Weight of the losses of automatic metrics, such as BLEU."}
    )
    gamma_likelihood: float = field(default=1.0, metadata={"help": "Weight of the losses of the four likelihoods."})
    gamma_classification: float = field(
        default=1.0, metadata={"help": "Weight of the losses of entailment and back-translation flag."}
    )
    leave_out: list[str] = field(
        default_factory=list, metadata={"help": "Signals that are not learnt, for ablations."}
    )

    def gammas(self, groups: set[str]) -> dict[str, float]:
        """Return the weight of each group of signals."""
        return {group: getattr(self, f"gamma_{group}") for group in sorted(groups)}


@dataclass
class PretrainingArguments(RunArguments):
    """The Trainer's arguments, with the defaults of BLEURT, section B.1, but for the length of the run.

    Raises:
        ValueError: if neither steps nor epochs are given, or as `RunArguments` does.
    """

    CONFIG_PREFIX: ClassVar[str] = "pretrain"
    MEASURES: ClassVar[tuple[str, ...]] = ("loss", "loss_.+")

    max_steps: int | None = field(
        default=None, metadata={"help": "Number of steps; the paper's 800,000 with --config paper."}
    )
    metric_for_best_model: str | None = "loss"
    greater_is_better: bool | None = False

    def __post_init__(self) -> None:
        if self.max_steps is None and self.num_train_epochs is None:
            raise ValueError(
                f"how long to pre-train? The paper's run has {PAPER_STEPS:,} steps, days on a GPU: ask for it by "
                "--config paper, or give --num-train-epochs or --max-steps"
            )
        super().__post_init__()


@dataclass
class GridArguments:
    """Whether the weights of the groups are searched."""

    _argument_group_name: ClassVar[str] = "grid search"  # heading in --help

    grid: str | None = field(default=None, metadata={"help": "YAML file of weights to search, as described above."})


def hold_out(pairs: Dataset, segments: int, seed: int) -> tuple[Dataset, Dataset]:
    """Divide pairs by their reference, so that no text is both trained and validated on.

    Args:
        pairs: pairs with "reference"; the text identifies a segment, since sets made separately number their segments alike.
        segments: number of segments to hold out.
        seed: seed of the choice.

    Returns:
        the pairs to train on, and those held out.

    Raises:
        ValueError: if no pair would be left to train on.
    """
    import numpy as np

    numbers: dict[str, int] = {}
    segment = np.asarray([numbers.setdefault(reference, len(numbers)) for reference in pairs["reference"]])
    if not 0 < segments < len(numbers):
        raise ValueError(f"validation_segments must be from 1 to {len(numbers) - 1} here, found {segments}")
    held_out = np.isin(segment, np.random.default_rng(seed).choice(len(numbers), segments, replace=False))
    return pairs.select(np.flatnonzero(~held_out)), pairs.select(np.flatnonzero(held_out))


def pretrain(
    data: PairArguments,
    arguments: PretrainingArguments,
    card: Callable[[Path], None] | None = None,
    *,
    callbacks: Sequence[TrainerCallback] = (),
    compute_metrics: Callable[[EvalPrediction], dict[str, float]] | None = None,
) -> Result:
    """Pre-train an encoder, and write what fine-tuning starts from to `arguments.output_dir`.

    Args:
        data: what is trained, on which pairs.
        arguments: settings of the training, and folder of the result.
        card: function that draws the card into the folder of the checkpoint; by default there is no card.
        callbacks: callbacks for the Trainer.
        compute_metrics: function that computes further validation measures; see `PretrainingTrainer`.

    Returns:
        what results.json holds, in every process.

    Raises:
        FileNotFoundError: if there is no such model or set of pairs.
        ValueError: if settings and data do not fit together, or the folder holds another run.
        OSError: if the disk is full.
    """
    import datasets
    from transformers import AutoModel, AutoTokenizer, set_seed

    from bleurt_repro.datasets_builders.synthetic.builder import join_sets
    from bleurt_repro.training.collator import PairCollator, encode_texts
    from bleurt_repro.training.pretraining_model import TARGET, PretrainingModel, export_scorer, read_tasks
    from bleurt_repro.training.run import finish, gather_state, run_folder, train
    from bleurt_repro.training.trainer import PretrainingTrainer

    info = join_sets(data.pairs)
    with run_folder(arguments, data, data={"pairs": _digest(info)}) as start:
        if start.finished:
            return start.finished

        # The encoder with a head for each signal.
        set_seed(arguments.seed)
        tasks = read_tasks(info["signals"], data.leave_out)
        _check_measure(arguments, [f"loss_{task.name}" for task in tasks])
        tokenizer = AutoTokenizer.from_pretrained(start.model, trust_remote_code=False)
        encoder = AutoModel.from_pretrained(
            start.model, dtype="float32", trust_remote_code=False, use_safetensors=True
        )
        model = PretrainingModel(encoder, tasks, data.gammas({task.group for task in tasks}))
        longest = min(data.max_length, readable_positions(encoder.config) or data.max_length)
        layout = Layout(max_length=longest, separators=separators_of(tokenizer))

        # The pairs, as tokens. They are named by files and not by folder: `datasets` takes two folders of the same name for
        # the same data. The other processes read what the first one has written.
        files = [file["file"] for file in info["parts"]]
        names = [task.name for task in tasks]
        with arguments.main_process_first(desc="tokenise"):
            pairs = datasets.load_dataset("parquet", data_files=files, split="train")
            train_pairs, held_out_pairs = (
                encode_texts(side, tokenizer, layout, keep=names, num_proc=arguments.num_proc)
                for side in hold_out(pairs, data.validation_segments, arguments.seed)
            )

        # Training.
        trainer = PretrainingTrainer(
            model=model,
            args=arguments,
            data_collator=PairCollator(tokenizer, {name: TARGET + name for name in names}),
            train_dataset=train_pairs,
            eval_dataset=held_out_pairs,
            processing_class=tokenizer,
            callbacks=list(callbacks),
            compute_metrics=compute_metrics,
        )
        seconds = train(trainer, arguments)
        state = gather_state(trainer)

        # The result: the encoder under a new head.
        def save(folder: Path) -> None:
            export_scorer(encoder.config, state, tokenizer, layout, folder, arguments.seed)

        record = _data_record(data, info, train_pairs, held_out_pairs)
        return finish(trainer, "pretrain", start.settings, record, seconds, save, card)


def _digest(info: dict[str, Any]) -> str:
    """Return one hash of the pairs, made from the hashes of their files."""
    return hashlib.sha256("".join(file["sha256"] for file in info["parts"]).encode()).hexdigest()


def _check_measure(arguments: PretrainingArguments, losses: list[str]) -> None:
    measure = str(arguments.metric_for_best_model).removeprefix("eval_")
    if measure not in ("loss", *losses):
        raise ValueError(f"metric_for_best_model must be one of loss, {', '.join(losses)}, found {measure!r}")


def _data_record(
    data: PairArguments, info: dict[str, Any], train_pairs: Dataset, held_out_pairs: Dataset
) -> dict[str, Any]:
    return {
        "pairs": {
            "folder": ", ".join(Path(folder).name for folder in data.pairs),
            "parts": [file["sha256"] for file in info["parts"]],
        },
        "signals": [signal["name"] for signal in info["signals"] if signal["name"] not in data.leave_out],
        "train_pairs": len(train_pairs),
        "validation_pairs": len(held_out_pairs),
        "truncated": sum(train_pairs["truncated"]),
    }


# --- the search over weights ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GammaGrid:
    """Which weights to try, and how to judge them.

    Attributes:
        combinations: weights by group, one mapping per combination.
        finetune: settings of the fine-tuning that judges the combinations, by name.
    """

    combinations: list[Weights]
    finetune: dict[str, Any]


def read_grid(path: str | Path) -> GammaGrid:
    """Read a grid.

    Args:
        path: YAML file, as described at the top of this module.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it has another form.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"--grid: there is no file {path}; it must be YAML with the keys gammas and finetune")
    _, grid = read_plain_yaml(Path(path))
    if not isinstance(grid, dict) or set(grid) != {"gammas", "finetune"}:
        keys = ", ".join(map(str, grid)) if isinstance(grid, dict) else type(grid).__name__
        raise ValueError(f"{path} must have the keys gammas and finetune, found {keys}")
    gammas, settings = grid["gammas"], grid["finetune"]
    _check_gammas(path, gammas)
    if not isinstance(settings, dict) or "train_file" not in settings:
        raise ValueError(f"{path}: finetune must be settings of bleurt-repro finetune, including train_file")
    if surplus := [name for name in SET_BY_GRID if name in settings]:
        raise ValueError(f"{path}: finetune must not set {surplus[0]}: the grid does")
    combinations = [
        dict(zip(gammas, map(float, values), strict=True)) for values in itertools.product(*gammas.values())
    ]
    return GammaGrid(combinations, settings)


def _check_gammas(path: str | Path, gammas: Any) -> None:
    if not isinstance(gammas, dict) or not all(isinstance(values, list) and values for values in gammas.values()):
        raise ValueError(f"{path}: gammas must name groups, each with a list of weights to try, found {gammas!r}")
    for group, values in gammas.items():
        if not hasattr(PairArguments, f"gamma_{group}"):
            groups = [name.removeprefix("gamma_") for name in vars(PairArguments) if name.startswith("gamma_")]
            raise ValueError(f"{path}: there is no group {group}; the groups are {', '.join(groups)}")
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ValueError(f"{path}: weights of {group} must be numbers of at least 0, found {value!r}")


def pretrain_or_search(
    pairs: PairArguments,
    grid: GridArguments,
    arguments: PretrainingArguments,
    card: Callable[[Path], None] | None = None,
    **options: Any,
) -> Result:
    """Run `bleurt-repro pretrain`: one pre-training, or with a grid a search, which has no card.

    Args:
        options: further arguments of `pretrain`.
    """
    if grid.grid is None:
        return pretrain(pairs, arguments, card, **options)
    return search_gamma(read_grid(grid.grid), pairs, arguments)


def search_gamma(grid: GammaGrid, pairs: PairArguments, arguments: PretrainingArguments) -> Result:
    """Pre-train and fine-tune with each combination of weights, and compare them on validation ratings.

    Args:
        grid: what to try, and how to judge it.
        pairs: what is pre-trained, on which pairs; the weights of the grid replace those here.
        arguments: settings of every pre-training; `output_dir` is the folder of the search.

    Returns:
        what grid.json holds: "cells", each combination with its validation measure, best first.

    Raises:
        ValueError: if a weight is set that the grid searches.
    """
    for group in grid.combinations[0]:
        if getattr(pairs, f"gamma_{group}") != getattr(PairArguments, f"gamma_{group}"):
            raise ValueError(f"leave out gamma_{group}: the grid searches it")
    cells = [
        _try_weights(grid, gammas, pairs, arguments, f"{number} of {len(grid.combinations)}")
        for number, gammas in enumerate(grid.combinations, start=1)
    ]
    cells.sort(key=lambda cell: -cell["validation"])
    result = Result("gamma_grid", None, {"measure": "kendall_tau", "cells": cells}, arguments.seed)
    if not arguments.process_index:
        _write_search(result, Path(str(arguments.output_dir)))
    return result


def _try_weights(
    grid: GammaGrid, gammas: Weights, pairs: PairArguments, arguments: PretrainingArguments, number: str
) -> dict[str, Any]:
    """Pre-train with some weights and fine-tune the result, each unless it is finished already."""
    from tqdm import tqdm

    folder = Path(str(arguments.output_dir)) / _name(gammas)
    pretrained, tuned = folder / "pretrained", folder / "finetuned"
    if (tuned / RESULTS).is_file():
        best = Result.read(tuned)["best"]
    else:
        tqdm.write(f"grid: {number}, {_name(gammas)}")
        if not (pretrained / RESULTS).is_file():
            run_arguments = copy.copy(arguments)
            run_arguments.output_dir, run_arguments.resume = str(pretrained), True
            weights: dict[str, Any] = {f"gamma_{group}": value for group, value in gammas.items()}
            pretrain(replace(pairs, **weights), run_arguments)
        settings = {**grid.finetune, "model": str(pretrained), "output_dir": str(tuned), "resume": True}
        config = settings.pop("config", None)
        best = finetune(*load_config((RatingArguments, FinetuningArguments), config, settings))["best"]
    return {"gammas": gammas, "folder": folder.name, "validation": best["value"], "step": best["step"]}


def _name(gammas: Mapping[str, float]) -> str:
    return "_".join(f"{group}-{value:g}" for group, value in gammas.items())


def _write_search(result: Result, folder: Path) -> None:
    from tqdm import tqdm

    table = draw_table(result["cells"])
    with atomic_folder(folder, last="grid.json") as unfinished:
        write_text(unfinished / "grid.md", table)
        draw_plot(result["cells"], unfinished / "grid.png")
        result.write(unfinished / "grid.json")
    tqdm.write(table)


def draw_table(cells: Sequence[dict[str, Any]]) -> str:
    """Return the combinations as a Markdown table, in the order of the cells."""
    rows = [
        [*(f"{gamma:g}" for gamma in cell["gammas"].values()), f"{100 * cell['validation']:.1f}"] for cell in cells
    ]
    headers = [*(f"gamma of {group}" for group in cells[0]["gammas"]), "validation tau x 100"]
    return markdown_table(headers, rows) + "\n"


def draw_plot(cells: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the validation tau of each combination, best on top."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 1.2 + 0.3 * len(cells)), layout="constrained")
    axes = figure.add_subplot()
    y = range(len(cells), 0, -1)
    axes.plot([100 * cell["validation"] for cell in cells], y, "o", color=COLOURS[0])
    axes.set_yticks(y, [", ".join(f"{group} {value:g}" for group, value in cell["gammas"].items()) for cell in cells])
    axes.set_xlabel("Kendall tau x 100 on validation ratings, after fine-tuning")
    axes.set_ylabel("weights gamma")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    run_as_command("pretrain")
