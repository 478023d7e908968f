from __future__ import annotations

import json

import pyarrow
import pyarrow.parquet
import pytest

from bleurt_repro.datasets_builders.ratings.rating_files import RATING_COLUMNS, rating_records, read_ratings
from tests.pages import ROOT, read_blocks

FULL = {
    "year": 2018,
    "lp": "de-en",
    "segment_id": 7,
    "system": "Rosy.1",
    "source": "Der Fuchs schläft.",
    "reference": "The fox is asleep.",
    "candidate": "The fox sleeps.",
    "score": 0.5,
    "raw_score": 80.0,
    "n_annotations": 2,
}
SHORT = {"reference": "a b", "candidate": "a c", "score": -1.25}


def write(folder, name, records):
    path = folder / name
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), path)
    elif name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        separator = "," if name.endswith(".csv") else "\t"
        rows = [list(records[0]), *([str(value) for value in record.values()] for record in records)]
        path.write_text("".join(separator.join(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("record", [FULL, SHORT])
def test_each_form_gives_the_same_ratings(tmp_path, name, record):
    path = write(tmp_path, name, [record, record])
    expected = {column: record.get(column) for column in RATING_COLUMNS}
    assert rating_records(path) == [expected, expected]
    dataset = read_ratings(path)
    assert dataset.column_names == list(RATING_COLUMNS)
    assert dataset[1] == expected


def test_other_columns_are_left_out_and_aliases_renamed(tmp_path):
    path = write(tmp_path, "a.jsonl", [{"reference": "a", "candidate": "b", "z": 1, "note": "n"}])
    (rating,) = rating_records(path, aliases={"z": "score"})
    assert rating["score"] == 1.0
    assert set(rating) == set(RATING_COLUMNS)


@pytest.mark.parametrize(
    ("identifiers", "expected", "dtype"),
    [([1, "2"], [1, 2], "int64"), ([1, "doc:2"], ["1", "doc:2"], "string"), ([None, 3], [None, 3], "int64")],
)
def test_segment_ids_are_numbers_if_all_are(tmp_path, identifiers, expected, dtype):
    path = write(tmp_path, "a.jsonl", [{**SHORT, "segment_id": identifier} for identifier in identifiers])
    assert [rating["segment_id"] for rating in rating_records(path)] == expected
    assert read_ratings(path).features["segment_id"].dtype == dtype


def test_an_empty_candidate_is_an_output_but_no_other_text_may_be_blank(tmp_path):
    path = write(tmp_path, "a.jsonl", [{**SHORT, "candidate": "", "source": " "}])
    (rating,) = rating_records(path)
    assert (rating["candidate"], rating["source"]) == ("", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": "good"}, "score must be a number, found 'good'"),
        ({"score": float("nan")}, "score must be a finite number, found nan"),
        ({"score": "inf"}, "score must be a finite number, found 'inf'"),
        ({"score": True}, "score must be a number, found True"),
        ({"score": [1]}, r"score must be a number, found \[1\]"),
        ({"score": "0,5"}, "score must be a number, found '0,5'"),
        ({"score": None}, "score is missing"),
        ({"score": ""}, "score is blank"),
        ({"reference": "  "}, "reference is blank"),
        ({"candidate": None}, "candidate is missing"),
        ({"candidate": 3}, "candidate must be text, found 3"),
        ({"source": ["s"]}, r"source must be text, found \['s'\]"),
        ({"year": 2018.5}, "year must be a whole number, found 2018.5"),
        ({"raw_score": "high"}, "raw_score must be a number, found 'high'"),
        ({"segment_id": 1.5}, "segment_id must be text, found 1.5"),
    ],
)
def test_a_bad_value_is_named_with_file_and_line(tmp_path, change, message):
    path = write(tmp_path, "mine.jsonl", [SHORT, {**SHORT, **change}])
    with pytest.raises(ValueError, match=rf"mine\.jsonl: 1 bad record\(s\): line 2: {message}"):
        rating_records(path)


def test_all_bad_records_are_counted_and_the_first_named(tmp_path):
    path = write(tmp_path, "mine.csv", [{**SHORT, "score": "?"}] * 12 + [SHORT])
    with pytest.raises(ValueError, match=r"12 bad record\(s\): line 2: .*; line 11: .*; and 2 more$"):
        rating_records(path)


def test_a_record_without_a_column_is_named(tmp_path):
    path = write(tmp_path, "mine.jsonl", [SHORT, {"reference": "a", "candidate": "b"}])
    with pytest.raises(ValueError, match="line 2: no score; found reference, candidate"):
        rating_records(path)


@pytest.mark.parametrize("name", ["mine.csv", "mine.tsv", "mine.parquet"])
def test_a_table_without_a_column_is_named_once(tmp_path, name):
    path = write(tmp_path, name, [{"reference": "a", "hypothesis": "b", "score": 1}] * 3)
    with pytest.raises(ValueError, match=rf"{name}: no column candidate; found reference, hypothesis, score$"):
        rating_records(path)


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", ""), ("a.csv", "reference,candidate,score\n"), ("a.jsonl", "\n")]
)
def test_a_file_of_no_records_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match="no records; expected at least one rating with reference, candidate, score"):
        rating_records(tmp_path / name)


def test_the_recipe_for_captions_reads_their_layout(tmp_path, monkeypatch):
    blocks = read_blocks(ROOT / "docs/reference/ratings.md")
    [block] = [block for block in blocks if block.language == "python" and "captions.jsonl" in block.body]
    folder = tmp_path / "multiple-annotator/2016"
    files = {
        "systems/trecvid16-vtt.en-en.DCU-adapt": "a man runs\na dog, asleep\n",
        "references/trecvid16-vtt.en-en.HUMAN-B": "A man is running.\nA dog sleeps.\n",
        "ad-seg-scores-en-en.csv": (
            "SYS,SID,RAW.SCR,Z.SCR.RAW,N,HIT,Z.SCR\nDCU-adapt,2,86.5,1.25,19,0,0.9\nDCU-adapt,0,5,-1,19,0,0.1\nHUMAN,1,99,2,1,0,1\n"
        ),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    exec(block.body, {})
    [rating] = rating_records("captions.jsonl")
    assert {name: value for name, value in rating.items() if value is not None} == {
        "segment_id": 2,
        "system": "DCU-adapt",
        "reference": "A dog sleeps.",
        "candidate": "a dog, asleep",
        "score": 1.25,
        "raw_score": 86.5,
        "n_annotations": 19,
    }
