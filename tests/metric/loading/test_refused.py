"""Checkpoints that lead elsewhere, or that describe a model to fill any memory: refused at once, with the reason."""

from __future__ import annotations

import json
import shutil
import time

import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.loading.checksums import content_hash
from bleurt_repro.metric.loading.ensemble import Ensemble, Member


@pytest.fixture
def copy(tiny_scorer, tmp_path):
    return shutil.copytree(tiny_scorer, tmp_path / "copy")


def set_config(folder, **settings):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **settings}))


def split(folder, place):
    """Let an index lead to the weights at another place."""
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="pt") as weights:
        names = list(weights.keys())
    target = folder / place
    target.resolve().parent.mkdir(exist_ok=True)
    (folder / "model.safetensors").rename(target.resolve())
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(names, place)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "checksums.json").unlink()


@pytest.mark.parametrize(
    "place", ["pytorch_model.bin", "sub/w.safetensors", "../w.safetensors", "sub/../sub/w.safetensors"]
)
def test_weights_that_the_hash_does_not_cover_are_refused(copy, place):
    split(copy, place)
    (copy / "spare.safetensors").write_bytes(b"something in the folder")
    with pytest.raises(ValueError, match=r"index.json names .*expected only safetensors files in the folder itself"):
        BleurtScorer(str(copy))


def test_shards_in_the_folder_are_read_and_hashed(copy, tiny_scorer):
    split(copy, "model-00001-of-00001.safetensors")
    texts = {"references": ["a cat"], "candidates": ["the dog"]}
    scorer = BleurtScorer(str(copy))
    assert scorer.score(**texts) == pytest.approx(BleurtScorer(str(tiny_scorer)).score(**texts))
    before = content_hash(copy)
    shard = copy / "model-00001-of-00001.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1] + b"\1")
    assert content_hash(copy) != before


def test_members_of_an_ensemble_likewise(copy, tiny_scorer, tmp_path):
    shutil.copytree(tiny_scorer, tmp_path / "other")
    split(copy, "../weights.safetensors")
    (copy / "spare.safetensors").write_bytes(b"something in the folder")
    members = tuple(Member(name, content_hash(tmp_path / name), 0.5, 0.0, 1.0) for name in ("copy", "other"))
    (tmp_path / "ensemble.json").write_text(json.dumps(Ensemble(members).to_json()))
    with pytest.raises(ValueError, match="expected only safetensors files in the folder itself"):
        BleurtScorer(str(tmp_path))


BOMBS = [
    ({"num_hidden_layers": 100_000}, "sets num_hidden_layers to 100000, expected a whole number from 1 to 1000"),
    ({"num_hidden_layers": 900}, "describes a larger model than the 29089 weights in 41 tensors that are stored"),
    ({"num_hidden_layers": 0}, "num_hidden_layers to 0"),
    ({"num_hidden_layers": -1}, "num_hidden_layers to -1"),
    ({"num_hidden_layers": "2"}, "num_hidden_layers to 2"),
    ({"hidden_size": 1_000_000}, "describes a larger model"),
    ({"intermediate_size": 900_000}, "describes a larger model"),
    ({"vocab_size": 9_000_000}, "describes a larger model"),
    ({"max_position_embeddings": 10**9}, "max_position_embeddings to 1000000000"),
    ({"num_labels": 10**9}, "has 1000000000 labels; a scorer has one"),
    ({"num_labels": 1e9}, "has 1000000000.0 labels"),
    (
        {"bleurt": {"max_length": 129}},
        "checkpoint .*copy: .*maximum length of 129 is more than the model's 128 positions",
    ),
    ({"_attn_implementation": "kernels-community/flash"}, "sets _attn_implementation to 'kernels-community/flash'"),
    ({"transformers_weights": "other.safetensors"}, "sets transformers_weights"),
]


@pytest.mark.parametrize(("settings", "message"), BOMBS, ids=lambda value: str(value)[:40])
def test_a_config_of_another_size_is_refused_at_once(copy, settings, message):
    set_config(copy, **settings)
    start = time.monotonic()
    with pytest.raises(ValueError, match=message):
        BleurtScorer(str(copy))
    assert time.monotonic() - start < 10


def test_a_deeply_nested_config_and_an_adapter_are_refused(copy):
    (copy / "adapter_config.json").write_text('{"base_model_name_or_path": "org/other"}')
    with pytest.raises(ValueError, match="has an adapter"):
        BleurtScorer(str(copy))
    (copy / "config.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="config.json cannot be read"):
        BleurtScorer(str(copy))
    (copy / "checksums.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="config.json cannot be read"):
        BleurtScorer(str(copy))


def test_a_score_that_is_no_number_names_the_pair(copy, monkeypatch, tmp_path):
    import torch

    texts = {"references": ["it rains", "a cat sat"], "candidates": ["it rains", "the dog"]}
    scorer = BleurtScorer(str(copy), device="cpu", cache=tmp_path / "cache")
    forward = scorer.members[0].forward()

    def damaged(batch):
        scores = forward(batch)
        return torch.where(torch.arange(len(scores)) == 0, torch.nan, scores)

    monkeypatch.setattr(scorer.members[0], "forward", lambda: damaged)
    for function in (scorer.score, scorer.compute):
        with pytest.raises(
            ValueError, match=r"the score of the pair '(it rains|a cat sat)', .* is nan, which is no number"
        ):
            function(**texts)
    monkeypatch.undo()
    assert len(scorer.score(**texts)) == 2  # and nothing of it was kept
