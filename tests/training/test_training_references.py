"""Training references: hashes beside the weights by which an overlap with measured ratings is noticed."""

from __future__ import annotations

import json

import pytest

from bleurt_repro.training import training_references
from bleurt_repro.training.training_references import TRAINING_REFERENCES, TrainingReferences, record_references

MANY = [f"sentence number {i}" for i in range(1000)]


def test_references_that_differ_in_case_and_spaces_alone_are_equal(tmp_path):
    TrainingReferences.from_texts(["The cat  sat.", "the cat sat.", "It rains."]).write(tmp_path)
    seen = TrainingReferences.read(tmp_path)
    assert seen.count == 2
    assert seen.overlap(["THE CAT SAT.", "it rains.\n", "It snows.", "It snows."]) == {"references": 3, "seen": 2}
    assert "cat" not in (tmp_path / TRAINING_REFERENCES).read_text()


def test_without_a_file_they_are_unknown(tmp_path):
    assert TrainingReferences.read(tmp_path) is None


def test_of_many_references_a_sample_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(training_references, "MOST_HASHES", 100)
    TrainingReferences.from_texts(MANY).write(tmp_path)
    seen = TrainingReferences.read(tmp_path)
    assert (seen.count, len(seen.hashes)) == (1000, 100)
    overlap = seen.overlap(MANY)
    assert overlap == {"references": 100, "seen": 100}
    half = seen.overlap([*MANY[:500], *(f"another {i}" for i in range(500))])
    assert half["references"] < 200 and 0.3 < half["seen"] / half["references"] < 0.7
    assert seen.overlap([f"another {i}" for i in range(1000)])["seen"] == 0


def test_a_run_adds_to_the_references_of_its_start(tmp_path):
    (tmp_path / "start").mkdir()
    (tmp_path / "end").mkdir()
    record_references(tmp_path / "start", ["a", "b"], tmp_path)
    record_references(tmp_path / "end", ["b", "c"], tmp_path / "start")
    seen = TrainingReferences.read(tmp_path / "end")
    assert seen.count == 3 and seen.overlap(["a", "b", "c", "d"])["seen"] == 3


def test_merging_samples_answers_for_what_all_of_them_know(monkeypatch):
    monkeypatch.setattr(training_references, "MOST_HASHES", 100)
    sample, few = TrainingReferences.from_texts(MANY), TrainingReferences.from_texts(["x", "y"])
    merged = sample.merge(few)
    assert len(merged.hashes) == 100 and merged.count == 1000
    assert merged.overlap(MANY)["seen"] >= 98


@pytest.mark.parametrize("content", ["", "[]", '{"format": "x"}', "{}"])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / TRAINING_REFERENCES).write_text(content)
    with pytest.raises(ValueError, match="training_references.json cannot be read"):
        TrainingReferences.read(tmp_path)


def test_a_file_of_a_later_version_is_refused(tmp_path):
    TrainingReferences.from_texts(["a"]).write(tmp_path)
    record = json.loads((tmp_path / TRAINING_REFERENCES).read_text())
    (tmp_path / TRAINING_REFERENCES).write_text(json.dumps({**record, "version": 2}))
    with pytest.raises(ValueError, match="its version is 2"):
        TrainingReferences.read(tmp_path)


def test_an_ensemble_has_those_of_its_members(tmp_path):
    members = []
    for name, texts in (("a", ["one"]), ("b", ["two"])):
        (tmp_path / name).mkdir()
        TrainingReferences.from_texts(texts).write(tmp_path / name)
        members.append({"checkpoint": name, "hash": "0", "weight": 0.5, "mean": 0.0, "std": 1.0})
    (tmp_path / "ensemble.json").write_text(json.dumps({"members": members}))
    assert TrainingReferences.read(tmp_path).overlap(["one", "two", "three"]) == {"references": 3, "seen": 2}
    (tmp_path / "a" / TRAINING_REFERENCES).unlink()
    assert TrainingReferences.read(tmp_path) is None
