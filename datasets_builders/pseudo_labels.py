"""Pseudo-labelled pre-training data: real translations, scored by metrics instead of people (RoBLEURT, section 2.2).

    bleurt-repro data pseudo-labels --input parallel.tsv --translator MODEL --teacher CHECKPOINT --output DIR

DIR gets train.jsonl, ratings that `bleurt-repro finetune` trains on, and info.json. Triples and the teachers' scores
are written to DIR/parts in parts of 1,024, so that a killed run continues. Without a teacher, DIR gets triples.jsonl
alone, for a metric that runs elsewhere (such as COMET); give its scores, one per line, with `--scores`.
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
PART_SIZE = 1024  # triples
PARTS, TRIPLES, TRAIN, INFO = "parts", "triples.jsonl", "train.jsonl", "info.json"


@dataclass(frozen=True)
class PseudoLabelOptions:
    """Options of pseudo-labels.

    Attributes:
        input: file of records with source and reference; or, if it has hypotheses, with reference and candidate, and
            with source if a teacher reads sources.
        output: folder to write.
        translator: sequence-to-sequence model that makes hypotheses; None if the input has them.
        prefix: prefix of each source, such as ">>en<< ".
        teachers: checkpoints whose scores become labels.
        score_files: files with one score per line, in the order of triples.jsonl.
        weights: weights of the teachers, then of the score files, in the mean that is the label; default: equal.
        dropping_rate: share of the hypotheses that lose words.
        seed: seed of the word dropping.
        lp: language pair to record, such as "de-en".
        max_records: largest number of records to read; default: all.
        device: device of the models.
        dtype: arithmetic of the teachers: "float32", or "bfloat16" or "float16", which are faster and give slightly
            different labels.
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
        count = len(self.teachers) + len(self.score_files)
        if self.weights and (len(self.weights) != count or not all(0 < weight < np.inf for weight in self.weights)):
            raise ValueError(
                f"expected a weight above 0 for each of {count} teachers and score files, found {list(self.weights)}"
            )
        if self.max_records is not None and self.max_records < 1:
            raise ValueError(f"max_records must be 1 or more, found {self.max_records}")


def make_pseudo_labels(options: PseudoLabelOptions, progress: bool | None = None) -> dict[str, Any]:
    """Make triples and their labels.

    Args:
        options: input, models and output.
        progress: whether to show progress bars; default: on a terminal.

    Returns:
        The content of info.json: recipe, counts, teachers and weights.

    Raises:
        FileNotFoundError: if a file or model cannot be found.
        ValueError: if the input lacks a text, the folder has other content, or scores are missing or do not vary.
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
    """Return the triples as ratings; the score is the mean of the standardised labels, standardised again."""
    standardised_labels = [standardised(teacher["name"], values) for teacher, values in labels]
    scores = np.average(standardised_labels, axis=0, weights=options.weights or None)
    scores = standardised("the teachers' mean", scores)
    return [_rating(*row, options.lp) for row in enumerate(zip(triples, scores, strict=True))]


def _recipe(options: PseudoLabelOptions) -> dict[str, Any]:
    """Return everything that decides the triples (input, translator, noise) and its fingerprint."""
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
    """Start the output folder for a recipe, or check that it belongs to this recipe."""
    path = folder / PARTS / "recipe.json"
    if path.is_file():
        if json.loads(path.read_text(encoding="utf-8"))["fingerprint"] != recipe["fingerprint"]:
            raise ValueError(f"{folder} has data of another recipe: choose a new folder")
        return
    if folder.exists() and (folder.is_file() or any(folder.iterdir())):
        raise ValueError(f"{folder} is not empty and was not started by this command: choose a new folder")
    path.parent.mkdir(parents=True)
    write_text(path, json.dumps(recipe, indent=2) + "\n")


def read_pairs(path: str, with_candidates: bool, most: int | None) -> list[Triple]:
    """Read parallel text: records of source and reference, or a table of these two columns without a header.

    Args:
        path: CSV, TSV, JSON lines or Parquet file, as in `read_records`. A TSV file without a header is read as source
            and reference (and candidate).
        with_candidates: whether each record must have a candidate.
        most: largest number of records to read; None for all.

    Raises:
        ValueError: if there are no records or a text is missing; the message names the line.
    """
    names = ("source", "reference", *(("candidate",) if with_candidates else ()))
    # Without a translator, only teachers that read sources need them.
    required = names[1:] if with_candidates else names
    pairs: list[Triple] = []
    for line, record in islice(_records(path), most):
        if missing := [name for name in required if not str(record.get(name) or "").strip()]:
            hint = "; add a column of hypotheses, or make them with --translator" if "candidate" in missing else ""
            raise ValueError(f"{path}, {line}: no {', '.join(missing)}{hint}")
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
    options: PseudoLabelOptions, pairs: list[Triple], folder: Path, progress: bool | None
) -> tuple[list[Triple], int]:
    """Translate and drop words; return the triples and the number of truncated sources."""
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
        triples = [
            _with_noise({**pair, "candidate": text}, options, start + i)
            for i, (pair, text) in enumerate(zip(members, hypotheses, strict=True))
        ]
        return triples, truncated

    with _bar(len(pairs), "triples", progress) as bar:
        return _by_parts(pairs, folder, "triples", make, bar)


def _with_noise(triple: Triple, options: PseudoLabelOptions, index: int) -> Triple:
    """Drop words of the candidate of some triples; the random numbers depend on the seed and the index alone."""
    random = np.random.default_rng((options.seed, index))
    dropped = bool(random.random() < options.dropping_rate)
    candidate = drop_words(triple["candidate"], random) if dropped else triple["candidate"]
    return {**triple, "candidate": candidate, "word_dropping": dropped}


def _teacher_scores(
    options: PseudoLabelOptions, triples: list[Triple], folder: Path, progress: bool | None
) -> Iterator[tuple[dict[str, Any], Values]]:
    """Yield the description of each teacher and its scores of the triples."""
    from bleurt_repro.metric.scorer import BleurtScorer

    for name in options.teachers:
        scorer = BleurtScorer(name, device=options.device, dtype=options.dtype, progress=False)
        if "source" in scorer.layout.required and not all(triple["source"].strip() for triple in triples):
            raise ValueError(f"{scorer.checkpoint} reads sources: expected one in each record of {options.input}")
        key = hashlib.sha256(scorer.signature.encode()).hexdigest()[:12]

        def score(_: int, members: list[Triple], scorer: BleurtScorer = scorer) -> tuple[list[float], int]:
            result = scorer.compute_quietly(**scorer.columns(members))
            return result.scores, result.truncated

        with _bar(len(triples), f"labels by {scorer.checkpoint}", progress) as bar:
            values, truncated = _by_parts(triples, folder, f"scores-{key}", score, bar)
        teacher = {"name": scorer.checkpoint, "signature": scorer.signature, "truncated": truncated}
        yield teacher, np.array(values)


def _file_scores(options: PseudoLabelOptions, triples: list[Triple]) -> Iterator[tuple[dict[str, Any], Values]]:
    """Yield the description of each file of scores and its scores."""
    from bleurt_repro.metric.loading.checksums import file_hash

    for name in options.score_files:
        path = Path(name)
        values = read_scores(path, len(triples))
        yield {"name": path.name, "signature": f"file|sha256:{file_hash(path).hex()[:12]}"}, np.array(values)


def read_scores(path: Path, count: int) -> list[float]:
    """Read a file with one score per line.

    Args:
        path: the file.
        count: number of triples, and so of scores.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not a number, a score is not finite, or there are more or fewer than `count`.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: expected one score per line, in the order of the triples")
    values = []
    for number, line in enumerate(text_lines(path), start=1):
        try:
            values.append(parse_number(line))
        except ValueError:
            raise ValueError(f"{path}, line {number}: expected a number, found {line[:40]!r}") from None
    if len(values) != count or not np.isfinite(values).all():
        raise ValueError(f"{path} must have a finite number for each of {count} triples, found {len(values)}")
    return values


def _by_parts(
    items: list[Triple],
    folder: Path,
    name: str,
    make: Callable[[int, list[Triple]], tuple[list[Any], int]],
    bar: tqdm[Any],
) -> tuple[list[Any], int]:
    """Apply a function to all triples in parts, each of which is written to a file and read by a repeated run.

    Args:
        items: triples, or pairs that become triples.
        folder: folder of the files.
        name: beginning of their names.
        make: function of the index of the first triple and the triples of a part that returns a result per triple, and
            the number of truncated texts.
        bar: progress bar.

    Returns:
        All results, and the number of truncated texts.
    """
    results: list[Any] = []
    truncated = 0
    for start in range(0, len(items), PART_SIZE):
        members = items[start : start + PART_SIZE]
        # The name of a last part that is not whole has its size: with more records it is made again.
        size = "" if len(members) == PART_SIZE else f"-of-{len(members)}"
        path = folder / f"{name}-{start // PART_SIZE:05d}{size}.json"
        if path.is_file():
            part_result = json.loads(path.read_text(encoding="utf-8"))
        else:
            part_result = dict(zip(("made", "truncated"), make(start, members), strict=True))
            write_text(path, json.dumps(part_result, ensure_ascii=False) + "\n")
        results += part_result["made"]
        truncated += part_result["truncated"]
        bar.update(len(members))
    return results, truncated


def standardised(name: str, values: Values) -> Values:
    """Return values with mean 0 and standard deviation 1 (RoBLEURT, section 2.2).

    Raises:
        ValueError: if they do not vary.
    """
    if len(values) < 2 or not values.std() > 0:
        raise ValueError(
            f"{name} must give different scores to the {len(values)} triples, found the same score for all"
        )
    return standardise(values)


def _rating(index: int, labelled: tuple[Triple, float], lp: str | None) -> Triple:
    triple, score = labelled
    return {**({"lp": lp} if lp else {}), "segment_id": index, **triple, "score": float(score)}


def _bar(total: int, name: str, progress: bool | None) -> tqdm[Any]:
    from tqdm.auto import tqdm

    return tqdm(total=total, desc=name, unit="triple", disable=None if progress is None else not progress)
