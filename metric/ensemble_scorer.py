"""Scores with an ensemble, through the interface of `BleurtScorer`, which opens one by itself."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.loading.ensemble import common_layout, member_folder, read_ensemble
from bleurt_repro.metric.loading.find import find_checkpoint
from bleurt_repro.metric.scorer import AGGREGATES, BleurtScorer, ScoringResult

if TYPE_CHECKING:
    from bleurt_repro.metric.forward.pairs import Item

Values = NDArray[np.float64]


class EnsembleScorer(BleurtScorer):
    """What `BleurtScorer(checkpoint)` gives for an ensemble; its arguments and methods are the same.

    Attributes:
        members: a scorer each.
        model, tokenizer: the first member's.
    """

    def __init__(self, checkpoint: str, *positions: Any, **options: Any) -> None:
        bound = signature(BleurtScorer.__init__).bind(self, checkpoint, *positions, **options).arguments
        options = {name: value for name, value in bound.items() if name not in ("self", "checkpoint")}
        self._arguments = {"checkpoint": checkpoint, **options}
        self.folder = find_checkpoint(checkpoint)
        ensemble = read_ensemble(self.folder)
        folders = [member_folder(self.folder, member) for member in ensemble.members]
        self.members = [BleurtScorer(str(folder), **options) for folder in folders]
        names = [member.address for member in ensemble.members]
        layouts = dict(zip(names, (scorer.layout for scorer in self.members), strict=True))
        self.layout = common_layout(layouts, ensemble.mixed_layouts)
        # Of a local folder only its name, as of any checkpoint.
        self.checkpoint = self.folder.resolve().name if Path(checkpoint).expanduser().is_dir() else str(checkpoint)
        self._weights, self._means, self._stds = (
            np.array([getattr(member, name) for member in ensemble.members]) for name in ("weight", "mean", "std")
        )
        first = self.members[0]
        self.model, self.tokenizer, self.device, self.backend = (
            first.model,
            first.tokenizer,
            first.device,
            first.backend,
        )
        self.calibration = None
        self.gives_std = True
        self._progress = options.get("progress")

    def member_scores(self, items: list[Item], done: Callable[[int], object] = lambda count: None) -> Values:
        """Give the standardised scores of each member.

        Args:
            items: texts in the order of the ensemble's layout.
            done: called with the number of items that all members together have scored since the last call.

        Returns:
            (members, items).
        """
        return self._scored(items, done)[0]

    def _scored(self, items: list[Item], done: Callable[[int], object]) -> tuple[Values, int]:
        share = _Share(len(self.members), done)
        scores, cut = np.zeros((len(self.members), len(items))), np.zeros(len(items), dtype=bool)
        for row, member in enumerate(self.members):
            places = [self.layout.inputs.index(role) for role in member.layout.inputs]
            own = member._pairs.score([tuple(item[i] for i in places) for item in items], share)
            scores[row] = [result.score for result in own]
            cut |= np.array([result.truncated for result in own], dtype=bool)
        return (scores - self._means[:, None]) / self._stds[:, None], int(cut.sum())

    def _result(
        self,
        items: list[Item],
        owners: list[int],
        aggregate: str,
        calibrated: bool,
        done: Callable[[int], object],
    ) -> ScoringResult:
        members, truncated = self._scored(items, done)
        scores = self._weights @ members
        places: list[list[int]] = [[] for _ in range(owners[-1] + 1 if owners else 0)]
        for place, owner in enumerate(owners):
            places[owner].append(place)
        totals = [AGGREGATES[aggregate](scores[own].tolist()) for own in places]
        # With "max" the members are compared on the reference that counts, with "mean" on their own means.
        read = [[own[int(scores[own].argmax())]] if aggregate == "max" else own for own in places]
        spread = [float(members[:, own].mean(axis=1).std()) for own in read]
        mean = sum(totals) / len(totals) if totals else None
        return ScoringResult(totals, mean, self.scoring_signature(aggregate, calibrated), truncated, spread)


class _Share:
    """Counts an item as done once as many scores are there as there are members for it."""

    def __init__(self, members: int, done: Callable[[int], object]) -> None:
        self._members, self._done, self._scores = members, done, 0

    def __call__(self, count: int) -> None:
        before, self._scores = self._scores // self._members, self._scores + count
        self._done(self._scores // self._members - before)
