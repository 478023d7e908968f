"""The adversarial experiment: what is made of a reference, and what is counted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bleurt_repro.training.experiments.adversarial import (
    BEST_RANDOM,
    COPY,
    OUTPUT,
    RANDOM_WORD,
    AdversarialOptions,
    Segment,
    degenerate,
    exchange_word,
    make_candidates,
    measure,
    random_words,
    read_segments,
    run_adversarial,
    turned_meanings,
    turners,
)
from bleurt_repro.training.experiments.stress import Candidates

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("text", "groups", "expected"),
    [
        ("It cost two million.", [["million", "billion"]], "It cost two billion."),
        ("Up it went.", [["up", "down"]], "Down it went."),
        ("He may go in May.", [["May", "June"]], "He may go in June."),
        ("It cost $5.", [["$", "€"]], "It cost €5."),
        ("The upkeep of it.", [["up", "down"]], None),
    ],
)
def test_one_whole_word_is_exchanged(text, groups, expected):
    assert exchange_word(text, groups, RANDOM) == expected


def test_each_group_of_words_turns_a_sentence_and_no_word_is_its_own_opposite():
    for kind, groups in turned_meanings().items():
        for group in groups:
            assert len(set(group)) == len(group) > 1, (kind, group)
            text = f"So it was {group[0]} then."
            assert exchange_word(text, groups, RANDOM) not in (None, text)


def test_a_random_word_changes_one_word_of_content():
    text = "The Minister met the farmers."
    for changed in random_words(text, ["table", "river"], 20, RANDOM):
        pairs = list(zip(text.split(), changed.split(), strict=True))
        assert sum(one != other for one, other in pairs) == 1
        assert all(one == other for one, other in pairs if one.lower() == "the")
        assert changed.split()[1][0].isupper()


def test_degenerate_candidates_are_no_copies():
    found = dict(degenerate(Segment("Is it?", ("x",), "Ist es?"), Segment("Another one.", ("y",)), RANDOM))
    assert "as_question" not in found  # it is one already
    assert found["repeated"] == "Is it? Is it?"
    assert found["another_language"] == "Ist es?"
    assert found["other_reference"] == "Another one."


def test_shares_are_counted_against_the_copy_and_the_outputs_of_the_same_reference():
    made = Candidates()
    entries = [
        ("a", COPY, 2.0),
        ("a", OUTPUT, 0.0),
        ("a", OUTPUT, 1.0),
        ("b", COPY, 1.0),
        ("b", OUTPUT, 0.8),
        ("a", "number", 1.9),  # passes
        ("a", "number", 0.4),  # below the outputs' mean of 0.5
        ("b", "number", 0.82),  # above the outputs, not within the margin
        ("b", "empty", 1.1),  # above the copy
        ("a", RANDOM_WORD, 0.4),
        ("a", RANDOM_WORD, 0.6),
    ]
    for reference, kind, _ in entries:
        made.add(reference, kind, f"{reference} {kind}")
    figures, passing = measure(made, np.array([score for *_, score in entries]), 0.15)
    kinds = figures["kinds"]
    assert (figures["copy"], figures["output"], figures["margin"]) == (1.5, 0.65, 0.15)
    assert [kinds["number"][name]["right"] for name in ("passes", "above_copy", "above_output")] == [1, 0, 2]
    assert [kinds["empty"][name]["right"] for name in ("passes", "above_copy", "above_output")] == [1, 1, 1]
    assert (kinds[RANDOM_WORD]["above_output"]["right"], kinds[BEST_RANDOM]["above_output"]["share"]) == (1, 1.0)
    assert kinds["turned_meanings"]["n"] == 3
    assert [failure["score"] for failure in passing] == [1.9]
    relative, _ = measure(made, np.array([10 * score for *_, score in entries]), 0.15, share=0.1)
    assert relative["margin"] == pytest.approx(0.1 * 8.5)


def test_the_experiment_from_a_file_to_its_table(tmp_path, tiny_scorer):
    path = tmp_path / "ratings.jsonl"
    rows = [
        {
            "reference": f"In May {number} million farmers went up the hill.",
            "candidate": f"Farmers {number}",
            "score": 0.1,
        }
        for number in range(2, 8)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = AdversarialOptions(
        str(path), str(tmp_path / "out"), [str(tiny_scorer)], ["chrf++"], most_references=4, random_words=3
    )
    assert make_candidates(read_segments(path), options) == make_candidates(read_segments(path), options)
    results = run_adversarial(options)
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == json.loads(json.dumps(results.to_json()))
    chrf = next(row for row in results["rows"] if row["kind"] == "baseline")
    assert {"magnitudes", "directions", "number", "empty", BEST_RANDOM} <= set(chrf["kinds"])
    assert chrf["kinds"]["magnitudes"]["n"] == 6
    own = next(row for row in results["rows"] if row["kind"] == "checkpoint")
    shares = [row["margin"] / (row["copy"] - row["output"]) for row in (own, chrf)]
    assert own["margin"] == 0.15 and shares[0] == pytest.approx(shares[1])
    assert chrf["kinds"]["empty"]["passes"]["share"] == 0
    assert chrf["kinds"]["magnitudes"]["above_output"]["share"] == 1
    table = (tmp_path / "out" / "table.md").read_text()
    assert "| magnitudes" in table and chrf["signature"] in table
    assert "--baselines chrf++" in results["command"] and results["seed"] == 0
    assert set(turners(())) & set(chrf["kinds"])


def test_a_second_run_with_the_cache_scores_nothing_again(tmp_path, tiny_scorer, monkeypatch):
    from bleurt_repro.metric.forward.pairs import PairScorer

    path = tmp_path / "ratings.csv"
    path.write_text("reference,candidate,score\nIt went up in May.,It rose.,1\nTwo million came.,Many came.,1\n")

    def run(name, **settings):
        options = AdversarialOptions(str(path), str(tmp_path / name), [str(tiny_scorer)], random_words=2, **settings)
        return run_adversarial(options).to_json()

    assert "|dtype:bfloat16|" in run("half", dtype="bfloat16")["rows"][0]["signature"]
    without, first = run("without"), run("first", cache=str(tmp_path / "cache"))
    monkeypatch.setattr(PairScorer, "_score_encoded", lambda *_, **__: pytest.fail("scored again"))
    assert run("second", cache=str(tmp_path / "cache")) == first == without


def test_what_cannot_be_judged_is_refused(tmp_path):
    with pytest.raises(ValueError, match="name at least one checkpoint or baseline"):
        run_adversarial(AdversarialOptions("r.jsonl", "out"))
    with pytest.raises(ValueError, match="unknown baseline bleurgh: available are sentbleu"):
        run_adversarial(AdversarialOptions("r.jsonl", "out", baselines=["bleurgh"]))
    with pytest.raises(ValueError, match="random_words must be at least 1, found 0"):
        AdversarialOptions("r.jsonl", "out", baselines=["chrf++"], random_words=0)
    for name in ("a", "b"):
        (tmp_path / name / "scorer").mkdir(parents=True)
    two = [str(tmp_path / name / "scorer") for name in ("a", "b")]
    with pytest.raises(ValueError, match="two rows are called scorer: give each"):
        run_adversarial(AdversarialOptions("r.jsonl", "out", two))
    path = tmp_path / "one.csv"
    path.write_text("reference,candidate,score\na,b,1\n")
    with pytest.raises(ValueError, match="at least two references with candidates, found 1"):
        read_segments(path)


@pytest.mark.parametrize(
    ("references", "output", "message"),
    [
        (("A B", "D E"), "C", "no word of three or more lower-case letters"),
        (("the cat", "the dog"), "C", "the 2 references have no word that turns their meaning"),
        (("it was up and down", "and this one was up"), None, "the 2 references have no candidate that differs"),
    ],
)
def test_files_that_allow_no_judgement_are_refused_before_anything_is_scored(references, output, message):
    segments = [Segment(reference, (output or reference,)) for reference in references]
    with pytest.raises(ValueError, match=message):
        make_candidates(segments, AdversarialOptions("r.jsonl", "out", baselines=["chrf++"]))


def test_a_kind_whose_references_have_copies_for_outputs_alone_has_no_share_above_them(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(
        "reference,candidate,score\nIt rose by two million.,It rose by two million.,1\nHe went up the hill.,He climbed.,1\n"
    )
    results = run_adversarial(AdversarialOptions(str(path), str(tmp_path / "out"), baselines=["chrf++"]))
    kinds = results["rows"][0]["kinds"]
    assert kinds["magnitudes"]["above_output"] is None and kinds["directions"]["above_output"]["n"] == 1
    (line,) = (line for line in (tmp_path / "out" / "table.md").read_text().splitlines() if "| magnitudes" in line)
    assert line.split("|")[-2].strip() == "-"
