"""A pickled scorer: opened again in another process, and cached by `datasets.map` only as long as its scores are the same."""

from __future__ import annotations

import json
import pickle
import shutil

import pytest
from datasets import Dataset, load_from_disk
from datasets.fingerprint import Hasher

from bleurt_repro import BleurtScorer
from tests.conftest import make_tiny_scorer


def test_a_scorer_is_pickled_as_its_options(tiny_scorer):
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


def _retrain(folder, monkeypatch):
    shutil.rmtree(folder)
    make_tiny_scorer(folder, spread=0.2)


def _recalibrate(folder, monkeypatch):
    config = json.loads((folder / "config.json").read_text())
    config["bleurt"]["calibration"] = {"scores": [0, 1], "percentiles": [10, 90]}
    (folder / "config.json").write_text(json.dumps(config))


def _upgrade(folder, monkeypatch):
    monkeypatch.setattr("bleurt_repro.metric.signature.__version__", "9.9")


@pytest.mark.parametrize("change", [_retrain, _recalibrate, _upgrade])
def test_the_fingerprint_changes_with_the_signature(tmp_path, monkeypatch, change):
    folder = make_tiny_scorer(tmp_path / "model")
    before = BleurtScorer(str(folder), progress=False)

    def map_with(scorer):
        def add_scores(batch):
            return {"bleurt": scorer.score(references=batch["reference"], candidates=batch["candidate"])}

        return data.map(add_scores, batched=True)

    rows = {"reference": ["the cat sat", "it rains"], "candidate": ["a cat", "good bye"]}
    Dataset.from_dict(rows).save_to_disk(tmp_path / "data")
    data = load_from_disk(tmp_path / "data")
    map_with(before)
    assert Hasher.hash(BleurtScorer(str(folder), progress=False)) == Hasher.hash(before)
    packed, fingerprint, signature = pickle.dumps(before), Hasher.hash(before), before.signature
    change(folder, monkeypatch)
    after = BleurtScorer(str(folder), progress=False)
    assert after.signature != signature and Hasher.hash(after) != fingerprint
    expected = after.score(references=rows["reference"], candidates=rows["candidate"])
    assert map_with(after)["bleurt"] == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ValueError, match="has changed since the scorer was pickled: expected checkpoint:.*, found "):
        pickle.loads(packed)


def test_a_closed_scorer_is_pickled(tiny_scorer):
    scorer = BleurtScorer(str(tiny_scorer))
    signature = scorer.signature
    scorer.close()
    assert pickle.loads(pickle.dumps(scorer)).signature == signature
