"""Contrasts from templates: a sentence in two wordings, each as it is and turned into what it does not mean.

    bleurt-repro data roles --pairs 16000 --output roles.jsonl
    bleurt-repro data opposites --pairs 16000 --output opposites.jsonl

Roles: two participants of a sentence are exchanged ("A thanked B", "B thanked A"; `role_sentences.yaml`). Parallel text has
few sentences whose roles can be exchanged, and most of them become odd ("the air wowed the crowd"): a metric learns from
such what is odd, not what differs. In a template either of the two may act: only the reference tells which is right. That
templates can teach a model what real sentences do not is known from entailment (https://aclanthology.org/P19-1334/).

Opposites: a state of affairs, and its opposite in as many words ("failed to", "could ... in the end";
`opposite_sentences.yaml`). A small metric sees a negation, but hardly a change of meaning in a free paraphrase, which shares
few words with the reference either way. Neither side of a template is likelier than the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.datasets_builders.contrasts import (
    CHANGED,
    COPY,
    JOINED_WEIGHT,
    SAME,
    Contrast,
    Random,
    contrast,
    draw,
)
from bleurt_repro.metric.files.records import read_plain_yaml

Who = tuple[str, str]  # quality, or ""; noun, name, or pronoun as a subject
# Two wordings of a clause, the reference's and the candidate's, each as it is and turned into what it does not mean.
Clauses = tuple[tuple[str, str], tuple[str, str]]

ROLE_SENTENCES = Path(__file__).with_name("role_sentences.yaml")
OPPOSITE_SENTENCES = Path(__file__).with_name("opposite_sentences.yaml")

# Of the sentences: how many mention time or place, if that fits; stand in a frame ("police said that"); are followed or preceded
# by another sentence, which all three texts have in the same meaning.
WHEN_SHARE, FRAME_SHARE, JOINED_SHARE = 0.4, 0.25, 0.2
# How often participants have a quality ("the old baker"); how often the candidate has another word for one of them.
QUALITY_SHARE, SYNONYM_SHARE = 0.25, 0.3
# How often the reference's own wording is shown turned, too: near copies, which differ from it in a few words alone.
NEAR_COPY_SHARE = 0.5
# Of the role sentences: how many are about a deed ("A thanked B"), not of another family. Of two participants with a quality
# each ("the old baker"): how often the qualities alone are exchanged.
DEED_SHARE, QUALITIES_TURNED_SHARE = 0.4, 0.3

_ACTIVE = "{{A}} {past} {{b}}"
_DEED = (_ACTIVE, _ACTIVE, "{{B}} was {participle} by {{a}}", "it was {{A}} that {past} {{b}}")
_THE = ("person", "group", "building", "thing", "animal", "vehicle", "event")  # kinds that need an article
_SLOT = re.compile(r"\{(\w+)\}")


def make_role_pairs(pairs: int, seed: int = 0) -> list[Contrast]:
    """Make pairs of sentences that agree or disagree in the roles of their two participants.

    Args:
        pairs: how many pairs to make.
        seed: of all that is drawn.

    Returns:
        rows of "reference", "candidate", "score" and "system": "contrast: roles kept" or "contrast: roles turned".

    Raises:
        ValueError: if `pairs` is not positive.
    """
    return _make_pairs(_role_clauses, "roles", pairs, seed)


def make_opposite_pairs(pairs: int, seed: int = 0) -> list[Contrast]:
    """Make pairs of sentences of the same meaning in other words, or of the opposite meaning.

    Args:
        pairs: how many pairs to make.
        seed: of all that is drawn.

    Returns:
        rows of "reference", "candidate", "score" and "system": "contrast: meaning kept" or "contrast: meaning turned".

    Raises:
        ValueError: if `pairs` is not positive.
    """
    return _make_pairs(_opposite_clauses, "meaning", pairs, seed)


@cache
def templates(path: Path = ROLE_SENTENCES) -> dict[str, Any]:
    """Read a file of templates; ValueError names a file that is no plain YAML."""
    return read_plain_yaml(path)[1]


def _make_pairs(clauses: Callable[[Random], Clauses], what: str, pairs: int, seed: int) -> list[Contrast]:
    """Make pairs of drawn clauses; the kinds are "WHAT kept" and "WHAT turned"."""
    if pairs < 1:
        raise ValueError(f"the number of pairs must be at least 1, found {pairs}")
    random, made = np.random.default_rng(seed), list[Contrast]()
    while len(made) < pairs:
        made += _make(clauses, what, random)
    return made[:pairs]


def _make(clauses: Callable[[Random], Clauses], what: str, random: Random) -> list[Contrast]:
    """Make the rows of one draw: meaning kept, meaning turned and, sometimes, a near copy."""
    texts = [[_sentence(clause) for clause in wording] for wording in clauses(random)]
    loss = CHANGED
    if random.random() < JOINED_SHARE:
        # The neighbour has two wordings as well, so that the texts do not share all its words.
        beside = [_sentence(clause) for clause, _ in clauses(random)]
        first = random.random() < 0.5
        texts = [
            [f"{text} {other}" if first else f"{other} {text}" for text in wording]
            for wording, other in zip(texts, beside, strict=True)
        ]
        loss *= JOINED_WEIGHT
    (reference, near_copy), (kept, turned) = texts
    rows = [
        contrast(reference, kept, SAME, f"{what} kept"),
        contrast(reference, turned, SAME - loss, f"{what} turned"),
    ]
    if random.random() < NEAR_COPY_SHARE:
        rows.append(contrast(reference, near_copy, COPY - loss, f"{what} turned"))
    return rows


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."


def _role_clauses(random: Random) -> Clauses:
    """Draw a family of templates and its participants: two wordings, each as it is and with the two exchanged."""
    known = templates()
    if random.random() < DEED_SHARE:
        family = draw(known["deeds"], random)
        said, when = _deed(family, random), True
    else:
        family = draw(known["families"], random)
        said, when = _two_of(family["say"], random), family.get("when", False)
    told = [shell.replace("{s}", wording) for shell, wording in zip(_shells(when, random), said, strict=True)]
    filled = _fillings(told, known["lists"], random)
    kind = draw(family["who"], random)
    two = _some_of(kind, 2, known["lists"], random)
    turned = two[::-1]
    if random.random() < QUALITIES_TURNED_SHARE and all(quality for quality, _ in two):
        turned = [(quality, noun) for (quality, _), (_, noun) in zip(turned, two, strict=True)]
    first, second = (
        (_fill(wording, kind, two, nouns, filled), _fill(wording, kind, turned, nouns, filled))
        for wording, nouns in zip(told, ({}, _again(two, random)), strict=True)
    )
    return first, second


def _deed(deed: dict[str, Any], random: Random) -> list[str]:
    """Draw two different wordings of a deed."""
    said: list[str] = []
    while len(said) < 2:
        past, participle = draw(deed["say"], random).split("/")
        wording = draw(_DEED, random).format(past=past, participle=participle)
        if wording not in said:
            said.append(wording)
    return said


def _opposite_clauses(random: Random) -> Clauses:
    """Draw a family of templates and its participant: two wordings of one side, each beside the other side's."""
    known = templates(OPPOSITE_SENTENCES)
    lists = {**templates()["lists"], **known["lists"]}
    family = draw(known["families"], random)
    said = _two_of(family["say"], random)
    if random.random() < 0.5:
        said = [wording[::-1] for wording in said]
    around = _shells(family.get("when", False), random)
    told = [[shell.replace("{s}", side) for side in wording] for shell, wording in zip(around, said, strict=True)]
    filled = _fillings([side for wording in told for side in wording], lists, random)
    kind = draw(family["who"], random)
    who = _some_of(kind, 1, lists, random)
    first, second = (
        (_fill(kept, kind, who, nouns, filled), _fill(turned, kind, who, nouns, filled))
        for (kept, turned), nouns in zip(told, ({}, _again(who, random)), strict=True)
    )
    return first, second


def _two_of(wordings: list[Any], random: Random) -> list[Any]:
    """Draw two different ones."""
    return [wordings[i] for i in random.permutation(len(wordings))[:2]]


def _shells(when: bool, random: Random) -> list[str]:
    """Draw what stands around a clause ({s}) in two wordings: time or place, if that fits, and who reports it."""
    known, around = templates(), ["{s}", "{s}"]
    framed = random.random() < FRAME_SHARE
    if when and random.random() < WHEN_SHARE:
        extra = draw(known["lists"][draw(("time", "where"), random)], random)
        # Fronted or not in either wording; inside a frame a fronted phrase reads badly.
        around = [f"{extra}, {{s}}" if not framed and random.random() < 0.5 else f"{{s}} {extra}" for _ in range(2)]
    if framed:
        frame = draw(known["frames"], random)
        around = [draw(frame, random).replace("{s}", shell) for shell in around]
    return around


def _fillings(wordings: Iterable[str], lists: dict[str, list[str]], random: Random) -> dict[str, str]:
    """Draw one word for each slot of the wordings that is not one of the participants."""
    slots = {slot for wording in wordings for slot in _SLOT.findall(wording) if slot.lower() not in ("a", "b")}
    return {slot: draw(lists[slot], random) for slot in sorted(slots)}


def _some_of(kind: str, number: int, lists: dict[str, list[str]], random: Random) -> list[Who]:
    """Draw different participants of a kind, all with a quality each or all without."""
    known = templates()
    nouns = [subject for subject, _ in known["pronouns"]] if kind == "pronoun" else lists[kind]
    chosen = [nouns[i] for i in random.permutation(len(nouns))[:number]]
    qualities = [""] * number
    if kind in known["qualities"] and random.random() < QUALITY_SHARE:
        of_kind = known["qualities"][kind]
        qualities = [of_kind[i] for i in random.permutation(len(of_kind))[:number]]
    return list(zip(qualities, chosen, strict=True))


def _again(who: list[Who], random: Random) -> dict[str, str]:
    """Draw other words for some of the participants; none of them is a participant itself."""
    known, nouns = templates()["synonyms"], [noun for _, noun in who]
    names = {noun: noun.split()[-1] for noun in nouns if noun.startswith(("Mr ", "Ms ", "Dr "))}
    others = {noun: other for noun in nouns if (other := {**known, **names}.get(noun))}
    return {noun: other for noun, other in others.items() if other not in nouns and random.random() < SYNONYM_SHARE}


def _fill(wording: str, kind: str, who: list[Who], nouns: dict[str, str], filled: dict[str, str]) -> str:
    """Fill the slots of a wording with participants, under other names where `nouns` has some, and words."""
    objects = dict(templates()["pronouns"])
    article = "the " if kind in _THE else ""
    forms = dict(filled)
    for letter, (quality, noun) in zip("ab", who, strict=False):
        told = f"{article}{quality} {nouns.get(noun, noun)}".replace("  ", " ").strip()
        forms |= {letter.upper(): told, letter: objects.get(told, told)}
    return _SLOT.sub(lambda slot: forms[slot.group(1)], wording)
