"""The scorer: order, batching, references, truncation, signature, and what bad input gets."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.loading.checksums import content_hash
from tests.conftest import make_tiny_scorer

WORDS = "the cat sat on a mat it rains dog good bye hi there stock prices fell".split()


def sentences(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(0, 20))) for _ in range(count)]


@pytest.fixture(scope="module")
def scorer(tiny_scorer):
    return BleurtScorer(str(tiny_scorer), device="cpu")


@pytest.fixture(scope="module")
def pairs():
    return sentences(60, seed=1), sentences(60, seed=2)


def test_scores_are_those_of_the_plain_model(scorer, tiny_scorer, pairs):
    model = AutoModelForSequenceClassification.from_pretrained(tiny_scorer).eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_scorer)
    pairs = [[text or "a" for text in texts] for texts in pairs]  # the plain call drops an empty second text
    with torch.inference_mode():
        expected = [model(**tokenizer(r, c, return_tensors="pt")).logits.item() for r, c in zip(*pairs, strict=True)]
    assert scorer.score(references=pairs[0], candidates=pairs[1]) == pytest.approx(expected, abs=1e-5)
    assert len({round(score, 4) for score in expected}) > 30  # the tiny model tells its inputs apart


@pytest.mark.parametrize("batch_tokens", [1, 100, 100_000])
def test_batching_changes_neither_order_nor_scores(tiny_scorer, scorer, pairs, batch_tokens):
    other = BleurtScorer(str(tiny_scorer), device="cpu", batch_tokens=batch_tokens)
    expected = scorer.score(references=pairs[0], candidates=pairs[1])
    assert other.score(references=pairs[0], candidates=pairs[1]) == pytest.approx(expected, abs=1e-5)


def test_permuted_inputs_give_permuted_scores(scorer, pairs):
    order = random.Random(3).sample(range(60), 60)
    scores = scorer.score(references=pairs[0], candidates=pairs[1])
    permuted = scorer.score(references=[pairs[0][i] for i in order], candidates=[pairs[1][i] for i in order])
    assert permuted == pytest.approx([scores[i] for i in order], abs=1e-5)


def test_equal_pairs_are_scored_once(scorer, monkeypatch):
    rows = []
    forward = scorer.members[0].forward()
    monkeypatch.setattr(scorer.members[0], "forward", lambda: lambda batch: rows.append(len(batch)) or forward(batch))
    scores = scorer.score(references=["a cat", "a dog", "a cat"] * 5, candidates=["cat", "cat", "cat"] * 5)
    assert sum(rows) == 2
    assert scores[0] == scores[2] == scores[12] != scores[1]


def test_reference_and_candidate_are_not_interchangeable(scorer):
    there, back = scorer.score(references=["a cat", "the dog sat"], candidates=["the dog sat", "a cat"])
    assert there != pytest.approx(back, abs=1e-4)


def test_several_references(scorer):
    single = scorer.score(references=["a cat", "the mat", "it rains"], candidates=["good bye"] * 3)
    ragged = {"references": [["a cat", "the mat"], ["it rains"]], "candidates": ["good bye"] * 2}
    assert scorer.score(**ragged) == pytest.approx([max(single[:2]), single[2]], abs=1e-6)
    assert scorer.score(**ragged, aggregate="mean") == pytest.approx([sum(single[:2]) / 2, single[2]], abs=1e-6)


BLANKS = ["", " ", "\n", "\u3000\xa0"]


@pytest.mark.parametrize("aggregate", ["max", "mean"])
@pytest.mark.parametrize("blank", BLANKS)
def test_a_blank_reference_beside_others_is_left_out(scorer, blank, aggregate):
    candidates = ["good bye", "the cat", "a dog"]
    lists = [["a cat", "the mat"], ["it rains"], ["a dog", "hi there", "the cat"]]
    expected = scorer.compute(references=lists, candidates=candidates, aggregate=aggregate)
    with_blanks = [[blank, "a cat", "the mat"], ["it rains", blank, blank], ["a dog", "hi there", blank, "the cat"]]
    result = scorer.compute(references=with_blanks, candidates=candidates, aggregate=aggregate)
    assert result == expected and result.pairs == 6 and not result.warnings


@pytest.mark.parametrize("blank", BLANKS)
def test_candidates_without_a_reference_that_has_text_are_counted(scorer, blank):
    references = [[blank], ["a cat", blank], [blank, ""], [""]]
    with pytest.warns(UserWarning, match="3 of 4 pairs have a blank reference: their scores mean nothing") as caught:
        result = scorer.compute(references=references, candidates=["a dog", "a cat", "the mat", blank])
    assert (result.blank, result.pairs, result.warnings) == (3, 4, (str(caught[0].message),))
    assert result.scores[0] == pytest.approx(scorer.score(references=[blank], candidates=["a dog"])[0], abs=1e-5)
    assert "blank=3" in repr(result)


def test_a_blank_source_is_counted_where_nothing_else_is_read(tmp_path):
    scorer = BleurtScorer(str(make_tiny_scorer(tmp_path / "free", inputs=("source", "candidate"))))
    with pytest.warns(UserWarning, match="1 of 2 pairs have a blank source"):
        scorer.score(sources=[" ", "it rains"], candidates=["a cat", ""])


def test_truncation_is_said_and_counted(scorer):
    long = " ".join(["cat"] * 100)
    with pytest.warns(UserWarning, match=r"2 of 3 pairs were longer than the 64 tokens"):
        result = scorer.compute(references=[long, long, "a cat"], candidates=["a", "a", "a"])
    assert result.truncated == 2
    with pytest.warns(UserWarning, match="longer than"):
        scorer.score(references=[long], candidates=["a"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scorer.compute(references=["a cat"], candidates=["a"]).truncated == 0


@pytest.mark.parametrize("function", ["score", "compute"])
def test_the_warning_points_at_the_line_that_called(scorer, function):
    with pytest.warns(UserWarning, match="longer than") as found:
        getattr(scorer, function)(references=[" ".join(["cat"] * 100)], candidates=["a"])
    assert [Path(warning.filename).name for warning in found] == ["test_scorer.py"]


def test_only_the_end_of_a_long_text_goes_unread(scorer):
    start = " ".join(["cat"] * 80)
    with pytest.warns(UserWarning):
        same, other = scorer.score(references=[start, "dog " + start], candidates=["a", "a"])
        longer = scorer.score(references=[start + " dog"], candidates=["a"])[0]
    assert longer == pytest.approx(same, abs=1e-6)
    assert other != pytest.approx(same, abs=1e-5)


def test_result_holds_mean_and_signature(scorer, tiny_scorer):
    result = scorer.compute(references=["a cat", "a dog"], candidates=["a", "b"], aggregate="mean")
    assert result.mean_score == pytest.approx(sum(result.scores) / 2)
    assert scorer.signature == (
        f"checkpoint:tiny|hash:{content_hash(tiny_scorer)}|inputs:reference+candidate|max_length:64"
        "|dtype:float32|aggregate:max|version:0.1.0"
    )
    assert result.signature == scorer.signature.replace("aggregate:max", "aggregate:mean")


def test_no_pairs_give_no_scores(scorer):
    result = scorer.compute(references=[], candidates=[])
    assert (result.scores, result.mean_score, result.truncated) == ([], None, 0)


@pytest.mark.parametrize(
    "text",
    ["", "   ", "\ud800", "a\udfffb", "\x00", "\U0001f408 cat", "\u05e9\u05dc\u05d5\u05dd", "x" * 100_000, "cat " * 25_000,
     "[SEP] [CLS] [MASK]", "\u202ecat\u2028dog\r\n"],
    ids=lambda text: ascii(text[:12]),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*longer than:UserWarning")
def test_strange_text_is_scored(scorer, text):
    scores = scorer.score(references=["a cat", text, text], candidates=[text, "a cat", text])
    assert all(abs(score) < 100 for score in scores)


def test_special_tokens_in_text_are_text(scorer):
    scores = scorer.score(references=["cat [SEP] dog"] * 2, candidates=["cat [PAD]", "cat"])
    assert scores[0] != pytest.approx(scores[1], abs=1e-5)
    assert scorer.tokenizer.sep_token_id not in scorer.members[0].encoder.tokenize(["cat [SEP] dog"])["cat [SEP] dog"]


@pytest.mark.parametrize("convert", [list, tuple, iter, lambda texts: __import__("numpy").array(texts)])
def test_any_sequence_of_strings_will_do(scorer, convert):
    expected = scorer.score(references=["a cat", "a dog"], candidates=["cat", "dog"])
    assert scorer.score(references=convert(["a cat", "a dog"]), candidates=convert(["cat", "dog"])) == expected


BAD_INPUT = [
    ({"references": "a cat", "candidates": ["a"]}, TypeError, "references must be a list of strings, found a single str"),
    ({"references": ["a"], "candidates": "a cat"}, TypeError, "candidates must be a list of strings, found a single str"),
    ({"references": ["a"], "candidates": b"a"}, TypeError, "candidates must be a list of strings, found a single bytes"),
    ({"references": None, "candidates": ["a"]}, ValueError, "tiny reads the reference of each candidate: give references"),
    ({"references": {"a": "b"}, "candidates": ["a"]}, TypeError, "references must be a list of strings, found dict"),
    ({"references": ["a", "b"], "candidates": ["a"]}, ValueError, "found 2 references, 1 candidates"),
    ({"references": ["a", "b"], "candidates": ["a", None]}, TypeError, r"candidates\[1\] must be a string, found None"),
    ({"references": ["a", 3], "candidates": ["a", "b"]}, TypeError, r"references\[1\] must be a string, found int"),
    ({"references": ["a"], "candidates": [b"a"]}, TypeError, r"candidates\[0\] must be a string, found bytes"),
    ({"references": [["a"], []], "candidates": ["a", "b"]}, ValueError, r"references\[1\] is empty"),
    ({"references": [["a"], "b"], "candidates": ["a", "b"]}, TypeError, r"references\[1\] is a string but references\[0\]"),
    ({"references": [["a", None]], "candidates": ["a"]}, TypeError, r"references\[0\]\[1\] must be a string, found None"),
    ({"references": [["a"], 5], "candidates": ["a", "b"]}, TypeError, r"references\[1\] must be a string or a list"),
    ({"references": ["a"], "candidates": ["a"], "sources": ["a"]}, ValueError, "tiny reads no sources"),
    ({"references": ["a"], "candidates": ["a"], "aggregate": "min"}, ValueError, "one of max, mean, found 'min'"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_INPUT)
def test_bad_input_gets_one_clear_error(scorer, arguments, error, message):
    with pytest.raises(error, match=message):
        scorer.score(**arguments)


def test_arguments_are_keyword_only(scorer):
    with pytest.raises(TypeError):
        scorer.score(["a"], ["a"])


def test_sources(tiny_source_scorer):
    scorer = BleurtScorer(str(tiny_source_scorer), device="cpu")
    texts = {"references": ["a cat"] * 2, "candidates": ["the cat"] * 2}
    first, second = scorer.score(**texts, sources=["hi there", "good bye"])
    assert first != pytest.approx(second, abs=1e-5)
    with pytest.raises(ValueError, match="reads the source of each candidate"):
        scorer.score(**texts)
    with pytest.raises(ValueError, match="found 2 references, 2 candidates, 1 sources"):
        scorer.score(**texts, sources=["hi"])
    with pytest.raises(TypeError, match=r"^sources\[1\] must be a string, found None"):
        scorer.score(**texts, sources=["hi", None])


def test_half_precision_is_near(tiny_scorer, scorer, pairs):
    half = BleurtScorer(str(tiny_scorer), device="cpu", dtype="bfloat16")
    assert half.model.dtype == torch.bfloat16
    assert "dtype:bfloat16" in half.signature
    scores = scorer.score(references=pairs[0], candidates=pairs[1])
    assert half.score(references=pairs[0], candidates=pairs[1]) == pytest.approx(scores, abs=0.15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "int8"}, "dtype must be one of float32"),
        ({"device": "abacus"}, "device must be one that torch knows"),
        ({"batch_tokens": 0}, "batch_tokens must be a positive number"),
        ({"batch_tokens": 2.5}, "batch_tokens must be a positive number"),
    ],
)
def test_bad_options(tiny_scorer, arguments, message):
    with pytest.raises(ValueError, match=message):
        BleurtScorer(str(tiny_scorer), **arguments)


def test_progress_bar_shows_pairs(tiny_scorer, capsys, monkeypatch):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    BleurtScorer(str(tiny_scorer), device="cpu", progress=True).score(references=["a"], candidates=["b"])
    assert "1/1" in capsys.readouterr().err
    BleurtScorer(str(tiny_scorer), device="cpu").score(references=["a"], candidates=["b"])
    assert capsys.readouterr().err == ""  # no terminal, no bar


def test_systems_in_one_pass_have_the_results_of_a_call_each(tiny_scorer):
    scorer = BleurtScorer(str(tiny_scorer), device="cpu", progress=False)
    references = [["the cat sat on the mat", "a cat sat"], ["it rains"], [" "]]
    systems = {"A": ["a cat", "it rains", "good"], "B": ["a cat", "rain \u4f60 " * 30, "bye"]}
    with pytest.warns(UserWarning) as shown:
        results = scorer.compute_systems(references=references, systems=systems)
    for name, candidates in systems.items():
        with pytest.warns(UserWarning):
            expected = scorer.compute(references=references, candidates=candidates)
        assert results[name].scores == pytest.approx(expected.scores, abs=1e-6)
        for count in ("pairs", "truncated", "unknown", "unread", "blank", "warnings", "signature"):
            assert getattr(results[name], count) == getattr(expected, count)
    assert results["A"].scores[0] == results["B"].scores[0] and results["B"].truncated == 1
    messages = [f"{name}: {message}" for name, result in results.items() for message in result.warnings]
    assert [str(warning.message) for warning in shown] == messages and len(messages) >= 3
