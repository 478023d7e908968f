"""The configurations of the papers' models hold the papers' hyper-parameters: BLEURT, section B.1, and RoBLEURT, section 3."""

from __future__ import annotations

import pytest

from bleurt_repro.training.arguments import find_config, load_config
from bleurt_repro.training.experiments.ablation import AblationOptions
from bleurt_repro.training.experiments.drift import DriftOptions
from bleurt_repro.training.experiments.options import ModelOptions, read_options
from bleurt_repro.training.experiments.robleurt import RobleurtOptions
from bleurt_repro.training.experiments.webnlg import WebNlgOptions
from bleurt_repro.training.experiments.wmt import WmtOptions
from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.pretrain import PairArguments, PretrainingArguments

# BLEURT, B.1: Adam, learning rate 1e-5, batch 32, the best of evaluations every 1,500 steps.
BLEURT = {
    "learning_rate": 1e-5,
    "lr_scheduler_type": "constant",
    "warmup_steps": 0,
    "weight_decay": 0,
    "global_batch_size": 32,
    "eval_strategy": "steps",
    "eval_steps": 1_500,
    "save_steps": 1_500,
    "load_best_model_at_end": True,
    "num_train_epochs": 3,  # not used: max_steps is set
    # none of what the paper does not have
    "frozen_layers": 0,
    "dropout": None,
    "early_stopping": 0,
    # the best and the last checkpoint are kept, and nothing is resumed or replaced unasked
    "save_total_limit": 2,
    "resume": False,
    "overwrite": False,
}
FINETUNED = {**BLEURT, "max_steps": 40_000, "metric_for_best_model": "kendall_tau", "greater_is_better": True}
PRETRAINED = {**BLEURT, "max_steps": 800_000, "metric_for_best_model": "loss", "greater_is_better": False}
# RoBLEURT, 3.1: 5e-6, 0.5 million steps, 50,000 of warm-up, then linear decay to 0; 8 GPUs with 4 quadruplets each.
ROBLEURT_PRETRAINED = {
    "learning_rate": 5e-6,
    "lr_scheduler_type": "linear",
    "max_steps": 500_000,
    "warmup_steps": 50_000,
    "global_batch_size": 8 * 4,
    "per_device_train_batch_size": 4,
    "metric_for_best_model": "darr",
    "greater_is_better": True,
}
# RoBLEURT, 3.2: 20,000 steps of 16 on one GPU, 2,000 of warm-up, all else as in pre-training.
ROBLEURT_FINETUNED = {
    "learning_rate": 5e-6,
    "lr_scheduler_type": "linear",
    "max_steps": 20_000,
    "warmup_steps": 2_000,
    "global_batch_size": 16,
    "per_device_train_batch_size": 16,
    "metric_for_best_model": "darr",
    "greater_is_better": True,
}


def finetuning(name, output):
    settings = {"model": "m", "train_file": "t.jsonl", "output_dir": str(output)}
    in_file = find_config(name).read_text()
    if "\nmodel:" in in_file:
        del settings["model"]
    return load_config((RatingArguments, FinetuningArguments), name, settings)


def values(arguments, expected):
    found = {name: getattr(arguments, name) for name in expected}
    return {name: getattr(value, "value", value) for name, value in found.items()}


@pytest.mark.parametrize("name", ["finetune_base", "finetune_large"])
def test_bleurt_is_fine_tuned_as_in_b1(tmp_path, name):
    ratings, arguments = finetuning(name, tmp_path)
    assert values(arguments, FINETUNED) == FINETUNED
    assert arguments.optim.startswith("adamw_torch")  # without decay, it is Adam
    assert (ratings.model, ratings.loss, ratings.validation_ratio) == ("m", "regression", 0.1)
    assert (ratings.max_length, ratings.layout, ratings.standardize, ratings.ranking_clip) == (128, None, True, True)
    assert arguments.gradient_checkpointing == ("large" in name)  # memory, at the cost of time


@pytest.mark.parametrize(("name", "model"), [("base", "bert-base-uncased"), ("paper", "bert-large-uncased")])
def test_bleurt_is_pre_trained_as_in_b1(tmp_path, name, model):
    settings = {"pairs": ["p"], "output_dir": str(tmp_path)}
    pairs, arguments = load_config((PairArguments, PretrainingArguments), name, settings)
    assert values(arguments, PRETRAINED) == PRETRAINED
    assert (pairs.model, pairs.max_length) == (f"google-bert/{model}", 128)
    assert arguments.gradient_checkpointing == (name == "paper")


def test_robleurt_is_trained_on_pseudo_labels_as_in_section_3_1(tmp_path):
    ratings, arguments = finetuning("robleurt_pretrain", tmp_path)
    assert values(arguments, ROBLEURT_PRETRAINED) == ROBLEURT_PRETRAINED
    assert (ratings.model, ratings.layout, ratings.max_length) == (
        "joeddav/xlm-roberta-large-xnli", "robleurt-src", 192,
    )  # fmt: skip


def test_robleurt_is_fine_tuned_as_in_section_3_2(tmp_path):
    _, arguments = finetuning("robleurt_finetune", tmp_path)
    assert values(arguments, ROBLEURT_FINETUNED) == ROBLEURT_FINETUNED


def test_robleurt_as_in_its_sections_2_and_3():
    words = ["--config", "experiment_robleurt", "--data", "d", "--output", "o"]
    options, _, models = read_options((RobleurtOptions, MetricOptions, ModelOptions), words)
    assert (models.encoder, options.encoder_nosrc) == (
        "joeddav/xlm-roberta-large-xnli", "FacebookAI/roberta-large-mnli",
    )  # fmt: skip
    assert (options.tokens_src, options.tokens_nosrc) == (192, 128)
    assert (options.portions, options.noisy_years, models.finetune) == (4, [2018, 2019], "robleurt_finetune")
    assert (len(models.seeds), options.noise, options.min_difference) == (3, "rescore", 25)
    assert options.noise_settings == {"share": 0.2, "years": [2018, 2019], "within": "dataset"}
    judged, *_ = read_options(
        (RobleurtOptions, MetricOptions, ModelOptions), [*words, "--judges", "COMET=c.txt", "BLEURT=b.txt"]
    )
    assert judged.noise_settings["share"] == pytest.approx(237 / 247)


@pytest.mark.parametrize(
    ("kind", "size", "more"),
    [
        (WmtOptions, "base", []),
        (WmtOptions, "large", []),
        (DriftOptions, "large", []),
        (WebNlgOptions, "base", []),
        (WebNlgOptions, "large", []),
        (AblationOptions, "large", ["--pairs", "p"]),
    ],
)
def test_experiments_at_the_paper_s_sizes(kind, size, more):
    name = f"experiment_{kind.__name__.removesuffix('Options').lower()}_{size}"
    words = ["--config", name, "--data", "d", "--output", "o", *more]
    options, metrics, models = read_options((kind, MetricOptions, ModelOptions), words)
    assert models.encoder == f"google-bert/bert-{size}-uncased"
    assert models.finetune == f"finetune_{size}"
    if kind is not AblationOptions:
        assert models.model_name == {"base": "BLEURTbase", "large": "BLEURT"}[size]
    assert getattr(options, "pretrain", "pretrain_paper") == "pretrain_paper"
    is_beside = {name.partition(":")[0]: name.partition(":")[2] for name in metrics.baselines}
    assert is_beside.get("bertscore", "google-bert/bert-large-uncased") == "google-bert/bert-large-uncased"
