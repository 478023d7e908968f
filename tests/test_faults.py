"""Full disks and folders that cannot be written: one clear error that names the file, nothing half written, nothing lost."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess

import pytest
from datasets import Features, Value

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.datasets_builders.ratings.export import write_splits
from bleurt_repro.metric.bulk import scoring as module
from bleurt_repro.metric.bulk.resumable_output import PartialOutput
from bleurt_repro.metric.bulk.scoring import score_files
from bleurt_repro.metric.files.writing import write_bytes
from bleurt_repro.metric.forward.score_cache import ScoreCache
from bleurt_repro.metric.options import ScoreOptions
from bleurt_repro.training.combine import average_scorers

FEATURES = Features({"candidate": Value("string")})


@pytest.fixture
def pairs(tmp_path):
    rows = [{"reference": f"the cat sat {n}", "candidate": f"a dog sat {n}"} for n in range(400)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(tmp_path / "pairs.jsonl")


@pytest.fixture
def score(pairs, tiny_scorer, monkeypatch):
    monkeypatch.setitem(module.WINDOWS, "cpu", 20)
    return lambda output: score_files(ScoreOptions(str(tiny_scorer)), pairs=pairs, output=str(output))


def fill(folder, room: int) -> None:
    """Leave so many bytes."""
    status = os.statvfs(folder)
    (folder / "filler").write_bytes(b"\0" * max(0, status.f_bavail * status.f_frsize - room))


@pytest.mark.filterwarnings("ignore:resuming")
def test_scoring_to_a_full_disk_keeps_what_was_scored_and_resumes(score, small_disk, tmp_path):
    score(tmp_path / "whole.txt")
    fill(small_disk, 8 << 10)
    with pytest.raises(OSError, match=r"No space left on device: '.*scores\.txt") as caught:
        score(small_disk / "scores.txt")
    assert caught.value.errno == errno.ENOSPC and not (small_disk / "scores.txt").exists()
    count = json.loads((small_disk / ".scores.txt.partial.json").read_text())["counts"]["records"]
    assert 0 < count < 400
    (small_disk / "filler").unlink()
    score(small_disk / "scores.txt")
    assert (small_disk / "scores.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()


@pytest.mark.parametrize("size", [7_000, 9_000, 70_000])
def test_a_disk_that_fills_while_lines_are_buffered_is_named(small_disk, size):
    """What is still in the buffer after the error is written again when the file is closed."""
    fill(small_disk, 4 << 10)
    with (
        pytest.raises(OSError, match=r"No space left on device: '.*scores\.txt"),
        contextlib.closing(PartialOutput(small_disk / "scores.txt", {})) as partial,
    ):
        partial.add("x" * size, records=1)
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


def writers(tmp_path, tiny_scorer):
    """Each way to write, by the file or folder that is written."""
    parquet = {"train": [{"candidate": os.urandom(40_000).hex()}]}
    return {
        "file": lambda folder: write_bytes(folder / "new", b"x" * 50_000),
        "folder": lambda folder: write_splits(parquet, FEATURES, folder / "new", "parquet"),
        "checkpoint": lambda folder: average_scorers([str(tiny_scorer)] * 2, folder / "new"),
        "cache": lambda folder: BleurtScorer(str(tiny_scorer), device="cpu", cache=folder / "new").score(
            references=[f"the cat {n}" for n in range(2000)], candidates=["a dog"] * 2000
        ),
    }


NAMES = ["file", "folder", "checkpoint", "cache"]


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_is_named_and_nothing_is_half_written(name, small_disk, tiny_scorer, tmp_path):
    fill(small_disk, 16 << 10)
    write = writers(tmp_path, tiny_scorer)[name]
    with pytest.raises(OSError, match=r"(No space left on device|full).*new|new.*(No space left on device|full)"):
        write(small_disk)
    left = [path for path in small_disk.rglob("*") if path.is_file() and path.name != "filler"]
    assert all(path.suffix in (".sqlite", ".json") or ".sqlite" in path.name for path in left), left
    (small_disk / "filler").unlink()
    write(small_disk)


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_cannot_be_written_is_named(name, small_disk, tiny_scorer, tmp_path):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(OSError, match="new") as caught:
        writers(tmp_path, tiny_scorer)[name](small_disk)
    assert "Read-only" in str(caught.value) or "cannot be used" in str(caught.value)


@pytest.mark.parametrize("command", [["score"], ["score", "--json"]])
def test_the_command_says_so_in_one_line(command, small_disk, pairs, tiny_scorer, capsys):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(SystemExit) as stop:
        main(
            [*command, "--pairs", pairs, "--checkpoint", str(tiny_scorer), "--output", str(small_disk / "scores.txt")]
        )
    stderr = capsys.readouterr().err
    assert stop.value.code == 2 and stderr.count("\n") == 1 and "scores.txt" in stderr and "Read-only" in stderr


def test_a_cache_in_a_file_of_that_name_is_named(tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(OSError, match="cache"):
        ScoreCache(tmp_path / "cache", "settings")
