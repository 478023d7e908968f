"""P(people prefer a system): the function, its file, and where users meet it."""

from __future__ import annotations

import csv
import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.metric.calibration import FEWEST_SEGMENTS, RELIABILITY_FILE, Preference, Reliability
from bleurt_repro.metric.compare.compare import compare
from bleurt_repro.metric.loading.checksums import content_hash
from tests.conftest import make_tiny_scorer

PREFERENCE = Preference(2.0, 0.05)
numbers = st.floats(-3, 3)


@pytest.mark.parametrize(
    ("difference", "error", "expected"),
    [(0.0, 0.1, 0.5), (0.05, 0.0, 1 / (1 + math.exp(-2))), (0.05, 0.12, 1 / (1 + math.exp(-2 * 0.05 / 0.13)))],
)
def test_preference_by_hand(difference, error, expected):
    assert PREFERENCE(difference, error) == pytest.approx(expected)
    assert PREFERENCE(-difference, error) == pytest.approx(1 - expected)


@pytest.mark.parametrize(("slope", "error"), [(0, 1), (1, 0), (-1, 1), (1, -1), (math.inf, 1), (1, math.inf)])
def test_what_is_no_preference(slope, error):
    with pytest.raises(ValueError, match="must be positive, found"):
        Preference(slope, error)


@given(numbers, numbers, st.floats(0, 2), st.floats(0, 2))
def test_preference_rises_with_the_difference_and_with_its_certainty(a, b, one, other):
    low, high = sorted((a, b))
    assert PREFERENCE(low, one) <= PREFERENCE(high, one)
    less, more = sorted((one, other))
    assert PREFERENCE(abs(a), less) >= PREFERENCE(abs(a), more) >= 0.5


def test_preference_of_scores_is_that_of_their_paired_differences():
    generator = random.Random(0)
    first = [generator.gauss(0, 1) for _ in range(30)]
    second = [score - generator.gauss(0.1, 0.3) for score in first]
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    mean = sum(gaps) / 30
    error = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / 29 / 30)
    expected = 1 / (1 + math.exp(-2 * mean / math.sqrt(error**2 + 0.05**2)))
    assert PREFERENCE.of_scores(first, second) == pytest.approx(expected)
    assert PREFERENCE.of_scores(first[: FEWEST_SEGMENTS - 1], second[: FEWEST_SEGMENTS - 1]) is None


@pytest.fixture
def folder(tmp_path):
    made = make_tiny_scorer(tmp_path / "scorer")
    Reliability(content_hash(made), PREFERENCE, {"file": "r.jsonl", "ratings": 9}).write(made)
    return made


TEXTS = {"references": ["the cat sat", "it rains"], "candidates": ["the dog sat", "it rains"]}


def test_it_is_kept_beside_the_weights_and_changes_neither_score_nor_signature(folder):
    scorer = BleurtScorer(str(folder))
    assert scorer.reliability == Reliability.from_folder(folder, content_hash(folder))
    result = scorer.compute(**TEXTS)
    (folder / RELIABILITY_FILE).unlink()
    plain = BleurtScorer(str(folder))
    assert (plain.reliability, plain.signature) == (None, scorer.signature)
    assert result.scores == plain.score(**TEXTS)


def test_other_weights_have_no_use_for_it(folder):
    config = json.loads((folder / "config.json").read_text())
    config["bleurt"]["max_length"] = 40
    (folder / "config.json").write_text(json.dumps(config))
    assert BleurtScorer(str(folder)).reliability is None


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"hash": 3', "null"])
def test_a_damaged_file_is_named(folder, content):
    (folder / RELIABILITY_FILE).write_text(content)
    with pytest.raises(
        ValueError, match=r"reliability\.json cannot be read .* `bleurt-repro calibrate --reliability`"
    ):
        _ = BleurtScorer(str(folder)).reliability
    assert BleurtScorer(str(folder)).score(**TEXTS)  # which do not depend on it


def test_a_part_that_is_damaged_is_named(folder):
    record = json.loads((folder / RELIABILITY_FILE).read_text())
    record["preference"]["slope"] = -1
    (folder / RELIABILITY_FILE).write_text(json.dumps(record))
    with pytest.raises(ValueError, match="slope and metric_error must be positive"):
        _ = BleurtScorer(str(folder)).reliability


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, folder):
    monkeypatch.chdir(tmp_path)
    for name, lines in (("r.txt", TEXTS["references"]), ("c.txt", TEXTS["candidates"])):
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    def call(*words):
        with pytest.raises(SystemExit) as stop:
            main([*words, "--checkpoint", str(folder)])
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


WORDS = "the cat sat on mat it rains dog".split()


@pytest.fixture
def systems():
    generator = random.Random(1)
    made = [[" ".join(generator.sample(WORDS, 4)) for _ in range(25)] for _ in range(3)]
    return made[0], {"one": made[1], "two": made[2]}


def test_a_comparison_says_whether_people_would_prefer_a_system(folder, systems):
    references, texts = systems
    scorer = BleurtScorer(str(folder))
    comparison = compare(scorer, references, texts, resamples=20)
    scores = [scorer.score(references=references, candidates=own) for own in texts.values()]
    assert comparison.tests[0].preferred == pytest.approx(PREFERENCE.of_scores(*scores))
    assert "9 human ratings" in comparison.preferred
    few = compare(scorer, references[:5], {name: own[:5] for name, own in texts.items()}, resamples=20)
    assert few.tests[0].preferred is None
    assert "P(people prefer it)" in comparison._repr_html_()


def test_the_command_compare_shows_it_in_table_json_and_csv(run, systems, tmp_path):
    references, texts = systems
    for name, lines in (("refs.txt", references), *((f"{name}.txt", own) for name, own in texts.items())):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    words = ("compare", "-r", "refs.txt", "-c", "one.txt", "two.txt", "--resamples", "20", "--disagreements", "0")
    code, out, err = run(*words, "--output", "out.json", "out.csv")
    assert (code, err) == (0, "")
    p = json.loads((tmp_path / "out.json").read_text())["tests"][0]["preferred"]
    assert f"P(people prefer one) = {p:.2f}" in out
    rows = list(csv.DictReader((tmp_path / "out.csv").open(newline="")))
    assert {float(row["P(people prefer one)"]) for row in rows} == {p}


def test_the_demo_shows_it(folder, systems):
    pytest.importorskip("gradio")
    from bleurt_repro.metric.demo.compare_tab import compare_two, verdict, verdict_html
    from bleurt_repro.metric.demo.shared_scorer import SharedScorer

    shared = SharedScorer(str(folder), device="cpu")
    references, texts = systems
    comparison = compare_two(shared, references, texts)
    [test] = comparison.tests
    p = test.preferred if test.difference > 0 else 1 - test.preferred
    assert f"probability of <b>{100 * p:.0f}\u00a0%</b>" in verdict(comparison)
    assert "9 human ratings" in verdict_html(comparison)
