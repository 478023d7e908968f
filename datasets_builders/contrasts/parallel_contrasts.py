r"""Contrasts from parallel text: sentences of the same meaning in other words, against near copies that mean something else.

    bleurt-repro data contrasts --parallel en-de.tsv --parallel en-fr.tsv --ratings train.jsonl \
        --output contrasts.jsonl --pairs 40000

A metric trained on people's ratings alone relies on shared words. Here English sentences with one translation in common
count as the same in meaning (pivoting: https://aclanthology.org/P05-1074/). Against them stand other sentences of the same
text that differ in a single word, and alterations by rule (`alterations`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from bleurt_repro.datasets_builders.contrasts import (
    CHANGED,
    COPY,
    JOINED_WEIGHT,
    PARTLY,
    SAME,
    UNRELATED,
    Contrast,
    Random,
    chosen_contrasts,
    contrast,
    draw,
    rated_well,
    write_contrasts,
)
from bleurt_repro.datasets_builders.contrasts.alterations import (
    WORD,
    alter_alike,
    change_name,
    change_negation,
    change_number,
    change_tense,
    leave_out,
    make_passive,
    move_phrase,
    names_in,
    put_in,
    swap_roles,
    vary_form,
)
from bleurt_repro.metric.files.records import text_lines

COLUMNS = ("source", "split", "english", "target")

# Of the draws: how many join two to `MOST_JOINED` sentences to one text, start from rated candidates, put a sentence in another
# order, and add a pair that varies the form alone, or an unrelated one.
JOINED_SHARE, MOST_JOINED = 0.35, 4
RATED_SHARE = 0.3
REORDERED_SHARE = 0.3
FORM_SHARE = 0.15
UNRELATED_SHARE = 0.05
# None by default: both models trained on such pairs agreed less with people.
MIRRORED_SHARE = 0.0
# Kinds that few sentences allow come first half the time.
_RARE = ("number", "name", "roles")

# Translations often leave open who is meant: "ihr" is "you", "her" and "their".
_PRONOUNS = frozenset(
    "i you he she it we they me him her us them my your his its our their mine yours hers ours theirs".split()
)
# Pairs grow with the square of how many sentences share a translation, or all words but one; more than this are stock phrases.
_MOST_IN_SLOT = 60


def make_contrasts(
    sentences: Iterable[tuple[str, str]],
    pairs: int,
    rated: Sequence[tuple[str, str, float]] = (),
    seed: int = 0,
    reordered: float = REORDERED_SHARE,
    mirrored: float = MIRRORED_SHARE,
) -> list[Contrast]:
    """Make synthetic contrast data from parallel text.

    Args:
        sentences: English sentences, each with a translation of it.
        pairs: how many to make.
        rated: references, with candidates that people rated well and their ratings. Alterations of both are made, since
            they are longer than most sentences of parallel text.
        seed: of all that is drawn.
        reordered: how often, of all draws, a sentence is put in another order by rule (passive, moved phrase) and shown
            against copies in which two of its words have changed places.
        mirrored: how often an altered text is shown as the reference, too: against a candidate altered alike, which means the
            same, and against one that is not. Altered texts are often odd ("the air wowed the crowd"), and a model that sees
            them on one side alone learns what is odd, not what differs; people's ratings punish what is odd, too.

    Returns:
        rows of "reference", "candidate", "score" and "system", which names the kind ("contrast: number").

    Raises:
        ValueError: if no two different sentences share a translation, `pairs` is not positive, or a share is none.
    """
    if pairs < 1:
        raise ValueError(f"the number of pairs must be at least 1, found {pairs}")
    for name, share in (("reordered draws", reordered), ("mirrored alterations", mirrored)):
        if not 0 <= share <= 1:
            raise ValueError(f"the share of {name} must be from 0 to 1, found {share}")
    random, maker = np.random.default_rng(seed), _Maker(list(sentences), rated, reordered, mirrored)
    made: list[Contrast] = []
    while len(made) < pairs:
        made += maker.make(random)
    return made[:pairs]


def contrast_file(
    parallel: Sequence[str | Path],
    output: str | Path,
    pairs: int,
    ratings: str | Path | None = None,
    seed: int = 0,
    reordered: float = REORDERED_SHARE,
    mirrored: float = MIRRORED_SHARE,
    leave_out: Sequence[str] = (),
    overwrite: bool = False,
) -> dict[str, int]:
    """Make synthetic contrast data from files and write it as JSON lines.

    Args:
        parallel: TSV files without names of columns: source, split, English sentence, translation. Rows whose split is
            "test" or "dev" are left out.
        output: file to write.
        pairs: of `make_contrasts`.
        ratings: file of ratings, as `rating_records` reads it, whose best candidates join in.
        seed, reordered, mirrored: of `make_contrasts`.
        leave_out: of `read_sentences`.
        overwrite: of `chosen_contrasts`.

    Returns:
        how many pairs of each kind were written.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a file is malformed (file and line are named), or what `chosen_contrasts` and `make_contrasts` say.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records

    place = chosen_contrasts(output, [*parallel, ratings], overwrite)
    sentences = [pair for i, path in enumerate(parallel) for pair in read_sentences(path, f"{i}:", leave_out)]
    good = rated_well(rating_records(ratings)) if ratings is not None else []
    rated = [(row["reference"], row["candidate"], row["score"]) for row in good]
    return write_contrasts(place, make_contrasts(sentences, pairs, rated, seed, reordered, mirrored))


def read_sentences(path: str | Path, language: str, leave_out: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Read English sentences with their translations, marked with `language` so that two languages stay apart.

    Args:
        path: source, split, English sentence and translation in columns; splits "test" and "dev" are left out.
        language: put before each translation.
        leave_out: beginnings of the names of sources that are left out, such as those whose licence does not allow it.

    Raises:
        ValueError: if a line has other columns, no sentence is left, or nothing has a name to leave out.
    """
    read, found = [], set()
    for number, line in enumerate(text_lines(path), start=1):
        fields = line.split("\t")
        if len(fields) != len(COLUMNS):
            raise ValueError(f"{path}, line {number}: expected {', '.join(COLUMNS)}, found {len(fields)} column(s)")
        if named := [name for name in leave_out if fields[0].startswith(name)]:
            found.update(named)
        elif fields[1] not in ("test", "dev"):
            read.append((fields[2], language + fields[3]))
    if missing := set(leave_out) - found:
        raise ValueError(f"{path}: no source to leave out begins with {', '.join(sorted(missing))}")
    if not read:
        raise ValueError(f"{path}: no sentences; expected {', '.join(COLUMNS)}, separated by tabs")
    return read


class _Maker:
    """Draws two texts of the same meaning, and makes contrasts from them."""

    def __init__(
        self,
        sentences: list[tuple[str, str]],
        rated: Sequence[tuple[str, str, float]],
        reordered_share: float,
        mirrored_share: float,
    ) -> None:
        self.same = same_meaning(sentences)
        if not self.same:
            raise ValueError("no two different sentences share a translation: more parallel text is needed")
        self.rated = [row for row in rated if row[0].strip() and row[1].strip()]
        texts = sorted({english for english, _ in sentences})
        self.neighbours, self.substitutes = one_word_apart(texts, self.same)
        self.others = texts + [reference for reference, _, _ in self.rated]
        words = {word for text in self.others for word in WORD.findall(text) if word.islower()}
        counts = Counter(name for text in self.others for name in names_in(text) if name.lower() not in words)
        self.names = sorted(name for name, count in counts.items() if count > 1)
        self.known = known = frozenset(self.names)
        self.reordered_share, self.mirrored_share = reordered_share, mirrored_share
        if reordered_share:
            passive = [(text, other) for text in self.others if (other := make_passive(text))]
            moved = [(text, other) for text in self.others if (other := move_phrase(text, known))]
            self.reordered = [pairs for pairs in (passive, moved) if pairs]
        self.alterations: dict[str, tuple[float, Callable[[str, Random], str | None]]] = {
            "number": (CHANGED, change_number),
            "name": (CHANGED, lambda text, random: change_name(text, self.names, random)),
            "negation": (CHANGED, change_negation),
            "tense": (CHANGED, change_tense),
            "roles": (CHANGED, lambda text, random: swap_roles(text, known, random)),
            "word": (CHANGED, lambda text, random: substitute(text, self.substitutes, random)),
            "another sentence": (CHANGED, self.neighbour),
            "left out": (PARTLY, leave_out),
            "put in": (PARTLY, lambda text, random: put_in(text, draw(self.others, random), random)),
        }

    def make(self, random: Random) -> list[Contrast]:
        """Make the rows of one draw."""
        if self.reordered_share and self.reordered and random.random() < self.reordered_share:
            return self.reorder(random)
        sides: tuple[int, ...] = (0, 1)
        made: list[Contrast] = []
        if self.rated and random.random() < RATED_SHARE:
            one, two, worth = draw(self.rated, random)
            pairs = [(one, two)]
        else:
            count = int(random.integers(2, MOST_JOINED + 1)) if random.random() < JOINED_SHARE else 1
            pairs, worth = [draw(self.same, random) for _ in range(count)], SAME
            pairs = [pair[::-1] if random.random() < 0.5 else pair for pair in pairs]
            sides = (int(random.integers(2)),)
            made = [contrast(_joined(pairs, 0), _joined(pairs, 1), SAME, "same")]
        texts, worths = [_joined(pairs, side) for side in (0, 1)], (COPY, worth)
        if random.random() < FORM_SHARE:
            side = int(random.integers(2))
            made.append(contrast(texts[0], vary_form(texts[side], random), worths[side], "form"))
        if random.random() < UNRELATED_SHARE:
            made.append(contrast(texts[0], draw(self.others, random), UNRELATED, "unrelated"))
        # Alike words are no sign of an error, nor of its absence: of the altered texts half are near copies.
        for side in sides:
            made += self.alter(pairs, side, worths, random)
        return made

    def reorder(self, random: Random) -> list[Contrast]:
        """Make a reordered sentence, and both orders with two words exchanged."""
        reference, other = draw(draw(self.reordered, random), random)
        if random.random() < 0.5:
            reference, other = other, reference
        made = [contrast(reference, other, SAME, "reordered")]
        for text, worth in ((reference, COPY), (other, SAME)):
            swapped = swap_roles(text, self.known, random)
            if swapped is not None and swapped not in (reference, other):
                made.append(contrast(reference, swapped, worth - CHANGED, "roles"))
                if text is other and self.mirrors(random) and (alike := alter_alike(other, swapped, reference)):
                    made.append(contrast(alike, swapped, SAME, "mirrored"))
                    made.append(contrast(alike, other, SAME - CHANGED, "roles"))
        return made

    def mirrors(self, random: Random) -> bool:
        """Decide whether an altered text is shown as a reference, too."""
        return bool(self.mirrored_share) and random.random() < self.mirrored_share

    def alter(
        self, pairs: list[tuple[str, str]], side: int, worths: tuple[float, float], random: Random
    ) -> list[Contrast]:
        """Alter one sentence of one side in the first way that applies to it."""
        worth, at = worths[side], int(random.integers(len(pairs)))
        kinds = [*random.permutation(_RARE), *random.permutation(list(self.alterations))]
        for kind in kinds if random.random() < 0.5 else random.permutation(list(self.alterations)):
            loss, change = self.alterations[kind]
            altered = change(pairs[at][side], random)
            if altered is None or not altered.strip() or altered in pairs[at]:
                continue
            loss *= 1 if len(pairs) == 1 else JOINED_WEIGHT
            made = [contrast(_joined(pairs, 0), _joined(pairs, side, at, altered), worth - loss, kind)]
            alike = alter_alike(pairs[at][side], altered, pairs[at][1 - side]) if self.mirrors(random) else None
            if alike is not None:
                reference, candidate = (altered, alike) if side == 0 else (alike, altered)
                reference, both = _joined(pairs, 0, at, reference), worths[1]
                made.append(contrast(reference, _joined(pairs, 1, at, candidate), both, "mirrored"))
                made.append(contrast(reference, _joined(pairs, 1), both - loss, kind))
            return made
        return []

    def neighbour(self, text: str, random: Random) -> str | None:
        """Return a sentence that differs in one word, or None."""
        return draw(found, random) if (found := self.neighbours.get(text)) else None


def _joined(pairs: Sequence[tuple[str, str]], side: int, at: int = -1, instead: str = "") -> str:
    return " ".join(instead if i == at else pair[side] for i, pair in enumerate(pairs))


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
    """Replace a word that has substitutes, a longer one if there is; None if there is none."""
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
