"""Fine-tuning: it learns, chooses the best checkpoint, and leaves a folder that scores."""

from __future__ import annotations

import json
import warnings

import evaluate
import pytest
import torch
from safetensors.torch import load_file

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.layout import Layout
from bleurt_repro.training.finetune import RatingArguments, read_data
from tests.conftest import SPACE, make_tiny_scorer
from tests.tiny_training import QUICK, finetune, options


def test_it_learns_and_the_result_scores(ratings, tmp_path):
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


@pytest.mark.parametrize(
    ("scale", "shift", "said"), [(1.0, 0.0, False), (50.0, 25.0, True), (1.0, 2.0, True), (0.01, 0.0, True)]
)
def test_ratings_far_from_standardised_ones_are_said(tmp_path, scale, shift, said):
    rows = [{"reference": f"a {i}", "candidate": "a", "score": scale * (i % 3 - 1) + shift} for i in range(30)]
    path = tmp_path / "ratings.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        read_data(RatingArguments("model", str(path)), Layout(), seed=0)
    assert [f"{path} have mean" in str(warning.message) for warning in found] == [True] * said
