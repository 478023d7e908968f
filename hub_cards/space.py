"""The Space: the folder that comes with the package, its card, and the wheel that it installs the package from."""

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
from bleurt_repro.hub_cards.contents import CARD, MAIN, File, Target
from bleurt_repro.metric.install import DISTRIBUTION, install_command, package_source

REQUIREMENTS = "requirements.txt"
DEFAULT_CHECKPOINT = "bleurt-repro-mini"
EXTRA = "demo"
GRADIO_VERSION = "6.31.0"
SHORT_DESCRIPTION = "A learned metric of generated text"

PACKAGE = "bleurt_repro"
# In a checkout these folders are beside the package, and are parts of it all the same.
SUBPACKAGES = ("metric", "datasets_builders", "training", "hub_cards")
SUFFIXES = (
    ".py", ".typed", ".yaml", ".json", ".jsonl", ".csv", ".tsv", ".safetensors", ".txt", ".md", ".css", ".html", ".js",
    ".model", ".png",
)  # fmt: skip
# By their names in a wheel; the second is what a checkout has instead of the first.
METADATA_FILES = {"METADATA": "PKG-INFO", "entry_points.txt": "entry_points.txt"}
MIDNIGHT = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can record


def space_folder() -> Path:
    """Return the Space's folder in the package."""
    import bleurt_repro.metric

    return Path(str(bleurt_repro.metric.__file__)).parent / PACKAGE


def space_files(target: Target, folder: Path, requirement: str | None = None) -> list[File]:
    """Make the files of a Space that depend on where it is published.

    Without a public address of the package, the Space carries a wheel of it. A Space is built before its files are in
    place, so its requirements name the wheel by its address on the Hub.

    Args:
        target: where the Space is published.
        folder: the Space.
        requirement: what to install the package by instead, a line of requirements.txt; by default the address that
            `metric.install.package_source` returns, if there is one.

    Returns:
        requirements.txt, the card if it is the package's own, and the wheel if there is no requirement.

    Raises:
        ValueError: if a private Space would fetch a wheel from itself, which takes a token.
    """
    if requirement is None and (source := package_source()):
        requirement = f"{DISTRIBUTION}[{EXTRA}] @ {source}"
    if requirement is None and target.private:
        raise ValueError(
            "a private Space cannot fetch the package from itself: give --requirement, such as "
            f"'{DISTRIBUTION}[{EXTRA}] @ git+https://...', or leave --private out"
        )
    wheel = [] if requirement else [File(wheel_name(), pack_wheel())]
    line = requirement or f"{DISTRIBUTION}[{EXTRA}] @ {wheel_address(target)}"
    files = [*wheel, File(REQUIREMENTS, f"{line}\n".encode())]
    card = folder / CARD
    if not card.is_file() or card.read_text(encoding="utf-8") == draw_space_card():
        files.append(File(CARD, draw_space_card(target.repo_id, line).encode()))
    return files


def wheel_address(target: Target) -> str:
    """Return the address that a Space's wheel has once it is published."""
    from huggingface_hub import hf_hub_url

    return hf_hub_url(target.repo_id, wheel_name(), repo_type="space", revision=target.revision or MAIN)


def draw_space_card(repo_id: str | None = None, requirement: str | None = None) -> str:
    """Draw the card of the metric's Space.

    Args:
        repo_id: where it is published.
        requirement: what pip installs the package by; by default what works in a clone.
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
    """Read the default checkpoint's correlations from its card: for each data set, values by group and measure."""
    from huggingface_hub import ModelCard

    from bleurt_repro.metric.loading.open import find_checkpoint

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
# The package that runs is packed as it is, which `build` cannot do: it starts from a source tree, and an installed
# package has none. The form: https://packaging.python.org/en/latest/specifications/binary-distribution-format/


def wheel_name() -> str:
    """Return the file name of the wheel."""
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
    from bleurt_repro.metric.loading.open import IN_CLONES

    roots = {PACKAGE: PACKAGE} | {f"{PACKAGE}.{name}": f"{PACKAGE}/{name}" for name in SUBPACKAGES}
    for module, place in roots.items():
        folder = Path(str(import_module(module).__file__)).parent
        for path in folder.rglob("*"):
            name = path.relative_to(folder).as_posix()
            parts = name.split("/")
            left_out = any(part.startswith((".", "__pycache__")) or part in IN_CLONES for part in parts)
            if path.is_file() and path.suffix in SUFFIXES and not left_out:
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
