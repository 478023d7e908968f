"""Text that a checkpoint does not read: counted, reported once a call, and left as it is."""

from __future__ import annotations

import json
import warnings

import evaluate
import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main as run
from bleurt_repro.metric.forward.unread import has_invisible, is_other_script, reads_latin_only
from bleurt_repro.metric.loading.open import EMBEDDED_FOLDER
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
    ],
)
def test_which_texts_are_mostly_of_another_script(text, expected):
    assert is_other_script(text) == expected


@pytest.mark.parametrize("text", ["a\u200bb", "\ufeffa", "caf\ufffd", "soft\u00adhyphen"])
def test_invisible_characters_are_found(text):
    assert has_invisible(text) and not has_invisible("café")


def test_the_embedded_checkpoint_reads_latin_letters_and_a_multilingual_vocabulary_more(scorer):
    class Multilingual:
        def get_vocab(self):
            return {piece: place for place, piece in enumerate([THAI, GREEK, "cat", "dog", "12"])}

    assert reads_latin_only(scorer.tokenizer)
    assert not reads_latin_only(Multilingual())


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
