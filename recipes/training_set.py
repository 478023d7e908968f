"""What a scorer learns from: people's ratings, a teacher's labels, longer texts, contrasts.

    python recipes/training_set.py --ratings anchored.jsonl --labels labels/train.jsonl \
        --contrasts contrasts.jsonl --output train.jsonl

Labels (of `bleurt-repro data pseudo-labels`) have mean 0 and deviation 1 over all they label; here they get the mean and
deviation that people's ratings have on the pairs both rate, or those of --like, unless --scaled says that they are on the scale of
ratings (a scorer's own scores). A pair with both gets the mean of both: a rating rests on few
judgements, and metrics err elsewhere (RoBLEURT, section 2.3, replaces noisy ratings by metrics' scores altogether).
Texts of two to four segments are made of both: raters saw one segment at a time, users have paragraphs. Such a
text is rated by the mean of its parts; now and then the candidate lacks a part, has another text's in its place, or has
its parts in another order.
Contrasts keep the scores they were made with, or take a teacher's (`bleurt-repro score --pairs contrasts.jsonl`), which
weighs an error by the sentence it stands in.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from learning_pairs import COLUMNS, LEAST, MOST, write_pairs

from bleurt_repro.datasets_builders.pseudo_labels import read_scores
from bleurt_repro.datasets_builders.ratings.rating_files import rating_records

Row = dict[str, Any]
Key = tuple[str, str]
MOST_SEGMENTS = 4
# Of longer texts: how often a part is missing or another's, and what it is rated then; how often parts are reordered.
MISSING_SHARE, STRANGE_SHARE, REORDERED_SHARE = 0.08, 0.04, 0.15
LOST = -1.4


def main(
    ratings: Annotated[Path, typer.Option(help="People's ratings, with or without anchors (`data anchors`).")],
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            help="train.jsonl of `bleurt-repro data pseudo-labels`; repeatable, the first that has a pair counts."
        ),
    ] = None,
    scaled: Annotated[bool, typer.Option(help="Labels are on the ratings' scale: take them as they are.")] = False,
    like: Annotated[
        Path | None,
        typer.Option(
            help="Scores, one a line, whose mean and deviation labels get, instead of those of people's ratings."
        ),
    ] = None,
    contrasts: Annotated[Path | None, typer.Option(help="JSONL file of `bleurt-repro data contrasts`.")] = None,
    contrast_scores: Annotated[
        Path | None, typer.Option(help="Their scores by a teacher, one a line, instead of those in the file.")
    ] = None,
    joined: Annotated[int, typer.Option(help="Longer texts to put together.")] = 6_000,
    seed: Annotated[int, typer.Option(help="Of what is put together.")] = 0,
) -> None:
    """Write ratings, labels, longer texts and contrasts."""
    if scaled and like:
        raise typer.BadParameter(
            "--scaled takes labels as they are, --like gives them another scale: name one of the two"
        )
    given = rating_records(ratings)
    altered = read_contrasts(contrasts, contrast_scores)
    label: dict[Key, float] = {}
    for path in labels or ():
        label = (
            labels_of(path) if scaled else on_scale_of(like, path) if like else on_scale_of_ratings(path, given)
        ) | label
    both = [row for row in given if not _is_anchor(row) and _key(row) in label]
    shared = {_key(row) for row in both}
    rated = [
        {**row, "score": (row["score"] + label[_key(row)]) / 2} if not _is_anchor(row) and _key(row) in shared else row
        for row in given
    ]
    unrated = [
        {"reference": key[0], "candidate": key[1], "score": score, "system": "label"}
        for key, score in label.items()
        if key not in shared
    ]
    parts = [row for row in [*rated, *unrated] if row["candidate"].strip() and not _is_anchor(row)]
    longer = join(parts, joined, np.random.default_rng(seed))
    rows = [*rated, *unrated, *longer, *altered]
    write_pairs(output, ({name: row.get(name) for name in COLUMNS} for row in rows))
    typer.echo(
        f"{len(rated):,} ratings and anchors ({len(both):,} with a label), {len(unrated):,} labels, {len(longer):,} longer, "
        f"{len(rows):,} in all"
    )


def labels_of(path: Path) -> dict[Key, float]:
    """Read labels: the score of each pair, within the bounds."""
    return {_key(row): float(np.clip(float(row["score"]), LEAST, MOST)) for row in rating_records(path)}


def on_scale_of(scores: Path, path: Path) -> dict[Key, float]:
    """Read labels, and give them the mean and deviation of the scores of as many pairs."""
    rows = rating_records(path)
    given = np.array(read_scores(scores, len(rows), "labels"))
    theirs = np.array([row["score"] for row in rows], dtype=float)
    moved = given.mean() + given.std() / theirs.std() * (theirs - theirs.mean())
    return {_key(row): float(np.clip(score, LEAST, MOST)) for row, score in zip(rows, moved, strict=True)}


def on_scale_of_ratings(path: Path, ratings: list[Row]) -> dict[Key, float]:
    """Read labels, and give them the mean and deviation that people's ratings have on the pairs both rate."""
    label = {_key(row): float(row["score"]) for row in rating_records(path)}
    both = [row for row in ratings if not _is_anchor(row) and _key(row) in label]
    if len(both) < 2:
        raise typer.BadParameter(
            f"{path} labels {len(both)} pairs of the ratings: at least two give labels their scale"
        )
    theirs, people = (np.array(x) for x in zip(*((label[_key(row)], row["score"]) for row in both), strict=True))
    slope = people.std() / theirs.std()
    offset = people.mean() - slope * theirs.mean()
    typer.echo(f"{path}: agreement with {len(both):,} ratings r {np.corrcoef(theirs, people)[0, 1]:.3f}")
    return {key: float(np.clip(offset + slope * score, LEAST, MOST)) for key, score in label.items()}


def read_contrasts(contrasts: Path | None, scores: Path | None) -> list[Row]:
    """Read contrasts, with a teacher's scores where there are some."""
    rows = rating_records(contrasts) if contrasts else []
    if scores is None:
        return rows
    given = read_scores(scores, len(rows), "contrasts")
    return [{**row, "score": float(np.clip(score, LEAST, MOST))} for row, score in zip(rows, given, strict=True)]


def join(rows: list[Row], number: int, random: np.random.Generator) -> list[Row]:
    """Put two to `MOST_SEGMENTS` segments together, `number` times; the score is the mean of the parts'."""
    made = []
    for _ in range(number):
        parts = [rows[i] for i in random.integers(len(rows), size=random.integers(2, MOST_SEGMENTS + 1))]
        fates = random.random(len(parts))
        missing, strange = fates < MISSING_SHARE, fates > 1 - STRANGE_SHARE
        candidates = [
            rows[random.integers(len(rows))]["candidate"] if other else part["candidate"]
            for part, other, gone in zip(parts, strange, missing, strict=True)
            if not gone
        ]
        if random.random() < REORDERED_SHARE:
            candidates = [candidates[i] for i in random.permutation(len(candidates))]
        scores = np.where(missing | strange, LOST, [part["score"] for part in parts])
        made.append(
            {
                "reference": " ".join(part["reference"].strip() for part in parts),
                "candidate": " ".join(text.strip() for text in candidates),
                "score": float(scores.mean()),
                "system": "joined",
            }
        )
    return made


def _key(row: Row) -> Key:
    return row["reference"], row["candidate"]


def _is_anchor(row: Row) -> bool:
    return str(row["system"]).startswith("anchor")


if __name__ == "__main__":
    typer.run(main)
