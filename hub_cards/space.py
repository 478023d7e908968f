"""The Space with the demo: its files in the package, its card, and the wheel that it installs the package from."""

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
from bleurt_repro.hub_cards.cards import TEMPLATES
from bleurt_repro.hub_cards.contents import CARD, MAIN, File, Target, read_card
from bleurt_repro.metric.install import DISTRIBUTION, install_command, package_source
from bleurt_repro.metric.options import DEFAULT_CHECKPOINT

REQUIREMENTS = "requirements.txt"
EXTRA = "demo"
GRADIO_VERSION = "6.31.0"
SHORT_DESCRIPTION = "A learned metric of generated text"

PACKAGE = "bleurt_repro"
# Packages with a separate folder in a clone; an installed package holds them as subfolders.
SUBPACKAGES = ("metric", "datasets_builders", "training", "hub_cards")
SUFFIXES = (
    ".py", ".typed", ".yaml", ".json", ".jsonl", ".csv", ".tsv", ".safetensors", ".txt", ".md", ".css", ".html", ".js",
    ".model", ".png",
)  # fmt: skip
# Metadata files in a wheel, and the files that an editable installation has in their place.
METADATA_FILES = {"METADATA": "PKG-INFO", "entry_points.txt": "entry_points.txt"}
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can record, so that equal files give equal bytes


def space_folder() -> Path:
    """Return the folder of the Space in the package."""
    import bleurt_repro.metric

    return Path(str(bleurt_repro.metric.__file__)).parent / PACKAGE


def space_files(target: Target, folder: Path, requirement: str | None = None) -> list[File]:
    """Make the files of a Space that depend on where it is published.

    If the package has no public address, the Space includes a wheel of it. The Hub installs the requirements before
    the files of the Space are in place, so requirements.txt gives the address of the wheel on the Hub.

    Args:
        target: repository of the Space.
        folder: folder of the Space.
        requirement: line of requirements.txt that installs the package; by default the address that
            `metric.install.package_source` returns, if there is one, and otherwise the wheel.

    Returns:
        requirements.txt, the card unless it was edited, and the wheel if no requirement was given.

    Raises:
        ValueError: if a private Space would have to download a wheel from itself, which needs a token; or if its card
            is not UTF-8.
    """
    if requirement is None and (source := package_source()):
        requirement = f"{DISTRIBUTION}[{EXTRA}] @ {source}"
    if requirement is None and target.private:
        raise ValueError(
            "a private Space cannot download the package from itself: give --requirement, such as "
            f"'{DISTRIBUTION}[{EXTRA}] @ git+https://...', or leave --private out"
        )
    wheel = [] if requirement else [File(wheel_name(), pack_wheel())]
    line = requirement or f"{DISTRIBUTION}[{EXTRA}] @ {wheel_address(target)}"
    files = [*wheel, File(REQUIREMENTS, f"{line}\n".encode())]
    if read_card(folder) in (None, draw_space_card()):
        files.append(File(CARD, draw_space_card(target.repo_id, line).encode()))
    return files


def wheel_address(target: Target) -> str:
    """Return the address of a Space's wheel on the Hub."""
    from huggingface_hub import hf_hub_url

    return hf_hub_url(target.repo_id, wheel_name(), repo_type="space", revision=target.revision or MAIN)


def draw_space_card(repo_id: str | None = None, requirement: str | None = None) -> str:
    """Draw the card of the Space.

    Args:
        repo_id: repository where it is published.
        requirement: requirement that pip installs the package by; by default the command for a clone.

    Returns:
        Markdown with metadata.
    """
    from huggingface_hub import SpaceCard, SpaceCardData

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
    plain = requirement.replace(f"[{EXTRA}]", "") if requirement else None
    card = SpaceCard.from_template(
        data,
        template_path=str(TEMPLATES / "space_card.md"),
        repo_id=repo_id,
        install=f'pip install "{plain}"' if plain else f"{install_command()}  # in a clone of the repository",
        checkpoint=DEFAULT_CHECKPOINT,
        agreement=_agreement(),
    )
    return card.content + "\n"


def _agreement() -> list[dict[str, object]]:
    """Read the default checkpoint's agreement with human ratings from its card, by dataset, group and measure."""
    from huggingface_hub import ModelCard

    from bleurt_repro.metric.loading.find import find_checkpoint

    data: Any = ModelCard((find_checkpoint(DEFAULT_CHECKPOINT) / CARD).read_text(encoding="utf-8")).data
    tables: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for result in data.eval_results or []:
        if result.metric_type != "accuracy":
            tables[result.dataset_name][result.dataset_config or "all"][result.metric_name] = result.metric_value
    return [
        {
            "title": title,
            "groups": {group: dict(values) for group, values in groups.items()},
            "measures": list(dict.fromkeys(name for values in groups.values() for name in values)),
        }
        for title, groups in tables.items()
    ]


# --- the wheel -----------------------------------------------------------------------------------------------------
# The running package is packed as it is. `build` cannot do this, since it needs a source tree.
# Format: https://packaging.python.org/en/latest/specifications/binary-distribution-format/


def wheel_name() -> str:
    """Return the file name of the wheel."""
    return f"{PACKAGE}-{__version__}-py3-none-any.whl"


def pack_wheel() -> bytes:
    """Make a wheel of the running package.

    Returns:
        Content of the wheel; equal files give equal bytes.

    Raises:
        ValueError: if the package is not installed, or its metadata are those of another version.
    """
    try:
        distribution = importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError as error:
        raise ValueError(f"{DISTRIBUTION} is not installed: install it with pip, or give --requirement") from error
    if distribution.version != __version__:
        raise ValueError(
            f"the metadata say version {distribution.version}, the code {__version__}: install the package again"
        )
    info = f"{PACKAGE}-{__version__}.dist-info"
    files = dict(sorted(_package_files()))
    for name, substitute in METADATA_FILES.items():
        text = distribution.read_text(name) or distribution.read_text(substitute)
        if text is None:
            raise ValueError(f"the installed {DISTRIBUTION} has no {name}: install the package again")
        files[f"{info}/{name}"] = text.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: bleurt_repro\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    return _zip(files)


def _package_files() -> Iterator[tuple[str, bytes]]:
    """Read the files of the package with their paths in a wheel, each once.

    The subpackages are read from where Python imports them: in a clone these folders are beside src/, and the links to
    them in src/bleurt_repro, if the clone has links, are skipped.
    """
    from bleurt_repro.metric.loading.find import IN_CLONES

    skipped = {"__pycache__", *IN_CLONES}
    for package in (PACKAGE, *(f"{PACKAGE}.{name}" for name in SUBPACKAGES)):
        root = Path(str(import_module(package).__file__)).parent
        for path in root.rglob("*"):
            relative = path.relative_to(root)
            if package == PACKAGE and relative.parts[0] in SUBPACKAGES:
                continue
            hidden = any(folder.startswith(".") or folder in skipped for folder in relative.parts)
            if path.is_file() and path.suffix in SUFFIXES and not hidden:
                yield f"{package.replace('.', '/')}/{relative.as_posix()}", path.read_bytes()


def _record(files: dict[str, bytes], record_name: str) -> bytes:
    """Return the RECORD of a wheel: path, hash and size of each file, and its own path."""
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{record_name},,\n"]).encode()


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.external_attr = 0o644 << 16
            # Compressing weights takes seconds and saves nothing.
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(".safetensors") else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return buffer.getvalue()
