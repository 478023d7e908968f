"""The tables of the sanity suite as such: what stands in them."""

from __future__ import annotations

import difflib
import re
from collections import Counter

import pytest

from bleurt_repro.training.experiments.minimal_pairs import TABLES, read_minimal_pairs

TYPES = (
    "negation",
    "number",
    "named_entity",
    "omission",
    "addition",
    "word_order",
    "tense",
    "synonym",
    "paraphrase",
    "casing_punctuation",
)


@pytest.fixture(scope="module", params=list(TABLES))
def table(request):
    return read_minimal_pairs(TABLES[request.param])


def words(text):
    return re.sub(r"[^a-z0-9 ]", "", re.sub(r"[-\s]+", " ", text.lower())).split()


def letters(text):
    return re.sub(r"[^a-z0-9]", "", text.lower())


def test_each_type_has_its_rows(table):
    counts = Counter(pair.type for pair in table)
    assert list(counts) in (list(TYPES), ["word_order"], ["paraphrase"])
    assert min(counts.values()) >= 20


@pytest.mark.parametrize("column", ["reference", "worse"])
def test_no_text_stands_twice(table, column):
    assert [text for text, n in Counter(getattr(pair, column) for pair in table).items() if n > 1] == []


def test_texts_are_clean_and_of_varied_length(table):
    texts = [text for pair in table for text in pair[1:]]
    assert [text for text in texts if text != " ".join(text.split())] == []
    lengths = [len(pair.reference.split()) for pair in table]
    assert (
        min(lengths) >= 3 and max(lengths) >= (45 if len(table) > 100 else 30) and sum(n >= 25 for n in lengths) >= 8
    )


def test_candidates_differ_in_more_than_casing_and_punctuation(table):
    for pair in table:
        assert letters(pair.worse) not in (letters(pair.reference), letters(pair.better)), pair
        assert (letters(pair.better) == letters(pair.reference)) == (pair.type == "casing_punctuation"), pair


def test_casing_rows_have_few_wrong_words(table):
    for pair in (pair for pair in table if pair.type == "casing_punctuation"):
        there, here = words(pair.reference), words(pair.worse.replace("180km/h", "180 km/h"))
        assert len(there) == len(here) and sum(a != b for a, b in zip(there, here, strict=True)) <= 1, pair


def test_two_tables_ask_two_questions_of_the_same_better_candidates():
    minimal, near = (read_minimal_pairs(TABLES[name]) for name in ("minimal_pairs", "near_copies"))
    assert [pair[:3] for pair in minimal] == [pair[:3] for pair in near]

    def alike(one, two):
        return difflib.SequenceMatcher(None, words(one), words(two), autojunk=False).ratio()

    nearer = [alike(m.better, m.worse) >= alike(m.better, n.worse) for m, n in zip(minimal, near, strict=True)]
    # but where turning round who does what takes fewer words in the reference
    assert sum(nearer) >= len(nearer) - 5
    assert min(alike(pair.better, pair.worse) for pair in minimal) >= 0.4


def test_swapped_roles_are_told_in_the_same_words():
    """No word tells the two candidates apart, but for a form of it: "him" for "he"."""
    for pair in read_minimal_pairs(TABLES["swapped_roles"]):
        better, worse = Counter(words(pair.better)), Counter(words(pair.worse))
        assert (better - worse).total() <= 2 and words(pair.better) != words(pair.worse), pair
