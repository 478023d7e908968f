"""Alterations: what each changes, what it leaves alone, and that nothing to change gives None."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bleurt_repro.datasets_builders.contrasts.alterations import (
    change_name,
    change_negation,
    change_number,
    change_tense,
    leave_out,
    make_passive,
    move_phrase,
    names_in,
    put_in,
    swap_roles,
    vary_contractions,
    vary_form,
)

NAMES = {"Anna", "Peter", "Oslo", "Basel"}


@pytest.mark.parametrize(
    ("change", "text", "pattern"),
    [
        (change_number, "It cost 7 pounds.", r"It cost [1-9] pounds\."),
        (change_number, "It took five days.", r"It took [a-z]+ days\."),
        (change_negation, "She did not come.", r"She did come\."),
        (change_negation, "She hasn't come.", r"She has come\."),
        (change_negation, "He never smiles.", r"He smiles\."),
        (change_negation, "The door is open.", r"The door is not open\."),
        (change_tense, "The door is open.", r"The door (was|will be) open\."),
        (change_tense, "They had left.", r"They (has|will have) left\."),
    ],
)
def test_changes(change, text, pattern):
    changed = change(text, np.random.default_rng(0))
    assert re.fullmatch(pattern, changed)
    assert changed != text


def test_a_name_inside_a_sentence_is_replaced_by_another():
    random = np.random.default_rng(0)
    assert change_name("The road to Basel is shut.", ["Basel", "Oslo"], random) == "The road to Oslo is shut."


def test_names_are_words_with_a_capital_inside_a_sentence():
    assert names_in("Yesterday Anna took the train to Oslo. Snow fell.") == ["Anna", "Oslo"]


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("Anna thanked Peter.", "Peter thanked Anna."),
        ("The dog is chasing the cat.", "The cat is chasing the dog."),
        ("He gave her the book.", "She gave him the book."),
        ("I think that they know us.", "We think that they know me."),
    ],
)
def test_roles_change_places(text, swapped):
    assert swap_roles(text, NAMES, np.random.default_rng(0)) == swapped


@pytest.mark.parametrize(
    ("active", "passive"),
    [
        ("Anna thanked Peter.", "Peter was thanked by Anna."),
        ("They saw the dogs in the park.", "The dogs were seen by them in the park."),
        ("My sister wrote the letter!", "The letter was written by my sister!"),
        ("He met me.", "I was met by him."),
    ],
)
def test_passive(active, passive):
    assert make_passive(active) == passive


@pytest.mark.parametrize("text", ["Who found Tom?", "It rained.", "Anna laughs.", "Tom saw Mary, who left."])
def test_no_passive(text):
    assert make_passive(text) is None


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("On Monday, the shop was closed.", "The shop was closed on Monday."),
        ("The shop was closed because of the snow.", "Because of the snow, the shop was closed."),
        ("Anna went home when it rained.", "When it rained, Anna went home."),
        ("I'll go home when it rains.", "When it rains, I'll go home."),
    ],
)
def test_a_phrase_moves(text, moved):
    assert move_phrase(text, NAMES) == moved


@pytest.mark.parametrize("text", ["I wonder if he likes me.", "The shop is closed.", "When will they come?"])
def test_no_phrase_moves(text):
    assert move_phrase(text, NAMES) is None


def test_a_phrase_is_left_out_and_the_sentence_stays_one():
    text = "She sold the house because it was too big, and moved to Oslo."
    seen = {leave_out(text, np.random.default_rng(seed)) for seed in range(40)}
    assert seen == {
        "She sold the house, and moved to Oslo.",
        "She sold the house because it was too big to Oslo.",
        "She sold the house because it was too big, and moved.",
    }


def test_a_phrase_of_another_sentence_is_put_in():
    text, donor = "The shop is closed.", "He left after the concert."
    assert put_in(text, donor, np.random.default_rng(0)) == "The shop is closed after the concert."
    assert put_in(text, "He left.", np.random.default_rng(0)) is None
    assert put_in("He slept after the concert.", donor, np.random.default_rng(0)) is None


@pytest.mark.parametrize("seed", range(30))
def test_form_varies_and_letters_stay(seed):
    text = "The train, which was late, is here: hurry up!"
    varied = vary_form(text, np.random.default_rng(seed))
    assert re.findall(r"\w", varied.lower()) == re.findall(r"\w", text.lower())


@pytest.mark.parametrize(
    ("short", "long"),
    [("It isn't here.", "It is not here."), ("They won't go.", "They will not go."), ("I can't.", "I cannot.")],
)
def test_contractions_are_written_out(short, long):
    assert vary_contractions(short) == long


def test_words_are_contracted():
    assert vary_contractions("I am here and he is not.") == "I'm here and he isn't."


@pytest.mark.parametrize(
    "change",
    [
        change_number,
        change_negation,
        change_tense,
        leave_out,
        lambda text, random: change_name(text, [], random),
        lambda text, random: swap_roles(text, NAMES, random),
    ],
)
def test_a_text_with_nothing_to_change_gives_none(change):
    assert change("Nothing here Basel", np.random.default_rng(0)) is None
