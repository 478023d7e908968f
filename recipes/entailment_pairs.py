"""Pairs of entailment data as pairs to learn scores from: a model's scores, moved by the labels that people gave.

    python recipes/entailment_pairs.py --nli nli.tsv.gz --output nli.jsonl
    bleurt-repro score --pairs nli.jsonl --checkpoint model --output nli.txt
    python recipes/entailment_pairs.py --nli nli.tsv.gz --scores nli.txt --output moved.jsonl

Hypotheses share few words with their premises, whether these entail or contradict them: there small models rely on shared
words most. Each premise has both kinds. A hypothesis leaves out much of its premise, so entailment alone is
no reason for a high score: scores are moved, not set.
"""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from learning_pairs import LEAST, MOST, read_entailment, write_pairs

from bleurt_repro.datasets_builders.pseudo_labels import read_scores

Row = dict[str, Any]


def main(
    nli: Annotated[Path, typer.Option(help="Entailment pairs: source, split, label, premise, hypothesis.")],
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    pairs: Annotated[
        int, typer.Option(help="How many, at most, of premises that entail one and contradict one.")
    ] = 16_000,
    scores: Annotated[Path | None, typer.Option(help="A model's scores of those pairs, one a line.")] = None,
    entailed: Annotated[float, typer.Option(help="What entailment adds to a score.")] = 0.1,
    neutral: Annotated[float, typer.Option(help="What neither adds.")] = -0.1,
    contradicted: Annotated[float, typer.Option(help="What contradiction adds.")] = -0.7,
    seed: Annotated[int, typer.Option(help="Of which premises are taken.")] = 5,
) -> None:
    """Write pairs; with scores, with these moved."""
    moves = {"entailment": entailed, "neutral": neutral, "contradiction": contradicted}
    drawn = draw(nli, pairs, seed)
    rows: list[Row] = [{"reference": a, "candidate": b, "system": f"nli: {kind}"} for a, b, kind in drawn]
    if scores is not None:
        given = read_scores(scores, len(rows), "entailment pairs")
        rows = [
            {**row, "score": _move(score, moves[kind])}
            for row, score, (_, _, kind) in zip(rows, given, drawn, strict=True)
        ]
    write_pairs(output, rows)
    typer.echo(f"{len(rows):,} pairs")


def draw(nli: Path, pairs: int, seed: int) -> list[tuple[str, str, str]]:
    """Draw premises that entail one hypothesis and contradict another, with all their hypotheses and labels."""
    by_premise: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in read_entailment(nli):
        by_premise[row["premise"]][row["label"]].append(row["hypothesis"])
    both = [premise for premise, kinds in by_premise.items() if {"entailment", "contradiction"} <= set(kinds)]
    random.Random(seed).shuffle(both)
    found = [
        (premise, text, kind) for premise in both for kind, texts in by_premise[premise].items() for text in texts
    ]
    return found[:pairs]


def _move(score: float, by: float) -> float:
    return round(float(np.clip(score + by, LEAST, MOST)), 4)


if __name__ == "__main__":
    typer.run(main)
