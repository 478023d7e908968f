"""A full disk, and a checkpoint of another size: one clear error each, and what was saved stays."""

from __future__ import annotations

import errno
import shutil

import pytest

from bleurt_repro.training.run import disk_full_context, last_checkpoint
from tests.conftest import make_tiny_scorer
from tests.disks import resize
from tests.tiny_training import finetune, options

STEPS = {
    "--max_steps": "4", "--eval_steps": "2", "--save_steps": "2", "--disable_tqdm": "true", "--keep_checkpoints": "true",
}  # fmt: skip


@pytest.mark.long
def test_a_real_full_disk_keeps_the_last_checkpoint_and_the_run_goes_on(ratings, small_disk, tmp_path):
    start = make_tiny_scorer(tmp_path / "start", spread=0.05)
    arguments = options({"--model": str(start)}, {**ratings, "--output_dir": str(small_disk)}, STEPS)
    finetune(arguments)
    first = sum(file.stat().st_size for file in (small_disk / "checkpoint-2").iterdir())
    for path in small_disk.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    resize(small_disk, f"{first * 3 // 2 // 1024}k")
    with pytest.raises(OSError, match="is full; checkpoint-2 is complete: make room and add --resume") as caught:
        finetune(arguments)
    assert caught.value.errno == errno.ENOSPC
    assert last_checkpoint(small_disk)[0] == small_disk / "checkpoint-2"
    resize(small_disk, "64m")
    finetune([*arguments, "--resume", "true"])
    assert (small_disk / "model.safetensors").is_file()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("unexpected pos")])
def test_whatever_the_libraries_raise(tmp_path, monkeypatch, error):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 100, 0))
    with pytest.raises(OSError, match="is full; nothing was saved yet"), disk_full_context(tmp_path):
        raise error


def test_other_errors_stay_what_they_are(tmp_path):
    with pytest.raises(RuntimeError, match="^a bug$"), disk_full_context(tmp_path):
        raise RuntimeError("a bug")


def test_going_on_from_a_model_of_another_size(ratings, tmp_path):
    for name, wide in (("start", 32), ("other", 64)):
        make_tiny_scorer(tmp_path / name, spread=0.05, width=wide)
    finetune(options({"--model": str(tmp_path / "start")}, ratings, STEPS))
    (tmp_path / "out" / "run.json").unlink()  # else it is the model's hash that differs
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.safetensors")}
    with pytest.raises(ValueError, match="checkpoint-4 is of a model of another size"):
        finetune(options({"--model": str(tmp_path / "other"), "--resume": "true"}, ratings, STEPS))
    assert before == {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.safetensors")}
