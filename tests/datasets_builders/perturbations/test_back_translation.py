"""Back-translation: there with one prefix, back with the other."""

from __future__ import annotations

from bleurt_repro.datasets_builders.perturbations.back_translation import BackTranslation
from bleurt_repro.datasets_builders.translator import Translator
from tests.tiny_teachers import SENTENCES


def test_the_round_trip_is_two_translations(tiny_teachers):
    translator = Translator(str(tiny_teachers.translator), device="cpu")
    trip = BackTranslation("fr", translator, translator, ">>fr<< ", ">>en<< ")
    french = translator.translate(SENTENCES[:3], ">>fr<< ")
    assert trip.name == "back_translation_fr"
    assert trip.there(SENTENCES[:3]) == french
    assert trip(SENTENCES[:3]) == translator.translate(french, ">>en<< ")
    expected = translator.log_likelihoods(french, SENTENCES[3:6], ">>en<< ")
    assert trip.log_likelihoods(given=SENTENCES[:3], texts=SENTENCES[3:6]).tolist() == expected.tolist()
