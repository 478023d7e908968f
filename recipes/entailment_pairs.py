"""Pairs of entailment data as pairs to learn scores from: a model's scores, moved by the labels that people gave.

    python recipes/entailment_pairs.py --nli nli.tsv.gz --output nli.jsonl
    bleurt-repro score --pairs nli.jsonl --checkpoint model --output nli.txt
    python recipes/entailment_pairs.py --nli nli.tsv.gz --scores nli.txt --output moved.jsonl

Hypotheses share few words with their premises, whether these entail or contradict them: there small models rely on shared
words most. Each premise has both kinds. A hypothesis leaves out much of its premise, so entailment alone is
no reason for a high score: scores are moved, not set. With --turned, hypotheses that are entailed stand twice, the second time with one word that
turns what they say; such a one gets less than the first by so much at least.
"""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from learning_pairs import LEAST, MOST, read_entailment, write_pairs

from bleurt_repro.datasets_builders.contrasts.alterations import change_negation, change_number
from bleurt_repro.datasets_builders.contrasts.near_copies import exchange, word_groups
from bleurt_repro.datasets_builders.pseudo_labels import read_scores

Row = dict[str, Any]
TURNED = "turned"


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
    turned: Annotated[
        float | None,
        typer.Option(
            help="Add entailed hypotheses with one word turned, which score this much less than without, at least."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of which premises are taken.")] = 5,
) -> None:
    """Write pairs; with scores, with these moved."""
    moves = {"entailment": entailed, "neutral": neutral, "contradiction": contradicted}
    drawn = draw(nli, pairs, seed)
    if turned is not None:
        drawn = with_turned(drawn, seed)
    rows: list[Row] = [{"reference": a, "candidate": b, "system": f"nli: {kind}"} for a, b, kind in drawn]
    if scores is not None:
        given = read_scores(scores, len(rows), "entailment pairs")
        before = 0.0  # the score of the hypothesis that a turned one follows
        for row, score, (_, _, kind) in zip(rows, given, drawn, strict=True):
            if kind == TURNED:
                row["score"] = _move(min(score, before - (turned or 0.0)), 0.0)
            else:
                row["score"], before = _move(score, moves[kind]), score
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


def with_turned(pairs: list[tuple[str, str, str]], seed: int) -> list[tuple[str, str, str]]:
    """Put behind each entailed hypothesis the same with one word that turns it, where there is such a word."""
    random = np.random.default_rng(seed)
    exchanges = [kind for kind in word_groups() if kind != "same"]
    found = []
    for premise, text, label in pairs:
        found.append((premise, text, label))
        if label != "entailment":
            continue
        made = [exchange(text, kind, random) for kind in exchanges]
        made += [change_negation(text, random), change_number(text, random)]
        turned = [other for other in made if other is not None and other != text]
        if turned:
            found.append((premise, turned[int(random.integers(len(turned)))], TURNED))
    return found


def _move(score: float, by: float) -> float:
    return round(float(np.clip(score + by, LEAST, MOST)), 4)


if __name__ == "__main__":
    typer.run(main)
