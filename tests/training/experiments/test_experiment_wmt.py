"""The WMT experiment: measures by year, published figures, models by seed, and resuming after a kill."""

from __future__ import annotations

import json

import pytest

from bleurt_repro.training.experiments import trained_models as fine_tuning
from bleurt_repro.training.experiments.report import draw_table
from bleurt_repro.training.experiments.wmt import main
from tests.tiny_experiments import write_config, write_data


def words(tmp_path, data, *more):
    return ["--data", data, "--output", str(tmp_path / "out"), "--resamples", "20", *more]


def test_2017_is_measured_by_tau_and_r_beside_the_published_figures(tmp_path):
    results = main(words(tmp_path, write_data(tmp_path / "data"), "--baselines", "chrf++", "length_ratio"))
    assert results["measures"] == ["kendall_tau", "pearson_r"]
    first = results["rows"][0]
    assert list(first["groups"]) == ["cs-en", "de-en"]
    assert first["average"]["kendall_tau"] == pytest.approx(
        sum(group["kendall_tau"]["value"] for group in first["groups"].values()) / 2
    )
    low, high = first["average_intervals"]["kendall_tau"]
    assert low < first["average"]["kendall_tau"] < high
    published = {row["name"]: row["average"] for row in results["published"]}
    assert published["sentBLEU"] == {"kendall_tau": 0.324, "pearson_r": 0.475}
    assert published["BLEURT"] == {"kendall_tau": 0.625, "pearson_r": 0.818}
    assert "| BLEURT (published)" in draw_table(results)
    written = {path.name for path in (tmp_path / "out").iterdir() if path.is_file()}
    assert written == {"results.json", "table.md", "comparisons.md", "wmt.png", "wmt.svg"}
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == results


def test_2018_is_measured_by_tau_and_darr_of_raw_scores(tmp_path):
    results = main(words(tmp_path, write_data(tmp_path / "data", 2018), "--baselines", "chrf++"))
    assert results["measures"] == ["kendall_tau", "darr"]
    # every segment has one pair, and the better candidate of each is the reference's words
    assert results["rows"][0]["groups"]["cs-en"]["darr"] == {"value": 1.0, "low": 1.0, "high": 1.0, "n": 10}
    assert {row["name"]: row["average"] for row in results["published"]}["sentBLEU"] == {
        "kendall_tau": 0.228,
        "darr": 0.232,
    }


@pytest.mark.long
def test_models_are_trained_once_a_seed_and_kept_as_scores(tmp_path, tiny_scorer, monkeypatch):
    more = ["--encoder", str(tiny_scorer), "--finetune", write_config(tmp_path), "--seeds", "1", "2"]
    options = words(tmp_path, write_data(tmp_path / "data"), "--baselines", "chrf++", *more)
    results = main(options)
    model, chrf = results["rows"]
    assert (model["name"], model["kind"], chrf["name"]) == ("BLEURT -pre", "model", "chrf++")
    assert [run["seed"] for run in model["training"]] == [1, 2]
    values = model["seeds"]["kendall_tau"]["values"]
    assert values[0] != values[1]
    assert model["average"]["kendall_tau"] == pytest.approx(sum(values) / 2)
    assert not list((tmp_path / "out" / "models").iterdir())  # nothing but the scores is kept

    def refuse(*_):
        raise AssertionError("trained again")

    monkeypatch.setattr(fine_tuning.FineTuning, "_train", refuse)
    assert main(options) == results
    with pytest.raises(AssertionError, match="trained again"):  # another seed is another cell
        main([*options, "3"])


def test_what_cannot_be_measured(tmp_path):
    data = write_data(tmp_path / "data")
    with pytest.raises(ValueError, match="name an encoder to train, a checkpoint or a baseline"):
        main(words(tmp_path, data))
    with pytest.raises(FileNotFoundError, match=r"no test\.jsonl or test\.parquet in"):
        main(words(tmp_path, str(tmp_path), "--baselines", "chrf++"))
    with pytest.raises(ValueError, match=r"ratings of the years \[2017, 2018\]"):
        other = write_data(tmp_path / "other", 2018)
        path = tmp_path / "data" / "test.jsonl"
        path.write_text(path.read_text() + open(f"{other}/test.jsonl").read())
        main(words(tmp_path, data, "--baselines", "chrf++"))
