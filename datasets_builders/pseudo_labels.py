"""Pseudo-labelled pre-training data: real translations, scored by metrics instead of people (RoBLEURT, section 2.2).

    bleurt-repro data pseudo-labels --input parallel.tsv --translator MODEL --teacher CHECKPOINT --output DIR

DIR gets train.jsonl, ratings that `bleurt-repro finetune` trains on, and info.json. Triples and teachers' scores are
kept in DIR/parts, a part at a time: a killed run continues. Without a teacher DIR gets triples.jsonl alone, for a
metric that runs elsewhere (such as COMET); its scores, one a line, come back with `--scores`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.datasets_builders.perturbations.word_dropping import drop_words
from bleurt_repro.metric.files.records import file_form, parse_number, read_records, text_lines
from bleurt_repro.metric.files.writing import atomic_folder, write_json_lines, write_text
from bleurt_repro.metric.statistics import Values, standardise

if TYPE_CHECKING:
    from tqdm import tqdm

Triple = dict[str, Any]

# RoBLEURT, section 2.2: the share of hypotheses that lose words.
DROPPING_RATE = 0.3
PART = 1024  # triples
PARTS, TRIPLES, TRAIN, INFO = "parts", "triples.jsonl", "train.jsonl", "info.json"


@dataclass(frozen=True)
class PseudoLabelOptions:
    """How the data are made.

    Attributes:
        input: records with source and reference; or with reference and candidate where hypotheses are there already,
            and then with source if a teacher reads it.
        output: folder to write.
        translator: sequence-to-sequence model that makes hypotheses; None where they are there.
        prefix: put before each source, such as ">>en<< ".
        teachers: checkpoints whose scores become labels.
        score_files: files of one score a line, in the order of triples.jsonl.
        weights: of the teachers, then of the score files, in the mean that is the label; all alike by default.
        dropping_rate: share of the hypotheses that lose words.
        seed: of the dropping.
        lp: language pair to record, such as "de-en".
        max_records: stop after so many; all by default.
        device: where to compute.
        dtype: arithmetic of the teachers, "float32", "bfloat16" or "float16"; with the last two labels come sooner
            and differ a little.
    """

    input: str
    output: str
    translator: str | None = None
    prefix: str = ""
    teachers: tuple[str, ...] = ()
    score_files: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    dropping_rate: float = DROPPING_RATE
    seed: int = 0
    lp: str | None = None
    max_records: int | None = None
    device: str | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if not 0 <= self.dropping_rate <= 1:
            raise ValueError(
                f"the share of hypotheses that lose words must be from 0 to 1, found {self.dropping_rate}"
            )
        judges = len(self.teachers) + len(self.score_files)
        if self.weights and (len(self.weights) != judges or not all(0 < weight < np.inf for weight in self.weights)):
            raise ValueError(
                f"expected a weight above 0 for each of {judges} teachers and score files, found {list(self.weights)}"
            )
        if self.max_records is not None and self.max_records < 1:
            raise ValueError(f"max_records must be 1 or more, found {self.max_records}")


def make_pseudo_labels(options: PseudoLabelOptions, progress: bool | None = None) -> dict[str, Any]:
    """Make triples and their labels.

    Labels and record take the place of those of an earlier run together.

    Args:
        options: what to read, which models, where to write.
        progress: show progress bars; by default on a terminal.

    Returns:
        what info.json holds: counts, teachers, and the labels' mean and deviation before standardising.

    Raises:
        FileNotFoundError: if a file or model cannot be found.
        ValueError: if the input lacks a text, the folder holds other data, or scores do not fit.
    """
    pairs = read_pairs(options.input, options.translator is None, options.max_records)
    folder = Path(options.output)
    recipe = _recipe(options)
    _claim(folder, recipe)
    triples, truncated = _triples(options, pairs, folder / PARTS, progress)
    labels = [*_teacher_scores(options, triples, folder / PARTS, progress), *_file_scores(options, triples)]
    info: dict[str, Any] = {
        **recipe,
        "triples": len(triples),
        "truncated": truncated,
        "with_dropped_words": sum(triple["word_dropping"] for triple in triples),
        "teachers": [teacher for teacher, _ in labels],
        "weights": list(options.weights) or None,
    }
    with atomic_folder(folder, last=INFO) as unfinished:
        if labels:
            write_json_lines(unfinished / TRAIN, _labelled(options, triples, labels))
        else:
            write_json_lines(unfinished / TRIPLES, triples)
        write_text(unfinished / INFO, json.dumps(info, indent=2, ensure_ascii=False) + "\n")
    return info


def _labelled(
    options: PseudoLabelOptions, triples: list[Triple], labels: list[tuple[dict[str, Any], Values]]
) -> list[Triple]:
    """Return the triples as ratings: the mean of the standardised labels, standardised again."""
    opinions = [standardised(teacher["name"], values) for teacher, values in labels]
    scores = np.average(opinions, axis=0, weights=options.weights or None)
    scores = standardised("the teachers' mean", scores)
    return [_rating(*row, options.lp) for row in enumerate(zip(triples, scores, strict=True))]


def _recipe(options: PseudoLabelOptions) -> dict[str, Any]:
    """Return what decides the triples: input, translator, noise."""
    from bleurt_repro.datasets_builders.open_models import find_model, identify
    from bleurt_repro.metric.loading.checksums import file_hash

    model = options.translator
    decisive = {
        "input": {"file": Path(options.input).name, "sha256": file_hash(Path(options.input)).hex()},
        "translator": None if model is None else identify(model, find_model(model, "translator")),
        "prefix": options.prefix,
        "dropping_rate": options.dropping_rate,
        "seed": options.seed,
    }
    text = json.dumps(decisive, sort_keys=True, default=str)
    return {"fingerprint": hashlib.sha256(text.encode()).hexdigest()[:16], **json.loads(text)}


def _claim(folder: Path, recipe: dict[str, Any]) -> None:
    path = folder / PARTS / "recipe.json"
    if path.is_file():
        if json.loads(path.read_text(encoding="utf-8"))["fingerprint"] != recipe["fingerprint"]:
            raise ValueError(f"{folder} holds data of another recipe: choose a new folder")
        return
    if folder.exists() and (folder.is_file() or any(folder.iterdir())):
        raise ValueError(f"{folder} is not empty and was not started by this command: choose a new folder")
    path.parent.mkdir(parents=True)
    write_text(path, json.dumps(recipe, indent=2) + "\n")


def read_pairs(path: str, with_candidates: bool, most: int | None) -> list[Triple]:
    """Read parallel text: records of source and reference, or a table of those two columns without names.

    Args:
        path: CSV, TSV, JSON lines or Parquet, as `read_records` takes them. A TSV whose first line does not name the
            columns is read as source and reference (and candidate).
        with_candidates: whether each record must have a candidate.
        most: how many records to read.

    Raises:
        ValueError: naming the line, if a text is missing.
    """
    names = ("source", "reference", *(("candidate",) if with_candidates else ()))
    needed = names[1:] if with_candidates else names  # without a translator, a source is for teachers that read one
    pairs: list[Triple] = []
    for place, record in islice(_records(path), most):
        if missing := [name for name in needed if not str(record.get(name) or "").strip()]:
            hint = "; hypotheses are either in the file or made with --translator" if "candidate" in missing else ""
            raise ValueError(f"{path}, {place}: no {', '.join(missing)}{hint}")
        pairs.append({name: record.get(name) or "" for name in names})
    if not pairs:
        raise ValueError(f"{path}: no records; expected source and reference")
    return pairs


def _records(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not Path(path).is_file() or file_form(path) != ".tsv":
        yield from read_records(path)
        return
    first = next(text_lines(path), "").split("\t")
    if {"source", "reference"} <= {name.strip() for name in first}:
        yield from read_records(path)
        return
    for number, line in enumerate(text_lines(path), start=1):
        yield (
            f"line {number}",
            dict(zip(("source", "reference", "candidate"), line.split("\t"), strict=False)),
        )


def _triples(
    options: PseudoLabelOptions, pairs: list[Triple], parts: Path, progress: bool | None
) -> tuple[list[Triple], int]:
    """Translate and drop words, part by part."""
    translator: Any = None

    def make(start: int, members: list[Triple]) -> tuple[list[Triple], int]:
        nonlocal translator
        truncated = 0
        if options.translator is None:
            hypotheses = [pair["candidate"] for pair in members]
        else:
            from bleurt_repro.datasets_builders.translator import Translator

            translator = translator or Translator(options.translator, device=options.device)
            before = translator.truncated
            hypotheses = translator.translate([pair["source"] for pair in members], options.prefix)
            truncated = translator.truncated - before
            translator.forget()
        made = [
            _with_noise({**pair, "candidate": text}, options, start + i)
            for i, (pair, text) in enumerate(zip(members, hypotheses, strict=True))
        ]
        return made, truncated

    with _bar(len(pairs), "triples", progress) as bar:
        return _by_parts(pairs, parts, "triples", make, bar)


def _with_noise(triple: Triple, options: PseudoLabelOptions, place: int) -> Triple:
    random = np.random.default_rng((options.seed, place))
    dropped = bool(random.random() < options.dropping_rate)
    candidate = drop_words(triple["candidate"], random) if dropped else triple["candidate"]
    return {**triple, "candidate": candidate, "word_dropping": dropped}


def _teacher_scores(
    options: PseudoLabelOptions, triples: list[Triple], parts: Path, progress: bool | None
) -> Iterator[tuple[dict[str, Any], Values]]:
    from bleurt_repro.metric.scorer import BleurtScorer

    for name in options.teachers:
        scorer = BleurtScorer(name, device=options.device, dtype=options.dtype, progress=False)
        if "source" in scorer.layout.inputs and not all(triple["source"].strip() for triple in triples):
            raise ValueError(f"{scorer.checkpoint} reads sources: expected one in each record of {options.input}")
        key = hashlib.sha256(scorer.signature.encode()).hexdigest()[:12]

        def score(_: int, members: list[Triple], scorer: BleurtScorer = scorer) -> tuple[list[float], int]:
            result = scorer.compute_quietly(**scorer.columns(members))
            return result.scores, result.truncated

        with _bar(len(triples), f"labels by {scorer.checkpoint}", progress) as bar:
            values, truncated = _by_parts(triples, parts, f"scores-{key}", score, bar)
        teacher = {"name": scorer.checkpoint, "signature": scorer.signature, "truncated": truncated}
        yield teacher, np.array(values)


def _file_scores(options: PseudoLabelOptions, triples: list[Triple]) -> Iterator[tuple[dict[str, Any], Values]]:
    from bleurt_repro.metric.loading.checksums import file_hash

    for name in options.score_files:
        path = Path(name)
        values = read_scores(path, len(triples), "triples")
        yield {"name": path.name, "signature": f"file|sha256:{file_hash(path).hex()[:12]}"}, np.array(values)


def read_scores(path: Path, number: int, of: str) -> list[float]:
    """Read a file of one score a line.

    Args:
        path: the file.
        number: how many scores it must have.
        of: what they are scores of, for errors.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and line, if a line is no number; if there are more or fewer, or one is not finite.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: expected one score a line, in the order of the {of}")
    values = []
    for place, line in enumerate(text_lines(path), start=1):
        try:
            values.append(parse_number(line))
        except ValueError:
            raise ValueError(f"{path}, line {place}: expected a number, found {line[:40]!r}") from None
    if len(values) != number or not np.isfinite(values).all():
        raise ValueError(f"{path} must have a finite number for each of {number} {of}, found {len(values)}")
    return values


def _by_parts(
    items: list[Triple],
    folder: Path,
    name: str,
    make: Callable[[int, list[Triple]], tuple[list[Any], int]],
    bar: tqdm[Any],
) -> tuple[list[Any], int]:
    """Make something of each item, a part at a time, and count what was too long; parts that are there are read."""
    made: list[Any] = []
    truncated = 0
    for start in range(0, len(items), PART):
        members = items[start : start + PART]
        # A last part that is not whole bears its size: more records make it anew.
        whole = "" if len(members) == PART else f"-of-{len(members)}"
        path = folder / f"{name}-{start // PART:05d}{whole}.json"
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
        else:
            found = dict(zip(("made", "truncated"), make(start, members), strict=True))
            write_text(path, json.dumps(found, ensure_ascii=False) + "\n")
        made += found["made"]
        truncated += found["truncated"]
        bar.update(len(members))
    return made, truncated


def standardised(name: str, values: Values) -> Values:
    """Return values with mean 0 and standard deviation 1 (RoBLEURT, section 2.2).

    Raises:
        ValueError: if they do not vary.
    """
    if len(values) < 2 or not values.std() > 0:
        raise ValueError(f"{name} has the same score for all {len(values)} triples: nothing can be learnt from that")
    return standardise(values)


def _rating(place: int, labelled: tuple[Triple, float], lp: str | None) -> Triple:
    triple, score = labelled
    known = {"lp": lp} if lp else {}
    return {**known, "segment_id": place, **triple, "score": float(score)}


def _bar(total: int, name: str, progress: bool | None) -> tqdm[Any]:
    from tqdm.auto import tqdm

    return tqdm(total=total, desc=name, unit="triple", disable=None if progress is None else not progress)
