"""Make one scorer of several: an average of their weights, or an ensemble of their scores.

    bleurt-repro average RUN_A RUN_B --output OUT
    bleurt-repro average RUN --dtype float8 --max-shard-size 45MB --output OUT
    bleurt-repro ensemble RUN_A RUN_B RUN_C --validation validation.jsonl --output OUT

An average is one model, as fast as each of its members, that often keeps what each does best (model soups, Wortsman et
al., 2022, https://proceedings.mlr.press/v162/wortsman22a.html); they must have been trained from the same encoder. One
scorer alone is stored in another way: in smaller numbers, or in several files.

An ensemble scores with all its members. The paper combines models by a weighted mean without saying how the weights are
found (RoBLEURT, section 2.1.1). Here they are those, none negative, whose combination of standardised scores comes
nearest to the standardised ratings in the least squares (`scipy.optimize.nnls`), divided by their sum.
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
from bleurt_repro.metric.loading.checksums import SCORING_FILES, WEIGHT_FILES, content_hash
from bleurt_repro.metric.loading.ensemble import ENSEMBLE_FILE, Ensemble, Member, common_layout, is_ensemble
from bleurt_repro.metric.loading.open import Checkpoint, find_checkpoint, load_checkpoint
from bleurt_repro.metric.statistics import Values, standardise
from bleurt_repro.training.metrics.statistics import kendall_tau, pearson_r
from bleurt_repro.training.results import RESULTS, Result, fingerprint

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
) -> Result:
    """Write the weighted mean of several scorers as a scorer; a calibration of theirs does not hold for it.

    Args:
        checkpoints: as `BleurtScorer` takes them, of one architecture, tokenizer and layout; at least two, or one to be
            stored in another way.
        output: the folder to write; its results.json holds the members' weights and their own results.
        weights: one per checkpoint, above 0; equal ones by default. They are divided by their sum.
        dtype: of the stored weights, one of `DTYPES`; float8 as `metric.loading.save.rounded_to_float8` describes it.
        overwrite: write to a folder that holds other files, too.
        max_shard_size: of a file of weights, such as "45MB"; one file by default.

    Returns:
        what results.json holds.

    Raises:
        ValueError: if there are too few, they do not fit together, the output is one of them, or float8 does not suffice.
    """
    import torch

    from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer

    if dtype not in DTYPES:
        raise ValueError(f"dtype must be {', '.join(DTYPES)}, found {dtype!r}")
    if max_shard_size is not None and not FILE_SIZE.fullmatch(max_shard_size):
        raise ValueError(
            f"max_shard_size must be a whole number above 0 and KB, MB or GB, such as 45MB, found {max_shard_size!r}"
        )
    if len(checkpoints) < (2 if (dtype, max_shard_size) == ("float32", None) else 1):
        raise ValueError(
            f"an average takes at least two checkpoints, found {len(checkpoints)}; one alone takes another dtype or a "
            "max_shard_size to be stored by"
        )
    shares = _shares(weights, len(checkpoints), "checkpoint", least=1e-12)
    folder = _chosen_output(output, checkpoints, overwrite)
    members = [load_checkpoint(name) for name in checkpoints]
    first = members[0]
    first.model.load_state_dict(_mean_weights(members, shares), strict=False)
    prepare_scorer(first.model, first.tokenizer, first.layout)
    storage = ({"dtype": dtype} if dtype != "float32" else {}) | (
        {"max-shard-size": max_shard_size} if max_shard_size else {}
    )
    command = _command("average", checkpoints, weights, **storage)
    result = Result("average", command, {"average": _members(members, shares)})
    with atomic_folder(folder, CONFIG, replaced=WEIGHT_FILES) as unfinished:
        save_scorer(first.model, first.tokenizer, unfinished, getattr(torch, DTYPES[dtype]), max_shard_size)
        result.write(unfinished)
    return result


def _mean_weights(members: Sequence[Checkpoint], shares: Sequence[float]) -> dict[str, Any]:
    """Compute the weighted mean of the models' weights, by name.

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
            alike, total = torch.ones_like(value, dtype=torch.bool), torch.zeros_like(value)
            for state, share in zip(states, shares, strict=True):
                alike &= state[name] == value
                total += share * state[name]
            # what is the same in all stays so to the bit; shares of it need not add up to it
            mean[name] = torch.where(alike, value, total)
    return mean


def _members(members: Sequence[Checkpoint], shares: Sequence[float]) -> list[dict[str, Any]]:
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
        members: as `BleurtScorer` takes them; folders are copied into the ensemble's own.
        validation: ratings that no member was trained on.
        output: the folder to write: ensemble.json and results.json.
        weights: one per member instead of tuned ones.
        mixed_layouts: whether members may read different texts.
        device: where to score; the best available by default.
        overwrite: write to a folder that holds other files, too.

    Returns:
        what results.json holds.

    Raises:
        ValueError: if there are fewer than two, one is an ensemble, or they do not fit together.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.metric.scorer import BleurtScorer

    if len(members) < 2 or len(set(members)) < len(members):
        raise ValueError(f"an ensemble takes at least two different checkpoints, found {', '.join(members) or 'none'}")
    if nested := [name for name in members if is_ensemble(find_checkpoint(name))]:
        raise ValueError(f"{nested[0]} is an ensemble: members are single checkpoints")
    given = None if weights is None else np.array(_shares(weights, len(members), "member"))
    folder = _chosen_output(output, members, overwrite)
    if (folder / CONFIG).exists():
        raise ValueError(f"{output} holds a checkpoint: write the ensemble to a folder of its own")
    scorers = [BleurtScorer(name, device=device) for name in members]
    layouts = {name: scorer.layout for name, scorer in zip(members, scorers, strict=True)}
    layout = common_layout(layouts, mixed_layouts)
    rows = rating_records(validation, (*layout.inputs, "score"))
    scores = np.array([scorer.score_rows(rows) for scorer in scorers])  # (members, ratings)
    ratings = np.array([row["score"] for row in rows], dtype=float)
    _check_variation(members, scores)
    chosen = tune_weights(standardise(scores), ratings) if given is None else given
    named = zip(members, scorers, chosen.tolist(), scores, strict=True)
    ensemble = Ensemble(tuple(_member(*parts) for parts in named), mixed_layouts)
    if len({member.checkpoint for member in ensemble.members}) < len(members):
        raise ValueError("members' folders must have different names, by which the ensemble holds copies of them")
    record = _record(ensemble, scores, ratings)
    record["weights"] = "nnls" if weights is None else "given"
    record["validation"] = {**fingerprint([validation])[0], "ratings": len(ratings)}
    command = _command("ensemble", members, weights, validation=str(validation))
    result = Result("ensemble", command, record, data={"files": fingerprint([validation])})
    copied = {name: scorer.folder for name, scorer in zip(members, scorers, strict=True) if _is_folder(name)}
    with atomic_folder(folder, ENSEMBLE_FILE) as unfinished:
        for source in copied.values():
            _copy_member(source, unfinished / source.resolve().name)
        write_text(unfinished / ENSEMBLE_FILE, json.dumps(ensemble.to_json(), indent=2) + "\n")
        result.write(unfinished)
    return result


def tune_weights(scores: Values, ratings: Values) -> Values:
    """Find the weights of the members.

    Args:
        scores: standardised, (members, items).
        ratings: of people, (items,).

    Returns:
        (members,), none negative, of sum 1; equal ones where no member agrees with the ratings.
    """
    from scipy.optimize import nnls

    weights, _ = nnls(scores.T, standardise(ratings))
    return weights / weights.sum() if weights.sum() > 0 else np.full(len(scores), 1 / len(scores))


def _check_variation(members: Sequence[str], scores: Values) -> None:
    for name, row in zip(members, scores, strict=True):
        if not row.std() > 0:
            raise ValueError(f"checkpoint {name} gives all validation ratings the same score")


def _member(asked: str, scorer: Any, weight: float, scores: Values) -> Member:
    """Return a member's entry of ensemble.json."""
    revision = "" if _is_folder(asked) else asked.partition("@")[2]
    name = scorer.checkpoint.partition("@")[0] if revision else scorer.checkpoint
    content = content_hash(scorer.folder)
    return Member(name, content, weight, float(scores.mean()), float(scores.std()), revision or None)


def _record(ensemble: Ensemble, scores: Values, ratings: Values) -> dict[str, Any]:
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
    """Copy what decides a checkpoint's scores."""
    copy.mkdir()
    for path in {path for pattern in SCORING_FILES for path in source.glob(pattern)}:
        shutil.copy2(path, copy / path.name)


def _shares(weights: Sequence[float] | None, count: int, kind: str, least: float = 0.0) -> list[float]:
    """Return the weights divided by their sum; equal ones if none are given.

    Args:
        weights: as given.
        count: how many there must be.
        kind: of what there is one for each.
        least: that a weight may be.
    """
    chosen = [1.0] * count if weights is None or not len(weights) else [float(weight) for weight in weights]
    total = sum(chosen)
    if len(chosen) != count or min(chosen) < least or not 0 < total < math.inf:
        bound = "above 0" if least else "of 0 or more"
        raise ValueError(f"give one finite weight {bound} for each of the {count} {kind}s, found {chosen}")
    return [weight / total for weight in chosen]


def _chosen_output(output: str | Path, checkpoints: Sequence[str], overwrite: bool) -> Path:
    return validate_output_folder(output, checkpoints, (RESULTS, CONFIG, ENSEMBLE_FILE), overwrite)


def _is_folder(name: str) -> bool:
    return Path(name).expanduser().is_dir()


def _command(name: str, checkpoints: Sequence[str], weights: Sequence[float] | None, **options: str) -> str:
    """Return the command that makes the checkpoint again, with files and folders by name."""
    names = [Path(checkpoint).name if _is_folder(checkpoint) else checkpoint for checkpoint in checkpoints]
    words = [f"bleurt-repro {name}", *names]
    words += [f"--{option} {Path(value).name}" for option, value in options.items()]
    words += [f"--weight {weight:g}" for weight in weights or ()]
    return " ".join([*words, "--output OUT"])
