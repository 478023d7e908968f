"""Unpack a zip that someone else made: nothing lands outside the folder, and nothing grows without bound."""

from __future__ import annotations

import errno
import struct
import zipfile
import zlib
from pathlib import Path

# Weights hardly compress; the official archives unpack to less than twice their size. A bomb is a thousandfold.
MOST_GROWTH = 20
SMALL = 16 << 20  # bytes; below this, growth does no harm
MOST_FILES = 1000
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What `zipfile` raises for files that are not sound zips.
DAMAGE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
    OverflowError, UnicodeError,
)  # fmt: skip
# What the system says of names that cannot be: too long, of odd characters, or of a file and a folder at once.
NAMES = (errno.EINVAL, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EILSEQ)


def unpack_zip(archive: Path, folder: Path) -> None:
    """Unpack the files of a zip into a new folder.

    `zipfile` itself takes drives, leading slashes and ".." out of names, writes a link as a plain file, and reads no
    more of a member than its declared size.

    Args:
        archive: the zip.
        folder: where to; must not exist yet.

    Raises:
        ValueError: if the zip is damaged or encrypted, holds a name twice, or would grow beyond reason. What was
            unpacked until then is left for the caller to remove.
    """
    try:
        with zipfile.ZipFile(archive) as zipped:
            _check_members(archive, zipped.infolist())
            for member in zipped.infolist():
                zipped.extract(member, folder)
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno not in NAMES:  # a fault of this machine, not of the zip
            raise
        raise ValueError(f"{archive} is no sound zip ({error}): download it again") from error


def _check_members(archive: Path, members: list[zipfile.ZipInfo]) -> None:
    size, unpacked = archive.stat().st_size, sum(member.file_size for member in members)
    if len(members) > MOST_FILES:
        raise ValueError(f"{archive} holds {len(members)} files; a checkpoint has fewer than {MOST_FILES}")
    if unpacked > max(SMALL, MOST_GROWTH * size):
        raise ValueError(f"{archive} would grow from {size} to {unpacked} bytes, which no checkpoint does")
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise ValueError(f"{archive} holds {next(name for name in names if names.count(name) > 1)!r} twice")
    if "" in names:
        raise ValueError(f"{archive} holds a file without a name")
    for member in members:
        if member.compress_type not in METHODS:
            raise ValueError(f"{archive} is packed in an unknown way (method {member.compress_type}): zip it again")
