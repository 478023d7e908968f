from __future__ import annotations

import json
from collections import Counter

import pytest

from bleurt_repro.datasets_builders.ratings.relative_ranks import (
    WmtRelativeRanks,
    join_pairs,
    read_pairs,
    relative_ranks,
)
from tests.real_data import wmt_ratings

PAIRS_2018 = {
    "cs-en": 5_110,
    "de-en": 77_811,
    "et-en": 56_721,
    "fi-en": 15_648,
    "ru-en": 10_404,
    "tr-en": 8_525,
    "zh-en": 33_357,
}


def rating(system, raw_score, segment=1, lp="de-en", year=2018):
    texts = {"source": f"Satz {segment}", "reference": f"Sentence {segment}", "candidate": f"Phrase by {system}"}
    scores = {"score": 0.0, "raw_score": raw_score, "n_annotations": 1}
    return {"year": year, "lp": lp, "segment_id": segment, "system": system, **texts, **scores}


RATINGS = [rating("A", 90.0), rating("B", 65.0), rating("C", 64.5), rating("D", None), rating("A", 10.0, segment=2)]


def names(pairs):
    return [(pair["system_better"], pair["system_worse"]) for pair in pairs]


def write(folder, *, pairs=()):
    (folder / "ratings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in RATINGS))
    if pairs:
        columns = ("year", "lp", "segment_id", "better", "worse")
        rows = [json.dumps(dict(zip(columns, pair, strict=True))) + "\n" for pair in pairs]
        (folder / "pairs.jsonl").write_text("".join(rows))
    return folder


@pytest.mark.long
def test_made_pairs_are_those_given_for_2018(shared_data):
    ratings = [rating for rating in wmt_ratings(shared_data / "wmt") if rating["year"] == 2018]
    ranks = list(relative_ranks(ratings))
    assert Counter(pair["lp"] for pair in ranks) == PAIRS_2018
    official = list(join_pairs(read_pairs(shared_data / "wmt"), ratings))

    def key(pair):
        return pair["lp"], pair["segment_id"], pair["system_better"], pair["system_worse"]

    assert sorted(map(key, ranks)) == sorted(map(key, official))


@pytest.mark.parametrize(
    ("least", "expected"),
    [(25.0, [("A", "B"), ("A", "C")]), (25.5, [("A", "C")]), (26, []), (0, [("A", "B"), ("A", "C"), ("B", "C")])],
)
def test_pairs_lie_far_enough_apart(least, expected):
    assert names(relative_ranks(RATINGS, least)) == expected


def test_a_pair_holds_both_translations():
    (pair,) = relative_ranks([rating("B", 40.0), rating("A", 90.0)])
    assert pair == {
        "year": 2018,
        "lp": "de-en",
        "segment_id": 1,
        "source": "Satz 1",
        "reference": "Sentence 1",
        "candidate_better": "Phrase by A",
        "candidate_worse": "Phrase by B",
        "system_better": "A",
        "system_worse": "B",
        "raw_score_better": 90.0,
        "raw_score_worse": 40.0,
    }


def test_equal_scores_and_other_segments_make_no_pair():
    unrelated = [rating("B", 0.0, segment=2), rating("C", 0.0, lp="fi-en"), rating("D", 0.0, year=2019)]
    assert list(relative_ranks([rating("A", 90.0), *unrelated])) == []
    assert list(relative_ranks([rating("A", 90.0), rating("B", 90.0)], 0)) == []


def test_without_raw_scores_there_are_no_pairs():
    with pytest.raises(ValueError, match="no rating has a raw_score"):
        list(relative_ranks([rating("A", None)]))


def test_the_builder_makes_pairs(tmp_path):
    builder = WmtRelativeRanks("2018", data_dir=write(tmp_path), cache_dir=str(tmp_path / "cache"))
    builder.download_and_prepare()
    assert names(builder.as_dataset(split="test")) == [("A", "B"), ("A", "C")]


def test_the_builder_reads_pairs_that_are_given(tmp_path):
    pairs = [(2018, "de-en", 1, "C", "B"), (2019, "de-en", 1, "A", "B"), (2018, "en-de", 1, "A", "B")]
    folder = write(tmp_path, pairs=pairs)
    splits = WmtRelativeRanks("2018", data_dir=folder, given=True).splits()
    assert names(splits["test"]) == [("C", "B")]


def test_the_official_file_is_read(tmp_path):
    file = tmp_path / "manual-evaluation" / "RR-seglevel.csv"
    file.parent.mkdir()
    file.write_text("LP SID BETTER WORSE\nde-en newstest2018 1 B C\n")
    assert read_pairs(tmp_path) == [{"year": 2018, "lp": "de-en", "segment_id": 1, "better": "B", "worse": "C"}]
    file.write_text("LP SID BETTER WORSE\nde-en newstest2018 1 B\n")
    with pytest.raises(ValueError, match=r"RR-seglevel\.csv, line 2: expected pair, newstestYEAR"):
        read_pairs(tmp_path)


def test_pairs_must_be_there_and_name_ratings(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no relative ranks in .*: looked for RR-seglevel\.csv"):
        read_pairs(write(tmp_path))
    folder = write(tmp_path, pairs=[(2018, "de-en", 1, "A", "Z")])
    with pytest.raises(ValueError, match="a pair names Z, segment 1, de-en, 2018: no such rating"):
        WmtRelativeRanks("2018", data_dir=folder, given=True).splits()
    write(tmp_path, pairs=[(2018, "de-en", 1, "A", None)])
    with pytest.raises(ValueError, match=r"pairs\.jsonl, line 1: no worse"):
        read_pairs(tmp_path)
