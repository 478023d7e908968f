"""Read scores that were worked out elsewhere: a metric's submission to the WMT Metrics task, or a file of one's own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.training.experiments.scoring import Row, Texts

# metric, language pair, test set, system, segment, score: https://aclanthology.org/W18-6450
SUBMISSION_FIELDS = 6
Key = tuple[str, str, str]


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
    from bleurt_repro.metric.signature import file_hash

    name, _, path = item.partition("=")
    if not name or not path:
        raise ValueError(f"a file of scores is named as NAME=FILE, found {item!r}")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no file {path}: expected scores of {name}")
    scores = read_scores(file, texts)
    return Row(name, "file", [scores], f"file:{file.name}|sha256:{file_hash(file).hex()[:12]}")


def read_scores(file: Path, texts: Texts) -> np.ndarray:
    """Give one score an item; see `score_file_row`."""
    from bleurt_repro.datasets_builders.record_files import read_records, text_lines

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
    from bleurt_repro.datasets_builders.record_files import text_lines

    for number, line in enumerate(text_lines(file), start=1):
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) < SUBMISSION_FIELDS:
            raise ValueError(
                f"{file}, line {number}: expected metric, language pair, test set, system, segment and score, "
                f"parted by tabs, found {len(fields)} fields"
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
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{place}: the score must be a number, found {str(value)[:40]!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{place}: the score must be a finite number, found {value}")
    return number


def _key(lp: Any, system: Any, segment: Any) -> Key:
    return str(lp), str(system), str(segment)
