"""A command that is killed while it writes: each file is old or new, and the next run finishes and cleans up.

Folders of data are killed in test_export.py and test_pseudo_labels.py, checkpoints in test_save.py.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from bleurt_repro.cli import main
from tests.killed import kill_at_every_operation, run_to_its_end

# One command for each way to write: lines that are resumed, and several files.
COMMANDS = {
    "lines": "score -r r.txt -c {}.txt --checkpoint CHECKPOINT --device cpu --no-progress --output OUT/scores",
    "several files": "compare -r r.txt -c r.txt {}.txt --checkpoint CHECKPOINT --resamples 20 --no-progress "
    "-o OUT/c.json OUT/c.csv",
}


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of itself")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.long
def test_files_are_old_or_new_and_the_next_run_finishes(command, tmp_path, monkeypatch, tiny_scorer):
    monkeypatch.chdir(tmp_path)
    for name in "r12":
        lines = [f"the cat sat {name if n % 2 else 'on'} {n}\n" for n in range(9)]
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    (tmp_path / "OUT").mkdir()

    def run(name):
        with pytest.raises(SystemExit) as stop:
            main(command.format(name).replace("CHECKPOINT", str(tiny_scorer)).split())
        assert not stop.value.code

    run("1")  # in this process, so that the forks need not import anything
    old = contents(tmp_path / "OUT")
    shutil.copytree(tmp_path / "OUT", tmp_path / "before")
    run("2")
    new = contents(tmp_path / "OUT")
    assert old.keys() == new.keys() and old != new

    def restore():
        shutil.rmtree(tmp_path / "OUT")
        shutil.copytree(tmp_path / "before", tmp_path / "OUT")

    states = []
    restore()
    for number in kill_at_every_operation(lambda: run("2"), step=3):
        files = {path: text for path, text in contents(tmp_path / "OUT").items() if "/." not in f"/{path}"}
        assert all(text in (old[path], new[path]) for path, text in files.items()), number
        states.append(files)
        assert run_to_its_end(lambda: run("2")) == 0, f"the run after the kill at {number} fails"
        assert contents(tmp_path / "OUT") == new, number
        restore()
    assert states[0] == old and len(states) > 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_an_import_raises_nothing(number, tmp_path):
    """Compiled libraries abort when an exception passes through their initialisation."""
    (tmp_path / "heavy.py").write_text(
        f"import signal\ntry:\n    signal.raise_signal({int(number)})\nexcept BaseException:\n    print('raised')\n    raise\n"
    )
    # a job in the background ignores Ctrl-C
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from bleurt_repro.cli import _exit_on_signals\nwith _exit_on_signals():\n    import heavy"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (128 + number, "", "")
