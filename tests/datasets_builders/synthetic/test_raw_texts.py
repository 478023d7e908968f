"""Reading raw texts: each kind of file, each kind of fault."""

from __future__ import annotations

import gzip
import json

import pytest

from bleurt_repro.datasets_builders.synthetic.raw_texts import Row, read_rows

HELLO = [Row(1, "one hello"), Row(2, 'two, "hello"')]


def write(path, content):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize(
    ("name", "content", "column", "first_line"),
    [
        ("a.txt", 'one hello\ntwo, "hello"\n', None, 1),
        ("a.txt.gz", 'one hello\r\ntwo, "hello"', None, 1),
        ("a", '\ufeffone hello\ntwo, "hello"\n', None, 1),
        ("a.tsv", 'x\tone hello\ny\ttwo, "hello"\n', "2", 1),
        ("a.tsv.gz", 'id\ttext\nx\tone hello\ny\ttwo, "hello"\n', None, 2),
        ("a.csv", 'id,sentence\nx,one hello\ny,"two, ""hello"""\n', "sentence", 2),
        ("a.jsonl", json.dumps({"text": "one hello"}) + "\n" + json.dumps({"text": 'two, "hello"'}), None, 1),
        ("a.jsonl.gz", json.dumps({"s": "one hello"}) + "\n" + json.dumps({"s": 'two, "hello"'}), "s", 1),
    ],
)
def test_kinds_of_files(tmp_path, name, content, column, first_line):
    rows = list(read_rows(write(tmp_path / name, content), column))
    assert rows == [Row(row.number + first_line - 1, row.text) for row in HELLO]


def test_parquet_and_datasets(tmp_path):
    from datasets import Dataset

    data = Dataset.from_dict({"text": [row.text for row in HELLO], "id": [1, 2]})
    data.to_parquet(tmp_path / "folder" / "train.parquet")
    data.save_to_disk(tmp_path / "saved")
    assert list(read_rows(str(tmp_path / "folder" / "train.parquet"))) == HELLO
    assert list(read_rows(str(tmp_path / "folder"))) == HELLO
    assert list(read_rows(str(tmp_path / "saved"), "text")) == HELLO
    with pytest.raises(ValueError, match="no column 'body', found text, id"):
        list(read_rows(str(tmp_path / "folder"), "body"))


def test_rows_that_cannot_be_read_are_said(tmp_path):
    path = write(tmp_path / "a.txt", b"fine\ncaf\xe9 latin\nfine too\n")
    assert list(read_rows(path)) == [
        Row(1, "fine"),
        Row(2, "caf\ufffd latin", "not UTF-8 (byte 4)"),
        Row(3, "fine too"),
    ]
    path = write(tmp_path / "a.jsonl", '{"text": "fine"}\n{"text": 3}\n{"text"\n{"other": "x"}\n[1]\n')
    assert [(row.number, row.fault) for row in read_rows(path)] == [
        (1, ""),
        (2, "int in column text"),
        (3, "not JSON"),
        (4, "no text in column text"),
        (5, "not a JSON object"),
    ]
    path = write(tmp_path / "a.tsv", "x\tone\ny\n")
    assert [(row.text, row.fault) for row in read_rows(path, "2")] == [("one", ""), ("y", "no column 2")]


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.txt", "", None, "a.txt is empty"),
        ("a.tsv", "x\ty\n", None, "no column 'text': its first row is 'x', 'y'; give .* number from 1 to 2"),
        ("a.tsv", "x\ty\n", "3", "no column '3'"),
        ("a.csv", "x,y\n", "z", "no column 'z'"),
        ("a.jsonl", '{"body": "x"}\n', None, "no column 'text', found body"),
        ("a.txt.gz", gzip.compress(b"hello\n" * 1000, mtime=0)[:-20], None, "not a whole gzip file"),
    ],
)
def test_inputs_that_are_wrong_as_a_whole(tmp_path, name, content, column, message):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message):
        list(read_rows(str(path), column))


@pytest.mark.parametrize("source", ["nowhere.txt", "no/such/folder/at/all", "org/name"])
def test_an_input_that_is_not_there(source):
    with pytest.raises(FileNotFoundError, match=f"input {source}: no such file"):
        list(read_rows(source))
