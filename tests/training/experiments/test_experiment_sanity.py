"""The sanity experiment: its figures of pairs, from stubs that can be counted by hand."""

from __future__ import annotations

import json
import re

import pytest

from bleurt_repro.training.experiments.minimal_pairs import (
    TABLES,
    MinimalPair,
    count_by_type,
    count_low_copies,
    judge_pairs,
    read_minimal_pairs,
)
from bleurt_repro.training.experiments.report import save_plot
from bleurt_repro.training.experiments.sanity import (
    SanityOptions,
    below_expected,
    draw_plot,
    draw_table,
    run_sanity,
)
from bleurt_repro.training.metrics import baselines
from bleurt_repro.training.metrics.baselines import Scored

PAIRS = [
    MinimalPair("number", "two cats", "a pair of cats", "ten cats"),
    MinimalPair("number", "six dogs", "half a dozen dogs", "five dogs"),
    MinimalPair("tense", "it rains", "rain is falling", "it rained"),
    MinimalPair("number", "one bird", "a single bird", "no bird"),
]
SCORES = {
    "a pair of cats": 0.9,
    "ten cats": 0.1,
    "half a dozen dogs": 0.4,
    "five dogs": 0.4,  # a tie
    "rain is falling": -1.0,
    "it rained": 2.0,
    "a single bird": -0.5,
    "no bird": -0.6,
    # copies of the references
    "two cats": 1.0,
    "six dogs": 0.4,  # a tie
    "it rains": 1.0,
    "one bird": -0.5,
}


def stub(references, candidates):
    assert len(references) == len(candidates)
    return Scored([SCORES[candidate] for candidate in candidates], "stub|v:1")


def write_pairs(path, pairs=PAIRS):
    path.write_text("\n".join(["type\treference\tbetter\tworse", *("\t".join(pair) for pair in pairs)]) + "\n")
    return path


def test_a_tie_counts_as_wrong():
    judged, signature = judge_pairs(PAIRS, stub)
    assert signature == "stub|v:1"
    assert [row["right"] for row in judged] == [True, False, False, True]
    assert [judged[2][f"score_{name}"] for name in ("better", "worse", "copy")] == [-1.0, 2.0, 1.0]


def test_copies_that_score_lower_than_a_candidate_are_counted_and_ties_are_not():
    low = count_low_copies(judge_pairs(PAIRS, stub)[0])
    assert (low["right"], low["n"]) == (1, 4)


def test_shares_with_wilson_intervals():
    shares = count_by_type(judge_pairs(PAIRS, stub)[0])
    assert list(shares) == ["number", "tense", "overall"]
    assert shares["number"] == {
        "right": 2,
        "n": 3,
        "share": pytest.approx(2 / 3),
        "low": pytest.approx(0.2077, abs=1e-4),
        "high": pytest.approx(0.9385, abs=1e-4),
    }
    assert (shares["tense"]["share"], shares["overall"]["share"]) == (0, 0.5)
    assert shares["overall"]["low"] == pytest.approx(0.1500, abs=1e-4)
    assert shares["overall"]["high"] == pytest.approx(0.8500, abs=1e-4)


@pytest.mark.parametrize(
    ("overall", "one_type", "below"),
    [(0.85, 0.70, []), (0.84, 0.70, ["overall"]), (0.85, 0.69, ["tense"]), (0.5, 0.5, ["tense", "overall"])],
)
def test_what_is_expected(overall, one_type, below):
    assert below_expected({"tense": {"share": one_type}, "overall": {"share": overall}}) == below


def run(output, **settings):
    return run_sanity(SanityOptions(str(output), **settings))


def test_what_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(baselines.BASELINES, "stub", stub)
    results = run(tmp_path / "out", baselines=["stub"], pairs=write_pairs(tmp_path / "pairs.tsv"))
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    assert written == results
    assert results["command"] == "bleurt-repro experiment sanity --baselines stub --pairs pairs.tsv --output OUT"
    data = results["data"]["pairs"]
    assert (data["file"], data["pairs"]) == ("pairs.tsv", 4) and re.fullmatch("[0-9a-f]{64}", data["sha256"])
    (row,) = results["rows"]
    assert (row["signature"], row["tables"]["pairs"]["below"]) == ("stub|v:1", ["number", "tense", "overall"])
    failures = [line.split("\t") for line in (tmp_path / "out" / "failures.tsv").read_text().splitlines()]
    assert failures == [
        ["metric", "table", "type", "reference", "better", "worse", "score_better", "score_worse"],
        ["stub", "pairs", "number", "six dogs", "half a dozen dogs", "five dogs", "0.4", "0.4"],
        ["stub", "pairs", "tense", "it rains", "rain is falling", "it rained", "-1.0", "2.0"],
    ]
    drawn = (tmp_path / "out" / "table.md").read_text()
    assert drawn == draw_table(written)
    assert "| number  | 3       | 66.7 [20.8, 93.9] |" in drawn
    assert "stub: below in number 67, tense 0, overall 50; a copy of the reference scores lower than a" in drawn
    assert (tmp_path / "out" / "sanity.png").read_bytes().startswith(b"\x89PNG")
    save_plot(draw_plot(written), tmp_path, "sanity")
    assert (tmp_path / "out" / "sanity.svg").read_bytes() == (tmp_path / "sanity.svg").read_bytes()


def test_all_tables_by_default(tmp_path):
    results = run(tmp_path, baselines=["chrf++"])
    assert {name: data["pairs"] for name, data in results["data"].items()} == {
        "minimal_pairs": 253,
        "near_copies": 253,
        "swapped_roles": 60,
        "free_paraphrases": 60,
    }
    minimal, near, *_ = (results["rows"][0]["tables"][name]["shares"] for name in TABLES)
    assert (
        near["overall"]["share"] < 0.2 < 0.6 < minimal["overall"]["share"]
    )  # shared words mislead in one table alone
    assert near["paraphrase"]["right"] == 0
    drawn = (tmp_path / "table.md").read_text()
    assert "**Minimal pairs: the better candidate against itself with an error in it**" in drawn
    assert "**Near copies: the better candidate against the reference with an error in it" in drawn
    assert results["command"] == "bleurt-repro experiment sanity --baselines chrf++ --output OUT"


def test_a_checkpoint_beside_a_baseline(tmp_path, tiny_scorer):
    results = run(
        tmp_path,
        checkpoint=[str(tiny_scorer)],
        baselines=["chrf++", f"bertscore:{tiny_scorer}"],
        pairs=write_pairs(tmp_path / "p.tsv"),
        dtype="bfloat16",
    )
    assert "|dtype:bfloat16|" in results["rows"][0]["signature"]
    named = [(row["name"], row["kind"]) for row in results["rows"]]
    assert named == [("tiny", "checkpoint"), ("chrf++", "baseline"), ("bertscore (tiny)", "baseline")]
    assert "--baselines chrf++ bertscore:tiny " in results["command"]
    assert results["rows"][0]["signature"].startswith("checkpoint:tiny|hash:")
    assert results["command"].count("--checkpoint tiny ") == 1


def test_a_second_run_with_the_cache_scores_nothing_again(tmp_path, tiny_scorer, monkeypatch):
    from bleurt_repro.metric.forward.pairs import PairScorer

    (tmp_path / "references.txt").write_text("one dog barks\ntwo cats sleep here\n")
    settings = {
        "checkpoint": [str(tiny_scorer)],
        "pairs": write_pairs(tmp_path / "p.tsv"),
        "references": str(tmp_path / "references.txt"),
    }
    without = run(tmp_path / "without", **settings)
    first = run(tmp_path / "first", **settings, cache=str(tmp_path / "cache"))
    monkeypatch.setattr(PairScorer, "_score_encoded", lambda *_, **__: pytest.fail("scored again"))
    assert run(tmp_path / "second", **settings, cache=str(tmp_path / "cache")) == first == without


def test_a_checkpoint_that_reads_sources_is_refused(tmp_path, tiny_source_scorer):
    with pytest.raises(ValueError, match="reads sources, but this experiment has none"):
        run(tmp_path, checkpoint=[str(tiny_source_scorer)], pairs=write_pairs(tmp_path / "p.tsv"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "name at least one checkpoint or baseline"),
        ({"baselines": ["bleurgh"]}, "unknown baseline bleurgh: available are sentbleu"),
        ({"baselines": ["chrf++"], "most_references": 0}, "at least 1, found 0"),
        ({"baselines": ["chrf++", "chrf++"]}, r"two rows are called chrf\+\+: give each"),
    ],
)
def test_what_cannot_be_judged(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(tmp_path, **options)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("tense", "it rains", "", "it rained"), r"line 2: better missing or blank"),
        (("tense", "it rains", "it rains", "it rained"), r"line 2: reference, better and worse must differ"),
    ],
)
def test_faulty_tables_are_named_by_line(tmp_path, row, message):
    with pytest.raises(ValueError, match=message):
        read_minimal_pairs(write_pairs(tmp_path / "pairs.tsv", [row]))


def test_an_empty_table(tmp_path):
    with pytest.raises(ValueError, match="no pairs; expected at least one row"):
        read_minimal_pairs(write_pairs(tmp_path / "pairs.tsv", []))
