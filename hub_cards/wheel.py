"""Pack the installed package as a wheel, the same bytes each time: a Space installs it where no registry has it yet.

The form is that of https://packaging.python.org/en/latest/specifications/binary-distribution-format/.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import io
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from bleurt_repro import __version__

DISTRIBUTION = "bleurt-repro"
PACKAGE = "bleurt_repro"
# In a checkout the floors lie beside the package, and are parts of it all the same.
FLOORS = ("metric", "datasets_builders", "training", "hub_cards")
SUFFIXES = (".py", ".typed", ".yaml", ".json", ".safetensors", ".txt", ".md", ".css", ".js", ".model", ".png")
# By their names in a wheel; what a checkout has in place of the first comes second.
METADATA_FILES = {"METADATA": "PKG-INFO", "entry_points.txt": "entry_points.txt"}
MIDNIGHT = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can tell


def wheel_name() -> str:
    """Give the file name of the wheel."""
    return f"{PACKAGE}-{__version__}-py3-none-any.whl"


def pack_wheel() -> bytes:
    """Pack the package that is running.

    Returns:
        the wheel; equal bytes for equal files.

    Raises:
        ValueError: if the package is not installed, or its metadata are those of another version.
    """
    try:
        distribution = importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError as error:
        raise ValueError(f"{DISTRIBUTION} is not installed: pip install it, or give --requirement") from error
    if distribution.version != __version__:
        raise ValueError(
            f"the metadata say version {distribution.version}, the code {__version__}: install the package again"
        )
    info = f"{PACKAGE}-{__version__}.dist-info"
    files = dict(sorted(_package_files()))
    for name, other in METADATA_FILES.items():
        text = distribution.read_text(name) or distribution.read_text(other)
        if text is None:
            raise ValueError(f"the installed {DISTRIBUTION} has no {name}: install the package again")
        files[f"{info}/{name}"] = text.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: bleurt_repro\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    return _zip(files)


def _package_files() -> Iterator[tuple[str, bytes]]:
    roots = {PACKAGE: PACKAGE} | {f"{PACKAGE}.{floor}": f"{PACKAGE}/{floor}" for floor in FLOORS}
    for module, place in roots.items():
        folder = Path(str(import_module(module).__file__)).parent
        for path in folder.rglob("*"):
            name = path.relative_to(folder).as_posix()
            hidden = any(part.startswith((".", "__pycache__")) for part in name.split("/"))
            if path.is_file() and path.suffix in SUFFIXES and not hidden:
                yield f"{place}/{name}", path.read_bytes()


def _record(files: dict[str, bytes], own_name: str) -> bytes:
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{own_name},,\n"]).encode()


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, MIDNIGHT)
            entry.external_attr = 0o644 << 16
            # Weights do not compress, and trying takes seconds.
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(".safetensors") else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return buffer.getvalue()
