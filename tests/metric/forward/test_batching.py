"""Batches by tokens: every item once, within the budget, alike in length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bleurt_repro.metric.forward.pairs import batches_by_tokens


@given(lengths=st.lists(st.integers(1, 600), max_size=80), budget=st.integers(1, 2000))
def test_every_item_stands_in_one_batch_within_the_budget(lengths, budget):
    batches = batches_by_tokens(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget


def test_neighbours_are_alike_and_the_longest_comes_first():
    assert batches_by_tokens([3, 50, 4, 49, 5], 100) == [[1, 3], [4, 2, 0]]


def test_little_is_spent_on_padding():
    lengths = [5 + i % 60 for i in range(1000)]
    padded = sum(len(batch) * lengths[batch[0]] for batch in batches_by_tokens(lengths, 2048))
    assert padded / sum(lengths) < 1.08  # in the given order it is about 1.9
