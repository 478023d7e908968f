"""The two signals of back-translation (BLEURT, section 4.2).

`BackTranslationLikelihood`: how likely is one text as a back-translation of the other? `BackTranslationFlag`: was the
candidate made by back-translation or by mask filling?
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bleurt_repro.datasets_builders.perturbations import BACK_TRANSLATION, MASK_FILLING
from bleurt_repro.datasets_builders.perturbations.back_translation import BackTranslation
from bleurt_repro.datasets_builders.signals.base import CLASSIFICATION, LIKELIHOOD, Signal


class BackTranslationLikelihood(Signal):
    """For each pivot language, log P(z|z~)/|z| and log P(z~|z)/|z~|, in nats per token.

    P(z~|z) is approximated by P_fr->en(z~ | z_fr*), where z_fr* is the greedy translation of z. Tokens are those of
    the backward translator, the end-of-sentence token included, so that a blank text has a likelihood as well.

    Args:
        round_trips: pairs of translators, one for each language (in the paper French and German).
    """

    name = "back_translation_likelihood"
    loss = "regression"
    group = LIKELIHOOD

    def __init__(self, round_trips: Sequence[BackTranslation]) -> None:
        if not round_trips:
            raise ValueError(
                "the back-translation likelihood needs a pair of translators, found none: give likelihood_pivots"
            )
        self.round_trips = list(round_trips)
        self.values = tuple(
            f"{trip.language}_{direction}"
            for trip in self.round_trips
            for direction in ("reference_given_candidate", "candidate_given_reference")
        )

    def __call__(
        self, references: Sequence[str], candidates: Sequence[str], perturbations: Sequence[str] | None = None
    ) -> np.ndarray:
        """Compute the likelihoods of each pair, shape (n, 2 x languages)."""
        columns = []
        for trip in self.round_trips:
            columns.append(trip.log_likelihoods(candidates, references))
            columns.append(trip.log_likelihoods(references, candidates))
        return np.stack(columns, axis=1)


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
            ValueError: if a name is missing, or is that of another perturbation.
        """
        if perturbations is None or len(perturbations) != len(candidates):
            count = "none" if perturbations is None else len(perturbations)
            raise ValueError(
                f"the back-translation flag needs the perturbation of each of {len(candidates)} pairs, found {count}"
            )
        flags = np.zeros((len(candidates), 2))
        for i, name in enumerate(perturbations):
            flags[i, 0] = name.startswith(BACK_TRANSLATION)
            flags[i, 1] = name.startswith(MASK_FILLING)
            if not flags[i].any():
                raise ValueError(f"perturbation {name!r} is neither {BACK_TRANSLATION}... nor {MASK_FILLING}...")
        return flags
