"""Sentences made of templates: two wordings of a clause, each as it is and turned into what it does not mean.

What draws the clauses is in `role_sentences` and `opposite_sentences`; this dresses them up, and makes pairs of them. Lists of
words are those of role_sentences.yaml. Scores are those of `contrast_pairs`, in standard deviations of ratings.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.datasets_builders.contrast_pairs import CHANGED, COPY, JOINED_WEIGHT, SAME
from bleurt_repro.datasets_builders.yaml_files import read_plain_yaml

Random = np.random.Generator
Row = dict[str, Any]
Who = tuple[str, str]  # quality, or ""; noun, name, or pronoun as a subject
# Two wordings of a clause, the reference's and the candidate's, each as it is and turned into what it does not mean.
Clauses = tuple[tuple[str, str], tuple[str, str]]

WORDS = Path(__file__).with_name("role_sentences.yaml")
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
    from bleurt_repro.metric.atomic import write_text

    write_text(Path(output), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made))
    return dict(Counter(row["system"] for row in made))


@cache
def templates(path: Path = WORDS) -> dict[str, Any]:
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
