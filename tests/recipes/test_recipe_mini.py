"""The script from text to the embedded checkpoint: its order, its resuming, and that every option it gives exists.

The commands themselves are stood in for: each writes what the next step looks for.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import typer

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
PROGRAMS = ("bleurt-repro", "python", "torchrun")
STAND_IN = """#!{python} -SE
import json, os, pathlib, sys
words = [pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]
with open(os.environ["COMMANDS"], "a") as file:
    file.write(json.dumps(words) + "\\n")
if os.environ.get("FAILS", "nothing") in " ".join(words):
    sys.exit("out of memory")
for option, written in zip(words, words[1:]):
    if option in ("--output", "--output-dir", "--scores", "--held-out"):
        path = pathlib.Path(written)
        if path.suffix in (".jsonl", ".txt"):
            path.write_text("")
        else:
            path.mkdir(parents=True, exist_ok=True)
            for name in ("results.json", "dataset_info.json"):
                (path / name).write_text("{{}}")
"""

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="the recipe is a shell script")


@pytest.fixture
def run(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).write_text(STAND_IN.format(python=sys.executable))
        (programs / name).chmod(0o755)
    log = tmp_path / "commands.jsonl"

    def run_script(**settings):
        log.write_text("")
        known = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "COMMANDS": str(log),
            "DATA": str(tmp_path / "data"),
            "WORK": str(tmp_path / "work"),
            **settings,
        }
        done = subprocess.run(["sh", str(RECIPES / "mini.sh")], env=known, capture_output=True, text=True, timeout=600)
        return done, [json.loads(line) for line in log.read_text().splitlines()]

    return run_script


def place(commands, *words):
    return next(i for i, command in enumerate(commands) if all(any(w in part for part in command) for w in words))


@pytest.mark.long
def test_all_steps_in_order_and_once(run, tmp_path):
    done, commands = run()
    assert (done.returncode, done.stderr) == (0, "")
    order = [
        place(commands, "masked_lm"),
        place(commands, "synthetic"),
        place(commands, "torchrun"),
        place(commands, "finetune", "pretrained-3"),
        place(commands, "agreement", "WMT 2017, to English"),
        place(commands, "finetune", "taught/teacher"),
        place(commands, "pseudo-labels", "taught"),
        place(commands, "finetune", "taught/student-3"),
        place(commands, "agreement", "taught/student-3"),
        place(commands, "torchrun", "embedded/teacher"),
        place(commands, "pairs_to_label.py", "embedded/rest"),
        place(commands, "pseudo-labels", "embedded/labels-rated"),
        place(commands, "pseudo-labels", "embedded/labels-rest"),
        place(commands, "score", "embedded/contrasts"),
        place(commands, "training_set.py", "embedded/labels-unrated"),
        place(commands, "entailment_pairs.py", "embedded/entailment-moved"),
        place(commands, "training_round.py", "embedded/pairs-1"),
        place(commands, "finetune", "embedded/run-1"),
        place(commands, "average", "embedded/run-1", "embedded/first"),
        place(commands, "finetune", "embedded/run-42"),
        place(commands, "average", "embedded/run-42", "embedded/second"),
        place(commands, "average", "embedded/run-51", "embedded/third"),
        place(commands, "finetune", "embedded/run-62"),
        place(commands, "average", "embedded/run-61", "embedded/fourth"),
        place(commands, "finetune", "embedded/run-71"),
        place(commands, "average", "embedded/run-71", "embedded/bleurt-repro-mini"),
        place(commands, "calibrate"),
        place(commands, "sanity"),
        place(commands, "webnlg"),
    ]
    assert order == sorted(order)
    assert sum("finetune" in command for command in commands) == 6 + 4 + 5 * 2
    again, few = run()
    assert again.returncode == 0
    assert not [command for command in few if "finetune" in command or "torchrun" in command or "synthetic" in command]


@pytest.mark.long
def test_a_failed_step_stops_the_script_which_then_resumes(run):
    done, commands = run(FAILS="pretrained-2")
    assert done.returncode != 0
    assert "fine-tuning failed, see" in done.stderr and "pretrained-2.log" in done.stderr
    assert not [command for command in commands if "agreement" in command]
    _, rest = run()
    tuned = [command[command.index("--output-dir") + 1].rsplit("/", 1)[1] for command in rest if "finetune" in command]
    assert [name for name in tuned if name.startswith(("bare", "pretrained"))] in (
        ["pretrained-2", "bare-3", "pretrained-3"],
        ["pretrained-2", "pretrained-3", "bare-3"],
    )


def test_it_says_what_must_be_given(run):
    done, commands = run(DATA="")
    assert done.returncode != 0 and "give the folder of the data" in done.stderr and commands == []


def fields(*kinds):
    return {item.name.replace("_", "-") for kind in kinds for item in dataclasses.fields(kind)} | {"config"}


def options_of_classes():
    from bleurt_repro.training import finetune, pretrain
    from bleurt_repro.training.experiments import agreement, options, sanity, webnlg
    from bleurt_repro.training.metrics import options as metric_options
    from bleurt_repro.training.teachers import common as run
    from bleurt_repro.training.teachers import entailment, masked_lm, translator

    return {
        "finetune": fields(finetune.RatingArguments, finetune.FinetuningArguments),
        "bleurt_repro.training.finetune": fields(finetune.RatingArguments, finetune.FinetuningArguments),
        "bleurt_repro.training.pretrain": fields(pretrain.PairArguments, pretrain.PretrainingArguments),
        "agreement": fields(agreement.AgreementOptions, metric_options.MetricOptions),
        "sanity": fields(sanity.SanityOptions),
        "webnlg": fields(webnlg.WebNlgOptions, metric_options.MetricOptions, options.ModelOptions),
        "bleurt_repro.training.teachers.masked_lm": fields(masked_lm.MaskedLMArguments, run.TeacherArguments),
        "bleurt_repro.training.teachers.translator": fields(
            translator.TranslatorArguments, translator.TranslatorTrainingArguments
        ),
        "bleurt_repro.training.teachers.entailment": fields(entailment.EntailmentArguments, run.TeacherArguments),
    }


def known_options(command, classes):
    """The options a command of the script has, without the dashes in front."""
    for name, options in classes.items():
        if name in command[:5]:
            return options | ({"nproc-per-node"} if command[0] == "torchrun" else set())
    if command[0] == "python":
        main = runpy.run_path(command[1])["main"]
        return {name.replace("_", "-") for name in inspect.signature(main).parameters}
    from bleurt_repro.cli import app

    found = typer.main.get_command(app)
    for word in command[1:]:
        if not isinstance(found, click.Group) and not hasattr(found, "commands"):
            break
        found = found.commands[word]
    return {
        option.lstrip("-") for parameter in found.params for option in [*parameter.opts, *parameter.secondary_opts]
    }


def test_every_option_exists(run):
    _, commands = run()
    classes = options_of_classes()
    assert len(commands) > 30
    for command in commands:
        given = {word[2:] for word in command if word.startswith("--")}
        assert given <= known_options(command, classes), command
