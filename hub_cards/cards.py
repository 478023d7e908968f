"""Draw the card of a checkpoint from measured results and from nothing else.

Fill a card's template.

What a card tells of training: each stage in words, with its data, its signals and the command that repeats it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.layout import Layout

if TYPE_CHECKING:
    from huggingface_hub import CardData, EvalResult

TEMPLATES = Path(__file__).parent / "templates"


def draw(template: str, data: CardData, **values: Any) -> str:
    """Draw a card.

    Args:
        template: its file's name.
        data: the metadata that stand above it.
        values: what the template asks for.

    Raises:
        ValueError: if jinja2, which the cards need, is not installed.
    """
    try:
        import jinja2
    except ImportError as error:
        raise ValueError("cards need jinja2: pip install 'bleurt-repro[train]'") from error
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)  # noqa: S701 - Markdown
    return environment.from_string(text).render(card_data=data.to_yaml(), **values)


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


# The Hub's word for a licence that nobody has stated: https://huggingface.co/docs/hub/repositories-licenses
UNKNOWN = "unknown"
DOMAIN = "those of the ratings it was trained on; elsewhere it is untested unless a table above says so."


def draw_model_card(
    folder: str | Path,
    *,
    training: Sequence[str | Path] = (),
    agreement: Sequence[str | Path] = (),
    repo_id: str | None = None,
    recipe: str | None = None,
    license: str | None = None,
    data_terms: str | None = None,
    domain: str | None = None,
) -> str:
    """Draw a checkpoint's card.

    Args:
        folder: the checkpoint.
        training: results.json of each stage of training, in order.
        agreement: results.json of agreement experiments that hold a row of this checkpoint.
        repo_id: where it will be published.
        recipe: where the commands that make it stand, a link or a sentence.
        license: of the weights, by the Hub's name for it.
        data_terms: on what terms the training data were had, a sentence.
        domain: which languages and kinds of text it is for, a sentence.

    Returns:
        Markdown with metadata, `model-index` included; what no file says is "not measured" or "not recorded".

    Raises:
        ValueError: if a results file has no row with this checkpoint's content hash.
    """
    from huggingface_hub import ModelCardData

    from bleurt_repro.metric.loading.find import embedded_names
    from bleurt_repro.metric.scorer import BleurtScorer

    folder = Path(folder)
    scorer = BleurtScorer(str(folder), device="cpu")
    measured = [_read(path) for path in agreement]
    stages = [stage for path in training for stage in stages_of(_read(path))]
    name = folder.resolve().name
    data = ModelCardData(
        language="en",
        license=license or UNKNOWN,
        library_name="transformers",
        pipeline_tag="text-classification",
        tags=["bleurt", "evaluation", "metric", "regression"],
        model_name=name,
        eval_results=[result for results in measured for result in _eval_results(results, scorer.signature)] or None,
    )
    return draw(
        "model_card.md",
        data,
        name=name,
        short_name=repo_id or (name if name in embedded_names() else placeholder(name)),
        address=repo_id or placeholder(name),
        recipe=recipe,
        parameters=f"{sum(weight.numel() for weight in scorer.model.parameters()) / 1e6:.1f} million",
        layout=Layout.from_config(scorer.model.config),
        calibration=scorer.calibration,
        training=stages,
        untrained_head=bool(stages) and stages[-1]["title"] == PRETRAINING,
        settings=settings_table(stages),
        agreement=[_table(results) for results in measured],
        domain=domain or DOMAIN,
        data_terms=data_terms,
        license=license,
        signature=scorer.signature,
    )


def placeholder(name: str) -> str:
    """Give what a card calls a checkpoint that is published nowhere yet; publishing puts the Hub id in its place."""
    return f"path/to/{name}"


def _read(path: str | Path) -> dict[str, Any]:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no results file: {error}") from error


def _row(results: dict[str, Any], signature: str) -> dict[str, Any]:
    """Find the checkpoint's row by its content hash: a name may have moved on to other weights."""
    content = _hash(signature)
    for row in results["rows"]:
        if row["kind"] == "checkpoint" and _hash(row["signature"]) == content:
            return row
    raise ValueError(f"the results of {results['data']['file']} have no row of the checkpoint with hash {content}")


def _hash(signature: str) -> str:
    return dict(field.partition(":")[::2] for field in signature.split("|"))["hash"]


def _eval_results(results: dict[str, Any], signature: str) -> list[EvalResult]:
    from huggingface_hub import EvalResult

    row = _row(results, signature)
    return [
        EvalResult(
            task_type="text-classification",
            task_name="agreement with human ratings",
            dataset_type=re.sub(r"\W+", "-", results["title"].lower()),
            dataset_name=results["title"],
            dataset_config=group,
            metric_type=measure,
            metric_value=round(figure["value"], 4),
            metric_name=measure.replace("_", " "),
        )
        for group, figures in row["groups"].items()
        for measure, figure in figures.items()
    ]


def _table(results: dict[str, Any]) -> dict[str, Any]:
    from bleurt_repro.training.experiments.agreement import draw_table

    return {
        "title": results["title"],
        "records": results["data"]["records"],
        "confidence": results["confidence"],
        "resamples": results["resamples"],
        "seed": results["seed"],
        "text": draw_table(results),
        "command": results["command"],
    }
