"""Runs: the batch on any number of processes, going on after a kill, and the same losses on two processes as on one."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from filelock import FileLock
from safetensors.torch import load_file
from transformers import TrainerCallback

from bleurt_repro import BleurtScorer
from bleurt_repro.training.arguments import parse_config
from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments
from bleurt_repro.training.finetune import finetune as run_finetuning
from bleurt_repro.training.pretrain import PretrainingArguments
from bleurt_repro.training.run import check_output, last_checkpoint, repeating_command, summarize
from bleurt_repro.training.run_arguments import RunArguments
from bleurt_repro.training.training_references import TrainingReferences
from tests.conftest import make_tiny_scorer
from tests.tiny_training import finetune, options


def run_arguments(folder, monkeypatch, processes, *sizes):
    """Arguments with global, per-device and accumulation sizes, None where none is given."""
    monkeypatch.setattr(RunArguments, "world_size", processes)
    names = ("global_batch_size", "per_device_train_batch_size", "gradient_accumulation_steps")
    args = RunArguments(output_dir=str(folder), **dict(zip(names, sizes, strict=True)))
    assert args.global_batch_size == processes * args.per_device_train_batch_size * args.gradient_accumulation_steps
    return tuple(getattr(args, name) for name in names)


@pytest.mark.parametrize(
    ("processes", "given", "expected"),
    [
        (1, (None, None, None), (32, 32, 1)),
        (8, (None, None, None), (32, 4, 1)),
        (1, (None, 8, None), (32, 8, 4)),
        (1, (None, None, 4), (32, 8, 4)),
        (1, (8, None, None), (8, 8, 1)),
        (2, (64, None, None), (64, 32, 1)),
        (2, (64, 16, None), (64, 16, 2)),
        (2, (64, 16, 2), (64, 16, 2)),
        (1, (48, None, None), (48, 24, 2)),
    ],
)
def test_the_batch_of_a_step_is_the_same_for_any_number_of_processes(
    tmp_path, monkeypatch, recwarn, processes, given, expected
):
    assert run_arguments(tmp_path, monkeypatch, processes, *given) == expected
    assert not [warning for warning in recwarn if "pairs" in str(warning.message)]


@pytest.mark.parametrize(
    ("processes", "given", "expected", "message"),
    [
        (1, (None, 64, None), (64, 64, 1), "a step has 64 pairs, as the batch sizes ask for, and not the default 32"),
        (1, (None, 8, 2), (16, 8, 2), "a step has 16 pairs"),
        (2, (None, 32, 4), (256, 32, 4), "a step has 256 pairs"),
        (1, (None, None, 64), (64, 1, 64), "a step has 64 pairs"),
        (
            2,
            (32, 32, None),
            (32, 16, 1),
            "a process computes 16 pairs at once, and not per_device_train_batch_size 32",
        ),
    ],
)
def test_batch_sizes_that_are_given_are_followed_and_what_follows_is_said(
    tmp_path, monkeypatch, processes, given, expected, message
):
    with pytest.warns(UserWarning, match=message):
        assert run_arguments(tmp_path, monkeypatch, processes, *given) == expected


@pytest.mark.parametrize(
    ("processes", "given", "message"),
    [
        (3, (None, None, None), r"a step of 32 pairs .* is not 10 .* x 1 .* x 3 \(processes\)"),
        (1, (32, 8, 2), r"32 pairs \(global_batch_size\) is not 8 .* x 2 \(gradient_accumulation_steps\) x 1"),
        (1, (32, 12, None), "is not 12"),
        (1, (32, 64, 1), "is not 64"),
    ],
)
def test_batch_sizes_that_contradict_each_other_are_refused(tmp_path, monkeypatch, processes, given, message):
    with pytest.raises(ValueError, match=message):
        run_arguments(tmp_path, monkeypatch, processes, *given)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"global_batch_size": 0},
            "global_batch_size must be at least 1, found 0",
        ),
        ({"num_train_epochs": 0, "max_steps": 40}, "max_steps 40 with num_train_epochs 0 makes no step"),
        ({"num_train_epochs": 0, "max_steps": -1}, "max_steps -1 with num_train_epochs 0 makes no step"),
        ({"max_steps": 0}, "max_steps 0 with num_train_epochs 3 makes no step"),
        ({"num_train_epochs": 0}, "max_steps -1 with num_train_epochs 0 makes no step"),
        ({"learning_rate": -1e-5}, "learning_rate must be 0 or more, found -1e-05"),
        ({"learning_rate": math.nan}, "learning_rate must be 0 or more, found nan"),
        ({"seed": -1}, "seed must be 0 or more, found -1"),
        ({"early_stopping": -1}, "early_stopping must be 0 or more, found -1"),
        ({"metric_for_best_model": "foo"}, "metric_for_best_model must be one of .*, found 'foo'"),
        ({"report_to": ["nobody"]}, "--report-to nobody is unknown; available are .*wandb"),
        ({"report_to": ["wandb"]}, "--report-to wandb needs a package that is not installed: pip install wandb"),
        ({"deepspeed": "ds.json"}, "--deepspeed needs the package deepspeed, which is not installed"),
    ],
)
@pytest.mark.parametrize("arguments", [FinetuningArguments, PretrainingArguments])
def test_settings_that_cannot_work_are_refused_before_anything_is_read(tmp_path, arguments, settings, message):
    if settings.get("report_to") == ["wandb"] and importlib.util.find_spec("wandb"):
        pytest.skip("wandb is installed")
    with pytest.raises(ValueError, match=message):
        arguments(output_dir=str(tmp_path), **{"max_steps": None if "num_train_epochs" in settings else 9, **settings})


def test_pre_training_has_no_length_by_default(tmp_path):
    with pytest.raises(ValueError, match="800,000 steps, days on a GPU: ask for it by --config paper, or give"):
        PretrainingArguments(output_dir=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "steps", "passes"),
    [
        ({}, 40_000, 3),
        ({"num_train_epochs": 2}, -1, 2),
        ({"max_steps": 100}, 100, 3),
        ({"max_steps": -1}, -1, 3),
        ({"max_steps": 100, "num_train_epochs": 2}, 100, 2),
    ],
)
def test_training_is_as_long_as_the_steps_or_the_passes_that_are_given(tmp_path, settings, steps, passes):
    args = FinetuningArguments(output_dir=str(tmp_path), **settings)
    assert (args.max_steps, args.num_train_epochs) == (steps, passes)


def test_a_half_written_checkpoint_is_passed_over(tmp_path):
    for step, state in ((10, '{"stateful_callbacks": {}}'), (9, '{"stateful_callbacks": {}}'), (20, '{"state')):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(state)
    (tmp_path / "checkpoint-30").mkdir()
    assert last_checkpoint(tmp_path) == (tmp_path / "checkpoint-10", 0.0)
    with pytest.raises(ValueError, match=r"holds a run already \(checkpoint-10\): add --resume"):
        check_output(RunArguments(output_dir=str(tmp_path)))


STEPS = {
    "--max_steps": "30", "--eval_steps": "10", "--save_steps": "10", "--learning_rate": "1e-3", "--logging_steps": "1",
    "--global_batch_size": "16", "--disable_tqdm": "true", "--save_total_limit": "5",
}  # fmt: skip


def test_a_run_of_very_many_passes_says_so(ratings, tiny_scorer, tmp_path, monkeypatch):
    words = options({"--model": str(tiny_scorer), "--output_dir": str(tmp_path / "few")}, ratings)
    few = {**STEPS, "--max_steps": "2", "--eval_steps": "2", "--save_steps": "2"}
    words = [*words, *options(few)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        finetune(words)
    assert not [one for one in caught if "epochs of" in str(one.message)]
    monkeypatch.setattr("bleurt_repro.training.run.MANY_EPOCHS", 0.1)
    with pytest.warns(UserWarning, match=r"2 steps are \d epochs of \d+ examples: give fewer, or --num-train-epochs"):
        finetune([*words, "--output_dir", str(tmp_path / "many")])


def launch(words: list[str], *launcher: str) -> subprocess.Popen:
    command = [sys.executable, *launcher, "-m", "bleurt_repro.training.finetune", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


@pytest.mark.long
def test_a_killed_run_goes_on_to_the_same_weights(ratings, tiny_scorer, tmp_path):
    words = options({"--model": str(tiny_scorer)}, ratings, STEPS)
    finetune([*words, "--output_dir", str(tmp_path / "whole")])
    killed = launch([*words, "--output_dir", str(tmp_path / "killed")])
    while not (tmp_path / "killed" / "checkpoint-10" / "trainer_state.json").exists():
        assert killed.poll() is None, killed.stderr.read()
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "killed" / "results.json").exists()
    finetune([*words, "--output_dir", str(tmp_path / "killed"), "--resume"])
    whole, resumed = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert all(whole[name].equal(resumed[name]) for name in whole)


@pytest.mark.long
def test_the_module_does_what_the_command_does(ratings, tiny_scorer, tmp_path):
    few = {**STEPS, "--max_steps": "2", "--eval_steps": "2", "--save_steps": "2", "--model": str(tiny_scorer)}
    run = launch(options(few, ratings))
    assert run.wait() == 0, run.stderr.read()
    assert "| Fine-tuning | `tiny`" in (tmp_path / "out" / "README.md").read_text()
    again = launch(options(few, ratings))
    assert again.wait() == 2
    message = again.stderr.read().decode()
    assert message.startswith("bleurt-repro: error: ") and message.count("\n") == 1
    assert "holds a finished run: choose another --output, or add --overwrite" in message


@pytest.mark.long
def test_sigterm_cleans_up(ratings, tiny_scorer, tmp_path):
    words = {**STEPS, "--max_steps": "10000", "--model": str(tiny_scorer)}
    run = launch(options(words, ratings))
    while not (tmp_path / "out" / "checkpoint-10" / "trainer_state.json").exists():
        assert run.poll() is None, run.stderr.read()
        time.sleep(0.01)
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 143
    assert not [path.name for path in tmp_path.rglob("*.tmp")]
    FileLock(tmp_path / "out" / ".lock").acquire(timeout=0)


@pytest.mark.parametrize(
    "early", [{}, {"--early_stopping": "1", "--learning_rate": "0"}], ids=["last step", "stopped"]
)
def test_a_run_killed_after_its_last_step_does_no_other(ratings, tiny_scorer, tmp_path, early):
    # Steps that are no whole number of epochs: between two epochs there is nothing to do another step with.
    few = {"--max_steps": "6", "--eval_steps": "2", "--save_steps": "2"}
    words = options({"--model": str(tiny_scorer), "--keep_checkpoints": "true"}, ratings, {**STEPS, **few, **early})
    finetune(words)
    steps = json.loads((tmp_path / "out" / "results.json").read_text())["steps"]
    assert steps == (4 if early else 6)
    whole = {name: (tmp_path / "out" / name).read_bytes() for name in ("model.safetensors", "config.json")}
    for name in (*whole, "results.json"):  # as if it was killed before it wrote its result
        (tmp_path / "out" / name).unlink()
    finetune([*words, "--resume"])
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["steps"] == steps
    assert whole == {name: (tmp_path / "out" / name).read_bytes() for name in whole}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"--learning_rate": "2e-3"}, "learning_rate was 0.001 and is 0.002"),
        ({"--seed": "7"}, "seed was 42 and is 7"),
        ({"--loss": "ranking"}, "loss was regression and is ranking"),
        ({"--model": "other"}, "model was tiny, [0-9a-f]{12} and is other, [0-9a-f]{12}"),
        ({"--train_file": "validation.jsonl"}, "train_file was train.jsonl and is validation.jsonl"),
        ({}, r"data train.jsonl was [0-9a-f]{12} and is [0-9a-f]{12}\."),
    ],
    ids=["rate", "seed", "loss", "model", "file", "content"],
)
def test_a_run_is_resumed_with_what_it_began_with_only(ratings, tiny_scorer, tmp_path, changes, named):
    few = {**STEPS, "--max_steps": "2", "--eval_steps": "2", "--save_steps": "2", "--model": str(tiny_scorer)}
    finetune(options(few, ratings))
    before = (tmp_path / "out" / "results.json").read_bytes()
    if "--model" in changes:
        changes = {"--model": str(make_tiny_scorer(tmp_path / "other", spread=0.1))}
    if "--train_file" in changes:
        changes = {"--train_file": str(tmp_path / "validation.jsonl")}
    if not changes:
        (tmp_path / "train.jsonl").write_text((tmp_path / "train.jsonl").read_text().replace("cat", "dog"))
    with pytest.raises(ValueError, match=f"holds a run that began with other settings: .*{named}"):
        finetune(options({**few, **ratings, **changes, "--resume": "true"}))
    assert (tmp_path / "out" / "results.json").read_bytes() == before


FEW = {**STEPS, "--max_steps": "4", "--eval_steps": "2", "--save_steps": "2"}


@pytest.mark.parametrize(("keep", "left"), [("false", []), ("true", ["checkpoint-2", "checkpoint-4"])])
def test_checkpoints_of_a_finished_run_are_removed_unless_they_are_to_be_kept(
    ratings, tiny_scorer, tmp_path, keep, left
):
    finetune(options({"--model": str(tiny_scorer), "--keep_checkpoints": keep}, ratings, FEW))
    assert sorted(path.name for path in (tmp_path / "out").glob("checkpoint-*")) == left


def test_a_finished_run_is_neither_run_again_nor_written_over(ratings, tiny_scorer, tmp_path, monkeypatch):
    words = options({"--model": str(tiny_scorer)}, ratings, FEW)
    first = finetune(words)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(ValueError, match="out holds a finished run: choose another --output, or add --overwrite"):
        finetune(words)
    with monkeypatch.context() as patch:
        patch.setattr("bleurt_repro.training.run.train", lambda *_: pytest.fail("trained again"))
        assert finetune([*words, "--resume"]) == first
    with pytest.raises(ValueError, match="began with other settings: learning_rate was 0.001 and is 0.1"):
        finetune([*words, "--resume", "--learning_rate", "0.1"])
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert finetune([*words, "--overwrite", "--seed", "3"]).seed == 3


def test_what_a_run_says_is_made_for_reading(ratings, tiny_scorer, tmp_path, capfd):
    finetune(options({"--model": str(tiny_scorer)}, ratings, {**FEW, "--logging_steps": "2"}))
    out, err = capfd.readouterr()
    assert out == "" and "{" not in err
    lines = [line for line in err.splitlines() if "step" in line]
    assert re.fullmatch(r"step 2 of 4: loss \d\S*, learning rate 0.001", lines[0])
    assert re.fullmatch(r"validation at step 2 of 4: loss \S+, kendall tau \S+, pearson r \S+", lines[1])
    assert len(lines) == 4


def test_a_run_is_summed_up_in_one_line(tmp_path):
    best = {"measure": "eval_kendall_tau", "value": 0.51234, "step": 20}
    run = {"kind": "finetune", "best": best, "steps": 40, "data": {"validation_ratings": 400}}
    line = summarize(run, "out")
    assert line.startswith(
        "out: best validation kendall tau 0.5123 at step 20 of 40. Next: bleurt-repro score --check"
    )
    assert ", on only 3 ratings. Next:" in summarize({**run, "data": {"validation_ratings": 3}}, "out")
    line = summarize({**run, "kind": "pretrain", "best": {**best, "value": None}}, "out")
    assert line.startswith("out: no validation. Next: bleurt-repro finetune --model out ")


def test_callbacks_and_measures_of_ones_own(ratings, tiny_scorer):
    class Steps(TrainerCallback):
        ends = 0

        def on_step_end(self, *_, **__):
            self.ends += 1

    settings = parse_config(
        (RatingArguments, FinetuningArguments), options({"--model": str(tiny_scorer)}, ratings, FEW)
    )
    steps = Steps()
    measures = {"largest": lambda prediction: {"largest": float(prediction.label_ids.max())}}
    result = run_finetuning(*settings, callbacks=[steps], compute_metrics=measures["largest"])
    assert steps.ends == 4
    validations = [entry for entry in result["history"] if "eval_loss" in entry]
    assert all({"eval_largest", "eval_kendall_tau"} <= set(entry) for entry in validations)


def test_references_are_recorded_as_hashes_beside_the_weights(ratings, tiny_scorer, tmp_path):
    start = shutil.copytree(tiny_scorer, tmp_path / "start")
    TrainingReferences.from_texts(["seen before"]).write(start)
    signature = BleurtScorer(str(start)).signature
    assert signature == BleurtScorer(str(tiny_scorer)).signature.replace(":tiny|", ":start|")
    finetune(options({"--model": str(start)}, ratings, FEW))
    sides = [(tmp_path / f"{side}.jsonl").read_text().splitlines() for side in ("train", "validation")]
    references = [json.loads(line)["reference"] for side in sides for line in side]
    seen = TrainingReferences.read(tmp_path / "out")
    assert seen.overlap([*references, "seen before", "never seen"]) == {
        "references": len(set(references)) + 2, "seen": len(set(references)) + 1,
    }  # fmt: skip


def test_one_run_at_a_time_in_a_folder(ratings, tiny_scorer, tmp_path):
    words = options({"--model": str(tiny_scorer)}, ratings, STEPS)
    (tmp_path / "out").mkdir()
    with FileLock(tmp_path / "out" / ".lock"), pytest.raises(ValueError, match="another process trains in"):
        finetune(words)
    assert [path.name for path in (tmp_path / "out").iterdir()] in ([".lock"], [])


def test_the_folder_of_the_model_is_no_place_for_what_is_made_of_it(ratings, tmp_path):
    start = make_tiny_scorer(tmp_path / "start")
    before = {path.name: path.read_bytes() for path in start.iterdir()}
    with pytest.raises(ValueError, match="start is the input"):
        finetune(options({"--model": str(start)}, {**ratings, "--output_dir": str(start)}, STEPS))
    assert {path.name: path.read_bytes() for path in start.iterdir()} == before


@pytest.mark.parametrize("failing", ["save", "curves", "result"])
def test_what_fails_at_the_end_leaves_the_checkpoint_that_was_there(
    ratings, tiny_scorer, tmp_path, monkeypatch, failing
):
    few = {**STEPS, "--max_steps": "2", "--eval_steps": "2", "--save_steps": "2"}
    other, out = make_tiny_scorer(tmp_path / "other", spread=0.1), shutil.copytree(tiny_scorer, tmp_path / "out")
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def fail(*_, **__):
        raise KeyboardInterrupt  # as a kill does, at any of the three writes

    if failing == "save":
        monkeypatch.setattr("bleurt_repro.metric.loading.save.write_checksums", fail)
    elif failing == "curves":
        monkeypatch.setattr("bleurt_repro.training.run.draw_curves", fail)
    else:
        monkeypatch.setattr("bleurt_repro.training.results.Result.write", fail)
    words = options({"--model": str(other)}, ratings, few)
    with pytest.raises(KeyboardInterrupt):
        finetune(words)
    assert before.items() <= {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}.items()
    assert BleurtScorer(str(out)).signature == BleurtScorer(str(tiny_scorer)).signature.replace(":tiny|", ":out|")
    monkeypatch.undo()
    finetune([*words, "--resume", "true"])
    assert before["model.safetensors"] != (out / "model.safetensors").read_bytes()
    assert not list(tmp_path.glob(".*.tmp")) and not list(out.glob(".*.tmp"))


def test_a_card_of_an_earlier_run_is_named(ratings, tiny_scorer, tmp_path):
    few = {**STEPS, "--max_steps": "1", "--eval_steps": "1", "--save_steps": "1", "--overwrite": "true"}
    words = options({"--model": str(tiny_scorer)}, {**ratings, "--output_dir": str(tmp_path / "out")}, few)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*that was there before")
        finetune(words)
    (tmp_path / "out" / "README.md").write_text("of another")
    with pytest.warns(
        UserWarning, match=r"out/README.md describes the checkpoint that was there before: draw a new card"
    ):
        finetune(words)
    assert (tmp_path / "out" / "README.md").read_text() == "of another"


def losses(folder: Path) -> list[float]:
    history = json.loads((folder / "results.json").read_text())["history"]
    return [entry["loss"] for entry in history if "loss" in entry]


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
# without GPUs its processes compute on CPUs; --cpu would start them by MPI
ACCELERATE = (
    *("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1"),
    *("--main_process_port", "0", "--mixed_precision", "no", "--dynamo_backend", "no"),
)


@pytest.mark.long
@pytest.mark.parametrize(
    "launcher", [pytest.param(TORCHRUN, id="torchrun"), pytest.param(ACCELERATE, id="accelerate launch")]
)
def test_two_processes_learn_as_one(ratings, tmp_path, launcher):
    start = make_tiny_scorer(tmp_path / "start", dropout=0.0)
    steps = {
        **STEPS,
        "--max_steps": "50",
        "--eval_steps": "50",
        "--save_steps": "50",
        "--per_device_eval_batch_size": "48",
    }
    words = options({"--model": str(start)}, ratings, steps)
    finetune([*words, "--output_dir", str(tmp_path / "one")])
    pair = launch([*words, "--output_dir", str(tmp_path / "two")], *launcher)
    assert pair.wait() == 0, pair.stderr.read().decode()[-2000:]
    assert len(losses(tmp_path / "one")) == 50
    # 64 ratings are fewer than two full batches: those repeated to fill them must not count twice.
    validated = [
        [
            entry["eval_loss"]
            for entry in json.loads((tmp_path / name / "results.json").read_text())["history"]
            if "eval_loss" in entry
        ]
        for name in ("one", "two")
    ]
    assert validated[1] == pytest.approx(validated[0], rel=1e-3)
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-4)


def test_accumulated_batches_learn_as_one(ratings, tmp_path):
    start = make_tiny_scorer(tmp_path / "start", dropout=0.0)
    words = options({"--model": str(start)}, ratings, {**STEPS, "--max_steps": "10"})
    finetune([*words, "--output_dir", str(tmp_path / "one")])
    finetune([*words, "--output_dir", str(tmp_path / "four"), "--per_device_train_batch_size", "4"])
    assert losses(tmp_path / "four") == pytest.approx(losses(tmp_path / "one"), abs=1e-4)


def test_the_command_of_a_run_repeats_its_options_with_dashes_and_without_what_the_machine_decided():
    settings = {
        "max_steps": 4,
        "bf16": True,
        "pairs": ["a", "b"],
        "leave_out": [],
        "train_file": None,
        "world_size": 2,
    }
    command = repeating_command("bleurt-repro pretrain", settings)
    assert command == "bleurt-repro pretrain --max-steps 4 --bf16 true --pairs a b --output-dir OUT"
