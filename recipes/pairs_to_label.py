"""Pairs for which other metrics provide labels to learn from; people's ratings of them are not used.

    python recipes/pairs_to_label.py --rated ratings.jsonl --outputs wmt2018/test.jsonl --held-out held_out.jsonl \
        --synthetic PAIRS --nli nli.tsv.gz --contrasts contrasts.jsonl --output triples.jsonl \
        --encoder ENCODER --layer 9 --scores bertscore.txt

It takes the rated pairs, systems' outputs whose references are not held out, synthetic pairs, entailment pairs and
contrasts: news, encyclopaedia and everyday sentences, in random order. `bleurt-repro data pseudo-labels` labels the file;
--scores is BERTscore's F of each line, a second opinion that depends on no rating.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from learning_pairs import read_entailment, write_pairs

from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
from bleurt_repro.metric.files.writing import write_text

Pair = tuple[str, str]


def main(
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    rated: Annotated[list[Path] | None, typer.Option(help="Ratings whose pairs are all taken; repeatable.")] = None,
    outputs: Annotated[Path | None, typer.Option(help="Ratings to draw systems' outputs from.")] = None,
    held_out: Annotated[
        list[Path] | None, typer.Option(help="Ratings whose references are left out; repeatable.")
    ] = None,
    most_outputs: Annotated[int, typer.Option(help="Outputs to draw.")] = 16_000,
    per_reference: Annotated[int, typer.Option(help="Outputs of one reference at most.")] = 2,
    crossed: Annotated[
        int, typer.Option(help="Outputs to draw with another output of their reference beside them.")
    ] = 0,
    known: Annotated[list[Path] | None, typer.Option(help="Pairs that have labels already; repeatable.")] = None,
    synthetic: Annotated[list[Path] | None, typer.Option(help="Folders of synthetic pairs; repeatable.")] = None,
    synthetic_pairs: Annotated[int, typer.Option(help="How many of them.")] = 4_000,
    nli: Annotated[
        Path | None, typer.Option(help="Entailment pairs: source, split, label, premise, hypothesis.")
    ] = None,
    nli_pairs: Annotated[int, typer.Option(help="How many of them.")] = 4_000,
    contrasts: Annotated[Path | None, typer.Option(help="JSONL file of `bleurt-repro data contrasts`.")] = None,
    most: Annotated[int | None, typer.Option(help="Pairs to write at most, of all these.")] = None,
    seed: Annotated[int, typer.Option(help="Of which are taken.")] = 0,
    encoder: Annotated[str | None, typer.Option(help="For BERTscore: folder or Hub id.")] = None,
    layer: Annotated[int | None, typer.Option(help="That BERTscore compares.")] = None,
    scores: Annotated[Path | None, typer.Option(help="File for BERTscore, one a line.")] = None,
) -> None:
    """Write the pairs, then their BERTscore."""
    if scores is not None and encoder is None:
        raise typer.BadParameter("--scores needs --encoder, the model that BERTscore compares with")
    random = np.random.default_rng(seed)
    left_out = {row["reference"] for path in held_out or () for row in rating_records(path)}
    labelled = {
        pair for path in known or () for pair in _pairs(rating_records(path, required=("reference", "candidate")))
    }
    pairs: list[Pair] = []
    if outputs:
        unlabelled = [pair for pair in _pairs(rating_records(outputs)) if pair not in labelled]
        pairs += _sample(spread(unlabelled, left_out, per_reference, random), most_outputs, random)
        pairs += cross(unlabelled, left_out, crossed, random)
    if synthetic:
        pairs += _sample([pair for folder in synthetic for pair in _synthetic(folder)], synthetic_pairs, random)
    if nli:
        entailment = [(row["premise"], row["hypothesis"]) for row in read_entailment(nli)]
        pairs += _sample(entailment, nli_pairs, random)
    for path in [*(rated or ()), *([contrasts] if contrasts else ())]:
        pairs += [pair for pair in _pairs(rating_records(path)) if pair[0] not in left_out]
    pairs = [pairs[i] for i in random.permutation(len(pairs))[:most]]
    write_pairs(output, ({"reference": a, "candidate": b} for a, b in pairs))
    if scores is not None and encoder is not None:
        write_text(scores, "".join(f"{score:.6f}\n" for score in bertscore(encoder, layer, pairs)))
    typer.echo(f"{len(pairs):,} pairs, {len(set(pairs)):,} different")


def spread(pairs: Iterable[Pair], left_out: set[str], most: int, random: np.random.Generator) -> list[Pair]:
    """Return at most so many different candidates of each reference, references in random order."""
    candidates = _candidates(pairs, left_out)
    references = list(candidates)
    random.shuffle(references)
    return [
        (reference, texts[i])
        for reference in references
        for texts in [candidates[reference]]
        for i in random.permutation(len(texts))[:most]
    ]


def cross(pairs: Iterable[Pair], left_out: set[str], number: int, random: np.random.Generator) -> list[Pair]:
    """Draw so many pairs of two different candidates of one reference: one stands in for the reference, and all are outputs."""
    texts = [some for some in _candidates(pairs, left_out).values() if len(some) > 1]
    if number and not texts:
        raise typer.BadParameter("no reference has two different outputs, which --crossed pairs: leave it out")
    drawn = [texts[i] for i in random.integers(len(texts), size=number)] if number else []
    return [(some[i], some[j]) for some in drawn for i, j in [random.choice(len(some), size=2, replace=False)]]


def bertscore(encoder: str, layer: int | None, pairs: list[Pair]) -> np.ndarray:
    """Compute BERTscore's F of each pair, in bfloat16: labels are averaged with others, so small differences are noise."""
    import torch

    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

    measure = BertScore(encoder, layers=layer)
    with torch.autocast(measure.device.split(":")[0], dtype=torch.bfloat16):
        return measure([a for a, _ in pairs], [b for _, b in pairs])[:, 2]


def _candidates(pairs: Iterable[Pair], left_out: set[str]) -> dict[str, list[str]]:
    """Return the different candidates of each reference, in the order of the references' letters."""
    candidates: dict[str, dict[str, None]] = defaultdict(dict)
    for reference, candidate in pairs:
        if candidate.strip() and reference not in left_out:
            candidates[reference][candidate] = None
    return {reference: list(candidates[reference]) for reference in sorted(candidates)}


def _pairs(rows: Iterable[dict[str, Any]]) -> list[Pair]:
    return [(row["reference"], row["candidate"]) for row in rows]


def _sample(pairs: list[Pair], number: int, random: np.random.Generator) -> list[Pair]:
    return [pairs[i] for i in random.permutation(len(pairs))[:number]]


def _synthetic(folder: Path) -> list[Pair]:
    from datasets import load_dataset

    rows = load_dataset(str(folder), split="train").select_columns(["reference", "candidate"])
    return [(row["reference"], row["candidate"]) for row in rows if row["candidate"].strip()]


if __name__ == "__main__":
    typer.run(main)
