"""Search the weights of the groups of signals, on validation ratings alone (BLEURT, section 4.3).

    bleurt-repro pretrain --grid grid.yaml --config pretrain_mini --model ENCODER --pairs FOLDER --output_dir OUT

grid.yaml names the weights to try, and the ratings and settings of the fine-tuning that judges them:

    gammas:
      automatic_metrics: [0.1, 1, 10]
      likelihood: [0, 1]
      classification: [1, 10]
    finetune:
      config: finetune_mini
      train_file: train.jsonl
      validation_file: validation.jsonl

Each combination is pre-trained and fine-tuned in a folder of its own below OUT. The same command goes on after a kill:
what is finished is kept, what was begun is resumed. At the end OUT holds grid.json, grid.md and grid.png.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bleurt_repro.training.run import COLOURS

GRID = "--grid"
# Settings that every combination has for itself.
OWN = ("output_dir", "resume")


def read_grid(path: str) -> tuple[list[dict[str, float]], dict[str, Any]]:
    """Read which weights to try and how to judge them.

    Args:
        path: YAML file as in the module's docstring.

    Returns:
        the combinations, each a weight by group; and the settings of the fine-tuning.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not as it must be.
    """
    import yaml

    if not Path(path).is_file():
        raise FileNotFoundError(f"{GRID}: there is no file {path}; it must be YAML with the keys gammas and finetune")
    try:
        grid = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(grid, dict) or set(grid) != {"gammas", "finetune"}:
        found = ", ".join(map(str, grid)) if isinstance(grid, dict) else type(grid).__name__
        raise ValueError(f"{path} must have the keys gammas and finetune, found {found}")
    gammas, finetune = grid["gammas"], grid["finetune"]
    if not isinstance(gammas, dict) or not all(isinstance(values, list) and values for values in gammas.values()):
        raise ValueError(f"{path}: gammas must name groups, each with a list of weights to try, found {gammas!r}")
    for group, values in gammas.items():
        if wrong := [
            v for v in values if isinstance(v, bool) or not isinstance(v, int | float) or not 0 <= v < math.inf
        ]:
            raise ValueError(f"{path}: weights of {group} must be numbers of at least 0, found {wrong[0]!r}")
    if not isinstance(finetune, dict) or "train_file" not in finetune:
        raise ValueError(f"{path}: finetune must be settings of bleurt-repro finetune, train_file among them")
    if own := [name for name in (*OWN, "model") if name in finetune]:
        raise ValueError(f"{path}: finetune must not set {own[0]}: the grid does")
    combinations = [
        dict(zip(gammas, map(float, values), strict=True)) for values in itertools.product(*gammas.values())
    ]
    return combinations, finetune


def search(path: str, words: Sequence[str]) -> None:
    """Run the search.

    Args:
        path: of the grid.
        words: options of `bleurt-repro pretrain` for every combination; `--output_dir` is the folder of the search, and
            `--grid` is among them.

    Raises:
        ValueError: if the options set a weight or a folder's resuming themselves.
    """
    from tqdm import tqdm

    from bleurt_repro.metric.files.writing import write_text
    from bleurt_repro.training.finetune import main as finetune
    from bleurt_repro.training.pretrain import main as pretrain
    from bleurt_repro.training.run import RESULTS

    combinations, settings = read_grid(path)
    shared, output = _take_output(words)
    judge = [word for key, value in settings.items() for word in (f"--{key}", *map(str, _as_list(value)))]
    cells = []
    for number, gammas in enumerate(combinations, start=1):
        folder = output / _name(gammas)
        if not (folder / "finetuned" / RESULTS).is_file():
            tqdm.write(f"{GRID}: {number} of {len(combinations)}, {_name(gammas)}")
            weights = [word for group, value in gammas.items() for word in (f"--gamma_{group}", str(value))]
            if not (folder / "pretrained" / RESULTS).is_file():
                pretrain([*shared, *weights, "--output_dir", str(folder / "pretrained"), "--resume", "true"])
            tuned = [
                "--model",
                str(folder / "pretrained"),
                "--output_dir",
                str(folder / "finetuned"),
                "--resume",
                "true",
            ]
            finetune([*judge, *tuned])
        best = json.loads((folder / "finetuned" / RESULTS).read_text(encoding="utf-8"))["best"]
        cells.append({"gammas": gammas, "folder": folder.name, "validation": best["value"], "step": best["step"]})
    cells.sort(key=lambda cell: -cell["validation"])
    write_text(output / "grid.json", json.dumps({"measure": "kendall_tau", "cells": cells}, indent=2) + "\n")
    write_text(output / "grid.md", draw_table(cells))
    draw_plot(cells, output / "grid.png")
    tqdm.write(draw_table(cells))


def draw_table(cells: Sequence[dict[str, Any]]) -> str:
    """Give the combinations as a Markdown table, in the order of the cells."""
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


def _take_output(words: Sequence[str]) -> tuple[list[str], Path]:
    """Part the folder of the search from the options that all combinations share."""
    import argparse

    reader = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in (GRID, "--output_dir"):
        reader.add_argument(option)
        if option not in [word.split("=")[0] for word in words]:
            raise ValueError(f"give {option} as an option, not in a configuration: each combination has its own")
    found, shared = reader.parse_known_args(list(words))
    for word in shared:
        if word.startswith("--gamma_") or word.split("=")[0] == "--resume":
            raise ValueError(f"leave out {word.split('=')[0]}: the grid sets the weights, and always goes on")
    return shared, Path(found.output_dir)


def _name(gammas: dict[str, float]) -> str:
    return "_".join(f"{group}-{value:g}" for group, value in gammas.items())


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
