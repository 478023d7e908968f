"""After training: the card of the run, and its publication with --push-to-hub."""

from __future__ import annotations

import json
import re

import pytest
from transformers import TrainerCallback

import bleurt_repro
from bleurt_repro.cli import main
from bleurt_repro.training.arguments import parse_config
from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments
from bleurt_repro.training.finetune import finetune as train_only
from tests.conftest import make_tiny_scorer
from tests.loopback_hub import Fault
from tests.tiny_training import QUICK, options

FEW = {**QUICK, "--max_steps": "4", "--eval_steps": "2", "--save_steps": "2"}
PUSH = {"--push-to-hub": "true", "--hub-model-id": "org/mine"}
ADDRESS = "git+https://host/org/package"


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.setenv("BLEURT_REPRO_SOURCE", ADDRESS)
    return make_tiny_scorer(tmp_path / "start", spread=0.05)


def finetune(*groups):
    """Run the command; give what it ended with."""
    with pytest.raises(SystemExit) as stop:
        main(["finetune", *options(*groups)])
    return stop.value.code or 0


def stages(card):
    """Return the stage, its start and the number of examples of each row of the card's table of training."""
    rows = [line.split("|") for line in card.splitlines() if re.match(r"\| (Fine-tuning|Pre-training) ", line)]
    return [[cell.strip() for cell in row[1:4]] for row in rows]


def test_a_run_leaves_a_card_of_its_own_figures(ratings, start, tmp_path):
    assert finetune({"--model": str(start)}, ratings, FEW) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    card = (tmp_path / "out" / "README.md").read_text()
    assert stages(card) == [["Fine-tuning", "`start`", "256"]]
    assert f"| {results['best']['value']:.3f} " in card
    assert "data hashes: `results.json`" in card and str(tmp_path) not in card
    assert 'BleurtScorer("path/to/out")' in card and "`checkpoint:out|hash:" in card and ".tmp" not in card
    # A second run starts from the first, and its card tells of both.
    again = {**ratings, "--output_dir": str(tmp_path / "again")}
    assert finetune({"--model": str(tmp_path / "out")}, again, FEW) == 0
    card = (tmp_path / "again" / "README.md").read_text()
    assert [stage[1] for stage in stages(card)] == ["`start`", "`out`"]
    # The recorded command is one that the script can read, and gives the settings again.
    settings, args = parse_config((RatingArguments, FinetuningArguments), results["command"].split()[2:])
    assert (settings.train_file, args.max_steps, args.learning_rate) == ("train.jsonl", 4, 3e-3)


def test_push_to_hub_publishes_the_same_layout_once(hub, ratings, start, tmp_path, capsys):
    assert finetune({"--model": str(start)}, ratings, FEW, PUSH) == 0
    _, files = hub.store.files("model", "org/mine", "main")
    assert sorted(files) == [
        "README.md", "checksums.json", "config.json", "curves.png", "model.safetensors", "results.json", "tokenizer.json",
        "tokenizer_config.json", "training_references.json",
    ]  # fmt: skip
    assert hub.store.messages("model", "org/mine")[1:] == ["Upload out with bleurt_repro 0.1.0"]
    card = hub.store.content(files["README.md"].etag).decode()
    assert 'evaluate.load("bleurt_repro", "org/mine")' in card
    assert f'pip install "bleurt-repro @ {ADDRESS}"' in card
    assert f"{hub.url}/org/mine/commit/" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["publish", "model", str(tmp_path / "out"), "--repo-id", "org/mine"])
    assert "nothing has changed: no new commit" in capsys.readouterr().out


def test_a_run_of_python_is_published_with_its_card(hub, ratings, start, tmp_path):
    settings, args = parse_config(
        (RatingArguments, FinetuningArguments), options({"--model": str(start)}, ratings, FEW, PUSH)
    )
    with pytest.raises(
        ValueError, match="call bleurt_repro.finetune or bleurt_repro.pretrain, which draw and publish it"
    ):
        train_only(settings, args)
    result = bleurt_repro.finetune(settings, args, callbacks=[TrainerCallback()])
    _, files = hub.store.files("model", "org/mine", "main")
    card = hub.store.content(files["README.md"].etag).decode()
    assert stages(card) == [["Fine-tuning", "`start`", "256"]]
    assert result == json.loads((tmp_path / "out" / "results.json").read_text())


def test_the_command_ends_with_what_it_wrote(ratings, start, tmp_path, capsys):
    assert finetune({"--model": str(start)}, ratings, FEW) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        f"{tmp_path}/out: best validation kendall tau \\S+ at step [24] of 4. Next: bleurt-repro score .*", line
    )


def test_what_cannot_be_pushed_is_said_before_training(hub, ratings, start, tmp_path, monkeypatch, capsys):
    assert finetune({"--model": str(start)}, ratings, FEW, {"--push-to-hub": "true"}) == 2
    assert "--push-to-hub needs --hub-model-id ORG/NAME" in capsys.readouterr().err
    assert finetune({"--model": str(start)}, ratings, FEW, PUSH, {"--hub_token": "hf_secret"}) == 2
    error = capsys.readouterr().err
    assert "a token must not be a setting of a run: log in" in error and "hf_secret" not in error
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert finetune({"--model": str(start)}, ratings, FEW, PUSH) == 2
    assert "the Hub refused the token (401)" in capsys.readouterr().err
    monkeypatch.delenv("BLEURT_REPRO_SOURCE")
    assert finetune({"--model": str(start)}, ratings, FEW, PUSH) == 2
    assert "set BLEURT_REPRO_SOURCE" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_push_that_fails_tells_how_to_repeat_it(hub, waits, ratings, start, tmp_path, capsys):
    hub.faults.add(Fault("POST .*/commit/", times=10**6))
    assert finetune({"--model": str(start)}, ratings, FEW, PUSH) == 2
    out = tmp_path / "out"
    error = capsys.readouterr().err
    assert f"the checkpoint is complete in {out}: `bleurt-repro publish model {out} --repo-id org/mine`" in error
    assert (out / "README.md").is_file()
