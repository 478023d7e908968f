"""When memory runs short batches are halved, the run goes on, and scores stay; a pair that never fits is named."""

from __future__ import annotations

import warnings

import pytest
import torch

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.forward.pairs import is_lack_of_memory

WORDS = "the cat sat on a mat it rains dog good bye hi there stock prices fell".split()
TEXTS = {
    "references": [" ".join(WORDS[: 1 + n % 14]) for n in range(60)],
    "candidates": [" ".join(WORDS[n % 5 : 5 + n % 11]) for n in range(60)],
}
ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9"
    ),
    RuntimeError("CUDA error: out of memory"),
    MemoryError("std::bad_alloc"),
]


def short_of_memory(scorer: BleurtScorer, monkeypatch, most: int, error: Exception = ERRORS[0]) -> list[int]:
    """Make batches of more padded tokens fail; give a list that the sizes of all others are added to."""
    sizes, forward = [], scorer.members[0].forward()

    def limited(pairs):
        size = len(pairs) * max(len(pair.ids) for pair in pairs)
        if size > most:
            raise error
        sizes.append(size)
        return forward(pairs)

    monkeypatch.setattr(scorer.members[0], "forward", lambda: limited)
    return sizes


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: str(error)[:20])
def test_batches_are_halved_and_scores_stay(tiny_scorer, monkeypatch, error):
    scorer = BleurtScorer(str(tiny_scorer), device="cpu")
    expected = scorer.score(**TEXTS)
    sizes = short_of_memory(scorer, monkeypatch, 100, error)
    with pytest.warns(UserWarning, match="memory ran short: batches are halved until they fit") as said:
        assert scorer.score(**TEXTS) == pytest.approx(expected, abs=1e-5)
    assert len(said) == 1 and len(sizes) > 10
    with warnings.catch_warnings():  # what fits is remembered
        warnings.simplefilter("error")
        assert scorer.score(**TEXTS) == pytest.approx(expected, abs=1e-5)


def test_a_pair_that_does_not_fit_is_named(tiny_scorer, monkeypatch):
    scorer = BleurtScorer(str(tiny_scorer), device="cpu")
    short_of_memory(scorer, monkeypatch, 12)
    longest = max(
        len(scorer.members[0].encoder.encode_all(list(zip(*TEXTS.values(), strict=True)))[i].ids) for i in range(60)
    )
    with (
        pytest.warns(UserWarning, match="memory ran short"),
        pytest.raises(MemoryError, match=f"^one pair of {longest} tokens does not fit into memory"),
    ):
        scorer.score(**TEXTS)


def test_other_errors_are_not_taken_for_it(tiny_scorer, monkeypatch):
    scorer = BleurtScorer(str(tiny_scorer), device="cpu")
    short_of_memory(scorer, monkeypatch, 0, RuntimeError("size mismatch"))
    with pytest.raises(ValueError, match=r"checkpoint \w+: its model cannot score \(size mismatch\)"):
        scorer.score(**TEXTS)
    assert not is_lack_of_memory(KeyboardInterrupt("out of memory"))


def test_the_cpus_own_allocator_is_understood():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert is_lack_of_memory(caught.value)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_with_little_memory_left_scores_the_same(tiny_scorer):
    texts = {name: column * 400 for name, column in TEXTS.items()}
    texts["candidates"] = [f"{text} {n}" for n, text in enumerate(texts["candidates"])]
    expected = BleurtScorer(str(tiny_scorer), device="cuda", batch_tokens=1000).score(**texts)
    scorer = BleurtScorer(str(tiny_scorer), device="cuda", batch_tokens=1 << 22)
    torch.cuda.set_per_process_memory_fraction(torch.cuda.memory_reserved() * 1.2 / torch.cuda.mem_get_info()[1])
    try:
        with pytest.warns(UserWarning, match="memory ran short"):
            assert scorer.score(**texts) == pytest.approx(expected, abs=1e-4)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
