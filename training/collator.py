"""Tokenise columns of text as the scorer does, and collate the tokens of several pairs into a padded batch."""

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
ROWS_PER_PROCESS = 20_000  # fewer are not worth the start of a process


def encode_texts(
    dataset: Dataset,
    tokenizer: PreTrainedTokenizerBase,
    layout: Layout,
    keep: Sequence[str],
    num_proc: int | None = None,
) -> Dataset:
    """Tokenise the texts of a data set as the scorer does; a data set on disk is tokenised once, also for later runs.

    Args:
        dataset: data set with a column for each input of the layout.
        tokenizer: tokenizer of the model.
        layout: texts that the model reads, and the maximum number of tokens.
        keep: further columns to keep, such as targets.
        num_proc: number of processes; by default one per core, and fewer for few rows.

    Returns:
        data set with `MODEL_INPUTS`, "length" in tokens, "truncated", and the kept columns.

    Raises:
        ValueError: if a column is missing, or there are no rows.
    """
    if missing := [name for name in (*layout.inputs, *keep) if name not in dataset.column_names]:
        raise ValueError(f"the data lack {', '.join(missing)}; they have {', '.join(dataset.column_names)}")
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

    removed = [name for name in dataset.column_names if name not in keep]
    processes = num_proc or min(os.cpu_count() or 1, len(dataset) // ROWS_PER_PROCESS)
    return dataset.map(
        encode,
        batched=True,
        remove_columns=removed,
        num_proc=processes if processes > 1 else None,
        desc="tokenise",
    )


@dataclass
class PairCollator:
    """Collates pairs into a batch, padded to the longest of them.

    Attributes:
        tokenizer: tokenizer of the model.
        targets: columns to stack as float tensors, with the argument of the model that each becomes.
        segments: whether the model distinguishes texts by token types; RoBERTa and XLM-R have none.
    """

    tokenizer: PreTrainedTokenizerBase
    targets: dict[str, str]
    segments: bool = True

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Tensor]:
        """Return a batch: inputs of shape (pairs, tokens), targets of shape (pairs,) or (pairs, size)."""
        import torch

        names = [name for name in MODEL_INPUTS if self.segments or name != "token_type_ids"]
        inputs = [{name: row[name] for name in names} for row in rows]
        batch = dict(self.tokenizer.pad(inputs, return_tensors="pt"))
        for column, name in self.targets.items():
            batch[name] = torch.tensor([row[column] for row in rows], dtype=torch.float32)
        return batch
