"""Texts from files of every kind, and faults named by file and line."""

from __future__ import annotations

import json

import pytest

from bleurt_repro.metric.files.texts import read_segments


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def file(name: str, content: str | bytes) -> str:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return file


@pytest.mark.parametrize(
    ("name", "content", "role", "expected"),
    [
        ("a.txt", "one\n\nthree\n", "candidates", ["one", "", "three"]),
        ("a.out", b"\xef\xbb\xbfone\r\ntwo\r\n", "candidates", ["one", "two"]),
        ("a.csv", 'id,candidate\n1,"so, so"\n2,"two\nlines"\n', "candidates", ["so, so", "two\nlines"]),
        ("a.CSV", "candidate,reference\nc,r\n", "references", ["r"]),
        ("a.tsv", "text\tx\nsaid \"no\"\t1\n".replace('"', "'"), "sources", ["said 'no'"]),
        ("a.jsonl", '{"candidate": "one"}\n\n"two"\n{"text": "three"}\n', "candidates", ["one", "two", "three"]),
        ("a.jsonl", '{"references": ["a", "b"]}\n{"reference": "c"}\n', "references", [["a", "b"], "c"]),
        ("empty.txt", "", "candidates", []),
    ],
)  # fmt: skip
def test_each_kind_of_file(write, name, content, role, expected):
    assert read_segments(write(name, content), role) == expected


@pytest.mark.parametrize(
    ("name", "content", "role", "message"),
    [
        ("a.csv", "one\ntwo\n", "candidates", "a.csv, line 1: expected a header with a column 'candidate' or 'text', found 'one'"),
        ("a.csv", "", "candidates", "found nothing"),
        ("a.csv", "candidate,n\none,1\ntwo\n", "candidates", "a.csv, line 3: expected 2 columns as in the header, found 1"),
        ("a.csv", 'candidate\n"open\n', "candidates", "a.csv, line 2: malformed record"),
        ("a.jsonl", '"fine"\n{"candidate": 3}\n', "candidates", "a.jsonl, line 2: expected a string, found 3"),
        ("a.jsonl", '{"reference": []}', "references", "expected a string or a list of strings, found []"),
        ("a.jsonl", '{"refrence": "x"}', "references", "expected a field 'reference' or 'references' or 'text', found"),
        ("a.jsonl", "{", "references", "a.jsonl, line 1: not JSON"),
        ("a.txt", b"fine\n\xff\xfe\n", "references", "a.txt, line 2: not UTF-8"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(write, name, content, role, message):
    with pytest.raises(ValueError) as error:
        read_segments(write(name, content), role)
    assert message in str(error.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        read_segments(str(tmp_path / "none.csv"), "candidates")


def test_candidates_take_no_lists(write):
    with pytest.raises(ValueError, match="expected a string, found"):
        read_segments(write("a.jsonl", json.dumps({"candidate": ["a", "b"]})), "candidates")
