"""A scorer in another process, as `datasets.map` with several processes needs it."""

from __future__ import annotations

import pickle

import pytest
from datasets import Dataset

from bleurt_repro import BleurtScorer


def test_a_scorer_travels_as_its_arguments(tiny_scorer):
    scorer = BleurtScorer(str(tiny_scorer), device="cpu", batch_tokens=64)
    texts = {"references": ["the cat sat"], "candidates": ["a cat"]}
    scores = scorer.score(**texts)
    packed = pickle.dumps(scorer)
    assert len(packed) < 1000
    assert pickle.loads(packed).score(**texts) == pytest.approx(scores, abs=1e-6)


def test_datasets_map_with_two_processes(tiny_scorer):
    scorer = BleurtScorer(str(tiny_scorer), device="cpu", progress=False)
    rows = {"reference": ["the cat sat", "it rains"] * 4, "candidate": ["a cat", "good bye", "dog", "hi"] * 2}

    def add_scores(batch):
        return {"bleurt": scorer.score(references=batch["reference"], candidates=batch["candidate"])}

    scored = Dataset.from_dict(rows).map(add_scores, batched=True, num_proc=2)
    expected = scorer.score(references=rows["reference"], candidates=rows["candidate"])
    assert scored["bleurt"] == pytest.approx(expected, abs=1e-5)
