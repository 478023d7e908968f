"""The drift experiment: who is kept, and the grid of training and test skews."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bleurt_repro.datasets_builders.ratings.wmt_sources import read_wmt
from bleurt_repro.training.experiments.drift import bins_by_rank, draw_table, keep, main
from tests.tiny_experiments import write_config, write_data


def test_bins_are_tenths_from_worst_to_best():
    assert bins_by_rank([3, 1, 2, 5, 4, 9, 8, 7, 6, 10]).tolist() == [3, 1, 2, 5, 4, 9, 8, 7, 6, 10]
    assert np.bincount(bins_by_rank(np.zeros(25)))[1:].tolist() == [3, 2, 3, 2, 3, 2, 3, 2, 3, 2]


def test_training_keeps_the_worst_and_testing_the_best():
    scores = np.random.default_rng(0).normal(size=20_000)
    for best in (False, True):
        bins = bins_by_rank(scores if not best else -scores)
        share = np.bincount(bins[keep(scores, 1.5, 1, best)], minlength=11)[1:] / 2000
        assert share == pytest.approx(np.arange(1, 11) ** -1.5, abs=0.03)
    assert keep(scores, 0, 1).tolist() == list(range(20_000))
    assert set(keep(scores, 3, 1)) < set(keep(scores, 1.5, 1)) < set(keep(scores, 0.5, 1))


@pytest.mark.parametrize(("alpha", "share"), [(0.5, 0.507), (1.0, 0.303), (1.5, 0.204), (3.0, 0.119)])
def test_the_shares_are_those_of_the_paper(shared_data, alpha, share):
    scores = [row["score"] for row in read_wmt(shared_data / "wmt" / "wmt15_wmt16_daseg_to_en.jsonl.gz")]
    assert len(scores) == 5360
    assert len(keep(scores, alpha, 0)) / 5360 == pytest.approx(share, abs=0.02)


def test_the_grid_is_measured_and_drawn(tmp_path, tiny_scorer):
    more = ["--encoder", str(tiny_scorer), "--finetune", write_config(tmp_path), "--baselines", "chrf++"]
    alphas = ["--train_alphas", "0", "0.5", "--test_alphas", "0", "0.2"]
    words = ["--data", write_data(tmp_path / "data"), "--output", str(tmp_path / "out"), "--resamples", "10"]
    results = main([*words, *more, *alphas])
    assert [part["alpha"] for part in results["by_test_alpha"]] == [0, 0.2]
    assert results["by_test_alpha"][0]["records"] == 40 > results["by_test_alpha"][1]["records"]
    rows = results["by_test_alpha"][1]["rows"]
    assert [row["name"] for row in rows] == ["BLEURT -pre, train 0", "BLEURT -pre, train 0.5", "chrf++"]
    sizes = [row["training"][0]["train_ratings"] for row in rows[:2]]
    assert sizes[0] == 60 > sizes[1]
    assert [part["of"] for part in results["densities"]["train"]] == [80, 80]
    out = tmp_path / "out"
    assert json.loads((out / "results.json").read_text()) == results
    assert (out / "table.md").read_text() == draw_table(results)
    assert [line.split()[2] for line in draw_table(results).splitlines() if line.startswith("| alpha")] == [
        "0",
        "0.2",
        "0.5",
    ]
    assert "nan" not in draw_table(results)  # a skew of one side alone has a dash on the other
    written = {path.name for path in out.glob("figure*")}
    assert written == {"figure1.png", "figure1.svg", "figure2.png", "figure2.svg"}
