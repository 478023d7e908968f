"""Shares of the work: which records each has, and how a process gets its share."""

from __future__ import annotations

import pytest

from bleurt_repro.metric.options import Shard, choose_shard


@pytest.mark.parametrize(("records", "count"), [(10, 3), (2, 5), (0, 2), (7, 1)])
def test_parts_are_in_order_even_and_whole(records, count):
    bounds = [Shard(index, count).bounds(records) for index in range(count)]
    assert [i for first, last in bounds for i in range(first, last)] == list(range(records))
    sizes = [last - first for first, last in bounds]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("path", "shard", "expected"),
    [
        ("out/scores.txt", Shard(0, 1), "out/scores.txt"),
        ("out/scores.txt", Shard(1, 2), "out/scores-00001-of-00002.txt"),
        ("scores", Shard(11, 12), "scores-00011-of-00012"),
    ],
)
def test_a_part_has_a_file_of_its_own(path, shard, expected):
    assert shard.output(path) == expected


def test_the_launcher_is_asked_only_with_auto(monkeypatch):
    assert choose_shard(None, None) == Shard(0, 1)
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    with pytest.warns(UserWarning, match="WORLD_SIZE is 4 in the environment, but this process does all of the work"):
        assert choose_shard(None, None) == Shard(0, 1)
    assert choose_shard("auto", None) == Shard(3, 4)
    assert choose_shard(2, 0) == choose_shard("2", 0) == Shard(0, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((2, None), "belong together"),
        ((None, 0), "belong together"),
        ((2, 2), "found 2 of 2"),
        ((2, -1), "found -1 of 2"),
        ((0, 0), "found 0 of 0"),
        (("two", 0), "must be a number or auto, found 'two'"),
        (("auto", 0), "leave --shard-index out"),
    ],
)
def test_what_is_no_shard(options, message):
    with pytest.raises(ValueError, match=message):
        choose_shard(*options)


@pytest.mark.parametrize(("size", "rank"), [("2", None), (None, "1"), (None, None), ("two", "0"), ("2", "-1")])
def test_auto_without_a_launcher(monkeypatch, size, rank):
    for name, value in (("WORLD_SIZE", size), ("RANK", rank)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="--num-shards auto reads the variables WORLD_SIZE and RANK"):
        choose_shard("auto", None)
