"""The commands of the paper's run, as its page lists them: every command, option and configuration in them exists."""

from __future__ import annotations

import dataclasses
import re
import shlex

import pytest
import typer

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "how-to" / "paper-run.md"


def commands() -> list[list[str]]:
    """The lines of the page that run one of our commands, each cut into words; loops are written out for one size."""
    block = re.search(r"^```sh\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)[1]
    text = block.replace("\\\n", " ").replace("$size", "base").replace("$year", "2017")
    lines = [line.strip() for line in text.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith(("bleurt-repro ", "sbatch "))]


def options_of(words: list[str]) -> set[str]:
    """The options that a command takes."""
    if words[0] == "pretrain":
        from bleurt_repro.training.pretrain import PairArguments, PretrainingArguments

        kinds = (PairArguments, PretrainingArguments)
    elif words[0] == "finetune":
        from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments

        kinds = (RatingArguments, FinetuningArguments)
    elif words[:2] == ["experiment", "wmt"]:
        from bleurt_repro.training.experiments.options import ModelOptions
        from bleurt_repro.training.experiments.wmt import WmtOptions
        from bleurt_repro.training.metrics.options import MetricOptions

        kinds = (WmtOptions, MetricOptions, ModelOptions)
    else:
        from bleurt_repro.cli import app

        found = typer.main.get_command(app)
        for word in words[:2]:
            found = found.commands[word]
        return {option.lstrip("-") for parameter in found.params for option in parameter.opts}
    return {field.name.replace("_", "-") for kind in kinds for field in dataclasses.fields(kind)} | {"config"}


@pytest.mark.parametrize("words", commands(), ids=lambda words: " ".join(words)[:60])
def test_a_command_of_the_page_exists(words):
    if words[0] == "sbatch":
        script = next(word for word in words if word.startswith("recipes/"))
        assert (ROOT / script).is_file()
        words = words[words.index(script) :]
    words = words[1:]
    given = {word[2:] for word in words if word.startswith("--")}
    assert given and given <= options_of(words)
    if "--config" in words and words[0] != "data":
        assert (ROOT / "training" / "configs" / f"{words[words.index('--config') + 1]}.yaml").is_file()


def test_the_page_has_all_stages():
    kinds = {
        next(word for word in words[1:] if word in ("data", "pretrain", "experiment", "finetune"))
        for words in commands()
    }
    assert kinds == {"data", "pretrain", "experiment", "finetune"} and len(commands()) == 7
