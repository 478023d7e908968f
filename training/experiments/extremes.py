"""Extremes: candidates whose rank among all candidates of a reference is known, and checks that a metric ranks them so.

The reference itself must score above every other candidate; empty text must be at the very bottom of all scores; a
candidate that belongs to another reference must be close to the bottom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.datasets_builders.contrasts.degenerate import shuffle_words
from bleurt_repro.training.experiments.stress import Candidates
from bleurt_repro.training.metrics.baselines import Score
from bleurt_repro.training.metrics.statistics import share_with_interval

MOST_REFERENCES = 1000
IDENTICAL, RATED, DROPPED, SHUFFLED, UNRELATED, EMPTY = CATEGORIES = (
    "identical",
    "rated",
    "word_dropped",
    "shuffled",
    "unrelated",
    "empty",
)


def read_references(path: str | Path) -> dict[str, list[str]]:
    """Read references, with the candidates of each where the file has any.

    Args:
        path: ratings with the column reference and, if any, candidate; any other extension is text with one reference
            per line.

    Returns:
        the distinct candidates of each reference, in order of appearance.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if there are fewer than two references, or one is blank (file and line are named).
    """
    from bleurt_repro.metric.files.records import file_form, read_lines, read_records

    if file_form(path):
        rows = [(where, record.get("reference"), record.get("candidate")) for where, record in read_records(path)]
    else:
        rows = [(f"line {number}", line, None) for number, line in enumerate(read_lines(str(path)), start=1)]
    candidates_of: dict[str, dict[str, None]] = {}
    for where, reference, candidate in rows:
        if not isinstance(reference, str) or not reference.strip():
            raise ValueError(f"{path}, {where}: no reference; each record or line needs one")
        candidates = candidates_of.setdefault(reference, {})
        if candidate is not None:
            candidates[candidate] = None
    if len(candidates_of) < 2:
        raise ValueError(
            f"{path}: expected at least two different references, found {len(candidates_of)}; unrelated candidates are "
            "made of the other references"
        )
    return {reference: list(candidates) for reference, candidates in candidates_of.items()}


def make_extremes(references: Mapping[str, Sequence[str]], most: int = MOST_REFERENCES, seed: int = 0) -> Candidates:
    """Make the candidates for a random sample of references.

    Args:
        references: candidates by reference, as `read_references` returns them.
        most: size of the sample; all references if there are no more.
        seed: seed of the sample, the dropped words, the word orders, and the choice of unrelated references.

    Returns:
        candidates of `CATEGORIES`; each reference has exactly one that is identical.
    """
    random = np.random.default_rng(seed)
    texts = list(references)
    extremes = Candidates()
    for i in np.sort(random.permutation(len(texts))[:most]):
        reference = texts[i]
        extremes.add(reference, IDENTICAL, reference)
        for candidate in references[reference]:
            if candidate.strip():  # an empty one is added below
                extremes.add_changed(reference, RATED, candidate)
        unrelated = texts[(i + random.integers(1, len(texts))) % len(texts)]
        extremes.add_changed(reference, DROPPED, _drop_some_words(reference, random))
        extremes.add_changed(reference, SHUFFLED, shuffle_words(reference, random))
        extremes.add_changed(reference, UNRELATED, unrelated)
        extremes.add_changed(reference, EMPTY, "")
    return extremes


def measure_extremes(extremes: Candidates, score: Score) -> dict[str, Any]:
    """Run the three checks.

    Args:
        extremes: candidates of `make_extremes`.
        score: function that scores references and candidates.

    Returns:
        `identical_first`: share of references whose identical candidate scores above every other one, with its Wilson
        interval, and `against`: the same against each category alone (a tie counts as not above);
        `empty` and `unrelated`: mean and highest percentile of such candidates, 0 to 100, and the share of them in the
        lowest percent.
    """
    scores = np.array(score(extremes.references, extremes.candidates).scores)
    categories = np.array(extremes.categories)
    numbers = {reference: i for i, reference in enumerate(dict.fromkeys(extremes.references))}
    owners = np.array([numbers[reference] for reference in extremes.references])
    identical = scores[categories == IDENTICAL]  # in the order of the references' numbers
    return {
        "references": len(identical),
        "candidates": {category: int((categories == category).sum()) for category in CATEGORIES},
        "skipped": extremes.skipped,
        "identical_first": _count_first(identical, scores, owners, categories != IDENTICAL),
        "against": {
            category: _count_first(identical, scores, owners, categories == category)
            for category in CATEGORIES[1:]
            if (categories == category).any()
        },
        EMPTY: _percentiles(scores, categories, EMPTY),
        UNRELATED: _percentiles(scores, categories, UNRELATED),
    }


def _count_first(identical: np.ndarray, scores: np.ndarray, owners: np.ndarray, mask: np.ndarray) -> dict[str, Any]:
    """Count the references whose identical candidate scores above all candidates of the mask.

    Args:
        identical: score of each reference's identical candidate.
        scores, owners: scores of all candidates, and the numbers of their references.
        mask: candidates to compare with; references without any are left out.
    """
    best = np.full(len(identical), -np.inf)
    np.maximum.at(best, owners[mask], scores[mask])
    is_compared = np.isin(np.arange(len(identical)), owners[mask])
    return share_with_interval(int((identical > best)[is_compared].sum()), int(is_compared.sum()))


def _percentiles(scores: np.ndarray, categories: np.ndarray, category: str) -> dict[str, Any]:
    """Return the percentiles of a category's scores, in percent of scores that are no higher: ties count against the metric.

    `all` is among the scores of all other categories; `rated` is among those of rated candidates, None without any.
    """
    among = {"all": scores[categories != category], RATED: scores[categories == RATED]}
    return {name: _percentiles_among(scores[categories == category], np.sort(group)) for name, group in among.items()}


def _percentiles_among(scores: np.ndarray, group: np.ndarray) -> dict[str, float] | None:
    if not len(group) or not len(scores):
        return None
    percentiles = 100 * np.searchsorted(group, scores, side="right") / len(group)
    return {
        "mean": float(percentiles.mean()),
        "highest": float(percentiles.max()),
        "in_lowest_percent": float((percentiles <= 1).mean()),
    }


def _drop_some_words(text: str, random: np.random.Generator) -> str:
    """Drop at least one word and keep at least one; a single word is kept."""
    tokens = text.split()
    number = random.integers(1, len(tokens)) if len(tokens) > 1 else 0
    return " ".join(tokens[i] for i in np.sort(random.permutation(len(tokens))[number:]))
