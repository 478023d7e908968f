"""Ratings that the embedded checkpoint is trained on: those of WMT 2015-17, and the less noisy of 2018.

    python recipes/ship_ratings.py --wmt2018 WMT2018 --number 12000 --output ratings.jsonl

WMT2018 is what `bleurt-repro data wmt --config-name 2018` wrote. Most ratings of 2018 are one judgement each; it takes
those of at least two, evenly over the language pairs, and their mean where several systems gave the same candidate. They
are shrunk towards 0 and cut, since a mean of two judgements varies more than the means of fifteen before 2018. With
--least-judgements 1 it takes the others, too.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
from bleurt_repro.metric.files.writing import write_json_lines

SHRINKAGE = 0.7  # brings their deviation (0.80) to that of the ratings of 2015-17 (0.59)
MOST = 1.5


def main(
    wmt2018: Annotated[Path, typer.Option(help="Folder with train.jsonl and test.jsonl.")],
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    held_out: Annotated[Path | None, typer.Option(help="JSONL file for those of 2018 with other references.")] = None,
    number: Annotated[int, typer.Option(help="How many ratings of 2018 to take.")] = 12_000,
    seed: Annotated[int, typer.Option(help="Of which are taken.")] = 0,
    least_judgements: Annotated[
        int, typer.Option(help="Judgements that a rating of 2018 is the mean of, at least.")
    ] = 2,
    never: Annotated[Path | None, typer.Option(help="JSONL file of ratings whose references are not taken.")] = None,
) -> None:
    """Write all ratings of 2015-17 in the folder's train.jsonl, then those of 2018."""
    left_out = {row["reference"] for row in rating_records(never)} if never else set()
    ratings_of_2018 = rating_records(wmt2018 / "test.jsonl")
    same: dict[tuple[str, str, str], list[dict]] = defaultdict(list)
    for row in ratings_of_2018:
        if (row["n_annotations"] or 0) >= least_judgements and row["reference"] not in left_out:
            same[row["lp"], row["reference"], row["candidate"]].append(row)
    by_pair: dict[str, list[dict]] = defaultdict(list)
    for (lp, _, _), rows in same.items():
        score = SHRINKAGE * float(np.mean([row["score"] for row in rows]))
        by_pair[lp].append({**rows[0], "score": round(float(np.clip(score, -MOST, MOST)), 6)})
    random = np.random.default_rng(seed)
    taken: list[dict] = []
    for i, (_, rows) in enumerate(sorted(by_pair.items(), key=lambda item: len(item[1]))):
        wanted = (number - len(taken)) // (len(by_pair) - i)
        taken += [rows[j] for j in sorted(random.permutation(len(rows))[:wanted])]
    train = rating_records(wmt2018 / "train.jsonl")
    write_json_lines(output, [*train, *taken])
    if held_out is not None:
        seen = {row["reference"] for row in taken}
        write_json_lines(held_out, [row for row in ratings_of_2018 if row["reference"] not in seen])
    typer.echo(f"{len(train):,} ratings of 2015-17, {len(taken):,} of 2018")


if __name__ == "__main__":
    typer.run(main)
