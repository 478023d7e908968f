"""Alterations: rules that change one thing in an English sentence.

| changes the meaning | says less, or more | keeps the meaning |
|---|---|---|
| `change_number`, `change_magnitude`, `change_name`, `change_negation`, `change_tense`, `swap_roles` | `leave_out`, `put_in` | `make_passive`, `move_phrase`, `vary_form` |

Each returns the altered text, or None if it finds nothing to change. The rules look at words, without a parser: some
results are clumsy, and a few do not mean what they should. Use them for training, not for testing.
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
_SUBJECTS = {object_form: subject for subject, object_form in _PRONOUNS.items()}
_PHRASE_STARTS = (
    "about after and at because before but by during for from if in near on that to until when where which while who "
    "with without"
).split()
_BREAK = re.compile(rf",? (?=(?:{'|'.join(_PHRASE_STARTS)}) )|(?:[,;:]|[.!?](?= [A-Z])) ")
_END = re.compile(r"[.!?]*$")
_NOUN = re.compile(r"(?<=\b[Tt]he )[a-z]{3,}(?= (?:and|of|in|on|to|is|was|has|had|will|by|with|from|at)\b|[,.!?]|$)")

# Irregular past tenses, each with its participle if that differs.
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
_PARTICIPANT = r"(?:(?!Wh|That|This|It)[A-Z][a-z]+|(?:[Tt]he|[Mm]y|[Hh]is|[Oo]ur|[Tt]heir|[Yy]our|[Aa]n?) [a-z]+"
_ACTIVE = re.compile(
    rf"(?P<who>{_PARTICIPANT}|He|She|They|We|I)) (?P<did>[a-z]+ed|{'|'.join(_IRREGULAR)}) "
    rf"(?P<whom>{_PARTICIPANT}|him|her|them|us|me))"
    r"(?P<rest>(?: (?:about|after|at|before|by|during|for|from|in|near|on|to|with) [^,;:]+)?[.!?])"
)
_FRONTED = re.compile(
    r"((?:After|At|Because|Before|During|If|In|On|Since|Until|When|While) [^,.;:?!]+), ([^;:?!]+)([.!])"
)
_EMBEDDED_QUESTION = re.compile(
    r"\b(?:ask|asked|know|knew|care|see|sure|tell|wonder|wondered) (?:if|when)\b"
)  # "I wonder if he knows."
_TRAILING = re.compile(
    r"([^,;:?!]{8,}?),? ((?:after|because|before|during|if|in|on|since|until|when|while) [^,.;:?!]{6,})([.!])"
)
# The text between two members of a list: commas, "and" or "or", articles, and other members of one or two words.
_LISTED = re.compile(
    r"(?:,? (?:and|or|&) (?:the )?|, (?:the )?)(?:(?:\w+ )?\w+(?:,? (?:and|or|&) (?:the )?|, (?:the )?))*"
)


def change_number(text: str, random: Random) -> str | None:
    """Replace a digit, or a number word from two to twelve, by another; None if there is none."""
    digits, number_words = list(_DIGIT.finditer(text)), list(_NUMBER_WORD.finditer(text))
    if digits:
        match = digits[random.integers(len(digits))]
        alternatives = [digit for digit in "123456789" if digit != match.group()]
    elif number_words:
        match = number_words[random.integers(len(number_words))]
        alternatives = [word for word in _NUMBER_WORDS if word != match.group()]
    else:
        return None
    return text[: match.start()] + alternatives[random.integers(len(alternatives))] + text[match.end() :]


def change_magnitude(text: str, random: Random) -> str | None:
    """Make a number in digits ten or a hundred times larger or smaller ("1,200" to "120"); None if there is none."""
    matches = list(_DIGITS.finditer(text))
    if not matches:
        return None
    match = matches[random.integers(len(matches))]
    number = Decimal(match.group().replace(",", ""))
    factor = (Decimal(10), Decimal(100), Decimal("0.1"), Decimal("0.01"))[random.integers(4)]
    changed = number * factor
    if changed == number:
        return None
    grouped = "," if "," in match.group() or changed >= 10_000 else ""
    written = f"{changed.normalize():{grouped}f}"
    return text[: match.start()] + written + text[match.end() :]


def names_in(text: str) -> list[str]:
    """Return the words with a capital inside sentences."""
    return _NAME.findall(text)


def change_name(text: str, names: Sequence[str], random: Random) -> str | None:
    """Replace a word with a capital, inside a sentence, by one of `names`; None if there is none or no alternative."""
    matches = list(_NAME.finditer(text))
    if not matches:
        return None
    match = matches[random.integers(len(matches))]
    alternatives = [name for name in names if name not in text]
    if not alternatives:
        return None
    return text[: match.start()] + alternatives[random.integers(len(alternatives))] + text[match.end() :]


def change_negation(text: str, random: Random) -> str | None:
    """Remove an English negation or, if there is none, insert one; None if neither is possible."""
    if negation := _NEGATION.search(text):
        return text[: negation.start()] + text[negation.end() :]
    auxiliaries = list(_AUXILIARY.finditer(text))
    if not auxiliaries:
        return None
    end = auxiliaries[random.integers(len(auxiliaries))].end()
    return text[:end] + " not" + text[end:]


def change_tense(text: str, random: Random) -> str | None:
    """Change the tense of an auxiliary ("is" to "was"); None if there is none."""
    matches = list(_TENSE.finditer(text))
    if not matches:
        return None
    match = matches[random.integers(len(matches))]
    alternatives = _TENSES[match.group()]
    return text[: match.start()] + alternatives[random.integers(len(alternatives))] + text[match.end() :]


def swap_roles(text: str, names: Collection[str], random: Random) -> str | None:
    """Exchange two participants of a sentence.

    Args:
        text: a sentence.
        names: names of participants.
        random: decides which two are exchanged.

    Returns: The sentence with two of `names`, two nouns after "the", or a subject and an object pronoun exchanged;
        None if it has none of these, or if the two are members of a list.
    """
    participants = [match for match in WORD.finditer(text) if match.group() in names]
    for matches in (participants, list(_NOUN.finditer(text))):
        if len({match.group() for match in matches}) > 1:
            first, second = (matches[i] for i in sorted(random.permutation(len(matches))[:2]))
            between = text[first.end() : second.start()]
            # In a list ("France, Italy and Spain", "the cat and the dog") the order does not matter.
            if first.group() != second.group() and not _LISTED.fullmatch(between):
                return text[: first.start()] + second.group() + between + first.group() + text[second.end() :]
    return _swap_pronouns(text)


def make_passive(text: str) -> str | None:
    """Turn "subject verb object" into the passive: "Tom saw Mary." becomes "Mary was seen by Tom."; else return None."""
    match = _ACTIVE.fullmatch(text)
    if match is None:
        return None
    who, whom = match["who"], match["whom"]
    plural = whom in ("them", "us") or (" " in whom and whom.endswith("s") and not whom.endswith("ss"))
    be = "were" if plural else "was"
    subject = _SUBJECTS.get(whom, whom)
    agent = _PRONOUNS.get(who.lower(), who[:1].lower() + who[1:] if " " in who else who)
    participle = _IRREGULAR.get(match["did"], match["did"])
    return f"{subject[:1].upper()}{subject[1:]} {be} {participle} by {agent}{match['rest']}"


def move_phrase(text: str, names: Collection[str]) -> str | None:
    """Move a phrase of time, place or reason from the beginning to the end, or from the end to the beginning."""
    if match := _FRONTED.fullmatch(text):
        phrase, clause, end = match.groups()
        return f"{clause[:1].upper()}{clause[1:]} {phrase[:1].lower()}{phrase[1:]}{end}"
    if (match := _TRAILING.fullmatch(text)) and not _EMBEDDED_QUESTION.search(text):
        clause, phrase, end = match.groups()
        first = WORD.match(clause)
        if first and first.group() not in names and first.group().split("'")[0] != "I":
            clause = clause[:1].lower() + clause[1:]
        return f"{phrase[:1].upper()}{phrase[1:]}, {clause}{end}"
    return None


def leave_out(text: str, random: Random) -> str | None:
    """Leave out a phrase between two breaks (punctuation, conjunctions, prepositions); None if there is only one."""
    phrases = _phrases(text)
    if len(phrases) < 2:
        return None
    i = int(random.integers(1, len(phrases)))
    return _finish("".join(phrases[:i] + phrases[i + 1 :]), text)


def put_in(text: str, donor: str, random: Random) -> str | None:
    """Insert a phrase of another text, `donor`, at a break or at the end; None if the donor has none."""
    phrases, insertable = _phrases(text), _phrases(donor)[1:]
    insertable = [phrase for phrase in insertable if phrase.strip(" ,").lower() not in text.lower()]
    if not insertable:
        return None
    phrase = insertable[random.integers(len(insertable))]
    i = int(random.integers(1, len(phrases) + 1))
    return _finish("".join([*phrases[:i], phrase, *phrases[i:]]), text)


def vary_form(text: str, random: Random) -> str:
    """Vary what does not change the meaning: casing, punctuation, blanks, quotation marks and contractions."""
    variation = random.integers(6)
    if variation == 0:
        return text.lower()
    if variation == 1:
        return _END.sub("", text)
    if variation == 2:
        return re.sub(r"[,;:]", "", text).lower().rstrip(".!?")
    if variation == 3:
        return text.upper() if random.random() < 0.3 else re.sub(r" ", "  ", text, count=1)
    if variation == 4:
        return re.sub(r"([.,!?;:])", r" \1", text)
    return vary_contractions(text)


def vary_contractions(text: str) -> str:
    """Write contractions ("isn't") in full or, if there are none, contract what can be contracted."""
    if "n't" in text:
        text = re.sub(r"\b(W|w)on't\b", r"\1ill not", text)
        text = re.sub(r"\b(C|c)an't\b", r"\1annot", text)
        return re.sub(r"n't\b", " not", text)
    text = re.sub(r"\b(is|are|was|were|has|have|had|would|could|should|does|did|do) not\b", r"\1n't", text)
    return re.sub(r"\b(I) am\b", r"\1'm", re.sub(r"\b(It|He|She|it|he|she) is\b", r"\1's", text))


def _swap_pronouns(text: str) -> str | None:
    pronouns = [match for match in WORD.finditer(text) if match.group().lower() in _PRONOUNS]
    if not pronouns:
        return None
    subject, object_form = pronouns[0], _PRONOUNS[pronouns[0].group().lower()]
    objects = [match for match in WORD.finditer(text, subject.end()) if match.group() in _SUBJECTS]
    object_ = next((match for match in objects if match.group() != object_form), None)
    if object_ is None:
        return None
    subject_form = _SUBJECTS[object_.group()]
    subject_form = subject_form.capitalize() if subject.start() == 0 or subject_form == "i" else subject_form
    between = text[subject.end() : object_.start()]
    return text[: subject.start()] + subject_form + between + object_form + text[object_.end() :]


def _phrases(text: str) -> list[str]:
    """Cut a text at its breaks; a conjunction or preposition stays with the phrase that it begins."""
    body = _END.sub("", text)
    ends = [match.start() for match in _BREAK.finditer(body)]
    phrases = [body[start:end] for start, end in zip([0, *ends], [*ends, len(body)], strict=True)]
    return [phrase for phrase in phrases if phrase]


def _finish(text: str, original: str) -> str:
    """Give a text a capital at its beginning and the final punctuation of the original."""
    text = text.strip(" ,;:")
    end = _END.search(original)
    return text[:1].upper() + text[1:] + (end.group() if end else "")
