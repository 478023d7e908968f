"""Back-translation flag: was the candidate made by back-translation or by mask filling? (BLEURT, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bleurt_repro.datasets_builders.perturbations.names import BACK_TRANSLATION, MASK_FILLING
from bleurt_repro.datasets_builders.signals.base import CLASSIFICATION, Signal


class BackTranslationFlag(Signal):
    """The paper's Boolean as two probabilities, (1, 0) for back-translation and (0, 1) for mask filling.

    A pair from which words were dropped has the flag of the pair it was made from.
    """

    name = "back_translation_flag"
    loss = "classification"
    group = CLASSIFICATION
    values = ("back_translation", "mask_filling")

    def __call__(
        self, references: Sequence[str], candidates: Sequence[str], perturbations: Sequence[str] | None = None
    ) -> np.ndarray:
        """Compute the flag of each pair, shape (n, 2), from the names of the perturbations.

        Raises:
            ValueError: without those names, or at one that is neither kind.
        """
        if perturbations is None or len(perturbations) != len(candidates):
            found = "none" if perturbations is None else len(perturbations)
            raise ValueError(
                f"the back-translation flag needs the perturbation of each of {len(candidates)} pairs, found {found}"
            )
        flags = np.zeros((len(candidates), 2))
        for i, name in enumerate(perturbations):
            flags[i, 0] = name.startswith(BACK_TRANSLATION)
            flags[i, 1] = name.startswith(MASK_FILLING)
            if not flags[i].any():
                raise ValueError(f"perturbation {name!r} is neither {BACK_TRANSLATION}... nor {MASK_FILLING}...")
        return flags
