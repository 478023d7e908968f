"""Checkpoints in bleurt-pytorch's format: English and multilingual, as that project writes them."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.loading.bleurt_pytorch import load_bleurt_pytorch
from bleurt_repro.metric.loading.limits import read_settings
from bleurt_repro.metric.loading.open import load_checkpoint
from tests.bleurt_pytorch_ports import edit_config, make_port
from tests.official_checkpoints import expected_scores

PAIRS = [("the cat sat on the mat", "a dog ran"), ("it rains", "it rains"), ("", "hello [SEP] there")]


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ports") / "english"
    return folder, make_port(folder)


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ports") / "multilingual"
    return folder, make_port(folder, embedding=8)


@pytest.fixture
def copy(english, tmp_path):
    return shutil.copytree(english[0], tmp_path / "copy")


@pytest.mark.parametrize(
    "kind, settings, architecture, gelu",
    [
        ("english", {}, "BertForSequenceClassification", "tanh"),  # recorded as "gelu", which the weights belie
        ("english", {"hidden_act": "gelu_new"}, "BertForSequenceClassification", "tanh"),
        ("multilingual", {}, "RemBertForSequenceClassification", "erf"),
        ("multilingual", {"hidden_act": "gelu_new"}, "RemBertForSequenceClassification", "tanh"),
    ],
)
def test_scores_are_those_of_the_weights(request, tmp_path, kind, settings, architecture, gelu):
    source, variables = request.getfixturevalue(kind)
    folder = shutil.copytree(source, tmp_path / "copy")
    edit_config(folder, **settings)
    scorer = BleurtScorer(str(folder))
    assert type(scorer.model).__name__ == architecture
    scores = scorer.score(references=[r for r, _ in PAIRS], candidates=[c for _, c in PAIRS])
    assert scores == pytest.approx(expected_scores(scorer, variables, gelu, PAIRS), abs=1e-6)
    other = expected_scores(scorer, variables, {"tanh": "erf", "erf": "tanh"}[gelu], PAIRS)
    assert max(abs(a - b) for a, b in zip(scores, other, strict=True)) > 1e-5  # the test would see the other GELU


def test_the_gelu_can_be_named(multilingual):
    model, _ = load_bleurt_pytorch(multilingual[0], read_settings(multilingual[0] / "config.json"), gelu="tanh")
    assert model.config.hidden_act == "gelu_pytorch_tanh"


@pytest.mark.parametrize(
    "settings, max_length",
    [
        ({}, 64),
        ({"max_seq_length": 40}, 40),
        ({"_name_or_path": "lucadiliello/bleurt-base-128", "max_position_embeddings": 64, "max_seq_length": 48}, 48),
        ({"_name_or_path": "somewhere/else"}, 64),
    ],
)
def test_the_length_is_what_the_config_says(copy, settings, max_length):
    edit_config(copy, **settings)
    assert load_checkpoint(str(copy)).layout.max_length == max_length


def test_the_official_length_is_known_by_name(copy):
    edit_config(copy, _name_or_path="bleurt-base-128")
    with pytest.raises(ValueError, match="reads 128 tokens, but the model has 64 positions"):
        load_checkpoint(str(copy))


def test_weights_may_lie_in_several_files_and_under_the_encoders_own_prefix(copy, english):
    weights = load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    renamed = {name.replace("bleurt.", "bert."): weight for name, weight in weights.items()}
    names = sorted(renamed)
    save_file({name: renamed[name] for name in names[:10]}, copy / "model-00001-of-00002.safetensors")
    save_file({name: renamed[name] for name in names[10:]}, copy / "model-00002-of-00002.safetensors")
    model, _ = load_bleurt_pytorch(copy, read_settings(copy / "config.json"))
    whole, _ = load_bleurt_pytorch(english[0], read_settings(english[0] / "config.json"))
    assert all(
        torch.equal(a, b) for a, b in zip(model.state_dict().values(), whole.state_dict().values(), strict=True)
    )


def test_half_precision_is_given_on_request(english):
    assert load_checkpoint(str(english[0]), dtype=torch.bfloat16).model.dtype == torch.bfloat16


def test_a_cased_checkpoint_stays_cased(copy):
    (copy / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
    assert load_checkpoint(str(copy)).tokenizer.tokenize("Cat") == ["[UNK]"]


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda folder: (folder / "vocab.txt").unlink(), "has no tokenizer"),
        (lambda folder: (folder / "vocab.txt").write_text("[PAD]\n"), r"has no \[CLS\]"),
        (
            lambda folder: (folder / "vocab.txt").open("a").write("one\ntwo\n"),
            "its tokenizer has .* tokens but the model has",
        ),
        (lambda folder: edit_config(folder, hidden_size=None), "need hidden_size.*found None"),
        (lambda folder: edit_config(folder, hidden_size=30), "hidden_size 30 is no multiple of num_attention_heads 4"),
        (lambda folder: edit_config(folder, num_hidden_layers=3), "layer.2.* missing"),
        (lambda folder: edit_config(folder, num_hidden_layers=1), "layer.1.* of no use to a scorer"),
        (lambda folder: edit_config(folder, intermediate_size=44), r"has shape \(48,.*expected \(44,"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\x00" * 50), "cannot be read"),
        (lambda folder: (folder / "model.safetensors").unlink(), "no weights in safetensors.*refs/pr/1"),
        (
            lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
            "only pytorch_model.bin, a pickle, which is never opened.*refs/pr/1",
        ),
    ],
)
def test_a_damaged_checkpoint_is_refused_with_the_reason(copy, damage, message):
    damage(copy)
    with pytest.raises(ValueError, match=message):
        load_checkpoint(str(copy))


def test_weights_that_are_no_numbers_are_refused(copy):
    weights = load_file(copy / "model.safetensors")
    weights["classifier.bias"][0] = float("nan")
    save_file(weights, copy / "model.safetensors")
    with pytest.raises(ValueError, match="classifier.bias is NaN or infinite"):
        load_checkpoint(str(copy))
