"""Figures that the embedded checkpoint was chosen by, for any checkpoints: one row each, Kendall tau x 100.

    python recipes/ship_choice.py CHECKPOINT ... --wmt2018 WMT2018 --held-out held_out.jsonl --webnlg WEBNLG

Validation ratings of 2015-17, all and as the mean of the years; 3,000 ratings of 2018 of at least two judgements whose
references no stage was trained on, mean of the language pairs; 700 outputs of WebNLG 2017, fluency, grammar and semantics, the
highest score over an output's references. The last two are samples, for a quick look. `--rest` writes the other held-out
ratings of 2018, for figures that no choice looked at.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy.stats import kendalltau

from bleurt_repro import BleurtScorer
from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
from bleurt_repro.datasets_builders.ratings.webnlg import ASPECTS, read_webnlg
from bleurt_repro.metric.files.writing import write_json_lines

Row = dict[str, Any]
OF_2018, OF_WEBNLG = 3_000, 700


def main(
    checkpoints: Annotated[list[str], typer.Argument(help="Folders, embedded names or Hub ids.")],
    wmt2018: Annotated[Path, typer.Option(help="Folder with validation.jsonl.")],
    held_out: Annotated[Path, typer.Option(help="What ship_ratings.py held out.")],
    webnlg: Annotated[Path, typer.Option(help="Folder or file of WebNLG 2017 ratings.")],
    seed: Annotated[int, typer.Option(help="Of both samples.")] = 0,
    rest: Annotated[
        Path | None,
        typer.Option(help="JSONL file for the held-out ratings that are not in the sample: no choice saw them."),
    ] = None,
) -> None:
    """Score, and print a row for each checkpoint."""
    validation = rating_records(wmt2018 / "validation.jsonl")
    of_2018, others = sample_of_2018(rating_records(held_out), seed)
    if rest is not None:
        write_json_lines(rest, others)
    outputs = _some([row for row in read_webnlg(webnlg) if not row["missing_output"]], OF_WEBNLG, seed)
    typer.echo("| checkpoint | validation | by year | 2018 | WebNLG " + " | ".join(ASPECTS) + " |")
    for name in checkpoints:
        scorer = BleurtScorer(name)
        own = scorer.score_rows(validation)
        figures = [
            kendalltau(own, [row["score"] for row in validation]).statistic,
            _mean_tau(validation, own, "year"),
            _mean_tau(of_2018, scorer.score_rows(of_2018), "lp"),
        ]
        best = scorer.score_rows(outputs)
        figures += [kendalltau(best, [row[aspect] for row in outputs]).statistic for aspect in ASPECTS]
        typer.echo(f"| {scorer.checkpoint} | " + " | ".join(f"{100 * tau:.1f}" for tau in figures) + " |")


def sample_of_2018(rows: list[Row], seed: int) -> tuple[list[Row], list[Row]]:
    """Split held-out ratings into the sample that choices look at, and those of other pairs of reference and candidate."""
    sample = _some([row for row in rows if (row["n_annotations"] or 0) >= 2], OF_2018, seed)
    seen = {(row["reference"], row["candidate"]) for row in sample}
    return sample, [row for row in rows if (row["reference"], row["candidate"]) not in seen]


def _some(rows: list[Row], number: int, seed: int) -> list[Row]:
    random.Random(seed).shuffle(rows)
    return rows[:number]


def _mean_tau(rows: Sequence[Row], scores: Sequence[float], by: str) -> float:
    groups: dict[Any, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[row[by]].append(i)
    taus = [kendalltau([scores[i] for i in own], [rows[i]["score"] for i in own]).statistic for own in groups.values()]
    return float(np.mean(taus))


if __name__ == "__main__":
    typer.run(main)
