"""The scorer: references and candidates in, one score a candidate out (BLEURT, section 3.2)."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

from bleurt_repro.metric.calibration import Calibration
from bleurt_repro.metric.forward.encoding import PairEncoder
from bleurt_repro.metric.forward.pairs import Forward, PairScorer
from bleurt_repro.metric.forward.score_cache import ScoreCache
from bleurt_repro.metric.inputs import check_references, check_same_length, check_texts
from bleurt_repro.metric.layout import input_faults
from bleurt_repro.metric.loading.ensemble import is_ensemble
from bleurt_repro.metric.loading.find import find_checkpoint, load_checkpoint
from bleurt_repro.metric.options import backend_of, batch_tokens_of, device_of, dtype_of
from bleurt_repro.metric.signature import content_hash, signature

if TYPE_CHECKING:
    import torch
    from tqdm import tqdm

    from bleurt_repro.metric.forward.packed import PackedForward

DEFAULT_CHECKPOINT = "bleurt-repro-mini"
# BLEURT, section 5.3: with several references the best score counts.
AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "max": max,
    "mean": lambda scores: sum(scores) / len(scores),
}


@dataclass(frozen=True)
class ScoringResult:
    """Scores of one call and what is needed to read them.

    Attributes:
        scores: one a candidate, in input order.
        mean_score: their mean (the system's score), or None if there are none.
        signature: what the scores depend on.
        truncated: how many pairs were longer than the checkpoint reads.
        std: of an ensemble, how far its members' standardised scores lie apart, one a candidate; else None.
    """

    scores: list[float]
    mean_score: float | None
    signature: str
    truncated: int
    std: list[float] | None = None


class BleurtScorer:
    """Scores candidates against references with a checkpoint.

    Args:
        checkpoint: an embedded or official name, a local folder, or a Hub id with an optional @revision.
        device: "cpu", "cuda", "cuda:1", "mps"; by default the best this machine has.
        dtype: "float32" (default, exact), "bfloat16" or "float16", or the torch dtype.
        batch_tokens: most tokens of a batch, padding included; by default fitting the device.
        progress: whether to show a bar; by default on a terminal.
        backend: "torch" (default), "onnx", or "onnx-int8", which is faster on a CPU and not exact.
        cache: folder of scores of earlier runs, to read and to add to; none by default.

    Attributes:
        model: the `transformers` model.
        tokenizer: its tokenizer.
        gives_std: whether it is an ensemble, and so can say how far its members lie apart.
        calibration: its map from scores to percentiles of human ratings, or None if it has none.
        signature: what the scores of `score()` with its default aggregation depend on.

    Example:
        >>> scorer = BleurtScorer()
        >>> identical, unrelated = scorer.score(references=["It rains."] * 2, candidates=["It rains.", "Cats sleep."])
        >>> identical > unrelated
        True
    """

    gives_std = False

    def __new__(cls, checkpoint: str = DEFAULT_CHECKPOINT, *_: Any, **__: Any) -> BleurtScorer:
        """Make an `EnsembleScorer` where the checkpoint is an ensemble."""
        if cls is BleurtScorer and is_ensemble(find_checkpoint(checkpoint)):
            from bleurt_repro.metric.ensemble_scorer import EnsembleScorer

            cls = EnsembleScorer
        return super().__new__(cls)

    def __init__(
        self,
        checkpoint: str = DEFAULT_CHECKPOINT,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype | None = None,
        batch_tokens: int | None = None,
        progress: bool | None = None,
        backend: str = "torch",
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        self._arguments = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self.backend = backend_of(backend, device, dtype)
        self.device = device_of(device if backend == "torch" else "cpu")
        self._progress = progress
        loaded = load_checkpoint(checkpoint, dtype=dtype_of(dtype))
        self.checkpoint, self.folder, self.layout = loaded.name, loaded.folder, loaded.layout
        self.model = loaded.model.to(self.device)  # type: ignore[arg-type]  # its decorator hides the signature
        self.tokenizer = loaded.tokenizer
        self.calibration = Calibration.from_config(self.model.config)
        self._packed: PackedForward | None = None
        tokens = batch_tokens_of(batch_tokens, self.device.type)
        self._pairs = PairScorer(PairEncoder(self.tokenizer, self.layout), self._choose_forward, tokens)
        if cache is not None:
            self._pairs.cache = ScoreCache(cache, self.scoring_signature("each"))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as the arguments, to be loaded there."""
        return _made_of, (self._arguments,)

    @property
    def signature(self) -> str:
        """What the scores depend on, in one line."""
        return self.scoring_signature("max")

    @overload
    def score(
        self,
        *,
        candidates: Sequence[str],
        references: Any = ...,
        sources: Sequence[str] | None = ...,
        aggregate: str = ...,
        calibrated: bool = ...,
        return_std: Literal[False] = ...,
    ) -> list[float]: ...

    @overload
    def score(
        self,
        *,
        candidates: Sequence[str],
        references: Any = ...,
        sources: Sequence[str] | None = ...,
        aggregate: str = ...,
        calibrated: bool = ...,
        return_std: Literal[True],
    ) -> tuple[list[float], list[float]]: ...

    def score(
        self,
        *,
        candidates: Sequence[str],
        references: Any = None,
        sources: Sequence[str] | None = None,
        aggregate: str = "max",
        calibrated: bool = False,
        return_std: bool = False,
    ) -> list[float] | tuple[list[float], list[float]]:
        """Score each candidate against its reference or references.

        Args:
            references: one string a candidate, or one list of strings a candidate; None for a checkpoint that reads
                none.
            candidates: the texts to score.
            sources: the texts they were made from, for a checkpoint that reads them.
            aggregate: with several references, "max" (BLEURT, section 5.3) or "mean" of the scores.
            calibrated: give, for each score, the percentile that such translations have among human ratings, 0 to 100.
            return_std: with an ensemble, give how far its members' scores lie apart, too.

        Returns:
            one score a candidate, in input order. Scores are standardised human ratings: not bounded to 0..1. With
            `return_std` the scores and, in a second list, the standard deviation of the members' standardised scores.

        Raises:
            TypeError: if a list is a bare string or an item is no string.
            ValueError: if lengths differ, a candidate has no reference, sources or references do not fit the
                checkpoint, it has no calibration and `calibrated` asks for it, or `return_std` is asked of one model.
        """
        result = self.compute(
            references=references,
            candidates=candidates,
            sources=sources,
            aggregate=aggregate,
            calibrated=calibrated,
            return_std=return_std,
        )
        return (result.scores, result.std or []) if return_std else result.scores

    def compute(
        self,
        *,
        candidates: Sequence[str],
        references: Any = None,
        sources: Sequence[str] | None = None,
        aggregate: str = "max",
        calibrated: bool = False,
        return_std: bool = False,
    ) -> ScoringResult:
        """Score as `score()` does, and give the mean, the signature and the number of truncated pairs with it."""
        self.check_options(aggregate, calibrated, return_std)
        items, owners = self._items(references, candidates, sources)
        with self.progress_bar(len(items)) as bar:
            result = self._result(items, owners, aggregate, calibrated, bar.update)
        if result.truncated:
            warnings.warn(
                self.truncation_message(result.truncated, len(items)),
                stacklevel=2 if sys._getframe(1).f_code is not BleurtScorer.score.__code__ else 3,
            )
        return result

    def compute_quietly(
        self,
        *,
        candidates: Sequence[str],
        references: Any = None,
        sources: Sequence[str] | None = None,
        aggregate: str = "max",
        calibrated: bool = False,
        done: Callable[[int], object],
    ) -> ScoringResult:
        """Do as `compute()` does, for a caller that shows progress and counts truncated pairs itself.

        Args:
            done: called with the number of pairs scored since the last call.
        """
        self.check_options(aggregate, calibrated)
        return self._result(*self._items(references, candidates, sources), aggregate, calibrated, done)

    def check_options(self, aggregate: str, calibrated: bool, return_std: bool = False) -> None:
        """Refuse what `compute()` could not do.

        Raises:
            ValueError: if there is no such aggregate, no calibration, or no members whose scores could lie apart.
        """
        if return_std and not self.gives_std:
            raise ValueError(
                f"checkpoint {self.checkpoint} is one model: return_std takes an ensemble, which "
                "`bleurt-repro ensemble` makes"
            )
        if calibrated and self.calibration is None:
            raise ValueError(
                f"checkpoint {self.checkpoint} has no calibration: leave calibrated out, or fit one with "
                "`bleurt-repro calibrate`"
            )
        if aggregate not in AGGREGATES:
            raise ValueError(f"aggregate must be one of {', '.join(AGGREGATES)}, found {aggregate!r}")

    def progress_bar(self, total: int, unit: str = "pair", done: int = 0) -> tqdm[NoReturn]:
        """Give a bar that shows as the scorer was told, by default on a terminal only."""
        from tqdm.auto import tqdm

        hidden = None if self._progress is None else not self._progress  # None: tqdm hides it off a terminal
        return tqdm(total=total, initial=done, desc="score", unit=unit, disable=hidden)

    def truncation_message(self, truncated: int, pairs: int) -> str:
        """Say how many pairs were not read to their ends."""
        return (
            f"{truncated} of {pairs} pairs were longer than the {self.layout.max_length} tokens that "
            f"checkpoint {self.checkpoint} reads: their ends were not scored"
        )

    def _result(
        self,
        items: list[tuple[str, ...]],
        owners: list[int],
        aggregate: str,
        calibrated: bool,
        done: Callable[[int], object],
    ) -> ScoringResult:
        results = self._pairs.score(items, done)
        gathered: list[list[float]] = [[] for _ in range(owners[-1] + 1 if owners else 0)]
        for owner, result in zip(owners, results, strict=True):
            gathered[owner].append(result.score)
        totals = [AGGREGATES[aggregate](own) for own in gathered]
        if calibrated and self.calibration is not None:
            totals = self.calibration(totals)
        mean = sum(totals) / len(totals) if totals else None
        truncated = sum(result.truncated for result in results)
        return ScoringResult(totals, mean, self.scoring_signature(aggregate, calibrated), truncated)

    def _items(self, references: Any, candidates: Any, sources: Any) -> tuple[list[tuple[str, ...]], list[int]]:
        """Check the input and give the texts of every pair in the layout's order, each with its candidate's index."""
        candidates = check_texts("candidates", candidates)
        given = {"sources": sources is not None, "references": references is not None}
        if fault := input_faults(self.checkpoint, self.layout, **given):
            raise ValueError(fault)
        counts = {"candidates": len(candidates)}
        several, source_texts = [[""]] * len(candidates), candidates  # what is not read is never looked at
        if references is not None:
            several = check_references(references)
            counts = {"references": len(several), **counts}
        if sources is not None:
            source_texts = check_texts("sources", sources)
            counts["sources"] = len(source_texts)
        check_same_length(counts)
        items, owners = [], []
        for i, (candidate, source) in enumerate(zip(candidates, source_texts, strict=True)):
            for reference in several[i]:
                texts = {"reference": reference, "candidate": candidate, "source": source}
                items.append(tuple(texts[role] for role in self.layout.inputs))
                owners.append(i)
        return items, owners

    def _choose_forward(self) -> Forward:
        """The exact fast forward pass where it gives what the model's own gives, else the model's own."""
        from bleurt_repro.metric.forward.packed import PackedForward, can_pack
        from bleurt_repro.metric.forward.plain import PlainForward

        if self.backend != "torch":
            return self._onnx
        if self.model.training or not can_pack(self.model):
            return PlainForward(self.model, self.tokenizer.pad_token_id)
        if self._packed is None or not self._packed.is_current(self.model):
            self._packed = PackedForward(self.model)
        return self._packed

    @cached_property
    def _onnx(self) -> Forward:
        from bleurt_repro.metric.forward.onnx import OnnxForward, exported

        return OnnxForward(exported(self.model, self._content, self.backend))

    @cached_property
    def _content(self) -> str:
        return content_hash(self.folder)

    def scoring_signature(self, aggregate: str, calibrated: bool = False) -> str:
        """What scores of these options depend on, in one line."""
        dtype = "int8" if self.backend == "onnx-int8" else str(self.model.dtype).removeprefix("torch.")
        return signature(self.checkpoint, self._content, self.layout, dtype, aggregate, calibrated)


def _made_of(arguments: dict[str, Any]) -> BleurtScorer:
    return BleurtScorer(**arguments)
