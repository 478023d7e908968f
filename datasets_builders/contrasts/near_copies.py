r"""Near copies: a sentence beside itself with one thing changed, so that it means something else, or still the same.

    bleurt-repro data near-copies --input wiki.tsv.gz --column 3 --ratings train.jsonl --output near-copies.jsonl

A metric takes a candidate that repeats the reference but for one word ("billion" for "million") for a copy, unless it
has learnt that one word can change the meaning. The alterations are drawn equally often:

- a word is replaced by another of its group (`near_copies.yaml`): magnitudes, units, directions, quantities, changes,
  qualities, sides, modality, gender, currencies, and things of one sort; none of the words of `experiment
  adversarial`;
- numbers, names, negations, tenses and participants are changed, by the rules of `alterations`;
- a word is replaced by a random one;
- the candidate is degenerate (`degenerate`): the text twice, as a question, its content words alone, ...;
- the meaning stays the same: words of the groups under `same`, contractions. Without these any change would look bad.

Half of the changed texts are the reference, with the unchanged text as the candidate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from bleurt_repro.datasets_builders.contrasts import (
    Contrast,
    Random,
    chosen_contrasts,
    contrast,
    draw,
    write_contrasts,
)
from bleurt_repro.datasets_builders.contrasts.alterations import (
    WORD,
    change_magnitude,
    change_name,
    change_negation,
    change_number,
    change_tense,
    names_in,
    swap_roles,
    vary_contractions,
)
from bleurt_repro.datasets_builders.contrasts.degenerate import DEGENERATE, degenerate_candidate
from bleurt_repro.metric.files.records import read_plain_yaml

GROUPS = Path(__file__).with_name("near_copies.yaml")
# Scores in standard deviations of ratings, which are about 0 for the output of a system. A near copy with another
# meaning is worse than most outputs; a paraphrase is nearly as good as a copy.
TURNED, SAME_MEANING = -0.4, 1.1
# Shares of the draws that keep the meaning, and that are degenerate.
SAME_SHARE, DEGENERATE_SHARE = 0.2, 0.12
# Shorter texts say too little; most checkpoints truncate longer ones.
FEWEST_WORDS, MOST_WORDS = 6, 60
Change = Callable[[str, Random], str | None]


def make_near_copies(texts: Sequence[str], pairs: int, seed: int = 0, turned: float = TURNED) -> list[Contrast]:
    """Make near copies of texts.

    Args:
        texts: English sentences; those of fewer than 6 or more than 60 words are left out.
        pairs: number of pairs to make.
        seed: seed of all random choices.
        turned: score of a candidate of another meaning, in standard deviations of ratings.

    Returns:
        Rows of "reference", "candidate", "score" (`turned`, `SAME_MEANING` or one of `DEGENERATE`) and "system", which
        names the alteration ("contrast: currency").

    Raises:
        ValueError: if `pairs` is not positive, `turned` is not below `SAME_MEANING`, or fewer than two texts can be
            used.
    """
    if pairs < 1:
        raise ValueError(f"the number of pairs must be at least 1, found {pairs}")
    if not -10 <= turned < SAME_MEANING:
        raise ValueError(
            f"the score of another meaning must be at least -10 and below that of a paraphrase ({SAME_MEANING}), "
            f"found {turned}"
        )
    usable = sorted({text for text in texts if FEWEST_WORDS <= len(text.split()) <= MOST_WORDS})
    if len(usable) < 2:
        raise ValueError(
            f"expected at least two texts of {FEWEST_WORDS} to {MOST_WORDS} words, found {len(usable)} of "
            f"{len(texts)} texts"
        )
    random, maker = np.random.default_rng(seed), _Maker(usable, turned)
    contrasts: list[Contrast] = []
    while len(contrasts) < pairs:
        contrasts += maker.make(random)
    return contrasts[:pairs]


def near_copy_file(
    output: str | Path,
    pairs: int,
    input: str | Path | None = None,
    column: str | None = None,
    ratings: str | Path | None = None,
    most_texts: int = 50_000,
    seed: int = 0,
    turned: float = TURNED,
    overwrite: bool = False,
) -> dict[str, int]:
    """Make near copies of the texts of files and write them as JSON lines.

    Args:
        output: file to write.
        pairs: as in `make_near_copies`.
        input: file or dataset of sentences, as `bleurt-repro data synthetic` reads it.
        column: column of `input` with the text.
        ratings: file of ratings, as `rating_records` reads it, whose references are used too.
        most_texts: number of sentences of `input` to read.
        seed: as in `make_near_copies`.
        turned: as in `make_near_copies`.
        overwrite: as in `chosen_contrasts`.

    Returns:
        The number of pairs of each kind.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if neither file is given, one is malformed, and as `chosen_contrasts` and `make_near_copies` raise
            it.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
    from bleurt_repro.datasets_builders.synthetic.segments import Segments

    if input is None and ratings is None:
        raise ValueError("no texts: give a file of sentences (--input), of ratings (--ratings), or both")
    path = chosen_contrasts(output, [input, ratings], overwrite)
    texts = [] if ratings is None else [row["reference"] for row in rating_records(ratings)]
    if input is not None:
        config = SyntheticConfig(column=column, max_segments=most_texts)
        texts += [segment.text for segment in Segments(str(input), config)]
    return write_contrasts(path, make_near_copies(texts, pairs, seed, turned))


@cache
def word_groups() -> dict[str, dict[str, tuple[str, ...]]]:
    """Read `near_copies.yaml`: for each topic ("same" among them), every word with the words that may replace it."""
    content = dict(read_plain_yaml(GROUPS)[1])
    topics: dict[str, dict[str, tuple[str, ...]]] = {}
    for topic, groups in {**content["turned"], "same": content["same"]}.items():
        replacements = topics.setdefault(topic, {})
        for group in groups:
            members = [word.strip() for word in group.split("|")]
            for word in members:
                replacements[word] = (*replacements.get(word, ()), *(member for member in members if member != word))
    return topics


def exchange(text: str, topic: str, random: Random) -> str | None:
    """Replace a word of a topic by another of its group, keeping a capital at the beginning; None if it has none."""
    replacements = word_groups()[topic]
    matches = list(_pattern(topic).finditer(text))
    if not matches:
        return None
    match = draw(matches, random)
    word = match.group()
    if word in replacements:
        replacement = draw(replacements[word], random)
    else:
        replacement = draw(replacements[word[:1].lower() + word[1:]], random)
        replacement = replacement[:1].upper() + replacement[1:]
    return f"{text[: match.start()]}{replacement}{text[match.end() :]}"


@cache
def _pattern(topic: str) -> re.Pattern[str]:
    # Longer words come first, so that "started out" is not read as "started". Words with a capital are looked for at
    # the beginning of the text only: "May 2006" is not the verb "may".
    lower = sorted(word_groups()[topic], key=lambda word: (-len(word), word))
    capitalised = [word[:1].upper() + word[1:] for word in lower if word[:1].islower()]
    at_start = [rf"^(?:{'|'.join(map(re.escape, capitalised))})"] if capitalised else []
    return re.compile(rf"(?<![\w-])(?:{'|'.join([*at_start, *map(re.escape, lower)])})(?![\w-])")


class _Maker:
    """Knows which texts allow which alteration, and makes the rows of one draw."""

    def __init__(self, texts: Sequence[str], turned_score: float) -> None:
        self.texts, self.turned_score = texts, turned_score
        self.names = sorted({name for text in texts for name in names_in(text)})
        self.vocabulary = sorted({word for text in texts for word in re.findall(r"\b[a-z]{4,}\b", text)})
        name_set = frozenset(self.names)
        rules: dict[str, Change] = {
            "number": change_number,
            "magnitude of a number": change_magnitude,
            "name": lambda text, random: change_name(text, self.names, random),
            "negation": change_negation,
            "tense": change_tense,
            "participants": lambda text, random: swap_roles(text, name_set, random),
            "random word": self.random_word,
        }
        self.changes: dict[str, Change] = {
            topic: _exchange_of(topic) for topic in word_groups() if topic != "same"
        } | rules
        # Random words, the only change that needs no list, and exchanged participants, the hardest to see, are drawn
        # three times as often.
        self.alterations = [*self.changes, *("random word", "participants") * 2]
        # Few texts have a word of a given topic, so these are looked up once.
        self.texts_by_topic = {
            topic: indices
            for topic in word_groups()
            if (indices := [i for i, text in enumerate(texts) if _pattern(topic).search(text)])
        }

    def make(self, random: Random) -> list[Contrast]:
        """Make the row of one draw; none if the drawn text does not allow the drawn alteration."""
        # 1. Draw whether the candidate is degenerate, a paraphrase, or of another meaning; then the alteration and a
        #    text.
        share = random.random()
        if share < DEGENERATE_SHARE:
            alteration, text = draw(list(DEGENERATE), random), draw(self.texts, random)
            candidate = degenerate_candidate(alteration, text, self.texts, random)
            return [contrast(text, candidate, DEGENERATE[alteration], alteration)]
        if share < DEGENERATE_SHARE + SAME_SHARE:
            alteration, score = "same words", SAME_MEANING
            text = self.text_for("same", random)
            changed = exchange(text, "same", random) if random.random() < 0.8 else vary_contractions(text)
        else:
            alteration, score = draw(self.alterations, random), self.turned_score
            text = self.text_for(alteration, random)
            changed = self.changes[alteration](text, random)
        if changed is None or changed == text:
            return []
        # 2. Draw which of the two texts is the reference: odd texts are then as often right as wrong.
        reference, candidate = (text, changed) if random.random() < 0.5 else (changed, text)
        return [contrast(reference, candidate, score, alteration)]

    def text_for(self, alteration: str, random: Random) -> str:
        """Draw a text, one that has a word of the topic if the alteration exchanges words of a topic."""
        if alteration in self.texts_by_topic:
            return self.texts[draw(self.texts_by_topic[alteration], random)]
        return str(draw(self.texts, random))

    def random_word(self, text: str, random: Random) -> str | None:
        """Replace a word of four letters or more by a random one."""
        matches = [match for match in WORD.finditer(text) if len(match.group()) > 3]
        if not matches:
            return None
        match, replacement = draw(matches, random), draw(self.vocabulary, random)
        replacement = replacement.capitalize() if match.group()[0].isupper() else replacement
        return f"{text[: match.start()]}{replacement}{text[match.end() :]}"


def _exchange_of(topic: str) -> Change:
    return lambda text, random: exchange(text, topic, random)
