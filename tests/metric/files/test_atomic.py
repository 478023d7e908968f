"""Atomic writing: whole or as it was before."""

from __future__ import annotations

import os

import pytest

from bleurt_repro.metric.files.writing import write_bytes, write_text


def test_text_is_utf8_without_translated_line_ends(tmp_path):
    write_text(tmp_path / "file", "caf\u00e9\nend\n")
    assert (tmp_path / "file").read_bytes() == b"caf\xc3\xa9\nend\n"
    write_bytes(tmp_path / "file", b"\x00")
    assert (tmp_path / "file").read_bytes() == b"\x00"


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_text(path, "before")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_text(path, "after")
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]
