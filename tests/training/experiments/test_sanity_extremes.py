"""The sanity experiment: candidates at the extremes of a reference, and figures that can be counted by hand."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from bleurt_repro.training.experiments.extremes import CATEGORIES, make_extremes, measure_extremes, read_references
from bleurt_repro.training.experiments.sanity import SanityOptions, run_sanity
from bleurt_repro.training.metrics import baselines
from bleurt_repro.training.metrics.baselines import Scored

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
    entries = list(zip(made.references, made.candidates, made.categories, strict=True))
    assert {kind: made.categories.count(kind) for kind in ("identical", "rated", "unrelated", "empty")} == {
        "identical": 3,
        "rated": 2,
        "unrelated": 3,
        "empty": 3,
    }
    assert made.skipped["rated equal to the reference"] == 2  # once to the letter, once but for a blank
    assert sum(made.skipped.values()) + len(entries) == 3 * 5 + 4  # the empty rated one is the empty candidate
    assert list(dict.fromkeys(made.references)) == list(RATED)
    for reference, candidate, kind in entries:
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
    assert len(set(made.references)) == 7
    assert made == make_extremes(many, most=7, seed=1) != make_extremes(many, most=7, seed=2)


def test_the_checks_by_hand():
    measured = measure_extremes(make_extremes(RATED), overlap)
    # at "it rains" everything scores 0, the identical candidate too
    assert (measured["identical_first"]["right"], measured["identical_first"]["n"]) == (2, 3)
    assert (measured["against"]["rated"]["right"], measured["against"]["rated"]["n"]) == (2, 2)
    assert (measured["against"]["unrelated"]["right"], measured["against"]["unrelated"]["n"]) == (2, 3)
    assert measured["empty"]["rated"] == {"mean": 0.0, "highest": 0.0, "in_lowest_percent": 1.0}
    assert list(measured["candidates"]) == list(CATEGORIES)


def test_a_metric_that_tells_nothing_apart_fails_every_check():
    measured = measure_extremes(make_extremes(RATED), lambda r, c: Scored([0.5] * len(c), "constant"))
    assert measured["identical_first"]["right"] == 0
    assert measured["empty"]["all"] == {"mean": 100.0, "highest": 100.0, "in_lowest_percent": 0.0}
    assert measured["unrelated"]["rated"]["mean"] == 100


def test_percentiles_by_hand():
    # two rated candidates, of score 2 / 3 (four of six words) and 2 / 5; one empty candidate is put between them
    made = make_extremes(RATED)
    scores = np.array(overlap(made.references, made.candidates).scores)
    scores[np.array(made.categories) == "empty"] = [0.5, 0.1, 0.9]
    measured = measure_extremes(made, lambda r, c: Scored(scores.tolist(), "stub"))
    assert measured["empty"]["rated"] == {
        "mean": pytest.approx((50 + 0 + 100) / 3),
        "highest": 100,
        "in_lowest_percent": pytest.approx(1 / 3),
    }


def test_extremes_stand_in_results_and_table(tmp_path, monkeypatch):
    (tmp_path / "pairs.tsv").write_text("type\treference\tbetter\tworse\nnumber\ttwo cats\ta pair of cats\tten cats\n")
    monkeypatch.setitem(baselines.BASELINES, "stub", lambda r, c: Scored([float(len(x)) for x in c], "length"))
    options = SanityOptions(
        output=str(tmp_path / "out"),
        baselines=["stub"],
        pairs=str(tmp_path / "pairs.tsv"),
        references=str(write_ratings(tmp_path / "ratings.jsonl")),
        most_references=3,
    )
    results = run_sanity(options)
    assert results["references"]["file"] == "ratings.jsonl"
    assert "--references ratings.jsonl --most-references 3 --output OUT" in results["command"]
    assert results["rows"][0]["extremes"]["empty"]["all"]["highest"] == 0
    drawn = (tmp_path / "out" / "table.md").read_text()
    assert "Extremes, on 3 references of ratings.jsonl: 3 identical" in drawn
    assert "3 left out: rated equal to the reference" in drawn
    assert re.search(r"empty: in the lowest percent of all +\| 100\.0 ", drawn)
    assert re.search(r"empty: percentile among all, mean \(highest\) +\| 0\.00 \(0\.00\)", drawn)
