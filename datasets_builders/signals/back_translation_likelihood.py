"""Back-translation likelihood: how likely is one text as a back-translation of the other? (BLEURT, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bleurt_repro.datasets_builders.perturbations.back_translation import BackTranslation
from bleurt_repro.datasets_builders.signals.base import LIKELIHOOD, Signal


class BackTranslationLikelihood(Signal):
    """For each language in between, log P(z|z~)/|z| and log P(z~|z)/|z~|, in nats a token.

    P(z~|z) is taken as P_fr->en(z~ | z_fr*), where z_fr* is the greedy translation of z. Tokens are those of the
    translator that scores, the end of the sentence counted, so that a blank text has a likelihood too.

    Args:
        round_trips: the translators, a pair for each language (in the paper French and German).
    """

    name = "back_translation_likelihood"
    loss = "regression"
    group = LIKELIHOOD

    def __init__(self, round_trips: Sequence[BackTranslation]) -> None:
        if not round_trips:
            raise ValueError(
                "the back-translation likelihood needs a pair of translators, found none: name them in pivots"
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
            columns.append(trip.log_likelihoods(given=candidates, texts=references))
            columns.append(trip.log_likelihoods(given=references, texts=candidates))
        return np.stack(columns, axis=1)
