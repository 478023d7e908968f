"""Word costs: a cost is a difference of scores, what is missing is found, and the number of pairs is bounded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.compare.attribution import (
    Difference,
    Span,
    _insert,
    _unmatched,
    attribute,
    differences,
    nearest,
)


@pytest.fixture(scope="module")
def scorer(tiny_scorer):
    return BleurtScorer(str(tiny_scorer), device="cpu", progress=False)


class Counting:
    """Scores a text by a table, and counts what it is asked."""

    def __init__(self, scores: dict[str, float]) -> None:
        self.table, self.asked = scores, []

    def compute(self, *, references, candidates, sources=None):
        from bleurt_repro.metric.scorer import ScoringResult

        self.asked += candidates
        return ScoringResult([self.table.get(text, 0.0) for text in candidates], None, "", 0)


def test_a_cost_is_the_score_of_the_reference_with_the_words_in_it_less_its_own(scorer):
    reference, candidate = "the cat sat on the mat", "the dog sat on mat!"
    effects = attribute(scorer, reference, candidate)
    assert [(effect.text, effect.reference) for effect in effects] == [("dog", "cat"), ("", "the"), ("!", "")]
    assert [candidate[effect.start : effect.end] for effect in effects] == ["dog", "", "!"]
    texts = [candidate, reference, "the dog sat on the mat", "the cat sat on mat", "the cat sat on the mat!"]
    whole, best, *scores = scorer.score(references=[reference] * 5, candidates=texts)
    costs = [score - best for score in scores]
    total = sum(cost for cost in costs if cost < 0)
    scale = min(1, min(whole - best, 0) / total) if total else 1
    assert [effect.effect for effect in effects] == pytest.approx([c * scale if c < 0 else c for c in costs], abs=1e-5)


def test_costs_are_no_more_than_the_whole_distance():
    scores = {"b x d": -0.5, "a c d": 1.0, "b c d": 0.0, "a x d": -1.0}
    effects = attribute(Counting(scores), "a c d", "b x d")
    assert [effect.effect for effect in effects] == [-1.5]  # one stretch, so the whole distance
    scores |= {"b c x": 0.7, "b c d": 0.4, "a c x": 0.4}
    assert [e.effect for e in attribute(Counting(scores), "a c d", "b c x")] == pytest.approx([-0.15, -0.15])
    scores["b c x"] = 1.2  # better than the reference itself: nothing costs
    assert [e.effect for e in attribute(Counting(scores), "a c d", "b c x")] == [0, 0]


def test_several_references_and_sources(scorer, tiny_source_scorer):
    assert nearest(["the cat", "a big dog"], "a dog") == "a big dog"
    [effect] = attribute(scorer, ["the cat", "a big dog"], "a dog")
    assert (effect.text, effect.reference) == ("", "big")
    with_source = BleurtScorer(str(tiny_source_scorer), device="cpu", progress=False)
    assert len(attribute(with_source, "the cat", "a cat", "le chat")) == 1


def test_the_same_words_cost_nothing_and_score_nothing():
    counting = Counting({})
    assert attribute(counting, "The cat.", "the  cat.") == []
    assert counting.asked == []


def test_a_blank_candidate_lacks_everything(scorer):
    [effect] = attribute(scorer, "the cat", " \n")
    assert (effect.start, effect.end, effect.reference) == (0, 0, "the cat")


def test_the_number_of_scored_pairs_is_bounded():
    reference = " ".join(f"a{i} b" for i in range(130))
    candidate = " ".join(f"c{i} b" for i in range(130))
    counting = Counting({})
    effects = attribute(counting, reference, candidate, max_stretches=5)
    assert (len(effects), len(counting.asked)) == (5, 7)
    assert effects[0].text == " ".join(f"c{i} b" for i in range(26)).removesuffix(" b")
    assert len(attribute(Counting({}), reference, candidate)) <= 64


@pytest.mark.parametrize(
    ("reference", "candidate", "expected"),
    [
        ("The old cat sat.", "The cat sat.", ["The cat sat."]),
        ("The cat sat.", "The old cat sat.", ["The old cat sat."]),
        ("The cat sat on the mat.", "The cat sat.", ["The cat sat."]),
        ("The cat sat.", "The cat sat on the mat.", ["The cat sat on the mat."]),
        ("Today it rains.", "It rains.", ["it rains."]),
        ("It rains.", "Today it rains.", ["Today It rains."]),
        ("It rains.", "It rains", ["It rains"]),
        ("It rains", "It rains!", ["It rains!"]),
        ("我爱你", "我们爱你", ["我们爱你"]),
        ("a b c", "x b y", ["x b c", "a b y"]),
    ],
)
def test_words_are_insert_as_text_is_spaced(reference, candidate, expected):
    assert [_insert(reference, candidate, stretch) for stretch in differences(reference, candidate)] == expected


def test_a_place_where_words_are_missing():
    [difference] = differences("The minister welcomed the new law.", "The minister welcomed the law.")
    assert difference == Difference(Span(25, 25), Span(25, 29)._replace(start=26))


def test_words_that_changed_places_are_not_missing():
    [difference] = differences("She said it last year.", "Last year she said it.")
    assert difference.candidate == Span(0, 9)
    assert [d.reference for d in differences("a b c", "b d")] == [Span(0, 1), Span(4, 5)]


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_all_differences_insertto_the_reference_give_the_candidate(reference, candidate):
    text = reference
    for own, place in reversed(_unmatched(reference, candidate)):
        text = f"{text[: place.start]} {candidate[own.start : own.end]} {text[place.end :]}"
    assert "".join(text.split()).casefold() == "".join(candidate.split()).casefold()


@pytest.mark.parametrize(
    ("reference", "right", "wrong"),
    [
        ("The minister welcomed the new law.", "welcomed", "rejected"),
        ("The train to the coast was delayed by heavy snow.", "heavy", "purple"),
        ("The museum opens at nine and closes at five.", "five", "six"),
        ("The museum opens at nine and closes at five.", " and closes at five", ""),
    ],
)
def test_the_embedded_checkpoint_points_at_the_error_among_harmless_differences(reference, right, wrong):
    candidate = reference.replace(right, wrong).replace("The ", "This ", 1)
    effects = attribute(BleurtScorer(device="cpu", progress=False), reference, candidate)
    worst, *others = sorted(effects, key=lambda effect: effect.effect)
    assert (worst.text, worst.reference) == (wrong, right.strip())
    # Copies score far above everything else: "This" for "The" costs half as much as an error.
    assert worst.effect < -0.3 and all(worst.effect < 1.5 * other.effect for other in others)
