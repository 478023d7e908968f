"""Averages of weights: by hand, with a record of the members, and only of what fits together."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.metric.loading.checksums import content_hash
from bleurt_repro.training.combine import average_scorers
from bleurt_repro.training.training_references import TrainingReferences
from tests.conftest import make_tiny_scorer


@pytest.fixture
def pair(tiny_scorer, tmp_path):
    """Two scorers whose weights differ by 4 everywhere."""
    other = shutil.copytree(tiny_scorer, tmp_path / "other")
    weights = {name: value + 4 for name, value in load_file(tiny_scorer / "model.safetensors").items()}
    save_file(weights, other / "model.safetensors", metadata={"format": "pt"})
    (other / "checksums.json").unlink()
    return tiny_scorer, other


@pytest.mark.parametrize(("weights", "shift"), [(None, 2.0), ([3, 1], 1.0), ([0.2, 0.6], 3.0)])
def test_the_mean_of_weights(pair, tmp_path, weights, shift):
    average_scorers([str(path) for path in pair], tmp_path / "out", weights)
    first, mean = (load_file(folder / "model.safetensors") for folder in (pair[0], tmp_path / "out"))
    for name, value in first.items():
        torch.testing.assert_close(mean[name], value + shift)
    assert len(BleurtScorer(str(tmp_path / "out")).score(references=["a"], candidates=["b"])) == 1


def test_what_is_alike_in_all_stays_to_the_bit(pair, tmp_path):
    weights = load_file(pair[1] / "model.safetensors")
    weights["classifier.weight"] = torch.full_like(weights["classifier.weight"], -0.0)
    save_file(weights, pair[1] / "model.safetensors", metadata={"format": "pt"})
    average_scorers([str(pair[1])] * 5, tmp_path / "out", [0.1, 0.1, 0.1, 0.1, 0.6])
    mean = load_file(tmp_path / "out" / "model.safetensors")
    for name, value in weights.items():
        assert torch.equal(mean[name].view(torch.int32), value.view(torch.int32)), name


def test_the_record_names_the_members(pair, tmp_path):
    (pair[1] / "results.json").write_text('{"kind": "finetune", "steps": 7}')
    average_scorers([str(path) for path in pair], tmp_path / "out", [3, 1], dtype="float16")
    members = json.loads((tmp_path / "out" / "results.json").read_text())["average"]
    assert [(m["checkpoint"], m["weight"], (m["training"] or {}).get("steps")) for m in members] == [
        ("tiny", 0.75, None),
        ("other", 0.25, 7),
    ]
    assert members[1]["hash"] == content_hash(pair[1])
    assert load_file(tmp_path / "out" / "model.safetensors")["classifier.weight"].dtype == torch.float16


def test_an_average_was_trained_on_the_references_of_its_members(pair, tmp_path):
    pair = shutil.copytree(pair[0], tmp_path / "first"), pair[1]
    TrainingReferences.from_texts(["a", "b"]).write(pair[0])
    average_scorers([str(path) for path in pair], tmp_path / "unknown")
    assert TrainingReferences.read(tmp_path / "unknown") is None
    TrainingReferences.from_texts(["b", "c"]).write(pair[1])
    average_scorers([str(path) for path in pair], tmp_path / "out")
    assert TrainingReferences.read(tmp_path / "out").overlap(["a", "b", "c", "d"]) == {"references": 4, "seen": 3}


def test_one_checkpoint_is_stored_in_another_way(tiny_scorer, tmp_path):
    out = tmp_path / "out"
    average_scorers([str(tiny_scorer)] * 2, out)
    with pytest.raises(SystemExit) as stop:
        main(["average", str(tiny_scorer), "--dtype", "float8", "--max-shard-size", "10KB", "--output", str(out)])
    assert not stop.value.code
    assert not (out / "model.safetensors").exists(), "it would be read before the shards"
    weights = {name: value for file in out.glob("model-*.safetensors") for name, value in load_file(file).items()}
    for name, value in load_file(tiny_scorer / "model.safetensors").items():
        assert torch.equal(weights[name], value.to(torch.float8_e4m3fn) if value.dim() == 2 else value), name
    record = json.loads((out / "results.json").read_text())
    assert record["command"] == "bleurt-repro average tiny --dtype float8 --max-shard-size 10KB --output OUT"
    assert [(member["checkpoint"], member["weight"]) for member in record["average"]] == [("tiny", 1.0)]
    assert len(BleurtScorer(str(out)).score(references=["a"], candidates=["b"])) == 1


def test_scores_on_another_scale(tiny_scorer, tmp_path):
    average_scorers([str(tiny_scorer)], tmp_path / "out", scale=2.5)
    texts = {"references": ["a", "b c", ""], "candidates": ["b", "b c", "a b"]}
    before, after = (BleurtScorer(str(folder)).score(**texts) for folder in (tiny_scorer, tmp_path / "out"))
    assert max(map(abs, before)) > 0
    assert after == pytest.approx([2.5 * score for score in before], rel=1e-5)
    record = json.loads((tmp_path / "out" / "results.json").read_text())
    assert record["command"] == "bleurt-repro average tiny --scale 2.5 --output OUT"
    with pytest.raises(ValueError, match=r"scale must be a number above 0, found -1"):
        average_scorers([str(tiny_scorer)], tmp_path / "other", scale=-1)


def test_a_size_that_is_none(tiny_scorer, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["average", str(tiny_scorer), "--max-shard-size", "some", "--output", str(tmp_path / "out")])
    assert "some" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: make_tiny_scorer(path, max_length=32), "read text differently"),
        (lambda path: make_tiny_scorer(path, inputs=("candidate", "reference")), "read text differently"),
    ],
)
def test_what_does_not_fit_is_refused(tiny_scorer, tmp_path, make, message):
    with pytest.raises(ValueError, match=message):
        average_scorers([str(tiny_scorer), str(make(tmp_path / "x"))], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_wrong_numbers(tiny_scorer, tmp_path):
    with pytest.raises(ValueError, match="at least one checkpoint, found none"):
        average_scorers([], tmp_path / "out", dtype="float8")
    with pytest.raises(ValueError, match="one finite weight above 0 for each of the 2 checkpoints"):
        average_scorers([str(tiny_scorer)] * 2, tmp_path / "out", [1, 0])


@pytest.mark.parametrize("weights", [[1, float("nan")], [1, float("inf")], [1e308, 1e308]])
def test_weights_that_are_no_finite_share(pair, tmp_path, weights):
    with pytest.raises(ValueError, match="one finite weight above 0 for each of the 2 checkpoints"):
        average_scorers([str(path) for path in pair], tmp_path / "out", weights)
    assert not (tmp_path / "out").exists()


def test_an_unknown_dtype(pair, tmp_path):
    with pytest.raises(ValueError, match="dtype must be float32, bfloat16, float16, float8, found 'foo'"):
        average_scorers([str(path) for path in pair], tmp_path / "out", dtype="foo")


def test_a_member_is_no_place_for_the_average(pair, tmp_path):
    before = (pair[1] / "model.safetensors").read_bytes()
    with pytest.raises(ValueError, match="other is the input"):
        average_scorers([str(path) for path in pair], pair[1])
    assert (pair[1] / "model.safetensors").read_bytes() == before


def test_other_files_are_not_written_over_unless_asked(pair, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds files that bleurt-repro did not write: .* --overwrite"):
        average_scorers([str(path) for path in pair], tmp_path / "out")
    average_scorers([str(path) for path in pair], tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"


def test_a_failure_leaves_the_average_that_was_there(pair, tmp_path, monkeypatch):
    average_scorers([str(path) for path in pair], tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}

    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bleurt_repro.training.results.Result.write", fail)
    with pytest.raises(KeyboardInterrupt):
        average_scorers([str(path) for path in pair], tmp_path / "out", [3, 1])
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize("size", ["junk", "0MB", "45", "-1MB", "4.5MB"])
def test_a_size_of_files_that_is_none(pair, tmp_path, size):
    with pytest.raises(ValueError, match=f"KB, MB or GB, such as 45MB, found '{size}'"):
        average_scorers([str(path) for path in pair], tmp_path / "out", max_shard_size=size)


@pytest.mark.parametrize("size", ["1MB", "1mb", "01 GB", "1TB"])
def test_a_size_of_files_as_the_library_reads_it(pair, tmp_path, size):
    average_scorers([str(path) for path in pair], tmp_path / "out", max_shard_size=size)
    assert BleurtScorer(str(tmp_path / "out")).score(references=["a"], candidates=["a"])
