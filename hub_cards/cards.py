"""Draw the card of a checkpoint from measured results and from nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.layout import Layout

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

TEMPLATES = Path(__file__).parent / "templates"
SETTINGS_SHOWN = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "layer_decay", "num_train_epochs", "max_steps",
    "global_batch_size", "max_length", "bf16", "seed",
)  # fmt: skip
LICENSE = "apache-2.0"
DOMAIN = (
    "news translated into English, by the ratings it was trained on; elsewhere it is untested unless a table says so."
)
DATA_TERMS = "The ratings are those of the WMT shared tasks, given out for research; cite the findings papers of the years used."


def draw_model_card(
    folder: str | Path,
    *,
    training: Sequence[str | Path] = (),
    agreement: Sequence[str | Path] = (),
    repo_id: str | None = None,
    recipe: str | None = None,
) -> str:
    """Draw a checkpoint's card.

    Args:
        folder: the checkpoint.
        training: results.json of each stage of training, in order.
        agreement: results.json of agreement experiments that hold a row of this checkpoint.
        repo_id: where it will be published.
        recipe: where the commands that make it stand, a link or a sentence.

    Returns:
        Markdown with metadata, `model-index` included; what no file says is "not measured" or "not recorded".

    Raises:
        ValueError: if a results file has no row with this checkpoint's content hash.
    """
    from huggingface_hub import ModelCard, ModelCardData

    from bleurt_repro.metric.scorer import BleurtScorer

    folder = Path(folder)
    scorer = BleurtScorer(str(folder), device="cpu")
    measured = [_read(path) for path in agreement]
    stages = [stage for path in training for stage in _stages(_read(path))]
    name = folder.resolve().name
    data = ModelCardData(
        language="en",
        license=LICENSE,
        library_name="transformers",
        pipeline_tag="text-classification",
        tags=["bleurt", "evaluation", "metric", "regression"],
        model_name=name,
        eval_results=[result for results in measured for result in _eval_results(results, scorer.signature)] or None,
    )
    card = ModelCard.from_template(
        data,
        template_path=str(TEMPLATES / "model_card.md"),
        name=name,
        repo_id=repo_id,
        recipe=recipe,
        parameters=f"{sum(weight.numel() for weight in scorer.model.parameters()) / 1e6:.1f} million",
        layout=Layout.from_config(scorer.model.config),
        training=stages,
        settings=_settings_table(stages),
        agreement=[_table(results) for results in measured],
        limits={"domain": DOMAIN, "data_terms": DATA_TERMS},
        license=LICENSE,
        signature=scorer.signature,
    )
    return str(card)


def _read(path: str | Path) -> dict[str, Any]:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no results file: {error}") from error


def _stages(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Give a run as one stage; an average as the runs of its members."""
    if "average" not in results:
        return [_stage(results)]
    stages = []
    for member in results["average"]:
        if member["training"] is None:
            raise ValueError(f"nothing is recorded of the training of {member['checkpoint']}, a member of the average")
        share = f"weight {member['weight']:.3g} of the average of {len(results['average'])} runs"
        stages += [{**stage, "summary": f"{stage['summary']}; {share}"} for stage in _stages(member["training"])]
    return stages


def _stage(results: dict[str, Any]) -> dict[str, Any]:
    """Sum a training run up in words."""
    data, settings = results["data"], dict(results["settings"])
    kind = "ratings" if "train_ratings" in data else "pairs"
    count = data.get("train_ratings", data.get("train_pairs"))
    best = results["best"]
    summary = (
        f"{count:,} {kind}, {results['epochs']:g} epochs, {results['steps']:,} steps in {results['seconds'] / 60:.0f} minutes "
        f"({results['examples_per_second']:g} a second)"
    )
    if best["value"] is not None:
        summary += (
            f"; best validation {best['measure'].replace('_', ' ')} {best['value']:.3f} at step {best['step']:,}"
        )
    return {"title": "Fine-tuning" if kind == "ratings" else "Pre-training", "summary": summary, "settings": settings}


def _settings_table(stages: Sequence[dict[str, Any]]) -> str:
    lines = [["setting", *(str(number) for number in range(1, len(stages) + 1))], ["---"] * (len(stages) + 1)]
    lines += [[key, *(str(stage["settings"].get(key, "")) for stage in stages)] for key in SETTINGS_SHOWN]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


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
