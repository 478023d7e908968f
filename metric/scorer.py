"""The scorer: references and candidates in, one score a candidate out (BLEURT, section 3.2)."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.calibration import Calibration
from bleurt_repro.metric.checkpoints import load_checkpoint
from bleurt_repro.metric.encoding import PairEncoder
from bleurt_repro.metric.pair_scorer import Forward, PairScorer
from bleurt_repro.metric.signature import content_hash, signature
from bleurt_repro.metric.texts import check_references, check_same_length, check_texts

if TYPE_CHECKING:
    import torch

    from bleurt_repro.metric.packed_forward import PackedForward

DEFAULT_CHECKPOINT = "bleurt-repro-mini"
# Padded tokens in a batch: enough to fill the machine, small enough that a batch's pairs are of about one length.
BATCH_TOKENS = {"cpu": 2048, "cuda": 65536, "mps": 16384}
# BLEURT, section 5.3: with several references the best score counts.
AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "max": max,
    "mean": lambda scores: sum(scores) / len(scores),
}
DTYPES = ("float32", "bfloat16", "float16")
BACKENDS = ("torch", "onnx", "onnx-int8")


@dataclass(frozen=True)
class ScoringResult:
    """Scores of one call and what is needed to read them.

    Attributes:
        scores: one a candidate, in input order.
        mean_score: their mean (the system's score), or None if there are none.
        signature: what the scores depend on.
        truncated: how many pairs were longer than the checkpoint reads.
    """

    scores: list[float]
    mean_score: float | None
    signature: str
    truncated: int


class BleurtScorer:
    """Scores candidates against references with a checkpoint.

    Args:
        checkpoint: an embedded or official name, a local folder, or a Hub id with an optional @revision.
        device: "cpu", "cuda", "cuda:1", "mps"; by default the best this machine has.
        dtype: "float32" (default, exact), "bfloat16" or "float16", or the torch dtype.
        batch_tokens: most tokens of a batch, padding included; by default fitting the device.
        progress: whether to show a bar; by default on a terminal.
        backend: "torch" (default), "onnx", or "onnx-int8", which is faster on a CPU and not exact.

    Attributes:
        model: the `transformers` model.
        tokenizer: its tokenizer.
        calibration: its map from scores to percentiles of human ratings, or None if it has none.
        signature: what the scores of `score()` with its default aggregation depend on.

    Example:
        >>> scorer = BleurtScorer()
        >>> identical, unrelated = scorer.score(references=["It rains."] * 2, candidates=["It rains.", "Cats sleep."])
        >>> identical > unrelated
        True
    """

    def __init__(
        self,
        checkpoint: str = DEFAULT_CHECKPOINT,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype | None = None,
        batch_tokens: int | None = None,
        progress: bool | None = None,
        backend: str = "torch",
    ) -> None:
        self.backend = _backend(backend, device, dtype)
        self.device = _device(device if backend == "torch" else "cpu")
        self._progress = progress
        loaded = load_checkpoint(checkpoint, dtype=_dtype(dtype))
        self.checkpoint, self.folder, self.layout = loaded.name, loaded.folder, loaded.layout
        self.model = loaded.model.to(self.device)  # type: ignore[arg-type]  # its decorator hides the signature
        self.tokenizer = loaded.tokenizer
        self.calibration = Calibration.from_config(self.model.config)
        self._packed: PackedForward | None = None
        tokens = _batch_tokens(batch_tokens, self.device.type)
        self._pairs = PairScorer(PairEncoder(self.tokenizer, self.layout), self._choose_forward, tokens)

    @property
    def signature(self) -> str:
        """What the scores depend on, in one line."""
        return self._signature("max")

    def score(
        self,
        *,
        references: Any,
        candidates: Sequence[str],
        sources: Sequence[str] | None = None,
        aggregate: str = "max",
        calibrated: bool = False,
    ) -> list[float]:
        """Score each candidate against its reference or references.

        Args:
            references: one string a candidate, or one list of strings a candidate.
            candidates: the texts to score.
            sources: the texts they were made from, for a checkpoint that reads them.
            aggregate: with several references, "max" (BLEURT, section 5.3) or "mean" of the scores.
            calibrated: give, for each score, the percentile that such translations have among human ratings, 0 to 100.

        Returns:
            one score a candidate, in input order. Scores are standardised human ratings: not bounded to 0..1.

        Raises:
            TypeError: if a list is a bare string or an item is no string.
            ValueError: if lengths differ, a candidate has no reference, sources do not fit the checkpoint, or it has
                no calibration and `calibrated` asks for it.
        """
        return self.compute(
            references=references,
            candidates=candidates,
            sources=sources,
            aggregate=aggregate,
            calibrated=calibrated,
        ).scores

    def compute(
        self,
        *,
        references: Any,
        candidates: Sequence[str],
        sources: Sequence[str] | None = None,
        aggregate: str = "max",
        calibrated: bool = False,
    ) -> ScoringResult:
        """Score as `score()` does, and give the mean, the signature and the number of truncated pairs with it."""
        if calibrated and self.calibration is None:
            raise ValueError(
                f"checkpoint {self.checkpoint} has no calibration: leave calibrated out, or fit one with "
                "`bleurt-repro calibrate`"
            )
        if aggregate not in AGGREGATES:
            raise ValueError(f"aggregate must be one of {', '.join(AGGREGATES)}, found {aggregate!r}")
        items, owners = self._items(references, candidates, sources)
        scores, truncated = self._score_items(items)
        if truncated:
            warnings.warn(
                f"{truncated} of {len(items)} pairs were longer than the {self.layout.max_length} tokens that "
                f"checkpoint {self.checkpoint} reads: their ends were not scored",
                stacklevel=2 if sys._getframe(1).f_code is not BleurtScorer.score.__code__ else 3,
            )
        gathered: list[list[float]] = [[] for _ in range(owners[-1] + 1 if owners else 0)]
        for owner, score in zip(owners, scores, strict=True):
            gathered[owner].append(score)
        totals = [AGGREGATES[aggregate](own) for own in gathered]
        if calibrated and self.calibration is not None:
            totals = self.calibration(totals)
        mean = sum(totals) / len(totals) if totals else None
        return ScoringResult(totals, mean, self._signature(aggregate, calibrated), truncated)

    def _items(self, references: Any, candidates: Any, sources: Any) -> tuple[list[tuple[str, ...]], list[int]]:
        """Check the input and give the texts of every pair in the layout's order, each with its candidate's index."""
        candidates = check_texts("candidates", candidates)
        counts = {"candidates": len(candidates)}
        several = check_references(references)
        counts = {"references": len(several), **counts}
        if sources is not None and not self.layout.reads_sources:
            raise ValueError(f"checkpoint {self.checkpoint} reads no sources: leave sources out")
        if sources is None and self.layout.reads_sources:
            raise ValueError(f"checkpoint {self.checkpoint} reads the source of each candidate: give sources=[...]")
        source_texts = candidates
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

    def _score_items(self, items: list[tuple[str, ...]]) -> tuple[list[float], int]:
        """Score each different pair once; give the scores in the items' order and how many items were cut."""
        from tqdm.auto import tqdm

        hidden = None if self._progress is None else not self._progress  # None: tqdm hides it off a terminal
        with tqdm(total=len(items), desc="score", unit="pair", disable=hidden) as bar:
            results = self._pairs.score(items, bar.update)
        return [result.score for result in results], sum(result.truncated for result in results)

    def _choose_forward(self) -> Forward:
        """The exact fast forward pass where it gives what the model's own gives, else the model's own."""
        from bleurt_repro.metric.packed_forward import PackedForward, can_pack
        from bleurt_repro.metric.plain_forward import PlainForward

        if self.backend != "torch":
            return self._onnx
        if self.model.training or not can_pack(self.model):
            return PlainForward(self.model, self.tokenizer.pad_token_id)
        if self._packed is None or not self._packed.is_current(self.model):
            self._packed = PackedForward(self.model)
        return self._packed

    @cached_property
    def _onnx(self) -> Forward:
        from bleurt_repro.metric.onnx_export import exported
        from bleurt_repro.metric.onnx_forward import OnnxForward

        return OnnxForward(exported(self.model, self._content, self.backend))

    @cached_property
    def _content(self) -> str:
        return content_hash(self.folder)

    def _signature(self, aggregate: str, calibrated: bool = False) -> str:
        dtype = "int8" if self.backend == "onnx-int8" else str(self.model.dtype).removeprefix("torch.")
        return signature(self.checkpoint, self._content, self.layout, dtype, aggregate, calibrated)


def _device(device: Any) -> torch.device:
    import torch

    if device is not None:
        try:
            return torch.device(device)
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                f"device must be one that torch knows, such as cpu, cuda or mps, found {device!r}"
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _backend(backend: str, device: Any, dtype: Any) -> str:
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, found {backend!r}")
    if backend != "torch" and (str(device or "cpu") != "cpu" or str(dtype or "float32").endswith("16")):
        raise ValueError(
            f"backend {backend} computes on the CPU with float32 weights: leave device and dtype out, "
            f"found {device or 'cpu'} and {dtype or 'float32'}"
        )
    return backend


def _dtype(dtype: Any) -> torch.dtype:
    import torch

    name = "float32" if dtype is None else str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, found {dtype!r}")
    return getattr(torch, name)


def _batch_tokens(batch_tokens: int | None, device: str) -> int:
    if batch_tokens is None:
        return BATCH_TOKENS.get(device, BATCH_TOKENS["cpu"])
    if isinstance(batch_tokens, bool) or not isinstance(batch_tokens, int) or batch_tokens < 1:
        raise ValueError(f"batch_tokens must be a positive number of tokens, found {batch_tokens!r}")
    return batch_tokens
