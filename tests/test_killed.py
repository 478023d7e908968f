"""A command that is killed while it writes: each file is old or new, and the next run finishes and cleans up."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from bleurt_repro.cli import main
from tests.conftest import make_tiny_scorer
from tests.killed import KILLED, run_to_its_end

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of itself")
# One command for each way to write: lines that are resumed, several files, a folder of data, a checkpoint.
COMMANDS = {
    "lines": "score -r r.txt -c {}.txt --checkpoint a --device cpu --no-progress --output OUT/scores",
    "several files": "compare -r r.txt -c r.txt {}.txt --checkpoint a --resamples 20 --no-progress -o OUT/c.json OUT/c.md",
    "data": "data ratings --input ratings.jsonl --output OUT/ratings --validation-ratio 0.3 --seed {}",
    "checkpoint": "average a b --output OUT/average --weight {} 9",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "r12":
        (tmp_path / f"{name}.txt").write_text(
            "".join(f"the cat sat {name if n % 2 else 'on'} {n}\n" for n in range(9))
        )
    rows = [{"reference": f"r {n}", "candidate": f"c {n}", "score": n} for n in range(20)]
    (tmp_path / "ratings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, spread in (("a", 0.3), ("b", 0.2)):
        make_tiny_scorer(tmp_path / name, spread=spread)
    (tmp_path / "OUT").mkdir()
    return tmp_path


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [*list(COMMANDS)[:3], pytest.param("checkpoint", marks=pytest.mark.long)])
def test_files_are_old_or_new_and_the_next_run_finishes(name, folder):
    def run(word):
        with pytest.raises(SystemExit) as stop:
            main(COMMANDS[name].format(word).split())
        assert not stop.value.code

    run("1")  # in this process, so that the forks need not import what it takes
    old = contents(folder / "OUT")
    shutil.copytree(folder / "OUT", folder / "before")
    run("2")
    new = contents(folder / "OUT")
    assert old.keys() == new.keys() and old != new
    states = []
    for number in range(0, 400, 3):
        shutil.rmtree(folder / "OUT")
        shutil.copytree(folder / "before", folder / "OUT")
        code = run_to_its_end(lambda: run("2"), number)
        if code == 0:
            break
        assert code == KILLED
        files = {path: text for path, text in contents(folder / "OUT").items() if "/." not in f"/{path}"}
        assert all(text in (old[path], new[path]) for path, text in files.items()), number
        states.append(files)
        assert run_to_its_end(lambda: run("2")) == 0, f"the run after the kill at {number} fails"
        assert contents(folder / "OUT") == new, number
    assert states[0] == old and len(states) > 2


def test_ctrl_c_at_start_up_ends_at_once_and_blames_nothing(tmp_path):
    """While libraries are imported and the checkpoint is opened."""
    # one batch: between nothing and all of its scores there is no state to leave
    (tmp_path / "texts.txt").write_text("a cat\n" * 50)
    command = ["score", "-r", "texts.txt", "-c", "texts.txt", "--output", "scores"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bleurt_repro", *command],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        preexec_fn=heed_ctrl_c,
    )
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    stderr = process.communicate(timeout=60)[1].decode()
    assert process.returncode in (130, -signal.SIGINT, 0) and "error" not in stderr, stderr
    left = {path.name: len(path.read_text().splitlines()) for path in tmp_path.iterdir()}
    # a fast machine has scored everything before the signal: all of it is there, or nothing
    assert left in ({"texts.txt": 50}, {"texts.txt": 50, "scores": 50})
    assert process.returncode != 0 or "scores" in left


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_an_import_raises_nothing(number, tmp_path):
    """Compiled libraries abort when an exception passes through their initialisation."""
    (tmp_path / "heavy.py").write_text(
        f"import signal\ntry:\n    signal.raise_signal({int(number)})\nexcept BaseException:\n    print('raised')\n    raise\n"
    )
    code = "from bleurt_repro.cli import _exit_on_signals\nwith _exit_on_signals():\n    import heavy"
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 60, "preexec_fn": heed_ctrl_c}
    run = subprocess.run([sys.executable, "-c", code], **options)
    assert (run.returncode, run.stdout, run.stderr) == (128 + number, "", "")


def heed_ctrl_c():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
