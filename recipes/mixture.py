"""The mixture that a checkpoint learns from: ratings of several kinds on one scale, longer texts, and constructed pairs.

A recipe (`build.py`) describes it; `write_mixture` writes it in parts of equal composition, one for each run whose
weights are averaged later.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.stats import zscore

from bleurt_repro import BleurtScorer
from bleurt_repro.datasets_builders.perturbations.word_dropping import drop_words
from bleurt_repro.datasets_builders.ratings.training_ratings import COLUMNS, standardize_kinds
from bleurt_repro.metric.files.records import read_records, read_table
from bleurt_repro.metric.files.writing import write_json_lines
from bleurt_repro.training.metrics.baselines import find_baseline
from bleurt_repro.training.teachers import entailment

Row = dict[str, Any]
# Longer texts: segments put together at most; how often a part is missing, another text's, or the order changed; and
# what a missing or foreign part counts, in deviations of ratings.
MOST_SEGMENTS = 4
MISSING_SHARE, FOREIGN_SHARE, REORDERED_SHARE = 0.08, 0.04, 0.15
LOST = -2.4
# Rows that remain of a selection in a trial, because a calibration needs 100; and of ratings to be standardised.
FEWEST, FEWEST_OF_KIND = 200, 20


def write_mixture(mixture: Mapping[str, Any], output: Path, divisor: int = 1) -> str:
    """Write the training rows of a recipe as part-1.jsonl, part-2.jsonl, ...

    Args:
        mixture: "seed"; "parts"; "never", files whose references must not be learnt; "deviation" of ratings and labels; and
            any of "ratings", a list of sources (see `select`), each with "kind" and number of "rows"; "longer", a
            number of texts to put together from them; "constructed", a list of pairs with targets (see
            `constructed_pairs`), each with "rows" and, perhaps, "limit" of the targets; "balanced", to leave out
            constructed pairs until their mean target is the same at all lengths (see `balance_lengths`); "unrelated", a
            number of further pairs, of references and candidates of different constructed pairs; "labelled", a list of sources, each with "rows", whose score is by "metrics" instead (see `label`), after a share
            "dropping" of the candidates has lost words; "without", by "source" and "reference", the share of rows with a
            source that are given without the one or the other, for a model that reads both; "share", of constructed pairs
            among "drawn" rows of all these; "teacher", a checkpoint whose scores take the place of all ratings, labels and
            targets, unless it is empty.
        output: folder to write.
        divisor: number by which all numbers of rows are divided, rounded up; for trials.

    Returns:
        A table of what the mixture contains.

    Raises:
        ValueError: if a source has fewer rows than the recipe asks for.
    """
    random = np.random.default_rng(mixture["seed"])
    never = {row["reference"] for file in mixture["never"] for row in read_rows(file)}
    counts: Counter[str] = Counter()

    # Ratings: drawn from each source, then standardised by kind and language pair.
    ratings: list[Row] = []
    for source in mixture.get("ratings", ()):
        rows = [row for row in select(read_rows(source["file"]), source) if row["reference"] not in never]
        drawn = draw(rows, source, divisor, random, FEWEST_OF_KIND)
        ratings += [{**row, "kind": source["kind"]} for row in drawn]
        counts[f"{source['kind']}: {source['name']}"] = len(drawn)
    # Longer texts of several ratings.
    longer: list[Row] = []
    if ratings:
        ratings = on_one_scale(ratings)
        longer = join(ratings, -(-mixture["longer"] // divisor), random)
        counts["longer texts"] = len(longer)
    # Pairs with a score by metrics.
    labelled: list[Row] = []
    for source in mixture.get("labelled", ()):
        pairs = read_rows(source["file"])[: source.get("first")]
        rows = [row for row in select(pairs, source) if row["reference"] not in never]
        drawn = draw(rows, source, divisor, random)
        labelled += drawn
        counts[f"labelled: {source['name']}"] = len(drawn)
    labelled = [
        {**with_dropped_words(row, mixture.get("dropping", 0), random), "weight": 1.0, "system": "labelled"}
        for row in labelled
    ]
    if labelled and not mixture.get("teacher"):  # whose scores would replace the labels
        labelled = label(labelled, mixture["metrics"])

    for row in ratings + longer + labelled:
        row["score"] = round(float(row["score"]) * mixture["deviation"], 4)
    # Pairs with a target that was fixed beforehand.
    constructed: list[Row] = []
    for source in mixture.get("constructed", ()):
        rows = [row for row in constructed_pairs(source) if row["reference"] not in never]
        drawn = draw(rows, source, divisor, random)
        limit = float(source.get("limit", np.inf))
        constructed += [
            {**row, "score": float(np.clip(row["score"], -limit, limit)), "weight": 1.0, "system": row["system"]}
            for row in drawn
        ]
        counts.update(str(row["system"]).partition(":")[2].strip() or source["name"] for row in drawn)

    if mixture.get("balanced"):
        constructed = balance_lengths(constructed, random)
        counts["constructed, after balancing lengths"] = len(constructed)
    if unrelated := -(-int(mixture.get("unrelated", 0)) // divisor):
        constructed += mismatch(constructed, unrelated, LOST * mixture["deviation"], random)
        counts["unrelated texts"] = unrelated
    rows = [ratings + longer + labelled, constructed]
    if mixture.get("share"):
        shares = (1 - float(mixture["share"]), float(mixture["share"]))
        rows = [
            [group[i] for i in random.permutation(len(group))[: round(share * int(mixture["drawn"]) / divisor)]]
            for group, share in zip(rows, shares, strict=True)
        ]
    if mixture.get("teacher"):
        # One cache for all stages, since they draw some of the same pairs.
        teach([row for group in rows for row in group], mixture["teacher"], output.parent / "cache")
    columns, parts = ["reference", "candidate", "score", "weight", "system"], int(mixture["parts"])
    if "without" in mixture:
        rows = [[leave_out(row, mixture["without"], random) for row in group] for group in rows]
        columns.insert(0, "source")
    for part in range(parts):
        mixed = [row for group in rows for row in group[part::parts]]
        write_json_lines(
            output / f"part-{part + 1}.jsonl",
            ({name: mixed[i][name] for name in columns} for i in random.permutation(len(mixed))),
        )
    total = sum(map(len, rows))
    lines = [f"{name} | {number:,}" for name, number in counts.items()]
    return "\n".join([*lines, f"all | {total:,}", f"share constructed | {len(rows[1]) / total:.1%}"])


def balance_lengths(pairs: Sequence[Row], random: np.random.Generator) -> list[Row]:
    """Leave out pairs at random until the mean target is the same for references of all lengths.

    In each tenth of the lengths, targets above the mean of all pairs and targets below it weigh the same in the end. Without
    this, a model learns that long texts are bad: errors are put into long sentences more often than into short ones, and
    correct variants are short.

    Args:
        pairs: rows with "reference" and "score".
        random: generator.
    """
    lengths = np.array([len(pair["reference"]) for pair in pairs])
    scores = np.array([pair["score"] for pair in pairs])
    scores -= scores.mean()
    tenths = np.digitize(lengths, np.quantile(lengths, np.arange(1, 10) / 10))
    keep = np.ones(len(pairs), dtype=bool)
    for tenth in range(10):
        sides = [(tenths == tenth) & (side > 0) for side in (scores, -scores)]
        sums = [abs(scores[side].sum()) for side in sides]
        larger = int(np.argmax(sums))
        if sums[larger]:
            keep[sides[larger]] = random.random(sides[larger].sum()) < sums[1 - larger] / sums[larger]
    return [pair for pair, kept in zip(pairs, keep, strict=True) if kept]


def mismatch(pairs: Sequence[Row], number: int, score: float, random: np.random.Generator) -> list[Row]:
    """Return pairs of unrelated texts: the reference of one pair with the candidate of another.

    Args:
        pairs: rows with "reference" and "candidate".
        number: number of pairs to return.
        score: their score.
        random: generator.
    """
    unrelated: list[Row] = []
    while len(unrelated) < number:
        one, other = (pairs[i] for i in random.integers(len(pairs), size=2))
        if one["reference"] != other["reference"] and other["candidate"].strip():
            texts = {"reference": one["reference"], "candidate": other["candidate"]}
            unrelated.append({**texts, "score": score, "weight": 1.0, "system": "contrast: unrelated"})
    return unrelated


def hold_out(source: Mapping[str, Any], output: Path, divisor: int = 1) -> str:
    """Draw ratings to train on (drawn.jsonl), evenly over language pairs, and hold out those of all other references.

    Several ratings of one candidate are averaged.

    Args:
        source: "file", number of "rows", "least_judgements" of the ratings drawn, "seed".
        output: folder for drawn.jsonl and held_out.jsonl.
        divisor: as of `write_mixture`.

    Returns:
        A sentence with the numbers.
    """
    ratings = read_rows(source["file"])
    same: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in ratings:
        if (row.get("n_annotations") or 0) >= source["least_judgements"]:
            same[row["lp"], row["reference"], row["candidate"]].append(row)
    by_pair: dict[str, list[Row]] = defaultdict(list)
    for (lp, _, _), rows in same.items():
        by_pair[lp].append({**rows[0], "score": float(np.mean([row["score"] for row in rows]))})
    random, number = np.random.default_rng(source["seed"]), -(-source["rows"] // divisor)
    drawn: list[Row] = []
    for i, (_, rows) in enumerate(sorted(by_pair.items(), key=lambda item: len(item[1]))):
        share = (number - len(drawn)) // (len(by_pair) - i)
        drawn += [rows[j] for j in sorted(random.permutation(len(rows))[:share])]
    references = {row["reference"] for row in drawn}
    held_out = [row for row in ratings if row["reference"] not in references]
    write_json_lines(output / "drawn.jsonl", drawn)
    write_json_lines(output / "held_out.jsonl", held_out)
    return f"{len(drawn):,} ratings drawn, {len(held_out):,} held out"


def write_selected(sources: Mapping[str, Mapping[str, Any]], output: Path, divisor: int = 1) -> str:
    """Write the rows of a file that each source describes (see `select`) to NAME.jsonl.

    Args:
        sources: "file", "where" and, to take one row in so many, "every", by name.
        output: folder to write.
        divisor: as of `write_mixture`: one row in so many is taken, but at least `FEWEST` rows.

    Returns:
        A sentence with the numbers.
    """
    numbers = []
    for name, source in sources.items():
        rows = select(read_rows(source["file"]), source)[:: source.get("every", 1)]
        rows = rows[:: max(1, min(divisor, len(rows) // FEWEST))]
        write_json_lines(output / f"{name}.jsonl", rows)
        numbers.append(f"{name} {len(rows):,}")
    return ", ".join(numbers)


def read_rows(file: str | Path) -> list[Row]:
    """Read records; `z_score` and `n_annot`, as collections of WMT ratings name them, become score and n_annotations."""
    rows = []
    for _, record in read_records(file):
        for name, alias in (("score", "z_score"), ("n_annotations", "n_annot")):
            if record.get(name) is None and alias in record:
                record[name] = record[alias]
        rows.append(record)
    return rows


def constructed_pairs(source: Mapping[str, Any]) -> list[Row]:
    """Return the pairs with targets that a source of the recipe describes.

    Args:
        source: "file" of pairs, and optionally "first", how many of them to take, and "systems", prefixes of the kinds to
            take; or "file" of entailment pairs, "targets" by label, and "sources" to take. The premise is the reference.
            With "copies", a target, each different reference is paired with itself instead.
    """
    if "copies" in source:
        references = dict.fromkeys(row["reference"] for row in read_rows(source["file"])[: source.get("first")])
        copy = {"score": source["copies"], "system": "contrast: copy"}
        return [{"reference": reference, "candidate": reference, **copy} for reference in references]
    if "targets" not in source:
        prefixes = tuple(source.get("systems", [""]))
        return [row for row in read_rows(source["file"])[: source.get("first")] if row["system"].startswith(prefixes)]
    return [
        {
            "reference": pair["premise"],
            "candidate": pair["hypothesis"],
            "score": source["targets"][pair["label"]],
            "system": f"entailment: {pair['label']}",
        }
        for pair in read_table(source["file"], entailment.COLUMNS)
        if pair["source"] in source["sources"] and pair["label"] in source["targets"]
    ]


def select(rows: Iterable[Row], source: Mapping[str, Any]) -> list[Row]:
    """Return the rows that a source of the recipe describes and that have a candidate and a score.

    Args:
        rows: ratings.
        source: optionally "where" (column: list of values), "least_judgements", "drop_equal", "most_characters" of its texts
            together, and "hashed", to divide a file by segments: a column and the range, within 0 to 1, of the hashes of its
            texts.
    """
    where = {name: set(values) for name, values in source.get("where", {}).items()}
    least = source.get("least_judgements", 0)
    most = float(source.get("most_characters", np.inf))
    column, low, high = source.get("hashed", ("reference", 0, 1))
    return [
        row
        for row in rows
        if low <= hash_of(row[column]) < high
        and all(row.get(name) in values for name, values in where.items())
        and row["score"] is not None
        and row["candidate"].strip()
        and row["reference"].strip()
        and (row.get("n_annotations") or 0) >= least
        and sum(len(row.get(name) or "") for name in ("source", "reference", "candidate")) <= most
        and not (source.get("drop_equal") and row["reference"].strip() == row["candidate"].strip())
    ]


def hash_of(text: str) -> float:
    """Return a number from 0 to below 1 that depends on a text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def draw(
    rows: Sequence[Row], source: Mapping[str, Any], divisor: int, random: np.random.Generator, fewest: int = 0
) -> list[Row]:
    """Draw the number of rows that the recipe asks for; in a trial, at least `fewest` of them."""
    number = max(-(-source["rows"] // divisor), min(fewest, source["rows"]))
    if len(rows) < number:
        raise ValueError(f"{source['file']}: the recipe asks for {number:,} rows, found {len(rows):,}: lower `rows`")
    return [rows[i] for i in random.permutation(len(rows))[:number]]


def on_one_scale(ratings: Sequence[Row]) -> list[Row]:
    """Standardise ratings by kind and language pair, and weight them by their number of judgements."""
    from datasets import Dataset

    columns = {name: [row.get(name) for row in ratings] for name in COLUMNS}
    columns["n_annotations"] = [None if n is None else max(1, round(n)) for n in columns["n_annotations"]]
    columns["weight"] = [1.0] * len(ratings)
    sides, _ = standardize_kinds({"train": Dataset.from_dict(columns)})
    side = cast("Any", sides["train"])
    return [
        {**row, "score": score, "weight": round(weight, 4), "system": "rating"}
        for row, score, weight in zip(ratings, side["score"], side["weight"], strict=True)
    ]


def with_dropped_words(row: Row, share: float, random: np.random.Generator) -> Row:
    """Return a row whose candidate has lost words, with a probability of `share` (RoBLEURT, section 2.2)."""
    candidate = drop_words(row["candidate"], random) if random.random() < share else ""
    return {**row, "candidate": candidate} if candidate else row


def leave_out(row: Row, shares: Mapping[str, float], random: np.random.Generator) -> Row:
    """Return a row without its source or without its reference, with the probabilities of `shares`; or with both."""
    source, value = row.get("source") or "", random.random()
    if not source or value < shares["source"]:
        return {**row, "source": ""}
    return {**row, "reference": ""} if value > 1 - shares["reference"] else row


def label(rows: Sequence[Row], metrics: Sequence[str]) -> list[Row]:
    """Give pairs the mean of several metrics, each standardised, as their score; its deviation is 1.

    Args:
        rows: pairs.
        metrics: baselines, as `bleurt-repro experiment agreement` names them.
    """
    texts = [[row[name] for row in rows] for name in ("reference", "candidate")]
    scores = np.array([find_baseline(name)(*texts).scores for name in metrics])
    means = zscore(zscore(scores, axis=1).mean(axis=0))
    return [{**row, "score": score} for row, score in zip(rows, means, strict=True)]


def teach(rows: Sequence[Row], teacher: str, cache: Path) -> None:
    """Give each pair the score of a checkpoint in place of its own.

    Args:
        rows: pairs; their "score" and "weight" are replaced.
        teacher: folder, embedded name or Hub id.
        cache: folder that keeps the scores, so that a stopped run continues.
    """
    scorer = BleurtScorer(teacher, dtype="bfloat16", cache=cache)  # faster, and exact enough for labels
    references, candidates = ([row[name] for row in rows] for name in ("reference", "candidate"))
    scores = scorer.compute(references=references, candidates=candidates).scores
    for row, score in zip(rows, scores, strict=True):
        row |= {"score": round(score, 4), "weight": 1.0}


def join(rows: Sequence[Row], number: int, random: np.random.Generator) -> list[Row]:
    """Put two to `MOST_SEGMENTS` segments of a language pair together, `number` times; the score is the mean of the parts'.

    Raters saw one segment at a time, and users have paragraphs. Now and then the candidate lacks a part, has another
    text's in its place, or has its parts in another order.
    """
    texts = []
    by_pair: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        by_pair[row.get("lp")].append(row)
    for _ in range(number):
        same = by_pair[rows[random.integers(len(rows))].get("lp")]
        parts = [same[i] for i in random.integers(len(same), size=random.integers(2, MOST_SEGMENTS + 1))]
        draws = random.random(len(parts))
        missing, foreign = draws < MISSING_SHARE, draws > 1 - FOREIGN_SHARE
        candidates = [
            same[random.integers(len(same))]["candidate"] if is_foreign else part["candidate"]
            for part, is_foreign, is_missing in zip(parts, foreign, missing, strict=True)
            if not is_missing
        ]
        if random.random() < REORDERED_SHARE:
            candidates = [candidates[i] for i in random.permutation(len(candidates))]
        scores = np.where(missing | foreign, LOST, [part["score"] for part in parts])
        texts.append(
            {
                "source": " ".join((part.get("source") or "").strip() for part in parts).strip(),
                "reference": " ".join(part["reference"].strip() for part in parts),
                "candidate": " ".join(text.strip() for text in candidates),
                "score": float(scores.mean()),
                "weight": float(np.mean([part["weight"] for part in parts])),
                "system": "longer",
            }
        )
    return texts
