"""A scorer made of an MPNet: its inputs, its longest pair, and the same scores by every way of computing them."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.forward import onnx as onnx_export
from bleurt_repro.metric.forward.packed import PackedForward
from bleurt_repro.metric.loading.open import open_trainable
from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer
from bleurt_repro.training.finetune import training_layout
from tests.tiny_robertas import make_tiny_encoder

pytestmark = pytest.mark.filterwarnings("ignore:.*pairs were longer than")  # one is, on purpose
TEXTS = {
    "references": ["the cat sat on the mat", "it rains", "", "hi there", "good dog " * 60],
    "candidates": ["the cat sat", "a dog rains", "good bye", "", "not good " * 60],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model, tokenizer = open_trainable(make_tiny_encoder(tmp_path_factory.mktemp("encoder"), "mpnet"))
    prepare_scorer(model, tokenizer, training_layout(model, tokenizer))
    made = tmp_path_factory.mktemp("mpnet")
    save_scorer(model, tokenizer, made)
    return made


@pytest.fixture(scope="module")
def scorer(folder):
    return BleurtScorer(str(folder), device="cpu")


def test_scores_are_those_of_transformers_on_the_tokenizers_own_pairs(scorer):
    assert isinstance(scorer.members[0].forward(), PackedForward)
    inputs = scorer.tokenizer(TEXTS["references"][:4], TEXTS["candidates"][:4], return_tensors="pt", padding=True)
    with torch.inference_mode():
        expected = scorer.model(**inputs).logits[:, 0].tolist()
    assert scorer.score(**TEXTS)[:4] == pytest.approx(expected, abs=1e-5)


def test_the_longest_pair_takes_all_positions_but_two(scorer):
    assert (scorer.model.config.max_position_embeddings, scorer.layout.max_length) == (66, 64)
    texts = [texts[-1] for texts in TEXTS.values()]
    (pair,) = scorer.members[0].encoder.encode_all([texts])
    assert len(pair.ids) == 64 and pair.truncated
    with torch.inference_mode():
        expected = scorer.model(torch.tensor([pair.ids])).logits.item()
    assert scorer.score(references=texts[:1], candidates=texts[1:]) == pytest.approx([expected], abs=1e-5)


@pytest.mark.long
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in onnx_export.LIBRARIES), reason="needs the onnx extra"
)
def test_onnx_is_exact_and_int8_near(folder, scorer, tmp_path, monkeypatch):
    monkeypatch.setenv("BLEURT_REPRO_CACHE", str(tmp_path))
    expected = scorer.score(**TEXTS)
    assert BleurtScorer(str(folder), backend="onnx").score(**TEXTS) == pytest.approx(expected, abs=1e-5)
    rough = BleurtScorer(str(folder), backend="onnx-int8").score(**TEXTS)
    assert rough == pytest.approx(expected, abs=0.5) != pytest.approx(expected, abs=1e-5)
