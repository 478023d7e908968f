"""What one round of training sees: a sample of the training set, and more of what a model lacks.

    python recipes/training_round.py --train train.jsonl --contrasts templates.jsonl --output round.jsonl

The mean of two runs' weights scores identical and empty candidates worse than each run does; more of them correct that. References
are drawn from the whole training set, so that short ones, which are the hard ones here, have their share. Outputs that are
nearly their reference show that identical means identical. Pairs of `bleurt-repro data roles` and the like may join in; their
references need identical pairs of their own, or copies of such sentences get low scores.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from learning_pairs import COLUMNS, write_pairs

from bleurt_repro.datasets_builders.ratings.rating_files import rating_records


def main(
    train: Annotated[Path, typer.Option(help="What training_set.py wrote.")],
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    number: Annotated[int, typer.Option(help="Pairs of the training set.")] = 11_000,
    identical: Annotated[int, typer.Option(help="Identical pairs.")] = 2_000,
    empty: Annotated[int, typer.Option(help="Pairs with an empty candidate.")] = 2_000,
    near: Annotated[
        int,
        typer.Option(help="Take all outputs that differ from their reference by so many words, 1 to this; 0: none."),
    ] = 0,
    identical_contrasts: Annotated[
        int, typer.Option(help="Identical pairs of the contrasts' references, at most.")
    ] = 0,
    contrasts: Annotated[
        Path | None, typer.Option(help="JSONL file of `bleurt-repro data contrasts`, `roles` or the like.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
) -> None:
    """Write the sample, then outputs near their reference, the extremes, rated as anchors are, and the contrasts."""
    rows = rating_records(train)
    random = np.random.default_rng(seed)
    references = sorted({row["reference"] for row in rows})
    drawn = [rows[i] for i in random.permutation(len(rows))[:number]]
    drawn += [row for row in rows if not made_up(row) and 0 < different_words(row) <= near]
    others = rating_records(contrasts) if contrasts else []
    theirs = sorted({row["reference"] for row in others})
    for kind, best, number_of, texts in (
        ("identical", max, identical, references),
        ("empty", min, empty, references),
        ("identical", max, min(identical_contrasts, len(theirs)), theirs),
    ):
        score = best(row["score"] for row in rows if row["system"] == f"anchor: {kind}")
        for reference in random.choice(texts, size=number_of, replace=False) if number_of else ():
            text = str(reference)
            candidate = text if kind == "identical" else ""
            drawn.append({"reference": text, "candidate": candidate, "score": score, "system": f"anchor: {kind}"})
    drawn += others
    write_pairs(output, ({name: row.get(name) for name in COLUMNS} for row in drawn))
    typer.echo(f"{len(drawn):,} pairs")


def made_up(row: dict[str, Any]) -> bool:
    """Return whether a row is an anchor, a contrast or a longer text, and no system's output."""
    return str(row["system"]).startswith(("anchor", "contrast", "joined"))


def different_words(row: dict[str, Any]) -> int:
    """Count the words and punctuation marks that only one of reference and candidate has; casing and order aside."""
    words, others = (Counter(re.findall(r"\w+|[^\w\s]", row[side].lower())) for side in ("reference", "candidate"))
    return sum(((words - others) + (others - words)).values())


if __name__ == "__main__":
    typer.run(main)
