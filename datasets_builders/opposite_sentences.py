"""Sentences said again in other words, against the same words with the meaning turned into its opposite.

    bleurt-repro data opposites --pairs 16000 --output opposites.jsonl

A small metric sees that a sentence was negated, but hardly that "failed to" is the opposite of "could ... in the end": a
change of meaning in a free paraphrase, which shares few words with the reference either way. As in `role_sentences`,
both sides are made of templates (`opposite_sentences.yaml`) of which neither is likelier.

Scores are those of `contrast_pairs`, in standard deviations of ratings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bleurt_repro.datasets_builders.template_sentences import (
    Clauses,
    Random,
    Row,
    again,
    draw,
    fillings,
    make_pairs,
    shells,
    some_of,
    tell,
    templates,
    two_of,
)

TEMPLATES = Path(__file__).with_suffix(".yaml")


def make_opposite_pairs(pairs: int, seed: int = 0) -> list[Row]:
    """Make pairs of sentences that say the same in other words, or the opposite.

    Args:
        pairs: how many to make.
        seed: of all that is drawn.

    Returns:
        rows of "reference", "candidate", "score" and "system": "contrast: meaning kept" or "contrast: meaning turned".

    Raises:
        ValueError: if `pairs` is not positive.
    """
    return make_pairs(_clauses, "meaning", pairs, seed)


def _templates() -> dict[str, Any]:
    known = templates(TEMPLATES)
    return {**known, "lists": {**templates()["lists"], **known["lists"]}}


def _clauses(random: Random) -> Clauses:
    """Draw a family and who it is about: two wordings of one side, each beside the other side's."""
    known = _templates()
    family = draw(known["families"], random)
    said = two_of(family["say"], random)
    if random.random() < 0.5:
        said = [wording[::-1] for wording in said]
    around = shells(family.get("when", False), random)
    told = [[shell.replace("{s}", side) for side in wording] for shell, wording in zip(around, said, strict=True)]
    filled = fillings([side for wording in told for side in wording], known["lists"], random)
    kind = draw(family["who"], random)
    who = some_of(kind, 1, known["lists"], random)
    first, second = (
        (tell(kept, kind, who, nouns, filled), tell(turned, kind, who, nouns, filled))
        for (kept, turned), nouns in zip(told, ({}, again(who, random)), strict=True)
    )
    return first, second
