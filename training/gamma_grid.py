"""Search the weights of the groups of signals, on validation ratings alone (BLEURT, section 4.3).

    bleurt-repro pretrain --grid grid.yaml --config pretrain_mini --model ENCODER --pairs FOLDER --output OUT

grid.yaml names the weights to try, and the ratings and settings of the fine-tuning that judges them:

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
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from bleurt_repro.metric.files.records import read_plain_yaml
from bleurt_repro.training.arguments import load_config
from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments, finetune
from bleurt_repro.training.pretrain import PairArguments, PretrainingArguments, pretrain
from bleurt_repro.training.results import COLOURS, RESULTS, Result

# Settings of the fine-tuning that every combination has for itself.
OWN = ("output_dir", "resume", "model")

Weights = dict[str, float]


@dataclass
class GridArguments:
    """Whether the weights of the groups are searched."""

    _argument_group_name: ClassVar[str] = "grid search"  # in --help

    grid: str | None = field(default=None, metadata={"help": "YAML file of weights to search (see gamma_grid.py)."})


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


def pretrain_or_search(pairs: PairArguments, grid: GridArguments, arguments: PretrainingArguments) -> Result:
    """Run `bleurt-repro pretrain`: one pre-training, or with a grid a search."""
    if grid.grid is None:
        return pretrain(pairs, arguments)
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

    from bleurt_repro.metric.files.writing import write_text

    table = draw_table(result["cells"])
    write_text(folder / "grid.md", table)
    draw_plot(result["cells"], folder / "grid.png")
    result.write(folder / "grid.json")
    tqdm.write(table)


def draw_table(cells: Sequence[dict[str, Any]]) -> str:
    """Return the combinations as a Markdown table, in the order of the cells."""
    from tabulate import tabulate

    rows = [[*cell["gammas"].values(), f"{100 * cell['validation']:.1f}"] for cell in cells]
    headers = [*(f"gamma of {group}" for group in cells[0]["gammas"]), "validation tau x 100"]
    return tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True) + "\n"


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
