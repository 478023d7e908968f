"""Sentences beside themselves with one word replaced by a similar one, for a larger model to label.

    python recipes/similar_words.py --input wiki.tsv.gz --column 3 --ratings ratings.jsonl --encoder ENCODER --pairs 40000 \
        --output similar.jsonl
    bleurt-repro score --pairs similar.jsonl --checkpoint bleurt-repro-base --dtype bfloat16 --output similar.txt

The words that a small encoder takes for each other are near in its embeddings: they are of one sort and mean different
things ("violin", "cello"), or nearly the same. A list by hand has few of them; here each word of the vocabulary has its
nearest ones, and the larger model says what an exchange is worth. No word by which `experiment adversarial` judges is
replaced or put in.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from learning_pairs import write_pairs
from tqdm import tqdm

from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.segments import Segments
from bleurt_repro.metric.files.records import read_plain_yaml
from bleurt_repro.training.experiments import adversarial

FEWEST_LETTERS = 3  # words of fewer are parts of words, for the most part
# How many of a word's nearest may replace it, where there are so many.
NEAREST = 10
FEWEST_WORDS, MOST_WORDS = 6, 60
_WORD = re.compile(r"(?<![\w'’-])[A-Za-z]+(?![\w'’-])")


def main(
    input: Annotated[str, typer.Option(help="File of sentences, as `bleurt-repro data synthetic` reads it.")],
    ratings: Annotated[Path, typer.Option(help="Ratings, whose references join in.")],
    encoder: Annotated[str, typer.Option(help="Whose embeddings say which words are similar: folder or Hub id.")],
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    column: Annotated[str | None, typer.Option(help="Column of `input` with the text.")] = None,
    pairs: Annotated[int, typer.Option(help="How many to make.")] = 40_000,
    most_texts: Annotated[int, typer.Option(help="Sentences of `input` to read.")] = 100_000,
    fewest_texts: Annotated[int, typer.Option(help="That a word must stand in.")] = 8,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
) -> None:
    """Write the pairs."""
    random = np.random.default_rng(seed)
    texts = {row["reference"] for row in rating_records(ratings)}
    texts |= {segment.text for segment in Segments(input, SyntheticConfig(column=column, max_segments=most_texts))}
    used = sorted(text for text in texts if FEWEST_WORDS <= len(text.split()) <= MOST_WORDS)
    counts = Counter(word for text in used for word in {word.lower() for word in _WORD.findall(text)})
    frequent = {word for word, count in counts.items() if count >= fewest_texts} - judging_words()
    near = similar_words(encoder, frequent)
    if not near:
        raise typer.BadParameter(
            f"{len(used)} texts of {FEWEST_WORDS} to {MOST_WORDS} words have {len(frequent)} words in {fewest_texts} texts or more, "
            "of which fewer than two are pieces of the encoder's vocabulary: give more texts, or a lower --fewest-texts"
        )
    rows = []
    progress = tqdm(total=pairs, desc="Similar words", unit="pair")
    while len(rows) < pairs:
        text = used[random.integers(len(used))]
        places = [place for place in _WORD.finditer(text) if place.group().lower() in near]
        if not places:
            continue
        # rare words as well as frequent ones
        weights = np.array([counts[place.group().lower()] ** -0.5 for place in places])
        place = places[random.choice(len(places), p=weights / weights.sum())]
        word = place.group()
        similar = near[word.lower()]
        new = similar[random.integers(len(similar))]
        if word.isupper() and len(word) > 1:
            new = new.upper()
        elif word[0].isupper():
            new = new.capitalize()
        changed = f"{text[: place.start()]}{new}{text[place.end() :]}"
        reference, candidate = (text, changed) if random.random() < 0.5 else (changed, text)
        rows.append({"reference": reference, "candidate": candidate, "system": "contrast: similar word"})
        progress.update()
    progress.close()
    write_pairs(output, rows)
    typer.echo(f"{len(rows):,} pairs, {len(near):,} words")


def judging_words() -> set[str]:
    """Return the words by which `experiment adversarial` judges, in lower case."""
    kinds = read_plain_yaml(Path(adversarial.__file__).with_name("turned_meanings.yaml"))[1]
    return {str(word).lower() for groups in kinds.values() for group in groups for word in group}


def similar_words(encoder: str, words: set[str]) -> dict[str, list[str]]:
    """Return each word that is one piece of the encoder's vocabulary, with the `NEAREST` of them by cosine; nothing for one word."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(encoder)
    pieces = {piece.lower(): number for piece, number in tokenizer.get_vocab().items()}
    known = sorted(word for word in words if len(word) >= FEWEST_LETTERS and word in pieces)
    if len(known) < 2:
        return {}
    with torch.inference_mode():
        table = AutoModel.from_pretrained(encoder).get_input_embeddings().weight
        vectors = torch.nn.functional.normalize(table[[pieces[word] for word in known]].float(), dim=-1)
        nearest = (vectors @ vectors.T).fill_diagonal_(-1).topk(min(NEAREST, len(known) - 1)).indices
    return {word: [known[i] for i in row] for word, row in zip(known, nearest.tolist(), strict=True)}


if __name__ == "__main__":
    typer.run(main)
