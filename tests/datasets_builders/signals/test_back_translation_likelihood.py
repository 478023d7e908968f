"""The back-translation likelihood: four numbers in the paper's order."""

from __future__ import annotations

import numpy as np
import pytest

from bleurt_repro.datasets_builders.perturbations.back_translation import BackTranslation
from bleurt_repro.datasets_builders.signals import BackTranslationLikelihood
from bleurt_repro.datasets_builders.translator import Translator
from tests.tiny_teachers import SENTENCES


def test_four_likelihoods_in_order(tiny_teachers):
    translator = Translator(str(tiny_teachers.translator), device="cpu")
    trips = [BackTranslation(name, translator, translator, f">>{name}<< ", ">>en<< ") for name in ("fr", "de")]
    signal = BackTranslationLikelihood(trips)
    references, candidates = SENTENCES[:3], [SENTENCES[5], "", SENTENCES[2]]
    numbers = signal(references, candidates)
    for column, (name, conditions, texts) in enumerate(
        [
            ("fr", candidates, references),
            ("fr", references, candidates),
            ("de", candidates, references),
            ("de", references, candidates),
        ]
    ):
        there = translator.translate(conditions, f">>{name}<< ")
        np.testing.assert_allclose(numbers[:, column], translator.log_likelihoods(there, texts, ">>en<< "), atol=1e-6)
    assert numbers.shape == (3, 4) and (numbers < 0).all()
    assert numbers[2, 0] == pytest.approx(
        numbers[2, 1], abs=1e-5
    )  # equal texts: both directions are the same question
    assert signal.describe()["values"] == [
        "fr_reference_given_candidate",
        "fr_candidate_given_reference",
        "de_reference_given_candidate",
        "de_candidate_given_reference",
    ]


def test_without_translators_it_says_so():
    with pytest.raises(ValueError, match="needs a pair of translators, found none"):
        BackTranslationLikelihood([])
