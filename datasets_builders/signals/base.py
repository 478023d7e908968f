"""The base class of signals: a name, a size, a loss, and a function of pairs (BLEURT, section 4.2 and Table 1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

Loss = Literal["regression", "classification"]

# The three groups of signals whose losses share one weight gamma (BLEURT, A.2).
AUTOMATIC_METRICS = "automatic_metrics"
LIKELIHOOD = "likelihood"
CLASSIFICATION = "classification"
GROUPS = (AUTOMATIC_METRICS, LIKELIHOOD, CLASSIFICATION)


class Signal(ABC):
    """One pre-training target: some numbers for each pair of reference and candidate.

    Attributes:
        name: of the signal, and so of its column and of the task that learns it.
        loss: "regression" (mean squared error to the standardised numbers) or "classification" (cross-entropy to
            the numbers, which are probabilities).
        group: which signals share a weight, one of `GROUPS`.
        values: what each number is, in order.
    """

    name: ClassVar[str]
    loss: ClassVar[Loss]
    group: ClassVar[str]
    values: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many numbers a pair gets."""
        return len(self.values)

    @abstractmethod
    def __call__(
        self, references: Sequence[str], candidates: Sequence[str], perturbations: Sequence[str] | None = None
    ) -> np.ndarray:
        """Compute the signal.

        Args:
            references: n texts (z in the paper).
            candidates: n texts (z~ in the paper); any may be blank.
            perturbations: how each candidate was made; only `BackTranslationFlag` reads it.

        Returns:
            finite numbers, shape (n, size), float64.
        """

    def describe(self) -> dict[str, Any]:
        """Return what a training run must know of the signal, for the record beside the data."""
        return {
            "name": self.name,
            "size": self.size,
            "loss": self.loss,
            "group": self.group,
            "values": list(self.values),
        }
