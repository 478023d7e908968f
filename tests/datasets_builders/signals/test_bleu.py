"""Sentence BLEU against values of Moses' formula, computed by hand."""

from __future__ import annotations

import pytest

from bleurt_repro.datasets_builders.signals import Bleu

# Matches and totals of one to four words, each plus one, and the brevity penalty.
TABLE = [
    # (6/7 * 4/6 * 3/5 * 2/4) ^ (1/4)
    ("the cat sat on the mat", "the cat sat on a mat", 64.34588841607616),
    # all precisions 1, and exp(1 - 3/2)
    ("the cat sat", "the cat", 60.65306597126334),
    # (6/7 * 5/6 * 4/5 * 3/4) ^ (1/4): the full stop is a word, case counts
    ("The cat sat on mats.", "the cat sat on mats.", 80.91067115702214),
    # (3/7 * 1/6 * 1/5 * 1/4) ^ (1/4): a longer candidate pays by its precision only
    ("a b", "x y a z b w", 24.446151121745054),
    # (1/2 * 1/1 * 1/1 * 1/1) ^ (1/4): orders that the candidate is too short for count as matched; and exp(1 - 3/1)
    ("a b c", "x", 11.380295453101374),
    ("one two three four five", "one two three four five", 100.0),
    ("one", "one", 100.0),
    ("one two", "", 0.0),
    ("one two", "  ", 0.0),
]


@pytest.mark.parametrize(("reference", "candidate", "expected"), TABLE)
def test_bleu(reference, candidate, expected):
    assert Bleu()([reference], [candidate]).tolist() == [[pytest.approx(expected, rel=1e-9)]]


def test_text_is_tokenised_as_moses_does():
    assert Bleu()(["Well, fine (so far)."], ["Well , fine ( so far ) ."]).item() == pytest.approx(100.0)
    assert Bleu()(["Dr. Who"], ["Dr . Who"]).item() < 100.0


def test_many_pairs_at_once():
    references, candidates, expected = zip(*TABLE, strict=True)
    scores = Bleu()(references, candidates)
    assert scores.shape == (len(TABLE), 1)
    assert scores[:, 0].tolist() == pytest.approx(list(expected), rel=1e-9)
    assert Bleu()([], []).shape == (0, 1)


def test_the_tokeniser_is_that_of_the_language():
    # in English four words, the last two "'s" and "tail": (4/5 * 2/4 * 1/3 * 1/2) ^ (1/4)
    assert Bleu()(["the dog's tail"], ["the cat's tail"]).item() == pytest.approx(50.8132748154615)


def test_each_reference_has_its_candidate():
    with pytest.raises(ValueError, match="shorter"):
        Bleu()(["one two", "three four"], ["one two"])
