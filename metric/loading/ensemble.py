"""Ensembles: a checkpoint that is a weighted list of checkpoints (RoBLEURT, section 2.1.1), kept as one ensemble.json.

Its score is the weighted mean of its members' standardised scores; their standard deviation shows how much they
disagree.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from bleurt_repro.metric.layout import ROLES, Layout

ENSEMBLE_FILE = "ensemble.json"


@dataclass(frozen=True)
class Member:
    """One checkpoint of an ensemble.

    Attributes:
        checkpoint: folder beside ensemble.json, embedded name or Hub id.
        hash: content hash of the checkpoint; a checkpoint of another hash is no member.
        weight: weight of its standardised score, 0 or more; members' weights add up to 1.
        mean, std: mean and standard deviation of its scores on the validation ratings, by which they are standardised.
        revision: revision of a Hub id.
    """

    checkpoint: str
    hash: str
    weight: float
    mean: float
    std: float
    revision: str | None = None

    def __post_init__(self) -> None:
        path = PurePosixPath(self.checkpoint)
        if path.is_absolute() or ".." in path.parts or path.parts[:1] in ((), ("~",)) or "\\" in self.checkpoint:
            raise ValueError(
                f"member {self.checkpoint!r} must be a folder beside {ENSEMBLE_FILE}, an embedded name or a Hub id"
            )
        numbers = (self.weight, self.mean, self.std)
        if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
            raise ValueError(f"weight, mean and std of member {self.checkpoint} must be finite numbers")
        if self.weight < 0 or self.std <= 0:
            raise ValueError(f"member {self.checkpoint} must have a weight of 0 or more and a std above 0")

    @property
    def address(self) -> str:
        """The checkpoint with its revision."""
        return f"{self.checkpoint}@{self.revision}" if self.revision else self.checkpoint


@dataclass(frozen=True)
class Ensemble:
    """The content of ensemble.json.

    Attributes:
        members: at least two.
        mixed_layouts: whether the members may read different texts, as RoBLEURT-Src and RoBLEURT-NoSrc do.
    """

    members: tuple[Member, ...]
    mixed_layouts: bool = False

    def __post_init__(self) -> None:
        if len(self.members) < 2:
            raise ValueError(f"an ensemble has at least two members, found {len(self.members)}")
        if not math.isclose(total := sum(member.weight for member in self.members), 1, abs_tol=1e-6):
            raise ValueError(f"the weights of an ensemble's members must add up to 1, found {total:g}")

    def to_json(self) -> dict[str, Any]:
        """Return the content of ensemble.json."""
        return asdict(self)


def is_ensemble(folder: Path) -> bool:
    """Return whether a checkpoint's folder holds an ensemble."""
    return (folder / ENSEMBLE_FILE).is_file()


def read_ensemble(folder: Path) -> Ensemble:
    """Read an ensemble's file.

    Raises:
        ValueError: naming the file, if it is malformed.
    """
    path = folder / ENSEMBLE_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        members = tuple(Member(**member) for member in content["members"])
        return Ensemble(members, bool(content.get("mixed_layouts", False)))
    except (TypeError, KeyError, AttributeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is no ensemble ({error}): `bleurt-repro ensemble` writes one") from error


def common_layout(layouts: dict[str, Layout], mixed: bool) -> Layout:
    """Return the layout of an ensemble: its members', or all texts that any of them reads.

    Args:
        layouts: layouts of the members by name.
        mixed: whether the members may read different texts.

    Raises:
        ValueError: if they read different texts and may not.
    """
    input_sets = {frozenset(layout.inputs) for layout in layouts.values()}
    if len(input_sets) > 1 and not mixed:
        differences = "; ".join(f"{name} reads {', '.join(layout.inputs)}" for name, layout in layouts.items())
        raise ValueError(
            f"members of an ensemble must read the same texts, but {differences}: leave some out, or combine them on "
            "purpose with --mixed-layouts"
        )
    roles = frozenset().union(*input_sets)
    is_mixed = len(input_sets) > 1
    first = next(iter(layouts.values()))
    order = tuple(role for role in ROLES if role in roles) if is_mixed else first.inputs
    optional = first.optional if len({layout.optional for layout in layouts.values()}) == 1 else ()
    return Layout(order, max_length=min(layout.max_length for layout in layouts.values()), optional=optional)
