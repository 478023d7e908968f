"""Minimal pairs: two candidates for a reference, one of which conveys it while the other has an error of a known type.

There are four tables, of sentences written for this project. The first two have the same references and better candidates:

- minimal pairs: the worse candidate is the better one with an error in it. Does the metric see the error?
- near copies: the worse candidate is the reference with the error in it, so that it shares more words with the reference
  in most rows. Does the metric still see the error?
- swapped roles: further minimal pairs of word order. The worse candidate exchanges two participants of the better one;
  only the reference shows which is right.
- free paraphrases: further minimal pairs of paraphrase. One or a few words change the meaning, often a part of it that the
  reference only implies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bleurt_repro.metric.statistics import CONFIDENCE
from bleurt_repro.training.metrics.baselines import Score
from bleurt_repro.training.metrics.statistics import share_with_interval

TABLES = {
    "minimal_pairs": Path(__file__).with_name("minimal_pairs.tsv"),
    "near_copies": Path(__file__).with_name("near_copies.tsv"),
    "swapped_roles": Path(__file__).with_name("swapped_roles.tsv"),
    "free_paraphrases": Path(__file__).with_name("free_paraphrases.tsv"),
}
COLUMNS = ("type", "reference", "better", "worse")
OVERALL = "overall"


class MinimalPair(NamedTuple):
    """A row of a table: `better` conveys `reference`, `worse` has an error of `type`."""

    type: str
    reference: str
    better: str
    worse: str


def read_minimal_pairs(path: str | Path) -> list[MinimalPair]:
    """Read a table of pairs.

    Args:
        path: file with the columns `COLUMNS`, in any form that `read_records` reads.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and line, if a column is missing or blank, or two of the three texts are equal.
    """
    from bleurt_repro.metric.files.records import read_records

    pairs = []
    for location, record in read_records(path):
        if blank := [name for name in COLUMNS if not str(record.get(name) or "").strip()]:
            raise ValueError(f"{path}, {location}: {', '.join(blank)} missing or blank; expected {', '.join(COLUMNS)}")
        pair = MinimalPair(*(record[name] for name in COLUMNS))
        if len({pair.reference, pair.better, pair.worse}) < 3:
            raise ValueError(f"{path}, {location}: reference, better and worse must differ; found two that are equal")
        pairs.append(pair)
    if not pairs:
        raise ValueError(f"{path}: no pairs; expected at least one row of {', '.join(COLUMNS)}")
    return pairs


def judge_pairs(pairs: Sequence[MinimalPair], score: Score) -> tuple[list[dict[str, Any]], str]:
    """Score both candidates of each pair, and a copy of its reference.

    Args:
        pairs: rows of a table.
        score: function that scores references and candidates.

    Returns:
        one dict per pair with its columns, `score_better`, `score_worse`, `score_copy`, and `right`: whether the better
        candidate has the higher score (a tie is wrong); and the metric's signature.
    """
    references = [pair.reference for pair in pairs]
    candidates = [*(pair.better for pair in pairs), *(pair.worse for pair in pairs), *references]
    scored = score(references * 3, candidates)
    scores = [scored.scores[i :: len(pairs)] for i in range(len(pairs))]
    judged = [
        {
            **pair._asdict(),
            "score_better": better,
            "score_worse": worse,
            "score_copy": copy,
            "right": better > worse,
        }
        for pair, (better, worse, copy) in zip(pairs, scores, strict=True)
    ]
    return judged, scored.signature


def count_by_type(judged: Sequence[dict[str, Any]], confidence: float = CONFIDENCE) -> dict[str, dict[str, Any]]:
    """Compute the share of pairs that are judged right, for each type in order of appearance and for all pairs.

    Args:
        judged: pairs as `judge_pairs` returns them.
        confidence: confidence of the Wilson interval (https://doi.org/10.1080/01621459.1927.10502953).

    Returns:
        by type and `OVERALL`: `right`, `n`, `share`, and the ends `low` and `high` of the interval, as fractions of 1.
    """
    groups: dict[str, list[bool]] = {}
    for pair in judged:
        groups.setdefault(pair["type"], []).append(pair["right"])
    groups[OVERALL] = [pair["right"] for pair in judged]
    return {name: share_with_interval(sum(right), len(right), confidence) for name, right in groups.items()}


def count_low_copies(judged: Sequence[dict[str, Any]], confidence: float = CONFIDENCE) -> dict[str, Any]:
    """Compute the share of pairs in which a copy of the reference scores lower than one of the candidates.

    Args:
        judged: pairs as `judge_pairs` returns them.
        confidence: as of `count_by_type`.

    Returns:
        `right`, the number of such pairs, and the other figures of `count_by_type`.
    """
    low = [pair["score_copy"] < max(pair["score_better"], pair["score_worse"]) for pair in judged]
    return share_with_interval(sum(low), len(low), confidence)
