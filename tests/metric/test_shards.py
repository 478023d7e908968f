"""Parts of the work: which records are whose."""

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


def test_options_go_before_the_launcher(monkeypatch):
    assert choose_shard(None, None) == Shard(0, 1)
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    assert choose_shard(None, None) == Shard(3, 4)
    assert choose_shard(2, 0) == Shard(0, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [((2, None), "belong together"), ((None, 0), "belong together"), ((2, 2), "from 0 to 1"), ((2, -1), "found -1")],
)
def test_what_is_no_shard(options, message):
    with pytest.raises(ValueError, match=message):
        choose_shard(*options)


def test_a_launcher_that_names_no_rank(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="WORLD_SIZE is 2 in the environment, but RANK is not set: set both"):
        choose_shard(None, None)
    assert choose_shard(2, 1) == Shard(1, 2)
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert choose_shard(None, None) == Shard(0, 1)
