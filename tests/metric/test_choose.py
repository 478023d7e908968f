"""Choosing among candidates: the same choice as scoring every pair, each different pair once, and what pruning costs."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from bleurt_repro import BleurtScorer, choose
from bleurt_repro.metric import choose as module
from bleurt_repro.metric.choose import Choice

WORDS = "the cat sat on a mat it rains dog good bye hi there stock prices fell".split()


def samples(count: int, seed: int) -> list[str]:
    """Return sentences as a sampler gives them: the words of one sentence, some of them exchanged, and repeats."""
    rng = random.Random(seed)
    sentence = rng.choices(WORDS, k=6)
    return [" ".join(rng.choice(WORDS) if rng.random() < 0.15 else word for word in sentence) for _ in range(count)]


SEGMENTS = [samples(12, seed) for seed in range(6)]


@pytest.fixture(scope="module")
def scorer(tiny_scorer):
    return BleurtScorer(str(tiny_scorer), device="cpu", progress=False)


@pytest.fixture
def scored(scorer, monkeypatch):
    """Return the list of the pairs that the scorer's model gets."""
    items: list[tuple[str, ...]] = []
    member = scorer.members[0]
    score = member.score
    monkeypatch.setattr(member, "score", lambda pairs, *rest: items.extend(pairs) or score(pairs, *rest))
    return items


def expected_scores(scorer, texts: list[str]) -> list[float]:
    """Return the mean score of each sample with the others as references, pair by pair."""
    return [
        float(
            np.mean(
                [scorer.score(candidates=[text], references=[other])[0] for j, other in enumerate(texts) if j != i]
            )
        )
        for i, text in enumerate(texts)
    ]


def test_the_matrix_has_the_score_of_each_candidate_with_each_reference(scorer):
    candidates, references = SEGMENTS[0][:3], SEGMENTS[1][:4]
    matrix = scorer.matrix(candidates, references)
    assert matrix.shape == (3, 4)
    for i, candidate in enumerate(candidates):
        assert matrix[i].tolist() == pytest.approx(
            scorer.score(candidates=[candidate] * 4, references=references), abs=1e-5
        )
    assert scorer.matrix([], references).shape == (0, 4)
    with pytest.raises(TypeError, match="references must be a list of strings, found a single str"):
        scorer.matrix(candidates, "the cat")


def test_the_matrix_takes_one_source(tiny_source_scorer):
    scorer = BleurtScorer(str(tiny_source_scorer), device="cpu", progress=False)
    matrix = scorer.matrix(["the cat", "it rains"], ["good bye"], source="hi there")
    expected = scorer.score(candidates=["the cat", "it rains"], references=["good bye"] * 2, sources=["hi there"] * 2)
    assert matrix[:, 0].tolist() == pytest.approx(expected, abs=1e-5)


def test_mbr_chooses_as_scoring_every_pair_does(scorer):
    choices = choose(scorer, SEGMENTS[:3])
    for texts, choice in zip(SEGMENTS, choices, strict=False):
        expected = expected_scores(scorer, texts)
        assert choice.scores == pytest.approx(expected, abs=1e-5)
        assert choice.index == int(np.argmax(np.round(expected, 5)))
        assert choice.text == texts[choice.index]


def test_each_different_pair_is_scored_once_and_no_sample_with_itself_alone(scorer, scored):
    (choice,) = choose(scorer, [["the cat", "it rains", "the cat", "good bye"]])
    # "the cat" was drawn twice, so that each of the two is a reference of the other
    assert choice.pairs == len(scored) == len(set(scored)) == 7
    assert ("it rains", "it rains") not in scored and ("the cat", "the cat") in scored


def test_passes_divide_the_work_without_changing_it(scorer, monkeypatch):
    choices = choose(scorer, SEGMENTS)
    monkeypatch.setattr(module, "PAIRS_PER_PASS", 300)
    for one, all_at_once in zip(choose(scorer, SEGMENTS), choices, strict=True):
        assert (one.index, one.pairs) == (all_at_once.index, all_at_once.pairs)
        assert one.scores == pytest.approx(all_at_once.scores, abs=1e-5)


def test_the_sources_of_samples_are_those_of_their_segment(tiny_source_scorer):
    scorer = BleurtScorer(str(tiny_source_scorer), device="cpu", progress=False)
    texts = [["the cat", "it rains"], ["good bye", "hi"]]
    choices = choose(scorer, texts, sources=["a dog", "prices fell"])
    for choice, (first, second), source in zip(choices, texts, ["a dog", "prices fell"], strict=True):
        expected = scorer.score(candidates=[first, second], references=[second, first], sources=[source] * 2)
        assert choice.scores == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("aggregate", ["max", "mean"])
def test_the_best_of_n_is_the_best_score_against_the_references(scorer, aggregate):
    references = [["the cat sat", "a mat"], ["it rains there", "good bye"]]
    for texts, choice, choices_references in zip(
        SEGMENTS, choose(scorer, SEGMENTS[:2], references, aggregate=aggregate), references, strict=False
    ):
        expected = scorer.score(candidates=texts, references=[choices_references] * 12, aggregate=aggregate)
        assert choice.scores == pytest.approx(expected, abs=1e-5)
        assert choice.index == int(np.argmax(np.round(expected, 5)))
        assert choice.pairs == 2 * len(set(texts))


def test_blank_samples_are_neither_chosen_nor_references(scorer, scored):
    (choice,) = choose(scorer, [["", "the cat", " ", "it rains"]])
    assert choice.text in ("the cat", "it rains")
    assert choice.scores[0] is None and choice.scores[2] is None
    assert sorted(scored) == [("it rains", "the cat"), ("the cat", "it rains")]


def test_a_sample_without_others_is_chosen_without_a_score(scorer, scored):
    assert choose(scorer, [["the cat"], ["", "a dog"]]) == [
        Choice(0, "the cat", [None], 0),
        Choice(1, "a dog", [None, None], 0),
    ]
    assert scored == []


def test_pruning_scores_fewer_pairs_and_chooses_what_is_clear(scorer, scored):
    rng = random.Random(0)
    segments = [[*samples(24, seed), *(" ".join(rng.choices(WORDS, k=12)) for _ in range(8))] for seed in range(6)]
    exact = choose(scorer, segments)
    scored.clear()
    pruned = choose(scorer, segments, prune=True)
    pairs = sum(choice.pairs for choice in pruned)
    assert pairs == len(set(scored)) < 0.8 * sum(choice.pairs for choice in exact)
    for one, full in zip(pruned, exact, strict=True):
        # what was chosen is among the best by all pairs, and what was pruned has no score
        assert full.scores[one.index] >= max(full.scores) - 0.1 * np.std(full.scores)
        assert one.scores[one.index] == max(score for score in one.scores if score is not None)
        assert None in one.scores
    assert pruned == choose(scorer, segments, prune=True)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"candidates": ["the cat"]}, TypeError, r"candidates\[0\] must be a list of strings, found a single str"),
        ({"candidates": [["a"], []]}, ValueError, r"candidates\[1\] is empty"),
        ({"candidates": [["a"]], "references": ["a", "b"]}, ValueError, "found 1 candidates, 2 references"),
        ({"candidates": [["a"]], "references": ["a"], "prune": True}, ValueError, "prune is for a choice among samples"),
        ({"candidates": [["a", "b"]], "sources": ["c"]}, ValueError, "tiny reads no sources"),
        ({"candidates": [["a", "b"]], "aggregate": "best"}, ValueError, "aggregate must be one of"),
    ],
)  # fmt: skip
def test_what_cannot_be_chosen_from_is_said(scorer, arguments, error, message):
    with pytest.raises(error, match=message):
        choose(scorer, **arguments)


def test_one_warning_counts_the_pairs_of_all_passes(scorer, monkeypatch):
    monkeypatch.setattr(module, "PAIRS_PER_PASS", 4)
    with pytest.warns(UserWarning, match="4 of 4 pairs were longer than the 64 tokens") as caught:
        choose(scorer, [["cat " * 100, "dog"], ["cat " * 100, "mat"]])
    assert len(caught) == 1


# --- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, tiny_scorer, monkeypatch, capsys):
    from bleurt_repro.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps({"candidates": texts}) + "\n" for texts in SEGMENTS))
    (tmp_path / "r.txt").write_text("\n".join(texts[3] for texts in SEGMENTS) + "\n")

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(["choose", "--checkpoint", str(tiny_scorer), *words])
        printed = capsys.readouterr()
        return int(stop.value.code or 0), printed.out, printed.err

    return call


def test_the_command_writes_the_chosen_texts_and_says_what_it_cost(run, scorer, tmp_path):
    choices = choose(scorer, SEGMENTS)
    code, out, err = run("-c", "samples.jsonl")
    assert (code, out.splitlines()) == (0, [choice.text for choice in choices])
    pairs = sum(choice.pairs for choice in choices)
    assert err == f"6 segments, {pairs:,} pairs scored; {scorer.signature}\n"
    code, out, _ = run("-c", "samples.jsonl", "-o", "chosen.txt")
    assert (code, out) == (0, "")
    assert (tmp_path / "chosen.txt").read_text().splitlines() == [choice.text for choice in choices]


def test_the_command_writes_json_lines_against_references(run, scorer, tmp_path):
    references = [texts[3] for texts in SEGMENTS]
    for _ in range(2):  # the second time it replaces its own output
        assert run("-c", "samples.jsonl", "-r", "r.txt", "--json", "-o", "chosen.jsonl")[0] == 0
    rows = [json.loads(line) for line in (tmp_path / "chosen.jsonl").read_text().splitlines()]
    for row, choice in zip(rows, choose(scorer, SEGMENTS, references), strict=True):
        assert list(row) == ["index", "candidate", "scores", "pairs"]
        assert (row["index"], row["candidate"], row["pairs"]) == (choice.index, choice.text, choice.pairs)
        assert row["scores"] == pytest.approx(choice.scores, abs=1e-5)


@pytest.mark.parametrize(
    ("line", "words", "message"),
    [
        ('{"candidate": "a"}', [], 's.jsonl, line 1: expected "candidates", a list of at least one string'),
        ('{"candidates": []}', [], 'expected "candidates", a list of at least one string'),
        ('{"candidates": ["a", null]}', [], 'expected "candidates", a list of at least one string'),
        (
            '{"candidates": ["a\\nb", "c"]}',
            [],
            "candidates with line breaks cannot be written one per line: add --json",
        ),
        ('{"candidates": ["a", "b"]}', ["-r", "r.txt"], "found 1 candidates, 6 references"),
        ('{"candidates": ["a", "b"]}', ["-o", "r.txt"], "the output r.txt exists and bleurt-repro did not write it"),
    ],
)
def test_an_input_error_of_the_command_is_one_line(run, tmp_path, line, words, message):
    (tmp_path / "s.jsonl").write_text(line + "\n")
    code, out, err = run("-c", "s.jsonl", *words)
    assert (code, out) == (2, "")
    assert message in err and len(err.splitlines()) == 1
