"""ONNX graphs: the model's scores, exact or in int8, made once, by whoever comes first."""

from __future__ import annotations

import importlib.util
import json

import pytest
import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.forward import onnx as onnx_export
from bleurt_repro.metric.forward.encoding import Encoded
from tests.tiny_berts import SIZES, bert, inputs, mpnet, rembert

needs_onnx = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in onnx_export.LIBRARIES), reason="needs the onnx extra"
)
TEXTS = {
    "references": ["the cat sat on the mat", "it rains", "", "hi there", "good bye dog"],
    "candidates": ["the cat sat", "the dog rains", "good bye", "", "not good"],
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BLEURT_REPRO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "onnx"


def distilbert():
    torch.manual_seed(0)
    settings = {key: SIZES[key] for key in ("vocab_size", "max_position_embeddings", "initializer_range")}
    config = DistilBertConfig(dim=48, n_heads=4, hidden_dim=96, n_layers=2, num_labels=1, **settings)
    return DistilBertForSequenceClassification(config).eval()


@pytest.mark.long  # the next test exports a BERT
@needs_onnx
@pytest.mark.parametrize("make", [bert, rembert, mpnet, distilbert])
def test_the_exact_graph_gives_the_models_scores(make):
    from bleurt_repro.metric.forward.onnx import OnnxForward

    model, pairs = make(), [Encoded(pair.ids, pair.segments, False) for pair in inputs(60, 9, 9, 3, 1)]
    forward = OnnxForward(onnx_export.export_graph(model, "abc", "onnx"))
    with torch.inference_mode():
        reads_segments = "token_type_ids" in forward._names
        expected = [
            model(
                input_ids=torch.tensor([pair.ids]),
                **({"token_type_ids": torch.tensor([pair.segments])} if reads_segments else {}),
            ).logits.item()
            for pair in pairs
        ]
    assert forward(pairs).tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.long
@needs_onnx
def test_the_scorer_takes_a_backend(tiny_scorer, cache, monkeypatch):
    plain = BleurtScorer(str(tiny_scorer), device="cpu")
    expected = plain.score(**TEXTS)
    exact = BleurtScorer(str(tiny_scorer), backend="onnx")
    assert exact.score(**TEXTS) == pytest.approx(expected, abs=1e-5)
    assert exact.signature == plain.signature
    rough = BleurtScorer(str(tiny_scorer), backend="onnx-int8")
    scores = rough.score(**TEXTS)
    assert scores == pytest.approx(expected, abs=0.5)
    assert scores != pytest.approx(expected, abs=1e-5)
    assert "dtype:int8" in rough.signature
    folder = next(cache.iterdir())
    assert sorted(path.name for path in folder.iterdir()) == ["onnx", "onnx-int8"]  # and nothing unfinished
    monkeypatch.setattr(onnx_export, "_make", None)  # made once: the second scorer finds it
    assert BleurtScorer(str(tiny_scorer), backend="onnx-int8").score(**TEXTS) == scores


@pytest.mark.long
@needs_onnx
@pytest.mark.parametrize("make", [bert, mpnet])
def test_all_but_the_narrowing_products_are_in_int8(make):
    import onnx

    graph = onnx.load(str(onnx_export.export_graph(make(layers=3), "abc", "onnx-int8")))
    names = [node.op_type for node in graph.graph.node]
    # Of 4 products of a layer 3, of 5 of the last 4, and the pooler; in float32 also 2 in each attention.
    assert (names.count("MatMulInteger"), names.count("MatMul")) == (2 * 3 + 4 + 1, 4 + 6)


def test_a_missing_library_is_named(tiny_scorer, monkeypatch):
    monkeypatch.setattr(onnx_export, "LIBRARIES", ("json", "no_such_library"))
    with pytest.raises(ValueError, match=r"backend onnx needs no_such_library: .*'.\[onnx\]'"):
        BleurtScorer(str(tiny_scorer), backend="onnx").score(**TEXTS)
    assert json  # the one that is there is not named


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "tensorrt"}, "backend must be one of torch, compile, onnx, onnx-int8, found 'tensorrt'"),
        ({"backend": "onnx", "device": "cuda"}, "leave device and dtype out, found cuda and float32"),
        ({"backend": "onnx-int8", "dtype": "bfloat16"}, "found cpu and bfloat16"),
    ],
)
def test_what_does_not_fit_is_refused(tiny_scorer, options, message):
    with pytest.raises(ValueError, match=message):
        BleurtScorer(str(tiny_scorer), **options)


@pytest.mark.long
@needs_onnx
def test_a_damaged_graph_is_made_anew(tiny_scorer, cache):
    expected = BleurtScorer(str(tiny_scorer), backend="onnx").score(**TEXTS)
    graph = next(cache.rglob("float32.onnx"))
    content = bytearray(graph.read_bytes())
    content[len(content) // 2] ^= 64
    graph.write_bytes(content)
    with pytest.warns(UserWarning, match=r"a graph in the cache is made anew: float32\.onnx differs from its SHA-256"):
        assert BleurtScorer(str(tiny_scorer), backend="onnx").score(**TEXTS) == expected
