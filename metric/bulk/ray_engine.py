"""Ray Data: scoring files and making pairs on all cores of a machine or of a cluster (the extra `ray`).

The work is cut into pieces, windows of records or parts of segments, and what Ray is given are the numbers of their first
and last items alone. Workers, each with models of its own, read the items from the input themselves and return results,
which arrive in the order of the pieces: so memory does not grow with the input. Ray starts a worker that died again and
repeats the pieces that it had not finished.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from bleurt_repro.metric.install import install_hint
from bleurt_repro.metric.options import positive

ENGINES = ("local", "ray")
# Results wait there until they are written, and are small: Ray's own default is a third of the memory.
OBJECT_STORE = 256 * 2**20
# A piece that ends its worker each time, for want of memory for example, must not be repeated for ever.
RETRIES = 5
HOST_AND_PORT = re.compile(r"([^/\[\]]+):(\d+)")
REACHED = 20  # seconds in which a cluster answers

Item = TypeVar("Item")


@dataclass(frozen=True)
class RayEngine:
    """Where pieces of work are done.

    Attributes:
        address: of a Ray cluster, or "auto" for the one that $RAY_ADDRESS names or that runs on this machine; None starts a
            Ray on this machine's cores, which ends with the work.
        workers: processes with models of their own; by default one a GPU, or one a core if there are none.
    """

    address: str | None = None
    workers: int | None = None

    @classmethod
    def of(cls, engine: str, address: str | None, workers: int | None) -> RayEngine | None:
        """Return what the options of a command ask for; None is this process alone.

        Raises:
            ValueError: if they do not fit together, or Ray is not installed.
        """
        if engine not in ENGINES:
            raise ValueError(f"engine must be one of {', '.join(ENGINES)}, found {engine!r}")
        if engine == "local":
            if address is not None or workers is not None:
                raise ValueError("--address and --workers belong to --engine ray: add it, or leave them out")
            return None
        if workers is not None:
            positive("workers", workers, "processes")
        _ask_for_token(address)
        try:
            import ray.data  # noqa: F401
        except ImportError as error:
            raise ValueError(f"engine ray needs {error.name}: {install_hint('ray')}") from error
        return cls(address, workers)

    def map(
        self, worker: type, pieces: Sequence[tuple[int, int]], device: str | None, **arguments: Any
    ) -> Iterator[Any]:
        """Do pieces of work in Ray's workers; yield their results in order, as soon as they are there.

        Args:
            worker: a class, made once in each worker with `arguments` and `device`, then called with the numbers of the
                first item of a piece and of the one after its last.
            pieces: these numbers, of each piece.
            device: the user's wish; each worker gets "cuda" if it has a GPU of its own, else this, or "cpu".
            arguments: of the class.

        Raises:
            ValueError: if the cluster cannot be reached or has nothing to compute on, or a piece ended its worker again and
                again.
            Exception: what a worker raised.
        """
        if not pieces:
            return
        _ask_for_token(self.address)
        import ray.data
        from ray.exceptions import RayError

        with self._running():
            gpus, workers = self._sizes(device, len(pieces))
            chosen = "cuda" if gpus else (device or "cpu")
            rows = [{"first": first, "last": last} for first, last in pieces]
            mapper: Any = _Worker  # to Ray's types a function, not a class
            results = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
                mapper,
                fn_constructor_args=(worker, {**arguments, "device": chosen}, str(Path.cwd())),
                compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=2),
                num_cpus=1,
                num_gpus=int(gpus),
                max_task_retries=RETRIES,
            )
            context = results.context
            context.enable_progress_bars = context.print_on_execution_start = False  # the caller shows its own
            context.execution_options.preserve_order = True
            try:
                with _no_logs():
                    for row in results.iter_rows():
                        outcome: _Outcome = row["outcome"]
                        if outcome.error is not None:
                            raise outcome.error from RuntimeError(outcome.traceback)
                        yield outcome.result
            except RayError as error:
                raise ValueError(f"Ray could not finish the work: {' '.join(str(error).split())[:500]}") from error

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Connect to the cluster, or start a Ray of its own; a connection that is there already is taken and kept."""
        import ray

        if ray.is_initialized():
            yield
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report its use to Ray's makers
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what concerns the work is raised
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        with _sigterm_kept():
            if self.address is None:
                cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
                quiet |= {"num_cpus": self.workers or cores, "object_store_memory": OBJECT_STORE}
                quiet["include_dashboard"] = False
            try:
                if match := HOST_AND_PORT.fullmatch(self.address or ""):  # Ray itself would try for minutes
                    socket.create_connection((match[1], int(match[2])), timeout=REACHED).close()
                with _no_start_messages():
                    ray.init(address=self.address or "local", **quiet)
            except Exception as error:  # of many kinds, Exception itself among them
                started = f"reached at {self.address}" if self.address else "started on this machine"
                raise ValueError(f"Ray could not be {started}: {' '.join(str(error).split())[:500]}") from error
        try:
            yield
        finally:
            ray.shutdown()

    def _sizes(self, device: str | None, pieces: int) -> tuple[bool, int]:
        """Return whether workers have a GPU each, and how many workers there are."""
        import ray

        resources: Any = ray.cluster_resources  # has no types
        found = resources()
        cuda = device is not None and device.startswith("cuda")
        gpus = int(found.get("GPU", 0)) if cuda or device is None else 0
        kind, there = ("GPUs", gpus) if gpus or cuda else ("cores", int(found.get("CPU", 0)))
        workers = self.workers or there
        if not workers:
            raise ValueError(
                f"Ray has no {kind}: give --workers to wait for a cluster that grows, or another --device"
            )
        workers = min(workers, pieces)
        if workers > there:
            warnings.warn(
                f"Ray has {there} {kind} for {workers} workers: the others start when it has more", stacklevel=2
            )
        return kind == "GPUs", workers


def _ask_for_token(address: str | None) -> None:
    """Let a Ray of its own take commands from its own processes only: whoever else reaches its ports could run code.

    Ray reads these variables when it is imported.
    """
    if address is None and "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


@dataclass(frozen=True)
class _Outcome:
    """What a piece came to: its result, or the error and where it was raised."""

    result: Any
    error: Exception | None = None
    traceback: str = ""


class _Worker:
    """Makes the caller's class at the first piece; an error becomes a result, since Ray would rewrite its message."""

    def __init__(self, worker: type, arguments: dict[str, Any], folder: str) -> None:
        with contextlib.suppress(OSError):  # another machine may not have it, and paths from the root do not need it
            os.chdir(folder)
        self._made: Any = None
        self._worker, self._arguments = worker, arguments

    def __call__(self, piece: dict[str, int]) -> dict[str, Any]:
        """Do one piece."""
        try:
            if self._made is None:
                self._made = self._worker(**self._arguments)
            outcome = _Outcome(self._made(piece["first"], piece["last"]))
        except Exception as error:
            outcome = _Outcome(None, error, traceback.format_exc())
        return {"outcome": outcome}


class Ahead(Generic[Item]):
    """Runs of the items of an input that can only be read from its start: in ascending order they cost one pass.

    Args:
        read: begins to read.
    """

    def __init__(self, read: Callable[[], Iterator[Item]]) -> None:
        self._read, self._position = read, 0
        self._items: Iterator[Item] = iter(())

    def run(self, first: int, last: int) -> list[Item]:
        """Read the items from `first` up to `last`.

        Raises:
            ValueError: if there are fewer: the input is no longer what it was.
        """
        if first < self._position or not self._position:
            self._items, self._position = self._read(), 0
        found = list(islice(self._items, first - self._position, last - self._position))
        self._position = last
        if len(found) < last - first:
            raise ValueError(f"items {first} to {last} of the input are gone: it has changed since it was checked")
        return found


@contextlib.contextmanager
def _sigterm_kept() -> Iterator[None]:
    """Keep the handler of SIGTERM, which Ray replaces by its own."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


@contextlib.contextmanager
def _no_start_messages() -> Iterator[None]:
    """Hide what Ray's C++ part writes to standard error while it starts; what fails is raised."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextlib.contextmanager
def _no_logs() -> Iterator[None]:
    """Keep Ray Data from logging each error with its traceback: the error is raised."""
    logger = logging.getLogger("ray.data")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
