"""How sentences of parallel text stand to each other: the same in meaning, or one word apart.

English sentences with one translation in common count as the same in meaning (https://aclanthology.org/P05-1074/ calls
that pivoting).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

from bleurt_repro.datasets_builders.alterations import WORD, Random

# Translations often leave open who is meant: "ihr" is "you", "her" and "their".
_PRONOUNS = frozenset(
    "i you he she it we they me him her us them my your his its our their mine yours hers ours theirs".split()
)
# Pairs grow with the square of how many sentences share a translation, or all words but one; more than this are stock phrases.
_MOST_IN_SLOT = 60


def same_meaning(sentences: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pair different sentences with one translation in common; those of other pronouns are left out."""
    groups: dict[str, set[str]] = defaultdict(set)
    for english, translation in sentences:
        groups[translation].add(english)
    pairs = {
        (one, two)
        for group in groups.values()
        if len(group) < _MOST_IN_SLOT
        for one, two in combinations(sorted(group), 2)
        if one.lower() != two.lower() and _pronouns(one) == _pronouns(two)
    }
    return sorted(pairs)


def one_word_apart(
    texts: Sequence[str], same: Iterable[tuple[str, str]]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Find the sentences that differ from another in one word, but for those of the same meaning.

    Returns:
        for each such sentence the others; and for each word, in lower case, the words that stand in its place there.
    """
    known = set(same)
    slots: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for text in texts:
        for place in WORD.finditer(text):
            slots[f"{text[: place.start()]}\0{text[place.end() :]}"].append((place.group(), text))
    neighbours: dict[str, list[str]] = defaultdict(list)
    words: dict[str, Counter[str]] = defaultdict(Counter)
    alike: set[tuple[str, str]] = set()
    for frame, filled in slots.items():
        if not 1 < len(filled) < _MOST_IN_SLOT or len(frame.split()) < 3:
            continue
        for (one, text), (two, other) in combinations(filled, 2):
            pair = (one.lower(), two.lower())
            if (text, other) in known or (other, text) in known:
                alike.update((pair, pair[::-1]))  # seen in one place, taken for synonyms everywhere
                continue
            neighbours[text].append(other)
            neighbours[other].append(text)
            words[pair[0]][pair[1]] += 1
            words[pair[1]][pair[0]] += 1
    substitutes = {
        word: [other for other, _ in counts.most_common(20) if (word, other) not in alike and other != word]
        for word, counts in words.items()
    }
    return dict(neighbours), {word: others for word, others in substitutes.items() if others}


def substitute(text: str, substitutes: dict[str, list[str]], random: Random) -> str | None:
    """Put another word in the place of one that has substitutes, a longer one if there is; None if there is none."""
    places = [place for place in WORD.finditer(text) if place.group().lower() in substitutes]
    places = [place for place in places if len(place.group()) > 3] or places
    if not places:
        return None
    place = places[random.integers(len(places))]
    others = substitutes[place.group().lower()]
    new = others[random.integers(len(others))]
    if place.group()[0].isupper():
        new = new[:1].upper() + new[1:]
    return text[: place.start()] + new + text[place.end() :]


def _pronouns(text: str) -> frozenset[str]:
    return _PRONOUNS & set(re.split(r"\W+", text.lower()))
