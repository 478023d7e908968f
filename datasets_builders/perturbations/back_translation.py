"""Back-translation: English to another language and back, the likeliest translation both ways (BLEURT, A.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bleurt_repro.datasets_builders.perturbations import back_translation_name
from bleurt_repro.datasets_builders.translator import Translator


@dataclass(frozen=True)
class BackTranslation:
    """A round trip through one language, by two models or by one model that knows both directions.

    What is translated once is remembered by the translators, so that the likelihood signal of the same texts, which
    needs the same translations, costs no second run.

    Attributes:
        language: the language in between, such as "fr".
        forward: translates into it.
        backward: translates out of it.
        forward_prefix: put before what `forward` reads, such as ">>fr<< " for a model of several target languages.
        backward_prefix: put before what `backward` reads.
    """

    language: str
    forward: Translator
    backward: Translator
    forward_prefix: str = ""
    backward_prefix: str = ""

    @property
    def name(self) -> str:
        """The perturbation's name in the data."""
        return back_translation_name(self.language)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return each text's back-translation; whether to keep a blank one is up to the caller."""
        return self.backward.translate(self.there(texts), self.backward_prefix)

    def there(self, texts: Sequence[str]) -> list[str]:
        """Return each text's translation into the language in between."""
        return self.forward.translate(texts, self.forward_prefix)

    def log_likelihoods(self, given: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        """Compute log P(text | given) / |text|, with the likeliest translation of `given` in place of the sum over all.

        Args:
            given: n texts.
            texts: n texts of the same language.

        Returns:
            nats a token, shape (n,).
        """
        return self.backward.log_likelihoods(self.there(given), texts, self.backward_prefix)
