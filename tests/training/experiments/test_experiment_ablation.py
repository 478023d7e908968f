"""The ablation: which tasks each arm learns, models at several steps, and the two figures."""

from __future__ import annotations

import json

import pytest

from bleurt_repro.training.experiments.ablation import (
    ALL,
    NONE,
    ONLY,
    STEPS,
    WITHOUT,
    Arm,
    draw_steps,
    draw_tasks,
    left_out,
    main,
    make_arms,
    relative_gain,
    seed_gains,
)
from tests.tiny_experiments import write_config, write_data

SIGNALS = ["bleu", "rouge", "entailment"]
PRETRAIN = (
    "max_steps: 4\neval_steps: 2\nsave_steps: 2\nlogging_steps: 2\nlearning_rate: 1.0e-3\ndisable_tqdm: true\n"
    "global_batch_size: 8\nvalidation_segments: 3\nmax_length: 48\n"
)


@pytest.mark.parametrize(
    ("arm", "names"),
    [(Arm(ALL), []), (Arm(ONLY, "rouge"), ["bleu", "entailment"]), (Arm(WITHOUT, "rouge"), ["rouge"])],
)
def test_what_an_arm_does_not_learn(arm, names):
    assert left_out(arm, SIGNALS) == names


def test_the_arms():
    assert [arm.name for arm in make_arms(["bleu", "back_translation_flag"])] == [
        "none", "all", "only bleu", "only back translation flag", "without bleu", "without back translation flag",
    ]  # fmt: skip
    assert Arm(NONE).kind == NONE


def test_gains_are_shares_of_the_base():
    rows = [{"name": name, "average": {"kendall_tau": tau}} for name, tau in (("none", 0.4), ("all", 0.5))]
    test = {"first": "all", "second": "none", "low": 0.02, "high": 0.16}
    gain, ends = relative_gain({"comparisons": [test]}, rows[1], rows[0])
    assert (gain, *ends) == pytest.approx((0.25, 0.05, 0.4))
    gain, ends = relative_gain({"comparisons": [test]}, rows[0], rows[1])
    assert (gain, *ends) == pytest.approx((-0.2, -0.32, -0.04))
    assert relative_gain({"comparisons": [test]}, rows[0], rows[0]) == (0.0, (None, None))


def test_gains_of_seeds_are_over_the_mean_of_the_base():
    base, row = {"average": {"kendall_tau": 0.4}}, {"seeds": {"kendall_tau": {"values": [0.5, 0.3]}}}
    assert seed_gains(row, base) == pytest.approx([0.25, -0.25])
    assert seed_gains({}, base) == []


def test_each_seed_is_a_dot():
    seeds = {"kendall_tau": {"values": [0.39, 0.41, 0.4]}}
    rows = [
        {"name": name, "arm": arm, "signal": "bleu", "steps": steps, "average": {"kendall_tau": 0.4}, "seeds": seeds}
        for name, arm, steps in (("none", NONE, 0), ("all", ALL, 0), ("steps 2", STEPS, 2), ("only bleu", ONLY, 0))
    ]
    results = {"rows": rows, "comparisons": []}
    (axes,) = draw_steps(results).axes
    assert axes.collections[-1].get_offsets().tolist() == [
        [steps, pytest.approx(gain)] for steps in (0, 2) for gain in (-2.5, 2.5, 0)
    ]
    assert len(draw_tasks(results).axes[0].collections[-1].get_offsets()) == 3


@pytest.mark.long
def test_arms_and_steps_are_trained_and_drawn(pairs, tiny_scorer, tmp_path):
    (tmp_path / "pretrain.yaml").write_text(PRETRAIN)
    words = ["--data", write_data(tmp_path / "data"), "--pairs", str(pairs), "--output", str(tmp_path / "out")]
    words += ["--encoder", str(tiny_scorer), "--pretrain", str(tmp_path / "pretrain.yaml"), "--every", "2"]
    words += ["--finetune", write_config(tmp_path), "--signals", "bleu", "--resamples", "10"]
    results = main(words)
    assert [row["name"] for row in results["rows"]] == [
        "none", "all", "steps 2", "steps 4", "only bleu", "without bleu",
    ]  # fmt: skip
    taus = {row["name"]: row["average"]["kendall_tau"] for row in results["rows"]}
    assert taus["none"] != taus["all"] != taus["only bleu"]
    pretrained = {row["name"]: row["pretraining"] for row in results["rows"] if "pretraining" in row}
    assert list(pretrained) == ["all", "only bleu", "without bleu"]
    assert {run["steps"] for run in pretrained.values()} == {4}
    assert all(run["seconds"] > 0 for run in pretrained.values())
    out = tmp_path / "out"
    assert {path.name for path in out.glob("figure*.png")} == {"figure4.png", "figure5.png"}
    assert json.loads((out / "results.json").read_text()) == results
    (out / "figure4.png").unlink()
    (out / "figure5.png").unlink()
    assert [row["name"] for row in main([word.replace("bleu", NONE) for word in words])["rows"]] == [
        "none",
        "all",
        "steps 2",
        "steps 4",
    ]
    assert {path.name for path in out.glob("figure*.png")} == {"figure5.png"}
    with pytest.raises(ValueError, match="the pairs have no signals comet; they have bleu"):
        main([*words, "--signals", "comet"])
    with pytest.raises(ValueError, match="name the bare encoder"):
        main(["--data", "d", "--pairs", "p", "--output", "o"])
