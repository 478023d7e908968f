"""Files are replaced whole, folders are complete or lack the file that marks them, and what killed runs left is removed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bleurt_repro.metric.files.writing import (
    atomic_folder,
    temporary_folder,
    validate_output,
    validate_output_folder,
    write_bytes,
    write_text,
)
from tests.killed import KILLED, kill_at_every_operation, run_to_its_end

NAMES = ("train.jsonl", "validation.jsonl", "README.md")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of itself")


def write(folder: Path, text: str) -> None:
    with atomic_folder(folder, last="README.md") as unfinished:
        for name in NAMES:
            write_text(unfinished / name, text)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()} if folder.is_dir() else {}


@pytest.fixture
def old(tmp_path) -> Path:
    """Return a folder of an earlier run, with files of its user."""
    folder = tmp_path / "set"
    write(folder, "old")
    (folder / "notes.txt").write_text("mine")
    (folder / "plots").mkdir()
    (folder / "plots/a.png").write_text("mine, too")
    return folder


def test_text_is_utf8_without_translated_line_ends(tmp_path):
    write_text(tmp_path / "file", "caf\u00e9\nend\n")
    assert (tmp_path / "file").read_bytes() == b"caf\xc3\xa9\nend\n"
    write_bytes(tmp_path / "file", b"\x00")
    assert (tmp_path / "file").read_bytes() == b"\x00" and list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    write_text(tmp_path / "file", "before")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_text(tmp_path / "file", "after")
    assert contents(tmp_path) == {"file": "before"}


def test_new_files_replace_old_ones_and_others_stay(old):
    write(old, "new")
    assert contents(old) == {**dict.fromkeys(NAMES, "new"), "notes.txt": "mine"}
    assert (old / "plots/a.png").read_text() == "mine, too"
    assert [path.name for path in old.parent.iterdir()] == ["set"]


def test_folders_are_replaced_and_old_files_of_a_pattern_removed(old):
    with atomic_folder(old, last="README.md", replaced=("*.jsonl",)) as unfinished:
        write_text(unfinished / "train.jsonl", "new")
        (unfinished / "plots").mkdir()
        (unfinished / "plots/b.png").write_text("new")
    assert contents(old) == {"train.jsonl": "new", "notes.txt": "mine"}  # the old README.md described other files
    assert [path.name for path in (old / "plots").iterdir()] == ["b.png"]


def test_an_error_leaves_the_old_files(old):
    with pytest.raises(OSError, match=r"No space left on device: '.*set"), atomic_folder(old, last="README.md") as new:
        write_text(new / "train.jsonl", "new")
        raise OSError(28, "No space left on device")
    assert contents(old) == {**dict.fromkeys(NAMES, "old"), "notes.txt": "mine"}
    assert sorted(path.name for path in old.iterdir()) == sorted([*NAMES, "notes.txt", "plots"])


@needs_fork
@pytest.mark.long
def test_a_folder_of_a_killed_run_is_whole_or_lacks_its_mark(tmp_path):
    folder = tmp_path / "set"
    states = []
    for number in kill_at_every_operation(lambda: write(folder, "new")):
        texts = contents(folder)
        states.append({*texts.values()} if "README.md" in texts else None)
        assert "README.md" not in texts or texts.keys() == {*NAMES}, number
        if folder.is_dir():  # the next run may write here without --overwrite, whatever is missing
            validate_output_folder(folder, [], ["README.md"])
        write(folder, "old")
        assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES), f"left by the run killed at {number}"
    assert None in states and {"new"} in states and all(state in (None, {"old"}, {"new"}) for state in states)


@needs_fork
def test_what_a_killed_run_left_is_removed_and_what_a_running_one_uses_is_not(tmp_path):
    path = tmp_path / "scores.txt"
    (tmp_path / ".scores.txt.draft.tmp").mkdir()  # of the user's

    def killed():
        with temporary_folder(path) as folder:
            (folder / "half").write_text("h")
            os._exit(KILLED)

    with temporary_folder(path) as running:
        assert run_to_its_end(killed) == KILLED and len(list(tmp_path.iterdir())) == 3
        write_text(path, "whole")
        assert {*tmp_path.iterdir()} == {running, path, tmp_path / ".scores.txt.draft.tmp"}


def test_an_output_in_a_folder_that_does_not_exist_is_refused_by_name(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"output .*new/scores.txt is in a folder that does not exist: make .*new"
    ):
        validate_output(str(tmp_path / "new" / "scores.txt"), [], re.compile(b"x"))
