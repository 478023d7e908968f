"""Kill a job before its file operations, in forks of this process."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

# The interpreter announces these before it makes, opens for writing, renames, links or removes something.
OPERATIONS = ("os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "os.truncate", "os.chmod")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
KILLED, FAILED = 9, 1


def kill_at_every_operation(job: Callable[[], Any], step: int = 1) -> Iterator[int]:
    """Run a job in forks that end before its first file operation, before the one `step` later, and so on.

    Yields:
        the number of the operation that was not done any more; the caller looks at what is there.
    """
    for number in range(0, 500, step):
        code = run_to_its_end(job, number)
        if code == 0:
            return
        assert code == KILLED, f"the job failed at operation {number}"
        yield number
    raise AssertionError("the job has more than 500 file operations")


def run_to_its_end(job: Callable[[], Any], number: int | None = None) -> int:
    """Run a job in a fork, which ends before its file operation of that number; return its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # a collection in the child would copy all the parent's memory
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    remaining = number

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal remaining
        if event in OPERATIONS or (event == "open" and arguments[2] is not None and arguments[2] & WRITING):
            if remaining == 0:
                os._exit(KILLED)
            remaining -= 1

    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if number is not None:
            sys.addaudithook(count)
        job()
    except BaseException:
        traceback.print_exc()
        os._exit(FAILED)
    os._exit(0)
