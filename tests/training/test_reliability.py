"""P(people prefer a system): the fit against known truths, figures against brute force, the command and its report."""

from __future__ import annotations

import itertools
import json
import math
import random

import numpy as np
import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.metric.calibration import RELIABILITY_FILE, Preference
from bleurt_repro.training.reliability.fit import (
    SAMPLE_SIZES,
    Comparisons,
    RatedSystems,
    compare_systems,
    fit_preference,
)
from bleurt_repro.training.reliability.held_out import predict_left_out, preference_figures
from bleurt_repro.training.reliability.report import draw_reliability
from bleurt_repro.training.results import Result
from tests.conftest import make_tiny_scorer


def rated(systems=6, segments=250, groups=("a", "b"), seed=0) -> RatedSystems:
    """Ratings of six systems, and scores with a bias for each system and an error of each candidate."""
    generator = np.random.default_rng(seed)
    rows = []
    for number, group in enumerate(groups):
        quality, bias = generator.normal(0, 0.3, systems), generator.normal(0, 0.05, systems)
        for segment in range(segments):
            for system in range(systems):
                true = quality[system] + generator.normal(0, 0.6)
                rating = true + generator.normal(0, 0.5)
                score = true + bias[system] + generator.normal(0, 0.4)
                rows.append((score, rating, group, 10_000 * number + segment, f"s{system}"))
    return RatedSystems(*map(np.array, zip(*rows, strict=True)))


@pytest.fixture(scope="module")
def sample():
    return rated()


@pytest.fixture(scope="module")
def comparisons(sample):
    return compare_systems(sample)


def test_comparisons_against_brute_force(sample, comparisons):
    found = comparisons.subset(comparisons.sizes == 0)
    expected = []
    for group in ("a", "b"):
        own = sample.subset(sample.groups == group)
        for one, other in itertools.combinations([f"s{i}" for i in range(6)], 2):
            first, second = own.subset(own.systems == one), own.subset(own.systems == other)
            order = [np.argsort(side.segments) for side in (first, second)]
            gaps = first.scores[order[0]] - second.scores[order[1]]
            error = gaps.std(ddof=1) / math.sqrt(len(gaps))
            expected.append((gaps.mean(), error, first.ratings.mean() > second.ratings.mean()))
    assert len(found.pairs) == len(expected) == 30
    differences, errors, preferred = map(np.array, zip(*expected, strict=True))
    assert found.differences == pytest.approx(differences)
    assert found.errors == pytest.approx(errors)
    assert (found.preferred == preferred).all()
    assert set(comparisons.sizes) == {0, *(size for size in SAMPLE_SIZES if size < 250)}
    assert comparisons.weights.sum() == pytest.approx(30 * len(set(comparisons.sizes)))
    near = (found.p_values > 0.01) & (found.p_values < 0.4)
    normal = [0.5 * math.erfc(abs(d) / e / math.sqrt(2)) for d, e in zip(found.differences, found.errors, strict=True)]
    assert found.p_values[near] == pytest.approx(np.array(normal)[near], abs=0.05)


def test_a_candidate_of_several_systems_counts_for_each_of_them():
    one = rated(systems=3, segments=60, groups=("a",))
    joined = np.where(one.systems == "s2", "s2+s3", one.systems)
    both = compare_systems(RatedSystems(**{**vars(one), "systems": joined}))
    assert len(np.unique(both.pairs)) == 5  # of six, s2 and s3 have the same ratings


def test_systems_that_share_no_segments_are_compared_on_different_ones():
    one = rated(systems=2, segments=120, groups=("a",))
    apart = one.subset((one.segments % 2 == 0) == (one.systems == "s0"))
    [error], [size] = compare_systems(apart).errors, compare_systems(apart).sizes
    a, b = (apart.scores[apart.systems == name] for name in ("s0", "s1"))
    assert size == 0 and error == pytest.approx(math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)))


def test_the_preference_that_made_the_data_is_found():
    generator = np.random.default_rng(0)
    true, n = Preference(1.7, 0.04), 20_000
    differences, errors = generator.normal(0, 0.1, n), generator.choice([0.005, 0.02, 0.1], n)
    preferred = generator.random(n) < true(differences, errors)
    empty = np.zeros(n)
    made = Comparisons(empty, np.arange(n), empty, empty, differences, errors, preferred, empty)
    found = fit_preference(made)
    assert (found.slope, found.metric_error) == pytest.approx((1.7, 0.04), rel=0.1)
    with pytest.raises(ValueError, match="10 pairs of systems, found 9"):
        fit_preference(made.subset(np.arange(9)))


def test_each_group_is_predicted_by_the_others_alone(comparisons):
    predicted = predict_left_out(comparisons)
    mask = comparisons.groups == "a"
    alone = fit_preference(comparisons.subset(~mask))
    assert predicted[mask] == pytest.approx(alone(comparisons.differences[mask], comparisons.errors[mask]))
    changed = Comparisons(**{**vars(comparisons), "preferred": comparisons.preferred ^ mask})
    assert predict_left_out(changed)[mask] == pytest.approx(predicted[mask])


def test_a_group_without_enough_others_has_no_prediction(comparisons):
    few = comparisons.subset((comparisons.groups == "a") | (comparisons.pairs < 20))
    predicted = predict_left_out(few)
    assert np.isnan(predicted[few.groups == "a"]).all() and np.isfinite(predicted[few.groups == "b"]).all()


def test_figures_against_brute_force(comparisons):
    predicted = predict_left_out(comparisons)
    figures = preference_figures(comparisons, predicted)
    whole = np.flatnonzero(comparisons.sizes == 0)
    brier, brier_of_test, bins = 0.0, 0.0, {}
    for i in whole:
        p, right = predicted[i], bool(comparisons.preferred[i])
        if comparisons.differences[i] < 0:
            p, right = 1 - p, not right
        brier += (p - right) ** 2 / len(whole)
        brier_of_test += (1 - comparisons.p_values[i] - right) ** 2 / len(whole)
        bins.setdefault(min(9, int(10 * p)), []).append((p, right))
    ece = sum(abs(sum(p - right for p, right in rows)) for rows in bins.values()) / len(whole)
    row = figures["all_segments"]
    assert (row["brier"], row["ece"], row["brier_of_test"]) == pytest.approx((brier, ece, brier_of_test))
    assert figures["by_group"]["a"]["pairs"] == 15 and sum(row["n"] for row in row["bins"]) == 30


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A tiny checkpoint, and ratings that follow its scores."""
    monkeypatch.chdir(tmp_path)
    folder = make_tiny_scorer(tmp_path / "scorer")
    generator = random.Random(0)
    words = "the cat sat on mat it rains dog".split()
    rows = []
    for lp, segment in itertools.product(("de-en", "fi-en"), range(60)):
        reference = " ".join(generator.sample(words, 5))
        for system in range(6):
            candidate = reference if generator.random() < 0.2 else " ".join(generator.sample(words, 3 + system % 3))
            row = {"lp": lp, "segment_id": segment, "system": f"s{system}"}
            rows.append({**row, "reference": reference, "candidate": candidate})
    scores = BleurtScorer(str(folder)).score_rows(rows)
    for row, score in zip(rows, scores, strict=True):
        row["score"] = score + generator.gauss(0, 0.1)
    (tmp_path / "ratings.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


def test_the_command_fits_tests_and_reports(files, capsys):
    before = BleurtScorer("scorer").signature
    words = [
        "calibrate",
        "scorer",
        "--reliability",
        "ratings.jsonl",
        "--test",
        "ratings.jsonl",
        "--report",
        "out.json",
    ]
    with pytest.raises(SystemExit) as stop:
        main([*words, "--cache", "cache"])
    assert (stop.value.code, (printed := capsys.readouterr()).err) == (0, "")
    scorer = BleurtScorer("scorer")
    assert scorer.signature == before
    fitted = scorer.reliability
    assert fitted.source["file"] == "ratings.jsonl" and fitted.source["ratings"] == 720
    result = Result.read("out.json")
    assert result.kind == "reliability" and result.signatures == {"scorer": before}
    assert result.command == " ".join(["bleurt-repro", *words[:-2], "--seed 0 --report OUT"])
    assert list(result["tests"]) == ["ratings.jsonl, each group by fits on the others", "ratings.jsonl"]
    assert (files / "out.md").read_text() == draw_reliability(result)
    assert result["tests"]["ratings.jsonl"]["preference"]["pairs"] == 30
    assert "30 pairs" in printed.out and "calibration error" in printed.out


def test_the_same_seed_gives_the_same_files(files):
    made = []
    for _ in range(2):
        with pytest.raises(SystemExit):
            main(["calibrate", "scorer", "--reliability", "ratings.jsonl", "--report", "out.json"])
        made.append([(files / name).read_bytes() for name in ("out.json", "out.md", f"scorer/{RELIABILITY_FILE}")])
    assert made[0] == made[1]


def test_a_damaged_fit_is_replaced(files):
    (files / "scorer" / RELIABILITY_FILE).write_text("{")
    with pytest.raises(SystemExit) as stop:
        main(["calibrate", "scorer", "--reliability", "ratings.jsonl"])
    assert stop.value.code == 0 and BleurtScorer("scorer").reliability.preference


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name ratings to fit on"),
        (["--ratings", "ratings.jsonl", "--report", "out.json"], "--test and --report go with --reliability"),
        (["--reliability", "ratings.jsonl", "--report", "out.md"], "must be a .json file, found out.md"),
        (
            ["--reliability", "ratings.jsonl", "--report", "nowhere/out.json"],
            "in a folder that does not exist: make nowhere first",
        ),
        (["--reliability", "ratings.jsonl", "--report", "scorer/config.json"], "bleurt-repro did not write it"),
        (["--reliability", "few.jsonl"], "few.jsonl: a fit needs 10 pairs of systems, found 0"),
        (["--reliability", "ratings.jsonl", "--test", "few.jsonl"], "few.jsonl: no two systems to compare"),
        (["--reliability", "none.jsonl"], "no file none.jsonl"),
    ],
)
def test_one_line_for_what_went_wrong(files, capsys, words, message):
    lines = (files / "ratings.jsonl").read_text().splitlines()
    (files / "few.jsonl").write_text("\n".join(lines[:5]))
    with pytest.raises(SystemExit) as stop:
        main(["calibrate", "scorer", *words])
    assert stop.value.code == 2
    assert not (files / "scorer" / RELIABILITY_FILE).exists()
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
