"""Options of scoring: checkpoint, device, arithmetic and batches; the share of a process; the cache folder."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.loading.quiet import first_line

if TYPE_CHECKING:
    import torch

# The embedded checkpoint that scores by default.
DEFAULT_CHECKPOINT = "bleurt-repro-mini"
# Padded tokens in a batch: enough to fill the machine, few enough that the pairs of a batch have about the same length.
BATCH_TOKENS = {"cpu": 2048, "cuda": 65536, "mps": 16384}
DTYPES = ("float32", "bfloat16", "float16", "auto")
# Of backends, those that compute with torch, on any device and in any arithmetic.
TORCH_BACKENDS = ("torch", "compile")
BACKENDS = (*TORCH_BACKENDS, "onnx", "onnx-int8")
CACHE_VARIABLE = "BLEURT_REPRO_CACHE"


@dataclass(frozen=True)
class ScoreOptions:
    """Options of scoring; `BleurtScorer` and its `score` describe each of them."""

    # Options of the scorer
    checkpoint: str = DEFAULT_CHECKPOINT
    device: str | torch.device | None = None
    dtype: str | torch.dtype | None = None
    batch_tokens: int | None = None
    progress: bool | None = None
    backend: str = "torch"
    cache: str | os.PathLike[str] | None = None
    # Options of one call
    aggregate: str = "max"
    calibrated: bool = False
    return_std: bool = False
    batch_size: int | None = None

    def scorer_arguments(self) -> dict[str, Any]:
        """Return the options of the scorer, as the keyword arguments of `BleurtScorer`."""
        names = ("checkpoint", "device", "dtype", "batch_tokens", "progress", "backend", "cache")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Computing:
    """Where and how a scorer computes: the options that a user left out are filled in.

    Attributes:
        backend: one of `BACKENDS`.
        device: device of the model.
        dtype: arithmetic of the model.
        batch_tokens: most tokens of a batch, padding included.
    """

    backend: str
    device: torch.device
    dtype: torch.dtype
    batch_tokens: int

    @classmethod
    def from_options(cls, options: ScoreOptions) -> Computing:
        """Check the options that a user gave, and fill in those left out.

        Raises:
            ValueError: naming the option that is wrong.
        """
        backend = check_backend(options.backend, options.device, options.dtype)
        uses_torch = backend in TORCH_BACKENDS
        device = choose_device(options.device if uses_torch else "cpu")
        dtype = parse_dtype(options.dtype, device if uses_torch else None)
        if options.batch_tokens is None:
            batch_tokens = BATCH_TOKENS.get(device.type, BATCH_TOKENS["cpu"])
        else:
            batch_tokens = positive("batch_tokens", options.batch_tokens, "tokens")
        return cls(backend, device, dtype, batch_tokens)


def check_backend(backend: str, device: Any, dtype: Any) -> str:
    """Return a backend, if it exists and computes on the device in the arithmetic that the user asks for.

    Raises:
        ValueError: if it does not.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, found {backend!r}")
    if backend not in TORCH_BACKENDS and (str(device or "cpu") != "cpu" or str(dtype or "float32").endswith("16")):
        raise ValueError(
            f"backend {backend} computes on the CPU with float32 weights: leave device and dtype out, "
            f"found {device or 'cpu'} and {dtype or 'float32'}"
        )
    return backend


def choose_device(device: Any) -> torch.device:
    """Return the device that a user names, by default the best one; under torchrun each process takes another GPU.

    Raises:
        ValueError: if torch does not know the device, or this machine does not have it.
    """
    import torch

    if device is not None:
        try:
            named_device = torch.device(device)
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"device must be one that torch knows, such as cpu, cuda or mps, found {device!r}"
            ) from error
        try:
            torch.zeros(1, device=named_device).item()  # fails if it is missing, or holds no numbers ("meta")
        except Exception as error:  # torch raises almost anything here
            raise ValueError(
                f"device {str(device)!r} cannot be used on this machine ({first_line(error)}): leave it out, or give cpu"
            ) from error
        return named_device
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def parse_dtype(dtype: Any, device: torch.device | None = None) -> torch.dtype:
    """Return an arithmetic by its name, by default float32.

    Args:
        dtype: one of `DTYPES`; "auto" is bfloat16 if the device has instructions for it, else float32.
        device: device for "auto".

    Raises:
        ValueError: if it is not in `DTYPES`.
    """
    import torch

    name = "float32" if dtype is None else str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, found {dtype!r}")
    if name == "auto":
        return torch.bfloat16 if device is not None and has_bfloat16(device) else torch.float32
    return getattr(torch, name)


def has_bfloat16(device: torch.device) -> bool:
    """Return whether a device has instructions for bfloat16."""
    import torch

    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and (torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def check_arithmetic(device: torch.device, dtype: torch.dtype) -> None:
    """Check that a device computes in an arithmetic, before anything is scored.

    Raises:
        ValueError: if the operations of an encoder are not implemented there.
    """
    import torch
    from torch.nn import functional

    if dtype == torch.float32:
        return
    try:
        with torch.inference_mode():
            rows = torch.ones(2, 4, device=device, dtype=dtype)
            rows = functional.layer_norm(functional.gelu(functional.linear(rows, rows.new_ones(4, 4))), (4,))
            heads = rows.reshape(1, 1, 2, 4)
            functional.scaled_dot_product_attention(heads, heads, heads).tanh().cpu()
    except RuntimeError as error:
        raise ValueError(
            f"device {device.type} does not compute in {str(dtype).removeprefix('torch.')} ({first_line(error)}): leave "
            "dtype out, or give another device"
        ) from error


def positive(name: str, number: Any, unit: str) -> int:
    """Return a number if it is a positive whole number.

    Args:
        name: name of the option, for the message.
        number: value of the option.
        unit: what the option counts, for the message.

    Raises:
        ValueError: if it is not.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"{name} must be a positive number of {unit}, found {number!r}")
    return number


@dataclass(frozen=True)
class Shard:
    """One of `count` shares of equal size, in order; the first has the index 0."""

    index: int
    count: int

    def bounds(self, records: int) -> tuple[int, int]:
        """Return the first record of this share and the one after its last."""
        return records * self.index // self.count, records * (self.index + 1) // self.count

    def output(self, path: str) -> str:
        """Return the name of this share's file, such as scores-00000-of-00002.txt; sorted by name, shares are in order."""
        if self.count == 1:
            return path
        whole = Path(path)
        return str(whole.with_name(f"{whole.stem}-{self.index:05d}-of-{self.count:05d}{whole.suffix}"))


def choose_shard(num_shards: int | str | None, shard_index: int | None) -> Shard:
    """Return the share of the work that the options ask for; without options all of it.

    Args:
        num_shards: number of shares; "auto" takes the process's share from WORLD_SIZE and RANK, which torchrun sets.
        shard_index: index of the share, from 0; left out with "auto".

    Raises:
        ValueError: if the options do not fit together, or the variables are not set.
    """
    if num_shards is None and shard_index is None:
        if (processes := os.environ.get("WORLD_SIZE", "1")) != "1":
            warnings.warn(
                f"WORLD_SIZE is {processes} in the environment, but this process does all of the work: add --num-shards "
                "auto to give each process a share",
                stacklevel=2,
            )
        return Shard(0, 1)
    if num_shards == "auto":
        if shard_index is not None:
            raise ValueError("--num-shards auto takes the index from RANK: leave --shard-index out")
        variables = [os.environ.get(name, "") for name in ("WORLD_SIZE", "RANK")]
        if not all(variable.isdecimal() for variable in variables):
            raise ValueError(
                "--num-shards auto reads the variables WORLD_SIZE and RANK, two numbers that torchrun sets, found "
                f"{variables[0]!r} and {variables[1]!r}: start with torchrun, or give two numbers, --num-shards N "
                "--shard-index I"
            )
        num_shards, shard_index = map(int, variables)
    elif isinstance(num_shards, str):
        if not num_shards.isdecimal():
            raise ValueError(f"--num-shards must be a number or auto, found {num_shards!r}")
        num_shards = int(num_shards)
    if num_shards is None or shard_index is None:
        raise ValueError("--num-shards and --shard-index belong together: give both or neither")
    if num_shards < 1 or not 0 <= shard_index < num_shards:
        raise ValueError(f"--shard-index must be from 0 to --num-shards minus 1, found {shard_index} of {num_shards}")
    return Shard(shard_index, num_shards)


def cache_folder() -> Path:
    """Return the cache folder, which may not exist: $BLEURT_REPRO_CACHE, else a folder in $XDG_CACHE_HOME or ~/.cache.

    Raises:
        ValueError: if no variable names it and the user has no home folder.
    """
    try:
        if folder := os.environ.get(CACHE_VARIABLE):
            return Path(folder).expanduser()
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bleurt_repro"
    except RuntimeError as error:  # pathlib's, of a user whom the system does not list
        raise ValueError(f"there is no home folder to keep a cache in: set HOME, or {CACHE_VARIABLE}") from error


def make_cache(folder: Path) -> Path:
    """Make a cache folder if it does not exist, and return it.

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
