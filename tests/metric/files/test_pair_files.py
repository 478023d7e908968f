"""Reading text to score: lines and JSON lines, and what is said of bad ones."""

from __future__ import annotations

import io
import json
import os
import sys
import threading

import pytest

from bleurt_repro.metric.files.records import open_input, read_lines
from bleurt_repro.metric.files.texts import PairStream


def read_pairs(path: str) -> dict[str, list]:
    """Read all pairs of a file, as `score` does."""
    with PairStream(pairs=path) as stream:
        records = stream.survey().records
        return next(stream.windows(0, records, records), {"references": [], "candidates": []})


def write(path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"\n\nlast\n", ["", "", "last"]),
        (b"\xef\xbb\xbfone\n", ["one"]),
        ("a\u2028b\x0cc\x85d\n".encode(), ["a\u2028b\x0cc\x85d"]),  # no line ends but line feeds
        (b"a\x00b\n", ["a\x00b"]),
    ],
)
def test_read_lines(tmp_path, content, lines):
    assert read_lines(write(tmp_path / "lines.txt", content)) == lines


def test_read_lines_from_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("één\ntwee\n".encode())))
    assert read_lines("-") == ["één", "twee"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_given_as_a_file_can_be_read_twice(tmp_path):
    """As bash's `<(command)` is."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"one\ntwo\n",))
    writer.start()
    with open_input(str(tmp_path / "pipe")) as file:
        assert file.read() == b"one\ntwo\n"
        file.seek(0)
        assert file.read() == b"one\ntwo\n"
    writer.join()


def test_a_line_that_is_no_utf8_is_named(tmp_path):
    path = write(tmp_path / "latin.txt", b"one\ncaf\xe9 noir\n")
    with pytest.raises(ValueError, match=r"latin\.txt, line 2: not UTF-8 \(byte 4\); save"):
        read_lines(path)


@pytest.mark.parametrize(("name", "error"), [("none.txt", FileNotFoundError), (".", ValueError)])
def test_a_file_that_is_none(tmp_path, name, error):
    with pytest.raises(error, match="no file|is a folder"):
        read_lines(str(tmp_path / name))


def test_read_pairs(tmp_path):
    path = write(
        tmp_path / "pairs.jsonl",
        b'{"reference": "r", "candidate": "c", "id": 7}\n\n{"references": ["r", "s"], "candidate": ""}\n',
    )
    assert read_pairs(path) == {"references": [["r"], ["r", "s"]], "candidates": ["c", ""]}


def test_read_pairs_with_sources(tmp_path):
    path = write(tmp_path / "pairs.jsonl", b'{"reference": "r", "candidate": "c", "source": "s"}\n')
    assert read_pairs(path) == {"references": [["r"]], "candidates": ["c"], "sources": ["s"]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[" * 100_000, "line 2: not JSON"),
        ('["r", "c"]', "line 2: expected a JSON object, found list"),
        ('{"reference": "r"}', "line 2: candidate must be a string, found null"),
        ('{"candidate": "c"}', 'line 2: needs one of "reference" and "references"'),
        ('{"candidate": "c", "reference": "r", "references": ["r"]}', 'needs one of "reference" and "references"'),
        ('{"candidate": "c", "references": []}', '"references" must be a list of at least one string'),
        ('{"candidate": "c", "references": "r"}', '"references" must be a list of at least one string'),
        ('{"candidate": "c", "references": ["r", 3]}', "reference 1 must be a string, found 3"),
        ('{"candidate": 1.5, "reference": "r"}', "candidate must be a string, found 1.5"),
        ('{"candidate": "c", "reference": "r", "source": ["s"]}', r"source must be a string, found \[\"s\"\]"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, message):
    path = write(tmp_path / "pairs.jsonl", b'{"reference": "r", "candidate": "c"}\n' + line.encode())
    with pytest.raises(ValueError, match=rf"pairs\.jsonl, .*{message}|pairs\.jsonl, {message}"):
        read_pairs(path)


def test_sources_in_some_lines_only(tmp_path):
    records = [{"reference": "r", "candidate": "c", "source": "s"}, {"reference": "r", "candidate": "c"}]
    path = write(tmp_path / "pairs.jsonl", "\n".join(map(json.dumps, records)).encode())
    with pytest.raises(ValueError, match='record 2 has no "source" but others have one'):
        read_pairs(path)
