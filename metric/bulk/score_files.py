"""Score files of any size: what `bleurt-repro score` does between reading its input and writing its output.

Records are scored window by window, so that memory stays bounded; each window is on disk before the next begins, so that
a killed run goes on where it was, to the same bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.bulk.resumable_output import PartialOutput
from bleurt_repro.metric.bulk.stream import PairStream
from bleurt_repro.metric.options import choose_shard

if TYPE_CHECKING:
    from bleurt_repro.metric.scorer import BleurtScorer, ScoringResult

# Seven decimals: a float32 score is known no better.
DECIMALS = 7
# Records scored between two writes: many, so that pairs of one length find each other, yet some seconds or minutes.
WINDOWS = {"cpu": 2048, "cuda": 32768}


def score_files(
    *,
    references: str | None,
    candidates: str | None,
    sources: str | None,
    pairs: str | None,
    output: str,
    as_json: bool,
    aggregate: str,
    scorer_options: dict[str, Any],
    calibrated: bool = False,
    num_shards: int | None = None,
    shard_index: int | None = None,
) -> None:
    """Read texts, score them, and write one score a line or one JSON object.

    Args:
        references, candidates, sources: text files of one segment a line, or "-" for standard input.
        pairs: a JSONL file instead of them.
        output: the file to write, or "-" for standard output.
        as_json: write scores, mean_score, signature and truncated as one object.
        aggregate: as in `BleurtScorer.score`.
        scorer_options: arguments of `BleurtScorer`.
        calibrated: as in `BleurtScorer.score`.
        num_shards, shard_index: score one of so many parts of the input, into a file of its own; by default all of it,
            or torchrun's part.

    Raises:
        ValueError: if the input is incomplete or malformed, naming file and line.
    """
    shard = choose_shard(num_shards, shard_index)
    with PairStream(references=references, candidates=candidates, sources=sources, pairs=pairs) as stream:
        survey = stream.survey()
        from bleurt_repro.metric.scorer import BleurtScorer  # after the input is known to be good: it loads torch

        scorer = BleurtScorer(**scorer_options)
        scorer.check_options(aggregate, calibrated)
        first, last = shard.bounds(survey.records)
        identity = {
            "input": survey.digest,
            "records": [first, last],
            **({"json": as_json} if scorer.gives_std else {}),  # what is kept of a record differs
            "signature": scorer.scoring_signature(aggregate, calibrated),
            "settings": {
                name: str(value) for name, value in scorer_options.items() if name not in ("progress", "cache")
            },
        }
        run = _Run(scorer, stream, (first, last), {"aggregate": aggregate, "calibrated": calibrated})
        if output == "-":
            run.to_standard_output(as_json)
        else:
            with contextlib.closing(PartialOutput(Path(shard.output(output)), identity)) as partial:
                run.to_file(partial, as_json)


@dataclasses.dataclass
class _Run:
    """One pass over a range of records."""

    scorer: BleurtScorer
    stream: PairStream
    records: tuple[int, int]
    options: dict[str, Any]

    def to_file(self, partial: PartialOutput, as_json: bool) -> None:
        for result, pairs in self._results(partial.counts.get("records", 0)):
            counts = {"records": len(result.scores), "pairs": pairs, "truncated": result.truncated}
            partial.add(_lines(result.scores, result.std if as_json else None), **counts)
        truncated = partial.counts.get("truncated", 0)
        numbers = ([float(number) for number in line.split()] for line in partial.lines())
        partial.finish(self._json(list(numbers), truncated) if as_json else None)
        self._warn(truncated, partial.counts.get("pairs", 0))

    def to_standard_output(self, as_json: bool) -> None:
        scores: list[list[float]] = []
        truncated = total = 0
        for result, pairs in self._results(0):
            truncated, total = truncated + result.truncated, total + pairs
            if as_json:
                scores += [[float(number) for number in line.split()] for line in _rows(result.scores, result.std)]
            else:
                sys.stdout.write(_lines(result.scores))
                sys.stdout.flush()
        if as_json:
            sys.stdout.write(self._json(scores, truncated))
            sys.stdout.flush()
        self._warn(truncated, total)

    def _results(self, done: int) -> Iterator[tuple[ScoringResult, int]]:
        """Score window after window under one bar; give each with the number of its pairs."""
        first, last = self.records
        with self.scorer.progress_bar(last - first, "record", done) as bar:
            size = WINDOWS.get(self.scorer.device.type, WINDOWS["cpu"])
            for texts in self.stream.windows(first + done, last, size):
                records = len(texts["candidates"])
                pairs = sum(map(len, texts["references"])) if "references" in texts else records
                single = pairs == records  # then the bar moves with every batch, else with every window
                quiet: dict[str, Any] = {**texts, **self.options, "done": bar.update if single else int}
                yield self.scorer.compute_quietly(**quiet), pairs
                bar.update(0 if single else records)

    def _json(self, rows: list[list[float]], truncated: int) -> str:
        scores = [score for score, *_ in rows]
        mean = sum(scores) / len(scores) if scores else None
        signature = self.scorer.scoring_signature(**self.options)
        fields = {"scores": scores, "mean_score": mean, "signature": signature, "truncated": truncated}
        if self.scorer.gives_std:
            fields["std"] = [std for _, std in rows]
        return json.dumps(fields) + "\n"

    def _warn(self, truncated: int, pairs: int) -> None:
        if truncated:
            warnings.warn(self.scorer.truncation_message(truncated, pairs), stacklevel=4)


def _lines(scores: list[float], std: list[float] | None = None) -> str:
    return "".join(f"{row}\n" for row in _rows(scores, std))


def _rows(scores: list[float], std: list[float] | None) -> list[str]:
    """One score a row and, beside it, where there is one, how far an ensemble's members lie apart."""
    columns = [scores] if std is None else [scores, std]
    return ["\t".join(f"{number:.{DECIMALS}f}" for number in row) for row in zip(*columns, strict=True)]
