"""Parallel text: with and without names of columns, and what is wrong with it."""

from __future__ import annotations

import gzip
import json

import pytest

from bleurt_repro.datasets_builders.pseudo_labels import read_pairs

PAIRS = [{"source": "Hi", "reference": "Hallo"}, {"source": "Bye", "reference": "Tschau"}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.tsv", "Hi\tHallo\nBye\tTschau\n"),
        ("p.tsv", "reference\tsource\nHallo\tHi\nTschau\tBye\n"),
        ("p.tsv.gz", "Hi\tHallo\nBye\tTschau\n"),
        ("p.csv", "source,reference\nHi,Hallo\nBye,Tschau\n"),
        ("p.jsonl", "".join(json.dumps(pair) + "\n" for pair in PAIRS)),
    ],
)
def test_forms(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    assert read_pairs(str(path), False, None) == PAIRS
    assert read_pairs(str(path), False, 1) == PAIRS[:1]


@pytest.mark.parametrize(
    ("content", "with_candidates", "message"),
    [
        ("Hi\tHallo\n", True, "line 1: no candidate; add a column of hypotheses, or make them with --translator"),
        ("Hi\tHallo\n\tHm\n", False, "line 2: no source"),
        ("", False, "no records; expected source and reference"),
    ],
)
def test_input_at_fault(tmp_path, content, with_candidates, message):
    (tmp_path / "p.tsv").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_pairs(str(tmp_path / "p.tsv"), with_candidates, None)


def test_hypotheses_need_no_sources(tmp_path):
    (tmp_path / "p.jsonl").write_text('{"reference": "Hello", "candidate": "Hi"}\n')
    assert read_pairs(str(tmp_path / "p.jsonl"), True, None) == [
        {"source": "", "reference": "Hello", "candidate": "Hi"}
    ]
