"""Which words are masked: never more tokens than allowed, whole words only, adjacent where they should be."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleurt_repro.datasets_builders.perturbations.mask_filling import STRATEGIES, choose_contiguous, choose_scattered

SIZES = st.lists(st.integers(1, 20), max_size=40)


@pytest.mark.parametrize("choose", STRATEGIES.values(), ids=STRATEGIES.keys())
@given(sizes=SIZES, max_masks=st.integers(1, 15), seed=st.integers(0, 1000))
def test_chosen_words_fit_and_exist_whenever_one_can(choose, sizes, max_masks, seed):
    chosen = choose(sizes, max_masks, np.random.default_rng(seed))
    assert bool(chosen) == any(size <= max_masks for size in sizes)
    assert chosen == sorted({*chosen})
    assert all(0 <= i < len(sizes) for i in chosen)
    assert sum(sizes[i] for i in chosen) <= max_masks


@given(sizes=SIZES, seed=st.integers(0, 1000))
def test_contiguous_words_are_adjacent(sizes, seed):
    chosen = choose_contiguous(sizes, 15, np.random.default_rng(seed))
    assert chosen == list(range(chosen[0], chosen[0] + len(chosen))) if chosen else True


def test_the_same_seed_chooses_the_same_words():
    sizes = [1, 2, 1, 3, 1, 1, 4, 1]
    first = [choose(sizes, 5, np.random.default_rng(3)) for choose in STRATEGIES.values()]
    assert first == [choose(sizes, 5, np.random.default_rng(3)) for choose in STRATEGIES.values()]


def test_numbers_of_words_are_uniform():
    random = np.random.default_rng(0)
    scattered = Counter(len(choose_scattered([1] * 10, 5, random)) for _ in range(5000))
    assert {*scattered} == {1, 2, 3, 4, 5}
    assert all(900 < count < 1100 for count in scattered.values())
    # From the first word on, one to four words of one token fit.
    runs = Counter(tuple(choose_contiguous([1, 1, 1, 1, 9], 4, random)) for _ in range(8000))
    from_first = [count for run, count in runs.items() if run[0] == 0]
    assert len(from_first) == 4 and all(430 < count < 570 for count in from_first)
