"""Pairs with the scores that `bleurt-repro score` gave them, one a line.

bleurt-repro score --pairs pairs.jsonl --checkpoint bleurt-repro-base --output scores.txt
python recipes/scored_pairs.py --pairs pairs.jsonl --scores scores.txt --output scored.jsonl

With --lowered, a pair whose score is above the one that it has in the file gets the mean of both: a step towards that. With --unbounded, scores
of copies and empty candidates stay beyond what people give. With --apart, of contrasts whose meaning is kept and, in the next line, turned, the
second gets less than the first by so much at least; --raised adds to the first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from learning_pairs import LEAST, MOST, write_pairs

from bleurt_repro.datasets_builders.pseudo_labels import read_scores
from bleurt_repro.datasets_builders.ratings.rating_files import rating_records

Scores = np.ndarray[tuple[int], np.dtype[np.float64]]


def main(
    pairs: Annotated[Path, typer.Option(help="JSONL file of references and candidates.")],
    scores: Annotated[Path, typer.Option(help="Their scores, one a line.")],
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    unbounded: Annotated[bool, typer.Option(help="Scores beyond the bounds of ratings stay what they are.")] = False,
    lowered: Annotated[bool, typer.Option(help="Halfway to the file's own score where that is lower.")] = False,
    apart: Annotated[
        float | None,
        typer.Option(help="How far a turned contrast is below the kept one in the line before, at least."),
    ] = None,
    raised: Annotated[float, typer.Option(help="With --apart: what a kept contrast gets above its score.")] = 0.0,
) -> None:
    """Write the pairs with their scores, within the bounds of ratings unless told otherwise."""
    rows = rating_records(pairs, required=("reference", "candidate", *(["score"] if lowered else [])))
    given = np.array(read_scores(scores, len(rows), "pairs"))
    if not unbounded:
        given = np.clip(given, LEAST, MOST)
    if lowered:
        own = np.array([row["score"] for row in rows])
        given = np.minimum(given, (given + own) / 2)
    if apart is not None:
        given = _apart([str(row["system"]) for row in rows], given, apart, raised)
    write_pairs(output, ({**row, "score": float(score)} for row, score in zip(rows, given, strict=True)))
    typer.echo(f"{len(rows):,} pairs")


def _apart(systems: list[str], given: Scores, apart: float, raised: float) -> Scores:
    """Return the scores with each turned contrast `apart` below the one before it, or where it was if that is lower."""
    kept, turned = (np.array([system.endswith(f" {end}") for system in systems]) for end in ("kept", "turned"))
    if len(systems) % 2 or not kept[::2].all() or not turned[1::2].all():
        raise typer.BadParameter(
            "--apart: expected contrasts 'kept' and 'turned' in turns, such as those of `data paraphrases`"
        )
    moved = given.copy()
    moved[::2] += raised
    moved[1::2] = np.minimum(given[1::2], given[::2] - apart)
    return moved


if __name__ == "__main__":
    typer.run(main)
