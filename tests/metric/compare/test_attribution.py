"""Erasure: effects are differences of scores, and their number is bounded."""

from __future__ import annotations

import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.compare.attribution import attribute, pieces


@pytest.fixture(scope="module")
def scorer(tiny_scorer):
    return BleurtScorer(str(tiny_scorer), device="cpu", progress=False)


def test_an_effect_is_the_score_less_the_score_without_the_word(scorer):
    reference, candidate = "the cat sat on the mat", "the dog sat."
    effects = attribute(scorer, reference, candidate)
    assert [effect.text for effect in effects] == ["the", "dog", "sat", "."]
    assert [candidate[effect.start : effect.end] for effect in effects] == ["the", "dog", "sat", "."]
    whole, *rest = scorer.score(
        references=[reference] * 5, candidates=[candidate, "dog sat.", "the sat.", "the dog.", "the dog sat"]
    )
    assert [effect.effect for effect in effects] == pytest.approx([whole - score for score in rest], abs=1e-5)


def test_several_references_and_sources(scorer, tiny_source_scorer):
    several = attribute(scorer, ["the cat", "a dog"], "a dog")
    best = max(scorer.score(references=["the cat", "a dog"], candidates=["a dog"] * 2))
    without_a = max(scorer.score(references=["the cat", "a dog"], candidates=["dog"] * 2))
    assert several[0].effect == pytest.approx(best - without_a, abs=1e-5)
    with_source = BleurtScorer(str(tiny_source_scorer), device="cpu", progress=False)
    assert len(attribute(with_source, "the cat", "a dog", "le chien")) == 2


def test_a_blank_candidate_has_no_words(scorer):
    assert attribute(scorer, "the cat", " \n") == []


def test_a_long_candidate_is_taken_apart_into_runs_of_words(scorer):
    text = " ".join(f"w{i}" for i in range(130))
    spans = pieces(text)
    assert len(spans) == 44
    assert text[spans[0].start : spans[0].end] == "w0 w1 w2"
    assert text[spans[-1].start : spans[-1].end] == "w129"
    assert len(attribute(scorer, "the cat", text, max_pieces=5)) == 5


@pytest.mark.parametrize(
    ("reference", "right", "wrong"),
    [
        ("The minister welcomed the new law.", "welcomed", "rejected"),
        ("The train to the coast was delayed by heavy snow.", "heavy", "purple"),
        pytest.param(
            "The museum opens at nine and closes at five.",
            "five",
            "six",
            marks=pytest.mark.xfail(strict=True, reason="without the hour the text is as wrong: it blames 'closes'"),
        ),
    ],
)
def test_the_embedded_checkpoint_points_at_the_word_that_is_wrong(reference, right, wrong):
    effects = attribute(BleurtScorer(device="cpu", progress=False), reference, reference.replace(right, wrong))
    worst, second = sorted(effects, key=lambda effect: effect.effect)[:2]
    assert worst.text == wrong and worst.effect < -0.05 and worst.effect < 2 * second.effect
