"""Score files of any size: what `bleurt-repro score` does between reading its input and writing its output.

Pairs are scored window by window, so that memory stays bounded; each window is on disk before the next begins, so that
a killed run resumes where it was, to the same bytes. With Ray the windows are scored by several workers, and written by
this process, in order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bleurt_repro.metric.bulk.ray_engine import Ahead, RayEngine
from bleurt_repro.metric.bulk.resumable_output import PartialOutput
from bleurt_repro.metric.files.records import STDIN, shown
from bleurt_repro.metric.files.texts import PairStream, arguments_of
from bleurt_repro.metric.files.writing import error_context, is_stream, validate_output
from bleurt_repro.metric.options import choose_shard

if TYPE_CHECKING:
    from bleurt_repro.metric.scorer import BleurtScorer, ScoringResult

# Seven decimals: a float32 score is known no better.
DECIMALS = 7
# Pairs scored between two writes: many, so that pairs of one length find each other, yet some seconds or minutes.
WINDOWS = {"cpu": 2048, "cuda": 32768}
# How an output of `score` begins: lines of scores, lines of a system's name and score, or one object.
OUR_SCORES = re.compile(rb"([^\t\n]*\t)?(-?\d+\.\d{7}|nan)\r?(\n|$)|\{\"scores\": \[")


def score_files(
    *,
    output: str,
    as_json: bool,
    aggregate: str,
    scorer_options: dict[str, Any],
    references: str | None = None,
    candidates: str | None = None,
    sources: str | None = None,
    pairs: str | None = None,
    calibrated: bool = False,
    num_shards: int | None = None,
    shard_index: int | None = None,
    system: str | None = None,
    overwrite: bool = False,
    engine: RayEngine | None = None,
) -> None:
    """Read texts, score them, and write one score a line or one JSON object.

    Args:
        output: the file to write, or "-" for standard output. A device or a named pipe is written to.
        as_json: write scores, mean_score, signature, truncated, unknown and warnings as one object.
        aggregate: as in `BleurtScorer.score`.
        scorer_options: arguments of `BleurtScorer`.
        references, candidates, sources: files of one segment a line, or of a column of CSV, TSV, JSON lines or Parquet;
            "-" for standard input.
        pairs: a file of pairs instead of them: JSON lines, CSV, TSV or Parquet.
        calibrated: as in `BleurtScorer.score`.
        num_shards, shard_index: score one of so many parts of the input, into a file of its own; by default all of it,
            or torchrun's part.
        system: write lines of this name, a tab and the score, as mt-metrics-eval reads them.
        overwrite: replace an output that no run of the library wrote.
        engine: where windows are scored; by default in this process. Ray's workers read the input themselves.

    Raises:
        ValueError: if the input is incomplete or malformed, naming file and line, or the output is an input or holds
            something else.
    """
    if system is not None and (as_json or not system or any(letter in system for letter in "\t\r\n")):
        raise ValueError("--system takes a name without tabs and line ends, and lines of scores, not --json")
    shard = choose_shard(num_shards, shard_index)
    files = {"references": references, "candidates": candidates, "sources": sources, "pairs": pairs}
    if engine is not None:
        _check_for_ray(files, shard.count)
    place = None
    if output != "-":
        place = validate_output(shard.output(output), (references, candidates, sources, pairs), OUR_SCORES, overwrite)
    with PairStream(**files) as stream:
        survey = stream.survey()
        from bleurt_repro.metric.scorer import BleurtScorer  # after the input is known to be good: it loads torch

        # Ray's workers score, on what they have: here the checkpoint is opened for what it says of itself
        scorer = BleurtScorer(**(scorer_options if engine is None else {**scorer_options, "device": "cpu"}))
        scorer.check_options(aggregate, calibrated)
        first, last = shard.bounds(survey.records)
        signature = scorer.scoring_signature(aggregate, calibrated)
        options = {"aggregate": aggregate, "calibrated": calibrated}
        on_ray = None if engine is None else _on_ray(engine, files, scorer_options, options)
        run = _Run(scorer, stream, (first, last), options, signature, system, on_ray)
        if place is None:
            run.to_stream(sys.stdout, as_json)
        elif is_stream(place):
            with error_context(place), place.open("a", encoding="utf-8", newline="\n") as opened:
                run.to_stream(opened, as_json)
        else:
            identity = {
                "input": survey.digest,
                "records": [first, last],
                **({"json": as_json} if scorer.gives_std else {}),  # what is kept of a record differs
                **({} if system is None else {"system": system}),
                "signature": signature,
                "settings": {
                    name: str(value) for name, value in scorer_options.items() if name not in ("progress", "cache")
                },
            }
            with contextlib.closing(PartialOutput(place, identity)) as partial:
                run.to_file(partial, as_json)


def _check_for_ray(files: Mapping[str, str | None], shards: int) -> None:
    """Refuse what Ray's workers could not do."""
    if shards > 1:
        raise ValueError("engine ray shares out the work itself: leave out --num-shards, --shard-index and torchrun")
    for path in filter(None, files.values()):
        if path == STDIN or (Path(path).exists() and not Path(path).is_file()):
            raise ValueError(f"engine ray reads the input in each worker: expected a file, found {shown(path)}")


def _on_ray(
    engine: RayEngine, files: Mapping[str, str | None], scorer_options: Mapping[str, Any], options: dict[str, Any]
) -> Callable[[int, int], Iterator[tuple[ScoringResult, int]]]:
    """Return what scores the records of a range on Ray, window after window."""
    device = scorer_options.get("device")
    size = WINDOWS["cuda" if str(device).startswith("cuda") else "cpu"]
    own = {name: value for name, value in scorer_options.items() if name != "device"} | {"progress": False}

    def score(first: int, last: int) -> Iterator[tuple[ScoringResult, int]]:
        windows = [(start, min(start + size, last)) for start in range(first, last, size)]
        return engine.map(_RayScorer, windows, device, files=dict(files), scorer_options=own, options=options)

    return score


class _RayScorer:
    """Scores windows in a worker of Ray.

    Args:
        files: arguments of `PairStream`.
        scorer_options: arguments of `BleurtScorer`, without its device.
        options: of `compute`.
        device: where to compute.
    """

    def __init__(
        self,
        files: dict[str, str | None],
        scorer_options: dict[str, Any],
        options: dict[str, Any],
        device: str,
    ) -> None:
        from bleurt_repro.metric.scorer import BleurtScorer

        self._scorer = BleurtScorer(**scorer_options, device=device)
        self._options = options
        self._pairs = Ahead(PairStream(**files).__enter__().pairs)  # open as long as the worker lives

    def __call__(self, first: int, last: int) -> tuple[ScoringResult, int]:
        """Score the records from `first` up to `last`; return their number of pairs, too."""
        window = self._pairs.run(first, last)
        texts: dict[str, Any] = arguments_of(window)
        result = self._scorer.compute_quietly(**texts, **self._options)
        return result, sum(len(references) or 1 for references, _, _ in window)


@dataclasses.dataclass
class _Run:
    """One pass over a range of pairs.

    Attributes:
        records: the first, and the one after the last.
        options: of `compute`.
        system: written before each score, if it has a name.
        on_ray: scores the records of a range on Ray; None scores them here.
    """

    scorer: BleurtScorer
    stream: PairStream
    records: tuple[int, int]
    options: dict[str, Any]
    signature: str
    system: str | None
    on_ray: Callable[[int, int], Iterator[tuple[ScoringResult, int]]] | None = None

    def to_file(self, partial: PartialOutput, as_json: bool) -> None:
        """Write the scores, those of a killed run included."""
        for result, pairs in self._results(partial.counts.get("records", 0)):
            partial.add(self._lines(result, as_json), **_counts(result, pairs))
        partial.finish(self._json(partial.lines(), partial.counts) if as_json else None)
        self._warn(partial.counts)

    def to_stream(self, stream: TextIO, as_json: bool) -> None:
        """Write the scores to what cannot be read again."""
        lines: list[str] = []
        counts: Counter[str] = Counter()
        for result, pairs in self._results(0):
            counts.update(_counts(result, pairs))
            if as_json:
                lines += self._lines(result, True).splitlines()
            else:
                stream.write(self._lines(result, False))
                stream.flush()
        if as_json:
            stream.write(self._json(lines, counts))
            stream.flush()
        self._warn(counts)

    def _results(self, done: int) -> Iterator[tuple[ScoringResult, int]]:
        """Score window after window under one progress bar; yield each result with the number of its pairs."""
        first, last = self.records
        with self.scorer.progress_bar(last - first, "record", done) as bar:
            if self.on_ray is None:
                yield from self._scored_here(first + done, last, bar.update)
                return
            for result, pairs in self.on_ray(first + done, last):
                yield result, pairs
                bar.update(len(result.scores))

    def _scored_here(
        self, first: int, last: int, update: Callable[[int], object]
    ) -> Iterator[tuple[ScoringResult, int]]:
        size = WINDOWS.get(self.scorer.device.type, WINDOWS["cpu"])
        for texts in self.stream.windows(first, last, size):
            records = len(texts["candidates"])
            pairs = sum(map(len, texts["references"])) if "references" in texts else records
            single = pairs == records  # then the bar moves with every batch, else with every window
            quiet: dict[str, Any] = {**texts, **self.options, "done": update if single else int}
            yield self.scorer.compute_quietly(**quiet), pairs
            update(0 if single else records)

    def _lines(self, result: ScoringResult, as_json: bool) -> str:
        """Format one score per line and, for the JSON object of an ensemble, its standard deviation."""
        columns = [result.scores, *([result.std] if as_json and result.std is not None else [])]
        rows = ("\t".join(f"{number:.{DECIMALS}f}" for number in row) for row in zip(*columns, strict=True))
        name = "" if self.system is None else f"{self.system}\t"
        return "".join(f"{name}{row}\n" for row in rows)

    def _json(self, lines: Iterable[str], counts: Mapping[str, int]) -> str:
        rows = [[float(number) for number in line.split()] for line in lines]
        scores = [row.pop(0) for row in rows]
        mean = sum(scores) / len(scores) if scores else None
        fields: dict[str, Any] = {
            "scores": scores,
            "mean_score": mean,
            "signature": self.signature,
            "truncated": counts.get("truncated", 0),
            "unknown": counts.get("unknown", 0),
            "warnings": self._warnings(counts),
        }
        if self.scorer.gives_std:
            fields["std"] = [row.pop(0) for row in rows]
        return json.dumps(fields) + "\n"

    def _warnings(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        return self.scorer.warnings_about(*(counts.get(name, 0) for name in ("pairs", "truncated", "unread")))

    def _warn(self, counts: Mapping[str, int]) -> None:
        for message in self._warnings(counts) if counts.get("truncated") or counts.get("unread") else ():
            warnings.warn(message, stacklevel=4)


def _counts(result: ScoringResult, pairs: int) -> dict[str, int]:
    """Count what a window adds to the totals of a run."""
    return {
        "records": len(result.scores),
        "pairs": pairs,
        "truncated": result.truncated,
        "unknown": result.unknown,
        "unread": result.unread,
    }
