"""The scorer: references and candidates in, one score a candidate out (BLEURT, section 3.2)."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.calibration import Calibration, Reliability
from bleurt_repro.metric.forward.pairs import PairScorer
from bleurt_repro.metric.forward.score_cache import ScoreCache
from bleurt_repro.metric.inputs import Item, check_pairs, columns_of
from bleurt_repro.metric.loading.open import Checkpoint, open_checkpoint
from bleurt_repro.metric.options import Computing, positive
from bleurt_repro.metric.signature import signature

if TYPE_CHECKING:
    import torch
    from tqdm import tqdm

DEFAULT_CHECKPOINT = "bleurt-repro-mini"
# BLEURT, section 5.3: with several references the best score counts.
AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "max": max,
    "mean": lambda scores: sum(scores) / len(scores),
}
# Scores that a notebook or an interactive session shows.
SHOWN = 5
CLOSED = "this scorer was closed: open another one with BleurtScorer(...)"
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class ScoringResult:
    """Scores of one call and what is needed to read them.

    Attributes:
        scores: one a candidate, in input order.
        mean_score: their mean (the system's score), or None if there are none.
        signature: what the scores depend on.
        truncated: how many pairs were longer than the checkpoint reads.
        std: of an ensemble, the standard deviation of its members' standardised scores, one a candidate; else None.
        unknown: how many pairs have pieces that the checkpoint's tokenizer does not know.
        unread: how many pairs hold text that the checkpoint does not read: unknown pieces, another script than Latin where
            its vocabulary has little of others, or invisible characters (see `forward.encoding`).
        warnings: what a reader of the scores must know, a sentence each.
    """

    scores: list[float]
    mean_score: float | None
    signature: str
    truncated: int
    std: list[float] | None = None
    unknown: int = 0
    unread: int = 0
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        first = ", ".join(f"{score:.4f}" for score in self.scores[:SHOWN])
        more = f", ... {len(self.scores):,} in all" if len(self.scores) > SHOWN else ""
        parts = [f"scores=[{first}{more}]", f"mean_score={_rounded(self.mean_score)}", f"signature={self.signature!r}"]
        parts += [f"{name}={count}" for name in ("truncated", "unknown", "unread") if (count := getattr(self, name))]
        return f"ScoringResult({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Return the first scores as a table, and what is needed to read them, for a notebook."""
        rows = "".join(
            f"<tr><td>{place}</td><td>{score:.4f}</td>"
            + ("" if self.std is None else f"<td>{self.std[place]:.4f}</td>")
            + "</tr>"
            for place, score in enumerate(self.scores[:SHOWN])
        )
        head = "<th></th><th>score</th>" + ("" if self.std is None else "<th>standard deviation</th>")
        notes = [
            f"mean {_rounded(self.mean_score)}; the first {min(SHOWN, len(self.scores))} of {len(self.scores):,} scores",
            *self.warnings,
        ]
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" + "".join(
            f"<p>{escape(note)}</p>" for note in [*notes, self.signature]
        )


def _rounded(score: float | None) -> str:
    return "None" if score is None else f"{score:.4f}"


class BleurtScorer:
    """Scores candidates against references with a checkpoint, or with an ensemble of several.

    Args:
        checkpoint: an embedded or official name, a local folder, or a Hub id with an optional @revision; the embedded
            "bleurt-repro-mini" by default.
        device: "cpu", "cuda", "cuda:1", "mps"; by default the best this machine has.
        dtype: "float32" (default, exact), "bfloat16" or "float16", or the torch dtype.
        batch_tokens: most tokens of a batch, padding included; by default fitting the device.
        progress: whether to show a bar; by default on a terminal.
        backend: "torch" (default), "onnx", or "onnx-int8", which is faster on a CPU and not exact.
        cache: folder of scores of earlier runs, to read and to add to; none by default.

    Attributes:
        checkpoint: the name it goes by in the signature.
        folder: the checkpoint's files.
        layout: what it reads.
        model: the `transformers` model; of an ensemble, the first member's.
        tokenizer: its tokenizer.
        members: what scores pairs with each model; one, or one a member of the ensemble.
        gives_std: whether it is an ensemble, and so measures how much its members disagree.
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
        checkpoint: str | None = None,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype | None = None,
        batch_tokens: int | None = None,
        progress: bool | None = None,
        backend: str = "torch",
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        checkpoint = DEFAULT_CHECKPOINT if checkpoint is None else checkpoint
        self._arguments = {name: value for name, value in locals().items() if name != "self"}
        computing = Computing.of(backend, device, dtype, batch_tokens)
        self.backend, self.device, self._progress = computing.backend, computing.device, progress
        light = computing.backend == "torch" and computing.device.type == "cpu"
        opened = open_checkpoint(checkpoint, dtype=computing.dtype, light=light)
        self.checkpoint, self.folder, self.layout = opened.name, opened.folder, opened.layout
        self._content, self._ensemble = opened.content, opened.ensemble
        self.gives_std = opened.ensemble is not None
        self.members = tuple(self._member(model, computing, cache) for model in opened.models)
        self._first: Checkpoint | None = opened.models[0]
        self.calibration = None if self._ensemble else Calibration.from_config(self._first.config)

    @property
    def model(self) -> Any:
        """The `transformers` model, of an ensemble that of the first member; loaded now if scores have not needed it."""
        return None if self._first is None else self._first.model

    @property
    def tokenizer(self) -> Any:
        """Its `transformers` tokenizer, as `model`."""
        return None if self._first is None else self._first.tokenizer

    def _member(
        self, checkpoint: Checkpoint, computing: Computing, cache: str | os.PathLike[str] | None
    ) -> PairScorer:
        scores = None
        if cache is not None:
            dtype = self._arithmetic(checkpoint.dtype)
            settings = signature(checkpoint.name, checkpoint.content, checkpoint.layout, dtype, "each")
            scores = ScoreCache(cache, settings)
        return PairScorer.of(checkpoint, computing, scores)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as the arguments, to be loaded there."""
        return _made_of, (self._arguments,)

    @cached_property
    def reliability(self) -> Reliability | None:
        """P(people prefer a system), as fitted on human ratings; None if it was not fitted for this checkpoint.

        Raises:
            ValueError: if the file of the fit is damaged; scores do not depend on it.
        """
        return Reliability.from_folder(self.folder, self._content)

    @property
    def signature(self) -> str:
        """What the scores depend on, in one line."""
        return self.scoring_signature("max")

    def scoring_signature(self, aggregate: str, calibrated: bool = False) -> str:
        """Return what scores of these options depend on, in one line."""
        if self._first is None:
            raise ValueError(CLOSED)
        dtype = self._arithmetic(self._first.dtype)
        return signature(self.checkpoint, self._content, self.layout, dtype, aggregate, calibrated)

    def _arithmetic(self, dtype: torch.dtype) -> str:
        return "int8" if self.backend == "onnx-int8" else str(dtype).removeprefix("torch.")

    @overload
    def score(
        self,
        *,
        candidates: Sequence[str],
        references: Any = ...,
        sources: Sequence[str] | None = ...,
        aggregate: str = ...,
        calibrated: bool = ...,
        batch_size: int | None = ...,
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
        batch_size: int | None = ...,
        return_std: Literal[True],
    ) -> tuple[list[float], list[float]]: ...

    def score(
        self,
        *positions: Any,
        candidates: Any = None,
        references: Any = None,
        sources: Sequence[str] | None = None,
        aggregate: str = "max",
        calibrated: bool = False,
        return_std: bool = False,
        batch_size: int | None = None,
    ) -> list[float] | tuple[list[float], list[float]]:
        """Score each candidate against its reference or references.

        Args:
            references: one string a candidate, or one list of strings a candidate; None for a checkpoint that reads
                none.
            candidates: the texts to score.
            sources: the texts they were made from, for a checkpoint that reads them.
            aggregate: with several references, "max" (BLEURT, section 5.3) or "mean" of the scores.
            calibrated: return, for each score, the percentile that such translations have among human ratings, 0 to
                100.
            return_std: with an ensemble, return the standard deviation of its members' scores, too.
            batch_size: most pairs of a batch; by default as many as `batch_tokens` allows.

        Returns:
            one score a candidate, in input order. Scores are standardised human ratings: not bounded to 0..1. With
            `return_std` the scores and, in a second list, the standard deviation of the members' standardised scores.

        Raises:
            TypeError: if texts are given without their names, a list is a bare string or a table, or an item is no
                string.
            ValueError: if lengths differ, a candidate has no reference, sources or references do not fit the
                checkpoint, it has no calibration and `calibrated` asks for it, `return_std` is asked of one model, or
                a score is no finite number.
        """
        result = self.compute(
            *positions,
            references=references,
            candidates=candidates,
            sources=sources,
            aggregate=aggregate,
            calibrated=calibrated,
            return_std=return_std,
            batch_size=batch_size,
        )
        return (result.scores, result.std or []) if return_std else result.scores

    def compute(
        self,
        *positions: Any,
        candidates: Any = None,
        references: Any = None,
        sources: Sequence[str] | None = None,
        aggregate: str = "max",
        calibrated: bool = False,
        return_std: bool = False,
        batch_size: int | None = None,
    ) -> ScoringResult:
        """Score as `score()` does, and also return the mean, the signature, counts and warnings.

        Arguments and errors are those of `score()`.
        """
        if positions:
            raise TypeError("texts are given by name: references=[...], candidates=[...] (and sources=[...])")
        if batch_size is not None:
            positive("batch_size", batch_size, "pairs")
        self.check_options(aggregate, calibrated, return_std)
        items, owners = self._checked(references, candidates, sources)
        with self.progress_bar(len(items)) as bar:
            result = self._result(items, owners, aggregate, calibrated, bar.update, batch_size)
        for message in result.warnings:
            _warn_caller(message)
        return result

    def compute_quietly(
        self,
        *,
        candidates: Sequence[str],
        references: Any = None,
        sources: Sequence[str] | None = None,
        aggregate: str = "max",
        calibrated: bool = False,
        done: Callable[[int], object] = lambda count: None,
    ) -> ScoringResult:
        """Do as `compute()` does, for a caller that shows progress and warnings itself.

        Args:
            done: called with the number of pairs scored since the last call.
        """
        self.check_options(aggregate, calibrated)
        return self._result(*self._checked(references, candidates, sources), aggregate, calibrated, done)

    def score_rows(self, rows: Iterable[Mapping[str, Any]]) -> list[float]:
        """Score rows of a data set.

        Args:
            rows: each with candidate and, as the checkpoint reads it, reference (or references, a list) and source;
                other fields are ignored.

        Returns:
            one score a row, in order.

        Raises:
            ValueError: naming the row that lacks a field.
        """
        return self.compute(**self.columns(rows)).scores

    def columns(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the texts of rows that the checkpoint reads, as the keyword arguments of `score()`."""
        return columns_of(rows, self.checkpoint, self.layout)

    def check_options(
        self,
        aggregate: str,
        calibrated: bool,
        return_std: bool = False,
    ) -> None:
        """Refuse what `compute()` could not do.

        Raises:
            ValueError: if there is no such aggregate, no calibration, or only one model where a spread is asked for.
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
        """Return a bar that is shown as the scorer's `progress` asks, by default on a terminal only."""
        from tqdm.auto import tqdm

        hidden = None if self._progress is None else not self._progress  # None: tqdm hides it off a terminal
        return tqdm(total=total, initial=done, desc="score", unit=unit, disable=hidden)

    def warnings_about(self, pairs: int, truncated: int, unread: int) -> tuple[str, ...]:
        """Return what a reader of scores must know, a sentence each.

        Args:
            pairs: how many were scored.
            truncated: how many of them were longer than the checkpoint reads.
            unread: how many of them hold text that it does not read.
        """
        messages = []
        if truncated:
            messages.append(
                f"{truncated} of {pairs} pairs were longer than the {self.layout.max_length} tokens that "
                f"checkpoint {self.checkpoint} reads: their ends were not scored"
            )
        if unread:
            messages.append(
                f"{unread} of {pairs} pairs hold text that checkpoint {self.checkpoint} does not read (pieces unknown to its "
                "tokenizer, another script, or invisible characters): this checkpoint "
                f"{'reads English (Latin letters)' if self.members[0].encoder.latin_only else 'does not know all characters'}, and their "
                "scores mean little"
            )
        return tuple(messages)

    def close(self) -> None:
        """Free the models' memory; the scorer cannot score afterwards."""
        self.members, self._first = (), None

    def __enter__(self) -> BleurtScorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _checked(self, references: Any, candidates: Any, sources: Any) -> tuple[list[Item], list[int]]:
        return check_pairs(self.checkpoint, self.layout, references=references, candidates=candidates, sources=sources)

    def _result(
        self,
        items: list[Item],
        owners: list[int],
        aggregate: str,
        calibrated: bool,
        done: Callable[[int], object],
        batch_size: int | None = None,
    ) -> ScoringResult:
        """Score pairs and put the scores of each candidate together.

        Args:
            items: texts in the order of the layout.
            owners: for each item the index of its candidate, ascending.
        """
        if not self.members:
            raise ValueError(CLOSED)
        members, truncated, unknown, unread = self._member_scores(items, done, batch_size)
        combined = members[0] if self._ensemble is None else self._weights @ members
        own: list[list[int]] = [[] for _ in range(owners[-1] + 1 if owners else 0)]
        for place, owner in enumerate(owners):
            own[owner].append(place)
        totals = [AGGREGATES[aggregate](combined[places].tolist()) for places in own]
        std = None
        if self._ensemble is not None:
            # With "max" the members are compared on the reference that counts, with "mean" on their own means.
            read = [[places[int(combined[places].argmax())]] if aggregate == "max" else places for places in own]
            std = [float(members[:, places].mean(axis=1).std()) for places in read]
        if calibrated and self.calibration is not None:
            totals = self.calibration(totals)
        mean = sum(totals) / len(totals) if totals else None
        cut, missed = int(truncated.sum()), int(unread.sum())
        return ScoringResult(
            totals,
            mean,
            self.scoring_signature(aggregate, calibrated),
            cut,
            std,
            unknown=int(unknown.sum()),
            unread=missed,
            warnings=self.warnings_about(len(items), cut, missed),
        )

    @property
    def _weights(self) -> Values:
        return np.array([member.weight for member in self._ensemble.members]) if self._ensemble else np.ones(1)

    def _member_scores(
        self, items: list[Item], done: Callable[[int], object], batch_size: int | None
    ) -> tuple[Values, Flags, Flags, Flags]:
        """Score items with each model.

        Args:
            items: texts in the order of the layout.
            done: called with the number of items that all models together have scored since the last call.

        Returns:
            scores, (models, items), of an ensemble standardised; and which items any model truncated, did not know all
            pieces of, or did not read all text of, (items,) each.
        """
        share = done if len(self.members) == 1 else _Share(len(self.members), done)
        scores = np.zeros((len(self.members), len(items)))
        flags = np.zeros((3, len(items)), dtype=bool)
        for row, member in enumerate(self.members):
            places = [self.layout.inputs.index(role) for role in member.encoder.layout.inputs]
            own = member.score([tuple(item[i] for i in places) for item in items], share, batch_size)
            scores[row] = [result.score for result in own]
            found = [(result.truncated, result.unknown, result.unread) for result in own]
            flags |= np.array(found, dtype=bool).reshape(len(items), 3).T
        if self._ensemble is not None:
            means, stds = np.array([(member.mean, member.std) for member in self._ensemble.members]).T
            scores = (scores - means[:, None]) / stds[:, None]
        truncated, unknown, unread = flags
        return scores, truncated, unknown, unread


class _Share:
    """Counts an item as done once each of several models has scored it."""

    def __init__(self, members: int, done: Callable[[int], object]) -> None:
        self._members, self._done, self._scores = members, done, 0

    def __call__(self, count: int) -> None:
        before, self._scores = self._scores // self._members, self._scores + count
        self._done(self._scores // self._members - before)


def _warn_caller(message: str) -> None:
    """Warn at the line outside this file that called, each time: Python itself shows a repeated warning once a process."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno)


def _made_of(arguments: dict[str, Any]) -> BleurtScorer:
    return BleurtScorer(**arguments)
