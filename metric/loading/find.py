"""Find a checkpoint by one argument: an embedded or official name, a local folder, or a Hub id (org/name@revision)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bleurt_repro.metric.loading.checksums import FileHashes
from bleurt_repro.metric.loading.hub import HUB_FILES, HUB_ID, download
from bleurt_repro.metric.loading.official_names import OFFICIAL_CHECKPOINTS, OfficialCheckpoint

EMBEDDED_FOLDER = Path(__file__).parents[1] / "checkpoint"
# Checkpoints that are too large for a wheel: of the folders there, only a clone of the repository has these.
IN_CLONES = ("bleurt-repro-base", "bleurt-repro-multi")
NEEDS = (
    "a checkpoint is a folder with config.json (one label), model.safetensors and a tokenizer, "
    "as save_pretrained() writes them"
)


@dataclass(frozen=True)
class Location:
    """Where a checkpoint was found.

    Attributes:
        argument: name or path that the user gave, for messages.
        name: name in signatures; of a local folder its last part, for the hash beside it says all that matters.
        folder: files of the checkpoint.
        official: what is recorded of a checkpoint that was found by its official name.
    """

    argument: str
    name: str
    folder: Path
    official: OfficialCheckpoint | None = None

    @classmethod
    def of_folder(cls, folder: Path) -> Location:
        """Return the location of a local folder."""
        return cls(str(folder), folder.resolve().name, folder)


def locate_checkpoint(name: str, hashes: FileHashes | None = None) -> Location:
    """Find a checkpoint, with the arguments and errors of `find_checkpoint`."""
    folder = find_checkpoint(name, hashes=hashes)
    if Path(name).expanduser().is_dir():
        return Location(str(name), folder.resolve().name, folder)
    known = known_name(str(name))
    return Location(name, known, folder, OFFICIAL_CHECKPOINTS.get(known))


def embedded_names() -> list[str]:
    """List the checkpoints that are here: in an installed package, or in a clone."""
    return sorted(folder.name for folder in EMBEDDED_FOLDER.glob("*") if (folder / "config.json").is_file())


def known_names() -> list[str]:
    """List all checkpoints that go by a name: those that are here, those of clones, and the official ones."""
    return list(dict.fromkeys((*embedded_names(), *IN_CLONES, *OFFICIAL_CHECKPOINTS)))


def known_name(name: str) -> str:
    """Return the known name that differs from `name` in upper and lower case only, else `name`."""
    by_lower_case = {known.lower(): known for known in known_names()}
    return name if Path(name).expanduser().exists() else by_lower_case.get(name.lower(), name)


def find_checkpoint(name: str, files: Sequence[str] = HUB_FILES, hashes: FileHashes | None = None) -> Path:
    """Return a checkpoint's folder; one that is named by a Hub id or an official name is fetched from the Hub.

    Args:
        name: embedded name, local folder, official name, or "org/name" with an optional "@revision".
        files: patterns of what to fetch from the Hub.
        hashes: takes up the hashes of the fetched files, which are checked by them.

    Raises:
        TypeError: if the name is no string or path.
        ValueError: if there is no such checkpoint, or the Hub has none by that name or cannot be reached.
    """
    if not isinstance(name, str | Path):
        raise TypeError(f"checkpoint must be a name or a path, found {type(name).__name__}")
    name = known_name(name) if isinstance(name, str) else name
    folder = Path(name).expanduser()
    if name in embedded_names():
        if folder.is_dir() and not folder.samefile(EMBEDDED_FOLDER / name):
            _warn_of_namesake(name, folder.resolve())
        return EMBEDDED_FOLDER / name
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise ValueError(f"checkpoint {name} is a file: {NEEDS}")
    if name in IN_CLONES:
        raise ValueError(
            f"checkpoint {name} is too large for the installed package: give the path of "
            f"metric/checkpoint/{name} in a clone of the repository, or the Hub id (org/name) of a published copy"
        )
    if name in OFFICIAL_CHECKPOINTS:
        return _fetch_official(str(name), files, hashes)
    # A relative path of one level and a Hub id look alike: the folder, if it exists, was taken above.
    if isinstance(name, str) and HUB_ID.fullmatch(name) and not name.startswith("."):
        return download(name, files, hashes=hashes)
    raise ValueError(
        f"unknown checkpoint {str(name)!r}: known names are {', '.join(known_names())}; "
        "a local folder or a Hub id such as org/name or org/name@revision is valid too"
    )


@cache  # a checkpoint's folder may be looked for more than once
def _warn_of_namesake(name: str, folder: Path) -> None:
    warnings.warn(f"checkpoint {name} is the embedded one, not {folder}: for that give ./{name}", stacklevel=3)


def _fetch_official(name: str, files: Sequence[str], hashes: FileHashes | None) -> Path:
    """Fetch an official checkpoint's public copy, or tell the user how to obtain the official archive."""
    official = OFFICIAL_CHECKPOINTS[name]
    if official.hub is None:
        raise ValueError(f"checkpoint {name} has no safe copy on the Hub: {official.how_to_get}")
    try:
        return download(official.hub, files, hashes=hashes)
    except ValueError as error:
        raise ValueError(f"checkpoint {name}: {error}; otherwise {official.how_to_get}") from error
