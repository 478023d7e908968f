"""Tables of two candidates for a reference: one conveys it, the other contains an error of a known type.

Four tables of the project's own sentences. The first two ask two questions of the same references and better candidates:

- minimal pairs: the worse candidate is the better one with the error in it. Does the metric see the error?
- near copies: the worse candidate is the reference with the error in it, so that counting shared words prefers it in most
  rows. Does the metric see the error all the same?
- swapped roles: more minimal pairs of word order; the worse candidate has the better one's words with two participants
  exchanged, and only the reference tells which is right.
- free paraphrases: more minimal pairs of paraphrase; one or a few words change the meaning, often one that the reference
  only implies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bleurt_repro.metric.statistics import CONFIDENCE, share_with_interval
from bleurt_repro.training.experiments.baselines import Score, Scored, find_baseline

TABLES = {
    "minimal_pairs": Path(__file__).with_name("minimal_pairs.tsv"),
    "near_copies": Path(__file__).with_name("near_copies.tsv"),
    "swapped_roles": Path(__file__).with_name("swapped_roles.tsv"),
    "free_paraphrases": Path(__file__).with_name("free_paraphrases.tsv"),
}
COLUMNS = ("type", "reference", "better", "worse")
OVERALL = "overall"


class MinimalPair(NamedTuple):
    """One row: `better` conveys `reference` better than `worse`, which has an error of `type`."""

    type: str
    reference: str
    better: str
    worse: str


def read_minimal_pairs(path: str | Path) -> list[MinimalPair]:
    """Read a table of pairs.

    Args:
        path: a file with the columns `COLUMNS`, in any form that `read_records` reads.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and line, if a column is missing or blank, or the three texts are not distinct.
    """
    from bleurt_repro.metric.files.records import read_records

    pairs = []
    for place, record in read_records(path):
        blank = [name for name in COLUMNS if not str(record.get(name) or "").strip()]
        if blank:
            raise ValueError(f"{path}, {place}: {', '.join(blank)} missing or blank; expected {', '.join(COLUMNS)}")
        pair = MinimalPair(*(record[name] for name in COLUMNS))
        if len({pair.reference, pair.better, pair.worse}) < 3:
            raise ValueError(f"{path}, {place}: reference, better and worse must differ; found two that are equal")
        pairs.append(pair)
    if not pairs:
        raise ValueError(f"{path}: no pairs; expected at least one row of {', '.join(COLUMNS)}")
    return pairs


def score_function(kind: str, name: str, scorer_options: dict[str, Any]) -> Score:
    """Return what scores pairs: a baseline, or a checkpoint, which is loaded once.

    Args:
        kind: "baseline" or "checkpoint".
        name: as `find_baseline` or `BleurtScorer` takes it.
        scorer_options: further arguments of `BleurtScorer`.

    Raises:
        ValueError: if the checkpoint reads sources, which minimal pairs do not have.
    """
    if kind == "baseline":
        return find_baseline(name)
    from bleurt_repro.metric.scorer import BleurtScorer

    scorer = BleurtScorer(name, **scorer_options)
    if scorer.layout.reads_sources:
        raise ValueError(f"checkpoint {name} reads sources, but minimal pairs have none: name one that does not")

    def score(references: Sequence[str], candidates: Sequence[str]) -> Scored:
        result = scorer.compute(references=list(references), candidates=list(candidates))
        return Scored(result.scores, result.signature)

    return score


def prefer(pairs: Sequence[MinimalPair], score: Score) -> tuple[list[dict[str, Any]], str]:
    """Score both candidates of each pair.

    Args:
        pairs: the rows.
        score: returns one score a (reference, candidate).

    Returns:
        one dict a row: its columns, `score_better`, `score_worse`, and `right`, whether the better scored higher, a
        tie being wrong; and the metric's signature.
    """
    references = [pair.reference for pair in pairs]
    scored = score(references * 2, [pair.better for pair in pairs] + [pair.worse for pair in pairs])
    halves = scored.scores[: len(pairs)], scored.scores[len(pairs) :]
    judged = [
        {**pair._asdict(), "score_better": better, "score_worse": worse, "right": better > worse}
        for pair, better, worse in zip(pairs, *halves, strict=True)
    ]
    return judged, scored.signature


def count_by_type(judged: Sequence[dict[str, Any]], confidence: float = CONFIDENCE) -> dict[str, dict[str, Any]]:
    """Compute the share of rows judged right, of each type in order of appearance and last of all rows.

    Args:
        judged: of `prefer`.
        confidence: of the Wilson interval (https://doi.org/10.1080/01621459.1927.10502953).

    Returns:
        by type and `OVERALL`: `right`, `n`, `share`, and the interval's ends `low` and `high`, as fractions of 1.
    """
    groups: dict[str, list[bool]] = {}
    for row in judged:
        groups.setdefault(row["type"], []).append(row["right"])
    groups[OVERALL] = [row["right"] for row in judged]
    return {name: share_with_interval(sum(right), len(right), confidence) for name, right in groups.items()}
