"""ROUGE-N precision, recall and F (BLEURT, section 4.2 and A.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bleurt_repro.datasets_builders.signals.base import AUTOMATIC_METRICS, Signal

# The paper says "ROUGE-N" of seq2seq's implementation, whose N is 2 by default:
# https://github.com/google/seq2seq/blob/master/seq2seq/metrics/rouge.py
ROUGE_ORDER = 2


class Rouge(Signal):
    """ROUGE-N of the `rouge-score` library, 0 to 1, without stemming: lower-cased runs of letters and digits.

    Where a text has fewer than N words there is no N-gram, and all three numbers are 0.

    Args:
        order: N, the length of the n-grams in words.
    """

    name = "rouge"
    loss = "regression"
    group = AUTOMATIC_METRICS
    values = ("precision", "recall", "f1")

    def __init__(self, order: int = ROUGE_ORDER) -> None:
        if not 1 <= order <= 9:
            raise ValueError(f"the order of ROUGE-N must be 1 to 9 words, found {order}")
        self.order = order

    def __call__(
        self, references: Sequence[str], candidates: Sequence[str], perturbations: Sequence[str] | None = None
    ) -> np.ndarray:
        """Compute precision, recall and F of each pair, shape (n, 3)."""
        from rouge_score.rouge_scorer import RougeScorer

        kind = f"rouge{self.order}"
        scorer = RougeScorer([kind], use_stemmer=False)
        scores = [
            scorer.score(reference, candidate)[kind]
            for reference, candidate in zip(references, candidates, strict=True)
        ]
        return np.array(scores, dtype=np.float64).reshape(-1, 3)
