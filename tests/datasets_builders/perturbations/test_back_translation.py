"""Back-translation: into the other language with one prefix, back with the other, each model in its own direction."""

from __future__ import annotations

import numpy as np
import pytest

from bleurt_repro.datasets_builders.perturbations.back_translation import BackTranslation


class RecordingTranslator:
    """A translator that marks what it translates, and records the likelihoods that it is asked for."""

    def __init__(self, mark: str):
        self.mark = mark
        self.asked: list[tuple[list[str], list[str], str]] = []

    def translate(self, texts, prefix=""):
        return [f"{self.mark}({prefix}{text})" for text in texts]

    def log_likelihoods(self, sources, texts, prefix=""):
        self.asked.append((list(sources), list(texts), prefix))
        return np.array([-float(len(text)) for text in texts])


@pytest.fixture
def trip():
    return BackTranslation("fr", RecordingTranslator("F"), RecordingTranslator("B"), ">>fr<< ", ">>en<< ")


def test_the_round_trip_is_two_translations(trip):
    assert trip.name == "back_translation_fr"
    assert trip.to_pivot(["a cat", "it rains"]) == ["F(>>fr<< a cat)", "F(>>fr<< it rains)"]
    assert trip(["a cat"]) == ["B(>>en<< F(>>fr<< a cat))"]


def test_the_likelihood_is_that_of_the_text_given_the_translation_of_the_other(trip):
    assert trip.log_likelihoods(["a cat", "hi"], ["a dog", "bye"]).tolist() == [-5, -3]
    assert trip.backward.asked == [(["F(>>fr<< a cat)", "F(>>fr<< hi)"], ["a dog", "bye"], ">>en<< ")]
    assert not trip.forward.asked
