"""The WebNLG experiment: the highest score over references, splits, three models, and their figure."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bleurt_repro.datasets_builders.ratings.webnlg import TRAINING_SYSTEMS
from bleurt_repro.training.experiments.webnlg import draw_table, main, make_outputs
from bleurt_repro.training.metrics.rows import Row
from tests.tiny_experiments import make_ratings, write_config


def write_ratings(path):
    """Twelve inputs of two references and four systems that write more and less of them; one output is missing."""
    records = []
    for i in range(12):
        words = ["the", "cat", "sat", "on", "mat", str(i)]
        for place, team in enumerate(TRAINING_SYSTEMS[:4]):
            missing = (i, place) == (0, 3)
            records.append(
                {
                    "input_id": i + 1,
                    "mr": f"{i} | is | x",
                    "team": team,
                    "candidate": "" if missing else " ".join(words[: 3 + place]),
                    "references_eval": [f"it rains dog {i}", " ".join(words)],
                    "fluency": 1 + place / 2 + i / 100,
                    "grammar": 1 + place / 2,
                    "semantics": 3 - place / 2,
                }
            )
    path.write_text("\n".join(map(json.dumps, records)))
    return str(path)


def test_the_highest_score_over_references_counts():
    rows = [
        {"segment_id": 1, "system": "a", "candidate": "c", "references": ["r", "s"], "missing_output": False},
        {"segment_id": 1, "system": "b", "candidate": "", "references": ["r", "s"], "missing_output": True},
        {"segment_id": 2, "system": "a", "candidate": "d", "references": ["t"], "missing_output": False},
    ]
    outputs = make_outputs(rows)
    assert list(zip(outputs.texts.references, outputs.texts.candidates, strict=True)) == [
        ("r", "c"), ("s", "c"), ("t", "d"),
    ]  # fmt: skip
    row = Row("x", "baseline", [np.array([1.0, 5.0, 3.0])], "")
    assert outputs.highest(row).vectors[0].tolist() == [5.0, 3.0]
    assert outputs.indices(rows).tolist() == [0, 1]


def test_splits_and_models_are_measured_and_drawn(tmp_path, tiny_scorer):
    words = ["--data", write_ratings(tmp_path / "webnlg.jsonl"), "--output", str(tmp_path / "out")]
    words += ["--baselines", "chrf++", "ter", "--resamples", "10", "--aspects", "semantics"]
    words += ["--training_systems", "0", "2", "--training_inputs", "10", "--finetune", write_config(tmp_path)]
    words += ["--wmt_tuned", str(tiny_scorer), "--encoder", str(tiny_scorer)]
    results = main(words)
    assert (results["outputs"], results["pairs"], results["missing_outputs"]) == (47, 94, 1)
    found = {(part["split"], part["size"], part["aspect"]): part for part in results["conditions"]}
    assert len(found) == 3
    untrained, trained = found["system", 0, "semantics"], found["system", 2, "semantics"]
    assert [row["name"] for row in untrained["rows"]] == ["chrf++", "ter", "BLEURT"]
    assert [row["name"] for row in trained["rows"]] == ["chrf++", "ter", "BLEURT -pre -wmt", "BLEURT"]
    assert (untrained["test_outputs"], trained["test_outputs"], trained["training_records"]) == (47, 23, 48)
    assert found["input", 10, "semantics"]["test_outputs"] in (7, 8)
    # longer outputs are rated lower for semantics: the table has absolute values
    assert untrained["rows"][0]["average"]["kendall_tau"] < -0.5
    assert "| -" not in draw_table(results).replace("| -  ", "")
    out = tmp_path / "out"
    trained_on = [json.loads(line)["score"] for line in (out / "data" / "system-2-semantics-train.jsonl").open()]
    assert (np.mean(trained_on), np.std(trained_on)) == pytest.approx((0.0, 1.0))
    assert {path.name for path in out.glob("figure*")} == {"figure3.png", "figure3.svg"}
    assert (out / "table.md").read_text() == draw_table(json.loads((out / "results.json").read_text()))


@pytest.mark.long
def test_the_full_model_learns_from_the_wmt_ratings_of_2016_to_2018_first(tmp_path, tiny_scorer):
    rows = {year: make_ratings(20, seed=year, year=year) for year in (2015, 2016, 2018)}
    (tmp_path / "wmt").mkdir()
    for name, years in (("train", (2015, 2016, 2018)), ("validation", (2015, 2018))):
        lines = [json.dumps(row) for year in years for row in rows[year]]
        (tmp_path / "wmt" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    words = ["--data", write_ratings(tmp_path / "webnlg.jsonl"), "--output", str(tmp_path / "out"), "--resamples", "0"]
    words += ["--training_systems", "0", "--training_inputs", "10", "--aspects", "grammar"]
    words += ["--finetune", write_config(tmp_path), "--wmt_data", str(tmp_path / "wmt")]
    with pytest.raises(ValueError, match="name the pre-trained model that is fine-tuned on --wmt-data: --pretrained"):
        main(words)
    results = main([*words, "--pretrained", str(tiny_scorer)])
    assert [row["name"] for row in results["conditions"][0]["rows"]] == ["BLEURT"]
    assert [row["name"] for row in results["conditions"][1]["rows"]] == ["BLEURT -wmt", "BLEURT"]
    files = {side: tmp_path / "out" / "data" / f"wmt-{side}.jsonl" for side in ("train", "validation")}
    years = {side: {json.loads(line)["year"] for line in file.open()} for side, file in files.items()}
    assert years == {"train": {2016, 2018}, "validation": {2018}}
    with pytest.raises(ValueError, match=r"the train ratings of .*wmt have none of \[2030\]"):
        main([*words, "--pretrained", str(tiny_scorer), "--wmt_years", "2030"])
    with pytest.raises(ValueError, match="give either wmt_data, from which the full model is trained, or wmt_tuned"):
        main([*words, "--wmt_tuned", "x"])


def test_an_unknown_aspect(tmp_path):
    with pytest.raises(ValueError, match="unknown aspects style: available are fluency, grammar, semantics"):
        main(["--data", "x", "--output", str(tmp_path), "--aspects", "style"])
