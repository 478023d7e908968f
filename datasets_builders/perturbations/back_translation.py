"""Back-translation: English to another language and back, the likeliest translation both ways (BLEURT, A.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bleurt_repro.datasets_builders.perturbations import back_translation_name
from bleurt_repro.datasets_builders.translator import Translator


@dataclass(frozen=True)
class BackTranslation:
    """A round trip through one language, by two models or by one model of both directions.

    The translators remember their translations, so that the likelihood of the same texts, which needs the same
    translations, costs no second run.

    Attributes:
        language: pivot language, such as "fr".
        forward: translator into it.
        backward: translator out of it.
        forward_prefix: prefix of what `forward` reads, such as ">>fr<< " for a model of several target languages.
        backward_prefix: prefix of what `backward` reads.
    """

    language: str
    forward: Translator
    backward: Translator
    forward_prefix: str = ""
    backward_prefix: str = ""

    @property
    def name(self) -> str:
        """Name of the perturbation in the data."""
        return back_translation_name(self.language)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return the back-translation of each text, which may be blank."""
        return self.backward.translate(self.to_pivot(texts), self.backward_prefix)

    def to_pivot(self, texts: Sequence[str]) -> list[str]:
        """Return the translation of each text into the pivot language."""
        return self.forward.translate(texts, self.forward_prefix)

    def log_likelihoods(self, conditions: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        """Compute log P(text | condition) / |text|, approximated by the greedy translation of the condition.

        Args:
            conditions: n texts.
            texts: n texts of the same language.

        Returns:
            Mean log-probability of the tokens in nats, shape (n,).
        """
        return self.backward.log_likelihoods(self.to_pivot(conditions), texts, self.backward_prefix)
