"""Contrasts from templates: a sentence in two wordings, each as it is and changed to mean something else.

    bleurt-repro data roles --pairs 16000 --output roles.jsonl
    bleurt-repro data opposites --pairs 16000 --output opposites.jsonl

Roles: two participants of a sentence are exchanged ("A thanked B", "B thanked A"; `role_sentences.yaml`). Parallel
text has few sentences whose roles can be exchanged, and most of them become odd ("the air wowed the crowd"): from
these a metric learns what is odd, not what differs. In a template either participant may act: only the reference tells
which is right. Templates are known to teach entailment models what real sentences do not
(https://aclanthology.org/P19-1334/).

Opposites: a state of affairs, and its opposite in as many words ("failed to", "could ... in the end";
`opposite_sentences.yaml`). A small metric sees a negation, but hardly a change of meaning in a free paraphrase, which
shares few words with the reference either way. Both sides of a template are equally likely.
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

# Quality, or ""; noun, name, or pronoun as a subject.
Participant = tuple[str, str]
# Two wordings of a clause, the reference's and the candidate's, each as it is and with its meaning turned.
Clauses = tuple[tuple[str, str], tuple[str, str]]

ROLE_SENTENCES = Path(__file__).with_name("role_sentences.yaml")
OPPOSITE_SENTENCES = Path(__file__).with_name("opposite_sentences.yaml")

# Shares of the sentences that mention time or place, if the template allows it; that are reported ("police said
# that"); and that have a second sentence before or after them, which means the same in all three texts.
WHEN_SHARE, FRAME_SHARE, JOINED_SHARE = 0.4, 0.25, 0.2
# How often participants have a quality ("the old baker"), and how often the candidate has a synonym for one of them.
QUALITY_SHARE, SYNONYM_SHARE = 0.25, 0.3
# How often the reference's own wording is shown turned, too: a near copy, which differs from it in a few words alone.
NEAR_COPY_SHARE = 0.5
# Share of the role sentences that are about a deed ("A thanked B"), and how often, of two participants with a quality
# each, the qualities alone are exchanged.
DEED_SHARE, QUALITIES_TURNED_SHARE = 0.4, 0.3

_ACTIVE = "{{A}} {past} {{b}}"
_DEED = (_ACTIVE, _ACTIVE, "{{B}} was {participle} by {{a}}", "it was {{A}} that {past} {{b}}")
# Categories of nouns that need an article.
_WITH_ARTICLE = ("person", "group", "building", "thing", "animal", "vehicle", "event")
_SLOT = re.compile(r"\{(\w+)\}")


def make_role_pairs(pairs: int, seed: int = 0) -> list[Contrast]:
    """Make pairs of sentences that agree or disagree in the roles of their two participants.

    Args:
        pairs: number of pairs to make.
        seed: seed of all random choices.

    Returns:
        Rows of "reference", "candidate", "score" and "system": "contrast: roles kept" or "contrast: roles turned".

    Raises:
        ValueError: if `pairs` is not positive.
    """
    return _make_pairs(_role_clauses, "roles", pairs, seed)


def make_opposite_pairs(pairs: int, seed: int = 0) -> list[Contrast]:
    """Make pairs of sentences of the same meaning in other words, or of the opposite meaning.

    Args:
        pairs: number of pairs to make.
        seed: seed of all random choices.

    Returns:
        Rows of "reference", "candidate", "score" and "system": "contrast: meaning kept" or "contrast: meaning turned".

    Raises:
        ValueError: if `pairs` is not positive.
    """
    return _make_pairs(_opposite_clauses, "meaning", pairs, seed)


@cache
def templates(path: Path = ROLE_SENTENCES) -> dict[str, Any]:
    """Read a file of templates; raise ValueError if it is not plain YAML."""
    return read_plain_yaml(path)[1]


def _make_pairs(draw_clauses: Callable[[Random], Clauses], topic: str, pairs: int, seed: int) -> list[Contrast]:
    """Make pairs of drawn clauses; the alterations are called "TOPIC kept" and "TOPIC turned"."""
    if pairs < 1:
        raise ValueError(f"the number of pairs must be at least 1, found {pairs}")
    random, contrasts = np.random.default_rng(seed), list[Contrast]()
    while len(contrasts) < pairs:
        contrasts += _make(draw_clauses, topic, random)
    return contrasts[:pairs]


def _make(draw_clauses: Callable[[Random], Clauses], topic: str, random: Random) -> list[Contrast]:
    """Make the rows of one draw: meaning kept, meaning turned and, sometimes, a near copy."""
    texts = [[_sentence(clause) for clause in wording] for wording in draw_clauses(random)]
    loss = CHANGED
    if random.random() < JOINED_SHARE:
        # The second sentence has two wordings as well, so that the texts do not share all its words.
        neighbours = [_sentence(clause) for clause, _ in draw_clauses(random)]
        first = random.random() < 0.5
        texts = [
            [f"{text} {neighbour}" if first else f"{neighbour} {text}" for text in wording]
            for wording, neighbour in zip(texts, neighbours, strict=True)
        ]
        loss *= JOINED_WEIGHT
    (reference, near_copy), (paraphrase, turned) = texts
    rows = [
        contrast(reference, paraphrase, SAME, f"{topic} kept"),
        contrast(reference, turned, SAME - loss, f"{topic} turned"),
    ]
    if random.random() < NEAR_COPY_SHARE:
        rows.append(contrast(reference, near_copy, COPY - loss, f"{topic} turned"))
    return rows


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."


def _role_clauses(random: Random) -> Clauses:
    """Draw a family of templates and its participants: two wordings, each as it is and with the two exchanged."""
    content = templates()
    # 1. Two wordings of a template, and time, place and reporter around them.
    if random.random() < DEED_SHARE:
        family = draw(content["deeds"], random)
        wordings, when = _deed(family, random), True
    else:
        family = draw(content["families"], random)
        wordings, when = _two_of(family["say"], random), family.get("when", False)
    clauses = [frame.replace("{s}", wording) for frame, wording in zip(_frames(when, random), wordings, strict=True)]
    # 2. Words for their slots, and two participants.
    fillings = _fillings(clauses, content["lists"], random)
    category = draw(family["who"], random)
    participants = _participants(category, 2, content["lists"], random)
    turned = participants[::-1]
    if random.random() < QUALITIES_TURNED_SHARE and all(quality for quality, _ in participants):
        turned = [(quality, noun) for (quality, _), (_, noun) in zip(turned, participants, strict=True)]
    # 3. Both wordings with both orders of the participants; the second wording may call them by synonyms.
    first, second = (
        (_fill(clause, category, participants, nouns, fillings), _fill(clause, category, turned, nouns, fillings))
        for clause, nouns in zip(clauses, ({}, _synonyms(participants, random)), strict=True)
    )
    return first, second


def _deed(deed: dict[str, Any], random: Random) -> list[str]:
    """Draw two different wordings of a deed."""
    wordings: list[str] = []
    while len(wordings) < 2:
        past, participle = draw(deed["say"], random).split("/")
        wording = draw(_DEED, random).format(past=past, participle=participle)
        if wording not in wordings:
            wordings.append(wording)
    return wordings


def _opposite_clauses(random: Random) -> Clauses:
    """Draw a family of templates and its participant: two wordings of one side, each beside the opposite side."""
    content = templates(OPPOSITE_SENTENCES)
    lists = {**templates()["lists"], **content["lists"]}
    # 1. Two wordings of a template, each with its opposite, and time, place and reporter around them.
    family = draw(content["families"], random)
    wordings = _two_of(family["say"], random)
    if random.random() < 0.5:
        wordings = [wording[::-1] for wording in wordings]
    frames = _frames(family.get("when", False), random)
    clauses = [
        [frame.replace("{s}", side) for side in wording] for frame, wording in zip(frames, wordings, strict=True)
    ]
    # 2. Words for their slots, and the participant, whom the second wording may call by a synonym.
    fillings = _fillings([side for clause in clauses for side in clause], lists, random)
    category = draw(family["who"], random)
    participant = _participants(category, 1, lists, random)
    first, second = (
        (_fill(side, category, participant, nouns, fillings), _fill(opposite, category, participant, nouns, fillings))
        for (side, opposite), nouns in zip(clauses, ({}, _synonyms(participant, random)), strict=True)
    )
    return first, second


def _two_of(wordings: list[Any], random: Random) -> list[Any]:
    """Draw two different wordings."""
    return [wordings[i] for i in random.permutation(len(wordings))[:2]]


def _frames(when: bool, random: Random) -> list[str]:
    """Draw the surroundings of a clause ({s}) in two wordings: time or place, if `when`, and who reports it."""
    content, frames = templates(), ["{s}", "{s}"]
    reported = random.random() < FRAME_SHARE
    if when and random.random() < WHEN_SHARE:
        adverbial = draw(content["lists"][draw(("time", "where"), random)], random)
        # Fronted or not in either wording; in a reported clause a fronted phrase reads badly.
        frames = [
            f"{adverbial}, {{s}}" if not reported and random.random() < 0.5 else f"{{s}} {adverbial}" for _ in range(2)
        ]
    if reported:
        report = draw(content["frames"], random)
        frames = [draw(report, random).replace("{s}", frame) for frame in frames]
    return frames


def _fillings(clauses: Iterable[str], lists: dict[str, list[str]], random: Random) -> dict[str, str]:
    """Draw one word for each slot of the clauses that is not a participant."""
    slots = {slot for clause in clauses for slot in _SLOT.findall(clause) if slot.lower() not in ("a", "b")}
    return {slot: draw(lists[slot], random) for slot in sorted(slots)}


def _participants(category: str, number: int, lists: dict[str, list[str]], random: Random) -> list[Participant]:
    """Draw different participants of a category, all with a quality or all without."""
    content = templates()
    nouns = [subject for subject, _ in content["pronouns"]] if category == "pronoun" else lists[category]
    drawn_nouns = [nouns[i] for i in random.permutation(len(nouns))[:number]]
    drawn_qualities = [""] * number
    if category in content["qualities"] and random.random() < QUALITY_SHARE:
        qualities = content["qualities"][category]
        drawn_qualities = [qualities[i] for i in random.permutation(len(qualities))[:number]]
    return list(zip(drawn_qualities, drawn_nouns, strict=True))


def _synonyms(participants: list[Participant], random: Random) -> dict[str, str]:
    """Draw synonyms for some of the participants; none of them is a participant itself."""
    nouns = [noun for _, noun in participants]
    surnames = {noun: noun.split()[-1] for noun in nouns if noun.startswith(("Mr ", "Ms ", "Dr "))}
    synonyms = {**templates()["synonyms"], **surnames}
    available = {noun: synonym for noun in nouns if (synonym := synonyms.get(noun))}
    return {
        noun: synonym
        for noun, synonym in available.items()
        if synonym not in nouns and random.random() < SYNONYM_SHARE
    }


def _fill(
    clause: str, category: str, participants: list[Participant], synonyms: dict[str, str], fillings: dict[str, str]
) -> str:
    """Fill the slots of a clause with words and participants, under their synonyms where there are any."""
    objects = dict(templates()["pronouns"])
    article = "the " if category in _WITH_ARTICLE else ""
    forms = dict(fillings)
    for letter, (quality, noun) in zip("ab", participants, strict=False):
        subject = f"{article}{quality} {synonyms.get(noun, noun)}".replace("  ", " ").strip()
        forms |= {letter.upper(): subject, letter: objects.get(subject, subject)}
    return _SLOT.sub(lambda slot: forms[slot.group(1)], clause)
