"""Make one scorer of several: an average of their weights, or an ensemble of their scores.

    bleurt-repro average RUN_A RUN_B --output OUT
    bleurt-repro average RUN --dtype float8 --max-shard-size 45MB --output OUT
    bleurt-repro ensemble RUN_A RUN_B RUN_C --validation validation.jsonl --output OUT

An average is one model, as fast as each of its members, and often keeps the strengths of each (model soups, Wortsman et
al., 2022, https://proceedings.mlr.press/v162/wortsman22a.html); the members must have been trained from the same encoder.
With a single member, the command stores it in a smaller type, in several files, or with scores on another scale.

An ensemble scores with all its members. The paper combines models by a weighted mean without saying how the weights are
found (RoBLEURT, section 2.1.1). Here they are the non-negative weights whose combination of standardised scores is closest
to the standardised ratings by least squares (`scipy.optimize.nnls`), divided by their sum.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.metric.files.writing import atomic_folder, validate_output_folder, write_text
from bleurt_repro.metric.loading.checksums import SCORING_FILES, WEIGHT_FILES, content_hash, file_records
from bleurt_repro.metric.loading.ensemble import ENSEMBLE_FILE, Ensemble, Member, common_layout, is_ensemble
from bleurt_repro.metric.loading.find import find_checkpoint
from bleurt_repro.metric.loading.open import Checkpoint, load_checkpoint
from bleurt_repro.metric.statistics import Values, standardise
from bleurt_repro.training.metrics.statistics import kendall_tau, pearson_r
from bleurt_repro.training.results import RESULTS, Result
from bleurt_repro.training.training_references import TRAINING_REFERENCES, merge_references

CONFIG = "config.json"
DTYPES = {
    "float32": "float32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "float8": "float8_e4m3fn",
}  # torch's names
FILE_SIZE = re.compile(r"\s*0*[1-9]\d{0,8}\s*[KMGT]B\s*", re.IGNORECASE)  # as huggingface_hub reads sizes


def average_scorers(
    checkpoints: Sequence[str],
    output: str | Path,
    weights: Sequence[float] | None = None,
    dtype: str = "float32",
    overwrite: bool = False,
    max_shard_size: str | None = None,
    scale: float = 1.0,
) -> Result:
    """Write the weighted mean of the weights of several scorers as a scorer, without a calibration.

    Args:
        checkpoints: folders, embedded names or Hub ids, all of the same architecture, tokenizer and layout; one is stored anew.
        output: folder to write; its results.json holds the weights of the members and their own results.
        weights: one number above 0 per checkpoint; equal by default. They are divided by their sum.
        dtype: type of the stored weights, one of `DTYPES`; `metric.loading.save.rounded_to_float8` describes float8.
        overwrite: whether to write to a folder that holds other files.
        max_shard_size: size of a file of weights, such as "45MB"; one file by default.
        scale: number above 0 that multiplies all scores.

    Returns:
        what results.json holds.

    Raises:
        ValueError: if there is no member, the scale is not above 0, they do not fit together, the output is one of them, or their weights
            cannot be stored in float8.
    """
    import torch

    from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer

    if dtype not in DTYPES:
        raise ValueError(f"dtype must be {', '.join(DTYPES)}, found {dtype!r}")
    if max_shard_size is not None and not FILE_SIZE.fullmatch(max_shard_size):
        raise ValueError(
            f"max_shard_size must be a whole number above 0 and KB, MB or GB, such as 45MB, found {max_shard_size!r}"
        )
    if not 0 < scale < math.inf:
        raise ValueError(f"scale must be a number above 0, found {scale}")
    if not checkpoints:
        raise ValueError("an average takes at least one checkpoint, found none")
    shares = _normalize(weights, len(checkpoints), "checkpoint", least=1e-12)
    folder = _validate_output(output, checkpoints, overwrite)
    members = [load_checkpoint(name) for name in checkpoints]
    first = members[0]
    # The first member becomes the average.
    first.model.load_state_dict(_mean_weights(members, shares), strict=False)
    _scale_scores(first.model, scale)
    prepare_scorer(first.model, first.tokenizer, first.layout)
    options = {"dtype": (dtype, "float32"), "max-shard-size": (max_shard_size, None), "scale": (scale, 1.0)}
    storage = {name: str(value) for name, (value, default) in options.items() if value != default}
    command = _command("average", checkpoints, weights, **storage)
    result = Result("average", command, {"average": _member_records(members, shares)})
    references = merge_references([member.folder for member in members])
    with atomic_folder(folder, CONFIG, replaced=WEIGHT_FILES) as unfinished:
        if references:
            references.write(unfinished)
        save_scorer(first.model, first.tokenizer, unfinished, getattr(torch, DTYPES[dtype]), max_shard_size)
        result.write(unfinished)
    return result


def _mean_weights(members: Sequence[Checkpoint], shares: Sequence[float]) -> dict[str, Any]:
    """Compute the weighted mean of the models' tensors, by name.

    Raises:
        ValueError: if the models differ in the shapes of their weights, or in how they read text.
    """
    import torch

    first = members[0].model.state_dict()
    shapes = {name: value.shape for name, value in first.items()}
    states = []
    for member in members:
        state = member.model.state_dict()
        if {name: value.shape for name, value in state.items()} != shapes:
            raise ValueError(
                f"{member.name} and {members[0].name} have weights of different shapes: they cannot be averaged"
            )
        if member.layout != members[0].layout or member.tokenizer.get_vocab() != members[0].tokenizer.get_vocab():
            raise ValueError(f"{member.name} and {members[0].name} read text differently: they cannot be averaged")
        states.append(state)
    mean = {}
    for name, value in first.items():
        if value.is_floating_point():
            is_equal, total = torch.ones_like(value, dtype=torch.bool), torch.zeros_like(value)
            for state, share in zip(states, shares, strict=True):
                is_equal &= state[name] == value
                total += share * state[name]
            # A number that is equal in all members stays the same to the bit; its shares need not add up to it.
            mean[name] = torch.where(is_equal, value, total)
    return mean


def _scale_scores(model: Any, scale: float) -> None:
    """Multiply the scores of a model by a number: its last layer, which alone has a single output."""
    import torch

    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear) and layer.out_features == 1:
            for parameter in layer.parameters():
                parameter.data.mul_(scale)


def _member_records(members: Sequence[Checkpoint], shares: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {
            "checkpoint": member.name,
            "hash": member.content,
            "weight": share,
            "training": Result.read(member.folder).to_json() if (member.folder / RESULTS).is_file() else None,
        }
        for member, share in zip(members, shares, strict=True)
    ]


def make_ensemble(
    members: Sequence[str],
    validation: str | Path,
    output: str | Path,
    *,
    weights: Sequence[float] | None = None,
    mixed_layouts: bool = False,
    device: str | None = None,
    overwrite: bool = False,
) -> Result:
    """Score validation ratings with each member, tune the weights, and write the ensemble.

    Args:
        members: folders, embedded names or Hub ids; folders are copied into that of the ensemble.
        validation: file of ratings that no member was trained on.
        output: folder to write, with ensemble.json and results.json.
        weights: one number per member, in place of tuned weights.
        mixed_layouts: whether members may read different texts.
        device: device to score on; the best available by default.
        overwrite: whether to write to a folder that holds other files.

    Returns:
        what results.json holds.

    Raises:
        ValueError: if there are fewer than two members, one is an ensemble, or they do not fit together.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.metric.scorer import BleurtScorer

    if len(members) < 2 or len(set(members)) < len(members):
        raise ValueError(f"an ensemble takes at least two different checkpoints, found {', '.join(members) or 'none'}")
    if nested := [name for name in members if is_ensemble(find_checkpoint(name))]:
        raise ValueError(f"{nested[0]} is an ensemble: members are single checkpoints")
    shares = None if weights is None else np.array(_normalize(weights, len(members), "member"))
    folder = _validate_output(output, members, overwrite)
    if (folder / CONFIG).exists():
        raise ValueError(f"{output} holds a checkpoint: write the ensemble to another folder")
    # Score the validation ratings with each member.
    scorers = [BleurtScorer(name, device=device) for name in members]
    layouts = {name: scorer.layout for name, scorer in zip(members, scorers, strict=True)}
    layout = common_layout(layouts, mixed_layouts)
    rows = rating_records(validation, (*layout.required, "score"))
    scores = np.array([scorer.score_rows(rows) for scorer in scorers])  # (members, ratings)
    ratings = np.array([row["score"] for row in rows], dtype=float)
    _check_variation(members, scores)
    # Tune the weights, unless they are given.
    if shares is None:
        shares = tune_weights(standardise(scores), ratings)
    rows_by_member = zip(members, scorers, shares.tolist(), scores, strict=True)
    ensemble = Ensemble(tuple(_make_member(*row) for row in rows_by_member), mixed_layouts)
    if len({member.checkpoint for member in ensemble.members}) < len(members):
        raise ValueError(
            "the folders of the members must have different names: the ensemble holds a copy of each by its name"
        )
    record = _agreement_record(ensemble, scores, ratings)
    record["weights"] = "nnls" if weights is None else "given"
    record["validation"] = {**file_records([validation])[0], "ratings": len(ratings)}
    command = _command("ensemble", members, weights, validation=str(validation))
    result = Result("ensemble", command, record, data={"files": file_records([validation])})
    # Write the ensemble, with copies of the members that are folders.
    copied = {name: scorer.folder for name, scorer in zip(members, scorers, strict=True) if _is_folder(name)}
    with atomic_folder(folder, ENSEMBLE_FILE) as unfinished:
        for source in copied.values():
            _copy_member(source, unfinished / source.resolve().name)
        write_text(unfinished / ENSEMBLE_FILE, json.dumps(ensemble.to_json(), indent=2) + "\n")
        result.write(unfinished)
    return result


def tune_weights(scores: Values, ratings: Values) -> Values:
    """Find the weights of the members by non-negative least squares.

    Args:
        scores: standardised scores, shape (members, items).
        ratings: human ratings, shape (items,).

    Returns:
        weights, shape (members,), not negative, with a sum of 1; equal where no member agrees with the ratings.
    """
    from scipy.optimize import nnls

    weights, _ = nnls(scores.T, standardise(ratings))
    return weights / weights.sum() if weights.sum() > 0 else np.full(len(scores), 1 / len(scores))


def _check_variation(members: Sequence[str], scores: Values) -> None:
    for name, row in zip(members, scores, strict=True):
        if not row.std() > 0:
            raise ValueError(f"checkpoint {name} gives all validation ratings the same score")


def _make_member(address: str, scorer: Any, weight: float, scores: Values) -> Member:
    """Return the entry of a member in ensemble.json."""
    revision = "" if _is_folder(address) else address.partition("@")[2]
    name = scorer.checkpoint.partition("@")[0] if revision else scorer.checkpoint
    content = content_hash(scorer.folder)
    return Member(name, content, weight, float(scores.mean()), float(scores.std()), revision or None)


def _agreement_record(ensemble: Ensemble, scores: Values, ratings: Values) -> dict[str, Any]:
    """Measure how well the members agree with the ratings, alone and together."""

    def agreement(values: Values) -> dict[str, float]:
        return {"kendall_tau": kendall_tau(values, ratings), "pearson_r": pearson_r(values, ratings)}

    standard = standardise(scores)
    combined = np.array([member.weight for member in ensemble.members]) @ standard
    error = np.abs(standardise(combined) - standardise(ratings))
    spread = standard.std(axis=0)
    both_vary = np.ptp(spread) > 0 and np.ptp(error) > 0
    return {
        "ensemble": [
            {"checkpoint": member.address, "hash": member.hash, "weight": member.weight, **agreement(row)}
            for member, row in zip(ensemble.members, scores, strict=True)
        ],
        "tuned": agreement(combined),
        "equal_weights": agreement(standard.mean(axis=0)),
        "spread": {
            "mean": float(spread.mean()),
            "pearson_r_with_absolute_error": pearson_r(spread, error) if both_vary else None,
        },
    }


def _copy_member(source: Path, copy: Path) -> None:
    """Copy the files that decide the scores of a checkpoint, and its training references."""
    copy.mkdir()
    for path in {path for pattern in (*SCORING_FILES, TRAINING_REFERENCES) for path in source.glob(pattern)}:
        shutil.copy2(path, copy / path.name)


def _normalize(weights: Sequence[float] | None, count: int, noun: str, least: float = 0.0) -> list[float]:
    """Return weights divided by their sum; equal weights if there are none.

    Args:
        weights: weights to normalise.
        count: number of weights that there must be.
        noun: what each of them is for, in messages.
        least: smallest weight.
    """
    numbers = [1.0] * count if weights is None or not len(weights) else [float(weight) for weight in weights]
    total = sum(numbers)
    if len(numbers) != count or min(numbers) < least or not 0 < total < math.inf:
        bound = "above 0" if least else "of 0 or more"
        raise ValueError(f"give one finite weight {bound} for each of the {count} {noun}s, found {numbers}")
    return [weight / total for weight in numbers]


def _validate_output(output: str | Path, checkpoints: Sequence[str], overwrite: bool) -> Path:
    return validate_output_folder(output, checkpoints, (RESULTS, CONFIG, ENSEMBLE_FILE), overwrite)


def _is_folder(name: str) -> bool:
    return Path(name).expanduser().is_dir()


def _command(name: str, checkpoints: Sequence[str], weights: Sequence[float] | None, **options: str) -> str:
    """Return the command that makes the checkpoint again, with paths without their folders."""
    names = [Path(checkpoint).name if _is_folder(checkpoint) else checkpoint for checkpoint in checkpoints]
    arguments = [f"bleurt-repro {name}", *names]
    arguments += [f"--{option} {Path(value).name}" for option, value in options.items()]
    arguments += [f"--weight {weight:g}" for weight in weights or ()]
    return " ".join([*arguments, "--output OUT"])
