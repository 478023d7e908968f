"""Anchor pairs: what each kind changes, where it stands among the ratings, and that a seed decides all."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from bleurt_repro.datasets_builders.contrasts.anchors import anchor_file, make_anchors

REFERENCES = [
    "On Monday the mayor of Lisbon opened 2 bridges over the river.",
    "The committee in Oslo has rejected all three plans for the harbour.",
    "It was not the first time that Anna Berg had won the race.",
    "Nine trains were late because of snow on the line to Basel.",
]


def ratings(count=80):
    return [
        {
            "reference": REFERENCES[i % 4],
            "candidate": f"translation {i} of it, seen by Peter in 1990, is here",
            "score": i / count,
            "system": "s",
            "raw_score": 50.0,
        }
        for i in range(count)
    ]


def test_each_kind_is_made_as_often_and_marked():
    counts = Counter(row["system"] for row in make_anchors(ratings(), share=0.8, seed=1))
    assert counts == {
        f"anchor: {alteration}": 8
        for alteration in (
            "identical",
            "empty",
            "unrelated",
            "shuffled",
            "words dropped",
            "number",
            "name",
            "negation",
        )
    }


def test_scores_are_quantiles_of_the_ratings():
    rows = ratings()
    anchors = make_anchors(rows, share=0.8, seed=1)
    by_kind = {
        alteration: [row["score"] for row in anchors if row["system"] == f"anchor: {alteration}"]
        for alteration in ("identical", "empty", "unrelated", "shuffled", "words dropped", "number")
    }
    scores = [row["score"] for row in rows]
    assert set(by_kind["identical"]) == {max(scores)}
    assert set(by_kind["empty"]) == {min(scores)}
    assert set(by_kind["unrelated"]) == {np.quantile(scores, 0.005)}
    assert set(by_kind["shuffled"]) == {np.quantile(scores, 0.02)}
    assert set(by_kind["number"]) == {np.quantile(scores, 0.15)}
    assert max(by_kind["words dropped"]) < np.quantile(scores, 0.5)


def test_anchors_are_what_their_kind_says():
    for row in make_anchors(ratings(), share=0.8, seed=2):
        candidate, reference = row["candidate"].split(), row["reference"].split()
        alteration = row["system"].removeprefix("anchor: ")
        assert (candidate == reference) == (alteration == "identical")
        assert alteration != "empty" or candidate == []
        assert alteration != "shuffled" or sorted(candidate) == sorted(reference)
        assert alteration != "unrelated" or row["candidate"] in REFERENCES
        assert alteration != "words dropped" or len(candidate) < len(reference)
        assert row["raw_score"] is None


def test_altered_copies_are_of_references_and_of_good_candidates():
    altered = [row for row in make_anchors(ratings(), share=0.8, seed=3) if "number" in row["system"]]
    good = [row for row in altered if row["candidate"].startswith("translation")]
    assert 0 < len(good) < len(altered)
    assert all(int(row["candidate"].split()[1].strip("0123456789") == "") for row in good)


def test_a_seed_decides_all():
    assert make_anchors(ratings(), seed=4) == make_anchors(ratings(), seed=4)
    assert make_anchors(ratings(), seed=4) != make_anchors(ratings(), seed=5)


def test_a_file_holds_the_ratings_first(tmp_path):
    source, output = tmp_path / "ratings.jsonl", tmp_path / "anchored.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in ratings()), encoding="utf-8")
    counts = anchor_file(source, output, share=0.4)
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert counts["ratings"] == 80
    assert len(rows) == sum(counts.values()) == 112
    assert [row["candidate"] for row in rows[:80]] == [row["candidate"] for row in ratings()]


@pytest.mark.parametrize(
    ("rows", "share", "message"),
    [
        (ratings(), 0.0, "above 0"),
        (ratings(1), 0.3, "two different"),
        (
            ratings()[:10],
            0.1,
            "a share of 0.1 of 10 ratings is less than one anchor of each of 8 kinds: give 0.8 or more",
        ),
    ],
)
def test_wrong_input(rows, share, message):
    with pytest.raises(ValueError, match=message):
        make_anchors(rows, share)
