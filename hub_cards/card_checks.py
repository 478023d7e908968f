"""Whether a card's metadata will do, as far as that can be told without asking the Hub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from typing import Any

from bleurt_repro.hub_cards.contents import CARD, File

# https://huggingface.co/docs/hub/spaces-config-reference
COLOURS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
SHORT_DESCRIPTION = 60


def check_card(kind: str, files: Sequence[File]) -> list[str]:
    """Look for faults in the card's metadata.

    Args:
        kind: "model", "dataset" or "space".
        files: to be published, the card among them.

    Returns:
        what is wrong, a sentence each.
    """
    from huggingface_hub import DatasetCard, ModelCard, SpaceCard

    text = next((file.read().decode(errors="replace") for file in files if file.path == CARD), None)
    if text is None:
        return [f"there is no card: `bleurt-repro card FOLDER` draws {CARD}"]
    if not text.startswith("---\n"):
        return [f"{CARD} has no metadata: it must begin with a block of YAML between lines of ---"]
    card_class: Any = {"model": ModelCard, "dataset": DatasetCard, "space": SpaceCard}[kind]
    try:
        data = card_class(text, ignore_metadata_errors=False).data
    except Exception as error:  # of YAML, or of what huggingface_hub makes of it
        return [f"the metadata of {CARD} cannot be read ({' '.join(str(error).split())})"]
    checks = {"model": _check_model, "dataset": _check_dataset, "space": _check_space}
    return [f"{CARD}: {problem}" for problem in checks[kind](data, [file.path for file in files])]


def _check_model(data: Any, names: Sequence[str]) -> Iterator[str]:
    for name in ("license", "library_name", "pipeline_tag"):
        if not data.get(name):
            yield f"the metadata have no {name}"
    for result in data.get("eval_results") or []:
        if not isinstance(result.metric_value, int | float):
            yield f"the value of {result.metric_type} on {result.dataset_name} is no number: {result.metric_value!r}"


def _check_dataset(data: Any, names: Sequence[str]) -> Iterator[str]:
    if not data.get("license"):
        yield "the metadata have no license"
    for config in data.get("configs") or []:
        sources = config.get("data_files") or []
        for source in [sources] if isinstance(sources, str) else sources:
            pattern = source if isinstance(source, str) else source.get("path", "")
            for one in [pattern] if isinstance(pattern, str) else pattern:
                if not any(fnmatch(name, one) for name in names):
                    yield f"configuration {config.get('config_name')} names {one}, which is not there"


def _check_space(data: Any, names: Sequence[str]) -> Iterator[str]:
    from huggingface_hub.constants import SPACES_SDK_TYPES

    if data.get("sdk") not in SPACES_SDK_TYPES:
        yield f"sdk must be one of {', '.join(SPACES_SDK_TYPES)}, found {data.get('sdk')!r}"
    if data.get("app_file") and data.app_file not in names:
        yield f"app_file {data.app_file} is not there"
    for name in ("colorFrom", "colorTo"):
        if data.get(name) and data.get(name) not in COLOURS:
            yield f"{name} must be one of {', '.join(COLOURS)}, found {data.get(name)!r}"
    if len(data.get("short_description") or "") > SHORT_DESCRIPTION:
        yield f"short_description has more than {SHORT_DESCRIPTION} characters"
