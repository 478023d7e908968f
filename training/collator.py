"""From columns of text to what the model reads, and to padded batches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.forward.encoding import PairEncoder
from bleurt_repro.metric.layout import Layout

if TYPE_CHECKING:
    from datasets import Dataset
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

MODEL_INPUTS = ("input_ids", "token_type_ids", "attention_mask")


# Rows from which on several processes are worth their start.
ROWS_OF_A_PROCESS = 20_000


def encode_texts(
    dataset: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    layout: Layout,
    keep: Sequence[str],
    num_proc: int | None = None,
) -> Dataset:
    """Tokenise the texts of a data set as the scorer will; data sets on disk once, for whoever tokenises them again.

    Args:
        dataset: with a column for each of the layout's inputs.
        tokenizer: the model's.
        layout: which texts the model reads, and how long.
        keep: columns to carry along, such as targets.
        num_proc: processes that tokenise; by default one per core, and fewer for few rows.

    Returns:
        `MODEL_INPUTS`, "length" in tokens, "truncated", and the kept columns.

    Raises:
        ValueError: if a column is missing, or there are no rows.
    """
    if lacking := [name for name in (*layout.inputs, *keep) if name not in dataset.column_names]:
        raise ValueError(f"the data lack {', '.join(lacking)}; they have {', '.join(dataset.column_names)}")
    if not len(dataset):
        raise ValueError("the data have no rows: there is nothing to train on")
    encoder = PairEncoder(tokenizer, layout)

    def encode(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        rows = list(zip(*(batch[role] for role in layout.inputs), strict=True))
        tokens = encoder.tokenize(text for row in rows for text in row)
        encoded = [encoder.encode([tokens[text] for text in row]) for row in rows]
        return {
            "input_ids": [pair.ids for pair in encoded],
            "token_type_ids": [pair.segments for pair in encoded],
            "attention_mask": [[1] * len(pair.ids) for pair in encoded],
            "length": [len(pair.ids) for pair in encoded],
            "truncated": [pair.truncated for pair in encoded],
        }

    left_out = [name for name in dataset.column_names if name not in keep]
    processes = num_proc or min(os.cpu_count() or 1, len(dataset) // ROWS_OF_A_PROCESS)
    return dataset.map(
        encode,
        batched=True,
        remove_columns=left_out,
        num_proc=processes if processes > 1 else None,
        desc="tokenise",
    )


@dataclass
class PairCollator:
    """Pads a batch to its own longest input.

    Attributes:
        tokenizer: the model's.
        targets: columns to stack as float tensors, each with the name of the model's argument.
        segments: whether the model tells texts apart by token types; RoBERTa and XLM-R have none.
    """

    tokenizer: PreTrainedTokenizerBase
    targets: dict[str, str]
    segments: bool = True

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Tensor]:
        """Make a batch: inputs of shape (pairs, tokens), targets of shape (pairs,) or (pairs, size)."""
        import torch

        names = [name for name in MODEL_INPUTS if self.segments or name != "token_type_ids"]
        inputs = [{name: row[name] for name in names} for row in rows]
        batch = dict(self.tokenizer.pad(inputs, return_tensors="pt"))
        for column, name in self.targets.items():
            batch[name] = torch.tensor([row[column] for row in rows], dtype=torch.float32)
        return batch
