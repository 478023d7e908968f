"""ROUGE-N precision, recall and F (BLEURT, section 4.2 and A.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bleurt_repro.datasets_builders.signals.base import AUTOMATIC_METRICS, Signal

# The paper says "ROUGE-N" of seq2seq's implementation, whose N is 2 by default:
# https://github.com/google/seq2seq/blob/master/seq2seq/metrics/rouge.py
ROUGE_ORDER = 2
ROUGE_SCORE, SEQ2SEQ = "rouge-score", "seq2seq"
ROUGE_IMPLEMENTATIONS = (ROUGE_SCORE, SEQ2SEQ)
# seq2seq adds it to the sum of precision and recall, so that F is 0 where both are.
_F1_SLACK = 1e-8


class Rouge(Signal):
    """ROUGE-N, 0 to 1, without stemming, by one of two implementations.

    "rouge-score", the library: runs of letters and digits, lower-cased; an n-gram counts as often as it occurs.
    "seq2seq", as the paper has it: what stands between single blanks, in its own case; an n-gram counts once.

    Where a text has fewer than N words there is no N-gram, and all three numbers are 0.

    Args:
        order: N, the length of the n-grams in words.
        implementation: one of `ROUGE_IMPLEMENTATIONS`.
    """

    name = "rouge"
    loss = "regression"
    group = AUTOMATIC_METRICS
    values = ("precision", "recall", "f1")

    def __init__(self, order: int = ROUGE_ORDER, implementation: str = ROUGE_SCORE) -> None:
        if not 1 <= order <= 9:
            raise ValueError(f"the order of ROUGE-N must be 1 to 9 words, found {order}")
        if implementation not in ROUGE_IMPLEMENTATIONS:
            raise ValueError(f"ROUGE must be of {' or '.join(ROUGE_IMPLEMENTATIONS)}, found {implementation!r}")
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

        kind = f"rouge{self.order}"
        scorer = RougeScorer([kind], use_stemmer=False)
        return [tuple(scorer.score(reference, candidate)[kind]) for reference, candidate in pairs]


def seq2seq_rouge(reference: str, candidate: str, order: int = ROUGE_ORDER) -> tuple[float, float, float]:
    """Compute ROUGE-N as google/seq2seq does, over the sets of n-grams of words between single blanks.

    Args:
        reference: the text to compare with.
        candidate: the text to score.
        order: N.

    Returns:
        precision, recall and F.
    """
    wanted, found = _ngrams(reference, order), _ngrams(candidate, order)
    common = len(wanted & found)
    precision, recall = common / len(found) if found else 0.0, common / len(wanted) if wanted else 0.0
    return precision, recall, 2.0 * (precision * recall) / (precision + recall + _F1_SLACK)


def _ngrams(text: str, order: int) -> set[tuple[str, ...]]:
    words = text.split(" ")
    return {tuple(words[i : i + order]) for i in range(len(words) - order + 1)}
