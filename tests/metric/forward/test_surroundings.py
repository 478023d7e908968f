"""Scores do not depend on what the caller has set in PyTorch, when the scorer is opened or when it scores."""

from __future__ import annotations

import contextlib

import pytest
import torch
from transformers import AutoTokenizer, DistilBertConfig, DistilBertForSequenceClassification

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.loading.open import load_checkpoint
from bleurt_repro.metric.loading.torch_defaults import torch_defaults

TEXTS = {
    "references": ["a cat sat on the mat", "it rains", "the dog"],
    "candidates": ["the cat sat", "it rains", "two birds are here"],
}


@contextlib.contextmanager
def restored(read, write, value):
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


def matmul_precision(value):
    return restored(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, value)


SURROUNDINGS = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "inference mode": torch.inference_mode,
    "no gradients": torch.no_grad,
    "a device as a context": lambda: torch.device("meta"),
    "a default device": lambda: restored(lambda: None, torch.set_default_device, "meta"),
    "a default dtype": lambda: restored(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "deterministic algorithms": lambda: restored(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
    ),
    "products of lower precision": lambda: matmul_precision("medium"),
}


@pytest.fixture(scope="module")
def distilbert(tiny_scorer, tmp_path_factory):
    """A scorer whose forward pass is that of `transformers`."""
    folder, tokenizer = tmp_path_factory.mktemp("distilbert"), AutoTokenizer.from_pretrained(tiny_scorer)
    torch.manual_seed(0)
    config = DistilBertConfig(
        vocab_size=len(tokenizer),
        dim=32,
        n_layers=2,
        n_heads=4,
        hidden_dim=64,
        num_labels=1,
        max_position_embeddings=64,
    )
    DistilBertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("surroundings", SURROUNDINGS.values(), ids=SURROUNDINGS)
@pytest.mark.parametrize("architecture", ["light", "transformers"])
def test_scores_are_the_same_within(architecture, surroundings, tiny_scorer, distilbert, tmp_path):
    folder = str(tiny_scorer if architecture == "light" else distilbert)
    scorer = BleurtScorer(folder, device="cpu")
    expected = scorer.score(**TEXTS)
    with surroundings():
        opened_within = BleurtScorer(folder, device="cpu", cache=tmp_path)
        assert scorer.score(**TEXTS) == opened_within.score(**TEXTS) == expected
        assert BleurtScorer(folder, device="cpu").model.dtype == torch.float32
    assert (
        opened_within.score(**TEXTS) == BleurtScorer(folder, device="cpu", cache=tmp_path).score(**TEXTS) == expected
    )
    scorer.model.zero_grad()
    assert scorer.score(**TEXTS) == pytest.approx(expected, abs=1e-6)  # by the model of `transformers`


@pytest.mark.parametrize("surroundings", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_a_model_that_was_loaded_within_can_be_trained(surroundings, tiny_scorer):
    with surroundings():
        model = load_checkpoint(str(tiny_scorer)).model
    ids = torch.tensor([[1, 2, 3]])
    model(input_ids=ids).logits.sum().backward()
    assert {weight.device.type for weight in model.parameters()} == {"cpu"}
    assert all(weight.grad is not None for weight in model.parameters())


def state():
    return (
        torch.is_inference_mode_enabled(),
        torch.is_grad_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_default_device().type,
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        torch.backends.mkldnn.matmul.fp32_precision in ("none", "ieee"),
        torch.backends.cuda.matmul.fp32_precision in ("none", "ieee"),
    )


@pytest.mark.parametrize("surroundings", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_the_defaults_hold_within_and_the_callers_settings_after(surroundings):
    defaults = state()
    with surroundings():
        own = state()
        assert own != defaults
        with torch_defaults():
            assert state() == defaults
        assert state() == own
        with contextlib.suppress(KeyError), torch_defaults():
            raise KeyError
        assert state() == own
    assert state() == defaults
