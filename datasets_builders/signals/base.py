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
        name: name of the signal, of its column and of its pre-training task.
        loss: "regression" (mean squared error to the standardised numbers) or "classification" (cross-entropy to
            the numbers, which are probabilities).
        group: group of signals that share a weight, one of `GROUPS`.
        values: name of each number, in order.
    """

    name: ClassVar[str]
    loss: ClassVar[Loss]
    group: ClassVar[str]
    values: tuple[str, ...]

    @property
    def size(self) -> int:
        """Number of numbers per pair."""
        return len(self.values)

    @abstractmethod
    def __call__(
        self, references: Sequence[str], candidates: Sequence[str], perturbations: Sequence[str] | None = None
    ) -> np.ndarray:
        """Compute the signal.

        Args:
            references: n texts (z in the paper).
            candidates: n texts (z~ in the paper); any may be blank.
            perturbations: names of the perturbations of the candidates; only `BackTranslationFlag` reads them.

        Returns:
            Finite numbers, shape (n, size), float64.
        """

    def describe(self) -> dict[str, Any]:
        """Return the attributes of the signal, which training reads from the record beside the data."""
        return {
            "name": self.name,
            "size": self.size,
            "loss": self.loss,
            "group": self.group,
            "values": list(self.values),
        }
