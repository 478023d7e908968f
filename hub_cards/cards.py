"""Draw the card of a checkpoint from measured results and from nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.hub_cards.drawing import draw
from bleurt_repro.hub_cards.stages import PRETRAINING, settings_table, stages_of
from bleurt_repro.metric.layout import Layout

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

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

    from bleurt_repro.metric.checkpoints import embedded_names
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
