"""Commands that write are killed before each of their file operations: what is there is old or new, whole, and is cleaned up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from bleurt_repro.metric.files.writing import written_together
from tests.jobs_that_write import JOBS, SHORT, Given
from tests.killed import Job, kill_at_every_operation, kill_command, listing

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of itself")


@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in JOBS]
)
def test_outputs_are_old_or_new_and_the_next_run_leaves_nothing(name, tmp_path):
    for folder in ("given", "place"):
        (tmp_path / folder).mkdir()
    job = JOBS[name](Given(tmp_path / "given"))
    count = kill_command(job, tmp_path / "place")
    assert count.old > 3 and count.new > 0, count


def test_a_mixture_is_seen(tmp_path):
    """The test's own test: a command that writes its two files one after the other."""
    words = "data roles --pairs 8 --output OUT/{0}.jsonl --seed {1}"

    class OneByOne(Job):
        def run(self, words, folder):
            for name in "ab":
                super().run([word.format(name, words[-1]) for word in words[:-1]], folder)

    job = OneByOne([*words.split(), "1"], [*words.split(), "2"])
    with pytest.raises(AssertionError, match=r"neither old nor new at operation .*'a.jsonl': 'new', 'b.jsonl': 'old'"):
        kill_command(job, tmp_path)


@pytest.mark.parametrize(
    ("there", "links"),
    [
        *(pytest.param(there, True, marks=pytest.mark.long) for there in ("ab", "a", "b", "")),
        *((there, False) for there in ("ab", "a", "b", "")),
    ],
)
def test_files_take_their_places_together(tmp_path, monkeypatch, links, there):
    if not links:
        monkeypatch.delattr(os, "symlink")
        monkeypatch.setattr(os, "symlink", refuse, raising=False)
    (tmp_path / "other").mkdir()
    paths = [tmp_path / "a", tmp_path / "other" / "b"]

    def write(text):
        with written_together(paths) as unfinished:
            for path in unfinished:
                path.write_text(text)

    def start():
        for path in paths:
            path.unlink(missing_ok=True)
            if path.name in there:
                path.write_text("old")

    def found():
        return [path.read_text() if path.exists() else None for path in paths]

    start()
    old, seen = found(), []
    for _ in kill_at_every_operation(lambda: write("new")):
        seen.append(found())
        write("next")
        assert found() == ["next", "next"] and listing(tmp_path) == {"a", "other", "other/b"}
        start()
    assert seen[0] == old and (["new", "new"] in seen)
    whole = [old, ["new", "new"]]
    assert (
        all(state in whole for state in seen) if links else all(state in whole or state[1] is None for state in seen)
    )


@pytest.mark.parametrize("seconds", [0.3, 1.0, 2.0])
def test_ctrl_c_at_start_up_ends_at_once_and_blames_nothing(seconds, tmp_path):
    """While libraries are imported and the checkpoint is opened."""
    # one batch: between nothing and all of its scores there is no state to leave
    (tmp_path / "texts.txt").write_text("a cat\n" * 50)
    words = ["score", "-r", "texts.txt", "-c", "texts.txt", "--output", "scores"]
    process = subprocess.Popen(
        [sys.executable, "-m", "bleurt_repro", *words],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        preexec_fn=heed_ctrl_c,
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode in (130, -signal.SIGINT, 0) and "error" not in said, said
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
    inside = "from bleurt_repro.cli import _ended_by_signals\nwith _ended_by_signals():\n    "
    words = [sys.executable, "-c"]
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 60, "preexec_fn": heed_ctrl_c}
    done = subprocess.run([*words, inside + "import heavy"], **options)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")
    done = subprocess.run([*words, f"import signal\n{inside}signal.raise_signal({int(number)})"], **options)
    assert done.returncode in (128 + number, -number)
    assert ("KeyboardInterrupt" in done.stderr) == (number == signal.SIGINT)


def heed_ctrl_c():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it


def refuse(*_, **__):
    raise OSError(1, "no links here")
