"""Options of experiments: lists either way, and the command that results name."""

from __future__ import annotations

import pytest

from bleurt_repro.training.arguments import find_config
from bleurt_repro.training.experiments import ablation, drift, webnlg, wmt
from bleurt_repro.training.experiments.agreement import AgreementOptions
from bleurt_repro.training.experiments.options import ModelOptions, command, read_options
from bleurt_repro.training.metrics.options import MetricOptions

KINDS = (AgreementOptions, MetricOptions)


@pytest.mark.parametrize(
    "words",
    [
        ["--baselines", "bleu", "ter", "--output", "o"],
        ["--baselines", "bleu", "--output", "o", "--baselines", "ter"],
        ["--baselines=bleu", "--baselines=ter", "--output", "o"],
    ],
)
def test_a_list_may_be_given_either_way(words):
    options, metrics = read_options(KINDS, words)
    assert (options.output, metrics.baselines) == ("o", ["bleu", "ter"])


def test_names_may_have_hyphens():
    _, metrics = read_options(KINDS, ["--output", "o", "--score-files", "a=b", "--score_files", "c=d", "e=f"])
    assert metrics.score_files == ["a=b", "c=d", "e=f"]


def test_a_list_takes_the_place_of_the_default():
    options, _ = read_options(KINDS, ["--output", "o", "--measures", "spa", "--measures", "acc_eq"])
    assert options.measures == ["spa", "acc_eq"]


def test_the_command_names_files_without_folders(tmp_path):
    (tmp_path / "ratings.jsonl").touch()
    options = AgreementOptions("out", ratings=str(tmp_path / "ratings.jsonl"))
    assert command("wmt", [ModelOptions(model_name="my model")]).endswith("--model-name 'my model' --output OUT")
    metrics = MetricOptions(baselines=["bleu", f"bertscore:{tmp_path}"], score_files=[f"x={tmp_path}/ratings.jsonl"])
    assert command("agreement", (options, metrics)) == (
        f"bleurt-repro experiment agreement --ratings ratings.jsonl --baselines bleu bertscore:{tmp_path.name} "
        "--score-files x=ratings.jsonl --output OUT"
    )


@pytest.mark.parametrize(
    ("name", "kind", "needed"),
    [
        ("wmt17_mini", wmt.WmtOptions, ["--data", "d"]),
        ("wmt18_mini", wmt.WmtOptions, ["--data", "d"]),
        ("wmt_base", wmt.WmtOptions, ["--data", "d"]),
        ("wmt_large", wmt.WmtOptions, ["--data", "d"]),
        ("drift_mini", drift.DriftOptions, ["--data", "d"]),
        ("drift_large", drift.DriftOptions, ["--data", "d"]),
        ("webnlg_mini", webnlg.WebNlgOptions, ["--data", "d"]),
        ("webnlg_large", webnlg.WebNlgOptions, ["--data", "d"]),
        ("webnlg_base", webnlg.WebNlgOptions, ["--data", "d"]),
        ("ablation_mini", ablation.AblationOptions, ["--data", "d", "--pairs", "p"]),
        ("ablation_large", ablation.AblationOptions, ["--data", "d", "--pairs", "p"]),
    ],
)
def test_the_configurations_that_come_along_can_be_read(name, kind, needed):
    words = ["--config", f"experiment_{name}", "--output", "o", *needed]
    *_, models = read_options((kind, MetricOptions, ModelOptions), words)
    assert find_config(models.finetune)
