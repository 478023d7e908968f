"""The sanity experiment: its table of pairs as such, and its figures from stubs that can be counted by hand."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter

import numpy as np
import pytest

from bleurt_repro.training.experiments import baselines
from bleurt_repro.training.experiments.baselines import Scored
from bleurt_repro.training.experiments.extremes import KINDS, make_extremes, measure_extremes, read_references
from bleurt_repro.training.experiments.minimal_pairs import (
    TABLES,
    TYPES,
    MinimalPair,
    count_by_type,
    prefer,
    read_minimal_pairs,
)
from bleurt_repro.training.experiments.sanity import below_bars, run
from bleurt_repro.training.experiments.sanity_report import draw_plot, draw_table


@pytest.fixture(scope="module", params=list(TABLES))
def table(request):
    return read_minimal_pairs(TABLES[request.param])


def words(text):
    return re.sub(r"[^a-z0-9 ]", "", re.sub(r"[-\s]+", " ", text.lower())).split()


def letters(text):
    return re.sub(r"[^a-z0-9]", "", text.lower())


def test_each_type_has_its_rows(table):
    counts = Counter(pair.type for pair in table)
    assert list(counts) in (list(TYPES), ["word_order"], ["paraphrase"])
    assert min(counts.values()) >= 20


@pytest.mark.parametrize("column", ["reference", "worse"])
def test_no_text_stands_twice(table, column):
    assert [text for text, n in Counter(getattr(pair, column) for pair in table).items() if n > 1] == []


def test_texts_are_clean_and_of_varied_length(table):
    texts = [text for pair in table for text in pair[1:]]
    assert [text for text in texts if text != " ".join(text.split())] == []
    lengths = [len(pair.reference.split()) for pair in table]
    assert (
        min(lengths) >= 3 and max(lengths) >= (45 if len(table) > 100 else 30) and sum(n >= 25 for n in lengths) >= 8
    )


def test_candidates_differ_in_more_than_casing_and_punctuation(table):
    for pair in table:
        assert letters(pair.worse) not in (letters(pair.reference), letters(pair.better)), pair
        assert (letters(pair.better) == letters(pair.reference)) == (pair.type == "casing_punctuation"), pair


def test_casing_rows_have_few_wrong_words(table):
    for pair in (pair for pair in table if pair.type == "casing_punctuation"):
        there, here = words(pair.reference), words(pair.worse.replace("180km/h", "180 km/h"))
        assert len(there) == len(here) and sum(a != b for a, b in zip(there, here, strict=True)) <= 1, pair


def test_two_tables_ask_two_questions_of_the_same_better_candidates():
    minimal, near = (read_minimal_pairs(TABLES[name]) for name in ("minimal_pairs", "near_copies"))
    assert [pair[:3] for pair in minimal] == [pair[:3] for pair in near]

    def alike(one, two):
        return difflib.SequenceMatcher(None, words(one), words(two), autojunk=False).ratio()

    nearer = [alike(m.better, m.worse) >= alike(m.better, n.worse) for m, n in zip(minimal, near, strict=True)]
    # but where turning round who does what takes fewer words in the reference
    assert sum(nearer) >= len(nearer) - 5
    assert min(alike(pair.better, pair.worse) for pair in minimal) >= 0.4


def test_who_did_what_is_told_in_the_same_words():
    """No word tells the two candidates apart, but for a form of it: "him" for "he"."""
    for pair in read_minimal_pairs(TABLES["who_did_what"]):
        better, worse = Counter(words(pair.better)), Counter(words(pair.worse))
        assert (better - worse).total() <= 2 and words(pair.better) != words(pair.worse), pair


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
}


def stub(references, candidates):
    assert len(references) == len(candidates)
    return Scored([SCORES[candidate] for candidate in candidates], "stub|v:1")


def write_pairs(path, pairs=PAIRS):
    path.write_text("\n".join(["type\treference\tbetter\tworse", *("\t".join(pair) for pair in pairs)]) + "\n")
    return path


def test_a_tie_counts_as_wrong():
    judged, signature = prefer(PAIRS, stub)
    assert signature == "stub|v:1"
    assert [row["right"] for row in judged] == [True, False, False, True]
    assert judged[2]["score_better"] == -1.0 and judged[2]["score_worse"] == 2.0


def test_shares_with_wilson_intervals():
    shares = count_by_type(prefer(PAIRS, stub)[0])
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
def test_bars(overall, one_type, below):
    assert below_bars({"tense": {"share": one_type}, "overall": {"share": overall}}) == below


def test_what_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(baselines.BASELINES, "stub", stub)
    results = run(output=tmp_path / "out", baselines=["stub"], pairs=write_pairs(tmp_path / "pairs.tsv"))
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
    assert "stub: below in number 67, tense 0, overall 50" in drawn
    assert (tmp_path / "out" / "sanity.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out" / "sanity.svg").read_bytes() == draw_plot(written, "svg")


def test_all_tables_by_default(tmp_path):
    results = run(output=tmp_path, baselines=["chrf++"])
    assert {name: data["pairs"] for name, data in results["data"].items()} == {
        "minimal_pairs": 253,
        "near_copies": 253,
        "who_did_what": 60,
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
        output=tmp_path,
        checkpoints=[str(tiny_scorer)],
        baselines=["chrf++", f"bertscore:{tiny_scorer}"],
        pairs=write_pairs(tmp_path / "p.tsv"),
    )
    named = [(row["name"], row["kind"]) for row in results["rows"]]
    assert named == [("tiny", "checkpoint"), ("chrf++", "baseline"), ("bertscore (tiny)", "baseline")]
    assert "--baselines bertscore:tiny " in results["command"]
    assert results["rows"][0]["signature"].startswith("checkpoint:tiny|hash:")
    assert results["command"].count("--checkpoint tiny ") == 1


def test_a_checkpoint_that_reads_sources_is_refused(tmp_path, tiny_source_scorer):
    with pytest.raises(ValueError, match="reads sources, but minimal pairs have none"):
        run(output=tmp_path, checkpoints=[str(tiny_source_scorer)], pairs=write_pairs(tmp_path / "p.tsv"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "name at least one checkpoint or baseline"),
        ({"baselines": ["bleurgh"]}, "unknown baselines bleurgh: known are sentbleu"),
        ({"baselines": ["chrf++"], "most_references": 0}, "at least 1, found 0"),
    ],
)
def test_what_cannot_be_judged(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(output=tmp_path, **options)


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


RATED = {
    "the cat sat on the mat": ["a cat sat on the mat", "the cat sat on the mat", "the cat  sat on the mat"],
    "stock prices fell again today": ["stock prices rose", ""],
    "it rains": [],
}


def overlap(references, candidates):
    """The share of words in the same place: a sane metric, but for the weather."""
    scores = []
    for reference, candidate in zip(references, candidates, strict=True):
        there, here = reference.split(), candidate.split()
        same = sum(a == b for a, b in zip(there, here, strict=False))
        scores.append(same / max(len(there), len(here)) if reference != "it rains" else 0.0)
    return Scored(scores, "overlap")


def write_ratings(path):
    records = [{"reference": r, "candidate": c} for r, candidates in RATED.items() for c in candidates or [r]]
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def test_references_of_ratings_and_of_plain_text(tmp_path):
    found = read_references(write_ratings(tmp_path / "ratings.jsonl"))
    assert found == {**RATED, "it rains": ["it rains"]}
    (tmp_path / "references.txt").write_text("it rains\nit snows\nit rains\n")
    assert read_references(tmp_path / "references.txt") == {"it rains": [], "it snows": []}


@pytest.mark.parametrize(
    ("text", "message"),
    [("it rains\n\n", "line 2: no reference"), ("it rains\n", "two different references, found 1")],
)
def test_faulty_references(tmp_path, text, message):
    (tmp_path / "references.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_references(tmp_path / "references.txt")


def test_candidates_at_the_extremes():
    made = make_extremes(RATED, seed=3)
    entries = list(zip(made.references, made.candidates, made.kinds, made.owners, strict=True))
    assert {kind: made.kinds.count(kind) for kind in ("identical", "rated", "unrelated", "empty")} == {
        "identical": 3,
        "rated": 2,
        "unrelated": 3,
        "empty": 3,
    }
    assert made.skipped["rated equal to the reference"] == 2  # once to the letter, once but for a blank
    assert sum(made.skipped.values()) + len(entries) == 3 * 5 + 4  # the empty rated one is the empty candidate
    for reference, candidate, kind, owner in entries:
        assert reference == list(RATED)[owner]
        there, here = reference.split(), candidate.split()
        if kind == "word_dropped":
            assert 0 < len(here) < len(there) and set(here) <= set(there)
        if kind == "shuffled":
            assert sorted(here) == sorted(there) and here != there
        if kind == "unrelated":
            assert candidate in RATED and candidate != reference


def test_samples_are_of_the_size_and_the_seed():
    many = {f"sentence number {i} of many": [] for i in range(50)}
    made = make_extremes(many, most=7, seed=1)
    assert sorted(set(made.owners)) == list(range(7))
    assert made == make_extremes(many, most=7, seed=1) != make_extremes(many, most=7, seed=2)


def test_the_checks_by_hand():
    measured = measure_extremes(make_extremes(RATED), overlap)
    # at "it rains" everything scores 0, the identical candidate too
    assert (measured["identical_first"]["right"], measured["identical_first"]["n"]) == (2, 3)
    assert (measured["against"]["rated"]["right"], measured["against"]["rated"]["n"]) == (2, 2)
    assert (measured["against"]["unrelated"]["right"], measured["against"]["unrelated"]["n"]) == (2, 3)
    assert measured["empty"]["rated"] == {"mean": 0.0, "highest": 0.0, "in_lowest_percent": 1.0}
    assert list(measured["candidates"]) == list(KINDS)


def test_a_metric_that_tells_nothing_apart_fails_every_check():
    measured = measure_extremes(make_extremes(RATED), lambda r, c: Scored([0.5] * len(c), "constant"))
    assert measured["identical_first"]["right"] == 0
    assert measured["empty"]["all"] == {"mean": 100.0, "highest": 100.0, "in_lowest_percent": 0.0}
    assert measured["unrelated"]["rated"]["mean"] == 100


def test_percentiles_by_hand():
    # two rated candidates, of score 2 / 3 (four of six words) and 2 / 5; one empty candidate is put between them
    made = make_extremes(RATED)
    scores = np.array(overlap(made.references, made.candidates).scores)
    scores[np.array(made.kinds) == "empty"] = [0.5, 0.1, 0.9]
    measured = measure_extremes(made, lambda r, c: Scored(scores.tolist(), "stub"))
    assert measured["empty"]["rated"] == {
        "mean": pytest.approx((50 + 0 + 100) / 3),
        "highest": 100,
        "in_lowest_percent": pytest.approx(1 / 3),
    }


def test_extremes_stand_in_results_and_table(tmp_path, monkeypatch):
    monkeypatch.setitem(baselines.BASELINES, "stub", lambda r, c: Scored([float(len(x)) for x in c], "length"))
    results = run(
        output=tmp_path / "out",
        baselines=["stub"],
        pairs=write_pairs(tmp_path / "pairs.tsv"),
        references=str(write_ratings(tmp_path / "ratings.jsonl")),
        most_references=3,
    )
    assert results["references"]["file"] == "ratings.jsonl"
    assert "--references ratings.jsonl --most-references 3 --seed 0" in results["command"]
    assert results["rows"][0]["extremes"]["empty"]["all"]["highest"] == 0
    drawn = (tmp_path / "out" / "table.md").read_text()
    assert "Extremes, on 3 references of ratings.jsonl: 3 identical" in drawn
    assert "3 left out: rated equal to the reference" in drawn
    assert re.search(r"empty: in the lowest percent of all +\| 100\.0 ", drawn)
    assert re.search(r"empty: percentile among all, mean \(highest\) +\| 0\.00 \(0\.00\)", drawn)
