"""Score texts with any metric, a row of a table each: a baseline, a checkpoint, or a file of scores computed elsewhere.

Such a file is a metric's submission to the WMT Metrics task, or one of your own. The scores of a baseline or checkpoint are
kept as a cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.files.records import parse_number, read_records, text_lines
from bleurt_repro.training.experiments.baselines import Scored, find_baseline, shown_name
from bleurt_repro.training.experiments.options import Cells, MetricOptions, digest

Values = NDArray[np.float64]
# metric, language pair, test set, system, segment, score: https://aclanthology.org/W18-6450
SUBMISSION_FIELDS = 6
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Texts:
    """What is scored, one item a place.

    Attributes:
        references, candidates: of each item.
        sources: of each item, or None.
        keys: what identifies an item in a file of scores: dicts with lp, segment_id, system.
    """

    references: Sequence[str]
    candidates: Sequence[str]
    sources: Sequence[str | None] | None = None
    keys: Sequence[Mapping[str, Any]] | None = None

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all texts."""
        return digest([list(self.references), list(self.candidates), list(self.sources or [])])


@dataclass(frozen=True)
class Row:
    """One metric on the items: what becomes a row of a table.

    Attributes:
        name: in tables.
        kind: "baseline", "checkpoint", "file" or "model" (trained here).
        vectors: scores of all items, one array for each seed; NaN where a file has none.
        signature: that reproduces the scores.
        notes: what else the results report of the row.
    """

    name: str
    kind: str
    vectors: Sequence[Values]
    signature: str
    notes: dict[str, Any] = field(default_factory=dict)


def signatures(rows: Sequence[Row]) -> dict[str, str]:
    """Return the signature of each row by its name."""
    return {row.name: row.signature for row in rows}


def baseline_row(name: str, texts: Texts, cells: Cells) -> Row:
    """Score with a baseline; equal pairs are scored once.

    Args:
        name: as `find_baseline` takes it.
        texts: the items.
        cells: where scores are kept.
    """
    metric = find_baseline(name)

    def compute() -> dict[str, Any]:
        pairs = list(zip(texts.references, texts.candidates, strict=True))
        place = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
        references, candidates = zip(*place, strict=True)
        scored = metric(references, candidates)
        return Scored([scored.scores[place[pair]] for pair in pairs], scored.signature)._asdict()

    encoder = name.partition(":")[2]
    content = cells.get(f"scores-{name}", [name, _content(encoder) if encoder else "", texts.fingerprint], compute)
    return Row(shown_name(name), "baseline", [np.array(content["scores"])], content["signature"])


def checkpoint_row(
    name: str, texts: Texts, cells: Cells, options: Mapping[str, Any] | None = None, cache: str | None = None
) -> Row:
    """Score with a checkpoint.

    Args:
        name: as `BleurtScorer` takes it.
        texts: the items.
        cells: where scores are kept.
        options: further arguments of `BleurtScorer`.
        cache: folder of scores of earlier runs; scores do not depend on it.
    """
    inputs = [name, _content(name), dict(options or {}), texts.fingerprint]
    arguments = {**(options or {}), "cache": cache}
    content = cells.get(f"scores-{name}", inputs, lambda: score_with(name, texts, arguments))
    shown = Path(name).resolve().name if Path(name).is_dir() else name
    return Row(shown, "checkpoint", [np.array(content["scores"])], content["signature"])


def score_with(name: str, texts: Texts, options: Mapping[str, Any]) -> dict[str, Any]:
    """Score with a checkpoint, and keep nothing; equal items are scored once.

    Args:
        name: as `BleurtScorer` takes it.
        texts: the items.
        options: further arguments of `BleurtScorer`.

    Returns:
        "scores", one an item, and "signature".

    Raises:
        ValueError: if the checkpoint reads sources, and the data have none.
    """
    from bleurt_repro.metric.scorer import BleurtScorer

    scorer = BleurtScorer(name, **options)
    sources = None
    if scorer.layout.reads_sources:
        sources = [source for source in texts.sources or [] if source is not None]
        if len(sources) < len(texts.candidates):
            raise ValueError(f"checkpoint {name} reads sources, but the data do not have one for each record")
    references = texts.references if scorer.layout.reads_references else None
    columns = {"candidates": texts.candidates, "references": references, "sources": sources}
    read: dict[str, Any] = {name: list(column) for name, column in columns.items() if column is not None}
    items = list(zip(*read.values(), strict=True))
    place = {item: i for i, item in enumerate(dict.fromkeys(items))}
    different: dict[str, Any] = dict(zip(read, map(list, zip(*place, strict=True)), strict=True))
    result = scorer.compute(**different)
    return {"scores": [result.scores[place[item]] for item in items], "signature": result.signature}


def all_rows(
    texts: Texts, cells: Cells, metrics: MetricOptions, options: Mapping[str, Any] | None = None
) -> list[Row]:
    """Score with every metric named, with a progress bar.

    Args:
        texts: the items.
        cells: where scores are kept.
        metrics: which ones.
        options: arguments of `BleurtScorer` over those of `metrics`.

    Raises:
        ValueError: if a baseline is unknown, before anything is scored; or a file lacks scores.
    """
    from tqdm import tqdm

    for name in metrics.baselines:
        find_baseline(name)
    options = {**metrics.scorer_options, **(options or {})}
    rows = [
        score_file_row(item, texts) for item in metrics.score_files
    ]  # quick, so that their faults are reported at once
    total = len(metrics.checkpoint) + len(metrics.baselines)
    with tqdm(total=total, desc="metrics", unit="metric", disable=None) as bar:
        for name in metrics.checkpoint:
            bar.set_postfix_str(name)
            rows.append(checkpoint_row(name, texts, cells, options, metrics.cache))
            bar.update()
        for name in metrics.baselines:
            bar.set_postfix_str(name)
            rows.append(baseline_row(name, texts, cells))
            bar.update()
    order = {"checkpoint": 0, "baseline": 1, "file": 2}
    return sorted(rows, key=lambda row: order[row.kind])


def _content(name: str) -> str:
    """Hash a checkpoint or encoder, so that other weights of the same name make another cell."""
    from bleurt_repro.metric.loading.checksums import content_hash
    from bleurt_repro.metric.loading.open import find_checkpoint

    return content_hash(Path(find_checkpoint(name)))


def score_file_row(item: str, texts: Texts) -> Row:
    """Read a file of scores.

    Args:
        item: `NAME=FILE`. A `.scr` file (or `.scr.gz`) is a submission to the WMT Metrics task; a `.txt` file has one
            score a line, in the order of the data; any other is read by `read_records` and has a column score, and
            lp, segment_id and system unless it stands in the order of the data.
        texts: the items.

    Returns:
        the row; items of a language pair that the file does not have are NaN.

    Raises:
        ValueError: if the item has another form, a score is missing, or there are more or fewer than items.
    """
    from bleurt_repro.metric.loading.checksums import file_hash

    name, _, path = item.partition("=")
    if not name or not path:
        raise ValueError(f"a file of scores is named as NAME=FILE, found {item!r}")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no file {path}: expected scores of {name}")
    scores = read_scores(file, texts)
    return Row(name, "file", [scores], f"file:{file.name}|sha256:{file_hash(file).hex()[:12]}")


def read_scores(file: Path, texts: Texts) -> np.ndarray:
    """Read one score an item; see `score_file_row`."""
    if file.name.removesuffix(".gz").endswith(".scr"):
        return _join(file, dict(_submission(file)), texts)
    if file.suffix == ".txt":
        lines = enumerate(text_lines(file), start=1)
        return _in_order(file, [_number(f"{file}, line {n}", line) for n, line in lines], texts)
    records = list(read_records(file))
    scores = [_number(f"{file}, {place}", record.get("score")) for place, record in records]
    if records and all(name in records[0][1] for name in ("lp", "segment_id", "system")):
        keys = [_key(record["lp"], record["system"], record["segment_id"]) for _, record in records]
        return _join(file, dict(zip(keys, scores, strict=True)), texts)
    return _in_order(file, scores, texts)


def _submission(file: Path) -> Iterator[tuple[Key, float]]:
    for number, line in enumerate(text_lines(file), start=1):
        fields = line.split("\t")
        if len(fields) < SUBMISSION_FIELDS:
            raise ValueError(
                f"{file}, line {number}: expected metric, language pair, test set, system, segment and score, "
                f"separated by tabs, found {len(fields)} fields"
            )
        _, lp, _, system, segment, score = fields[:SUBMISSION_FIELDS]
        yield _key(lp, system, segment), _number(f"{file}, line {number}", score)


def _join(file: Path, found: dict[Key, float], texts: Texts) -> np.ndarray:
    if texts.keys is None:
        raise ValueError(f"{file} names its scores by lp, system and segment_id, which the data do not have")
    pairs = {lp for lp, _, _ in found}
    scores, missing = [], []
    for key in texts.keys:
        # one record may stand for several systems of the same output: a.1+b.2
        names = str(key["system"]).split("+")
        values = [found.get(_key(key["lp"], name, key["segment_id"])) for name in (str(key["system"]), *names)]
        score = next((value for value in values if value is not None), math.nan)
        if math.isnan(score) and str(key["lp"]) in pairs:
            missing.append(f"{key['lp']} {key['system']} {key['segment_id']}")
        scores.append(score)
    if missing or not np.isfinite(scores).any():
        raise ValueError(
            f"{file} has no score for {len(missing) or len(scores)} records of the data, "
            f"such as {missing[0] if missing else 'all of them'}"
        )
    return np.array(scores)


def _in_order(file: Path, scores: Sequence[float], texts: Texts) -> np.ndarray:
    if len(scores) != len(texts.candidates):
        raise ValueError(f"{file} has {len(scores)} scores, but the data have {len(texts.candidates)} records")
    return np.array(scores)


def _number(place: str, value: Any) -> float:
    try:
        number = parse_number(value)
    except ValueError:
        raise ValueError(f"{place}: the score must be a number, found {str(value)[:40]!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{place}: the score must be a finite number, found {value}")
    return number


def _key(lp: Any, system: Any, segment: Any) -> Key:
    return str(lp), str(system), str(segment)
