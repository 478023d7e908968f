from __future__ import annotations

import gzip

import pyarrow
import pyarrow.parquet
import pytest

from bleurt_repro.metric.files.records import file_form, read_records

RECORDS = [
    ("a.csv", b'text,n\n"one, two",1\n"he said ""no""",2\n', [("line 2", "one, two"), ("line 3", 'he said "no"')]),
    ("a.csv", b'text,n\n"two\nlines",1\nnext,2\n', [("line 2", "two\nlines"), ("line 4", "next")]),
    ("a.csv", b"\xef\xbb\xbftext,n\r\na,1\r\n\r\nb,2\r\n", [("line 2", "a"), ("line 4", "b")]),
    ("a.tsv", b'text\tn\n"It is", he said\t1\n', [("line 2", '"It is", he said')]),
    ("a.jsonl", '{"text": "a\u2028b"}\n\n{"text": "ü"}'.encode(), [("line 1", "a\u2028b"), ("line 3", "ü")]),
    ("A.JSONL", b'{"text": "a"}\n', [("line 1", "a")]),
]


@pytest.mark.parametrize(("name", "content", "expected"), RECORDS)
@pytest.mark.parametrize("zipped", [False, True])
def test_records_come_with_their_location(tmp_path, name, content, expected, zipped):
    path = tmp_path / (name + ".gz" * zipped)
    path.write_bytes(gzip.compress(content) if zipped else content)
    assert [(location, record["text"]) for location, record in read_records(path)] == expected


def test_parquet_records_are_numbered_by_row(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", None]}), tmp_path / "a.parquet")
    assert list(read_records(tmp_path / "a.parquet")) == [("row 1", {"text": "a"}), ("row 2", {"text": None})]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b'text,n\nfine,1\n"never closed,2\nmore,3\n', r"a\.csv, line 3: malformed record"),
        ("a.csv", b'text,n\n"closed" late,2\n', r"a\.csv, line 2: malformed record"),
        ("a.csv", b"text,n\na,1\nb\n", r"a\.csv, line 3: expected 2 columns as in the header, found 1"),
        ("a.csv", b"text,n\na,1,2\n", r"a\.csv, line 2: expected 2 columns as in the header, found 3"),
        ("a.csv", b"text,\na,b\n", r"a\.csv, line 1: the column names must not be blank"),
        ("a.csv", b"text,n\na,1\n\xe9,2\n", r"a\.csv, line 3: not UTF-8"),
        ("a.tsv", b"text\tn\na b\n", r"a\.tsv, line 2: expected 2 columns as in the header, found 1"),
        ("a.tsv", b"text\tn\n\xff\t1\n", r"a\.tsv, line 2: not UTF-8"),
        ("a.jsonl", b'{"text": "a"}\n{"text": \n', r"a\.jsonl, line 2: not JSON"),
        ("a.jsonl", b'["a"]\n', r"a\.jsonl, line 1: expected a JSON object, found list"),
        ("a.jsonl", b'{"text": "a"}\n"\xe9"\n', r"a\.jsonl, line 2: not UTF-8"),
        ("a.jsonl", b"[" * 200_000, r"a\.jsonl, line 1: not JSON"),
        ("a.jsonl.gz", b'{"text": "a"}\n', r"a\.jsonl\.gz, line 1: not a whole gzip file"),
        (
            "a.jsonl.gz",
            gzip.compress(b'{"text": "a"}\n' * 9, mtime=0)[:-12],
            r"a\.jsonl\.gz, line \d+: not a whole gzip file",
        ),
        ("a.parquet", b"PAR1 not really", r"a\.parquet: not a Parquet file"),
        ("a.xlsx", b"", r"a\.xlsx: expected a file ending in \.csv, .* found \.xlsx"),
    ],
)
def test_a_malformed_file_is_named_with_the_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(read_records(tmp_path / name))


def test_a_file_must_be_there_and_be_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file .*none.csv"):
        list(read_records(tmp_path / "none.csv"))
    with pytest.raises(ValueError, match="found a folder"):
        list(read_records(tmp_path))


@pytest.mark.parametrize(
    ("name", "form"), [("a.csv", ".csv"), ("b.tsv.gz", ".tsv"), ("B.Parquet", ".parquet"), ("c.txt", ""), ("csv", "")]
)
def test_the_form_is_told_by_the_name(name, form):
    assert file_form(name) == form
