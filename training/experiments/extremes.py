"""Candidates whose rank is known: the reference itself, damaged copies of it, unrelated and empty text.

Three checks: the identical candidate scores above every other one of its reference; the empty candidate is at the very
bottom of all scores; a candidate that belongs to another reference is close to the bottom.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.metric.statistics import share_with_interval
from bleurt_repro.training.experiments.baselines import Score

MOST_REFERENCES = 1000
IDENTICAL, RATED, DROPPED, SHUFFLED, UNRELATED, EMPTY = KINDS = (
    "identical",
    "rated",
    "word_dropped",
    "shuffled",
    "unrelated",
    "empty",
)
TABLES = (".csv", ".tsv", ".jsonl", ".parquet")


@dataclass
class Extremes:
    """Candidates whose rank is known, for a sample of references.

    Attributes:
        references: one an entry.
        candidates: one an entry.
        kinds: of `KINDS`, one an entry.
        owners: which reference of the sample the entry belongs to, counted from 0.
        skipped: how many candidates could not be made, by reason.
    """

    references: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)

    def add(self, owner: int, reference: str, kind: str, candidate: str) -> None:
        """Add an entry, unless it is a copy of the reference that is to be no copy: then count it."""
        if kind != IDENTICAL and candidate.split() == reference.split():
            reason = f"{kind} equal to the reference"
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
            return
        self.references.append(reference)
        self.candidates.append(candidate)
        self.kinds.append(kind)
        self.owners.append(owner)


def read_references(path: str | Path) -> dict[str, list[str]]:
    """Read references, each with the candidates it has in the file.

    Args:
        path: ratings with the columns reference and, if any, candidate; any other extension is text of one reference
            a line.

    Returns:
        by reference, in order of appearance, its distinct candidates.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if there are fewer than two references, or, naming file and line, one is blank.
    """
    from bleurt_repro.metric.files.records import file_form, read_lines, read_records

    if file_form(path):
        rows = [(place, record.get("reference"), record.get("candidate")) for place, record in read_records(path)]
    else:
        rows = [(f"line {number}", line, None) for number, line in enumerate(read_lines(str(path)), start=1)]
    found: dict[str, dict[str, None]] = {}
    for place, reference, candidate in rows:
        if not isinstance(reference, str) or not reference.strip():
            raise ValueError(f"{path}, {place}: no reference; each record or line needs one")
        candidates = found.setdefault(reference, {})
        if candidate is not None:
            candidates[candidate] = None
    if len(found) < 2:
        raise ValueError(
            f"{path}: expected at least two different references, found {len(found)}; the unrelated candidates need them"
        )
    return {reference: list(candidates) for reference, candidates in found.items()}


def make_extremes(references: dict[str, list[str]], most: int = MOST_REFERENCES, seed: int = 0) -> Extremes:
    """Make the candidates for a random sample of references.

    Args:
        references: of `read_references`.
        most: the size of the sample; all references, if there are no more.
        seed: decides the sample, the dropped words, the orders, and whose reference is the unrelated one.
    """
    random = np.random.default_rng(seed)
    texts = list(references)
    chosen = np.sort(random.permutation(len(texts))[:most])
    made = Extremes()
    for owner, place in enumerate(chosen):
        reference = texts[place]
        made.add(owner, reference, IDENTICAL, reference)
        for candidate in references[reference]:
            if candidate.strip():  # an empty one is added below
                made.add(owner, reference, RATED, candidate)
        other = texts[(place + random.integers(1, len(texts))) % len(texts)]
        made.add(owner, reference, DROPPED, _drop_some(reference, random))
        made.add(owner, reference, SHUFFLED, _shuffle(reference, random))
        made.add(owner, reference, UNRELATED, other)
        made.add(owner, reference, EMPTY, "")
    return made


def measure_extremes(made: Extremes, score: Score) -> dict[str, Any]:
    """Run the three checks.

    Args:
        made: of `make_extremes`.
        score: returns one score a (reference, candidate).

    Returns:
        `identical_first`: the share of references whose identical candidate scores above every other one, with its
        Wilson interval, and `against`, the same against each kind alone (a tie counts as not above);
        `empty` and `unrelated`: the mean and the highest percentile of such candidates, 0 to 100, and the share of
        them in the lowest percent.
    """
    scores = np.array(score(made.references, made.candidates).scores)
    kinds, owners = np.array(made.kinds), np.array(made.owners)
    own = scores[kinds == IDENTICAL]  # by owner, since each has exactly one
    return {
        "references": len(own),
        "candidates": {kind: int((kinds == kind).sum()) for kind in KINDS},
        "skipped": made.skipped,
        "identical_first": _first(own, scores, owners, kinds != IDENTICAL),
        "against": {kind: _first(own, scores, owners, kinds == kind) for kind in KINDS[1:] if (kinds == kind).any()},
        EMPTY: _percentiles(scores, kinds, EMPTY),
        UNRELATED: _percentiles(scores, kinds, UNRELATED),
    }


def _first(own: np.ndarray, scores: np.ndarray, owners: np.ndarray, members: np.ndarray) -> dict[str, Any]:
    """Count the references whose own score is above those of the members, among references that have any."""
    best = np.full(len(own), -np.inf)
    np.maximum.at(best, owners[members], scores[members])
    compared = np.isin(np.arange(len(own)), owners[members])
    return share_with_interval(int((own > best)[compared].sum()), int(compared.sum()))


def _percentiles(scores: np.ndarray, kinds: np.ndarray, kind: str) -> dict[str, Any]:
    """Compute the percentiles of a kind's scores, in percent of scores that are no higher: ties count against it.

    `all` is among the scores of all other kinds; `rated` among those of rated candidates alone, None without any.
    """
    among = {"all": scores[kinds != kind], RATED: scores[kinds == RATED]}
    return {name: _place(scores[kinds == kind], np.sort(others)) for name, others in among.items()}


def _place(scores: np.ndarray, others: np.ndarray) -> dict[str, float] | None:
    if not len(others) or not len(scores):
        return None
    places = 100 * np.searchsorted(others, scores, side="right") / len(others)
    return {
        "mean": float(places.mean()),
        "highest": float(places.max()),
        "in_lowest_percent": float((places <= 1).mean()),
    }


def _drop_some(text: str, random: np.random.Generator) -> str:
    """Drop at least one word and keep at least one; a single word stays, and so counts as skipped."""
    words = text.split()
    dropped = random.integers(1, len(words)) if len(words) > 1 else 0
    return " ".join(words[i] for i in np.sort(random.permutation(len(words))[dropped:]))


def _shuffle(text: str, random: np.random.Generator) -> str:
    words = text.split()
    return " ".join(words[i] for i in random.permutation(len(words)))
