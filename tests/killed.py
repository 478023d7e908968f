"""Kill a job before each of its file operations, and look at what it leaves."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

# The interpreter announces these before it makes, opens for writing, renames, links or removes something.
OPERATIONS = ("os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "os.truncate", "os.chmod")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
KILLED, FAILED = 9, 1
MOST = 2_000

Contents = dict[str, bytes]


@dataclass
class Job:
    """A command that writes.

    Attributes:
        new: its words; "OUT" stands for the folder of the outputs.
        old: words of the command that writes what is there before; None where the command starts from nothing.
        between: what is done to the folder of the outputs after the old command.
        working: patterns of what is no output but the command's own work, such as parts that a later run continues with.
        reduce: makes what depends on time of a file's content equal; by its path.
        once: whether the command refuses to write over its own outputs.
        environment: variables of its own.
    """

    new: list[str]
    old: list[str] | None = None
    between: Callable[[Path], None] = lambda folder: None
    working: tuple[str, ...] = ()
    reduce: Callable[[str, bytes], bytes] = lambda name, content: content
    once: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, words: list[str] | None, folder: Path) -> None:
        """Run a command of the job, in a process of its own."""
        os.environ.update({name: value.replace("OUT", str(folder)) for name, value in self.environment.items()})
        command(words, folder)

    def contents(self, folder: Path) -> Contents:
        """Return the outputs in a folder."""
        found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
        return {
            name: self.reduce(name, path.read_bytes())
            for name, path in sorted(found.items())
            if not is_hidden(name) and not any(fnmatch(name, pattern) for pattern in self.working)
        }


@dataclass
class Count:
    """Kills of a job: in all, and after how many the old outputs were there, after how many the new ones."""

    kills: int = 0
    old: int = 0
    new: int = 0


def is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in Path(name).parts)


def listing(folder: Path) -> set[str]:
    """Name all that is in a folder, and links as such."""
    return {f"{path.relative_to(folder)}{' (link)' if path.is_symlink() else ''}" for path in folder.rglob("*")}


def state(folder: Path) -> frozenset[str]:
    """Name all that is in a folder, with the sizes of files; of whatever process it is."""
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    named = {f"{name} {sizes.get(folder / name.removesuffix(' (link)'))}" for name in listing(folder)}
    return frozenset(re.sub(r"-\d+(\.\w+)?\.tmp", "-PROCESS.tmp", name) for name in named)


def kill_command(job: Job, place: Path, every: int = 1) -> Count:
    """Kill a command before each file operation, each time from the same start; after each kill, run it to its end.

    Args:
        job: the command.
        place: an empty folder to work in.
        every: kill before every so-manieth operation only.

    Returns:
        the kills.

    Raises:
        AssertionError: if outputs are neither old nor new, or of both, or something is left after the next run.
    """
    folder, before, first = place / "OUT", place / "before", place / "first"
    for made in (folder, first):
        made.mkdir()
    for words in (job.old, job.new):
        if words is not None:  # in this process, so that those below need not import what it takes
            job.run(words, first)
            job.between(first)
    if job.old is not None:
        assert run_to_its_end(lambda: job.run(job.old, folder)) == 0, job.old
        job.between(folder)
    old = job.contents(folder)
    shutil.copytree(folder, before, symlinks=True)
    assert run_to_its_end(lambda: job.run(job.new, folder)) == 0, job.new
    new, there = job.contents(folder), listing(folder)
    assert old != new
    count, seen = Count(), set()
    for number in range(0, MOST, every):
        shutil.rmtree(folder)
        shutil.copytree(before, folder, symlinks=True)
        code = run_to_its_end(lambda: job.run(job.new, folder), number)
        if code == 0:
            assert job.contents(folder) == new
            return count
        assert code == KILLED, f"the command failed at operation {number}"
        found = job.contents(folder)
        differing = sorted(
            name for name in {*found, *old, *new} if found.get(name) not in (old.get(name), new.get(name))
        )
        assert found in (old, new), f"neither old nor new at operation {number}: {differing or which(found, old, new)}"
        count.kills += 1
        count.old += found == old
        count.new += found != old
        if (left := (state(folder), tuple(found.values()))) in seen:
            continue  # nothing was done here since the kill before
        seen.add(left)
        code = run_to_its_end(lambda: job.run(job.new, folder))
        assert code == 0 or (job.once and found == new), f"it fails after the kill at operation {number}"
        again = job.contents(folder)
        others = sorted(name for name in {*again, *new} if again.get(name) != new.get(name))
        assert not others, f"another result after the kill at operation {number}: {others}"
        assert listing(folder) == there, f"left after operation {number}: {sorted(listing(folder) ^ there)}"
    raise AssertionError(f"the command has more than {MOST} file operations")


def which(found: Contents, old: Contents, new: Contents) -> dict[str, str]:
    """Name for each file whether it is the old or the new one."""
    names = {*found, *old, *new}
    return {name: "old" if found.get(name) == old.get(name) else "new" for name in sorted(names)}


def command(words: list[str] | None, folder: Path) -> None:
    """Run the command line; an error of it is one here."""
    from bleurt_repro.cli import main

    assert words is not None
    try:
        main([word.replace("OUT", str(folder)) for word in words])
    except SystemExit as stop:
        if stop.code:
            raise RuntimeError(f"exit code {stop.code} of {' '.join(words)}") from None


def kill_at_every_operation(job: Callable[[], Any], most: int = 500) -> Iterator[int]:
    """Run a job in a fork that ends before its first file operation, then before its second, and so on.

    Args:
        job: what writes; it starts from what the previous run left.
        most: runs after which a job that never ends by itself is an error.

    Yields:
        the number of the operation that was not done any more; the caller looks at what is there.
    """
    for number in range(most):
        code = run_to_its_end(job, number)
        if code == 0:
            return
        assert code == KILLED, f"the job failed at operation {number}"
        yield number
    raise AssertionError(f"the job has more than {most} file operations")


def run_to_its_end(job: Callable[[], Any], number: int | None = None) -> int:
    """Run a job in a fork, which ends before its file operation of that number; return its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # a collection in the child would copy all the parent's memory
    child = os.fork()
    if not child:
        _run(job, number)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _run(job: Callable[[], Any], number: int | None) -> None:
    left = number

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in OPERATIONS or (event == "open" and arguments[2] is not None and arguments[2] & WRITING):
            if left == 0:
                os._exit(KILLED)
            left -= 1

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        if number is not None:
            sys.addaudithook(hook)
        job()
    except BaseException:
        traceback.print_exc()
        os._exit(FAILED)
    os._exit(0)
