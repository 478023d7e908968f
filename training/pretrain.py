"""Pre-train an encoder on synthetic pairs and their signals (BLEURT, sections 4 and B.1).

    bleurt-repro pretrain --model ENCODER --pairs FOLDER --output OUT
    bleurt-repro pretrain --config pretrain_mini --model ENCODER --pairs FOLDER --output OUT [--resume]
    bleurt-repro pretrain --grid grid.yaml --config pretrain_mini --model ENCODER --pairs FOLDER --output OUT
    torchrun --nproc-per-node 8 -m bleurt_repro.training.pretrain --config pretrain_large ...

ENCODER is any `transformers` encoder, by folder or Hub id; FOLDER what `bleurt-repro data synthetic` made, or several such
folders of the same signals. OUT becomes the checkpoint that `bleurt-repro finetune --model OUT` starts from, with
results.json and curves.png beside it. From Python:

    pretrain(PairArguments(model="encoder", pairs=["pairs"]), PretrainingArguments(output_dir="out"))

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

Each combination is pre-trained and fine-tuned in a folder of its own below OUT. After a kill the same command resumes:
finished combinations are kept, the one that was begun continues. At the end OUT holds grid.json, grid.md and grid.png.
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
from bleurt_repro.training.run import RunArguments

if TYPE_CHECKING:
    from datasets import Dataset

# Settings of the fine-tuning in a grid search that every combination has for itself.
OWN = ("output_dir", "resume", "model")

Weights = dict[str, float]


@dataclass
class PairArguments:
    """What is trained, on which pairs."""

    _argument_group_name: ClassVar[str] = "model and pairs"  # in --help

    model: str = field(metadata={"help": "Encoder: folder or Hub id."})
    pairs: list[str] = field(metadata={"help": "Synthetic pairs: folders that `bleurt-repro data synthetic` made."})
    max_length: int = field(default=512, metadata={"help": "Most tokens of a pair, special tokens included."})
    validation_segments: int = field(
        default=1000, metadata={"help": "Segments whose pairs are held out to follow the losses."}
    )
    gamma_automatic_metrics: float = field(default=1.0, metadata={"help": "Weight of BLEU, ROUGE, BERTscore."})
    gamma_likelihood: float = field(default=1.0, metadata={"help": "Weight of the four likelihoods."})
    gamma_classification: float = field(default=1.0, metadata={"help": "Weight of entailment and flag."})
    leave_out: list[str] = field(default_factory=list, metadata={"help": "Signals not to learn, for ablations."})

    def gammas(self, groups: set[str]) -> dict[str, float]:
        """Return the weights of the groups that are there."""
        return {group: getattr(self, f"gamma_{group}") for group in sorted(groups)}


@dataclass
class PretrainingArguments(RunArguments):
    """The Trainer's arguments, with the defaults of BLEURT, section B.1."""

    MEASURES: ClassVar[tuple[str, ...]] = ("loss", "loss_.+")
    PAPER_STEPS: ClassVar[int] = 800_000

    max_steps: int | None = field(
        default=None,
        metadata={"help": "Steps of training; by default 800,000 (BLEURT, B.1), or as num_train_epochs says."},
    )
    metric_for_best_model: str | None = "loss"
    greater_is_better: bool | None = False


@dataclass
class GridArguments:
    """Whether the weights of the groups are searched."""

    _argument_group_name: ClassVar[str] = "grid search"  # in --help

    grid: str | None = field(
        default=None, metadata={"help": "YAML file of weights to search (see training/pretrain.py)."}
    )


def hold_out(pairs: Dataset, segments: int, seed: int) -> tuple[Dataset, Dataset]:
    """Split the pairs by their reference, so that no text trained on is validated on.

    Args:
        pairs: with "reference"; by its text, since sets made apart number their segments alike.
        segments: how many segments to hold out.
        seed: of the choice.

    Returns:
        the pairs to train on and those held out.

    Raises:
        ValueError: if nothing would be left to train on.
    """
    import numpy as np

    numbers: dict[str, int] = {}
    segment = np.asarray([numbers.setdefault(reference, len(numbers)) for reference in pairs["reference"]])
    if not 0 < segments < len(numbers):
        raise ValueError(f"validation_segments must be from 1 to {len(numbers) - 1} here, found {segments}")
    held = np.isin(segment, np.random.default_rng(seed).choice(len(numbers), segments, replace=False))
    return pairs.select(np.flatnonzero(~held)), pairs.select(np.flatnonzero(held))


def pretrain(
    data: PairArguments, arguments: PretrainingArguments, card: Callable[[Path], None] | None = None
) -> Result:
    """Pre-train an encoder, and write what fine-tuning starts from to `arguments.output_dir`.

    Args:
        data: what is trained, on which pairs.
        arguments: how, and where the checkpoint goes.
        card: draws the card into the folder of the checkpoint; there is none by default.

    Returns:
        what results.json holds, in every process.

    Raises:
        FileNotFoundError: if there is no such model or set of pairs.
        ValueError: if settings and data do not fit together, or the folder holds another run.
        OSError: if the disk is full.
    """
    from bleurt_repro.datasets_builders.synthetic.builder import join_sets
    from bleurt_repro.metric.loading.open import find_checkpoint
    from bleurt_repro.training.run import run_folder

    record, model = join_sets(data.pairs), find_checkpoint(data.model)
    with run_folder(arguments, data, model, {"pairs": _digest(record)}):
        return _pretrain(model, record, data, arguments, card)


def _pretrain(
    folder: Path,
    record: dict[str, Any],
    data: PairArguments,
    arguments: PretrainingArguments,
    card: Callable[[Path], None] | None,
) -> Result:
    import datasets
    from transformers import AutoModel, AutoTokenizer, set_seed

    from bleurt_repro.training.collator import PairCollator, encode_texts
    from bleurt_repro.training.pretraining_model import TARGET, PretrainingModel, export_scorer, read_tasks
    from bleurt_repro.training.run import finish, train, whole_state
    from bleurt_repro.training.trainer import PretrainingTrainer

    set_seed(arguments.seed)
    tasks = read_tasks(record["signals"], data.leave_out)
    _check_measure(arguments, [f"loss_{task.name}" for task in tasks])
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    encoder = AutoModel.from_pretrained(folder, dtype="float32", trust_remote_code=False, use_safetensors=True)
    model = PretrainingModel(encoder, tasks, data.gammas({task.group for task in tasks}))
    longest = min(data.max_length, readable_positions(encoder.config) or data.max_length)
    layout = Layout(max_length=longest, separators=separators_of(tokenizer))

    # By the files and not by the folder: `datasets` takes two folders of one name for the same data.
    files = [part["file"] for part in record["parts"]]
    names = [task.name for task in tasks]
    with arguments.main_process_first(desc="tokenise"):  # the others read what it has written
        pairs = datasets.load_dataset("parquet", data_files=files, split="train")
        train_pairs, held_pairs = (
            encode_texts(part, tokenizer, layout, keep=names, num_proc=arguments.num_proc)
            for part in hold_out(pairs, data.validation_segments, arguments.seed)
        )

    trainer = PretrainingTrainer(
        model=model,
        args=arguments,
        data_collator=PairCollator(tokenizer, {name: TARGET + name for name in names}),
        train_dataset=train_pairs,
        eval_dataset=held_pairs,
        processing_class=tokenizer,
    )
    seconds = train(trainer, arguments)
    state = whole_state(trainer)

    def save(folder: Path) -> None:
        export_scorer(encoder.config, state, tokenizer, layout, folder, arguments.seed)

    return finish(trainer, "pretrain", data, _provenance(data, record, train_pairs, held_pairs), seconds, save, card)


def _digest(record: dict[str, Any]) -> str:
    """Return one hash of the pairs, from those of their parts."""
    return hashlib.sha256("".join(part["sha256"] for part in record["parts"]).encode()).hexdigest()


def _check_measure(arguments: PretrainingArguments, losses: list[str]) -> None:
    measure = str(arguments.metric_for_best_model).removeprefix("eval_")
    if measure not in ("loss", *losses):
        raise ValueError(f"metric_for_best_model must be one of loss, {', '.join(losses)}, found {measure!r}")


def _provenance(data: PairArguments, record: dict[str, Any], train: Dataset, held: Dataset) -> dict[str, Any]:
    return {
        "pairs": {
            "folder": ", ".join(Path(folder).name for folder in data.pairs),
            "parts": [part["sha256"] for part in record["parts"]],
        },
        "signals": [item["name"] for item in record["signals"] if item["name"] not in data.leave_out],
        "train_pairs": len(train),
        "validation_pairs": len(held),
        "truncated": sum(train["truncated"]),
    }


# --- the search over weights ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GammaGrid:
    """Which weights to try, and how to judge them.

    Attributes:
        combinations: to try, each with a weight by group.
        finetune: settings of the fine-tuning that judges them, by name.
    """

    combinations: list[Weights]
    finetune: dict[str, Any]


def read_grid(path: str | Path) -> GammaGrid:
    """Read a grid.

    Args:
        path: YAML file as in the module's docstring.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not as it must be.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"--grid: there is no file {path}; it must be YAML with the keys gammas and finetune")
    _, grid = read_plain_yaml(Path(path))
    if not isinstance(grid, dict) or set(grid) != {"gammas", "finetune"}:
        found = ", ".join(map(str, grid)) if isinstance(grid, dict) else type(grid).__name__
        raise ValueError(f"{path} must have the keys gammas and finetune, found {found}")
    gammas, settings = grid["gammas"], grid["finetune"]
    _check_gammas(path, gammas)
    if not isinstance(settings, dict) or "train_file" not in settings:
        raise ValueError(f"{path}: finetune must be settings of bleurt-repro finetune, train_file among them")
    if own := [name for name in OWN if name in settings]:
        raise ValueError(f"{path}: finetune must not set {own[0]}: the grid does")
    combinations = [
        dict(zip(gammas, map(float, values), strict=True)) for values in itertools.product(*gammas.values())
    ]
    return GammaGrid(combinations, settings)


def _check_gammas(path: str | Path, gammas: Any) -> None:
    if not isinstance(gammas, dict) or not all(isinstance(values, list) and values for values in gammas.values()):
        raise ValueError(f"{path}: gammas must name groups, each with a list of weights to try, found {gammas!r}")
    for group, values in gammas.items():
        if not hasattr(PairArguments, f"gamma_{group}"):
            known = ", ".join(name.removeprefix("gamma_") for name in vars(PairArguments) if name.startswith("gamma_"))
            raise ValueError(f"{path}: there is no group {group}; the groups are {known}")
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ValueError(f"{path}: weights of {group} must be numbers of at least 0, found {value!r}")


def pretrain_or_search(
    pairs: PairArguments,
    grid: GridArguments,
    arguments: PretrainingArguments,
    card: Callable[[Path], None] | None = None,
) -> Result:
    """Run `bleurt-repro pretrain`: one pre-training, or with a grid a search, which has no card."""
    if grid.grid is None:
        return pretrain(pairs, arguments, card)
    return search_gamma(read_grid(grid.grid), pairs, arguments)


def search_gamma(grid: GammaGrid, pairs: PairArguments, arguments: PretrainingArguments) -> Result:
    """Pre-train and fine-tune with each combination of weights, and compare them on validation ratings.

    Args:
        grid: what to try, and how to judge it.
        pairs: what is pre-trained, on which pairs; the grid's weights take the place of those here.
        arguments: of every pre-training; `output_dir` is the folder of the search.

    Returns:
        what grid.json holds: "cells", each combination with its validation measure, best first.

    Raises:
        ValueError: if a weight is set that the grid searches.
    """
    _check_weights(grid, pairs)
    cells = [
        _judge(grid, gammas, pairs, arguments, f"{number} of {len(grid.combinations)}")
        for number, gammas in enumerate(grid.combinations, start=1)
    ]
    cells.sort(key=lambda cell: -cell["validation"])
    result = Result("gamma_grid", None, {"measure": "kendall_tau", "cells": cells}, arguments.seed)
    if not arguments.process_index:
        _write_search(result, Path(str(arguments.output_dir)))
    return result


def _check_weights(grid: GammaGrid, pairs: PairArguments) -> None:
    for group in grid.combinations[0]:
        if getattr(pairs, f"gamma_{group}") != getattr(PairArguments, f"gamma_{group}"):
            raise ValueError(f"leave out gamma_{group}: the grid searches it")


def _judge(
    grid: GammaGrid, gammas: Weights, pairs: PairArguments, arguments: PretrainingArguments, number: str
) -> dict[str, Any]:
    """Pre-train with some weights and fine-tune what comes of it, each unless that is done."""
    from tqdm import tqdm

    folder = Path(str(arguments.output_dir)) / _name(gammas)
    pretrained, tuned = folder / "pretrained", folder / "finetuned"
    if (tuned / RESULTS).is_file():
        best = Result.read(tuned)["best"]
    else:
        tqdm.write(f"grid: {number}, {_name(gammas)}")
        if not (pretrained / RESULTS).is_file():
            own = copy.copy(arguments)  # `replace` would take the batch of a process for that of all
            own.output_dir, own.resume = str(pretrained), True
            weights: dict[str, Any] = {f"gamma_{group}": value for group, value in gammas.items()}
            pretrain(replace(pairs, **weights), own)
        settings = {**grid.finetune, "model": str(pretrained), "output_dir": str(tuned), "resume": True}
        ratings, own = load_config((RatingArguments, FinetuningArguments), settings.pop("config", None), settings)
        best = finetune(ratings, own)["best"]
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
    places = range(len(cells), 0, -1)
    axes.plot([100 * cell["validation"] for cell in cells], places, "o", color=COLOURS[0])
    axes.set_yticks(
        places, [", ".join(f"{group} {value:g}" for group, value in cell["gammas"].items()) for cell in cells]
    )
    axes.set_xlabel("Kendall tau x 100 on validation ratings, after fine-tuning")
    axes.set_ylabel("weights gamma")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    run_as_command("pretrain")
