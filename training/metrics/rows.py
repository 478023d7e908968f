"""Rows: the scores that any metric gives to some texts. A metric is a baseline, a checkpoint, or a file of its scores.

A file of scores is a metric's submission to the WMT Metrics task, or one of your own. The scores of baselines and
checkpoints are kept as cells.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.metric.files.records import parse_number, read_records, text_lines
from bleurt_repro.metric.layout import CONFIG_KEY
from bleurt_repro.metric.statistics import Values
from bleurt_repro.training.metrics.baselines import Scored, find_baseline, table_name
from bleurt_repro.training.metrics.cells import Cells, digest
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.training_references import find_overlap

# metric, language pair, test set, system, segment, score: https://aclanthology.org/W18-6450
SUBMISSION_FIELDS = 6
KEY_COLUMNS = ("lp", "system", "segment_id")
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Texts:
    """The items that are scored.

    Attributes:
        references, candidates: one text per item.
        sources: one text or None per item; None if no item has a source.
        keys: one dict per item with lp, segment_id and system, which identify the item in a file of scores.
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
    """The scores of one metric; it becomes a row of a table.

    Attributes:
        name: name in tables.
        kind: "baseline", "checkpoint", "file" or "model" (trained by the experiment).
        vectors: scores of all items, one array per seed; NaN where a file has no score.
        signature: what the scores depend on.
        notes: further entries of the row in the results.
    """

    name: str
    kind: str
    vectors: Sequence[Values]
    signature: str
    notes: dict[str, Any] = field(default_factory=dict)


def signatures(rows: Sequence[Row]) -> dict[str, str]:
    """Return the signature of each row by its name."""
    return {row.name: row.signature for row in rows}


def score_metrics(
    texts: Texts,
    cells: Cells,
    metrics: MetricOptions,
    options: Mapping[str, Any] | None = None,
    *,
    each_input: bool = False,
) -> list[Row]:
    """Score texts with every metric of the options, with a progress bar.

    Args:
        texts: items to score.
        cells: folder in which scores are kept.
        metrics: names of the metrics.
        options: arguments of `BleurtScorer`, which take precedence over those of `metrics`.
        each_input: whether a checkpoint that reads references, sources or both has a row for each of the three.

    Raises:
        ValueError: if a baseline is unknown, before anything is scored, or if a file lacks scores.
    """
    from tqdm import tqdm

    for name in metrics.baselines:
        find_baseline(name)
    options = {**metrics.scorer_options, **(options or {})}
    # Files come first: reading them is quick, so their errors are reported at once.
    from_files = [read_score_file(argument, texts) for argument in metrics.score_files]
    rows = []
    total = len(metrics.checkpoint) + len(metrics.baselines)
    with tqdm(total=total, desc="metrics", unit="metric", disable=None) as bar:
        for name in metrics.checkpoint:
            bar.set_postfix_str(name)
            rows.append(score_checkpoint(name, texts, cells, options, metrics.cache))
            if each_input and None not in (texts.sources or [None]):
                for role in _optional_inputs(name):
                    rows.append(score_checkpoint(name, texts, cells, options, metrics.cache, left_out=role))
            bar.update()
        for name in metrics.baselines:
            bar.set_postfix_str(name)
            rows.append(score_baseline(name, texts, cells))
            bar.update()
    return [*rows, *from_files]


def score_baseline(name: str, texts: Texts, cells: Cells) -> Row:
    """Score texts with a baseline; equal pairs are scored once.

    Args:
        name: name of a baseline, as `find_baseline` takes it.
        texts: items to score.
        cells: folder in which scores are kept.
    """
    metric = find_baseline(name)

    def compute() -> dict[str, Any]:
        pairs = list(zip(texts.references, texts.candidates, strict=True))
        index = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
        references, candidates = zip(*index, strict=True)
        scored = metric(references, candidates)
        return Scored([scored.scores[index[pair]] for pair in pairs], scored.signature)._asdict()

    encoder = name.partition(":")[2]
    content = cells.get(
        f"scores-{name}", [name, _weights_hash(encoder) if encoder else "", texts.fingerprint], compute
    )
    return Row(table_name(name), "baseline", [np.array(content["scores"])], content["signature"])


def score_checkpoint(
    name: str,
    texts: Texts,
    cells: Cells,
    options: Mapping[str, Any] | None = None,
    cache: str | None = None,
    left_out: str | None = None,
) -> Row:
    """Score texts with a checkpoint.

    Args:
        name: folder, embedded name or Hub id.
        texts: items to score.
        cells: folder in which scores are kept.
        options: further arguments of `BleurtScorer`.
        cache: folder of scores of earlier runs, as `BleurtScorer` takes it.
        left_out: an optional input that the checkpoint is not given, "source" or "reference".
    """
    inputs = [name, _weights_hash(name), dict(options or {}), texts.fingerprint, *filter(None, [left_out])]
    arguments = {**(options or {}), "cache": cache}
    content = cells.get(f"scores-{name}", inputs, lambda: score_texts(name, texts, arguments, left_out))
    short_name = Path(name).resolve().name if Path(name).is_dir() else name
    if left_out:
        short_name += " (source)" if left_out == "reference" else " (reference)"
    overlap = find_overlap(name, texts.references)
    if overlap and overlap["seen"]:
        warnings.warn(
            f"{short_name} was fine-tuned on {overlap['seen']} of the {overlap['references']} different references that are "
            "measured here: its agreement is too high; measure it on other ratings",
            stacklevel=2,
        )
    notes = {"training_references": overlap}
    return Row(short_name, "checkpoint", [np.array(content["scores"])], content["signature"], notes)


def score_texts(name: str, texts: Texts, options: Mapping[str, Any], left_out: str | None = None) -> dict[str, Any]:
    """Score texts with a checkpoint, without a cell; equal items are scored once.

    Args:
        name: folder, embedded name or Hub id.
        texts: items to score.
        options: further arguments of `BleurtScorer`.
        left_out: an optional input that the checkpoint is not given, "source" or "reference".

    Returns:
        "scores", one per item, and "signature".

    Raises:
        ValueError: if the checkpoint needs sources, and an item has none.
    """
    from bleurt_repro.metric.scorer import BleurtScorer

    scorer = BleurtScorer(name, **options)
    sources = None
    if scorer.layout.reads_sources and left_out != "source":
        sources = [source for source in texts.sources or [] if source is not None]
        if len(sources) < len(texts.candidates):
            if "source" in scorer.layout.required:
                raise ValueError(f"checkpoint {name} reads sources, but not every record of the data has one")
            sources = None
    reads_references = scorer.layout.reads_references and left_out != "reference"
    references = texts.references if reads_references else None
    columns = {"candidates": texts.candidates, "references": references, "sources": sources}
    inputs: dict[str, Any] = {name: list(column) for name, column in columns.items() if column is not None}
    items = list(zip(*inputs.values(), strict=True))
    index = {item: i for i, item in enumerate(dict.fromkeys(items))}
    unique: dict[str, Any] = dict(zip(inputs, map(list, zip(*index, strict=True)), strict=True))
    result = scorer.compute(**unique)
    return {"scores": [result.scores[index[item]] for item in items], "signature": result.signature}


def _optional_inputs(name: str) -> Sequence[str]:
    """Return the inputs that a checkpoint's callers may leave out; none for an ensemble."""
    from bleurt_repro.metric.loading.find import find_checkpoint
    from bleurt_repro.metric.loading.limits import read_settings

    config = Path(find_checkpoint(name)) / "config.json"
    return read_settings(config).get(CONFIG_KEY, {}).get("optional", []) if config.is_file() else []


def _weights_hash(name: str) -> str:
    """Return the content hash of a checkpoint or encoder, so that other weights of the same name make another cell."""
    from bleurt_repro.metric.loading.checksums import content_hash
    from bleurt_repro.metric.loading.find import find_checkpoint

    return content_hash(Path(find_checkpoint(name)))


# --- files of scores -----------------------------------------------------------------------------------------------


def read_score_file(argument: str, texts: Texts) -> Row:
    """Read a file of scores as a row.

    Args:
        argument: `NAME=FILE`. A `.scr` file (or `.scr.gz`) is a submission to the WMT Metrics task; a `.txt` file has one
            score per line, in the order of the data; any other file is read by `read_records` and has a column score,
            and also lp, segment_id and system unless it is in the order of the data.
        texts: items that the scores belong to.

    Returns:
        the row; items of a language pair that does not occur in the file are NaN.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the argument has another form, or the file does not have one score for each item.
    """
    from bleurt_repro.metric.loading.checksums import file_hash

    name, _, path = argument.partition("=")
    if not name or not path:
        raise ValueError(f"a file of scores is given as NAME=FILE, found {argument!r}")
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"no file {path}: expected scores of {name}")
    scores = read_scores(file, texts)
    return Row(name, "file", [scores], f"file:{file.name}|sha256:{file_hash(file).hex()[:12]}")


def read_scores(file: Path, texts: Texts) -> np.ndarray:
    """Read one score per item from a file; `read_score_file` describes the forms.

    Returns:
        scores, shape (items,); NaN for items of a language pair that does not occur in the file.
    """
    if file.name.removesuffix(".gz").endswith(".scr"):
        return _join(file, dict(_submission(file)), texts)
    if file.suffix == ".txt":
        lines = enumerate(text_lines(file), start=1)
        return _in_order(file, [_parse_score(f"{file}, line {n}", line) for n, line in lines], texts)
    records = list(read_records(file))
    scores = [_parse_score(f"{file}, {location}", record.get("score")) for location, record in records]
    if records and all(name in records[0][1] for name in KEY_COLUMNS):
        keys = [_key(record["lp"], record["system"], record["segment_id"]) for _, record in records]
        return _join(file, dict(zip(keys, scores, strict=True)), texts)
    return _in_order(file, scores, texts)


def _submission(file: Path) -> Iterator[tuple[Key, float]]:
    """Yield the key and the score of each line of a submission to the WMT Metrics task."""
    for number, line in enumerate(text_lines(file), start=1):
        fields = line.split("\t")
        if len(fields) < SUBMISSION_FIELDS:
            raise ValueError(
                f"{file}, line {number}: expected metric, language pair, test set, system, segment and score, "
                f"separated by tabs, found {len(fields)} fields"
            )
        _, lp, _, system, segment, score = fields[:SUBMISSION_FIELDS]
        yield _key(lp, system, segment), _parse_score(f"{file}, line {number}", score)


def _join(file: Path, scores_by_key: dict[Key, float], texts: Texts) -> np.ndarray:
    """Return the score of each item, looked up by language pair, system and segment."""
    if texts.keys is None:
        raise ValueError(f"{file} identifies its scores by lp, system and segment_id, which the data do not have")
    language_pairs = {lp for lp, _, _ in scores_by_key}
    scores, missing = [], []
    for key in texts.keys:
        # One record may stand for several systems with the same output, such as a.1+b.2.
        systems = (str(key["system"]), *str(key["system"]).split("+"))
        values = [scores_by_key.get(_key(key["lp"], system, key["segment_id"])) for system in systems]
        score = next((value for value in values if value is not None), math.nan)
        if math.isnan(score) and str(key["lp"]) in language_pairs:
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


def _parse_score(location: str, value: Any) -> float:
    try:
        number = parse_number(value)
    except ValueError:
        raise ValueError(f"{location}: the score must be a number, found {str(value)[:40]!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{location}: the score must be a finite number, found {value}")
    return number


def _key(lp: Any, system: Any, segment: Any) -> Key:
    return str(lp), str(system), str(segment)
