"""Read sentence pairs, keep held-out sentences out of training, and decide how often each pair is trained on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bleurt_repro.training.teachers.tables import read_table

COLUMNS = ("source", "split", "english", "target")
TEST, DEV = "test", "dev"
WORD = re.compile(r"\w+")


class SentencePair(NamedTuple):
    """An English sentence and its translation.

    Attributes:
        language: of the translation.
        source: where the pair comes from.
        split: "train", "dev" or "test".
    """

    language: str
    source: str
    split: str
    english: str
    target: str


class ParallelText(NamedTuple):
    """Pairs to train and to measure on; no sentence of `test` is in `train`, in either language.

    Attributes:
        train: to train on.
        test: those whose split is "test".
        left_out: how many pairs were left out, by reason.
    """

    train: list[SentencePair]
    test: list[SentencePair]
    left_out: Counter[str]


def read_parallel_text(files: Mapping[str, str]) -> ParallelText:
    """Read sentence pairs.

    Args:
        files: by language, a TSV file of `COLUMNS`; rows whose split is "dev" are left out with those of "test".

    Raises:
        FileNotFoundError, ValueError: as `read_table`; ValueError too if there is nothing to train or to measure on.
    """
    pairs = [
        SentencePair(language, row["source"], row["split"], row["english"], row["target"])
        for language, path in files.items()
        for row in read_table(path, COLUMNS)
    ]
    test = [pair for pair in pairs if pair.split == TEST]
    held_out = {key for pair in pairs if pair.split in (TEST, DEV) for key in sentence_keys(pair)}
    train, left_out = [], Counter(dict.fromkeys(("blank", "of split dev", "sentence is held out"), 0))
    for pair in pairs:
        if not pair.english or not pair.target:
            left_out["blank"] += 1
        elif pair.split == DEV:
            left_out["of split dev"] += 1
        elif pair.split != TEST and held_out.intersection(sentence_keys(pair)):
            left_out["sentence is held out"] += 1
        elif pair.split != TEST:
            train.append(pair)
    for language, path in files.items():
        for kind, part in (("train", train), (TEST, test)):
            if not any(pair.language == language for pair in part):
                raise ValueError(f"{path} has no pairs to {kind} on: some rows must have {kind!r} as their split")
    return ParallelText(train, test, left_out)


def sentence_keys(pair: SentencePair) -> tuple[tuple[str, str], tuple[str, str]]:
    """Give what sentences are compared by, each with its language: letters and digits, regardless of case."""
    return ("en", _letters(pair.english)), (pair.language, _letters(pair.target))


def sampling_weights(
    pairs: list[SentencePair],
    source_weights: Mapping[str, float],
    word_weights: Mapping[str, float],
    length_power: float,
) -> np.ndarray:
    """Give how often each pair is drawn in a pass, on average and relative to the others.

    Args:
        pairs: sentence pairs.
        source_weights: of a source's pairs; 1 by default.
        word_weights: of pairs with a word in their English sentence; 1 by default.
        length_power: a pair's weight grows with this power of its number of English words.

    Returns:
        weights, (pairs,); a pair whose English sentence stands n times in its language has the n-th part.

    Raises:
        ValueError: for a source that is not there, or if a language has no pair of a weight above 0.
    """
    sources = {pair.source for pair in pairs}
    if set(source_weights) - sources:
        unknown = ", ".join(sorted(set(source_weights) - sources))
        raise ValueError(f"no source {unknown}; there are {', '.join(sorted(sources))}")
    copies = Counter((pair.language, _letters(pair.english)) for pair in pairs)
    weights = np.empty(len(pairs))
    for i, pair in enumerate(pairs):
        words = WORD.findall(pair.english)
        weights[i] = source_weights.get(pair.source, 1.0) * len(words) ** length_power
        weights[i] /= copies[pair.language, _letters(pair.english)]
        for word, weight in word_weights.items():
            weights[i] *= weight if word in words else 1.0
    for language in {pair.language for pair in pairs}:
        if not any(weights[i] for i, pair in enumerate(pairs) if pair.language == language):
            raise ValueError(f"every pair of {language} has the weight 0: there is nothing to train on")
    return weights


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
