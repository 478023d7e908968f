"""Official checkpoints as a whole: the scores of their graph, and one clear error for each kind of damage."""

from __future__ import annotations

import json
import shutil
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from bleurt_repro.metric.convert.convert import convert
from bleurt_repro.metric.loading.open import load_checkpoint
from tests.official_checkpoints import (
    PAIRS,
    cut,
    expected_scores,
    make_official_bert,
    make_sentencepiece,
    own_scores,
    refused,
    write_graph,
    write_variables,
)

pytestmark = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="reading official checkpoints takes TensorFlow"
)


@pytest.fixture
def copy(official_english, tmp_path):
    (tmp_path / "source").mkdir()
    return shutil.copytree(official_english[0], tmp_path / "source" / "copy")


@pytest.fixture
def copy20(official_multilingual, tmp_path):
    (tmp_path / "source").mkdir()
    return shutil.copytree(official_multilingual[0], tmp_path / "source" / "copy20")


def edit(file, **changes):
    settings = json.loads(file.read_text())
    settings.update(changes)
    file.write_text(json.dumps({name: value for name, value in settings.items() if value != "REMOVED"}))


# --- both architectures, against the graph written out ------------------------------------------------------------


@pytest.mark.parametrize("gelu", ["tanh", "erf"])
@pytest.mark.parametrize("kind", ["english", "multilingual"])
def test_scores_are_those_of_the_graph(request, tmp_path, kind, gelu):
    folder, variables = request.getfixturevalue(f"official_{kind}")
    made = convert(str(folder), str(tmp_path / "out"), gelu=gelu)
    assert made.architecture == {"english": "Bert", "multilingual": "RemBert"}[kind] + "ForSequenceClassification"
    assert (made.max_length, made.parity) == (48, None)
    scorer, scores = own_scores(tmp_path / "out")
    assert scores == pytest.approx(expected_scores(scorer, variables, gelu), abs=5e-6)
    other = expected_scores(scorer, variables, {"tanh": "erf", "erf": "tanh"}[gelu])
    assert max(abs(a - b) for a, b in zip(scores, other, strict=True)) > 5e-5  # the test would see the other GELU


@pytest.mark.parametrize(
    "operations, gelu, activation",
    [
        (None, "auto", "gelu_pytorch_tanh"),
        (["Tanh"], "auto", "gelu_pytorch_tanh"),
        (["Tanh", "Erf"], "auto", "gelu"),
        (["Tanh", "Erf"], "tanh", "gelu_pytorch_tanh"),
    ],
)
def test_the_gelu_is_the_graphs_unless_it_is_named(copy20, tmp_path, operations, gelu, activation):
    if operations:
        write_graph(copy20, operations)
    assert convert(str(copy20), str(tmp_path / "out"), gelu=gelu).activation == activation


def test_sentencepiece_opens_in_plain_transformers(official_multilingual, tmp_path):
    from sentencepiece import SentencePieceProcessor
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, RemBertForSequenceClassification

    convert(str(official_multilingual[0]), str(tmp_path / "out"))
    assert isinstance(
        AutoModelForSequenceClassification.from_pretrained(tmp_path / "out"), RemBertForSequenceClassification
    )
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    processor = SentencePieceProcessor(model_file=str(official_multilingual[0] / "sent_piece.model"))
    for text in (text for pair in PAIRS for text in pair):
        ids = [processor.PieceToId(piece) for piece in processor.EncodeAsPieces(text)]
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == ids


def test_a_cased_checkpoint_stays_cased(tmp_path):
    make_official_bert(tmp_path / "source", lower_case=False)
    convert(str(tmp_path / "source"), str(tmp_path / "out"))
    assert load_checkpoint(str(tmp_path / "out")).tokenizer.tokenize("cat Cat é") == ["cat", "[UNK]", "é"]


def test_without_tensorflow_the_extra_is_named(official_english, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    refused(
        official_english[0], tmp_path, r"takes TensorFlow: `pip install -c constraints.txt '.\[convert\]'` in a clone"
    )


# --- damage: one clear error, and nothing left --------------------------------------------------------------------


def change_variables(change):
    def damage(folder, variables):
        variables = dict(variables)
        change(variables)
        shutil.rmtree(folder / "variables")
        write_variables(folder, variables)

    return damage


QUERY = "bert/encoder/layer_1/attention/self/query/kernel"
DAMAGE = {
    "missing variable": (change_variables(lambda v: v.pop(QUERY)), f"variable {QUERY} is missing"),
    "many missing": (
        change_variables(lambda v: [v.pop(name) for name in list(v) if "layer_1" in name]),
        "and 13 more are missing",
    ),
    "wrong shape": (
        change_variables(lambda v: v.update({QUERY: np.zeros((32, 31), np.float32)})),
        rf"variable {QUERY} has shape \(32, 31\), expected \(32, 32\)",
    ),
    "transposed": (
        change_variables(lambda v: v.update({"bert/pooler/dense/bias": np.zeros((1, 32), np.float32)})),
        r"has shape \(1, 32\), expected \(32,\)",
    ),
    "unknown variable": (
        change_variables(lambda v: v.update({"cls/predictions/bias": np.zeros(3, np.float32)})),
        "cls/predictions/bias is of no use to a scorer",
    ),
    "hidden layers": (
        change_variables(lambda v: v.update({"dense_1/kernel": v.pop("dense/kernel")})),
        r"n_hidden_layers > 0",
    ),
    "a wide head": (
        change_variables(lambda v: v.update({"dense/kernel": np.zeros((32, 128), np.float32)})),
        r"n_hidden_layers > 0",
    ),
    "no number": (
        change_variables(lambda v: v.update({"dense/bias": np.array([np.nan], np.float32)})),
        "classifier.bias is NaN or infinite",
    ),
    "truncated data": (
        lambda folder, _: cut(folder / "variables" / "variables.data-00000-of-00001", 5000),
        "cannot be read .*damaged or incomplete: download it again",
    ),
    "changed data": (
        lambda folder, _: flip(folder / "variables" / "variables.data-00000-of-00001", 5000),
        "cannot be read .*damaged or incomplete: download it again",
    ),
    "no data": (
        lambda folder, _: (folder / "variables" / "variables.data-00000-of-00001").unlink(),
        "cannot be read .*damaged or incomplete: download it again",
    ),
    "truncated index": (
        lambda folder, _: cut(folder / "variables" / "variables.index", 100),
        "variables.index cannot be read .*damaged or incomplete: download it again",
    ),
    "no variables": (lambda folder, _: shutil.rmtree(folder / "variables"), "no variables/variables.index"),
    "short vocabulary": (
        lambda folder, _: cut(folder / "vocab.txt", 400),
        "vocabulary has [0-9]+ tokens but its model has [0-9]+",
    ),
    "long vocabulary": (
        lambda folder, _: (folder / "vocab.txt").open("a").write("surplus\n"),
        "vocabulary has [0-9]+ tokens but its model has [0-9]+",
    ),
    "no vocabulary": (lambda folder, _: (folder / "vocab.txt").unlink(), "no vocabulary .*vocab.txt"),
    "damaged graph": (
        lambda folder, _: (folder / "saved_model.pb").write_bytes(b"\xff" * 9),
        "saved_model.pb cannot be read",
    ),
    "truncated settings": (
        lambda folder, _: cut(folder / "bleurt_config.json", 9),
        "bleurt_config.json cannot be read",
    ),
    "settings of another kind": (lambda folder, _: (folder / "bert_config.json").write_text("[]"), "holds list"),
    "no encoder settings": (
        lambda folder, _: (folder / "bert_config.json").unlink(),
        "bert_config.json cannot be read",
    ),
    "no size": (
        lambda folder, _: edit(folder / "bert_config.json", hidden_size="REMOVED"),
        "need hidden_size.*found None",
    ),
    "no length": (
        lambda folder, _: edit(folder / "bleurt_config.json", max_seq_length=None),
        "needs max_seq_length.*found None",
    ),
    "too long": (
        lambda folder, _: edit(folder / "bleurt_config.json", max_seq_length=65),
        "reads 65 tokens, but the model has 64 positions",
    ),
    "too short": (lambda folder, _: edit(folder / "bleurt_config.json", max_seq_length=3), "no room for text"),
    "no tokenizer": (
        lambda folder, _: edit(folder / "bleurt_config.json", do_lower_case=None),
        "names neither vocab_file with do_lower_case nor sp_model",
    ),
    "leading elsewhere": (
        lambda folder, _: edit(folder / "bleurt_config.json", vocab_file="../copy/vocab.txt"),
        "no plain file name",
    ),
    "leading to the root": (
        lambda folder, _: edit(folder / "bleurt_config.json", bert_config_file="/etc/hostname"),
        "no plain file name",
    ),
    "another activation": (
        lambda folder, _: edit(folder / "bert_config.json", hidden_act="relu"),
        "its layers compute 'relu'",
    ),
}


def flip(file, place):
    content = bytearray(file.read_bytes())
    content[place] ^= 0xFF
    file.write_bytes(content)


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_source_leaves_no_destination(copy, official_english, tmp_path, kind):
    damage, message = DAMAGE[kind]
    damage(copy, official_english[1])
    refused(copy, tmp_path, f"{copy} cannot be converted: .*{message}")


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda folder: cut(folder / "sent_piece.model", 100), "cannot be read|has no"),
        (lambda folder: (folder / "sent_piece.model").unlink(), "no SentencePiece model"),
        *(
            (
                lambda folder, size=size: edit(folder / "bert_config.json", vocab_size=size),
                f"vocabulary has [0-9]+ tokens but its model has {size}",
            )
            for size in (100, 400)
        ),
        (lambda folder: edit(folder / "bert_config.json", embedding_size=9), r"has shape .*, 8\), expected .*, 9\)"),
        (lambda folder: edit(folder / "bleurt_config.json", sp_model="../copy20/sent_piece"), "no plain file name"),
    ],
)
def test_a_damaged_source_of_the_other_kind_leaves_no_destination(copy20, tmp_path, damage, message):
    damage(copy20)
    refused(copy20, tmp_path, message)


def test_a_sentencepiece_model_unlike_its_list_of_pieces_is_refused(copy20, tmp_path):
    other = make_sentencepiece(tmp_path / "other").with_suffix(".vocab")
    lines = other.read_text(encoding="utf-8").splitlines(keepends=True)
    (copy20 / "sent_piece.vocab").write_text("".join(lines[:-1]), encoding="utf-8")
    refused(copy20, tmp_path, r"sent_piece.vocab has [0-9]+ pieces but sent_piece.model has [0-9]+")
