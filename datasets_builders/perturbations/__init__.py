"""Perturbations: ways to turn a sentence into a synthetic candidate (BLEURT, section 4.1)."""

from __future__ import annotations

MASK_FILLING = "mask_filling"
BACK_TRANSLATION = "back_translation"

SCATTERED = f"{MASK_FILLING}_scattered"
CONTIGUOUS = f"{MASK_FILLING}_contiguous"


def back_translation_name(language: str) -> str:
    """Return the name of back-translation through a language, such as `back_translation_fr`."""
    return f"{BACK_TRANSLATION}_{language}"
