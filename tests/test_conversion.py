"""Official checkpoints in, the same scores out; damaged ones in, nothing out."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.metric import conversion
from bleurt_repro.metric.checkpoints import load_checkpoint
from bleurt_repro.metric.conversion import convert
from bleurt_repro.metric.encoding import PairEncoder
from bleurt_repro.metric.register import SCRIPT
from tests.official_checkpoints import (
    make_official_bert,
    make_official_rembert,
    make_sentencepiece,
    official_score,
    write_graph,
    write_variables,
)
from tests.test_bleurt_pytorch import make_port

pytest.importorskip("tensorflow", reason="reading official checkpoints takes TensorFlow")
TOLERANCE = 2e-5
PAIRS = [
    ("the cat sat on the mat", "a dog ran"),
    ("it rains", "it rains"),
    ("", ""),
    ("The [SEP] cat. " * 9, "hello, there! " * 12),
    ("猫 é 🙂 ΚΟΣΜΟΣ", "believable \x00walking"),
]


@pytest.fixture(scope="module")
def official_tiny(shared_fixtures):
    """The official architecture and vocabulary with stand-in weights, and scores of the official implementation."""
    folder = shared_fixtures / "official_bleurt_tiny"
    rows = [json.loads(line) for line in (folder / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 33
    return folder, rows


@pytest.fixture(scope="module")
def converted(official_tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("converted") / "tiny"
    made = convert(str(official_tiny[0]), str(folder))
    assert (made.parity.pairs, made.parity.with_ids, made.parity.same_ids) == (33, 33, 33)
    assert made.parity.largest < TOLERANCE
    return folder


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    folder = tmp_path_factory.mktemp("official") / "english"
    return folder, make_official_bert(folder)


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("official") / "multilingual"
    return folder, make_official_rembert(folder)


@pytest.fixture
def copy(english, tmp_path):
    (tmp_path / "source").mkdir()
    return shutil.copytree(english[0], tmp_path / "source" / "copy")


@pytest.fixture
def copy20(multilingual, tmp_path):
    (tmp_path / "source").mkdir()
    return shutil.copytree(multilingual[0], tmp_path / "source" / "copy20")


def edit(file, **changes):
    settings = json.loads(file.read_text())
    settings.update(changes)
    file.write_text(json.dumps({name: value for name, value in settings.items() if value != "REMOVED"}))


def own_scores(folder):
    scorer = BleurtScorer(str(folder))
    with pytest.warns(UserWarning, match="longer than the 48 tokens"):
        return scorer, scorer.score(references=[r for r, _ in PAIRS], candidates=[c for _, c in PAIRS])


def expected_scores(scorer, variables, gelu):
    encoder = PairEncoder(scorer.tokenizer, scorer.layout)
    tokens = encoder.tokenize(text for pair in PAIRS for text in pair)
    encoded = [encoder.encode([tokens[text] for text in pair]) for pair in PAIRS]
    return [official_score(variables, pair.ids, pair.segments, gelu) for pair in encoded]


# --- the official implementation's own scores -------------------------------------------------------------------


def test_official_scores_and_ids_are_met(converted, official_tiny):
    rows = official_tiny[1]
    scorer = BleurtScorer(str(converted))
    encoder = PairEncoder(scorer.tokenizer, scorer.layout)
    with pytest.warns(UserWarning, match="5 of 33 pairs were longer"):
        scores = scorer.score(references=[r["reference"] for r in rows], candidates=[r["candidate"] for r in rows])
    for row, score in zip(rows, scores, strict=True):
        assert score == pytest.approx(row["score"], abs=TOLERANCE), row["note"]
        tokens = encoder.tokenize([row["reference"], row["candidate"]])
        encoded = encoder.encode([tokens[row["reference"]], tokens[row["candidate"]]])
        assert encoded.ids == row["input_ids"], row["note"]
        assert encoded.segments.count(0) == row["n_ref_side"]


def test_official_scores_are_met_through_evaluate(converted, official_tiny):
    import evaluate

    rows = official_tiny[1]
    metric = evaluate.load(str(SCRIPT), str(converted))
    with pytest.warns(UserWarning, match="5 of 33 pairs were longer"):
        result = metric.compute(
            predictions=[row["candidate"] for row in rows], references=[row["reference"] for row in rows]
        )
    assert result["scores"] == pytest.approx([row["score"] for row in rows], abs=TOLERANCE)
    assert result["truncated"] == 5


def test_official_scores_are_met_through_the_command_line(converted, official_tiny, tmp_path, capsys):
    folder, rows = official_tiny
    run("score", "--pairs", folder / "scores.jsonl", "--checkpoint", converted, "--output", tmp_path / "scores.txt")
    scores = [float(line) for line in (tmp_path / "scores.txt").read_text().splitlines()]
    assert scores == pytest.approx([row["score"] for row in rows], abs=TOLERANCE)


def test_plain_transformers_opens_the_destination(converted, official_tiny):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(converted)
    assert isinstance(model, BertForSequenceClassification)
    assert (model.config.num_labels, model.config.problem_type) == (1, "regression")
    assert (model.config.hidden_act, model.config.layer_norm_eps) == ("gelu_pytorch_tanh", 1e-12)
    rows = [row for row in official_tiny[1] if row["n_tokens"] < 512]
    tokenizer = AutoTokenizer.from_pretrained(converted)
    inputs = tokenizer(
        [r["reference"] for r in rows], [r["candidate"] for r in rows], padding=True, return_tensors="pt"
    )
    with torch.inference_mode():
        scores = model.eval()(**inputs).logits[:, 0].tolist()
    assert scores == pytest.approx([row["score"] for row in rows], abs=TOLERANCE)


# --- both architectures, against the graph written out ------------------------------------------------------------


@pytest.mark.parametrize("gelu", ["tanh", "erf"])
@pytest.mark.parametrize("kind", ["english", "multilingual"])
def test_scores_are_those_of_the_graph(request, tmp_path, kind, gelu):
    folder, variables = request.getfixturevalue(kind)
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


def test_sentencepiece_opens_in_plain_transformers(multilingual, tmp_path):
    from sentencepiece import SentencePieceProcessor
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, RemBertForSequenceClassification

    convert(str(multilingual[0]), str(tmp_path / "out"))
    assert isinstance(
        AutoModelForSequenceClassification.from_pretrained(tmp_path / "out"), RemBertForSequenceClassification
    )
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    processor = SentencePieceProcessor(model_file=str(multilingual[0] / "sent_piece.model"))
    for text in (text for pair in PAIRS for text in pair):
        ids = [processor.PieceToId(piece) for piece in processor.EncodeAsPieces(text)]
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == ids


def test_a_cased_checkpoint_stays_cased(tmp_path):
    make_official_bert(tmp_path / "source", lower_case=False)
    convert(str(tmp_path / "source"), str(tmp_path / "out"))
    assert load_checkpoint(str(tmp_path / "out")).tokenizer.tokenize("cat Cat é") == ["cat", "[UNK]", "é"]


# --- sources and destinations -------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["", "BLEURT-20/"])
def test_a_zip_converts(english, tmp_path, inner):
    with zipfile.ZipFile(tmp_path / "BLEURT.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        for file in english[0].rglob("*"):
            if file.is_file():
                zipped.write(file, inner + str(file.relative_to(english[0])))
    convert(str(tmp_path / "BLEURT.zip"), str(tmp_path / "deep" / "out"))
    scorer, scores = own_scores(tmp_path / "deep" / "out")
    assert scores == pytest.approx(expected_scores(scorer, english[1], "tanh"), abs=5e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["BLEURT.zip", "deep"]


def test_bleurt_pytorch_converts_without_tensorflow(tmp_path, monkeypatch):
    make_port(tmp_path / "port", max_seq_length=48)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    made = convert(str(tmp_path / "port"), str(tmp_path / "out"))
    assert (made.max_length, made.activation) == (48, "gelu_pytorch_tanh")
    assert own_scores(tmp_path / "out")[1] == pytest.approx(own_scores(tmp_path / "port")[1], abs=1e-6)


def test_without_tensorflow_the_extra_is_named(english, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    refused(english[0], tmp_path, r"takes TensorFlow: pip install 'bleurt-repro\[convert\]'")


def test_what_is_in_the_way_stays(english, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("mine")
    with pytest.raises(ValueError, match="exists already"):
        convert(str(english[0]), str(tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["precious"]
    with pytest.raises(ValueError, match="exists already"):
        convert(str(english[0]), str(tmp_path / "out" / "precious"))


def test_an_empty_folder_is_filled(english, tmp_path):
    (tmp_path / "out").mkdir()
    convert(str(english[0]), str(tmp_path / "out"))
    load_checkpoint(str(tmp_path / "out"))


def test_all_can_read_what_one_has_converted(converted):
    assert len({file.stat().st_mode for file in converted.iterdir()}) == 1


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda path: path.mkdir(), "expected an official BLEURT checkpoint"),
        (lambda path: path.write_text("text"), "is a file but no zip"),
        (lambda path: None, "unknown checkpoint"),
    ],
)
def test_a_source_of_another_kind_is_refused(tmp_path, make, message):
    make(tmp_path / "source")
    refused(tmp_path / "source", tmp_path, message)


def test_what_needs_no_conversion_is_left_alone(tiny_scorer, tmp_path):
    refused(tiny_scorer, tmp_path, "in transformers' own format already")


def test_an_official_folder_given_as_a_checkpoint_says_how_to_convert_it(english):
    with pytest.raises(
        ValueError, match=r"official TensorFlow checkpoint: convert it once, with `bleurt-repro convert"
    ):
        load_checkpoint(str(english[0]))


# --- damage: one clear error, and nothing left --------------------------------------------------------------------


def refused(source, tmp_path, message, **options):
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        convert(str(source), str(tmp_path / "new" / "out"), **options)
    assert sorted(tmp_path.rglob("*")) == before


def cut(file, keep):
    file.write_bytes(file.read_bytes()[:keep])


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
def test_a_damaged_source_leaves_no_destination(copy, english, tmp_path, kind):
    damage, message = DAMAGE[kind]
    damage(copy, english[1])
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


@pytest.mark.parametrize("name", ["../outside", "/outside"])
def test_a_zip_that_leads_outside_leaves_nothing(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as zipped:
        zipped.writestr("bleurt_config.json", "{}")
        zipped.writestr(name, "evil")
    refused(tmp_path / "evil.zip", tmp_path, "leads outside its folder")


def test_a_truncated_zip_leaves_nothing(tmp_path):
    with zipfile.ZipFile(tmp_path / "short.zip", "w") as zipped:
        zipped.writestr("bleurt_config.json", "{}" + " " * 1000)
    cut(tmp_path / "short.zip", 500)
    refused(tmp_path / "short.zip", tmp_path, "no sound zip")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError, OSError])
def test_an_interruption_leaves_nothing(english, tmp_path, monkeypatch, interruption):
    save = conversion._save

    def interrupted(*arguments):
        save(*arguments)
        raise interruption

    monkeypatch.setattr(conversion, "_save", interrupted)
    with pytest.raises(interruption):
        convert(str(english[0]), str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


# --- comparing with published scores ------------------------------------------------------------------------------


def publish(file, variables, scorer, shift=0.0, **fields):
    rows = [
        {"reference": reference, "candidate": candidate, "score": score + shift, **fields}
        for (reference, candidate), score in zip(PAIRS, expected_scores(scorer, variables, "tanh"), strict=True)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


@pytest.fixture(scope="module")
def scorer(english, tmp_path_factory):
    folder = tmp_path_factory.mktemp("converted") / "english"
    convert(str(english[0]), str(folder))
    return BleurtScorer(str(folder))


def test_scores_are_compared_with_those_named(english, scorer, tmp_path):
    scores = publish(tmp_path / "published.jsonl", english[1], scorer)
    made = convert(str(english[0]), str(tmp_path / "out"), scores=scores, max_difference=1e-5)
    assert (made.parity.pairs, made.parity.with_ids) == (5, 0)
    assert made.parity.largest < 1e-5


def test_scores_that_are_missed_leave_no_destination(english, scorer, copy, tmp_path):
    publish(copy / "scores.jsonl", english[1], scorer, shift=0.001)
    refused(
        copy, tmp_path, r"the scores miss .*scores.jsonl \(line [1-5]\): 5 pairs, largest difference 1.0e-03.*2e-05"
    )
    assert convert(str(copy), str(tmp_path / "out"), max_difference=0.01).parity.largest > 0.0009


def test_the_other_gelu_is_found_out(english, scorer, copy, tmp_path):
    publish(copy / "scores.jsonl", english[1], scorer)
    refused(copy, tmp_path, "the scores miss", gelu="erf")


def test_token_ids_that_differ_leave_no_destination(english, scorer, copy, tmp_path):
    publish(copy / "scores.jsonl", english[1], scorer, input_ids=[2, 3, 3])
    refused(copy, tmp_path, "the token ids differ .*token ids identical in 1 of 5")


def test_nothing_to_compare_with_is_an_error_if_a_difference_is_named(english, tmp_path):
    refused(english[0], tmp_path, "nothing to compare with", max_difference=1e-5)
    refused(english[0], tmp_path, "no file of scores", scores=str(tmp_path / "none.jsonl"))


# --- the command --------------------------------------------------------------------------------------------------


def run(*arguments):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert end.value.code == 0, end.value.code


def test_the_command_says_what_it_wrote_and_how_near_it_comes(official_tiny, tmp_path, capsys):
    run("convert", official_tiny[0], tmp_path / "out", "--max-difference", "2e-5")
    out, err = capsys.readouterr()
    first, second = out.splitlines()
    assert first == f"wrote {tmp_path / 'out'}: BertForSequenceClassification, 512 tokens, gelu_pytorch_tanh"
    assert second.startswith("parity: 33 pairs, largest difference ")
    assert second.endswith("e-06, token ids identical in 33 of 33")


def test_the_command_says_that_nothing_was_compared(english, tmp_path, capsys):
    run("convert", english[0], tmp_path / "out", "--gelu", "tanh")
    assert "parity: not measured, for want of scores to compare with" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options, message",
    [
        (["--max-difference", "1e-5"], "nothing to compare with"),
        (["--gelu", "relu"], "gelu must be auto, tanh or erf, found 'relu'"),
    ],
)
def test_the_command_ends_in_one_line_on_an_error(english, tmp_path, capsys, options, message):
    with pytest.raises(SystemExit) as end:
        main(["convert", str(english[0]), str(tmp_path / "out"), *options])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("bleurt-repro: error: ") and error.count("\n") == 1
    assert message in error
    assert list(Path(tmp_path).iterdir()) == []
