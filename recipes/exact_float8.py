"""A checkpoint whose matrices are rounded to float8 (e4m3) so that what they compute on given pairs changes least.

    python recipes/exact_float8.py --checkpoint mean --pairs train.jsonl --output rounded
    bleurt-repro average rounded --dtype float8 --max-shard-size 45MB --output bleurt-repro-base

`average --dtype float8` rounds each number by itself. Here the error that a number makes is made up for by those after it in its row, as
far as their inputs go together (GPTQ, https://arxiv.org/abs/2210.17323). Layer follows layer, each reads what the rounded ones before it
pass on. A matrix that is in float8 already, such as one of a frozen layer, stays what it is. The output is stored in float32, and has the
results.json of what was rounded; the second command stores it in float8, where its numbers fit.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
from bleurt_repro.metric.loading.open import load_checkpoint
from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer

MOST_TOKENS = 160
# What is added to the diagonal of the inputs' covariance, as a share of its mean, and how many columns are rounded before the others
# are told (GPTQ's own).
DAMPING, COLUMNS = 0.01, 128


def main(
    checkpoint: Annotated[str, typer.Option(help="Folder of the checkpoint.")],
    pairs: Annotated[
        Path, typer.Option(help="JSONL file of references and candidates, of the kinds that it is to score.")
    ],
    output: Annotated[Path, typer.Option(help="Folder to write.")],
    number: Annotated[
        int, typer.Option(help="How many pairs, drawn at random; all are held in memory at once.")
    ] = 430,
    seed: Annotated[int, typer.Option(help="Of which are drawn.")] = 0,
) -> None:
    """Write the rounded checkpoint, and print by how much rounding changes what a matrix computes."""
    found = load_checkpoint(checkpoint)
    rows = rating_records(pairs, required=("reference", "candidate"))
    drawn = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))[:number]]
    texts = found.tokenizer(
        [row["reference"] for row in drawn],
        [row["candidate"] for row in drawn],
        padding=True,
        truncation=True,
        max_length=min(MOST_TOKENS, found.layout.max_length),
        return_tensors="pt",
    )
    errors = round_model(found.model.eval(), texts)
    prepare_scorer(found.model, found.tokenizer, found.layout)
    save_scorer(found.model, found.tokenizer, output)
    results = Path(checkpoint) / "results.json"
    if results.exists():
        shutil.copy(results, output)
    nearest, exact = np.mean(errors, axis=0) if errors else (0.0, 0.0)
    typer.echo(
        f"{len(errors)} matrices: change of what they compute {exact:.2%}, by rounding to the nearest {nearest:.2%}"
    )


def round_model(model: Any, texts: Any) -> list[tuple[float, float]]:
    """Round the matrices of a model's layers and head, while it reads the texts once.

    Returns:
        of each matrix that was not in float8, the relative changes of its outputs: by rounding to the nearest, and by this.
    """
    errors: list[tuple[float, float]] = []
    is_text = texts["attention_mask"].bool()
    blocks = [*model.base_model.encoder.layer, getattr(model.base_model, "pooler", None), model.classifier]
    hooks = [
        block.register_forward_pre_hook(_Rounding(is_text, errors), with_kwargs=True)
        for block in blocks
        if block is not None
    ]
    with torch.no_grad():
        model(**texts)
    for hook in hooks:
        hook.remove()
    return errors


class _Rounding:
    """Rounds the matrices of a block, by what it is about to read."""

    def __init__(self, is_text: torch.Tensor, errors: list[tuple[float, float]]) -> None:
        self.is_text, self.errors, self.runs = is_text, errors, False

    def __call__(self, block: Any, words: tuple[Any, ...], options: dict[str, Any]) -> None:
        if self.runs:  # the block runs below, to see what its matrices read
            return
        self.runs = True
        matrices = [module for module in block.modules() if isinstance(module, torch.nn.Linear)]
        read: dict[torch.nn.Module, torch.Tensor] = {}
        hooks = [
            matrix.register_forward_pre_hook(lambda matrix, words: read.update({matrix: self._of_text(words[0])}))
            for matrix in matrices
        ]
        block(*words, **options)
        for hook in hooks:
            hook.remove()
        for matrix in matrices:
            weights = matrix.weight.data
            nearest = in_float8(weights)
            if not torch.equal(nearest, weights):
                inputs = read[matrix]
                square = inputs.T @ inputs / len(inputs)
                matrix.weight.data = rounded(weights, square)
                self.errors.append((_change(nearest, weights, square), _change(matrix.weight.data, weights, square)))
        self.runs = False

    def _of_text(self, inputs: torch.Tensor) -> torch.Tensor:
        """Vectors of tokens, without those that fill up the batch."""
        if inputs.shape[:-1] == self.is_text.shape:
            return inputs[self.is_text]
        return inputs.reshape(-1, inputs.shape[-1])


def in_float8(weights: torch.Tensor) -> torch.Tensor:
    """Round each number to the nearest of float8."""
    return weights.to(torch.float8_e4m3fn).float()


def rounded(weights: torch.Tensor, square: torch.Tensor) -> torch.Tensor:
    """Round a matrix column by column, and make up for each error in the columns after it (GPTQ, algorithm 1).

    Args:
        weights: one row per output.
        square: mean outer product of the inputs with themselves.
    """
    square = square + DAMPING * square.diagonal().mean() * torch.eye(len(square))
    inverse = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(square)), upper=True)
    left, result = weights.clone(), torch.empty_like(weights)
    for start in range(0, weights.shape[1], COLUMNS):
        end = min(start + COLUMNS, weights.shape[1])
        errors = torch.empty_like(left[:, start:end])
        for column in range(start, end):
            result[:, column] = in_float8(left[:, column])
            error = (left[:, column] - result[:, column]) / inverse[column, column]
            left[:, column:end] -= error[:, None] * inverse[column, column:end]
            errors[:, column - start] = error
        left[:, end:] -= errors @ inverse[start:end, end:]
    return result


def _change(other: torch.Tensor, weights: torch.Tensor, square: torch.Tensor) -> float:
    """Root mean square of the outputs' change, as a share of the outputs'."""
    difference = other - weights
    return float(((difference @ square) * difference).sum().sqrt() / ((weights @ square) * weights).sum().sqrt())


if __name__ == "__main__":
    typer.run(main)
