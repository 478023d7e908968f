"""Hash data and code, so that the cache of a builder never returns outdated rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def configuration_name(prefix: str, hashes: Iterable[str]) -> str:
    """Return the name of the only configuration of a data folder, for its card: it depends on the content.

    `datasets` looks up its cache by the names of the folder and the configuration. Under a fixed name, another folder
    `pairs`, or the same one after it grew, would return the old rows.

    Args:
        prefix: beginning of the name.
        hashes: hashes of the data files, in order.
    """
    return f"{prefix}-{hashlib.sha256(''.join(hashes).encode()).hexdigest()[:8]}"


def fingerprint(files: Iterable[str | Path]) -> str:
    """Return a hash of files and of the code that reads them: the builders and the readers of files.

    `datasets` names the cache folder of a builder by its configuration. A fingerprint among the fields of the
    configuration makes the cache depend on the files and the code as well.

    Args:
        files: files that are read; their order counts.

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
