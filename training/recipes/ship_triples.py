"""Pairs without ratings that the embedded checkpoint learns from, by what other metrics say of them.

    python training/recipes/ship_triples.py --wmt2018 WMT2018 --ratings ratings.jsonl --synthetic PAIRS \
        --nli nli.tsv.gz --encoder ENCODER --output triples.jsonl --scores bertscore.txt

Taken are the rated candidates of 2018 in ratings.jsonl (made by ship_ratings.py), other candidates of the same
references, synthetic pairs and entailment pairs: news, encyclopaedia and everyday sentences. Ratings are not read here.
`bleurt-repro data pseudo-labels` labels the file; --scores is what BERTscore says of each line, the mean of the
encoder's fourth and last layers after standardising. The fourth agrees best with people on translations,
the last on other text (docs/how-to/make-the-embedded-checkpoint.md).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bleurt_repro.datasets_builders.rating_files import rating_records
from bleurt_repro.datasets_builders.record_files import text_lines
from bleurt_repro.metric.atomic import write_text

# Sources of entailment pairs with a licence that allows commercial use, in natural sentences.
NLI_SOURCES = ("mnli-dev(m+mm)", "snli-dev", "cad-snli")
LAYERS = (4, 6)

Pair = dict[str, Any]


def main(
    wmt2018: Annotated[Path, typer.Option(help="Folder with test.jsonl.")],
    ratings: Annotated[Path, typer.Option(help="What ship_ratings.py wrote.")],
    synthetic: Annotated[Path, typer.Option(help="Folder of `bleurt-repro data synthetic`.")],
    nli: Annotated[Path, typer.Option(help="Entailment pairs: source, split, label, premise, hypothesis.")],
    encoder: Annotated[str, typer.Option(help="For BERTscore: folder or Hub id.")],
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    scores: Annotated[Path, typer.Option(help="File for BERTscore, one a line.")],
    more: Annotated[int, typer.Option(help="Candidates of 2018 beside the rated ones.")] = 24_000,
    synthetic_pairs: Annotated[int, typer.Option(help="How many of them.")] = 10_000,
    nli_pairs: Annotated[int, typer.Option(help="How many of them.")] = 4_000,
    seed: Annotated[int, typer.Option(help="Of which are taken.")] = 0,
) -> None:
    """Write the pairs, then what BERTscore says of them."""
    random = np.random.default_rng(seed)
    rated = [_pair(row) for row in rating_records(ratings) if row["year"] == 2018]
    references = {pair["reference"] for pair in rated}
    of_2018 = [_pair(row) for row in rating_records(wmt2018 / "test.jsonl") if row["reference"] in references]
    pairs = [
        *rated,
        *_sample(_without(of_2018, rated), more, random),
        *_sample(_synthetic(synthetic), synthetic_pairs, random),
        *_sample(_entailment(nli), nli_pairs, random),
    ]
    write_text(output, "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in pairs))
    write_text(scores, "".join(f"{score:.6f}\n" for score in bertscore(encoder, pairs)))
    typer.echo(f"{len(pairs):,} pairs, {len(rated):,} of them rated")


def bertscore(encoder: str, pairs: list[Pair]) -> np.ndarray:
    """Give the mean of the standardised F of BERTscore over `LAYERS`, one for each pair."""
    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

    texts = [[pair[role] for pair in pairs] for role in ("reference", "candidate")]
    by_layer = [BertScore(encoder, layers=layer)(*texts)[:, 2] for layer in LAYERS]
    return np.mean([(f - f.mean()) / f.std() for f in by_layer], axis=0)


def _pair(row: Pair) -> Pair:
    return {"reference": row["reference"], "candidate": row["candidate"]}


def _without(pairs: list[Pair], others: list[Pair]) -> list[Pair]:
    """Give each different pair once, but for those among `others`."""
    seen = {(pair["reference"], pair["candidate"]) for pair in others}
    kept = {(pair["reference"], pair["candidate"]): pair for pair in pairs if pair["candidate"].strip()}
    return [pair for key, pair in kept.items() if key not in seen]


def _sample(pairs: list[Pair], number: int, random: np.random.Generator) -> list[Pair]:
    return [pairs[i] for i in sorted(random.permutation(len(pairs))[:number])]


def _synthetic(folder: Path) -> list[Pair]:
    from datasets import load_dataset

    rows = load_dataset(str(folder), split="train").select_columns(["reference", "candidate"])
    return [row for row in rows if row["candidate"].strip()]


def _entailment(path: Path) -> list[Pair]:
    fields = (line.rstrip("\r\n").split("\t") for line in text_lines(path))
    return [{"reference": row[3], "candidate": row[4]} for row in fields if row[0] in NLI_SOURCES]


if __name__ == "__main__":
    typer.run(main)
