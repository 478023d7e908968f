from __future__ import annotations

import gzip
import json

import datasets
import pytest

from bleurt_repro.datasets_builders.ratings.wmt import RATING_FEATURES
from bleurt_repro.datasets_builders.ratings.wmt_sources import read_wmt, source_fingerprint

ROW = {
    "year": 2018,
    "lp": "et-en",
    "segment_id": 4,
    "system": "Rosy.1",
    "source": "Rebane magab.",
    "reference": "The fox is asleep.",
    "candidate": "The fox sleeps.",
    "score": 0.5,
    "raw_score": 80.0,
    "n_annotations": 2,
}


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def test_files_of_a_folder_are_read_together(tmp_path):
    prepared = {**ROW, "segment_id": 5, "z_score": 0.5, "n_annot": 2, "n_systems": 1}
    prepared = {name: value for name, value in prepared.items() if name not in ("score", "n_annotations")}
    (tmp_path / "a.jsonl").write_text(lines(ROW))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines(prepared).encode()))
    datasets.Dataset.from_list([{**ROW, "segment_id": 6}], features=RATING_FEATURES).to_parquet(tmp_path / "c.parquet")
    (tmp_path / "ranks.jsonl").write_text(lines({"year": 2018, "better": "A", "worse": "B"}))
    (tmp_path / "notes.txt").write_text("not ratings")
    assert read_wmt(tmp_path) == [ROW, {**ROW, "segment_id": 5}, {**ROW, "segment_id": 6}]
    assert read_wmt(tmp_path / "a.jsonl") == [ROW]


def test_the_fingerprint_follows_what_is_read(tmp_path):
    (tmp_path / "a.jsonl").write_text(lines(ROW))
    first = source_fingerprint(tmp_path)
    assert source_fingerprint(tmp_path) == first
    (tmp_path / "notes.txt").write_text("not ratings")
    assert source_fingerprint(tmp_path) == first
    (tmp_path / "ranks.jsonl").write_text(lines({"year": 2018, "better": "A", "worse": "B"}))
    second = source_fingerprint(tmp_path)
    (tmp_path / "a.jsonl").write_text(lines({**ROW, "score": 1}))
    assert len({first, second, source_fingerprint(tmp_path)}) == 3


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({**ROW, "score": "x"}, r"a\.jsonl: 1 bad record\(s\): line 2: score must be a number"),
        ({name: ROW[name] for name in ("reference", "candidate", "score")}, "line 2: no year, lp, segment_id"),
        ({**ROW, "segment_id": "doc:3"}, "segment_id must be a whole number, found"),
    ],
)
def test_a_bad_record_is_named(tmp_path, record, message):
    (tmp_path / "a.jsonl").write_text(lines(ROW, record))
    with pytest.raises(ValueError, match=message):
        read_wmt(tmp_path)


def test_ratings_that_stand_twice_are_warned_of(tmp_path):
    for name in ("a.jsonl", "copy.jsonl"):
        (tmp_path / name).write_text(lines(ROW))
    with pytest.warns(UserWarning, match=r"1 ratings are of an output .* \(such as 2018 et-en 4 Rosy.1\)"):
        assert len(read_wmt(tmp_path)) == 2


@pytest.mark.parametrize("name", ["empty", "none", "texts"])
def test_the_error_says_what_was_looked_for(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("text")
    with pytest.raises(FileNotFoundError, match=r"no WMT ratings in .*: looked for .*\*\.parquet .*DA-seglevel\.csv"):
        read_wmt(tmp_path / name)


def test_two_sources_are_refused():
    with pytest.raises(ValueError, match="give either data_dir, .* or hub_dataset, .*found both"):
        source_fingerprint("a", "b/c")
