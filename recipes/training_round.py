"""What one round of training sees: a sample of the training set, and more of what a model lacks.

    python recipes/training_round.py --train train.jsonl --contrasts templates.jsonl --output round.jsonl

The mean of two runs' weights scores identical and empty candidates worse than each run does; more of them correct that. References
are drawn from the whole training set, so that short ones, which are the hard ones here, have their share. Outputs that are
nearly their reference show that identical means identical. A text that stands twice looks like a copy, most of all one
of several sentences; those of `bleurt-repro data near-copies` are single ones. Pairs of `bleurt-repro data roles` and the like may join in; their
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

# What a text that stands twice is worth, in standard deviations of ratings; of a longer one 256 tokens hold no more than of a copy.
REPEATED, MOST_WORDS_TWICE = -0.6, 75


def main(
    train: Annotated[Path, typer.Option(help="What training_set.py wrote.")],
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    number: Annotated[int, typer.Option(help="Pairs of the training set.")] = 11_000,
    identical: Annotated[int, typer.Option(help="Identical pairs.")] = 2_000,
    empty: Annotated[int, typer.Option(help="Pairs with an empty candidate.")] = 2_000,
    empty_score: Annotated[
        float | None, typer.Option(help="Score of pairs with an empty candidate, instead of the anchors' own.")
    ] = None,
    identical_score: Annotated[float | None, typer.Option(help="Likewise of identical pairs.")] = None,
    repeated: Annotated[int, typer.Option(help="Pairs whose candidate is the reference twice.")] = 0,
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
    for kind, other in (("anchor: empty", empty_score), ("anchor: identical", identical_score)):
        if other is not None:
            rows = [{**row, "score": other} if row["system"] == kind else row for row in rows]
    random = np.random.default_rng(seed)
    references = sorted({row["reference"] for row in rows})
    drawn = [rows[i] for i in random.permutation(len(rows))[:number]]
    drawn += [row for row in rows if not made_up(row) and 0 < different_words(row) <= near]
    others = rating_records(contrasts) if contrasts else []
    theirs = sorted({row["reference"] for row in others})
    short = [text for text in references if len(text.split()) <= MOST_WORDS_TWICE]
    best = max((row["score"] for row in rows if row["system"] == "anchor: identical"), default=np.nan)
    worst = min((row["score"] for row in rows if row["system"] == "anchor: empty"), default=np.nan)
    for kind, times, score, number_of, texts in (
        ("anchor: identical", 1, best, identical, references),
        ("anchor: empty", 0, worst, empty, references),
        ("anchor: identical", 1, best, min(identical_contrasts, len(theirs)), theirs),
        ("contrast: repeated", 2, REPEATED, min(repeated, len(short)), short),
    ):
        if number_of and np.isnan(score):
            raise typer.BadParameter(
                f"{train} has no pairs of {kind!r}, whose score those to add would get: ask for none, or add some"
            )
        for reference in random.choice(texts, size=number_of, replace=False) if number_of else ():
            text = str(reference)
            drawn.append({"reference": text, "candidate": " ".join([text] * times), "score": score, "system": kind})
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
