"""Unpack a zip that someone else made: nothing lands outside the folder, and nothing grows without bound."""

from __future__ import annotations

import errno
import shutil
import stat
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath

# Weights hardly compress; the official archives unpack to less than twice their size. A bomb is a thousandfold.
MOST_GROWTH = 20
SMALL = 16 << 20  # bytes; below this, growth does no harm
MOST_FILES = 1000
LONGEST_NAME = 255  # bytes; file systems take no longer ones
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What `zipfile` raises for files that are no sound zips.
DAMAGE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
    OverflowError, UnicodeError,
)  # fmt: skip


def unpack_zip(archive: Path, folder: Path) -> None:
    """Unpack the files of a zip into a new folder.

    Args:
        archive: the zip.
        folder: where to; must not exist yet.

    Raises:
        ValueError: if the zip is damaged or encrypted, leads outside the folder, holds links, or would grow beyond
            reason. What was unpacked until then is left for the caller to remove.
    """
    try:
        with zipfile.ZipFile(archive) as zipped:
            members = [member for member in zipped.infolist() if not member.filename.endswith("/")]
            _check_growth(archive, members)
            targets = [_target(archive, member, folder) for member in members]
            for member, target in zip(members, targets, strict=True):
                _unpack(zipped, member, target)
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # a fault of this machine's, not of the zip
            raise
        raise ValueError(f"{archive} is no sound zip ({error}): download it again") from error


def _check_growth(archive: Path, members: list[zipfile.ZipInfo]) -> None:
    size, unpacked = archive.stat().st_size, sum(member.file_size for member in members)
    if len(members) > MOST_FILES:
        raise ValueError(f"{archive} holds {len(members)} files; a checkpoint has fewer than {MOST_FILES}")
    if unpacked > max(SMALL, MOST_GROWTH * size):
        raise ValueError(f"{archive} would grow from {size} to {unpacked} bytes, which no checkpoint does")


def _target(archive: Path, member: zipfile.ZipInfo, folder: Path) -> Path:
    """Where a member goes, if it goes into the folder."""
    path = PurePosixPath(member.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename or ":" in member.filename:
        raise ValueError(f"{archive} leads outside its folder: {member.filename!r}")
    if any(len(part.encode(errors="surrogatepass")) > LONGEST_NAME for part in path.parts) or not path.parts:
        raise ValueError(f"{archive} holds a file of a name that cannot be: {member.filename[:LONGEST_NAME]!r}")
    if member.compress_type not in METHODS:
        raise ValueError(f"{archive} is packed in an unknown way (method {member.compress_type}): zip it again")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise ValueError(f"{archive} holds something other than plain files: {member.filename!r}")
    return folder.joinpath(*path.parts)


def _unpack(zipped: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipped.open(member) as packed, target.open("xb") as file:  # zipfile stops at the size it declares
            shutil.copyfileobj(packed, file)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise ValueError(f"{zipped.filename} holds {member.filename!r} twice") from error
