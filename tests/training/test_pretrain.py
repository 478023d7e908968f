"""Pre-training on synthetic pairs made by tiny teachers, and fine-tuning from what it leaves."""

from __future__ import annotations

import json

import datasets
import pytest
import torch
from safetensors.torch import load_file

from bleurt_repro import BleurtScorer
from bleurt_repro.datasets_builders.synthetic.builder import read_info
from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.make import make_synthetic_pairs
from bleurt_repro.training.pretrain import hold_out
from tests.conftest import make_tiny_scorer
from tests.tiny_teachers import SENTENCES
from tests.tiny_training import QUICK, STEPS, finetune, options, pretrain

SIGNALS = {"bleu", "rouge", "bertscore", "back_translation_likelihood", "entailment", "back_translation_flag"}


def test_pretraining_learns_every_signal_and_fine_tuning_starts_from_it(pairs, tiny_scorer, ratings, tmp_path, curves):
    out = tmp_path / "pretrained"
    pretrain(options({"--model": str(tiny_scorer), "--pairs": str(pairs), "--output_dir": str(out)}, STEPS))
    results = json.loads((out / "results.json").read_text())
    logged = [entry for entry in results["history"] if "loss" in entry]
    assert {name.removeprefix("loss_") for name in logged[0] if name.startswith("loss_")} == SIGNALS
    assert logged[-1]["loss"] < logged[0]["loss"]
    assert logged[0]["loss"] == pytest.approx(sum(logged[0][f"loss_{name}"] for name in SIGNALS), rel=1e-3)
    held = [entry for entry in results["history"] if "eval_loss" in entry]
    assert {f"eval_loss_{name}" for name in SIGNALS} <= set(held[0])
    assert results["best"]["value"] == pytest.approx(min(entry["eval_loss"] for entry in held))
    assert results["data"]["train_pairs"] + results["data"]["validation_pairs"] == len(
        datasets.load_dataset(str(pairs), split="train")
    )
    assert (out / "curves.png").exists()
    assert len(BleurtScorer(str(out)).score(references=["a cat"], candidates=["a dog"])) == 1

    finetune(options({"--model": str(out)}, ratings, {**QUICK, "--max_steps": "1", "--learning_rate": "0"}))
    before, after = (load_file(folder / "model.safetensors") for folder in (out, tmp_path / "out"))
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_checkpointed_activations_give_the_same_losses(pairs, tmp_path):
    """As `pretrain_paper` asks; activations are computed again, dropout included."""
    start = make_tiny_scorer(tmp_path / "start")
    few = {**STEPS, "--max_steps": "2", "--eval_steps": "2", "--save_steps": "2", "--logging_steps": "1"}
    words = options({"--model": str(start), "--pairs": str(pairs)}, few)
    losses = []
    for name, more in (("kept", []), ("again", ["--gradient_checkpointing", "true"])):
        pretrain([*words, *more, "--output_dir", str(tmp_path / name)])
        history = json.loads((tmp_path / name / "results.json").read_text())["history"]
        losses.append([entry["loss"] for entry in history if "loss" in entry])
    assert len(losses[0]) == 2 and losses[1] == pytest.approx(losses[0], abs=1e-5)


def test_several_sets_are_learnt_as_one(pairs, tiny_teachers, tiny_scorer, tmp_path):
    (tmp_path / "in.txt").write_text("\n".join(f"{sentence} Again." for sentence in SENTENCES[:3]))
    config = SyntheticConfig(device="cpu", beam_size=1, max_masks=3, unit_segments=4, segments_per_part=8)
    make_synthetic_pairs(str(tmp_path / "in.txt"), tmp_path / "more", config.with_options(**tiny_teachers.options()))
    words = options(
        {"--model": str(tiny_scorer), "--output_dir": str(tmp_path / "out")}, {**STEPS, "--max_steps": "1"}
    )
    pretrain([*words, "--pairs", str(pairs), str(tmp_path / "more")])
    data = json.loads((tmp_path / "out" / "results.json").read_text())["data"]
    counts = [read_info(folder)["pairs"] for folder in (pairs, tmp_path / "more")]
    assert data["train_pairs"] + data["validation_pairs"] == sum(counts)
    assert data["pairs"]["folder"] == "pairs, more"


def test_a_group_without_weight_and_a_signal_left_out_are_not_learnt(pairs, tmp_path):
    start = make_tiny_scorer(tmp_path / "start", dropout=0.0)
    words = {
        "--model": str(start),
        "--pairs": str(pairs),
        "--max_steps": "10",
        "--eval_steps": "10",
        "--save_steps": "10",
    }
    runs = {"all": {}, "less": {"--leave_out": "entailment", "--gamma_automatic_metrics": "0"}}
    for name, changes in runs.items():
        pretrain(options({**STEPS, **words, "--output_dir": str(tmp_path / name)}, changes))
    history = json.loads((tmp_path / "less" / "results.json").read_text())["history"]
    logged = [entry for entry in history if "loss" in entry]
    assert "loss_entailment" not in logged[0]
    parts = ("back_translation_likelihood", "back_translation_flag")
    assert logged[0]["loss"] == pytest.approx(sum(logged[0][f"loss_{part}"] for part in parts), rel=1e-3)


def test_no_reference_is_on_both_sides():
    # as two sets of one text have it: other numbers of segments, the same reference
    rows = datasets.Dataset.from_dict({"reference": list("aabcccda"), "segment_id": [0, 0, 1, 2, 2, 2, 3, 0]})
    train, held = hold_out(rows, 2, seed=0)
    assert len(set(held["reference"])) == 2
    assert not set(train["reference"]) & set(held["reference"])
    assert len(train) + len(held) == 8
    with pytest.raises(ValueError, match="validation_segments must be from 1 to 3 here, found 4"):
        hold_out(rows, 4, seed=0)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"--pairs": "nowhere"}, FileNotFoundError, "not a finished set of synthetic pairs"),
        ({"--leave_out": "blue"}, ValueError, "the data have no signal blue"),
        ({"--model": "unheard-of"}, ValueError, "unknown checkpoint"),
        ({"--gamma": "1"}, ValueError, "unknown option --gamma"),
    ],
)
def test_what_is_wrong_is_said(pairs, tiny_scorer, tmp_path, changes, error, message):
    words = {"--model": str(tiny_scorer), "--pairs": str(pairs), "--output_dir": str(tmp_path / "out"), **changes}
    with pytest.raises(error, match=message):
        pretrain(options(words, STEPS))
