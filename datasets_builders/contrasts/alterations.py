"""Alterations: rules that change one thing in an English sentence, after which it means something else, or still the same.

| another meaning | less, or more | the same meaning |
|---|---|---|
| `change_number`, `change_magnitude`, `change_name`, `change_negation`, `change_tense`, `swap_roles` | `leave_out`, `put_in` | `make_passive`, `move_phrase`, `vary_form` |

Each returns the altered text, or None where it finds nothing to change. They are rules over words, without a parser: some
results are clumsy, a few do not mean what they should. For training, not for testing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from decimal import Decimal

from bleurt_repro.datasets_builders.contrasts import Random

WORD = re.compile(r"\w+(?:['’]\w+)*")

_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"(?<![\d.,:/-])\d+(?:,\d{3})*(?:\.\d+)?(?![\d:/-]|[.,]\d)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}")
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b")
_NEGATION = re.compile(r"(?:(?<=\w)n't\b| not\b| never\b)")
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|should|must|may|might|does|did)\b(?! not|n't)"
)
_TENSES = {
    "is": ("was", "will be"),
    "are": ("were", "will be"),
    "was": ("is", "will be"),
    "were": ("are", "will be"),
    "has": ("had", "will have"),
    "have": ("had", "will have"),
    "had": ("has", "will have"),
    "will": ("did", "would"),
    "does": ("did",),
    "do": ("did",),
    "did": ("will",),
    "can": ("could",),
    "could": ("can",),
}
_TENSE = re.compile(rf"\b(?:{'|'.join(_TENSES)})\b(?!n't)")
_PRONOUNS = {"he": "him", "she": "her", "they": "them", "i": "me", "we": "us"}
_SUBJECTS = {other: one for one, other in _PRONOUNS.items()}
_PHRASE_STARTS = (
    "about after and at because before but by during for from if in near on that to until when where which while who "
    "with without"
).split()
_BREAK = re.compile(rf",? (?=(?:{'|'.join(_PHRASE_STARTS)}) )|(?:[,;:]|[.!?](?= [A-Z])) ")
_END = re.compile(r"[.!?]*$")
_NOUN = re.compile(r"(?<=\b[Tt]he )[a-z]{3,}(?= (?:and|of|in|on|to|is|was|has|had|will|by|with|from|at)\b|[,.!?]|$)")

# Past tenses that are not formed with -ed, with their participles where these differ.
_IRREGULAR = {
    past: participle or past
    for past, _, participle in (
        pair.partition(":")
        for pair in (
            "ate:eaten beat:beaten bit:bitten bought broke:broken brought built caught chose:chosen drew:drawn drove:driven "
            "fed felt forgot:forgotten found gave:given heard held hid:hidden hit kept knew:known led left lost made met "
            "paid saw:seen sent shot sold stole:stolen taught threw:thrown told took:taken won wore:worn wrote:written"
        ).split()
    )
}
_ONE = r"(?:(?!Wh|That|This|It)[A-Z][a-z]+|(?:[Tt]he|[Mm]y|[Hh]is|[Oo]ur|[Tt]heir|[Yy]our|[Aa]n?) [a-z]+"
_ACTIVE = re.compile(
    rf"(?P<who>{_ONE}|He|She|They|We|I)) (?P<did>[a-z]+ed|{'|'.join(_IRREGULAR)}) (?P<whom>{_ONE}|him|her|them|us|me))"
    r"(?P<rest>(?: (?:about|after|at|before|by|during|for|from|in|near|on|to|with) [^,;:]+)?[.!?])"
)
_FRONTED = re.compile(
    r"((?:After|At|Because|Before|During|If|In|On|Since|Until|When|While) [^,.;:?!]+), ([^;:?!]+)([.!])"
)
_ASKED = re.compile(
    r"\b(?:ask|asked|know|knew|care|see|sure|tell|wonder|wondered) (?:if|when)\b"
)  # "I wonder if he knows."
_TRAILING = re.compile(
    r"([^,;:?!]{8,}?),? ((?:after|because|before|during|if|in|on|since|until|when|while) [^,.;:?!]{6,})([.!])"
)
# What stands between two members of a list: commas, "and" or "or", articles, and other members of one or two words.
_LISTED = re.compile(
    r"(?:,? (?:and|or|&) (?:the )?|, (?:the )?)(?:(?:\w+ )?\w+(?:,? (?:and|or|&) (?:the )?|, (?:the )?))*"
)


def change_number(text: str, random: Random) -> str | None:
    """Replace a digit, or a number word from two to twelve, by another; None if there is none."""
    digits, words = list(_DIGIT.finditer(text)), list(_NUMBER_WORD.finditer(text))
    if digits:
        place = digits[random.integers(len(digits))]
        others = [digit for digit in "123456789" if digit != place.group()]
    elif words:
        place = words[random.integers(len(words))]
        others = [word for word in _NUMBER_WORDS if word != place.group()]
    else:
        return None
    return text[: place.start()] + others[random.integers(len(others))] + text[place.end() :]


def change_magnitude(text: str, random: Random) -> str | None:
    """Make a number written in digits ten or a hundred times larger or smaller ("1,200" to "120"); None if there is none."""
    places = list(_DIGITS.finditer(text))
    if not places:
        return None
    place = places[random.integers(len(places))]
    number = Decimal(place.group().replace(",", ""))
    factor = (Decimal(10), Decimal(100), Decimal("0.1"), Decimal("0.01"))[random.integers(4)]
    changed = number * factor
    if changed == number:
        return None
    grouped = "," if "," in place.group() or changed >= 10_000 else ""
    written = f"{changed.normalize():{grouped}f}"
    return text[: place.start()] + written + text[place.end() :]


def names_in(text: str) -> list[str]:
    """Return the words with a capital inside sentences."""
    return _NAME.findall(text)


def change_name(text: str, names: Sequence[str], random: Random) -> str | None:
    """Replace a word with a capital, inside a sentence, by one of `names`; None if there is none or no other."""
    places = list(_NAME.finditer(text))
    if not places:
        return None
    place = places[random.integers(len(places))]
    others = [name for name in names if name not in text]
    if not others:
        return None
    return text[: place.start()] + others[random.integers(len(others))] + text[place.end() :]


def change_negation(text: str, random: Random) -> str | None:
    """Remove an English negation or, where there is none, insert one; None if neither is possible."""
    if negated := _NEGATION.search(text):
        return text[: negated.start()] + text[negated.end() :]
    places = list(_AUXILIARY.finditer(text))
    if not places:
        return None
    end = places[random.integers(len(places))].end()
    return text[:end] + " not" + text[end:]


def change_tense(text: str, random: Random) -> str | None:
    """Change the tense of an auxiliary ("is" to "was"); None if there is none."""
    places = list(_TENSE.finditer(text))
    if not places:
        return None
    place = places[random.integers(len(places))]
    others = _TENSES[place.group()]
    return text[: place.start()] + others[random.integers(len(others))] + text[place.end() :]


def swap_roles(text: str, names: Collection[str], random: Random) -> str | None:
    """Exchange two of `names`, two nouns after "the", or a subject and an object pronoun; None if there are none, or listed ones."""
    known = [place for place in WORD.finditer(text) if place.group() in names]
    for places in (known, list(_NOUN.finditer(text))):
        if len({place.group() for place in places}) > 1:
            one, two = (places[i] for i in sorted(random.permutation(len(places))[:2]))
            between = text[one.end() : two.start()]
            # In a list ("France, Italy and Spain", "the cat and the dog") the order does not matter.
            if one.group() != two.group() and not _LISTED.fullmatch(between):
                return text[: one.start()] + two.group() + between + one.group() + text[two.end() :]
    return _swap_pronouns(text)


def alter_alike(text: str, altered: str, other: str) -> str | None:
    """Alter another text as one was: "Tom was seen by Ann." as "Ann saw Tom." became "Tom saw Ann.".

    Args:
        text: the first, before.
        altered: the first, with words put in the place of others, one for one.
        other: a text that has all words which were replaced.

    Returns:
        the other text with the same words replaced; None if it lacks one of them, or if more than words were replaced.
    """
    before, after = WORD.findall(text), WORD.findall(altered)
    if len(before) != len(after) or WORD.split(text) != WORD.split(altered):
        return None
    changes = {(one, two) for one, two in zip(before, after, strict=True) if one != two}
    new = dict(changes)
    if not new or len(new) < len(changes) or not set(new) <= set(WORD.findall(other)):
        return None
    return WORD.sub(lambda place: new.get(place.group(), place.group()), other)


def make_passive(text: str) -> str | None:
    """Turn a sentence of subject, verb and object into the passive: "Tom saw Mary." becomes "Mary was seen by Tom."."""
    found = _ACTIVE.fullmatch(text)
    if found is None:
        return None
    who, whom = found["who"], found["whom"]
    many = whom in ("them", "us") or (" " in whom and whom.endswith("s") and not whom.endswith("ss"))
    be = "were" if many else "was"
    subject = _SUBJECTS.get(whom, whom)
    agent = _PRONOUNS.get(who.lower(), who[:1].lower() + who[1:] if " " in who else who)
    done = _IRREGULAR.get(found["did"], found["did"])
    return f"{subject[:1].upper()}{subject[1:]} {be} {done} by {agent}{found['rest']}"


def move_phrase(text: str, names: Collection[str]) -> str | None:
    """Move a phrase of time, place or reason from the beginning to the end, or the other way round."""
    if found := _FRONTED.fullmatch(text):
        phrase, rest, end = found.groups()
        return f"{rest[:1].upper()}{rest[1:]} {phrase[:1].lower()}{phrase[1:]}{end}"
    if (found := _TRAILING.fullmatch(text)) and not _ASKED.search(text):
        rest, phrase, end = found.groups()
        first = WORD.match(rest)
        if first and first.group() not in names and first.group().split("'")[0] != "I":
            rest = rest[:1].lower() + rest[1:]
        return f"{phrase[:1].upper()}{phrase[1:]}, {rest}{end}"
    return None


def leave_out(text: str, random: Random) -> str | None:
    """Leave out a phrase between two breaks (punctuation, conjunctions, prepositions); None if there is only one."""
    parts = _parts(text)
    if len(parts) < 2:
        return None
    i = int(random.integers(1, len(parts)))
    kept = parts[:i] + parts[i + 1 :]
    return _finish("".join(kept), text)


def put_in(text: str, other: str, random: Random) -> str | None:
    """Insert a phrase of another text at a break or at the end; None if the other has none."""
    parts, strangers = _parts(text), _parts(other)[1:]
    strangers = [part for part in strangers if part.strip(" ,").lower() not in text.lower()]
    if not strangers:
        return None
    part = strangers[random.integers(len(strangers))]
    i = int(random.integers(1, len(parts) + 1))
    return _finish("".join([*parts[:i], part, *parts[i:]]), text)


def vary_form(text: str, random: Random) -> str:
    """Vary what does not change the meaning: casing, punctuation, blanks, quotation marks and contractions."""
    kind = random.integers(6)
    if kind == 0:
        return text.lower()
    if kind == 1:
        return _END.sub("", text)
    if kind == 2:
        return re.sub(r"[,;:]", "", text).lower().rstrip(".!?")
    if kind == 3:
        return text.upper() if random.random() < 0.3 else re.sub(r" ", "  ", text, count=1)
    if kind == 4:
        return re.sub(r"([.,!?;:])", r" \1", text)
    return vary_contractions(text)


def vary_contractions(text: str) -> str:
    """Write contractions ("isn't") in full, or the other way round where there are none."""
    if "n't" in text:
        text = re.sub(r"\b(W|w)on't\b", r"\1ill not", text)
        text = re.sub(r"\b(C|c)an't\b", r"\1annot", text)
        return re.sub(r"n't\b", " not", text)
    text = re.sub(r"\b(is|are|was|were|has|have|had|would|could|should|does|did|do) not\b", r"\1n't", text)
    return re.sub(r"\b(I) am\b", r"\1'm", re.sub(r"\b(It|He|She|it|he|she) is\b", r"\1's", text))


def _swap_pronouns(text: str) -> str | None:
    words = [place for place in WORD.finditer(text) if place.group().lower() in _PRONOUNS]
    if not words:
        return None
    subject, form = words[0], _PRONOUNS[words[0].group().lower()]
    objects = [place for place in WORD.finditer(text, subject.end()) if place.group() in _SUBJECTS]
    other = next((place for place in objects if place.group() != form), None)
    if other is None:
        return None
    new = _SUBJECTS[other.group()]
    new = new.capitalize() if subject.start() == 0 or new == "i" else new
    return text[: subject.start()] + new + text[subject.end() : other.start()] + form + text[other.end() :]


def _parts(text: str) -> list[str]:
    """Cut a text at its breaks; what begins a phrase stays with it."""
    body = _END.sub("", text)
    ends = [match.start() for match in _BREAK.finditer(body)]
    parts = [body[start:end] for start, end in zip([0, *ends], [*ends, len(body)], strict=True)]
    return [part for part in parts if part]


def _finish(text: str, like: str) -> str:
    text = text.strip(" ,;:")
    end = _END.search(like)
    return text[:1].upper() + text[1:] + (end.group() if end else "")
