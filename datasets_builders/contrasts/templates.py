"""Sentences said again in other words, against the same words with the meaning turned into its opposite.

    bleurt-repro data opposites --pairs 16000 --output opposites.jsonl

A small metric sees that a sentence was negated, but hardly that "failed to" is the opposite of "could ... in the end": a
change of meaning in a free paraphrase, which shares few words with the reference either way. As in `role_sentences`,
both sides are made of templates (`opposite_sentences.yaml`) of which neither is likelier.

Scores are those of `contrast_pairs`, in standard deviations of ratings.

Sentences made of templates: two wordings of a clause, each as it is and turned into what it does not mean.

What draws the clauses is in `role_sentences` and `opposite_sentences`; this dresses them up, and makes pairs of them. Lists of
words are those of role_sentences.yaml. Scores are those of `contrast_pairs`, in standard deviations of ratings.

Sentences of who did what to whom, said in two ways, against one in which the two have changed places.

    bleurt-repro data roles --pairs 16000 --output roles.jsonl

Parallel text has few sentences whose roles can be turned round, and turned round most of them are odd ("the air wowed the
crowd"): a metric learns from such what is odd, not what differs (docs/development/training-log.md). Here both are made of templates
(`role_sentences.yaml`) in which either of the two may be the one who does it: only the reference tells which is right. That
templates can teach a model what real sentences had not is known of entailment (https://aclanthology.org/P19-1334/).

Scores are those of `contrast_pairs`, in standard deviations of ratings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.datasets_builders.contrasts.parallel_contrasts import CHANGED, COPY, JOINED_WEIGHT, SAME
from bleurt_repro.metric.files.yaml_files import read_plain_yaml

Random = np.random.Generator
Row = dict[str, Any]
Who = tuple[str, str]  # quality, or ""; noun, name, or pronoun as a subject
# Two wordings of a clause, the reference's and the candidate's, each as it is and turned into what it does not mean.
Clauses = tuple[tuple[str, str], tuple[str, str]]

ROLE_SENTENCES = Path(__file__).with_name("role_sentences.yaml")
# Of the sentences: how many say when or where, if that fits; stand in a frame ("police said that"); are followed or preceded
# by another sentence, which all three texts tell rightly.
WHEN_SHARE, FRAME_SHARE, JOINED_SHARE = 0.4, 0.25, 0.2
# How often participants have a quality ("the old baker"); how often a text said again has another word for one of them.
QUALITY_SHARE, SYNONYM_SHARE = 0.25, 0.3
# How often the reference's own wording is shown turned, too: near copies, which differ from it in a few words alone.
NEAR_COPY_SHARE = 0.5

_THE = ("person", "group", "building", "thing", "animal", "vehicle", "event")  # kinds that need an article
_SLOT = re.compile(r"\{(\w+)\}")


def make_pairs(clauses: Callable[[Random], Clauses], what: str, pairs: int, seed: int) -> list[Row]:
    """Make pairs of what draws two wordings of a clause; `what` is kept or turned goes into the column system."""
    if pairs < 1:
        raise ValueError(f"the number of pairs must be at least 1, found {pairs}")
    random, made = np.random.default_rng(seed), list[Row]()
    while len(made) < pairs:
        made += _make(clauses, what, random)
    return made[:pairs]


def write_pairs(output: str | Path, made: list[Row]) -> dict[str, int]:
    """Write pairs as JSON lines; return how many of each kind there are."""
    from bleurt_repro.metric.files.writing import write_json_lines

    write_json_lines(Path(output), made)
    return dict(Counter(row["system"] for row in made))


@cache
def templates(path: Path = ROLE_SENTENCES) -> dict[str, Any]:
    """Give what a file of templates holds; ValueError names a file that is no plain YAML."""
    return read_plain_yaml(path)[1]


def _make(clauses: Callable[[Random], Clauses], what: str, random: Random) -> list[Row]:
    texts = [[_sentence(clause) for clause in wording] for wording in clauses(random)]
    loss = CHANGED
    if random.random() < JOINED_SHARE:
        # The neighbour is said in two ways as well, so that the texts do not agree in it word for word.
        beside = [_sentence(clause) for clause, _ in clauses(random)]
        first = random.random() < 0.5
        texts = [
            [f"{text} {other}" if first else f"{other} {text}" for text in wording]
            for wording, other in zip(texts, beside, strict=True)
        ]
        loss *= JOINED_WEIGHT
    (reference, near_copy), (kept, turned) = texts
    rows = [_row(reference, kept, SAME, f"{what} kept"), _row(reference, turned, SAME - loss, f"{what} turned")]
    if random.random() < NEAR_COPY_SHARE:
        rows.append(_row(reference, near_copy, COPY - loss, f"{what} turned"))
    return rows


def two_of(wordings: list[Any], random: Random) -> list[Any]:
    """Draw two different ones."""
    return [wordings[i] for i in random.permutation(len(wordings))[:2]]


def shells(when: bool, random: Random) -> list[str]:
    """Draw what stands around a clause ({s}) in two wordings: when or where it was, if that fits, and who says so."""
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


def fillings(wordings: Iterable[str], lists: dict[str, list[str]], random: Random) -> dict[str, str]:
    """Draw one word for each slot of the wordings that is not one of the participants."""
    slots = {slot for wording in wordings for slot in _SLOT.findall(wording) if slot.lower() not in ("a", "b")}
    return {slot: draw(lists[slot], random) for slot in sorted(slots)}


def some_of(kind: str, number: int, lists: dict[str, list[str]], random: Random) -> list[Who]:
    """Draw so many different participants of a kind, with a quality each or without."""
    known = templates()
    nouns = [subject for subject, _ in known["pronouns"]] if kind == "pronoun" else lists[kind]
    chosen = [nouns[i] for i in random.permutation(len(nouns))[:number]]
    qualities = [""] * number
    if kind in known["qualities"] and random.random() < QUALITY_SHARE:
        of_kind = known["qualities"][kind]
        qualities = [of_kind[i] for i in random.permutation(len(of_kind))[:number]]
    return list(zip(qualities, chosen, strict=True))


def again(who: list[Who], random: Random) -> dict[str, str]:
    """Draw other words for the participants, which none of them is."""
    known, nouns = templates()["synonyms"], [noun for _, noun in who]
    names = {noun: noun.split()[-1] for noun in nouns if noun.startswith(("Mr ", "Ms ", "Dr "))}
    others = {noun: other for noun in nouns if (other := {**known, **names}.get(noun))}
    return {noun: other for noun, other in others.items() if other not in nouns and random.random() < SYNONYM_SHARE}


def tell(wording: str, kind: str, who: list[Who], nouns: dict[str, str], filled: dict[str, str]) -> str:
    """Put participants, under other names where `nouns` has some, and words into the slots of a wording."""
    objects = dict(templates()["pronouns"])
    article = "the " if kind in _THE else ""
    forms = dict(filled)
    for letter, (quality, noun) in zip("ab", who, strict=False):
        told = f"{article}{quality} {nouns.get(noun, noun)}".replace("  ", " ").strip()
        forms |= {letter.upper(): told, letter: objects.get(told, told)}
    return _SLOT.sub(lambda slot: forms[slot.group(1)], wording)


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."


def draw(of: Any, random: Random) -> Any:
    """Draw one."""
    return of[int(random.integers(len(of)))]


def _row(reference: str, candidate: str, score: float, kind: str) -> Row:
    return {"reference": reference, "candidate": candidate, "score": round(score, 4), "system": f"contrast: {kind}"}


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
    return make_pairs(_role_clauses, "roles", pairs, seed)


def _role_clauses(random: Random) -> Clauses:
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


OPPOSITE_SENTENCES = Path(__file__).with_name("opposite_sentences.yaml")


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
    return make_pairs(_opposite_clauses, "meaning", pairs, seed)


def _templates() -> dict[str, Any]:
    known = templates(OPPOSITE_SENTENCES)
    return {**known, "lists": {**templates()["lists"], **known["lists"]}}


def _opposite_clauses(random: Random) -> Clauses:
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
