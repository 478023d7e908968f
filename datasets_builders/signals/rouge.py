"""ROUGE-N precision, recall and F (BLEURT, section 4.2 and A.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bleurt_repro.datasets_builders.signals.base import AUTOMATIC_METRICS, Signal

# BLEURT, A.3: "the seq2seq implementation of ROUGE-N". N is not stated; it is 2 by default there:
# https://github.com/google/seq2seq/blob/master/seq2seq/metrics/rouge.py
ROUGE_ORDER = 2
SEQ2SEQ, ROUGE_SCORE = "seq2seq", "rouge-score"
ROUGE_IMPLEMENTATIONS = (SEQ2SEQ, ROUGE_SCORE)
# seq2seq adds this to the sum of precision and recall, so that F is 0 if both are.
_F1_SLACK = 1e-8


class Rouge(Signal):
    """ROUGE-N, 0 to 1, without stemming, by one of two implementations.

    "seq2seq", as in the paper, compares sets of n-grams: an n-gram counts once, however often it occurs. Words are
    what is between single blanks, as it is written: "late." and "Late" are not "late".

    "rouge-score", the library, counts each n-gram as often as it occurs. Words are runs of letters and digits,
    lower-cased.

    A text of fewer than N words has no N-gram, and all three numbers are 0.

    Args:
        order: N, the length of the n-grams in words.
        implementation: one of `ROUGE_IMPLEMENTATIONS`.
    """

    name = "rouge"
    loss = "regression"
    group = AUTOMATIC_METRICS
    values = ("precision", "recall", "f1")

    def __init__(self, order: int = ROUGE_ORDER, implementation: str = SEQ2SEQ) -> None:
        if not 1 <= order <= 9:
            raise ValueError(f"the order of ROUGE-N must be 1 to 9 words, found {order}")
        if implementation not in ROUGE_IMPLEMENTATIONS:
            raise ValueError(
                f"the implementation of ROUGE must be {' or '.join(ROUGE_IMPLEMENTATIONS)}, found {implementation!r}"
            )
        self.order, self.implementation = order, implementation

    def __call__(
        self, references: Sequence[str], candidates: Sequence[str], perturbations: Sequence[str] | None = None
    ) -> np.ndarray:
        """Compute precision, recall and F of each pair, shape (n, 3)."""
        pairs = zip(references, candidates, strict=True)
        if self.implementation == SEQ2SEQ:
            scores = [seq2seq_rouge(reference, candidate, self.order) for reference, candidate in pairs]
        else:
            scores = self._by_library(pairs)
        return np.array(scores, dtype=np.float64).reshape(-1, 3)

    def _by_library(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[float, float, float]]:
        from rouge_score.rouge_scorer import RougeScorer

        name = f"rouge{self.order}"
        scorer = RougeScorer([name], use_stemmer=False)
        return [tuple(scorer.score(reference, candidate)[name]) for reference, candidate in pairs]


def seq2seq_rouge(reference: str, candidate: str, order: int = ROUGE_ORDER) -> tuple[float, float, float]:
    """Compute ROUGE-N as google/seq2seq does, over the sets of n-grams of words between single blanks.

    Args:
        reference: the text to compare with.
        candidate: the text to score.
        order: N.

    Returns:
        Precision, recall and F.
    """
    in_reference, in_candidate = _ngrams(reference, order), _ngrams(candidate, order)
    common = len(in_reference & in_candidate)
    precision = common / len(in_candidate) if in_candidate else 0.0
    recall = common / len(in_reference) if in_reference else 0.0
    return precision, recall, 2.0 * (precision * recall) / (precision + recall + _F1_SLACK)


def _ngrams(text: str, order: int) -> set[tuple[str, ...]]:
    tokens = text.split(" ")
    return {tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1)}
