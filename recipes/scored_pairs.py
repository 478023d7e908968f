"""Pairs with the scores that `bleurt-repro score` gave them, one a line.

bleurt-repro score --pairs pairs.jsonl --checkpoint bleurt-repro-base --output scores.txt
python recipes/scored_pairs.py --pairs pairs.jsonl --scores scores.txt --output scored.jsonl

With --lowered, a pair whose score is above the one that it has in the file gets the mean of both: a step towards that. With --unbounded, scores
of copies and empty candidates stay beyond what people give.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from learning_pairs import LEAST, MOST, write_pairs

from bleurt_repro.datasets_builders.pseudo_labels import read_scores
from bleurt_repro.datasets_builders.ratings.rating_files import rating_records


def main(
    pairs: Annotated[Path, typer.Option(help="JSONL file of references and candidates.")],
    scores: Annotated[Path, typer.Option(help="Their scores, one a line.")],
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    unbounded: Annotated[bool, typer.Option(help="Scores beyond the bounds of ratings stay what they are.")] = False,
    lowered: Annotated[bool, typer.Option(help="Halfway to the file's own score where that is lower.")] = False,
) -> None:
    """Write the pairs with their scores, within the bounds of ratings unless told otherwise."""
    rows = rating_records(pairs, required=("reference", "candidate", *(["score"] if lowered else [])))
    given = np.array(read_scores(scores, len(rows), "pairs"))
    if not unbounded:
        given = np.clip(given, LEAST, MOST)
    if lowered:
        own = np.array([row["score"] for row in rows])
        given = np.minimum(given, (given + own) / 2)
    write_pairs(output, ({**row, "score": float(score)} for row, score in zip(rows, given, strict=True)))
    typer.echo(f"{len(rows):,} pairs")


if __name__ == "__main__":
    typer.run(main)
