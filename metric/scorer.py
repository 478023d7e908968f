"""Score candidates against references, one score per candidate (BLEURT, section 3.2)."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.calibration import Calibration, Reliability
from bleurt_repro.metric.forward.pairs import PairScorer
from bleurt_repro.metric.forward.score_cache import ScoreCache
from bleurt_repro.metric.forward.unread import LATIN
from bleurt_repro.metric.inputs import Item, Pairs, check_pairs, check_texts, columns_of
from bleurt_repro.metric.loading.open import Checkpoint, open_checkpoint
from bleurt_repro.metric.options import DEFAULT_CHECKPOINT, Computing, ScoreOptions, check_arithmetic, positive
from bleurt_repro.metric.signature import signature
from bleurt_repro.metric.statistics import Values

if TYPE_CHECKING:
    import torch
    from tqdm import tqdm

# BLEURT, section 5.3: with several references the best score counts.
AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "max": max,
    "mean": lambda scores: sum(scores) / len(scores),
}
# Number of scores that a notebook or an interactive session shows.
SHOWN = 5
CLOSED = "this scorer was closed: open another one with BleurtScorer(...)"
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class ScoringResult:
    """Scores of one call, and what a reader needs to interpret them.

    Attributes:
        scores: one score per candidate, in input order.
        mean_score: mean of the scores, which is the score of the system; None without candidates.
        signature: everything the scores depend on, in one line.
        truncated: number of pairs that were longer than the checkpoint's maximum length.
        std: standard deviations of the standardised scores of an ensemble's members, one per candidate; else None.
        unknown: number of pairs with pieces that the checkpoint's tokenizer does not know.
        unread: number of pairs with text that the checkpoint does not read: unknown pieces, another language or script
            than its vocabulary was made for, or invisible characters (see `forward.unread`).
        warnings: messages about scores that need care.
        pairs: number of pairs that were scored; a candidate with several references has several.
        blank: number of candidates whose references are all blank.
    """

    scores: list[float]
    mean_score: float | None
    signature: str
    truncated: int
    std: list[float] | None = None
    unknown: int = 0
    unread: int = 0
    warnings: tuple[str, ...] = ()
    pairs: int = 0
    blank: int = 0

    def __repr__(self) -> str:
        first = ", ".join(f"{score:.4f}" for score in self.scores[:SHOWN])
        ellipsis = f", ... {len(self.scores):,} in all" if len(self.scores) > SHOWN else ""
        fields = [f"scores=[{first}{ellipsis}]", f"mean_score={_rounded(self.mean_score)}"]
        fields.append(f"signature={self.signature!r}")
        counts = {name: getattr(self, name) for name in ("truncated", "unknown", "unread", "blank")}
        fields += [f"{name}={count}" for name, count in counts.items() if count]
        return f"ScoringResult({', '.join(fields)})"

    def _repr_html_(self) -> str:
        """Return the first scores as a table, with mean, warnings and signature, for a notebook."""
        rows = "".join(
            f"<tr><td>{i}</td><td>{score:.4f}</td>"
            + ("" if self.std is None else f"<td>{self.std[i]:.4f}</td>")
            + "</tr>"
            for i, score in enumerate(self.scores[:SHOWN])
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
    """Score candidates against references with a checkpoint, or with an ensemble of several.

    Args:
        checkpoint: name of an embedded or official checkpoint, local folder, or Hub id with an optional @revision; by
            default the embedded "bleurt-repro-mini".
        device: "cpu", "cuda", "cuda:1", "mps"; by default the best that this machine has.
        dtype: "float32" (default, exact), "bfloat16", "float16", the torch dtype, or "auto": bfloat16 if the device has
            instructions for it, else float32.
        batch_tokens: most tokens of a batch, padding included; by default what suits the device.
        progress: whether to show a progress bar; by default on a terminal.
        backend: "torch" (default), "compile", which makes a GPU's kernels with `torch.compile` first, "onnx", or
            "onnx-int8", which is faster on a CPU and not exact.
        cache: folder of scores of earlier runs, to read and to add to; by default none.

    Attributes:
        checkpoint: name of the checkpoint in the signature.
        folder: folder of the checkpoint's files.
        layout: texts that the checkpoint reads, and its maximum length.
        model: `transformers` model; of an ensemble, the first member's.
        tokenizer: `transformers` tokenizer of that model.
        members: one scorer of pairs per model of an ensemble; of a single model, one.
        gives_std: whether the checkpoint is an ensemble, which also measures how much its members disagree.
        calibration: map from scores to percentiles of human ratings; None without one.
        options: the arguments, as `ScoreOptions`.
        signature: everything that the scores of `score()` with its default options depend on.

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
        self.options = ScoreOptions(checkpoint, device, dtype, batch_tokens, progress, backend, cache)
        computing = Computing.from_options(self.options)
        self.backend, self.device = computing.backend, computing.device
        light = computing.backend == "torch" and computing.device.type == "cpu"
        opened = open_checkpoint(checkpoint, dtype=computing.dtype, light=light)
        self.checkpoint, self.folder, self.layout = opened.name, opened.folder, opened.layout
        self._content, self._ensemble = opened.content, opened.ensemble
        self.gives_std = opened.ensemble is not None
        self.members = tuple(self._make_member(model, computing) for model in opened.models)
        self._first: Checkpoint | None = opened.models[0]
        self.calibration = None if self._ensemble else Calibration.from_config(self._first.config)
        self._first_signature = self.signature

    @classmethod
    def from_options(cls, options: ScoreOptions) -> BleurtScorer:
        """Open a scorer; those of the options that belong to a call are left for `compute_quietly`."""
        return cls(**options.scorer_arguments())

    @property
    def model(self) -> Any:
        """The `transformers` model, loaded now if no score needed it so far; of an ensemble, the first member's."""
        return None if self._first is None else self._first.model

    @property
    def tokenizer(self) -> Any:
        """The `transformers` tokenizer of `model`."""
        return None if self._first is None else self._first.tokenizer

    def _make_member(self, checkpoint: Checkpoint, computing: Computing) -> PairScorer:
        cache = None
        if self.options.cache is not None:
            dtype = self._arithmetic(checkpoint.dtype)
            settings = signature(checkpoint.name, checkpoint.content, checkpoint.layout, dtype, "each")
            cache = ScoreCache(self.options.cache, settings)
        return PairScorer.from_checkpoint(checkpoint, computing, cache)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the options and the signature; the checkpoint is opened again where the pickle is loaded.

        `datasets.map` caches results by a hash of the pickle, which must change whenever the scores may.
        """
        return _reopen, (self.options, self._first_signature)

    @cached_property
    def reliability(self) -> Reliability | None:
        """P(people prefer a system), as fitted on human ratings; None if it was not fitted for this checkpoint.

        Raises:
            ValueError: if the file of the fit is damaged; scores do not depend on it.
        """
        return Reliability.from_folder(self.folder, self._content)

    @property
    def signature(self) -> str:
        """Everything the scores depend on, in one line."""
        return self.scoring_signature("max")

    def scoring_signature(self, aggregate: str, calibrated: bool = False, inputs: Sequence[str] | None = None) -> str:
        """Return what scores with these options depend on, in one line; inputs are the texts given, by default all."""
        if self._first is None:
            raise ValueError(CLOSED)
        dtype = self._arithmetic(self._first.dtype)
        return signature(self.checkpoint, self._content, self.layout, dtype, aggregate, calibrated, inputs)

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
            references: one string per candidate, or one list of strings per candidate; None for a checkpoint that reads no
                references, or scores without. A blank reference is left out if the candidate has another one.
            candidates: texts to score.
            sources: texts that the candidates were made from, for a checkpoint that reads them.
            aggregate: with several references, "max" (BLEURT, section 5.3) or "mean" of the scores.
            calibrated: whether to return percentiles, 0 to 100, that such translations have among human ratings.
            return_std: whether to also return the standard deviation of the scores of an ensemble's members.
            batch_size: most pairs of a batch; by default as many as `batch_tokens` allows.

        Returns:
            one score per candidate, in input order. Scores are standardised human ratings: not bounded to 0..1. With
            `return_std` the scores and, in a second list, the standard deviations of the members' standardised scores.

        Raises:
            TypeError: if texts are passed by position, a list is a bare string or a table, or a text is not a string.
            ValueError: if lengths differ, a candidate has no reference, sources or references do not fit the checkpoint,
                `calibrated` is given for a checkpoint without calibration, `return_std` for a single model, or a score is
                not a finite number.
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
        options = replace(
            self.options, aggregate=aggregate, calibrated=calibrated, return_std=return_std, batch_size=batch_size
        )
        self.check_options(options)
        pairs = self._check_pairs(references, candidates, sources)
        with self.progress_bar(len(pairs.items)) as bar:
            (result,) = self._score_pairs([pairs], options, bar.update)
        for message in result.warnings:
            _warn_caller(message)
        return result

    def matrix(
        self, candidates: Sequence[str], references: Sequence[str], source: str | None = None
    ) -> NDArray[np.float64]:
        """Score each candidate of one segment against each reference; equal pairs are scored once.

        Args:
            candidates, references: texts.
            source: text that the candidates were made from, for a checkpoint that reads sources.

        Returns:
            (candidates, references) scores.

        Raises:
            TypeError, ValueError: as `score()` does.
        """
        candidates, references = check_texts("candidates", candidates), check_texts("references", references)
        count = len(candidates) * len(references)
        result = self.compute(
            candidates=[candidate for candidate in candidates for _ in references],
            references=[reference for _ in candidates for reference in references],
            sources=None if source is None else [source] * count,
        )
        return np.array(result.scores, dtype=np.float64).reshape(len(candidates), len(references))

    def compute_systems(
        self,
        *,
        systems: Mapping[str, Sequence[str]],
        references: Any = None,
        sources: Sequence[str] | None = None,
        aggregate: str = "max",
        calibrated: bool = False,
        on_progress: Callable[[int], object] | None = None,
    ) -> dict[str, ScoringResult]:
        """Score the candidates of several systems in one pass.

        A pair that several systems have in common is scored once, so it has the same score in all of them.

        Args:
            systems: candidates of each system by its name, all for the same references and sources.
            references, sources, aggregate, calibrated: as in `score()`.
            on_progress: for a caller that shows progress and warnings itself, called with the number of pairs scored
                since the last call; by default a progress bar and Python's warnings show them.

        Returns:
            the result of each system, as `compute()` returns it.

        Raises:
            TypeError, ValueError: as `score()` does.
        """
        options = replace(self.options, aggregate=aggregate, calibrated=calibrated)
        self.check_options(options)
        pairs = [self._check_pairs(references, candidates, sources) for candidates in systems.values()]
        if on_progress is not None:
            return dict(zip(systems, self._score_pairs(pairs, options, on_progress), strict=True))
        with self.progress_bar(sum(len(system.items) for system in pairs)) as bar:
            results = dict(zip(systems, self._score_pairs(pairs, options, bar.update), strict=True))
        for name, result in results.items():
            for message in result.warnings:
                _warn_caller(f"{name}: {message}")
        return results

    def compute_quietly(
        self,
        *,
        candidates: Sequence[str],
        references: Any = None,
        sources: Sequence[str] | None = None,
        options: ScoreOptions | None = None,
        on_progress: Callable[[int], object] = lambda count: None,
    ) -> ScoringResult:
        """Score as `compute()` does, for a caller that shows progress and warnings itself.

        Args:
            candidates, references, sources: as in `score()`.
            options: options of the call; by default those of `score()`.
            on_progress: called with the number of pairs scored since the last call.
        """
        options = options or self.options
        self.check_options(options)
        return self._score_pairs([self._check_pairs(references, candidates, sources)], options, on_progress)[0]

    def score_rows(self, rows: Iterable[Mapping[str, Any]]) -> list[float]:
        """Score rows of a data set.

        Args:
            rows: each with candidate and, if the checkpoint reads it, reference (or references, a list) and source;
                other fields are ignored.

        Returns:
            one score per row, in order.

        Raises:
            ValueError: naming the row that lacks a field.
        """
        return self.compute(**self.columns(rows)).scores

    def columns(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the texts of rows that the checkpoint reads, as the keyword arguments of `score()`."""
        return columns_of(rows, self.checkpoint, self.layout)

    def check_options(self, options: ScoreOptions) -> None:
        """Raise an error if `compute()` could not score with the options.

        Raises:
            ValueError: if there is no such aggregate, no calibration, only one model where a standard deviation is asked
                for, or the batch size is not a positive number.
        """
        if options.batch_size is not None:
            positive("batch_size", options.batch_size, "pairs")
        if options.return_std and not self.gives_std:
            raise ValueError(
                f"checkpoint {self.checkpoint} is one model: return_std takes an ensemble, which "
                "`bleurt-repro ensemble` makes"
            )
        if options.calibrated and self.calibration is None:
            raise ValueError(
                f"checkpoint {self.checkpoint} has no calibration: leave calibrated out, or fit one with "
                "`bleurt-repro calibrate`"
            )
        if options.aggregate not in AGGREGATES:
            raise ValueError(f"aggregate must be one of {', '.join(AGGREGATES)}, found {options.aggregate!r}")

    def progress_bar(self, total: int, unit: str = "pair", initial: int = 0) -> tqdm[NoReturn]:
        """Return a progress bar, shown as the option `progress` says, by default on a terminal."""
        from tqdm.auto import tqdm

        progress = self.options.progress
        hidden = None if progress is None else not progress  # None: tqdm hides it if there is no terminal
        return tqdm(total=total, initial=initial, desc="score", unit=unit, disable=hidden)

    def warnings_about(self, pairs: int, truncated: int, unread: int, blank: int = 0) -> tuple[str, ...]:
        """Return messages about scores that need care.

        Args:
            pairs: number of pairs that were scored.
            truncated: number of pairs that were longer than the checkpoint's maximum length.
            unread: number of pairs with text that the checkpoint does not read.
            blank: number of candidates whose references are all blank.
        """
        messages = []
        if truncated:
            messages.append(
                f"{truncated} of {pairs} pairs were longer than the {self.layout.max_length} tokens that "
                f"checkpoint {self.checkpoint} reads: their ends were not scored"
            )
        if unread:
            scripts = sorted(self.members[0].encoder.scripts)
            reads = "English (Latin letters)" if scripts == [LATIN] else f"{', '.join(scripts)} letters"
            messages.append(
                f"{unread} of {pairs} pairs hold text that checkpoint {self.checkpoint} does not read (pieces unknown to its "
                f"tokenizer, another language or script, or invisible characters): this checkpoint reads {reads}, and "
                "their scores mean little"
            )
        if blank:
            role = "reference" if self.layout.reads_references else "source"
            messages.append(
                f"{blank} of {pairs} pairs have a blank {role}: their scores mean nothing, leave these segments out"
            )
        return tuple(messages)

    def close(self) -> None:
        """Free the models' memory; the scorer cannot score afterwards."""
        self.members, self._first = (), None

    def __enter__(self) -> BleurtScorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_pairs(self, references: Any, candidates: Any, sources: Any) -> Pairs:
        return check_pairs(self.checkpoint, self.layout, references=references, candidates=candidates, sources=sources)

    def _score_pairs(
        self, systems: Sequence[Pairs], options: ScoreOptions, on_progress: Callable[[int], object]
    ) -> list[ScoringResult]:
        """Score the pairs of each system in one pass, and aggregate the scores of each candidate."""
        if not self.members or self._first is None:
            raise ValueError(CLOSED)
        check_arithmetic(self.device, self._first.dtype)
        items = [item for pairs in systems for item in pairs.items]
        scores, flags = self._score_with_members(items, options, on_progress)
        ends = np.cumsum([len(pairs.items) for pairs in systems])[:-1]
        columns = zip(systems, np.split(scores, ends, axis=1), np.split(flags, ends, axis=1), strict=True)
        return [self._aggregate(*system, options) for system in columns]

    def _aggregate(self, pairs: Pairs, members: Values, flags: Flags, options: ScoreOptions) -> ScoringResult:
        """Aggregate the scores of the pairs of each candidate.

        Args:
            pairs: pairs of one system.
            members: scores, (models, pairs).
            flags: which pairs were truncated, hold unknown pieces, or hold text that is not read; (3, pairs).
            options: options of the call.
        """
        truncated, unknown, unread = flags
        combined = members[0] if self._ensemble is None else self._weights @ members
        # The pairs of each candidate: one per reference.
        indices: list[list[int]] = [[] for _ in range(pairs.owners[-1] + 1 if pairs.owners else 0)]
        for i, owner in enumerate(pairs.owners):
            indices[owner].append(i)
        scores, aggregate = combined.tolist(), AGGREGATES[options.aggregate]
        totals = [aggregate([scores[i] for i in pair]) for pair in indices]
        std = None
        if self._ensemble is not None:
            # With "max" the members are compared on the reference that counts, with "mean" on their own means.
            if options.aggregate == "max":
                indices = [[pair[int(combined[pair].argmax())]] for pair in indices]
            std = [float(members[:, pair].mean(axis=1).std()) for pair in indices]
        if options.calibrated and self.calibration is not None:
            totals = self.calibration(totals)
        counts = {"truncated": int(truncated.sum()), "unread": int(unread.sum()), "blank": pairs.blank}
        return ScoringResult(
            scores=totals,
            mean_score=sum(totals) / len(totals) if totals else None,
            signature=self.scoring_signature(options.aggregate, options.calibrated, pairs.inputs),
            std=std,
            unknown=int(unknown.sum()),
            warnings=self.warnings_about(len(pairs.items), **counts),
            pairs=len(pairs.items),
            **counts,
        )

    @property
    def _weights(self) -> Values:
        return np.array([member.weight for member in self._ensemble.members]) if self._ensemble else np.ones(1)

    def _score_with_members(
        self, items: Sequence[Item], options: ScoreOptions, on_progress: Callable[[int], object]
    ) -> tuple[Values, Flags]:
        """Score pairs with each model.

        Returns:
            scores, (models, pairs), of an ensemble standardised; and which pairs any model truncated, did not know all
            pieces of, or did not read all text of, (3, pairs).
        """
        count = len(items)
        report = on_progress if len(self.members) == 1 else _MemberProgress(len(self.members), on_progress)
        scores = np.zeros((len(self.members), count))
        flags = np.zeros((3, count), dtype=bool)
        for row, member in enumerate(self.members):
            # A member may read fewer texts than the ensemble.
            texts_of_member = items
            if member.encoder.layout.inputs != self.layout.inputs:
                roles = [self.layout.inputs.index(role) for role in member.encoder.layout.inputs]
                texts_of_member = [tuple(texts[i] for i in roles) for texts in items]
            results = member.score(texts_of_member, report, options.batch_size)
            scores[row] = [result.score for result in results]
            member_flags = [(result.truncated, result.unknown, result.unread) for result in results]
            flags |= np.array(member_flags, dtype=bool).reshape(count, 3).T
        if self._ensemble is not None:
            means, stds = np.array([(member.mean, member.std) for member in self._ensemble.members]).T
            scores = (scores - means[:, None]) / stds[:, None]
        return scores, flags


class _MemberProgress:
    """Report a pair once all members of an ensemble have scored it."""

    def __init__(self, members: int, on_progress: Callable[[int], object]) -> None:
        self._members, self._on_progress, self._scores = members, on_progress, 0

    def __call__(self, count: int) -> None:
        before, self._scores = self._scores // self._members, self._scores + count
        self._on_progress(self._scores // self._members - before)


def _warn_caller(message: str) -> None:
    """Warn at the line outside this file that called, each time: Python shows a repeated warning once per process."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    warnings.warn_explicit(message, UserWarning, frame.f_code.co_filename, frame.f_lineno)


def _reopen(options: ScoreOptions, expected: str) -> BleurtScorer:
    """Open the scorer of a pickle.

    Raises:
        ValueError: if its scores would differ, since the checkpoint or the package has changed.
    """
    scorer = BleurtScorer.from_options(options)
    if scorer.signature != expected:
        raise ValueError(
            f"checkpoint {options.checkpoint} has changed since the scorer was pickled: expected {expected}, found "
            f"{scorer.signature}; open a new scorer with BleurtScorer(...)"
        )
    return scorer
