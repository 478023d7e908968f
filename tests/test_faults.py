"""Full disks, folders that cannot be written, a clock that jumps: one clear error, nothing half written, nothing lost."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time

import pytest
from datasets import Features, Value

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.datasets_builders.ratings.export import write_splits
from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.make import make_synthetic_pairs
from bleurt_repro.metric.bulk import scoring as module
from bleurt_repro.metric.bulk.scoring import score_files
from bleurt_repro.metric.convert.convert import convert
from bleurt_repro.metric.files.writing import write_bytes
from bleurt_repro.metric.forward.score_cache import ScoreCache
from bleurt_repro.training.combine import average_scorers
from tests.bleurt_pytorch_ports import make_port
from tests.tiny_teachers import SENTENCES

FEATURES = Features({"candidate": Value("string")})


@pytest.fixture
def pairs(tmp_path):
    rows = [{"reference": f"the cat sat {n}", "candidate": f"a dog sat {n}"} for n in range(400)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(tmp_path / "pairs.jsonl")


@pytest.fixture
def score(pairs, tiny_scorer, monkeypatch):
    monkeypatch.setitem(module.WINDOWS, "cpu", 20)
    texts = {"references": None, "candidates": None, "sources": None, "pairs": pairs}
    options = {"as_json": False, "aggregate": "max", "scorer_options": {"checkpoint": str(tiny_scorer)}}
    return lambda output: score_files(**texts, **options, output=str(output))


@pytest.fixture
def port(tmp_path):
    make_port(tmp_path / "port")
    return str(tmp_path / "port")


@pytest.fixture
def recipe(tiny_teachers):
    few = {"beam_size": 1, "max_masks": 2, "unit_segments": 2, "segments_per_part": 2}
    return SyntheticConfig(device="cpu", **few).with_options(**tiny_teachers.options())


def fill(folder, room: int) -> None:
    """Leave so many bytes."""
    status = os.statvfs(folder)
    (folder / "filler").write_bytes(b"\0" * max(0, status.f_bavail * status.f_frsize - room))


@pytest.mark.filterwarnings("ignore:going on with")
def test_scoring_to_a_full_disk_keeps_what_was_scored_and_goes_on(score, small_disk, tmp_path):
    score(tmp_path / "whole.txt")
    fill(small_disk, 8 << 10)
    with pytest.raises(OSError, match=r"No space left on device: '.*scores\.txt") as caught:
        score(small_disk / "scores.txt")
    assert caught.value.errno == errno.ENOSPC and not (small_disk / "scores.txt").exists()
    done = json.loads((small_disk / ".scores.txt.partial.json").read_text())["counts"]["records"]
    assert 0 < done < 400
    (small_disk / "filler").unlink()
    score(small_disk / "scores.txt")
    assert (small_disk / "scores.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()


def writers(tmp_path, tiny_scorer, port):
    """Each writer with the file or folder that it writes."""
    return {
        "one file": lambda place: write_bytes(place / "new", b"x" * 50_000),
        "splits": lambda place: write_splits({"train": [{"candidate": "x" * 50_000}]}, FEATURES, place / "new"),
        "parquet": lambda place: write_splits(
            {"train": [{"candidate": os.urandom(40_000).hex()}]}, FEATURES, place / "new", "parquet"
        ),
        "average": lambda place: average_scorers([str(tiny_scorer)] * 2, place / "new"),
        "conversion": lambda place: convert(port, str(place / "new")),
        "cache": lambda place: BleurtScorer(str(tiny_scorer), device="cpu", cache=place / "new").score(
            references=[f"the cat {n}" for n in range(2000)], candidates=["a dog"] * 2000
        ),
        "graph": lambda place: BleurtScorer(str(tiny_scorer), backend="onnx").score(
            references=["a"], candidates=["b"]
        ),
    }


NAMES = ["one file", "splits", "parquet", "average", "conversion", "cache"]


@pytest.mark.parametrize("name", [*NAMES, pytest.param("graph", marks=pytest.mark.long)])
def test_a_full_disk_is_named_and_nothing_is_half_written(
    name,
    small_disk,
    tiny_scorer,
    port,
    tmp_path,
    monkeypatch,
):
    if name == "graph":
        pytest.importorskip("onnxscript", reason="needs the onnx extra")
        monkeypatch.setenv("BLEURT_REPRO_CACHE", str(small_disk / "new"))
    fill(small_disk, 16 << 10)
    write = writers(tmp_path, tiny_scorer, port)[name]
    with pytest.raises(OSError, match=r"(No space left on device|full).*new|new.*(No space left on device|full)"):
        write(small_disk)
    left = [path for path in small_disk.rglob("*") if path.is_file() and path.name != "filler"]
    assert all(path.suffix in (".sqlite", ".json") or ".sqlite" in path.name for path in left), left
    (small_disk / "filler").unlink()
    write(small_disk)


@pytest.mark.long
def test_synthetic_pairs_on_a_full_disk_go_on(small_disk, recipe, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(SENTENCES[:6]))
    make_synthetic_pairs(str(tmp_path / "text.txt"), tmp_path / "whole", recipe)
    fill(small_disk, 28 << 10)
    with pytest.raises(OSError, match=r"No space left on device: '.*pairs/"):
        make_synthetic_pairs(str(tmp_path / "text.txt"), small_disk / "pairs", recipe)
    (small_disk / "filler").unlink()
    make_synthetic_pairs(str(tmp_path / "text.txt"), small_disk / "pairs", recipe)
    parts = sorted((tmp_path / "whole" / "data").iterdir())
    assert len(parts) == 3
    for part in parts:
        assert (small_disk / "pairs" / "data" / part.name).read_bytes() == part.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_cannot_be_written_is_named(name, small_disk, tiny_scorer, port, tmp_path):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(OSError, match="new") as caught:
        writers(tmp_path, tiny_scorer, port)[name](small_disk)
    assert "Read-only" in str(caught.value) or "cannot be used" in str(caught.value)


@pytest.mark.parametrize("words", [["score"], ["score", "--json"]])
def test_the_command_says_so_in_one_line(words, small_disk, pairs, tiny_scorer, capsys):
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(SystemExit) as stop:
        main([*words, "--pairs", pairs, "--checkpoint", str(tiny_scorer), "--output", str(small_disk / "scores.txt")])
    said = capsys.readouterr().err
    assert stop.value.code == 2 and said.count("\n") == 1 and "scores.txt" in said and "Read-only" in said


@pytest.mark.filterwarnings("ignore:going on with")
@pytest.mark.parametrize("years", [-20, 20])
def test_a_clock_that_jumps_changes_nothing(years, score, tmp_path, monkeypatch):
    """No file is taken for newer or older than another: what counts is what they hold."""
    score(tmp_path / "whole.txt")
    compute, done = BleurtScorer.compute_quietly, []
    with monkeypatch.context() as patch:
        patch.setattr(
            BleurtScorer,
            "compute_quietly",
            lambda self, **texts: done.append(1) or (compute(self, **texts) if len(done) < 9 else 1 / 0),
        )
        with pytest.raises(ZeroDivisionError):
            score(tmp_path / "scores.txt")
    jumped = time.time() + years * 365 * 86_400
    for path in tmp_path.rglob("*"):
        os.utime(path, (jumped, jumped))
    monkeypatch.setattr(time, "time", lambda: jumped)
    score(tmp_path / "scores.txt")
    assert (tmp_path / "scores.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()


def test_what_no_disk_was_asked_for_stays_another_error(tmp_path):
    with pytest.raises(TypeError):
        write_bytes(tmp_path / "new", "text")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_cache_in_a_file_of_that_name_is_named(tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(OSError, match="cache"):
        ScoreCache(tmp_path / "cache", "settings")
