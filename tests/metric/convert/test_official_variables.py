"""TensorFlow variables by their names, and what the graph's list of operations says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bleurt_repro.metric.convert.official_checkpoint import graph_gelu, official_name, read_variables
from tests.official_checkpoints import write_graph, write_variables

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "weight, variable",
    [
        ("bert.embeddings.word_embeddings.weight", "bert/embeddings/word_embeddings"),
        ("bert.embeddings.token_type_embeddings.weight", "bert/embeddings/token_type_embeddings"),
        ("bert.embeddings.LayerNorm.weight", "bert/embeddings/LayerNorm/gamma"),
        ("bert.encoder.layer.11.attention.self.query.weight", "bert/encoder/layer_11/attention/self/query/kernel"),
        (
            "bert.encoder.layer.0.attention.output.LayerNorm.bias",
            "bert/encoder/layer_0/attention/output/LayerNorm/beta",
        ),
        ("bert.encoder.layer.0.output.dense.bias", "bert/encoder/layer_0/output/dense/bias"),
        (
            "rembert.encoder.embedding_hidden_mapping_in.weight",
            "bert/encoder/embedding_hidden_mapping_in/kernel",
        ),
        ("rembert.pooler.dense.weight", "bert/pooler/dense/kernel"),
        ("classifier.weight", "dense/kernel"),
        ("classifier.bias", "dense/bias"),
    ],
)
def test_names(weight, variable):
    assert official_name(weight) == variable


def test_what_training_leaves_behind_is_no_weight(tmp_path):
    pytest.importorskip("tensorflow")
    import numpy as np

    one = np.ones((3, 1), np.float32)
    left = {"global_step": np.int64(3), "dense/kernel/adam_m": one, "dense/kernel/adam_v": one, "beta1_power": one}
    write_variables(tmp_path, {"dense/kernel": one * 2, **left})
    weights = read_variables(tmp_path, {"classifier.weight": (1, 3)})
    assert weights["classifier.weight"].tolist() == [[2.0, 2.0, 2.0]]


@pytest.mark.parametrize(
    "operations, gelu",
    [
        (["MatMul", "Erf", "Tanh"], "erf"),  # the pooler has a Tanh in any case
        (["MatMul", "Pow", "Tanh"], "tanh"),
        (["MatMul"], None),
    ],
)
def test_the_graph_tells_its_gelu(tmp_path, operations, gelu):
    pytest.importorskip("tensorflow")
    write_graph(tmp_path, operations)
    assert graph_gelu(tmp_path) == gelu


def test_functions_of_the_graph_count_too(tmp_path):
    pytest.importorskip("tensorflow")
    from tensorflow.core.protobuf import saved_model_pb2

    graph = saved_model_pb2.SavedModel()
    function = graph.meta_graphs.add().graph_def.library.function.add()
    function.node_def.add(name="a", op="Erf")
    (tmp_path / "saved_model.pb").write_bytes(graph.SerializeToString())
    assert graph_gelu(tmp_path) == "erf"


def test_a_damaged_graph_is_refused(tmp_path):
    pytest.importorskip("tensorflow")
    assert graph_gelu(tmp_path) is None
    (tmp_path / "saved_model.pb").write_bytes(b"\xff" * 100)
    with pytest.raises(ValueError, match="saved_model.pb cannot be read"):
        graph_gelu(tmp_path)


def test_tensorflow_is_imported_in_one_place_and_only_when_it_is_needed():
    folders = ("bleurt_repro", "metric", "datasets_builders", "training", "hub_cards")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    importing = {path.name for path in sources if "import tensorflow" in path.read_text(encoding="utf-8")}
    assert importing == {"official_checkpoint.py"}
    program = "import bleurt_repro.metric.convert.convert, sys; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
