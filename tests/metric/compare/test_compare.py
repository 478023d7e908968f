"""Comparing systems: figures against their parts, and what is refused."""

from __future__ import annotations

import pytest
from sacrebleu import corpus_bleu, corpus_chrf, sentence_bleu

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.compare.compare import compare
from tests.three_systems import REFERENCES, SYSTEMS


@pytest.fixture(scope="module")
def scorer(tiny_scorer):
    return BleurtScorer(str(tiny_scorer), device="cpu", progress=False)


@pytest.fixture(scope="module")
def comparison(scorer):
    return compare(scorer, REFERENCES, SYSTEMS, resamples=200)


def test_systems_in_the_order_given(comparison, scorer):
    assert [system.name for system in comparison.systems] == ["good", "bad", "middle"]
    for system in comparison.systems:
        scores = scorer.score(references=REFERENCES, candidates=SYSTEMS[system.name])
        assert system.mean == pytest.approx(sum(scores) / 3, abs=1e-6)
        assert min(scores) - 1e-6 <= system.low <= system.mean <= system.high <= max(scores) + 1e-6
        texts = SYSTEMS[system.name]
        assert system.bleu == pytest.approx(corpus_bleu(texts, [REFERENCES]).score)
        assert system.chrf == pytest.approx(corpus_chrf(texts, [REFERENCES]).score)
        sentences = [sentence_bleu(c, [r]).score for c, r in zip(texts, REFERENCES, strict=True)]
        assert system.sentbleu == pytest.approx(sum(sentences) / 3)


def test_every_two_systems_are_tested(comparison):
    means = {system.name: system.mean for system in comparison.systems}
    assert [(test.first, test.second) for test in comparison.tests] == [
        ("good", "bad"),
        ("good", "middle"),
        ("bad", "middle"),
    ]
    for test in comparison.tests:
        assert test.difference == pytest.approx(means[test.first] - means[test.second], abs=1e-6)
        assert test.wins + test.losses + test.ties == 3


def test_segments_with_the_largest_spread_come_first(comparison):
    spreads = [segment.spread for segment in comparison.segments]
    assert spreads == sorted(spreads, reverse=True)
    assert sorted(segment.number for segment in comparison.segments) == [1, 2, 3]
    for segment in comparison.segments:
        assert segment.references == [REFERENCES[segment.number - 1]]
        assert segment.candidates == [own[segment.number - 1] for own in SYSTEMS.values()]
        assert segment.spread == pytest.approx(max(segment.scores) - min(segment.scores))


def test_signatures_are_there(comparison, scorer):
    assert comparison.signatures["BLEURT"] == scorer.signature
    assert "smooth:exp" in comparison.signatures["sentBLEU"] and "nc:6" in comparison.signatures["chrF"]


def test_several_references_of_any_number(scorer):
    references = [["the cat sat on the mat", "a cat was on the mat"], ["it rains"], ["good bye"]]
    candidates = ["a cat was on the mat", "it rains", "good bye"]
    first = compare(scorer, references, {"A": candidates, "B": SYSTEMS["bad"]}, resamples=10).systems[0]
    assert (first.sentbleu, first.chrf) == pytest.approx((100, 100))


def test_sources_reach_a_checkpoint_that_reads_them(tiny_source_scorer):
    scorer = BleurtScorer(str(tiny_source_scorer), device="cpu", progress=False)
    systems = {"A": ["the cat"], "B": ["a dog"]}
    one = compare(scorer, ["the cat"], systems, ["le chat"], resamples=5)
    other = compare(scorer, ["the cat"], systems, ["il pleut"], resamples=5)
    assert one.segments[0].source == "le chat"
    assert one.systems[0].mean != pytest.approx(other.systems[0].mean)
    assert (one.systems[0].low, one.tests[0].p_value) == (None, None)


@pytest.mark.parametrize(
    ("references", "systems", "message"),
    [
        (["r"], {"A": ["a"]}, "two systems or more, found 1"),
        (["r"], {"A": ["a"], "B": []}, "1 references, 1 candidates of A, 0 candidates of B"),
        ([], {"A": [], "B": []}, "at least one segment"),
    ],
)
def test_what_cannot_be_compared(scorer, references, systems, message):
    with pytest.raises(ValueError, match=message):
        compare(scorer, references, systems)
