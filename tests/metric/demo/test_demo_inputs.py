"""What the demo takes from boxes and files, and its errors for what it cannot take."""

from __future__ import annotations

import gradio as gr
import pytest

from bleurt_repro.metric.demo import visitor_input as limits
from bleurt_repro.metric.demo.live_results import error_html, message_of
from bleurt_repro.metric.demo.visitor_input import lines_of, read_upload, segments_of, shown_to_programs


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, []), (" \n", []), ("one\ntwo\n\n", ["one", "two"]), ("one\n\ntwo", ["one", "", "two"])],
)
def test_lines_of_a_box(text, expected):
    assert lines_of(text) == expected


def test_a_file_counts_before_the_box(tmp_path):
    path = tmp_path / "refs.jsonl"
    path.write_text('{"references": ["a", "b"]}\n')
    assert segments_of("typed", str(path), "references", "Reference") == [["a", "b"]]
    assert segments_of("typed\r\ntoo", None, "references", "Reference") == ["typed", "too"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.exe", b"one\n", "a.exe: expected a file ending in .txt"),
        ("a.txt", b"", "a.txt: expected at least one candidate, found none"),
        ("a.txt", b"x\n" * (limits.SEGMENTS + 1), "a.txt: expected at most 1,000 segments, found 1,001"),
        ("a.csv", b"x\n1\n", "a.csv, line 1: expected a header with a column 'candidate'"),
        ("a.txt", b"\xff", "a.txt, line 1: not UTF-8"),
    ],
)
def test_a_bad_file_is_named_as_the_visitor_names_it(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError) as error:
        read_upload(str(tmp_path / name), "candidates")
    assert str(error.value).startswith(message)
    assert str(tmp_path) not in str(error.value)


def test_nothing_given_is_an_error():
    with pytest.raises(ValueError, match="System A is empty"):
        segments_of("", None, "candidates", "System A")


def test_an_error_is_escaped():
    error = ValueError("found '<img src=x onerror=alert(1)>'")
    escaped = "Found '&lt;img src=x onerror=alert(1)&gt;'"
    assert error_html(error) == f'<p class="note error">{escaped}</p>'
    with pytest.raises(gr.Error) as raised, shown_to_programs():
        raise error
    assert raised.value.message == escaped
    with pytest.raises(KeyError), shown_to_programs():
        raise KeyError("a fault of the program is none of the visitor's")


def test_an_error_that_names_a_file_keeps_its_name():
    assert message_of(ValueError("a.csv, line 1: wrong")) == "a.csv, line 1: wrong"


@pytest.mark.parametrize(
    ("references", "texts", "message"),
    [
        (["r"] * 9, ["c"], "at most 8 references"),
        (["r"], ["c" * 5001], "at most 5,000 characters, found one of 5,001"),
    ],
)
def test_a_pair_has_limits(references, texts, message):
    with pytest.raises(ValueError, match=message):
        limits.check_pair(references, texts)


@pytest.mark.parametrize(
    ("references", "count", "message"),
    [
        ([["r"]] * 1001, 1001, "at most 1,000 segments, found 1,001"),
        ([["r"] * 5] * 500, 500, "at most 4,000 pairs of candidate and reference, found 5,000"),
        ([["r" * 5001]], 1, "at most 5,000 characters"),
    ],
)
def test_a_comparison_has_limits(references, count, message):
    with pytest.raises(ValueError, match=message):
        limits.check_comparison(references, {"A": ["c"] * count, "B": ["c"] * count})
