"""Parts of a training set, one for each of the runs whose weights will be averaged.

    python recipes/training_parts.py --train train.jsonl --parts 2 --output part

It writes part-1.jsonl, part-2.jsonl, ...: people's ratings are in all of them, a label in one. With --longest, labels of longer pairs are
left out: a short pair teaches about as much, in less time.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Annotated

import typer
from learning_pairs import write_pairs

from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
from bleurt_repro.metric.loading.find import find_checkpoint


def main(
    train: Annotated[Path, typer.Option(help="What training_set.py wrote.")],
    output: Annotated[Path, typer.Option(help="Files to write, without -1.jsonl and so on.")],
    parts: Annotated[int, typer.Option(help="How many.")] = 2,
    most: Annotated[int | None, typer.Option(help="Labels of a part; by default all are shared out.")] = None,
    longest: Annotated[int | None, typer.Option(help="Tokens of a label's pair, at most; needs --encoder.")] = None,
    encoder: Annotated[str | None, typer.Option(help="Whose tokens these are: folder or Hub id.")] = None,
    seed: Annotated[int, typer.Option(help="Of the order.")] = 0,
) -> None:
    """Write the parts."""
    if longest is not None and encoder is None:
        raise typer.BadParameter("--longest counts tokens of an encoder: name it with --encoder")
    rows = rating_records(train)
    rated = [row for row in rows if row["system"] != "label"]
    labels = [row for row in rows if row["system"] == "label"]
    if longest is not None and encoder is not None:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(find_checkpoint(encoder))
        pairs = tokenizer([row["reference"] for row in labels], [row["candidate"] for row in labels])
        labels = [row for row, ids in zip(labels, pairs["input_ids"], strict=True) if len(ids) <= longest]
    mixer = random.Random(seed)
    mixer.shuffle(labels)
    size = len(labels) // parts if most is None else most
    for part in range(parts):
        chosen = labels[part * size : (part + 1) * size] + rated
        mixer.shuffle(chosen)
        write_pairs(output.with_name(f"{output.name}-{part + 1}.jsonl"), chosen)
        typer.echo(f"part {part + 1}: {len(chosen):,} pairs, {len(rated):,} of them rated")


if __name__ == "__main__":
    typer.run(main)
