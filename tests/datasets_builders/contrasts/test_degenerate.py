"""Degenerate candidates: what each alteration makes of a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from bleurt_repro.datasets_builders.contrasts.degenerate import (
    DEGENERATE,
    as_question,
    degenerate_candidate,
    shuffle_words,
)

TEXT = "The train to Oslo is late again."


@pytest.mark.parametrize(
    ("alteration", "candidates"),
    [
        ("repeated", {f"{TEXT} {TEXT}", f"{TEXT} {TEXT} {TEXT}"}),
        ("as question", {"The train to Oslo is late again?"}),
        ("in quotation marks", {f'"{TEXT}"', f"“{TEXT}”", f"'{TEXT}'"}),
        ("content words", {"train Oslo late again"}),
        ("half", {"The train to", "Oslo is late again."}),
    ],
)
def test_candidates_are_all_variants_of_their_alteration(alteration, candidates):
    seen = {degenerate_candidate(alteration, TEXT, [TEXT], np.random.default_rng(seed)) for seed in range(40)}
    assert seen == candidates


def test_gibberish_has_the_lengths_of_the_words():
    candidate = degenerate_candidate("gibberish", TEXT, [TEXT], np.random.default_rng(0))
    assert [len(token) for token in candidate.split()] == [len(token) for token in TEXT.split()]
    assert candidate.islower() and candidate.replace(" ", "").isalpha()


def test_an_instruction_stands_alone_or_after_another_sentence():
    alone = {degenerate_candidate("instruction", TEXT, ["It rains."], np.random.default_rng(i)) for i in range(40)}
    after = {
        degenerate_candidate("with an instruction", TEXT, ["It rains."], np.random.default_rng(i)) for i in range(40)
    }
    assert after == {f"It rains. {instruction}" for instruction in alone}


@pytest.mark.parametrize("alteration", sorted(DEGENERATE))
def test_every_alteration_changes_the_text(alteration):
    assert degenerate_candidate(alteration, TEXT, ["It rains."], np.random.default_rng(1)) != TEXT


def test_words_are_shuffled_and_final_punctuation_becomes_a_question_mark():
    tokens = "one two three four five".split()
    shuffled = shuffle_words(" ".join(tokens), np.random.default_rng(0)).split()
    assert shuffled != tokens and sorted(shuffled) == sorted(tokens)
    assert as_question('He said "yes!"') == 'He said "yes?'
