"""The Space: the folder that comes with the package, told where to install the package from."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from bleurt_repro.hub_cards.contents import CARD, File
from bleurt_repro.hub_cards.drawing import draw
from bleurt_repro.hub_cards.target import MAIN, Target
from bleurt_repro.hub_cards.wheel import pack_wheel, wheel_name

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

    from bleurt_repro.metric.checkpoints import find_checkpoint

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
