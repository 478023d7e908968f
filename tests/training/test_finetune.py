"""Fine-tuning: it learns, chooses the best checkpoint, and leaves a folder that scores."""

from __future__ import annotations

import json

import evaluate
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bleurt_repro import BleurtScorer
from bleurt_repro.training.training_references import TrainingReferences
from tests.conftest import ROOT, SPACE, make_tiny_scorer
from tests.tiny_experiments import make_ratings
from tests.tiny_training import QUICK, finetune, options


def test_it_learns_and_the_result_scores(ratings, tmp_path, curves):
    start = make_tiny_scorer(tmp_path / "start", spread=0.05)
    finetune(options({"--model": str(start)}, ratings, QUICK, {"--export_dtype": "float16", "--max_length": "48"}))
    out = tmp_path / "out"
    results = json.loads((out / "results.json").read_text())
    taus = [entry["eval_kendall_tau"] for entry in results["history"] if "eval_kendall_tau" in entry]
    assert results["best"]["value"] == max(taus) > 0.6
    assert (results["data"]["train_ratings"], results["data"]["validation_ratings"], results["steps"]) == (
        256,
        64,
        120,
    )
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert {value.dtype for value in load_file(out / "model.safetensors").values()} == {torch.float16}
    scorer = BleurtScorer(str(out))
    assert scorer.layout.max_length == 48
    good, bad = scorer.score(references=["the cat sat on"] * 2, candidates=["the cat sat on", "fell fell fell fell"])
    assert good > bad + 0.3
    metric = evaluate.load(str(SPACE), str(out))
    assert metric.compute(predictions=["the cat sat on"], references=["the cat sat on"])["scores"] == pytest.approx(
        [good]
    )


def test_a_run_that_saves_nothing_on_its_way_keeps_its_end(ratings, tiny_scorer, tmp_path):
    asked = {
        **QUICK,
        "--save_strategy": "no",
        "--load_best_model_at_end": "false",
        "--max_steps": "4",
        "--eval_steps": "2",
    }
    finetune(options({"--model": str(tiny_scorer)}, ratings, asked))
    best = json.loads((tmp_path / "out" / "results.json").read_text())["best"]
    assert best["value"] is not None and best["step"] is None
    assert not list((tmp_path / "out").glob("checkpoint-*"))


@pytest.mark.parametrize("chooses", [True, False])
def test_validation_references_were_seen_if_they_chose_the_checkpoint(ratings, tiny_scorer, tmp_path, chooses):
    with (tmp_path / "validation.jsonl").open("a") as file:
        file.write('\n{"reference": "only to validate", "candidate": "a cat", "score": 0.5}\n')
    steps = {
        "--max_steps": "2",
        "--eval_steps": "1",
        "--save_steps": "1",
        "--load_best_model_at_end": str(chooses).lower(),
    }
    finetune(options({"--model": str(tiny_scorer)}, ratings, QUICK, steps))
    seen = TrainingReferences.read(tmp_path / "out")
    assert seen is not None and seen.overlap(["only to validate"])["seen"] == chooses


def test_a_classifier_of_other_labels_gives_its_encoder(ratings, tmp_path):
    start = make_tiny_scorer(tmp_path / "three", labels=3)
    finetune(options({"--model": str(start)}, ratings, {**QUICK, "--max_steps": "1", "--learning_rate": "0"}))
    before, after = (load_file(folder / "model.safetensors") for folder in (start, tmp_path / "out"))
    assert after["classifier.weight"].shape == (1, 32)
    name = "bert.encoder.layer.0.attention.self.query.weight"
    assert torch.equal(before[name], after[name])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--learning_rat": "1"}, "learning_rat"),
        ({"--export_dtype": "int8"}, "export_dtype must be"),
        ({"--model": "unheard-of"}, "unknown checkpoint"),
        ({"--train_file": "none.jsonl"}, "none.jsonl"),
    ],
)
def test_what_is_wrong_is_said(ratings, tiny_scorer, changes, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        finetune(options({"--model": str(tiny_scorer)}, ratings, QUICK, changes))


def write(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


@pytest.mark.long
def test_raw_ratings_are_learnt_as_fast_as_standardised_ones(ratings, tmp_path):
    start = make_tiny_scorer(tmp_path / "start", spread=0.05)
    for name in ("train", "validation"):
        rows = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        write(tmp_path / f"{name}.jsonl", [{**row, "score": 100 * row["score"]} for row in rows])
    words = options({"--model": str(start)}, ratings, QUICK)
    with pytest.warns(UserWarning, match="are standardised"):
        result = finetune(words)
    left = finetune([*words, "--no-standardize", "--output_dir", str(tmp_path / "left")])
    assert result["best"]["value"] > 0.6
    assert result["best"]["value"] > left["best"]["value"] + 0.1
    recorded = json.loads((tmp_path / "out" / "config.json").read_text())["bleurt"]["ratings"]
    assert recorded == result["data"]["standardized"]
    assert (recorded["by"], recorded["groups"]["all"]["ratings"]) == ("file", 256)
    assert left["data"]["standardized"] is None
    assert "ratings" not in json.loads((tmp_path / "left" / "config.json").read_text())["bleurt"]


def test_the_example_ratings_are_enough_for_a_first_run(tmp_path):
    example = ROOT / "metric" / "examples" / "ratings.csv"
    words = {"--config": "finetune_mini", "--model": str(make_tiny_scorer(tmp_path / "start")), "--bf16": "false"}
    with pytest.warns(UserWarning, match="are standardised"):
        result = finetune(options(words, {"--train_file": str(example), "--output_dir": str(tmp_path / "out")}))
    assert (result["data"]["train_ratings"], result["data"]["validation_ratings"]) == (54, 6)
    assert len(BleurtScorer(str(tmp_path / "out")).score(references=["a cat"], candidates=["a dog"])) == 1


def ratings_of_pairs(seed):
    """Two candidates of each segment, the second the better one by 50 points of 100 or more."""
    rows = make_ratings(80, seed)
    return [{**row, "reference": rows[n | 1]["reference"], "source": None} for n, row in enumerate(rows)]


def test_the_best_checkpoint_by_relative_ranks(tmp_path):
    for name, seed in (("train", 1), ("validation", 2)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, ratings_of_pairs(seed))))
    files = {f"--{name}_file": str(tmp_path / f"{name}.jsonl") for name in ("train", "validation")}
    start = make_tiny_scorer(tmp_path / "start", spread=0.05)
    words = options(
        {"--model": str(start), "--output_dir": str(tmp_path / "out")},
        files,
        QUICK,
        {"--metric_for_best_model": "darr"},
    )
    found = finetune(words)
    values = [entry["eval_darr"] for entry in found["history"] if "eval_darr" in entry]
    assert found["best"]["measure"] == "darr" and found["best"]["value"] == max(values) > 0.5
    # by the scores of the checkpoint that was kept
    rows = ratings_of_pairs(2)
    scores = BleurtScorer(str(tmp_path / "out"), device="cpu").score_rows(rows)
    # of each segment the second candidate is the better one
    agree = [1 if better > worse else -1 for worse, better in zip(scores[::2], scores[1::2], strict=True)]
    assert found["best"]["value"] == pytest.approx(np.mean(agree))


def test_relative_ranks_need_raw_scores_far_apart(tmp_path, tiny_scorer):
    rows = [{**row, "raw_score": 10.0 + n % 2} for n, row in enumerate(ratings_of_pairs(1))]
    (tmp_path / "ratings.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = {"--train_file": str(tmp_path / "ratings.jsonl"), "--output_dir": str(tmp_path / "out")}
    with pytest.raises(ValueError, match="two candidates that differ by at least 25 points of 100, found none"):
        finetune(options({"--model": str(tiny_scorer)}, words, QUICK, {"--metric_for_best_model": "darr"}))
