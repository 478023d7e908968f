"""Score files and make pairs with Ray Data, on all cores of a machine or of a cluster (the extra `ray`).

The work is divided into pieces: windows of records, or parts of segments. Ray gets only the numbers of their first and last
items. Each worker has its own models, reads the items from the input itself and returns results, which arrive in the order
of the pieces, so memory does not grow with the input. Ray restarts a worker that died, and repeats its unfinished pieces.
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
# Bytes for results that wait until they are written, which are small; Ray's default is a third of the memory.
OBJECT_STORE = 256 * 2**20
# A piece that kills its worker each time, for lack of memory for example, must not be repeated for ever.
RETRIES = 5
HOST_AND_PORT = re.compile(r"([^/\[\]]+):(\d+)")
CONNECT_SECONDS = 20  # time that a cluster has to answer

Item = TypeVar("Item")


@dataclass(frozen=True)
class RayEngine:
    """Ray, on this machine or on a cluster.

    Attributes:
        address: address of a Ray cluster, or "auto" for the one that $RAY_ADDRESS names or that runs on this machine; None
            starts Ray on this machine's cores, until the work ends.
        workers: number of processes, each with its own models; by default one per GPU, or one per core without GPUs.
    """

    address: str | None = None
    workers: int | None = None

    @classmethod
    def from_options(cls, engine: str, address: str | None, workers: int | None) -> RayEngine | None:
        """Return the engine that the options of a command ask for; None for this process alone.

        Raises:
            ValueError: if the options do not fit together, or Ray is not installed.
        """
        if engine not in ENGINES:
            raise ValueError(f"engine must be one of {', '.join(ENGINES)}, found {engine!r}")
        if engine == "local":
            if address is not None or workers is not None:
                raise ValueError("--address and --workers need --engine ray: add it, or leave them out")
            return None
        if workers is not None:
            positive("workers", workers, "processes")
        _require_token(address)
        try:
            import ray.data  # noqa: F401
        except ImportError as error:
            raise ValueError(f"engine ray needs {error.name}: {install_hint('ray')}") from error
        return cls(address, workers)

    def map(
        self, worker: type, pieces: Sequence[tuple[int, int]], device: str | None, **arguments: Any
    ) -> Iterator[Any]:
        """Do pieces of work in Ray's workers; yield their results in order, as soon as they arrive.

        Args:
            worker: class, called once in each worker with `arguments` and `device`; the instance is called with the number
                of the first item of a piece and the number after its last.
            pieces: these two numbers for each piece.
            device: device that the user asks for; a worker that was given a GPU gets "cuda", others this, or "cpu".
            arguments: keyword arguments of the class.

        Raises:
            ValueError: if the cluster cannot be reached or has nothing to compute on, or a piece killed its worker again
                and again.
            Exception: any error that a worker raised.
        """
        if not pieces:
            return
        _require_token(self.address)
        import ray.data
        from ray.exceptions import RayError

        with self._running():
            gpus, workers = self._sizes(device, len(pieces))
            worker_device = "cuda" if gpus else (device or "cpu")
            rows = [{"first": first, "last": last} for first, last in pieces]
            mapper: Any = _Worker  # Ray's types expect a function
            results = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
                mapper,
                fn_constructor_args=(worker, {**arguments, "device": worker_device}, str(Path.cwd())),
                compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=2),
                num_cpus=1,
                num_gpus=int(gpus),
                max_task_retries=RETRIES,
            )
            context = results.context
            context.enable_progress_bars = context.print_on_execution_start = False  # the caller has a bar
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
        """Connect to the cluster, or start Ray on this machine; a connection that exists is used and not closed."""
        import ray

        if ray.is_initialized():
            yield
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no reports to the makers of Ray
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors of the work are raised
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        with _restore_sigterm():
            if self.address is None:
                cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
                quiet |= {"num_cpus": self.workers or cores, "object_store_memory": OBJECT_STORE}
                quiet["include_dashboard"] = False
            try:
                if match := HOST_AND_PORT.fullmatch(self.address or ""):  # Ray would try for minutes
                    socket.create_connection((match[1], int(match[2])), timeout=CONNECT_SECONDS).close()
                with _no_start_messages():
                    ray.init(address=self.address or "local", **quiet)
            except Exception as error:  # Ray raises many types, Exception among them
                step = f"reached at {self.address}" if self.address else "started on this machine"
                raise ValueError(f"Ray could not be {step}: {' '.join(str(error).split())[:500]}") from error
        try:
            yield
        finally:
            ray.shutdown()

    def _sizes(self, device: str | None, pieces: int) -> tuple[bool, int]:
        """Return whether each worker has a GPU, and the number of workers."""
        import ray

        cluster_resources: Any = ray.cluster_resources  # has no types
        resources = cluster_resources()
        cuda = device is not None and device.startswith("cuda")
        gpus = int(resources.get("GPU", 0)) if cuda or device is None else 0
        units, available = ("GPUs", gpus) if gpus or cuda else ("cores", int(resources.get("CPU", 0)))
        workers = self.workers or available
        if not workers:
            raise ValueError(
                f"Ray has no {units}: give --workers to wait for a cluster that grows, or another --device"
            )
        workers = min(workers, pieces)
        if workers > available:
            warnings.warn(
                f"Ray has {available} {units} for {workers} workers: the others start when it has more", stacklevel=2
            )
        return units == "GPUs", workers


def _require_token(address: str | None) -> None:
    """Make a Ray on this machine accept commands from its own processes only: others could run code through its ports.

    Ray reads these variables when it is imported.
    """
    if address is None and "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


@dataclass(frozen=True)
class _Outcome:
    """Result of a piece of work, or the error and its traceback."""

    result: Any
    error: Exception | None = None
    traceback: str = ""


class _Worker:
    """Run the caller's class in a worker; an error is returned as a result, since Ray would rewrite its message."""

    def __init__(self, worker: type, arguments: dict[str, Any], folder: str) -> None:
        with contextlib.suppress(
            OSError
        ):  # another machine may not have the folder, and absolute paths do not need it
            os.chdir(folder)
        self._instance: Any = None
        self._worker, self._arguments = worker, arguments

    def __call__(self, piece: dict[str, int]) -> dict[str, Any]:
        """Do one piece."""
        try:
            if self._instance is None:  # at the first piece, so that an error is returned, too
                self._instance = self._worker(**self._arguments)
            outcome = _Outcome(self._instance(piece["first"], piece["last"]))
        except Exception as error:
            outcome = _Outcome(None, error, traceback.format_exc())
        return {"outcome": outcome}


class Ahead(Generic[Item]):
    """Ranges of the items of an input that can only be read from its start; ascending ranges cost one pass.

    Args:
        open_items: function that starts to read the items.
    """

    def __init__(self, open_items: Callable[[], Iterator[Item]]) -> None:
        self._open_items, self._position = open_items, 0
        self._items: Iterator[Item] = iter(())

    def run(self, first: int, last: int) -> list[Item]:
        """Read the items from `first` up to `last`.

        Raises:
            ValueError: if there are fewer, since the input has changed.
        """
        if first < self._position or not self._position:
            self._items, self._position = self._open_items(), 0
        items = list(islice(self._items, first - self._position, last - self._position))
        self._position = last
        if len(items) < last - first:
            raise ValueError(f"items {first} to {last} of the input are gone: it has changed since it was checked")
        return items


@contextlib.contextmanager
def _restore_sigterm() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


@contextlib.contextmanager
def _no_start_messages() -> Iterator[None]:
    """Hide what Ray's C++ code writes to standard error while it starts; errors are raised."""
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)


@contextlib.contextmanager
def _no_logs() -> Iterator[None]:
    """Stop Ray Data from logging each error with its traceback, since the error is raised."""
    logger = logging.getLogger("ray.data")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
