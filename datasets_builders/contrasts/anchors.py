"""Anchors: pairs whose rating is clear without asking anyone, added to people's ratings before fine-tuning.

    bleurt-repro data anchors --ratings train.jsonl --output train-anchored.jsonl --share 0.3 --seed 0

Ratings of translations say nothing about the extremes: no system emits an empty line or another sentence's translation,
and few change a number. A model trained on them alone is free to give such candidates any score. BLEURT-20 was trained
with identical pairs and pairs of random sentences for the same reason
(https://github.com/google-research/bleurt/blob/master/checkpoints.md).

Scores are quantiles of the ratings that the anchors join, so they fit any scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.datasets_builders.contrasts import Random, chosen_contrasts, rated_well, write_contrasts
from bleurt_repro.datasets_builders.contrasts.alterations import change_name, change_negation, change_number, names_in
from bleurt_repro.datasets_builders.perturbations.word_dropping import drop_words

DEFAULT_SHARE = 0.3
# Where an altered copy stands among the ratings: below most candidates, but better than nonsense.
ALTERED_QUANTILE = 0.15
SHUFFLED_QUANTILE = 0.02
UNRELATED_QUANTILE = 0.005  # a sentence of its own right, above an empty line


def make_anchors(
    ratings: Sequence[dict[str, Any]], share: float = DEFAULT_SHARE, seed: int = 0
) -> list[dict[str, Any]]:
    """Make anchors for ratings, each kind as often as the others.

    Args:
        ratings: with "reference", "candidate" and "score", higher is better.
        share: how many anchors, as a share of the number of ratings.
        seed: which references and candidates are taken, and how they are damaged.

    Returns:
        the anchors: "system" names the kind ("anchor: identical" and so on); other columns are
        those of the rating that the reference comes from, "raw_score" and "n_annotations" None.

    Raises:
        ValueError: if the share is not positive or too small to make one anchor of each kind, or there are fewer than two different
            references.
    """
    if not share > 0:
        raise ValueError(f"share must be above 0, found {share}")
    references = sorted({row["reference"] for row in ratings})
    if len(references) < 2:
        raise ValueError(f"anchors need at least two different references, found {len(references)}")
    random, maker = np.random.default_rng(seed), _Maker(ratings, references)
    if not (wanted := round(share * len(ratings) / len(maker.kinds))):
        raise ValueError(
            f"a share of {share:g} of {len(ratings)} ratings is not one anchor of each of {len(maker.kinds)} kinds: give "
            f"{len(maker.kinds) / len(ratings):.2g} or more"
        )
    return [anchor for kind in maker.kinds for anchor in maker.make(kind, wanted, random)]


def anchor_file(
    ratings: str | Path, output: str | Path, share: float = DEFAULT_SHARE, seed: int = 0, overwrite: bool = False
) -> dict[str, int]:
    """Write ratings with anchors after them, as JSON lines.

    Args:
        ratings: file of ratings, as `rating_records` reads it.
        output: file to write.
        share: of `make_anchors`.
        seed: of `make_anchors`.
        overwrite: of `chosen_contrasts`.

    Returns:
        how many ratings, and anchors of each kind, were written.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the ratings are malformed (file and line are named), or what `chosen_contrasts` and `make_anchors` say.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records

    place = chosen_contrasts(output, [ratings], overwrite)
    rows = rating_records(ratings)
    return write_contrasts(place, make_anchors(rows, share, seed), rows)


class _Maker:
    """Damages references and well-rated candidates, and knows where the result stands among the ratings."""

    def __init__(self, ratings: Sequence[dict[str, Any]], references: list[str]) -> None:
        self.ratings, self.references = ratings, references
        self.scores = np.array([row["score"] for row in ratings], dtype=float)
        self.good = {row["reference"]: row["candidate"] for row in rated_well(ratings)}
        self.names = sorted({name for text in references for name in names_in(text)})
        self.kinds: dict[str, Callable[[str, Random], tuple[str | None, float]]] = {
            "identical": lambda reference, random: (reference, 1.0),
            "empty": lambda reference, random: ("", 0.0),
            "unrelated": self.unrelated,
            "shuffled": self.shuffled,
            "words dropped": self.dropped,
            "number": self.altered(change_number),
            "name": self.altered(lambda text, random: change_name(text, self.names, random)),
            "negation": self.altered(change_negation),
        }

    def make(self, kind: str, wanted: int, random: Random) -> list[dict[str, Any]]:
        """Make anchors of one kind, of different ratings; fewer than wanted where too few texts allow it."""
        made: list[dict[str, Any]] = []
        for i in random.permutation(len(self.ratings)):
            if len(made) == wanted:
                break
            row = self.ratings[i]
            candidate, quantile = self.kinds[kind](row["reference"], random)
            if candidate is None or (candidate == row["reference"]) != (kind == "identical"):
                continue  # a text without a number has none to change
            score = float(np.quantile(self.scores, quantile))
            blank = dict.fromkeys(("raw_score", "n_annotations") & row.keys())
            made.append({**row, **blank, "candidate": candidate, "score": score, "system": f"anchor: {kind}"})
        return made

    def unrelated(self, reference: str, random: Random) -> tuple[str, float]:
        """Return another reference."""
        return self.references[random.integers(len(self.references))], UNRELATED_QUANTILE

    def shuffled(self, reference: str, random: Random) -> tuple[str, float]:
        """Return the words in random order."""
        return " ".join(random.permutation(reference.split())), SHUFFLED_QUANTILE

    def dropped(self, reference: str, random: Random) -> tuple[str, float]:
        """Return a text with words left out; the more are left out, the lower it stands."""
        kept = drop_words(reference, random)
        return kept, 0.5 * len(kept.split()) / max(1, len(reference.split()))

    def altered(
        self, change: Callable[[str, Random], str | None]
    ) -> Callable[[str, Random], tuple[str | None, float]]:
        """Return a maker of texts altered by a rule."""

        # Half of them change a good translation instead of the reference: words shared are then no sign of an error.
        def alter(reference: str, random: Random) -> tuple[str | None, float]:
            text = self.good.get(reference, reference) if random.random() < 0.5 else reference
            return change(text, random), ALTERED_QUANTILE

        return alter
