"""What the embedded checkpoint sees in its short last pass: a sample of its training set, and more of what it lacks.

    python training/recipes/ship_last_pass.py --train train.jsonl --contrasts mirrored.jsonl --output last.jsonl

The mean of two runs' weights blurs what each knows of identical and empty candidates; this brings it back. References
are drawn from the whole training set, so that short ones, which are the hard ones here, have their share. Further
contrast pairs may join in.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bleurt_repro.datasets_builders.rating_files import rating_records
from bleurt_repro.metric.atomic import write_text


def main(
    train: Annotated[Path, typer.Option(help="What training_set.py wrote.")],
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    number: Annotated[int, typer.Option(help="Pairs of the training set.")] = 11_000,
    identical: Annotated[int, typer.Option(help="Identical pairs.")] = 2_000,
    empty: Annotated[int, typer.Option(help="Pairs with an empty candidate.")] = 2_000,
    contrasts: Annotated[Path | None, typer.Option(help="JSONL file of `bleurt-repro data contrasts`.")] = None,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
) -> None:
    """Write the sample, then the extremes, rated as the anchors of the training set are, then the contrasts."""
    rows = rating_records(train)
    random = np.random.default_rng(seed)
    references = sorted({row["reference"] for row in rows})
    drawn = [rows[i] for i in random.permutation(len(rows))[:number]]
    for kind, best, extremes in (("identical", max, identical), ("empty", min, empty)):
        score = best(row["score"] for row in rows if row["system"] == f"anchor: {kind}")
        for reference in random.choice(references, size=extremes, replace=False):
            text = str(reference)
            candidate = text if kind == "identical" else ""
            drawn.append({"reference": text, "candidate": candidate, "score": score, "system": f"anchor: {kind}"})
    drawn += rating_records(contrasts) if contrasts else []
    names = ("reference", "candidate", "score", "system")
    write_text(
        output,
        "".join(json.dumps({name: row.get(name) for name in names}, ensure_ascii=False) + "\n" for row in drawn),
    )
    typer.echo(f"{len(drawn):,} pairs")


if __name__ == "__main__":
    typer.run(main)
