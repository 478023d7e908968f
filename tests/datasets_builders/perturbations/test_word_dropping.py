"""Word dropping: what remains is a sub-sequence, and how much is uniform."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bleurt_repro.datasets_builders.perturbations.word_dropping import drop_words


@given(tokens=st.lists(st.text("abc", min_size=1), max_size=30), seed=st.integers(0, 1000))
def test_what_remains_is_a_sub_sequence(tokens, seed):
    unused = iter(tokens)
    remaining = drop_words("  ".join(tokens), np.random.default_rng(seed)).split()
    assert all(token in unused for token in remaining)


def test_the_number_dropped_is_uniform_from_none_to_all():
    random = np.random.default_rng(0)
    counts = Counter(len(drop_words("a b c d", random).split()) for _ in range(5000))
    assert {*counts} == {0, 1, 2, 3, 4}
    assert all(900 < count < 1100 for count in counts.values())


def test_places_are_random_and_the_seed_decides():
    results = {drop_words("a b c d e f", np.random.default_rng(seed)) for seed in range(200)}
    assert "" in results and "a b c d e f" in results and len(results) > 30
    assert drop_words("a b c d", np.random.default_rng(5)) == drop_words("a b c d", np.random.default_rng(5))
