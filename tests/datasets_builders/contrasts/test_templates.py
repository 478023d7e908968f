"""What templates make, of roles and of opposites: scores, whole sentences, a seed that decides all, the commands."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from bleurt_repro.cli import main
from bleurt_repro.datasets_builders.contrasts import CHANGED, COPY, JOINED_WEIGHT, SAME
from bleurt_repro.datasets_builders.contrasts.templates import make_opposite_pairs, make_role_pairs


class Maker(NamedTuple):
    make: Callable[..., list[dict[str, Any]]]
    what: str
    command: str


@pytest.fixture(
    scope="module",
    params=[Maker(make_role_pairs, "roles", "roles"), Maker(make_opposite_pairs, "meaning", "opposites")],
    ids=["roles", "opposites"],
)
def maker(request):
    return request.param


@pytest.fixture(scope="module")
def rows(maker):
    return maker.make(6_000, seed=1)


def test_a_turned_text_costs_what_a_changed_meaning_costs(maker, rows):
    same, turned = (
        {row["score"] for row in rows if row["system"] == f"contrast: {maker.what} {suffix}"}
        for suffix in ("kept", "turned")
    )
    lost = [CHANGED, CHANGED * JOINED_WEIGHT]
    assert same == {SAME}
    assert turned == {round(whole - loss, 4) for whole in (SAME, COPY) for loss in lost}


def test_every_text_is_a_whole_sentence_and_no_candidate_is_its_reference(rows):
    for row in rows:
        for text in (row["reference"], row["candidate"]):
            assert re.fullmatch(r"[A-Z0-9][^{}]*[.]", text), text
        assert row["reference"] != row["candidate"]


def test_a_seed_decides_all(maker):
    assert maker.make(200, seed=4) == maker.make(200, seed=4)
    assert maker.make(200, seed=4) != maker.make(200, seed=5)


def test_the_command_writes_them(maker, tmp_path, capsys):
    output = tmp_path / "pairs.jsonl"
    with pytest.raises(SystemExit) as end:
        main(["data", maker.command, "--pairs", "50", "--seed", "1", "--output", str(output)])
    assert not end.value.code
    written = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert written == maker.make(50, seed=1)
    printed = capsys.readouterr().out
    for system, count in Counter(row["system"] for row in written).items():
        assert f"{system}: {count} records" in printed


def test_wrong_input(maker):
    with pytest.raises(ValueError, match="at least 1, found 0"):
        maker.make(0)
