"""BLEU of a sentence as Moses' `sentence-bleu` computes it, on Moses-tokenised text (BLEURT, section 4.2 and A.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bleurt_repro.datasets_builders.signals.base import AUTOMATIC_METRICS, Signal

# `smoothedSentenceBleu` adds 1 to the matches and totals of every order, unigrams included, and not to the length:
# https://github.com/moses-smt/mosesdecoder/blob/master/mert/BleuScorer.cpp
SMOOTHING = 1.0


class Bleu(Signal):
    """Sentence BLEU, 0 to 100: up to four-grams, add-one smoothing of every order, case-sensitive.

    A candidate equal to its reference has 100, a blank candidate 0.

    Args:
        language: language of the texts, for the Moses tokeniser.
    """

    name = "bleu"
    loss = "regression"
    group = AUTOMATIC_METRICS
    values = ("bleu",)

    def __init__(self, language: str = "en") -> None:
        self.language = language

    def __call__(
        self, references: Sequence[str], candidates: Sequence[str], perturbations: Sequence[str] | None = None
    ) -> np.ndarray:
        """Compute the BLEU of each pair, shape (n, 1)."""
        from sacrebleu.metrics import BLEU
        from sacremoses import MosesTokenizer

        moses = MosesTokenizer(lang=self.language)
        # Escaping only renames characters that Moses' file formats reserve: it changes no token boundary.
        tokenised = {
            text: moses.tokenize(text, escape=False, return_str=True)
            for text in dict.fromkeys([*references, *candidates])
        }
        counter = BLEU(tokenize="none", force=True, effective_order=True)  # only its counts are used
        scores = [
            moses_sentence_bleu(counter.sentence_score(tokenised[candidate], [tokenised[reference]]))
            for reference, candidate in zip(references, candidates, strict=True)
        ]
        return np.array(scores, dtype=np.float64).reshape(-1, 1)


def moses_sentence_bleu(statistics: Any) -> float:
    """Return the BLEU of Moses' `sentence-bleu`, times 100, from n-gram counts.

    Args:
        statistics: sacreBLEU's `BLEUScore`; `counts`, `totals`, `sys_len` and `ref_len` are used.
    """
    if statistics.sys_len == 0:
        return 0.0  # the limit: the brevity penalty of an empty candidate
    log_precisions = [
        math.log(matches + SMOOTHING) - math.log(total + SMOOTHING)
        for matches, total in zip(statistics.counts, statistics.totals, strict=True)
    ]
    log_brevity = min(0.0, 1.0 - statistics.ref_len / statistics.sys_len)
    return 100.0 * math.exp(sum(log_precisions) / len(log_precisions) + log_brevity)
