"""Fits of how far scores can be trusted, against known truths and against brute force; the command, and its report."""

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
from bleurt_repro.training.reliability import (
    COVERAGE,
    SIZES,
    Comparisons,
    Rated,
    compare_systems,
    draw_reliability,
    fit_error_free,
    fit_intervals,
    fit_preference,
    fit_reliability,
    measure,
    predict,
    predict_known_groups,
    predict_left_out,
)
from bleurt_repro.training.results import Result
from tests.conftest import make_tiny_scorer


def rated(systems=6, segments=250, groups=("a", "b"), seed=0) -> Rated:
    """Ratings of 1 to 3 judgements whose noise has a variance of 0.49, the metric's error one of about 0.14."""
    generator = np.random.default_rng(seed)
    rows = []
    for place, group in enumerate(groups):
        quality, bias = generator.normal(0, 0.3, systems), generator.normal(0, 0.05, systems)
        for segment in range(segments):
            for system in range(systems):
                true = quality[system] + generator.normal(0, 0.6)
                count = generator.choice([1, 1, 2, 3])
                rating = true + generator.normal(0, 0.7) / math.sqrt(count)
                score = true + bias[system] + generator.normal(0, 0.4)
                rows.append((score, rating, count, group, 10_000 * place + segment, f"s{system}"))
    scores, ratings, counts, names, numbers, labels = map(np.array, zip(*rows, strict=True))
    words = generator.integers(3, 30, len(scores))
    return Rated(scores, ratings, counts.astype(float), names, numbers, labels, words, scores > 0.8)


@pytest.fixture(scope="module")
def sample():
    return rated()


@pytest.fixture(scope="module")
def comparisons(sample):
    return compare_systems(sample)


def test_comparisons_against_brute_force(sample, comparisons):
    found = comparisons.of(comparisons.sizes == 0)
    expected = []
    for group in ("a", "b"):
        own = sample.of(sample.groups == group)
        for one, other in itertools.combinations([f"s{i}" for i in range(6)], 2):
            first, second = own.of(own.systems == one), own.of(own.systems == other)
            order = [np.argsort(side.segments) for side in (first, second)]
            gaps = first.scores[order[0]] - second.scores[order[1]]
            error = gaps.std(ddof=1) / math.sqrt(len(gaps))
            expected.append((gaps.mean(), error, first.ratings.mean() > second.ratings.mean()))
    assert len(found.pairs) == len(expected) == 30
    differences, errors, preferred = map(np.array, zip(*expected, strict=True))
    assert found.differences == pytest.approx(differences)
    assert found.errors == pytest.approx(errors)
    assert (found.preferred == preferred).all()
    assert set(comparisons.sizes) == {0, *(size for size in SIZES if size < 250)}
    assert comparisons.weights.sum() == pytest.approx(30 * len(set(comparisons.sizes)))
    near = (found.p_values > 0.01) & (found.p_values < 0.4)
    normal = [0.5 * math.erfc(abs(d) / e / math.sqrt(2)) for d, e in zip(found.differences, found.errors, strict=True)]
    assert found.p_values[near] == pytest.approx(np.array(normal)[near], abs=0.05)


def test_a_candidate_of_several_systems_counts_for_each_of_them():
    one = rated(systems=3, segments=60, groups=("a",))
    joined = np.where(one.systems == "s2", "s2+s3", one.systems)
    both = compare_systems(Rated(**{**vars(one), "systems": joined}))
    assert len(np.unique(both.pairs)) == 5  # of six, s2 and s3 have the same ratings


def test_systems_that_share_no_segments_are_compared_on_different_ones():
    one = rated(systems=2, segments=120, groups=("a",))
    apart = one.of((one.segments % 2 == 0) == (one.systems == "s0"))
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
        fit_preference(made.of(np.arange(9)))


def test_intervals_cover_what_they_say_for_any_number_of_judgements():
    fitted, other = fit_intervals(rated()), rated(seed=5)
    # of a single judgement's variance about its prediction, 0.49 is noise, and what scores leave open of the truth is not
    left_open = 1 / (1 / (0.36 + 0.09) + 1 / 0.16)
    assert fitted.noise == pytest.approx(0.49 / (0.49 + left_open), abs=0.08)
    for count in (1, 2, 3):
        own = other.of(other.judgements == count)
        low, high = np.array(fitted(own.scores.tolist(), COVERAGE, count)).T
        assert np.mean((own.ratings >= low) & (own.ratings <= high)) == pytest.approx(COVERAGE, abs=0.035)
    assert all(a <= b for a, b in itertools.pairwise(fitted.means))


def test_without_numbers_of_judgements_intervals_have_no_noise(sample):
    unknown = Rated(**{**vars(sample), "judgements": np.full(len(sample.scores), np.nan)})
    assert fit_intervals(unknown).noise is None
    with pytest.raises(ValueError, match="500 ratings that vary"):
        fit_intervals(unknown.of(np.arange(400)))


def test_no_error_is_the_level_of_copies(sample):
    fitted = fit_error_free(sample)
    single = sample.of(sample.judgements == 1)
    assert fitted.rating == pytest.approx(np.quantile(single.ratings[single.copies], 0.1), abs=1e-4)
    assert fitted.missed == pytest.approx(0.1, abs=0.02)
    p = np.array(fitted(single.scores.tolist()))
    high = p > np.median(p)
    assert p[high].mean() == pytest.approx((single.ratings[high] >= fitted.rating).mean(), abs=0.02)
    with pytest.raises(ValueError, match="found 0"):
        fit_error_free(Rated(**{**vars(sample), "copies": np.zeros(len(sample.scores), bool)}))


def test_each_group_is_predicted_by_the_others_alone(sample, comparisons):
    predicted = predict_left_out(sample, comparisons)
    own, compared = sample.groups == "a", comparisons.groups == "a"
    fitted, _ = fit_reliability(sample.of(~own), comparisons.of(~compared))
    alone = predict(fitted, sample.ratings[~own], sample.of(own), comparisons.of(compared))
    assert predicted.preferred[compared] == pytest.approx(alone.preferred)
    assert predicted.low[own] == pytest.approx(alone.low) and predicted.error_free[own] == pytest.approx(
        alone.error_free
    )
    changed = Rated(**{**vars(sample), "ratings": np.where(own, -sample.ratings, sample.ratings)})
    again = predict_left_out(changed, comparisons)
    assert again.high[own] == pytest.approx(predicted.high[own])


def test_each_fifth_of_the_segments_is_predicted_by_the_others_alone(sample):
    predicted = predict_known_groups(sample)
    assert np.isfinite(predicted.low).all() and np.isnan(predicted.error_free).all()
    found = measure(sample, Comparisons(*[np.array([])] * 8), predicted)["intervals"]
    for one in found["by_group"].values():
        assert one["coverage"] == pytest.approx(COVERAGE, abs=0.02)
    own = sample.segments == sample.segments[0]
    changed = Rated(**{**vars(sample), "ratings": np.where(own, 9, sample.ratings)})
    assert predict_known_groups(changed).high[own] == pytest.approx(predicted.high[own])
    assert np.isnan(predict_known_groups(sample.of(np.arange(510))).low).all()


def test_figures_against_brute_force(sample, comparisons):
    predicted = predict_left_out(sample, comparisons)
    found = measure(sample, comparisons, predicted)
    inside = [low <= r <= high for low, r, high in zip(predicted.low, sample.ratings, predicted.high, strict=True)]
    assert found["intervals"]["coverage"] == pytest.approx(sum(inside) / len(inside))
    assert found["intervals"]["by_group"]["a"]["n"] == (sample.groups == "a").sum()
    widths = [high - low for low, high in zip(predicted.low, predicted.high, strict=True)]
    naive = [high - low for low, high in zip(predicted.naive_low, predicted.naive_high, strict=True)]
    assert found["intervals"]["narrower"] == pytest.approx(1 - sum(widths) / sum(naive))
    assert sum(one["n"] for one in found["intervals"]["by_score"].values()) == len(inside)
    whole = np.flatnonzero(comparisons.sizes == 0)
    brier, bins = 0.0, {}
    for i in whole:
        p, right = predicted.preferred[i], bool(comparisons.preferred[i])
        if comparisons.differences[i] < 0:
            p, right = 1 - p, not right
        brier += (p - right) ** 2 / len(whole)
        bins.setdefault(min(9, int(10 * p)), []).append((p, right))
    one = found["preference"]["all_segments"]
    ece = sum(abs(sum(p - right for p, right in own)) for own in bins.values()) / len(whole)
    assert (one["brier"], one["ece"]) == pytest.approx((brier, ece))
    single = sample.judgements == 1
    right = sample.ratings[single] >= np.median(sample.ratings[single])
    assert found["error_free"]["n"] == single.sum() == len(right)
    assert found["error_free"]["kept"][0]["share"] == 1.0
    many = Rated(**{**vars(sample), "judgements": np.full(len(sample.scores), 15.0)})
    assert "error_free" not in measure(many, comparisons, predicted)


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
            row = {"lp": lp, "segment_id": segment, "system": f"s{system}", "n_annotations": generator.choice([1, 2])}
            rows.append({**row, "reference": reference, "candidate": candidate})
    scores = BleurtScorer(str(folder)).score_rows(rows)
    for row, score in zip(rows, scores, strict=True):
        row["score"] = score + generator.gauss(0, 0.1) / math.sqrt(row["n_annotations"])
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
    assert fitted.preference and fitted.intervals and fitted.error_free
    assert fitted.source["file"] == "ratings.jsonl" and fitted.source["ratings"] == 720
    result = Result.read("out.json")
    assert result.kind == "reliability" and result.signatures == {"scorer": before}
    assert result.command == " ".join(["bleurt-repro", *words[:-2], "--seed 0 --report OUT"])
    others = ("each group by fits on the others", "each fifth of the segments by fits on the others")
    assert list(result["tests"]) == [*(f"ratings.jsonl, {name}" for name in others), "ratings.jsonl"]
    assert (files / "out.md").read_text() == draw_reliability(result)
    found = result["tests"]["ratings.jsonl"]
    assert found["intervals"]["coverage"] == pytest.approx(COVERAGE, abs=0.05)
    assert found["preference"]["pairs"] == 30
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
    assert stop.value.code == 0 and BleurtScorer("scorer").reliability.intervals


def test_ratings_without_systems_fit_the_rest(files, capsys):
    rows = [json.loads(line) for line in (files / "ratings.jsonl").read_text().splitlines()]
    for row in rows:
        del row["system"], row["n_annotations"]
    (files / "ratings.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(SystemExit):
        main(["calibrate", "scorer", "--reliability", "ratings.jsonl"])
    assert "not fitted: preference: a fit needs 10 pairs of systems, found 0" in capsys.readouterr().out
    fitted = BleurtScorer("scorer").reliability
    assert fitted.preference is None and fitted.intervals.noise is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name ratings to fit on"),
        (["--ratings", "ratings.jsonl", "--report", "out.json"], "--test and --report go with --reliability"),
        (["--reliability", "ratings.jsonl", "--report", "out.md"], "must be a .json file, found out.md"),
        (["--reliability", "few.jsonl"], "nothing can be fitted"),
        (["--reliability", "none.jsonl"], "no file none.jsonl"),
    ],
)
def test_one_line_for_what_went_wrong(files, capsys, words, message):
    lines = (files / "ratings.jsonl").read_text().splitlines()
    (files / "few.jsonl").write_text("\n".join(lines[:5]))
    with pytest.raises(SystemExit) as stop:
        main(["calibrate", "scorer", *words])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
