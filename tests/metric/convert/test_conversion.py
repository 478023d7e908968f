"""Official checkpoints in, the same scores out: from any source, to a destination that is whole or not there."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.metric.convert import convert as conversion
from bleurt_repro.metric.convert.convert import convert
from bleurt_repro.metric.forward.encoding import PairEncoder
from bleurt_repro.metric.loading.open import load_checkpoint
from bleurt_repro.metric.register import SCRIPT
from tests.bleurt_pytorch_ports import make_port, put_into_cache
from tests.official_checkpoints import PAIRS, cut, expected_scores, own_scores, refused

pytestmark = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="reading official checkpoints takes TensorFlow"
)
TOLERANCE = 2e-5


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


@pytest.fixture
def copy(official_english, tmp_path):
    (tmp_path / "source").mkdir()
    return shutil.copytree(official_english[0], tmp_path / "source" / "copy")


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
        assert list(encoded.ids) == row["input_ids"], row["note"]
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


# --- sources and destinations -------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["", "BLEURT-20/"])
def test_a_zip_converts(official_english, tmp_path, inner):
    with zipfile.ZipFile(tmp_path / "BLEURT.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        for file in official_english[0].rglob("*"):
            if file.is_file():
                zipped.write(file, inner + str(file.relative_to(official_english[0])))
    convert(str(tmp_path / "BLEURT.zip"), str(tmp_path / "deep" / "out"))
    scorer, scores = own_scores(tmp_path / "deep" / "out")
    assert scores == pytest.approx(expected_scores(scorer, official_english[1], "tanh"), abs=5e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["BLEURT.zip", "deep"]


def test_a_zip_in_bleurt_pytorchs_format_converts(tmp_path):
    make_port(tmp_path / "port", max_seq_length=48)
    archive = shutil.make_archive(str(tmp_path / "port"), "zip", tmp_path, "port")
    convert(archive, str(tmp_path / "out"))
    assert own_scores(tmp_path / "out")[1] == pytest.approx(own_scores(tmp_path / "port")[1], abs=1e-6)


@pytest.mark.parametrize("zipped", [False, True])
def test_official_files_on_the_hub_convert(official_english, tmp_path, zipped):
    source = official_english[0]
    if zipped:
        source = tmp_path / "repository"
        shutil.make_archive(str(source / "BLEURT"), "zip", official_english[0])
    cached = put_into_cache(source, "someone/official-bleurt")
    try:
        convert("someone/official-bleurt", str(tmp_path / "out"))
        before = sorted(cached.rglob("*"))
    finally:
        shutil.rmtree(cached.parents[1])
    scorer, scores = own_scores(tmp_path / "out")
    assert scores == pytest.approx(expected_scores(scorer, official_english[1], "tanh"), abs=5e-6)
    assert len(before) == len(list(source.rglob("*")))  # nothing is unpacked into the Hub's cache


def test_bleurt_pytorch_converts_without_tensorflow(tmp_path, monkeypatch):
    make_port(tmp_path / "port", max_seq_length=48)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    made = convert(str(tmp_path / "port"), str(tmp_path / "out"))
    assert (made.max_length, made.activation) == (48, "gelu_pytorch_tanh")
    assert own_scores(tmp_path / "out")[1] == pytest.approx(own_scores(tmp_path / "port")[1], abs=1e-6)


def test_what_is_in_the_way_stays(official_english, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("mine")
    with pytest.raises(ValueError, match="exists already"):
        convert(str(official_english[0]), str(tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["precious"]
    with pytest.raises(ValueError, match="exists already"):
        convert(str(official_english[0]), str(tmp_path / "out" / "precious"))


def test_an_empty_folder_is_filled(official_english, tmp_path):
    (tmp_path / "out").mkdir()
    convert(str(official_english[0]), str(tmp_path / "out"))
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


def test_an_official_folder_given_as_a_checkpoint_says_how_to_convert_it(official_english):
    with pytest.raises(
        ValueError, match=r"official TensorFlow checkpoint: convert it once, with `bleurt-repro convert"
    ):
        load_checkpoint(str(official_english[0]))


@pytest.mark.parametrize("name", ["../outside", "/outside"])
def test_a_zip_that_leads_outside_leaves_nothing(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as zipped:
        zipped.writestr("bleurt_config.json", "{}")
        zipped.writestr(name, "evil")
    refused(tmp_path / "evil.zip", tmp_path, "bert_config.json cannot be read")


def test_a_truncated_zip_leaves_nothing(tmp_path):
    with zipfile.ZipFile(tmp_path / "short.zip", "w") as zipped:
        zipped.writestr("bleurt_config.json", "{}" + " " * 1000)
    cut(tmp_path / "short.zip", 500)
    refused(tmp_path / "short.zip", tmp_path, "no sound zip")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError, OSError])
def test_an_interruption_leaves_nothing(official_english, tmp_path, monkeypatch, interruption):
    save = conversion._save

    def interrupted(*arguments):
        save(*arguments)
        raise interruption

    monkeypatch.setattr(conversion, "_save", interrupted)
    with pytest.raises(interruption):
        convert(str(official_english[0]), str(tmp_path / "out"))
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
def scorer(official_english, tmp_path_factory):
    folder = tmp_path_factory.mktemp("converted") / "english"
    convert(str(official_english[0]), str(folder))
    return BleurtScorer(str(folder))


def test_scores_are_compared_with_those_named(official_english, scorer, tmp_path):
    scores = publish(tmp_path / "published.jsonl", official_english[1], scorer)
    made = convert(str(official_english[0]), str(tmp_path / "out"), scores=scores, max_difference=1e-5)
    assert (made.parity.pairs, made.parity.with_ids) == (5, 0)
    assert made.parity.largest < 1e-5


def test_scores_that_are_missed_leave_no_destination(official_english, scorer, copy, tmp_path):
    publish(copy / "scores.jsonl", official_english[1], scorer, shift=0.001)
    refused(
        copy, tmp_path, r"the scores miss .*scores.jsonl \(line [1-5]\): 5 pairs, largest difference 1.0e-03.*2e-05"
    )
    assert convert(str(copy), str(tmp_path / "out"), max_difference=0.01).parity.largest > 0.0009


def test_the_other_gelu_is_found_out(official_english, scorer, copy, tmp_path):
    publish(copy / "scores.jsonl", official_english[1], scorer)
    refused(copy, tmp_path, "the scores miss", gelu="erf")


def test_token_ids_that_differ_leave_no_destination(official_english, scorer, copy, tmp_path):
    publish(copy / "scores.jsonl", official_english[1], scorer, input_ids=[2, 3, 3])
    refused(copy, tmp_path, "the token ids differ .*token ids identical in 1 of 5")


def test_nothing_to_compare_with_is_an_error_if_a_difference_is_named(official_english, tmp_path):
    refused(official_english[0], tmp_path, "nothing to compare with", max_difference=1e-5)
    refused(official_english[0], tmp_path, "no file of scores", scores=str(tmp_path / "none.jsonl"))


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


def test_the_command_says_that_nothing_was_compared(official_english, tmp_path, capsys):
    run("convert", official_english[0], tmp_path / "out", "--gelu", "tanh")
    assert "parity: not measured: give --scores FILE" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options, message",
    [
        (["--max-difference", "1e-5"], "nothing to compare with"),
        (["--gelu", "relu"], "gelu must be auto, tanh or erf, found 'relu'"),
    ],
)
def test_the_command_ends_in_one_line_on_an_error(official_english, tmp_path, capsys, options, message):
    with pytest.raises(SystemExit) as end:
        main(["convert", str(official_english[0]), str(tmp_path / "out"), *options])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("bleurt-repro: error: ") and error.count("\n") == 1
    assert message in error
    assert list(Path(tmp_path).iterdir()) == []
