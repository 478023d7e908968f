"""The back-translation flag."""

from __future__ import annotations

import pytest

from bleurt_repro.datasets_builders.signals import SIGNALS, BackTranslationFlag
from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig


def test_flags():
    names = ["back_translation_fr", "mask_filling_scattered", "back_translation_de", "mask_filling_contiguous"]
    assert BackTranslationFlag()(["a"] * 4, ["b"] * 4, names).tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]


def test_it_needs_to_know_the_perturbations():
    with pytest.raises(ValueError, match="needs the perturbation of each of 1 pairs, found none"):
        BackTranslationFlag()(["a"], ["b"])
    with pytest.raises(ValueError, match="'typos' is neither"):
        BackTranslationFlag()(["a"], ["b"], ["typos"])


def test_the_signals_of_a_recipe_are_by_default_those_of_table_1():
    groups = {name: (SIGNALS[name].loss, SIGNALS[name].group) for name in SyntheticConfig().signals}
    assert groups == {
        "bleu": ("regression", "automatic_metrics"),
        "rouge": ("regression", "automatic_metrics"),
        "bertscore": ("regression", "automatic_metrics"),
        "back_translation_likelihood": ("regression", "likelihood"),
        "entailment": ("classification", "classification"),
        "back_translation_flag": ("classification", "classification"),
    }
