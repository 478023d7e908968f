"""Hash data and code, so that a builder's cache never returns rows that they would not make now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def configuration_name(prefix: str, hashes: Iterable[str]) -> str:
    """Name the only configuration of a folder of data after its content, for the card.

    `datasets` finds what it has cached of a folder by the folder's own name and the configuration's: under one fixed name,
    another folder `pairs`, or this one after it grew, would silently return the old rows.

    Args:
        prefix: what it is.
        hashes: of the data files, in order.
    """
    return f"{prefix}-{hashlib.sha256(''.join(hashes).encode()).hexdigest()[:8]}"


def fingerprint(files: Iterable[str | Path]) -> str:
    """Hash files, and the code that reads them: the builders and the readers of files.

    `datasets` names a builder's cache folder by the configuration alone; a fingerprint among its fields makes it
    depend on what is read, and on what reads it, too.

    Args:
        files: what is read; the order counts.

    Returns:
        16 hexadecimal digits.
    """
    builders = Path(__file__).parent
    readers = builders.parent / "metric" / "files"
    code = [*sorted(builders.rglob("*.py")), *sorted(readers.glob("*.py"))]
    digest = hashlib.sha256()
    for file in [*files, *code]:
        digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
    return digest.hexdigest()[:16]
