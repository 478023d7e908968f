"""Options of a scorer: where it computes, in which arithmetic, how much at once, which part of the input, and where what
it makes once is kept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.loading.quiet import first_line

if TYPE_CHECKING:
    import torch

# Padded tokens in a batch: enough to fill the machine, small enough that a batch's pairs are of about one length.
BATCH_TOKENS = {"cpu": 2048, "cuda": 16384, "mps": 16384}
DTYPES = ("float32", "bfloat16", "float16")
BACKENDS = ("torch", "onnx", "onnx-int8")
CACHE_VARIABLE = "BLEURT_REPRO_CACHE"


@dataclass(frozen=True)
class Computing:
    """How a scorer computes.

    Attributes:
        backend: one of `BACKENDS`.
        device: where.
        dtype: in which arithmetic.
        batch_tokens: most tokens of a batch, padding included.
    """

    backend: str
    device: torch.device
    dtype: torch.dtype
    batch_tokens: int

    @classmethod
    def of(cls, backend: str, device: Any, dtype: Any, batch_tokens: int | None) -> Computing:
        """Check the options that a user gave, and fill in those left out.

        Raises:
            ValueError: naming the option that cannot be.
        """
        backend = backend_of(backend, device, dtype)
        chosen = device_of(device if backend == "torch" else "cpu")
        return cls(backend, chosen, dtype_of(dtype), batch_tokens_of(batch_tokens, chosen.type))


def backend_of(backend: str, device: Any, dtype: Any) -> str:
    """Check that there is such a backend and that it computes on that device in that arithmetic.

    Raises:
        ValueError: if not.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, found {backend!r}")
    if backend != "torch" and (str(device or "cpu") != "cpu" or str(dtype or "float32").endswith("16")):
        raise ValueError(
            f"backend {backend} computes on the CPU with float32 weights: leave device and dtype out, "
            f"found {device or 'cpu'} and {dtype or 'float32'}"
        )
    return backend


def device_of(device: Any) -> torch.device:
    """Return the device that is asked for, or the best there is; under torchrun each process takes a GPU of its own.

    Raises:
        ValueError: if torch knows no such device, or this machine has none.
    """
    import torch

    if device is not None:
        try:
            chosen = torch.device(device)
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"device must be one that torch knows, such as cpu, cuda or mps, found {device!r}"
            ) from error
        try:
            torch.zeros(1, device=chosen).item()  # whether it is there, and holds numbers ("meta" holds none)
        except Exception as error:  # torch raises almost anything here
            raise ValueError(
                f"device {str(device)!r} cannot be used on this machine ({first_line(error)}): leave it out, or give cpu"
            ) from error
        return chosen
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def dtype_of(dtype: Any) -> torch.dtype:
    """Return the arithmetic by its name, float32 by default.

    Raises:
        ValueError: if it is none of `DTYPES`.
    """
    import torch

    name = "float32" if dtype is None else str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, found {dtype!r}")
    return getattr(torch, name)


def batch_tokens_of(batch_tokens: int | None, device: str) -> int:
    """Return the most tokens of a batch, by default what fits the kind of device.

    Raises:
        ValueError: if it is no positive whole number.
    """
    if batch_tokens is None:
        return BATCH_TOKENS.get(device, BATCH_TOKENS["cpu"])
    return positive("batch_tokens", batch_tokens, "tokens")


def positive(name: str, number: Any, unit: str) -> int:
    """Return a number that a user gave if it is a positive whole one.

    Args:
        name: of the option.
        number: what was given.
        unit: what it counts.

    Raises:
        ValueError: if it is no positive whole number.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"{name} must be a positive number of {unit}, found {number!r}")
    return number


@dataclass(frozen=True)
class Shard:
    """One of `count` parts of equal size, in order; the first has the index 0."""

    index: int
    count: int

    def bounds(self, records: int) -> tuple[int, int]:
        """Return the first record of this part and the one after its last."""
        return records * self.index // self.count, records * (self.index + 1) // self.count

    def output(self, path: str) -> str:
        """Name this part's file, such as scores-00000-of-00002.txt: sorted by name, the parts are in order."""
        if self.count == 1:
            return path
        whole = Path(path)
        return str(whole.with_name(f"{whole.stem}-{self.index:05d}-of-{self.count:05d}{whole.suffix}"))


def choose_shard(num_shards: int | None, shard_index: int | None) -> Shard:
    """Take the part that the options name, else the one that torchrun's WORLD_SIZE and RANK name, else all.

    Raises:
        ValueError: if only one of the two is given, or the index is not below the number.
    """
    if num_shards is None and shard_index is None:
        num_shards, shard_index = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
        if num_shards > 1 and "RANK" not in os.environ:
            raise ValueError(
                f"WORLD_SIZE is {num_shards} in the environment, but RANK is not set: set both, as torchrun does, or neither"
            )
    if num_shards is None or shard_index is None:
        raise ValueError("--num-shards and --shard-index belong together: give both or neither")
    if not 0 <= shard_index < num_shards:
        raise ValueError(
            f"--shard-index must be from 0 to {num_shards - 1} with --num-shards {num_shards}, found {shard_index}"
        )
    return Shard(shard_index, num_shards)


def cache_folder() -> Path:
    """Return the folder that $BLEURT_REPRO_CACHE names, else one below $XDG_CACHE_HOME or ~/.cache; it may not exist.

    Raises:
        ValueError: if none is named and the user has no home.
    """
    try:
        if named := os.environ.get(CACHE_VARIABLE):
            return Path(named).expanduser()
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bleurt_repro"
    except RuntimeError as error:  # pathlib's, of a user whom the system does not list
        raise ValueError(f"there is no home folder to keep a cache in: set HOME, or {CACHE_VARIABLE}") from error


def made_cache(folder: Path) -> Path:
    """Make a folder of a cache where there is none, and return it.

    Raises:
        OSError: if it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        file = next(path for path in (folder, *folder.parents) if path.exists())
        raise NotADirectoryError(
            f"the cache {folder} must be a folder, but {file} is a file: name another one"
        ) from error
    return folder
