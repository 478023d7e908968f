"""Calibration: the fit, its record in the checkpoint, and percentiles through scorer, command line and module."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from typer.testing import CliRunner

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import app
from bleurt_repro.metric.calibration import Calibration
from bleurt_repro.training.calibrate import calibrate, fit
from tests.conftest import make_tiny_scorer

THREE = Calibration((-1.0, 0.0, 2.0), (10.0, 40.0, 90.0), {})


@pytest.mark.parametrize(
    ("score", "percentile"), [(-1.0, 10.0), (-0.5, 25.0), (1.0, 65.0), (2.0, 90.0), (-9.0, 10.0), (9.0, 90.0)]
)
def test_between_and_beyond_the_points(score, percentile):
    assert THREE([score]) == pytest.approx([percentile])


@pytest.mark.parametrize(
    ("scores", "percentiles", "message"),
    [
        ((0.0,), (1.0,), "two or more"),
        ((0.0, 1.0), (1.0,), "one percentile per score"),
        ((1.0, 1.0), (1.0, 2.0), "finite and rising"),
        ((0.0, 1.0), (2.0, 1.0), "never fall"),
        ((0.0, 1.0), (2.0, 101.0), "0 to 100 and never falling"),
        ((0.0, 1.0), (-1.0, 50.0), "0 to 100 and never falling"),
        ((0.0, 1.0), (float("nan"), 1.0), "never fall"),
    ],
)
def test_what_is_no_monotone_map(scores, percentiles, message):
    with pytest.raises(ValueError, match=message):
        Calibration(scores, percentiles, {})


def test_percentiles_may_reach_from_0_to_100():
    assert Calibration((0.0, 1.0), (0.0, 100.0), {})([0.0, 0.25, 1.0]) == [0, 25, 100]


def test_interpolation_never_rounds_beyond_the_ends():
    # numpy's gives 93.25525730167342 here
    calibration = Calibration((-193.0, 0.0), (32.1874800615505, 93.25525730167341), {})
    assert calibration([-1.900506597696252e-242]) == [93.25525730167341]


def test_interpolation_never_rounds_above_a_higher_score():
    calibration = Calibration((-55166.0, -55165.0, 0.0, 1.0), (0.0, 0.75, 7.6640625, 8.0), {"ratings": 1})
    assert calibration([-6.609218560550214e-55, 0.0]) == [
        7.6640625,
        7.6640625,
    ]  # 7.664062500000001 by plain interpolation


def test_the_fit_finds_a_known_map():
    generator = np.random.default_rng(0)
    ratings = generator.normal(size=4000)
    fitted = fit(np.exp(ratings), ratings, {})  # any monotone score gives back the ratings' own percentiles
    assert fitted(np.exp([np.quantile(ratings, q) for q in (0.1, 0.5, 0.9)])) == pytest.approx([10, 50, 90], abs=0.5)


def test_scores_that_say_little_are_drawn_to_the_middle():
    generator = np.random.default_rng(0)
    ratings = generator.normal(size=4000)
    fitted = fit(ratings + 3 * generator.normal(size=4000), ratings, {})
    assert fitted([0.0]) == pytest.approx([50], abs=4)
    assert 50 < fitted([3.0])[0] < 70  # the 83rd percentile of the scores


@pytest.mark.parametrize(
    ("scores", "ratings"), [(range(50), range(50)), ([0] * 200, range(200)), (range(200), [1] * 200)]
)
def test_too_little_to_fit(scores, ratings):
    with pytest.raises(ValueError, match="at least 100 ratings"):
        fit(np.array(scores, float), np.array(ratings, float), {})


@pytest.fixture
def calibrated(tmp_path):
    rng = random.Random(0)
    words = "the cat sat on mat it rains dog".split()
    rows = [
        {
            "reference": " ".join(rng.sample(words, 4)),
            "candidate": " ".join(rng.sample(words, 4)),
            "score": rng.random(),
        }
        for _ in range(200)
    ]
    (tmp_path / "ratings.jsonl").write_text("\n".join(map(json.dumps, rows)))
    folder = make_tiny_scorer(tmp_path / "scorer")
    raw = BleurtScorer(str(folder))
    assert calibrate(folder, tmp_path / "ratings.jsonl").source["ratings"] == 200
    return folder, raw


def test_the_checkpoint_keeps_it_and_raw_scores_stay(calibrated):
    folder, raw = calibrated
    texts = {"references": ["the cat sat", "it rains"], "candidates": ["the dog sat", "it rains"]}
    scorer = BleurtScorer(str(folder))
    assert scorer.layout == raw.layout
    assert scorer.score(**texts) == raw.score(**texts)
    result = scorer.compute(**texts, calibrated=True)
    assert result.scores == scorer.calibration(raw.score(**texts))
    assert all(0 <= percentile <= 100 for percentile in result.scores)
    assert result.mean_score == pytest.approx(sum(result.scores) / 2)
    assert "|scale:percentile|" in result.signature
    assert "scale" not in scorer.signature
    with pytest.raises(ValueError, match="has no calibration"):
        raw.score(**texts, calibrated=True)


def test_a_folder_named_as_the_embedded_checkpoint_is_calibrated_by_its_own_scores(calibrated, tmp_path, monkeypatch):
    folder, _ = calibrated
    expected = BleurtScorer(str(folder)).calibration
    folder.rename(tmp_path / "bleurt-repro-mini")
    monkeypatch.chdir(tmp_path)
    assert calibrate("bleurt-repro-mini", "ratings.jsonl") == expected


def test_through_command_line_and_module(calibrated, tmp_path):
    import evaluate

    from tests.conftest import SPACE

    folder, _ = calibrated
    (tmp_path / "r.txt").write_text("the cat sat\n")
    (tmp_path / "c.txt").write_text("the dog sat\n")
    words = ["score", "--references", str(tmp_path / "r.txt"), "--candidates", str(tmp_path / "c.txt")]
    shown = CliRunner().invoke(app, [*words, "--checkpoint", str(folder), "--calibrated"])
    module = evaluate.load(str(SPACE), str(folder))
    found = module.compute(predictions=["the dog sat"], references=["the cat sat"], calibrated=True)["scores"]
    expected = BleurtScorer(str(folder)).score(references=["the cat sat"], candidates=["the dog sat"], calibrated=True)
    assert found == pytest.approx(expected)
    assert float(shown.stdout) == pytest.approx(expected[0], abs=1e-6)


def test_a_damaged_record_is_named(calibrated):
    folder, _ = calibrated
    config = json.loads((folder / "config.json").read_text())
    config["bleurt"]["calibration"] = {"scores": [1]}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="must have scores and percentiles"):
        BleurtScorer(str(folder))


def test_no_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError, match="must be the folder of a checkpoint"):
        calibrate(tmp_path, tmp_path / "ratings.jsonl")
