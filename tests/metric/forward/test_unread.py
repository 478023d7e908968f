"""Text that a checkpoint does not read: counted, reported once a call, and left as it is."""

from __future__ import annotations

import gzip
import json
import warnings
from itertools import islice

import evaluate
import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main as run
from bleurt_repro.metric.forward.unread import (
    ENGLISH_WORDS,
    FREQUENT_WORDS,
    LATIN,
    has_invisible,
    is_other_language,
    is_other_script,
    scripts_read,
    unread_words,
)
from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER
from tests.conftest import SPACE

THAI = "\u0e09\u0e31\u0e19\u0e2b\u0e34\u0e27"
GREEK = "\u03ba\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1"
CAT, DOG = "\U0001f408", "\U0001f415"


@pytest.fixture(scope="module")
def scorer():
    return BleurtScorer(device="cpu")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat.", False),
        ("Zürich, Łódź, naïve", False),
        (THAI, True),
        (f"cat {GREEK}", True),
        (f"the word for good morning is {GREEK}", False),
        (f"{GREEK} hello", True),  # eight letters to five
        (f"{GREEK} so longer", False),  # eight to eight
        ("12:30 € \U0001f408", False),  # no letters
        ("", False),
        ("\ud800", False),
        ("\uff21\uff22\uff23", False),  # full-width letters
    ],
)
def test_which_texts_are_mostly_of_another_script(text, expected):
    assert is_other_script(text, {LATIN}) == expected


INVISIBLE = {
    "zero-width": "\u200b\u200d\u2060\ufeff",
    "replacement": "\ufffd",
    "soft hyphen": "\u00ad",
    "C0 control": "\x00\x01\x08\x0b\x0c\x0e\x1b\x1f",
    "DEL": "\x7f",
    "C1 control": "\x80\x85\x92\x9f",
    "bidirectional": "\u061c\u200e\u200f\u202a\u202e\u2066\u2069",
    "private-use": "\ue000\uf8ff\U000f0000\U0010fffd",
    "other format": "\u2061\ufff9\U000e0041",
    "noncharacter": "\ufdd0\uffff",
    "half of a surrogate pair": "\ud83d",
}


@pytest.mark.parametrize("characters", INVISIBLE.values(), ids=INVISIBLE)
def test_invisible_characters_are_found(characters):
    assert [has_invisible(f"It{character}s late.") for character in characters] == [True] * len(characters)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", False),  # Persian
        ("\u0915\u094d\u200d\u0937", False),  # Devanagari
        ("\u200f\u05e9\u05dc\u05d5\u05dd\u200f", False),  # Hebrew
        ("\u05e9\u05dc\u05d5\u05dd\u202e", True),
        ("It\u200d is late.", True),
    ],
)
def test_joiners_belong_to_the_spelling_of_other_scripts(text, expected):
    assert has_invisible(text) == expected


@pytest.mark.parametrize(
    "text", ["", "It's late.", "café", "a\tb\nc\r\nd", "a\u00a0b\u3000c\u2028d", "\u2764\ufe0f", "\U0001f408"]
)
def test_visible_characters_and_spaces_are_no_invisible_ones(text):
    assert not has_invisible(text)


@pytest.mark.parametrize("character", ["\x92", "\x01", "\x7f", "\u202e", "\ue000"])
def test_a_copy_with_a_control_character_is_counted(scorer, character):
    with pytest.warns(UserWarning, match="1 of 2 pairs hold text .*invisible characters"):
        result = scorer.compute(references=["It's late."] * 2, candidates=[f"It{character}s late.", "It's late."])
    assert result.unread == 1


# Sentences of common words, one per language, and its neighbours in English.
SENTENCES = {
    "German": "Wir haben nicht gewusst, dass der Zug heute ausfällt.",
    "French": "Nous avons attendu le train, mais il était déjà parti.",
    "Spanish": "No sabemos cuando sale el tren, pero hay uno más tarde.",
    "Italian": "Il treno per Roma non è più in orario questo mese.",
    "Portuguese": "O comboio não chegou, mas também não foi cancelado.",
    "Dutch": "De trein naar Utrecht heeft een uur vertraging.",
    "Swedish": "Tåget är försenat, och det har inte kommit från Lund.",
    "Danish": "Toget er ikke kommet, og jeg venter på det.",
    "Polish": "Pociąg nie jest spóźniony, tylko odwołany przez burzę.",
    "Czech": "Vlak je zpožděn, protože byl odkloněn, jako každý pátek.",
    "Turkish": "Tren bir saat geç kaldı, ancak sonra geldi.",
    "Finnish": "Juna on myöhässä, mutta se tulee myös tänään.",
    "Romanian": "Trenul a întârziat și este în gară.",
    "Estonian": "Rong hilineb, kuid oma kohta ma välja ei anna.",
    "Latvian": "Vilciens kavējas, kā arī autobuss pēc pusdienām.",
    "Hungarian": "A vonat már megint késik, és nem jön egy busz.",
}
ENGLISH = [
    "The train is late again.",
    "Angela Merkel und Emmanuel Macron met in Paris.",  # one word of another language
    "He said 'je ne sais pas' and left the room.",
    "Ludwig van Beethoven",
    "Los Angeles, San Francisco, Santa Fe",
    "São Paulo",
    "Rio de Janeiro to Buenos Aires",
    "iPhone 12 Pro Max, 256 GB, blue",
    "Closed on Mondays",
    "Crème brûlée à la carte",
    "Volkswagen AG",
    "Stan Lee, Jack Kirby, Steve Ditko",
    "",
]


def test_no_frequent_word_is_english():
    assert set(SENTENCES) == set(FREQUENT_WORDS)
    for words in FREQUENT_WORDS.values():
        assert not ENGLISH_WORDS & set(words.split())


@pytest.mark.parametrize("sentence", SENTENCES.values(), ids=SENTENCES)
def test_another_language_is_noticed(scorer, sentence):
    with pytest.warns(UserWarning, match="1 of 2 pairs hold text .*another language"):
        result = scorer.compute(references=[sentence, ENGLISH[0]], candidates=[sentence, ENGLISH[0]])
    assert result.unread == 1


def test_english_is_not_taken_for_another_language(scorer):
    unread = unread_words(scorer.tokenizer)
    assert [text for text in ENGLISH if is_other_language(text, unread)] == []


def test_a_tokenizer_of_a_language_reads_its_words():
    def tokenize(texts, **_):
        german = {f" {word}" for word in FREQUENT_WORDS["German"].split()}
        return {"input_ids": [[1] if text in german else [1, 2] for text in texts]}

    unread = unread_words(tokenize)
    assert "nicht" not in unread and "avec" in unread
    assert not is_other_language(SENTENCES["German"], unread) and is_other_language(SENTENCES["French"], unread)


def test_english_and_german_news(scorer, shared_data):
    unread = unread_words(scorer.tokenizer)

    def share(name: str, lp: str) -> float:
        with gzip.open(shared_data / name, "rt", encoding="utf-8") as lines:
            rows = list(islice((row for row in map(json.loads, lines) if row["lp"] == lp), 2000))
        sides = ("reference", "candidate")
        return sum(any(is_other_language(row[side], unread) for side in sides) for row in rows) / len(rows)

    assert share("wmt/wmt18_da_to_en.jsonl.gz", "de-en") <= 0.001
    assert share("ratings/wmt18_da_from_en.jsonl.gz", "en-de") >= 0.8


class Vocabulary:
    """A tokenizer of English words and of pieces of one other script.

    Args:
        letters: first letter of the script, and how many follow it.
        length: letters of each piece.
    """

    def __init__(self, letters: tuple[str, int], length: int) -> None:
        characters = [chr(ord(letters[0]) + place) for place in range(letters[1])]
        self.pieces = ["cat", "dog", "12", *(character * length for character in characters)]

    def get_vocab(self):
        return {piece: place for place, piece in enumerate(self.pieces)}


def test_the_embedded_checkpoint_reads_latin_letters(scorer):
    assert scripts_read(scorer.tokenizer) == {LATIN}


@pytest.mark.parametrize(
    ("letters", "length", "text", "reads"),
    [
        (("\u0400", 200), 2, "\u0414\u043e\u0431\u0440\u044b\u0439", True),  # Cyrillic words
        (("\u0400", 200), 1, "\u0414\u043e\u0431\u0440\u044b\u0439", False),  # Cyrillic letters alone
        (("\u0400", 200), 2, GREEK, False),
        (("\u4e00", 2000), 1, "\u5929\u6c17", True),  # a tokenizer of single ideographs
        (("\u4e00", 2000), 1, "\u5929\u6c17\u304c\u3044\u3044", True),  # Japanese
        (("\u4e00", 400), 1, "\u5929\u6c17", False),
    ],
)
def test_a_script_is_read_if_the_vocabulary_was_made_for_it(letters, length, text, reads):
    scripts = scripts_read(Vocabulary(letters, length))
    assert LATIN in scripts
    assert is_other_script(text, scripts) != reads
    assert not is_other_script("Za\u017c\u00f3\u0142\u0107", scripts)


@pytest.mark.parametrize(
    ("pairs", "unknown", "unread"),
    [
        ([("It rains.", "It rains."), ("A cat.", "The dog."), ("A café.", "Zürich")], 0, 0),
        ([(CAT, DOG), ("It rains.", "It rains.")], 1, 1),
        ([(THAI, GREEK)], 1, 1),
        ([("It rains.", "It\u200b rains."), ("caf\ufffd", "cafe")], 0, 2),
    ],
)
def test_counts_and_one_warning_a_call(scorer, pairs, unknown, unread):
    references, candidates = map(list, zip(*pairs, strict=True))
    for _ in range(2):  # every call, not once a process
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            result = scorer.compute(references=references, candidates=candidates)
        assert (result.unread, len(caught), len(result.warnings)) == (unread, bool(unread), bool(unread))
        assert result.unknown == unknown
        assert [str(warning.message) for warning in caught] == list(result.warnings)
    if unread:
        assert result.warnings[0].startswith(
            f"{unread} of {len(pairs)} pairs hold text that checkpoint bleurt-repro-mini"
        )
        assert "this checkpoint reads English" in result.warnings[0]


def test_two_emoji_are_the_same_unknown_piece(scorer):
    with pytest.warns(UserWarning, match="reads English"):
        result = scorer.compute(references=[CAT, CAT], candidates=[DOG, CAT])
    assert result.unknown == 2 and result.scores[0] == pytest.approx(result.scores[1], abs=1e-5)


def test_the_text_is_left_to_the_official_tokenisation(scorer):
    encoder = scorer.members[0].encoder
    for text in ("It\u200b rains.", "caf\ufffd", "\ufeffA cat"):
        assert encoder.tokenize([text])[text] == scorer.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_on_the_command_line(tmp_path, capsys):
    (tmp_path / "refs.txt").write_text(f"{CAT}\nIt rains.\n", encoding="utf-8")
    (tmp_path / "hyps.txt").write_text(f"{DOG}\nIt rains.\n", encoding="utf-8")
    words = ["score", "--references", str(tmp_path / "refs.txt"), "--candidates", str(tmp_path / "hyps.txt")]
    with pytest.raises(SystemExit):
        run([*words, "--json"])
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["unknown"] == 1 and "this checkpoint reads English" in found["warnings"][0]
    assert printed.err.count("this checkpoint reads English") == 1


def test_through_evaluate():
    metric = evaluate.load(str(SPACE), str(EMBEDDED_FOLDER / "bleurt-repro-mini"))
    with pytest.warns(UserWarning, match="reads English"):
        found = metric.compute(predictions=[DOG], references=[CAT])
    assert found["unknown"] == 1 and "1 of 1 pairs hold text" in found["warnings"][0]


def test_cached_pairs_are_counted_too(tmp_path, tiny_scorer):
    for _ in range(2):
        with pytest.warns(UserWarning, match="does not read"):
            result = BleurtScorer(str(tiny_scorer), cache=tmp_path).compute(references=[CAT], candidates=[DOG])
        assert (result.unknown, result.unread) == (1, 1)
