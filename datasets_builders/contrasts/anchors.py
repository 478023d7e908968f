"""Anchors: pairs whose rating is clear without asking anyone, added to human ratings before fine-tuning.

    bleurt-repro data anchors --ratings train.jsonl --output train-anchored.jsonl --share 0.3 --seed 0

Ratings of translations say nothing about the extremes: no system outputs an empty line or the translation of another
sentence, and few change a number. A model trained on them alone may give such candidates any score. BLEURT-20 was
trained with identical pairs and pairs of random sentences for the same reason
(https://github.com/google-research/bleurt/blob/master/checkpoints.md).

Scores are quantiles of the ratings that the anchors are added to, so they fit any scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.datasets_builders.contrasts import Random, chosen_contrasts, rated_well, write_contrasts
from bleurt_repro.datasets_builders.contrasts.alterations import change_name, change_negation, change_number, names_in
from bleurt_repro.datasets_builders.contrasts.degenerate import shuffle_words
from bleurt_repro.datasets_builders.perturbations.word_dropping import drop_words

DEFAULT_SHARE = 0.3
# An altered copy is worse than most candidates, but better than nonsense.
ALTERED_QUANTILE = 0.15
SHUFFLED_QUANTILE = 0.02
UNRELATED_QUANTILE = 0.005  # a good sentence about something else: above an empty line


def make_anchors(
    ratings: Sequence[dict[str, Any]], share: float = DEFAULT_SHARE, seed: int = 0
) -> list[dict[str, Any]]:
    """Make anchors for ratings, the same number of each kind.

    Args:
        ratings: rows with "reference", "candidate" and "score"; higher scores are better.
        share: number of anchors as a share of the number of ratings.
        seed: seed that decides which references and candidates are used, and how they are damaged.

    Returns: The anchors. "system" names the kind ("anchor: identical" and so on), "raw_score" and "n_annotations" are
        None, and the other columns are those of the rating that the reference comes from.

    Raises:
        ValueError: if the share is not positive or too small for one anchor of each kind, or if there are fewer than
            two different references.
    """
    if not share > 0:
        raise ValueError(f"share must be above 0, found {share}")
    references = sorted({row["reference"] for row in ratings})
    if len(references) < 2:
        raise ValueError(f"anchors need at least two different references, found {len(references)}")
    random, maker = np.random.default_rng(seed), _Maker(ratings, references)
    count = round(share * len(ratings) / len(maker.alterations))
    if not count:
        raise ValueError(
            f"a share of {share:g} of {len(ratings)} ratings is less than one anchor of each of "
            f"{len(maker.alterations)} kinds: give {len(maker.alterations) / len(ratings):.2g} or more"
        )
    return [anchor for alteration in maker.alterations for anchor in maker.make(alteration, count, random)]


def anchor_file(
    ratings: str | Path, output: str | Path, share: float = DEFAULT_SHARE, seed: int = 0, overwrite: bool = False
) -> dict[str, int]:
    """Write ratings and anchors after them as JSON lines.

    Args:
        ratings: file of ratings, as `rating_records` reads it.
        output: file to write.
        share: as in `make_anchors`.
        seed: as in `make_anchors`.
        overwrite: as in `chosen_contrasts`.

    Returns:
        The number of ratings, and of anchors of each kind.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the ratings are malformed (the message names file and line), and as `chosen_contrasts` and
            `make_anchors` raise it.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records

    path = chosen_contrasts(output, [ratings], overwrite)
    rows = rating_records(ratings)
    return write_contrasts(path, make_anchors(rows, share, seed), rows)


class _Maker:
    """Damages references and well-rated candidates, and knows which quantile of the ratings the result gets."""

    def __init__(self, ratings: Sequence[dict[str, Any]], references: list[str]) -> None:
        self.ratings, self.references = ratings, references
        self.scores = np.array([row["score"] for row in ratings], dtype=float)
        self.good = {row["reference"]: row["candidate"] for row in rated_well(ratings)}
        self.names = sorted({name for text in references for name in names_in(text)})
        self.alterations: dict[str, Callable[[str, Random], tuple[str | None, float]]] = {
            "identical": lambda reference, random: (reference, 1.0),
            "empty": lambda reference, random: ("", 0.0),
            "unrelated": self.unrelated,
            "shuffled": lambda reference, random: (shuffle_words(reference, random), SHUFFLED_QUANTILE),
            "words dropped": self.dropped,
            "number": self.altered(change_number),
            "name": self.altered(lambda text, random: change_name(text, self.names, random)),
            "negation": self.altered(change_negation),
        }

    def make(self, alteration: str, count: int, random: Random) -> list[dict[str, Any]]:
        """Make anchors of one kind, each of another rating; fewer than `count` if too few texts allow it."""
        anchors: list[dict[str, Any]] = []
        for i in random.permutation(len(self.ratings)):
            if len(anchors) == count:
                break
            row = self.ratings[i]
            candidate, quantile = self.alterations[alteration](row["reference"], random)
            if candidate is None or (candidate == row["reference"]) != (alteration == "identical"):
                continue  # a text without a number has none to change
            score = float(np.quantile(self.scores, quantile))
            blank = dict.fromkeys(("raw_score", "n_annotations") & row.keys())
            anchors.append({**row, **blank, "candidate": candidate, "score": score, "system": f"anchor: {alteration}"})
        return anchors

    def unrelated(self, reference: str, random: Random) -> tuple[str, float]:
        """Return another reference."""
        return self.references[random.integers(len(self.references))], UNRELATED_QUANTILE

    def dropped(self, reference: str, random: Random) -> tuple[str, float]:
        """Return a text with words dropped; the more are dropped, the lower its score."""
        text = drop_words(reference, random)
        return text, 0.5 * len(text.split()) / max(1, len(reference.split()))

    def altered(
        self, change: Callable[[str, Random], str | None]
    ) -> Callable[[str, Random], tuple[str | None, float]]:
        """Return a maker of texts altered by a rule."""

        # Half of them change a good translation instead of the reference: shared words are then no sign of an error.
        def alter(reference: str, random: Random) -> tuple[str | None, float]:
            text = self.good.get(reference, reference) if random.random() < 0.5 else reference
            return change(text, random), ALTERED_QUANTILE

        return alter
