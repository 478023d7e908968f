"""What a card tells of training: each stage in words, with its data, its signals and the command that repeats it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SETTINGS_SHOWN = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "layer_decay", "num_train_epochs", "max_steps",
    "global_batch_size", "max_length", "bf16", "seed",
)  # fmt: skip
PRETRAINING = "Pre-training"
# Recorded beside the options, but not options: they follow from the machine.
NO_OPTIONS = ("world_size", "gradient_accumulation_steps")


def stages_of(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Give a run as one stage; an average as the runs of its members.

    Args:
        results: of a results.json of `pretrain`, `finetune` or `average`.

    Returns:
        for each stage "title", "summary", "data" (sentences), "command" and "settings".

    Raises:
        ValueError: if nothing is recorded of a member's training, or these are no results of training.
    """
    if "average" not in results:
        return [_stage(results)]
    stages = []
    for member in results["average"]:
        if member["training"] is None:
            raise ValueError(f"nothing is recorded of the training of {member['checkpoint']}, a member of the average")
        share = f"weight {member['weight']:.3g} of the average of {len(results['average'])} runs"
        stages += [{**stage, "summary": f"{stage['summary']}; {share}"} for stage in stages_of(member["training"])]
    return stages


def settings_table(stages: Sequence[dict[str, Any]]) -> str:
    """Lay out the settings that matter, a column a stage."""
    lines = [["setting", *(str(number) for number in range(1, len(stages) + 1))], ["---"] * (len(stages) + 1)]
    lines += [[key, *(str(stage["settings"].get(key, "")) for stage in stages)] for key in SETTINGS_SHOWN]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def _stage(results: dict[str, Any]) -> dict[str, Any]:
    """Sum a training run up in words."""
    if not {"data", "settings", "best", "steps"} <= set(results):
        raise ValueError(
            f"these are no results of training: expected data, settings, best and steps, found {', '.join(results)}"
        )
    data, settings = results["data"], dict(results["settings"])
    kind = "ratings" if "train_ratings" in data else "pairs"
    count = data.get("train_ratings", data.get("train_pairs"))
    best = results["best"]
    summary = (
        f"{count:,} {kind}, {results['epochs']:g} epochs, {results['steps']:,} steps in {results['seconds'] / 60:.0f} minutes "
        f"({results['examples_per_second']:g} a second)"
    )
    if best["value"] is None:
        summary += "; validation not measured"
    else:
        summary += (
            f"; best validation {best['measure'].replace('_', ' ')} {best['value']:.3f} at step {best['step']:,}"
        )
    return {
        "title": "Fine-tuning" if kind == "ratings" else PRETRAINING,
        "summary": summary,
        "data": _data(data),
        "command": _command("finetune" if kind == "ratings" else "pretrain", settings),
        "settings": settings,
    }


def _data(data: dict[str, Any]) -> list[str]:
    """Name what was trained on, so that it can be told apart from other data."""
    sentences = [f"`{item['file']}`, SHA-256 `{item['sha256']}`" for item in data.get("files", [])]
    if pairs := data.get("pairs"):
        sentences.append(f"synthetic pairs `{pairs['folder']}`, {len(pairs['parts'])} parts")
    if signals := data.get("signals"):
        sentences.append(f"signals: {', '.join(signals)}")
    if "truncated" in data:
        sentences.append(f"{data['truncated']:,} texts were cut to the maximum length")
    return sentences


def _command(name: str, settings: dict[str, Any]) -> str:
    """Write the command that repeats a run, with files and folders by name."""
    words = [f"bleurt-repro {name}"]
    for key, value in settings.items():
        if key not in NO_OPTIONS and value is not None and value != []:
            shown = " ".join(map(str, value)) if isinstance(value, list) else str(value)
            words.append(f"--{key} {shown.lower() if isinstance(value, bool) else shown}")
    return " ".join([*words, "--output_dir OUT"])
