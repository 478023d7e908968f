"""Score files of any size: what `bleurt-repro score` does between reading its input and writing its output.

Pairs are scored window by window, so that memory stays bounded; each window is on disk before the next one begins, so that
a killed run resumes where it was, to the same bytes. With Ray the windows are scored by several workers, and written by
this process, in order.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from bleurt_repro.metric.bulk.kept_rows import copy_rows
from bleurt_repro.metric.bulk.ray_engine import Ahead, RayEngine
from bleurt_repro.metric.bulk.resumable_output import PartialOutput
from bleurt_repro.metric.files.records import STDIN, display_name, file_form
from bleurt_repro.metric.files.texts import PairStream, Survey, arguments_of
from bleurt_repro.metric.files.writing import error_context, is_stream, open_output, validate_output
from bleurt_repro.metric.options import ScoreOptions, Shard, choose_shard
from bleurt_repro.metric.statistics import CONFIDENCE, interval_text, mean_interval

if TYPE_CHECKING:
    from bleurt_repro.metric.scorer import BleurtScorer, ScoringResult

# A float32 score has about seven decimals.
DECIMALS = 7
SCORE_UNITS = 10**DECIMALS
# Records scored between two writes: many, so that pairs of the same length share batches, but only seconds to minutes of work.
WINDOWS = {"cpu": 2048, "cuda": 32768}
# How an output of `score` begins: lines of scores, lines of a system's name and score, or one object. Rows of the input
# have no mark of ours.
NO_MARK = re.compile(rb"(?!)")
OUR_SCORES = re.compile(rb"([^\t\n]*\t)?(-?\d+\.\d{7}|nan)\r?(\n|$)|\{\"scores\": \[")


def score_files(
    options: ScoreOptions,
    *,
    output: str,
    as_json: bool = False,
    references: str | None = None,
    candidates: str | None = None,
    sources: str | None = None,
    pairs: str | None = None,
    num_shards: int | str | None = None,
    shard_index: int | None = None,
    system: str | None = None,
    overwrite: bool = False,
    keep_above: float | None = None,
    engine: RayEngine | None = None,
) -> str:
    """Read texts, score them, and write one score per line or one JSON object.

    Args:
        options: how to score.
        output: file to write, or "-" for standard output; a device or a named pipe is written to as well.
        as_json: whether to write scores, mean_score, low and high (its interval), signature, truncated, unknown and warnings
            as one object.
        references, candidates, sources: files of one segment per line, or of a column of CSV, TSV, JSON lines or Parquet;
            "-" for standard input.
        pairs: file of pairs instead of them: JSON lines, CSV, TSV or Parquet.
        num_shards, shard_index: share of the input to score, into a separate file, as in `choose_shard`; by default all.
        system: name that is written before each score, with a tab, as mt-metrics-eval reads them.
        overwrite: whether to replace an output that bleurt-repro did not write.
        keep_above: lowest score of the rows of `pairs` that are written, as they are, instead of the scores.
        engine: where windows are scored; by default in this process. Ray's workers read the input themselves.

    Returns:
        one line with the mean score of what this process wrote, its 95 % interval over segments in closed form (see
        `mean_interval`), the number of segments and the signature.

    Raises:
        ValueError: if the input is incomplete or malformed, naming file and line, if it changes while it is read, or if the
            output is an input or another program's file.
    """
    if system is not None and (as_json or not system or any(letter in system for letter in "\t\r\n")):
        raise ValueError("--system takes a name without tabs and line ends, and lines of scores, not --json")
    if keep_above is None:
        _check_extension(output, as_json, system)
    else:
        _check_filter(pairs, output, as_json or system is not None)
    shard = choose_shard(num_shards, shard_index)
    files = {"references": references, "candidates": candidates, "sources": sources, "pairs": pairs}
    if engine is not None:
        _check_for_ray(files, shard.count)
    path = None
    if output != "-":
        mark = OUR_SCORES if keep_above is None else NO_MARK
        path = validate_output(shard.output(output), (references, candidates, sources, pairs), mark, overwrite)
    with PairStream(**files) as stream:
        survey = stream.survey()
        from bleurt_repro.metric.scorer import BleurtScorer  # loads torch: only once the input is known to be good

        # With Ray the workers score; here the checkpoint is opened for its settings and signature.
        scorer = BleurtScorer.from_options(options if engine is None else replace(options, device="cpu"))
        scorer.check_options(options)
        on_ray = None if engine is None else _score_on_ray(engine, files, survey, options)
        run = _Run(scorer, options, stream, survey.records, shard, system, on_ray)
        run.announce()
        rows = (
            None
            if keep_above is None or pairs is None
            else _Rows(stream, pairs, keep_above, run.records, survey.records)
        )
        if rows is not None and (path is None or is_stream(path)):
            counts = run.rows_to_stream(rows, path)
        elif path is None:
            counts = run.to_stream(sys.stdout, as_json)
        elif is_stream(path):
            with error_context(path), path.open("a", encoding="utf-8", newline="\n") as opened:
                counts = run.to_stream(opened, as_json)
        else:
            settings = {name: str(value) for name, value in options.scorer_arguments().items()}
            del settings["progress"], settings["cache"]  # scores do not depend on them
            identity = {
                "input": survey.digest,
                "records": list(run.records),
                "decimals": DECIMALS,
                **({"json": as_json} if scorer.gives_std else {}),  # then lines have another column
                **({} if system is None else {"system": system}),
                "signature": run.signature,
                "settings": settings,
            }
            with contextlib.closing(PartialOutput(path, identity)) as partial:
                counts = run.to_file(partial, as_json, rows)
        return f"{'' if rows is None else rows.summary}{run.summary(counts)}"


def _check_extension(output: str, as_json: bool, system: str | None) -> None:
    """Raise an error if the name of an output promises another format than the output has."""
    extension = Path(output.lower().removesuffix(".gz")).suffix
    tables = {".csv", ".tsv", ".jsonl", ".ndjson", ".parquet"}
    if as_json and extension in tables:
        raise ValueError(f"--json writes one JSON object: name the output .json, found {output}")
    if not as_json and extension in (tables | {".json"}) - ({".tsv"} if system else set()):
        advice = "or add --json" if extension == ".json" else "or add --json and name it .json"
        raise ValueError(f"score writes one score per line: name the output .txt, {advice}; found {output}")


def _check_filter(pairs: str | None, output: str, has_lines: bool) -> None:
    """Raise an error if rows could not be written as they are."""
    if pairs is None:
        raise ValueError("--keep-above writes rows of one file: give --pairs instead of --references and --candidates")
    if has_lines:
        raise ValueError("--keep-above writes rows of the input: leave out --json and --system")
    form = file_form(pairs) or ".jsonl"
    if output == "-" and form == ".parquet":
        raise ValueError("Parquet cannot be written to standard output: name an --output that ends in .parquet")
    if output != "-" and not is_stream(Path(output)) and file_form(output) != form:
        raise ValueError(
            f"--keep-above writes the format of the input: expected an output ending in {form}, found {output}"
        )


def _check_for_ray(files: Mapping[str, str | None], shards: int) -> None:
    """Raise an error if Ray's workers could not read the input, or would have to share a share."""
    if shards > 1:
        raise ValueError("engine ray shares out the work itself: leave out --num-shards and --shard-index")
    for path in filter(None, files.values()):
        if path == STDIN or (Path(path).exists() and not Path(path).is_file()):
            raise ValueError(f"engine ray reads the input in each worker: expected a file, found {display_name(path)}")


def _score_on_ray(
    engine: RayEngine, files: Mapping[str, str | None], survey: Survey, options: ScoreOptions
) -> Callable[[int, int], Iterator[ScoringResult]]:
    """Return a function that scores the records of a range on Ray, window after window."""
    device = None if options.device is None else str(options.device)
    size = WINDOWS["cuda" if str(device).startswith("cuda") else "cpu"]
    options = replace(options, progress=False)

    def score(first: int, last: int) -> Iterator[ScoringResult]:
        windows = [(start, min(start + size, last)) for start in range(first, last, size)]
        return engine.map(_RayScorer, windows, device, files=dict(files), survey=survey, options=options)

    return score


class _RayScorer:
    """Score windows in a worker of Ray.

    Args:
        files: arguments of `PairStream`.
        survey: hashes of the input, with which the worker compares what it reads.
        options: how to score, but for the device.
        device: device of the worker.
    """

    def __init__(self, files: dict[str, str | None], survey: Survey, options: ScoreOptions, device: str) -> None:
        from bleurt_repro.metric.scorer import BleurtScorer

        self._options = replace(options, device=device)
        self._scorer = BleurtScorer.from_options(self._options)
        stream = PairStream(**files).__enter__()  # open as long as the worker lives
        self._pairs = Ahead(lambda: stream.checked_pairs(survey))

    def __call__(self, first: int, last: int) -> ScoringResult:
        """Score the records from `first` up to `last`."""
        texts: dict[str, Any] = arguments_of(self._pairs.run(first, last))
        return self._scorer.compute_quietly(**texts, options=self._options)


@dataclass
class _Rows:
    """The rows of the input that are kept, and their number.

    Attributes:
        stream: pairs that were scored.
        path: name of their file.
        threshold: lowest score of a row that is kept.
        records: first record of the share, and the one after its last.
        total: number of records of the whole input.
        copied: number of rows that `copy` wrote.
    """

    stream: PairStream
    path: str
    threshold: float
    records: tuple[int, int]
    total: int
    copied: int = 0

    @property
    def summary(self) -> str:
        """Return how many rows were kept, for the line on standard error."""
        first, last = self.records
        return f"kept {self.copied:,} of {last - first:,} rows with a score of at least {self.threshold:g}; "

    def copy(self, scores: Iterable[float], output: BinaryIO) -> None:
        """Write the rows of the share whose scores are high enough."""
        first, last = self.records
        mask = chain(repeat(False, first), map(self._is_kept, scores), repeat(False, self.total - last))
        copy_rows(self.stream.check_unchanged(), self.path, mask, output)

    def _is_kept(self, score: float) -> bool:
        high = score >= self.threshold
        self.copied += high
        return high


@dataclass
class _Run:
    """One pass over the records of a share.

    Attributes:
        total: number of records of the whole input.
        system: name that is written before each score; None for none.
        on_ray: function that scores the records of a range on Ray; None scores them here.
    """

    scorer: BleurtScorer
    options: ScoreOptions
    stream: PairStream
    total: int
    shard: Shard
    system: str | None
    on_ray: Callable[[int, int], Iterator[ScoringResult]] | None = None

    @property
    def records(self) -> tuple[int, int]:
        """The first record of the share, and the one after its last."""
        return self.shard.bounds(self.total)

    @property
    def signature(self) -> str:
        """The signature of the scores."""
        inputs = [role for role in self.scorer.layout.inputs if role in self.stream.roles]
        return self.scorer.scoring_signature(self.options.aggregate, self.options.calibrated, inputs)

    def announce(self) -> None:
        """Say which records are scored, if they are not all."""
        if self.shard.count > 1:
            first, last = self.records
            warnings.warn(
                f"share {self.shard.index} of {self.shard.count}: {last - first:,} of {self.total:,} records are scored, from "
                f"record {first + 1:,} on",
                stacklevel=3,
            )

    def to_file(self, partial: PartialOutput, as_json: bool, rows: _Rows | None = None) -> Mapping[str, int]:
        """Write the scores, including those of a killed run, or the rows to keep; return the counts of all scores."""
        for result in self._results(partial.counts.get("records", 0)):
            partial.add(self._lines(result, as_json), **_counts(result))
        if rows is not None:
            partial.finish(lambda file: rows.copy(map(float, partial.lines()), file))
        elif as_json:
            partial.finish(lambda file: file.write(self._json(partial.lines(), partial.counts).encode()))
        else:
            partial.finish()
        self._warn(partial.counts)
        return partial.counts

    def to_stream(self, stream: TextIO, as_json: bool) -> Mapping[str, int]:
        """Write the scores to a stream, which cannot be read again; return their counts."""
        lines: list[str] = []
        counts: Counter[str] = Counter()
        for result in self._results(0):
            counts.update(_counts(result))
            if as_json:
                lines += self._lines(result, True).splitlines()
            else:
                stream.write(self._lines(result, False))
                stream.flush()
        if as_json:
            stream.write(self._json(lines, counts))
            stream.flush()
        self._warn(counts)
        return counts

    def rows_to_stream(self, rows: _Rows, path: Path | None) -> Mapping[str, int]:
        """Write the rows to keep to standard output, or to a device or pipe; return the counts of all scores."""
        scores, counts = array("d"), Counter[str]()
        for result in self._results(0):
            counts.update(_counts(result))
            scores.extend(round(score, DECIMALS) for score in result.scores)
        with contextlib.nullcontext(sys.stdout.buffer) if path is None else open_output(path) as file:
            rows.copy(scores, file)
            file.flush()
        self._warn(counts)
        return counts

    def summary(self, counts: Mapping[str, int]) -> str:
        """Return the mean score, its interval, the number of segments and the signature in one line."""
        share = f"share {self.shard.index} of {self.shard.count}: " if self.shard.count > 1 else ""
        segments = counts.get("records", 0)
        if not segments:
            return f"{share}no segments, {self.signature}"
        mean = counts["sum"] / segments / SCORE_UNITS
        low, high = _interval(counts)
        label = "" if low is None else f"{CONFIDENCE:.0%} interval "
        number = "1 segment" if segments == 1 else f"{segments:,} segments"
        return f"{share}mean {mean:.4f} ({label}{interval_text(low, high)}), {number}, {self.signature}"

    def _results(self, finished: int) -> Iterator[ScoringResult]:
        """Score window after window under one progress bar, after the records that a killed run finished."""
        first, last = self.records
        with self.scorer.progress_bar(last - first, "record", finished) as bar:
            if self.on_ray is None:
                yield from self._score_here(first + finished, last, bar.update)
                return
            for result in self.on_ray(first + finished, last):
                yield result
                bar.update(len(result.scores))

    def _score_here(self, first: int, last: int, update: Callable[[int], object]) -> Iterator[ScoringResult]:
        size = WINDOWS.get(self.scorer.device.type, WINDOWS["cpu"])
        for texts in self.stream.windows(first, last, size):
            # With one reference per record the bar moves with every batch, else with every window.
            single = all(len(references) == 1 for references in texts.get("references", []))
            report = update if single else int
            yield self.scorer.compute_quietly(**texts, options=self.options, on_progress=report)
            update(0 if single else len(texts["candidates"]))

    def _lines(self, result: ScoringResult, as_json: bool) -> str:
        """Format one score per line and, for the JSON object of an ensemble, its standard deviation."""
        columns = [result.scores, *([result.std] if as_json and result.std is not None else [])]
        rows = ("\t".join(f"{number:.{DECIMALS}f}" for number in row) for row in zip(*columns, strict=True))
        name = "" if self.system is None else f"{self.system}\t"
        return "".join(f"{name}{row}\n" for row in rows)

    def _json(self, lines: Iterable[str], counts: Mapping[str, int]) -> str:
        rows = [[float(number) for number in line.split()] for line in lines]
        scores = [row[0] for row in rows]
        low, high = _interval(counts)
        fields: dict[str, Any] = {
            "scores": scores,
            "mean_score": sum(scores) / len(scores) if scores else None,
            "low": low,
            "high": high,
            "signature": self.signature,
            "truncated": counts.get("truncated", 0),
            "unknown": counts.get("unknown", 0),
            "warnings": self._warnings(counts),
        }
        if self.scorer.gives_std:
            fields["std"] = [row[1] for row in rows]
        if self.shard.count > 1:
            first, last = self.records
            share = {"index": self.shard.index, "count": self.shard.count}
            fields["shard"] = {**share, "first_record": first, "records": last - first, "of": self.total}
        return json.dumps(fields) + "\n"

    def _warnings(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        return self.scorer.warnings_about(*(counts.get(name, 0) for name in ("pairs", "truncated", "unread", "blank")))

    def _warn(self, counts: Mapping[str, int]) -> None:
        for message in self._warnings(counts):
            warnings.warn(message, stacklevel=4)


def _counts(result: ScoringResult) -> dict[str, int]:
    """Return what a window adds to the counts of a run."""
    names = ("pairs", "truncated", "unknown", "unread", "blank")
    # Sums in whole units of the last decimal are exact, so a run that is resumed or divided differently has the same interval.
    units = [round(score * SCORE_UNITS) for score in result.scores]
    sums = {"sum": sum(units), "squares": sum(unit * unit for unit in units)}
    return {"records": len(result.scores), **sums, **{name: getattr(result, name) for name in names}}


def _interval(counts: Mapping[str, int]) -> tuple[float | None, float | None]:
    """Return the interval of the mean score, from the sums in the counts."""
    total, squares = counts.get("sum", 0) / SCORE_UNITS, counts.get("squares", 0) / SCORE_UNITS**2
    return mean_interval(counts.get("records", 0), total, squares)
