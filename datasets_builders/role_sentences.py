"""Sentences of who did what to whom, said in two ways, against one in which the two have changed places.

    bleurt-repro data roles --pairs 16000 --output roles.jsonl

Parallel text has few sentences whose roles can be turned round, and turned round most of them are odd ("the air wowed the
crowd"): a metric learns from such what is odd, not what differs (docs/training-log.md). Here both are made of templates
(`role_sentences.yaml`) in which either of the two may be the one who does it: only the reference tells which is right. That
templates can teach a model what real sentences had not is known of entailment (https://aclanthology.org/P19-1334/).

Scores are those of `contrast_pairs`, in standard deviations of ratings.
"""

from __future__ import annotations

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

# Of the sentences: how many are about a deed ("A thanked B"), not of another family. Of two participants with a quality each
# ("the old baker"): how often these alone change places.
DEED_SHARE, QUALITIES_TURNED_SHARE = 0.4, 0.3

_ACTIVE = "{{A}} {past} {{b}}"
_DEED = (_ACTIVE, _ACTIVE, "{{B}} was {participle} by {{a}}", "it was {{A}} that {past} {{b}}")


def make_role_pairs(pairs: int, seed: int = 0) -> list[Row]:
    """Make pairs of sentences that agree or disagree in who did what to whom.

    Args:
        pairs: how many to make.
        seed: of all that is drawn.

    Returns:
        rows of "reference", "candidate", "score" and "system": "contrast: roles kept" or "contrast: roles turned".

    Raises:
        ValueError: if `pairs` is not positive.
    """
    return make_pairs(_clauses, "roles", pairs, seed)


def _clauses(random: Random) -> Clauses:
    """Draw a family and who it is about: two wordings of it, each as it is and turned round."""
    known = templates()
    if random.random() < DEED_SHARE:
        family = draw(known["deeds"], random)
        said, when = _deed(family, random), True
    else:
        family = draw(known["families"], random)
        said, when = two_of(family["say"], random), family.get("when", False)
    told = [shell.replace("{s}", wording) for shell, wording in zip(shells(when, random), said, strict=True)]
    filled = fillings(told, known["lists"], random)
    kind = draw(family["who"], random)
    two = some_of(kind, 2, known["lists"], random)
    turned = two[::-1]
    if random.random() < QUALITIES_TURNED_SHARE and all(quality for quality, _ in two):
        turned = [(quality, noun) for (quality, _), (_, noun) in zip(turned, two, strict=True)]
    first, second = (
        (tell(wording, kind, two, nouns, filled), tell(wording, kind, turned, nouns, filled))
        for wording, nouns in zip(told, ({}, again(two, random)), strict=True)
    )
    return first, second


def _deed(deed: dict[str, Any], random: Random) -> list[str]:
    said: list[str] = []
    while len(said) < 2:
        past, participle = draw(deed["say"], random).split("/")
        wording = draw(_DEED, random).format(past=past, participle=participle)
        if wording not in said:
            said.append(wording)
    return said
