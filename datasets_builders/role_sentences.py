"""Sentences of who did what to whom, said in two ways, against one in which the two have changed places.

    bleurt-repro data roles --pairs 16000 --output roles.jsonl

Parallel text has few sentences whose roles can be turned round, and turned round most of them are odd ("the air wowed the
crowd"): a metric learns from such what is odd, not what differs (docs/training-log.md). Here both are made of templates
(`role_sentences.yaml`) in which either of the two may be the one who does it: only the reference tells which is right. That
templates teach a model of text what it had missed in real sentences is known of entailment (https://aclanthology.org/P19-1334/,
section 7).

Scores are those of `contrast_pairs`, in standard deviations of ratings.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bleurt_repro.datasets_builders.contrast_pairs import CHANGED, COPY, JOINED_WEIGHT, SAME

Random = np.random.Generator
Row = dict[str, Any]
_Who = tuple[str, str]  # quality, or ""; noun, name, or pronoun as a subject

TEMPLATES = Path(__file__).with_suffix(".yaml")
# Of the sentences: how many are about a deed ("A thanked B"), not of another family; say when or where; stand in a frame
# ("police said that"); are followed or preceded by another sentence, the same in all three texts.
DEED_SHARE, WHEN_SHARE, FRAME_SHARE, JOINED_SHARE = 0.4, 0.4, 0.25, 0.2
# Of the two: how often both have a quality ("the old baker"), and how often these alone change places then; how often a
# text said again has another word for one of them.
QUALITY_SHARE, QUALITIES_TURNED_SHARE, SYNONYM_SHARE = 0.25, 0.3, 0.3
# How often the reference's own wording is shown turned round, too: near copies, which differ in two words' places alone.
NEAR_COPY_SHARE = 0.5

_BARE = ("name", "place", "food", "substance", "pronoun")  # need no "the"
_SLOT = re.compile(r"\{(\w+)\}")
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
    if pairs < 1:
        raise ValueError(f"the number of pairs must be at least 1, found {pairs}")
    random, made = np.random.default_rng(seed), list[Row]()
    while len(made) < pairs:
        made += _make(random)
    return made[:pairs]


def role_file(output: str | Path, pairs: int, seed: int = 0) -> dict[str, int]:
    """Write what `make_role_pairs` gives as JSON lines; return how many pairs of each kind there are."""
    from bleurt_repro.metric.atomic import write_text

    made = make_role_pairs(pairs, seed)
    write_text(Path(output), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made))
    return dict(Counter(row["system"] for row in made))


@cache
def _templates() -> dict[str, Any]:
    import yaml

    return yaml.safe_load(TEMPLATES.read_text(encoding="utf-8"))


def _make(random: Random) -> list[Row]:
    # Two wordings, the reference's and the candidate's, each as it is and turned round.
    texts = [[_sentence(clause) for clause in wording] for wording in _clauses(random)]
    loss = CHANGED
    if random.random() < JOINED_SHARE:
        # The neighbour is said in two ways as well, so that the texts do not agree in it word for word.
        beside = [_sentence(clause) for clause, _ in _clauses(random)]
        first = random.random() < 0.5
        texts = [
            [f"{text} {other}" if first else f"{other} {text}" for text in wording]
            for wording, other in zip(texts, beside, strict=True)
        ]
        loss *= JOINED_WEIGHT
    (reference, near_copy), (kept, turned) = texts
    rows = [_row(reference, kept, SAME, "kept"), _row(reference, turned, SAME - loss, "turned")]
    if random.random() < NEAR_COPY_SHARE:
        rows.append(_row(reference, near_copy, COPY - loss, "turned"))
    return rows


def _clauses(random: Random) -> tuple[tuple[str, str], tuple[str, str]]:
    """Draw a family and who it is about: two wordings of it, each as it is and turned round."""
    known = _templates()
    if random.random() < DEED_SHARE:
        family, wordings, when = _deed(_draw(known["deeds"], random), random)
    else:
        family = _draw(known["families"], random)
        wordings = [family["say"][i] for i in random.permutation(len(family["say"]))[:2]]
        when = family.get("when", False)
    framed = random.random() < FRAME_SHARE
    if when and random.random() < WHEN_SHARE:
        extra = _draw(known["lists"][_draw(("time", "where"), random)], random)
        # Fronted or not in either wording; inside a frame a fronted phrase reads badly.
        wordings = [
            f"{extra}, {wording}" if not framed and random.random() < 0.5 else f"{wording} {extra}"
            for wording in wordings
        ]
    if framed:
        frame = _draw(known["frames"], random)
        wordings = [_draw(frame, random).replace("{s}", wording) for wording in wordings]
    slots = {slot for wording in wordings for slot in _SLOT.findall(wording) if slot.lower() not in ("a", "b")}
    filled = {slot: _draw(known["lists"][slot], random) for slot in sorted(slots)}
    kind = _draw(family["who"], random)
    two = _two(kind, random)
    turned = two[::-1]
    if random.random() < QUALITIES_TURNED_SHARE and all(quality for quality, _ in two):
        turned = [(quality, noun) for (quality, _), (_, noun) in zip(turned, two, strict=True)]
    again = _again(two, random)
    first, second = (
        (_fill(wording, kind, two, nouns, filled), _fill(wording, kind, turned, nouns, filled))
        for wording, nouns in zip(wordings, ({}, again), strict=True)
    )
    return first, second


def _deed(deed: dict[str, Any], random: Random) -> tuple[dict[str, Any], list[str], bool]:
    said: list[str] = []
    while len(said) < 2:
        past, participle = _draw(deed["say"], random).split("/")
        wording = _draw(_DEED, random).format(past=past, participle=participle)
        if wording not in said:
            said.append(wording)
    return deed, said, True


def _two(kind: str, random: Random) -> list[_Who]:
    """Draw two of a kind, with a quality each or without."""
    known = _templates()
    nouns = [subject for subject, _ in known["pronouns"]] if kind == "pronoun" else known["lists"][kind]
    chosen = [nouns[i] for i in random.permutation(len(nouns))[:2]]
    qualities = ["", ""]
    if kind in known["qualities"] and random.random() < QUALITY_SHARE:
        qualities = [known["qualities"][kind][i] for i in random.permutation(len(known["qualities"][kind]))[:2]]
    return list(zip(qualities, chosen, strict=True))


def _again(two: list[_Who], random: Random) -> dict[str, str]:
    """Draw other words for the two, which neither of them is."""
    known, nouns = _templates()["synonyms"], [noun for _, noun in two]
    names = {noun: noun.split()[-1] for noun in nouns if noun.startswith(("Mr ", "Ms ", "Dr "))}
    others = {noun: other for noun in nouns if (other := {**known, **names}.get(noun))}
    return {noun: other for noun, other in others.items() if other not in nouns and random.random() < SYNONYM_SHARE}


def _fill(wording: str, kind: str, two: list[_Who], nouns: dict[str, str], filled: dict[str, str]) -> str:
    objects = dict(_templates()["pronouns"])
    article = "" if kind in _BARE else "the "
    forms = dict(filled)
    for letter, (quality, noun) in zip("ab", two, strict=True):
        told = f"{article}{quality} {nouns.get(noun, noun)}".replace("  ", " ").strip()
        forms |= {letter.upper(): told, letter: objects.get(told, told)}
    return _SLOT.sub(lambda slot: forms[slot.group(1)], wording)


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}."


def _draw(of: Any, random: Random) -> Any:
    return of[int(random.integers(len(of)))]


def _row(reference: str, candidate: str, score: float, roles: str) -> Row:
    return {
        "reference": reference,
        "candidate": candidate,
        "score": round(score, 4),
        "system": f"contrast: roles {roles}",
    }
