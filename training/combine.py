"""Put trained scorers together as an ensemble, weighted by what they do on validation ratings.

    bleurt-repro ensemble RUN_A RUN_B RUN_C --validation validation.jsonl --output OUT

The paper combines models by a weighted mean without saying how the weights are found (RoBLEURT, section 2.1.1). Here
they are those, none negative, whose combination of standardised scores comes nearest to the standardised ratings in
the least squares (`scipy.optimize.nnls`), divided by their sum.

Average the weights of scorers that were trained from the same encoder.

    bleurt-repro average RUN_A RUN_B --output OUT

One model, as fast as each of them, that often keeps what each does best (model soups, Wortsman et al., 2022,
https://proceedings.mlr.press/v162/wortsman22a.html).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.loading.ensemble import ENSEMBLE_FILE, Ensemble, Member, common_layout, is_ensemble

RECORD = "results.json"


def average_scorers(
    checkpoints: Sequence[str], output: str | Path, weights: Sequence[float] | None = None, dtype: str = "float32"
) -> None:
    """Write the weighted mean of several scorers as a scorer.

    Args:
        checkpoints: as `BleurtScorer` takes them; at least two, of one architecture, tokenizer and layout.
        output: the folder to write; its results.json holds the members' weights and their own results.
        weights: one a checkpoint, above 0; equal ones by default. They are divided by their sum.
        dtype: of the stored weights.

    Raises:
        ValueError: if there are fewer than two, or they do not fit together.
    """
    import torch

    from bleurt_repro import __version__
    from bleurt_repro.metric.files.writing import write_text
    from bleurt_repro.metric.loading.checksums import content_hash
    from bleurt_repro.metric.loading.find import load_checkpoint
    from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer

    shares = _shares(checkpoints, weights)
    members = [load_checkpoint(name) for name in checkpoints]
    first = members[0]
    mean = {name: torch.zeros_like(value) for name, value in first.model.state_dict().items()}
    for member, share in zip(members, shares, strict=True):
        state = member.model.state_dict()
        if {name: value.shape for name, value in state.items()} != {name: value.shape for name, value in mean.items()}:
            raise ValueError(
                f"{member.name} and {first.name} have weights of different shapes: they cannot be averaged"
            )
        if member.layout != first.layout or member.tokenizer.get_vocab() != first.tokenizer.get_vocab():
            raise ValueError(f"{member.name} and {first.name} read text differently: they cannot be averaged")
        for name, value in state.items():
            mean[name] += share * value if value.is_floating_point() else 0
    first.model.load_state_dict({name: mean[name] for name in mean if mean[name].is_floating_point()}, strict=False)
    prepare_scorer(first.model, first.tokenizer, first.layout)
    save_scorer(first.model, first.tokenizer, Path(output), getattr(torch, dtype))
    record = {
        "average": [
            {
                "checkpoint": member.name,
                "hash": content_hash(member.folder),
                "weight": share,
                "training": _results(member.folder),
            }
            for member, share in zip(members, shares, strict=True)
        ],
        "versions": {"bleurt_repro": __version__},
    }
    write_text(Path(output) / RECORD, json.dumps(record, indent=2) + "\n")


def _shares(checkpoints: Sequence[str], weights: Sequence[float] | None) -> list[float]:
    if len(checkpoints) < 2:
        raise ValueError(f"an average takes at least two checkpoints, found {len(checkpoints)}")
    chosen = list(weights) if weights else [1.0] * len(checkpoints)
    if len(chosen) != len(checkpoints) or min(chosen) <= 0:
        raise ValueError(f"give one weight above 0 for each of the {len(checkpoints)} checkpoints, found {chosen}")
    return [weight / sum(chosen) for weight in chosen]


def _results(folder: Path) -> dict[str, object] | None:
    path = folder / RECORD
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


Values = NDArray[np.float64]


def standardise(values: Values) -> Values:
    """Give values with mean 0 and standard deviation 1 along the last axis.

    Raises:
        ValueError: if a row does not vary.
    """
    deviation = values.std(axis=-1, keepdims=True)
    if not (deviation > 0).all():
        raise ValueError("scores or ratings that are all equal cannot be standardised")
    return (values - values.mean(axis=-1, keepdims=True)) / deviation


def tune_weights(scores: Values, ratings: Values) -> Values:
    """Find the weights of the members.

    Args:
        scores: standardised, (members, items).
        ratings: of people, (items,).

    Returns:
        (members,), none negative, of sum 1; equal ones where no member goes along with the ratings.
    """
    from scipy.optimize import nnls

    weights, _ = nnls(scores.T, standardise(ratings))
    return weights / weights.sum() if weights.sum() > 0 else np.full(len(scores), 1 / len(scores))


def make_ensemble(
    members: Sequence[str],
    validation: str | Path,
    output: str | Path,
    *,
    weights: Sequence[float] | None = None,
    mixed_layouts: bool = False,
    device: str | None = None,
) -> dict[str, Any]:
    """Score validation ratings with each member, tune the weights, and write the ensemble.

    Args:
        members: as `BleurtScorer` takes them; folders are copied into the ensemble's own.
        validation: ratings that no member was trained on.
        output: the folder to write: ensemble.json and results.json.
        weights: one a member instead of tuned ones.
        mixed_layouts: whether members may read different texts.
        device: where to score; the best there is by default.

    Returns:
        what results.json holds.

    Raises:
        ValueError: if there are fewer than two, one is an ensemble, or they do not fit together.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.metric.loading.find import find_checkpoint
    from bleurt_repro.metric.scorer import BleurtScorer

    if len(members) < 2 or len(set(members)) < len(members):
        raise ValueError(f"an ensemble takes at least two different checkpoints, found {', '.join(members) or 'none'}")
    if nested := [name for name in members if is_ensemble(find_checkpoint(name))]:
        raise ValueError(f"{nested[0]} is an ensemble: members are single checkpoints")
    if (Path(output) / "config.json").exists():
        raise ValueError(f"{output} holds a checkpoint: write the ensemble to a folder of its own")
    scorers = {name: BleurtScorer(name, device=device) for name in members}
    layout = common_layout({name: scorer.layout for name, scorer in scorers.items()}, mixed_layouts)
    rows = rating_records(validation, (*layout.inputs, "score"))
    scores = np.array([_scores(scorer, rows) for scorer in scorers.values()])
    ratings = np.array([row["score"] for row in rows], dtype=float)
    chosen = tune_weights(standardise(scores), ratings) if weights is None else _given(weights, len(members))
    ensemble = Ensemble(
        tuple(_member(scorer, *numbers) for scorer, *numbers in zip(scorers.values(), chosen, scores, strict=True)),
        mixed_layouts,
    )
    if len({member.checkpoint for member in ensemble.members}) < len(members):
        raise ValueError("members' folders must have different names, by which the ensemble holds copies of them")
    record = _record(ensemble, scores, ratings, validation, "given" if weights is not None else "nnls")
    _write(Path(output), ensemble, list(scorers.values()), record)
    return record


def _scores(scorer: Any, rows: Sequence[Mapping[str, Any]]) -> list[float]:
    texts: dict[str, Any] = {f"{role}s": [row[role] for row in rows] for role in scorer.layout.inputs}
    return scorer.score(**texts)


def _given(weights: Sequence[float], members: int) -> Values:
    if len(weights) != members or min(weights) < 0 or sum(weights) <= 0:
        raise ValueError(f"give one weight of 0 or more for each of the {members} members, found {list(weights)}")
    return np.array(weights, dtype=float) / sum(weights)


def _member(scorer: Any, weight: float, scores: Values) -> Member:
    from bleurt_repro.metric.loading.checksums import content_hash

    name, revision = scorer.checkpoint, ""
    if not Path(asked := scorer._arguments["checkpoint"]).expanduser().is_dir():
        name, _, revision = asked.partition("@")
    if not scores.std() > 0:
        raise ValueError(f"checkpoint {scorer.checkpoint} gives all validation ratings the same score")
    content = content_hash(scorer.folder)
    return Member(name, content, float(weight), float(scores.mean()), float(scores.std()), revision or None)


def _record(ensemble: Ensemble, scores: Values, ratings: Values, validation: str | Path, tuned: str) -> dict[str, Any]:
    from bleurt_repro import __version__
    from bleurt_repro.metric.statistics import kendall_tau, pearson_r
    from bleurt_repro.training.results import fingerprint

    def agreement(values: Values) -> dict[str, float]:
        return {"kendall_tau": kendall_tau(values, ratings), "pearson_r": pearson_r(values, ratings)}

    standard = standardise(scores)
    weights = np.array([member.weight for member in ensemble.members])
    combined = weights @ standard
    error = np.abs(standardise(combined) - standardise(ratings))
    spread = standard.std(axis=0)
    return {
        "ensemble": [
            {"checkpoint": member.address, "hash": member.hash, "weight": member.weight, **agreement(row)}
            for member, row in zip(ensemble.members, scores, strict=True)
        ],
        "weights": tuned,
        "tuned": agreement(combined),
        "equal_weights": agreement(standard.mean(axis=0)),
        "spread": {"mean": float(spread.mean()), "pearson_r_with_absolute_error": _correlation(spread, error)},
        "validation": {**fingerprint([str(validation)])[0], "ratings": len(ratings)},
        "versions": {"bleurt_repro": __version__},
    }


def _correlation(spread: Values, error: Values) -> float | None:
    from bleurt_repro.metric.statistics import pearson_r

    return pearson_r(spread, error) if np.ptp(spread) > 0 and np.ptp(error) > 0 else None


def _write(folder: Path, ensemble: Ensemble, scorers: Sequence[Any], record: dict[str, Any]) -> None:
    from bleurt_repro.metric.files.writing import write_text
    from bleurt_repro.metric.loading.checksums import SCORING_FILES

    folder.mkdir(parents=True, exist_ok=True)
    for member, scorer in zip(ensemble.members, scorers, strict=True):
        if Path(scorer._arguments["checkpoint"]).expanduser().is_dir():
            copy = folder / member.checkpoint
            copy.mkdir(exist_ok=True)
            for path in {path for pattern in SCORING_FILES for path in scorer.folder.glob(pattern)}:
                if path.resolve() != (copy / path.name).resolve():
                    shutil.copy2(path, copy / path.name)
    write_text(folder / RECORD, json.dumps(record, indent=2) + "\n")
    write_text(folder / ENSEMBLE_FILE, json.dumps(ensemble.to_json(), indent=2) + "\n")
