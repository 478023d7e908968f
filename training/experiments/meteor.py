"""METEOR (https://aclanthology.org/W05-0909) by nltk, with synonyms where WordNet is installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from bleurt_repro.training.experiments.baselines import Scored, tokenize


class NoSynonyms:
    """Stands in for WordNet where its corpus is not installed: no word has a synonym."""

    def synsets(self, _: str) -> list[Any]:
        """Give no sets."""
        return []


def meteor(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Give the METEOR of each pair, 0 to 1, lower-cased, of Moses' tokens.

    WordNet is used if `nltk.download("wordnet")` was run; the signature says which stages matched.
    """
    from nltk.translate.meteor_score import single_meteor_score

    wordnet, stages = find_wordnet()
    words = tokenize([*references, *candidates])
    scores = [
        float(single_meteor_score(words[reference], words[candidate], wordnet=wordnet)) if candidate.strip() else 0.0
        for reference, candidate in zip(references, candidates, strict=True)
    ]
    parts = ["METEOR", f"stages:{stages}", "case:lower", f"tok:sacremoses-{version('sacremoses')}"]
    return Scored(scores, "|".join([*parts, f"nltk:{version('nltk')}"]))


def find_wordnet() -> tuple[Any, str]:
    """Give WordNet, or what stands in for it, and the name of METEOR's stages with it."""
    from nltk.corpus import wordnet

    try:
        wordnet.synsets("word")
    except LookupError:
        return NoSynonyms(), "exact+stem"
    return wordnet, "exact+stem+synonym"
