"""Kill a job before each of its file operations, in forks of this process."""

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
