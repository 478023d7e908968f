"""The Space: the folder that comes with the package, told where to install the package from.

Pack the installed package as a wheel, the same bytes each time: a Space installs it where no registry has it yet.

The form is that of https://packaging.python.org/en/latest/specifications/binary-distribution-format/.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import io
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from bleurt_repro import __version__
from bleurt_repro.hub_cards.cards import draw
from bleurt_repro.hub_cards.contents import CARD, File
from bleurt_repro.hub_cards.publish import MAIN, Target

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


REQUIREMENTS = "requirements.txt"
DEFAULT_CHECKPOINT = "bleurt-repro-mini"
EXTRA = "demo"
PLAIN_REQUIREMENT = f"bleurt-repro[{EXTRA}]"
GRADIO_VERSION = "6.31.0"
SHORT_DESCRIPTION = "A learned metric of generated text"


def space_folder() -> Path:
    """Give the Space's folder in the package."""
    import bleurt_repro.metric

    return Path(str(bleurt_repro.metric.__file__)).parent / "bleurt_repro"


def space_files(target: Target, folder: Path, requirement: str | None = None) -> list[File]:
    """Make the files of a Space that depend on where it is published.

    While no registry has the package, the Space carries a wheel of it. A Space is built before its files are in place, so
    that its requirements name the wheel by its address on the Hub.

    Args:
        target: where the Space goes.
        folder: the Space.
        requirement: what to install the package by instead, a line of requirements.txt.

    Returns:
        requirements.txt, the card if it is the package's own, and the wheel if there is no requirement.

    Raises:
        ValueError: if a private Space is to fetch a wheel from itself, which takes a token.
    """
    if requirement is None and target.private:
        raise ValueError(
            "a private Space cannot fetch the package from itself: give --requirement, such as "
            f"'{PLAIN_REQUIREMENT} @ git+https://...', or leave --private out"
        )
    wheel = [] if requirement else [File(wheel_name(), pack_wheel())]
    line = requirement or f"{PLAIN_REQUIREMENT} @ {wheel_address(target)}"
    files = [*wheel, File(REQUIREMENTS, f"{line}\n".encode())]
    card = folder / CARD
    if not card.is_file() or card.read_text(encoding="utf-8") == draw_space_card():
        files.append(File(CARD, draw_space_card(target.repo_id, line).encode()))
    return files


def wheel_address(target: Target) -> str:
    """Give the address that a Space's wheel has once it is published."""
    from huggingface_hub import hf_hub_url

    return hf_hub_url(target.repo_id, wheel_name(), repo_type="space", revision=target.revision or MAIN)


def draw_space_card(repo_id: str | None = None, requirement: str | None = None) -> str:
    """Draw the card of the metric's Space.

    Args:
        repo_id: where it is published.
        requirement: what pip installs the package by.
    """
    from huggingface_hub import SpaceCardData

    data = SpaceCardData(
        title="BLEURT (bleurt_repro)",
        emoji="🧭",
        colorFrom="indigo",
        colorTo="yellow",
        sdk="gradio",
        sdk_version=GRADIO_VERSION,
        app_file="app.py",
        pinned=False,
        license="apache-2.0",
        tags=["evaluate", "metric"],
        short_description=SHORT_DESCRIPTION,
    )
    return draw(
        "space_card.md",
        data,
        repo_id=repo_id,
        requirement=(requirement or PLAIN_REQUIREMENT).replace(f"[{EXTRA}]", ""),
        checkpoint=DEFAULT_CHECKPOINT,
        agreement=_agreement(),
    )


def _agreement() -> list[dict[str, object]]:
    """Read the default checkpoint's figures from its card: for each data set, values by group and measure."""
    from huggingface_hub import ModelCard

    from bleurt_repro.metric.loading.find import find_checkpoint

    data: Any = ModelCard((find_checkpoint(DEFAULT_CHECKPOINT) / CARD).read_text(encoding="utf-8")).data
    tables: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for result in data.eval_results or []:
        name = result.metric_name or result.metric_type
        tables[result.dataset_name][result.dataset_config or "all"][name] = result.metric_value
    return [
        {
            "title": title,
            "groups": {group: dict(values) for group, values in groups.items()},
            "measures": _names(groups),
        }
        for title, groups in tables.items()
    ]


def _names(groups: dict[str, dict[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for values in groups.values() for name in values))
