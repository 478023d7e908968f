"""Scoring in bulk: windows, repeats, order, and what is reported on the way."""

from __future__ import annotations

import pytest
import torch

from bleurt_repro.metric.forward.encoding import Encoded
from bleurt_repro.metric.forward.pairs import PairScorer
from bleurt_repro.metric.forward.score_cache import Scored


class Letters:
    """Encodes a text as one token a letter; longer than nine letters is too long."""

    def encode_all(self, items):
        return [self.encode(item) for item in items]

    def encode(self, texts):
        ids = [1, *(ord(letter) for text in texts for letter in text)]
        return Encoded(ids[:9], [0] * len(ids[:9]), len(ids) > 9)


@pytest.fixture
def batches():
    return []


@pytest.fixture
def scorer(batches):
    def forward(pairs):
        batches.append(len(pairs))
        return torch.tensor([float(sum(pair.ids)) for pair in pairs])

    return PairScorer("letters", Letters(), lambda: forward, batch_tokens=20)


@pytest.mark.parametrize("window", [1, 3, 100])
def test_windows_change_nothing(scorer, batches, window):
    scorer.window = window
    items = [("b", "a" * n) for n in (3, 1, 7, 1, 0, 5, 3)] + [("a", "long" * 9)]
    counts = []
    scores = scorer.score(items, counts.append)
    assert scores[:-1] == [Scored(1 + 98 + 97 * n, False) for n in (3, 1, 7, 1, 0, 5, 3)]
    assert scores[-1].truncated
    assert sum(counts) == len(items)
    assert sum(batches) == len(set(items))


def test_nothing_is_nothing(scorer, batches):
    assert scorer.score([]) == []
    assert batches == []


def test_a_fault_in_the_thread_is_raised(scorer):
    with pytest.raises(TypeError):
        scorer.score([("a", 3)])
