"""Average the weights of scorers that were trained from the same encoder.

    bleurt-repro average RUN_A RUN_B --output OUT

One model, as fast as each of them, that often keeps what each does best (model soups, Wortsman et al., 2022,
https://proceedings.mlr.press/v162/wortsman22a.html).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

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
    from bleurt_repro.metric.atomic import write_text
    from bleurt_repro.metric.checkpoints import load_checkpoint
    from bleurt_repro.metric.signature import content_hash
    from bleurt_repro.training.export import prepare_scorer, save_scorer

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
