from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bleurt_repro.datasets_builders.ratings.splits import connected_rows, segment_folds, split_without_overlap
from bleurt_repro.datasets_builders.ratings.wmt import split_by_year
from tests.real_data import segments, wmt_ratings

SEEDS = range(20)


def rows_of(*pairs):
    return [{"source": source, "reference": reference} for source, reference in pairs]


@pytest.mark.parametrize(
    ("pairs", "groups"),
    [
        ([("a", "x"), ("b", "y"), ("a", "z")], [[0, 2], [1]]),
        ([("a", "x"), ("b", "x"), ("b", "y"), ("c", "z")], [[0, 1, 2], [3]]),
        # a source that is also a reference: text that was left untranslated
        ([("a", "x"), ("x", "b")], [[0, 1]]),
        ([("A  dog", "x"), ("a dog\n", "y")], [[0, 1]]),
        ([(None, "x"), (None, "y"), ("", "z"), (" ", "w")], [[0], [1], [2], [3]]),
        ([], []),
    ],
)
def test_rows_are_grouped_by_equal_segments(pairs, groups):
    assert connected_rows(rows_of(*pairs)) == groups


def test_the_seed_is_0_unless_one_is_given():
    rows = rows_of(*((f"s{i}", f"r{i}") for i in range(50)))
    assert split_without_overlap(rows, 0.3) == split_without_overlap(rows, 0.3, seed=0)
    assert split_without_overlap(rows, 0.3) != split_without_overlap(rows, 0.3, seed=1)


def test_lists_of_references_are_segments_too():
    rows = [{"references": ["a", "b"]}, {"references": ["c"]}, {"references": ["b"]}]
    assert connected_rows(rows, ["references"]) == [[0, 2], [1]]


def test_a_long_chain_of_shared_segments_is_one_group():
    rows = rows_of(*((f"s{i}", f"s{i + 1}") for i in range(5000)))
    assert len(connected_rows(rows)) == 1


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcdefghij"), st.sampled_from("klmnopqrst")), min_size=1, max_size=40),
    st.sampled_from([0.1, 0.3, 0.5]),
    st.integers(0, 5),
)
def test_no_segment_stands_on_both_sides(pairs, ratio, seed):
    rows = rows_of(*pairs)
    try:
        train, validation = split_without_overlap(rows, ratio, seed)
    except ValueError as error:
        assert "cannot set" in str(error)
        return
    assert sorted([*train, *validation]) == list(range(len(rows)))
    assert not segments(rows[i] for i in train) & segments(rows[i] for i in validation)
    assert len(validation) <= round(ratio * len(rows))


def test_the_share_is_met_and_the_seed_decides():
    rows = rows_of(*((f"s{i // 3}", f"r{i // 3}") for i in range(900)))
    first = split_without_overlap(rows, 0.1, seed=1)
    assert len(first[1]) == 90
    assert first == split_without_overlap(rows, 0.1, seed=1)
    assert first != split_without_overlap(rows, 0.1, seed=2)
    assert split_without_overlap(rows, 0.0) == (list(range(900)), [])


@pytest.mark.parametrize("ratio", [-0.1, 1.0, 2])
def test_a_ratio_out_of_range_is_refused(ratio):
    with pytest.raises(ValueError, match="validation ratio must be at least 0 and below 1"):
        split_without_overlap(rows_of(("a", "b")), ratio)


def test_rows_that_hang_together_cannot_be_split():
    with pytest.raises(ValueError, match=r"cannot set 1 of 10 rows apart .* into 1 group"):
        split_without_overlap(rows_of(*[("a", "b")] * 10), 0.1)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:no ratings of 2019")
@pytest.mark.parametrize(("year", "ratio"), [("2017", 0.1), ("2018", 0.1), ("2019", 0.05)])
def test_real_ratings_never_leak(shared_data, year, ratio):
    splits = split_by_year(wmt_ratings(shared_data / "wmt"), year, validation_ratio=0)
    rows = splits["train"]
    for seed in SEEDS:
        train, validation = split_without_overlap(rows, ratio, seed)
        assert not segments(rows[i] for i in train) & segments(rows[i] for i in validation)
        assert abs(len(validation) - ratio * len(rows)) < 1


def test_folds_keep_ratings_of_one_source_and_reference_together():
    rows = [{"source": f"s{i % 10}", "reference": f"r{i % 5}"} for i in range(40)]
    folds = segment_folds(rows, 4, seed=1)
    assert sorted(i for fold in folds for i in fold) == list(range(40)) and max(map(len, folds)) <= 12
    texts = [{(rows[i]["source"], rows[i]["reference"]) for i in fold} for fold in folds]
    assert sum(map(len, texts)) == len(set.union(*texts)) == 10
    assert folds == segment_folds(rows, 4, seed=1) != segment_folds(rows, 4, seed=2)
    with pytest.raises(ValueError, match="cannot divide 10 segments into 11 folds"):
        segment_folds(rows, 11)
