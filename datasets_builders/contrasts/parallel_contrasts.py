r"""Contrasts from parallel text: paraphrases against near copies that mean something else.

    bleurt-repro data contrasts --parallel en-de.tsv --parallel en-fr.tsv --ratings train.jsonl \
        --output contrasts.jsonl --pairs 40000

A metric trained on human ratings alone relies on shared words. Here English sentences with a translation in common
count as paraphrases (pivoting: https://aclanthology.org/P05-1074/). Against them stand sentences of the same text that
differ in a single word, and alterations by rule (`alterations`).
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

# Shares of the draws that join two to `MOST_JOINED` sentences to one text, start from rated candidates, reorder a
# sentence, and add a pair that varies the form alone, or an unrelated pair.
JOINED_SHARE, MOST_JOINED = 0.35, 4
RATED_SHARE = 0.3
REORDERED_SHARE = 0.3
FORM_SHARE = 0.15
UNRELATED_SHARE = 0.05
# Alterations that few sentences allow are tried first half the time.
_RARE = ("number", "name", "roles")

# Translations often leave open who is meant: "ihr" is "you", "her" and "their".
_PRONOUNS = frozenset(
    "i you he she it we they me him her us them my your his its our their mine yours hers ours theirs".split()
)
# The number of pairs grows with the square of the number of sentences that share a translation, or all words but one;
# larger groups are stock phrases.
_MOST_IN_GROUP = 60


def make_contrasts(
    sentences: Iterable[tuple[str, str]],
    pairs: int,
    rated: Sequence[tuple[str, str, float]] = (),
    seed: int = 0,
    reordered: float = REORDERED_SHARE,
) -> list[Contrast]:
    """Make synthetic contrast data from parallel text.

    Args:
        sentences: English sentences, each with a translation.
        pairs: number of pairs to make.
        rated: references, candidates that people rated well, and their ratings. Both texts are altered, too, since
            they are longer than most sentences of parallel text.
        seed: seed of all random choices.
        reordered: share of the draws that reorder a sentence by rule (passive, moved phrase) and show it against
            copies with two words exchanged.

    Returns:
        Rows of "reference", "candidate", "score" and "system", which names the alteration ("contrast: number").

    Raises:
        ValueError: if no two different sentences share a translation, `pairs` is not positive, or the share is not from
            0 to 1.
    """
    if pairs < 1:
        raise ValueError(f"the number of pairs must be at least 1, found {pairs}")
    if not 0 <= reordered <= 1:
        raise ValueError(f"the share of reordered draws must be from 0 to 1, found {reordered}")
    random, maker = np.random.default_rng(seed), _Maker(list(sentences), rated, reordered)
    contrasts: list[Contrast] = []
    while len(contrasts) < pairs:
        contrasts += maker.make(random)
    return contrasts[:pairs]


def contrast_file(
    parallel: Sequence[str | Path],
    output: str | Path,
    pairs: int,
    ratings: str | Path | None = None,
    seed: int = 0,
    reordered: float = REORDERED_SHARE,
    leave_out: Sequence[str] = (),
    overwrite: bool = False,
) -> dict[str, int]:
    """Make synthetic contrast data from files and write it as JSON lines.

    Args:
        parallel: TSV files without a header: source, split, English sentence, translation. Rows whose split is "test"
            or "dev" are left out.
        output: file to write.
        pairs: as in `make_contrasts`.
        ratings: file of ratings, as `rating_records` reads it, whose best candidates are used too.
        seed: as in `make_contrasts`.
        reordered: as in `make_contrasts`.
        leave_out: as in `read_sentences`.
        overwrite: as in `chosen_contrasts`.

    Returns:
        The number of pairs of each kind.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a file is malformed (the message names file and line), and as `chosen_contrasts` and
            `make_contrasts` raise it.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records

    output_path = chosen_contrasts(output, [*parallel, ratings], overwrite)
    sentences = [pair for i, path in enumerate(parallel) for pair in read_sentences(path, f"{i}:", leave_out)]
    good = rated_well(rating_records(ratings)) if ratings is not None else []
    rated = [(row["reference"], row["candidate"], row["score"]) for row in good]
    return write_contrasts(output_path, make_contrasts(sentences, pairs, rated, seed, reordered))


def read_sentences(path: str | Path, language: str, leave_out: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Read English sentences with their translations.

    Args:
        path: file with the columns source, split, English sentence and translation; splits "test" and "dev" are left
            out.
        language: prefix of each translation, which keeps the translations of two files apart.
        leave_out: prefixes of the names of sources to leave out, such as those whose licence does not allow the use.

    Raises:
        ValueError: if a line has other columns, no sentence is left, or no source begins with one of `leave_out`.
    """
    sentences, prefixes = [], set()
    for number, line in enumerate(text_lines(path), start=1):
        fields = line.split("\t")
        if len(fields) != len(COLUMNS):
            raise ValueError(f"{path}, line {number}: expected {', '.join(COLUMNS)}, found {len(fields)} column(s)")
        if matching := [prefix for prefix in leave_out if fields[0].startswith(prefix)]:
            prefixes.update(matching)
        elif fields[1] not in ("test", "dev"):
            sentences.append((fields[2], language + fields[3]))
    if missing := set(leave_out) - prefixes:
        raise ValueError(f"{path}: no source to leave out begins with {', '.join(sorted(missing))}")
    if not sentences:
        raise ValueError(f"{path}: no sentences; expected {', '.join(COLUMNS)}, separated by tabs")
    return sentences


class _Maker:
    """Draws two texts of the same meaning, and makes contrasts from them."""

    def __init__(
        self,
        sentences: list[tuple[str, str]],
        rated: Sequence[tuple[str, str, float]],
        reordered_share: float,
    ) -> None:
        self.paraphrases = same_meaning(sentences)
        if not self.paraphrases:
            raise ValueError("no two different sentences share a translation: more parallel text is needed")
        self.rated = [row for row in rated if row[0].strip() and row[1].strip()]
        texts = sorted({english for english, _ in sentences})
        self.neighbours, self.substitutes = one_word_apart(texts, self.paraphrases)
        self.texts = texts + [reference for reference, _, _ in self.rated]
        # A capital marks a name only if the word is never written without it, and a name occurs more than once.
        lower_case = {word for text in self.texts for word in WORD.findall(text) if word.islower()}
        counts = Counter(name for text in self.texts for name in names_in(text) if name.lower() not in lower_case)
        self.names = sorted(name for name, count in counts.items() if count > 1)
        self.name_set = name_set = frozenset(self.names)
        self.reordered_share = reordered_share
        if reordered_share:
            passive = [(text, changed) for text in self.texts if (changed := make_passive(text))]
            moved = [(text, changed) for text in self.texts if (changed := move_phrase(text, name_set))]
            self.reordered = [pairs for pairs in (passive, moved) if pairs]
        self.alterations: dict[str, tuple[float, Callable[[str, Random], str | None]]] = {
            "number": (CHANGED, change_number),
            "name": (CHANGED, lambda text, random: change_name(text, self.names, random)),
            "negation": (CHANGED, change_negation),
            "tense": (CHANGED, change_tense),
            "roles": (CHANGED, lambda text, random: swap_roles(text, name_set, random)),
            "word": (CHANGED, lambda text, random: substitute(text, self.substitutes, random)),
            "another sentence": (CHANGED, self.neighbour),
            "left out": (PARTLY, leave_out),
            "put in": (PARTLY, lambda text, random: put_in(text, draw(self.texts, random), random)),
        }

    def make(self, random: Random) -> list[Contrast]:
        """Make the rows of one draw."""
        if self.reordered_share and self.reordered and random.random() < self.reordered_share:
            return self.reorder(random)
        # 1. Draw two texts of the same meaning: a rated pair, or one to four pairs of paraphrases in a row.
        sides: tuple[int, ...] = (0, 1)
        contrasts: list[Contrast] = []
        if self.rated and random.random() < RATED_SHARE:
            reference, candidate, score = draw(self.rated, random)
            pairs = [(reference, candidate)]
        else:
            count = int(random.integers(2, MOST_JOINED + 1)) if random.random() < JOINED_SHARE else 1
            pairs, score = [draw(self.paraphrases, random) for _ in range(count)], SAME
            pairs = [pair[::-1] if random.random() < 0.5 else pair for pair in pairs]
            sides = (int(random.integers(2)),)
            contrasts = [contrast(_joined(pairs, 0), _joined(pairs, 1), SAME, "same")]
        texts, scores = [_joined(pairs, side) for side in (0, 1)], (COPY, score)
        # 2. Sometimes add one of them in another form, or an unrelated text.
        if random.random() < FORM_SHARE:
            side = int(random.integers(2))
            contrasts.append(contrast(texts[0], vary_form(texts[side], random), scores[side], "form"))
        if random.random() < UNRELATED_SHARE:
            contrasts.append(contrast(texts[0], draw(self.texts, random), UNRELATED, "unrelated"))
        # 3. Alter the reference or the candidate. Half of the altered texts are near copies, so that shared words are
        #    no sign of an error, nor of its absence.
        for side in sides:
            contrasts += self.alter(pairs, side, scores, random)
        return contrasts

    def reorder(self, random: Random) -> list[Contrast]:
        """Make a reordered sentence, and both orders with two words exchanged."""
        reference, reordered = draw(draw(self.reordered, random), random)
        if random.random() < 0.5:
            reference, reordered = reordered, reference
        contrasts = [contrast(reference, reordered, SAME, "reordered")]
        for text, score in ((reference, COPY), (reordered, SAME)):
            swapped = swap_roles(text, self.name_set, random)
            if swapped is not None and swapped not in (reference, reordered):
                contrasts.append(contrast(reference, swapped, score - CHANGED, "roles"))
        return contrasts

    def alter(
        self, pairs: list[tuple[str, str]], side: int, scores: tuple[float, float], random: Random
    ) -> list[Contrast]:
        """Alter one sentence of one side, 0 the reference and 1 the candidate, in the first way that applies to it."""
        score, i = scores[side], int(random.integers(len(pairs)))
        rare_first = [*random.permutation(_RARE), *random.permutation(list(self.alterations))]
        for name in rare_first if random.random() < 0.5 else random.permutation(list(self.alterations)):
            loss, change = self.alterations[name]
            altered = change(pairs[i][side], random)
            if altered is None or not altered.strip() or altered in pairs[i]:
                continue
            loss *= 1 if len(pairs) == 1 else JOINED_WEIGHT
            return [contrast(_joined(pairs, 0), _joined(pairs, side, i, altered), score - loss, name)]
        return []

    def neighbour(self, text: str, random: Random) -> str | None:
        """Return a sentence that differs in one word, or None."""
        return draw(neighbours, random) if (neighbours := self.neighbours.get(text)) else None


def _joined(pairs: Sequence[tuple[str, str]], side: int, at: int = -1, replacement: str = "") -> str:
    """Join the texts of one side, the one at `at` replaced."""
    return " ".join(replacement if i == at else pair[side] for i, pair in enumerate(pairs))


def same_meaning(sentences: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pair different sentences that have a translation in common and the same pronouns."""
    groups: dict[str, set[str]] = defaultdict(set)
    for english, translation in sentences:
        groups[translation].add(english)
    pairs = {
        (first, second)
        for group in groups.values()
        if len(group) < _MOST_IN_GROUP
        for first, second in combinations(sorted(group), 2)
        if first.lower() != second.lower() and _pronouns(first) == _pronouns(second)
    }
    return sorted(pairs)


def one_word_apart(
    texts: Sequence[str], paraphrases: Iterable[tuple[str, str]]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Find the sentences that differ from another sentence in one word and are no paraphrases of it.

    Args:
        texts: different sentences.
        paraphrases: pairs of the sentences that mean the same.

    Returns:
        For each such sentence the sentences it differs from; and for each word, in lower case, the words that it is
        exchanged for there.
    """
    # 1. Group the sentences by what is left of them without one of their words.
    paraphrase_set = set(paraphrases)
    frames: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for text in texts:
        for match in WORD.finditer(text):
            frames[f"{text[: match.start()]}\0{text[match.end() :]}"].append((match.group(), text))
    # 2. Within a group any two sentences differ in that word alone: count which words are exchanged.
    neighbours: dict[str, list[str]] = defaultdict(list)
    exchanges: dict[str, Counter[str]] = defaultdict(Counter)
    synonyms: set[tuple[str, str]] = set()
    for frame, members in frames.items():
        if not 1 < len(members) < _MOST_IN_GROUP or len(frame.split()) < 3:
            continue
        for (first_word, first), (second_word, second) in combinations(members, 2):
            pair = (first_word.lower(), second_word.lower())
            if (first, second) in paraphrase_set or (second, first) in paraphrase_set:
                synonyms.update((pair, pair[::-1]))  # of the same meaning in one sentence: synonyms in all of them
                continue
            neighbours[first].append(second)
            neighbours[second].append(first)
            exchanges[pair[0]][pair[1]] += 1
            exchanges[pair[1]][pair[0]] += 1
    # 3. Keep the most frequent exchanges of each word, without synonyms.
    substitutes = {
        word: [new for new, _ in counts.most_common(20) if (word, new) not in synonyms and new != word]
        for word, counts in exchanges.items()
    }
    return dict(neighbours), {word: candidates for word, candidates in substitutes.items() if candidates}


def substitute(text: str, substitutes: dict[str, list[str]], random: Random) -> str | None:
    """Replace a word that has substitutes, if possible one of more than three letters; None if there is none."""
    matches = [match for match in WORD.finditer(text) if match.group().lower() in substitutes]
    matches = [match for match in matches if len(match.group()) > 3] or matches
    if not matches:
        return None
    match = matches[random.integers(len(matches))]
    candidates = substitutes[match.group().lower()]
    replacement = candidates[random.integers(len(candidates))]
    if match.group()[0].isupper():
        replacement = replacement[:1].upper() + replacement[1:]
    return text[: match.start()] + replacement + text[match.end() :]


def _pronouns(text: str) -> frozenset[str]:
    return _PRONOUNS & set(re.split(r"\W+", text.lower()))
