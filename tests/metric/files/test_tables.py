"""Tables: tab-separated text with and without a header, and what is said of malformed lines."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bleurt_repro.metric.files.records import read_table
from bleurt_repro.training.teachers.common import parse_pairs, parse_weights

COLUMNS = ("split", "text")


@pytest.mark.parametrize("content", ["train\tHello. \r\ntest\tBye.\n", "split\ttext\ntrain\tHello.\ntest\tBye."])
@pytest.mark.parametrize("name", ["rows.tsv", "rows.tsv.gz"])
def test_rows(tmp_path: Path, name: str, content: str) -> None:
    data = content.encode("utf-8")
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert read_table(tmp_path / name, COLUMNS) == [
        {"split": "train", "text": "Hello."},
        {"split": "test", "text": "Bye."},
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"train\ta\ntrain\n", r"rows.tsv, line 2: expected 2 columns \(split, text\), found 1"),
        (b"train\ta\tb\n", "line 1: expected 2 columns .*, found 3"),
        (b"train\ta\ntrain\t\xff\n", r"rows.tsv, line 2: not UTF-8 \(byte 7\)"),
        (b"", "rows.tsv is empty"),
        (b"split\ttext\n", "rows.tsv is empty"),
    ],
)
def test_malformed(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "rows.tsv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "rows.tsv", COLUMNS)


def test_broken_gzip(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv.gz").write_bytes(gzip.compress(b"train\ta\n" * 100)[:-8])
    with pytest.raises(ValueError, match="rows.tsv.gz, line .*: not a whole gzip file"):
        read_table(tmp_path / "rows.tsv.gz", COLUMNS)


def test_no_file() -> None:
    with pytest.raises(
        FileNotFoundError, match="no file absent.tsv: expected a TSV file with the columns split, text"
    ):
        read_table("absent.tsv", COLUMNS)


def test_pairs_and_weights() -> None:
    assert parse_pairs(["fr=a=b.tsv", "de=c"], "files") == {"fr": "a=b.tsv", "de": "c"}
    assert parse_weights(["tatoeba=0.5", "a b=2"], "weights") == {"tatoeba": 0.5, "a b": 2.0}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["a"], "--weights a: expected NAME=VALUE"),
        (["a="], "--weights a=: expected NAME=VALUE"),
        (["=1"], "--weights =1: expected NAME=VALUE"),
        (["a=1", "a=2"], "--weights names a twice"),
        (["a=x"], "--weights a=x: expected a number"),
        (["a=-1"], "--weights a=-1: expected a number that is not negative"),
        (["a=nan"], "--weights a=nan: expected a number that is not negative"),
    ],
)
def test_wrong_weights(command: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_weights(command, "weights")
