"""Describe settings. Read them from defaults, YAML and options."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from transformers import TrainingArguments

from bleurt_repro.training.arguments import find_config, parse_config, run_script
from bleurt_repro.training.finetune import FinetuningArguments


@dataclass
class TextArguments:
    """What is read."""

    text_file: str = field(metadata={"help": "File to read."})
    languages: list[str] = field(default_factory=lambda: ["fr"])
    limit: int | None = None
    fold_case: bool = False


@dataclass
class ModelArguments:
    """What is trained."""

    learning_rate: float = 0.5
    steps: int = 3
    name: str = "tiny"

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps must be at least 1, found {self.steps}")


TYPES = (TextArguments, ModelArguments)


@pytest.fixture
def config(tmp_path: Path):
    """Write a YAML file and give its path."""

    def write(text: str) -> str:
        (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
        return str(tmp_path / "run.yaml")

    return write


def test_defaults_then_file_then_options(config) -> None:
    path = config("text_file: a.txt\nlearning_rate: 1e-3\nsteps: 7\nlanguages: [de, fr]\nfold_case: true\n")
    text, model = parse_config(TYPES, ["--config", path, "--steps", "9", "--languages", "ru"])
    assert text == TextArguments("a.txt", ["ru"], None, True)
    assert model == ModelArguments(0.001, 9, "tiny")


@pytest.mark.parametrize("argv", [["--text_file", "a b.txt"], ["--text-file", "a b.txt"], ["--text_file=a b.txt"]])
def test_options_alone(argv: list[str]) -> None:
    assert parse_config(TYPES, argv)[0].text_file == "a b.txt"


@pytest.mark.parametrize(
    ("line", "setting", "expected"),
    [
        ("limit: 5", "limit", 5),
        ("limit: null", "limit", None),
        ("limit: -1", "limit", -1),
        ("fold_case: yes", "fold_case", True),
        ("languages: []", "languages", []),
        ("languages: [fr=a/b.tsv, 'de=c d.tsv']", "languages", ["fr=a/b.tsv", "de=c d.tsv"]),
        ("# nothing", "limit", None),
    ],
)
def test_values_of_a_file(config, line: str, setting: str, expected: object) -> None:
    text, _ = parse_config(TYPES, ["--config", config(line), "--text_file", "a"])
    assert getattr(text, setting) == expected


def test_config_may_follow_the_options_and_leave_required_settings_to_them(config) -> None:
    text, model = parse_config(TYPES, ["--text_file", "a", "--config", config("steps: 4\ntext_file: null")])
    assert (text.text_file, model.steps) == ("a", 4)


@pytest.mark.parametrize(
    ("yaml", "options", "message"),
    [
        ("stepz: 1", [], r"run.yaml, line 1: unknown setting 'stepz'; did you mean steps\?"),
        (
            "name: a\nlearning-rate: 1",
            [],
            "run.yaml, line 2: unknown setting 'learning-rate'; did you mean learning_rate",
        ),
        ("qqqq: 1", [], "unknown setting 'qqqq'; --help lists"),
        ("steps: 1\nname: b\nsteps: 2", [], "run.yaml, line 3: 'steps' is already set in line 1"),
        ("- steps", [], "run.yaml must be a mapping of settings such as 'seed: 1', found a list"),
        ("steps: [", [], "run.yaml is not YAML"),
        ("steps: many", [], "run.yaml: steps: invalid int value: 'many'"),
        ("steps: 1.5", [], "run.yaml: steps: invalid int value: '1.5'"),
        ("steps: [1, 2]", [], "run.yaml: steps: expected one value, found a list of 2"),
        ("fold_case: perhaps", [], "run.yaml: fold_case: Truthy value expected"),
        ("steps: 0", [], "steps must be at least 1, found 0"),
        ("steps: 2", ["--steps", "few"], "^--steps: invalid int value: 'few'"),
        ("steps: 2", ["--learning-rat", "1"], r"unknown option --learning-rat; did you mean --learning_rate\?"),
        ("steps: 2", ["--step", "1"], r"unknown option --step; did you mean --steps\?"),
        ("steps: 2", ["astray"], "unexpected 'astray': settings are given as --key value"),
        ("steps: 2", ["--limit"], "--limit: expected one argument"),
    ],
)
def test_errors_say_what_and_where(config, yaml: str, options: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_config(TYPES, ["--config", config(yaml), "--text_file", "a", *options])


def test_missing_settings_are_all_named() -> None:
    with pytest.raises(ValueError, match="missing --text_file: give each as an option, or as a setting"):
        parse_config(TYPES, ["--steps", "2"])


def test_config_without_a_name() -> None:
    with pytest.raises(ValueError, match="--config needs the name of a YAML file"):
        parse_config(TYPES, ["--config"])


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"name: \xff\n")
    with pytest.raises(ValueError, match=r"bad.yaml is not YAML"):
        parse_config(TYPES, ["--config", str(tmp_path / "bad.yaml"), "--text_file", "a"])


@pytest.mark.parametrize("name", ["teacher_translator", "teacher_translator.yaml"])
def test_configurations_of_the_package_are_found_by_name(name: str) -> None:
    assert find_config(name).name == "teacher_translator.yaml"


@pytest.mark.parametrize("name", ["absent", "../configs/teacher_translator"])
def test_no_such_configuration(name: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"no configuration {name}: .*teacher_translator.yaml"):
        find_config(name)


def test_a_file_here_comes_before_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "teacher_translator").write_text("steps: 1")
    monkeypatch.chdir(tmp_path)
    assert find_config("teacher_translator") == Path("teacher_translator")


def test_help_shows_the_scripts_docstring_and_stops(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse_config(TYPES, ["--help"])
    shown = capsys.readouterr().out
    assert stopped.value.code == 0
    assert "Describe settings. Read them from defaults" in shown
    assert "[--config FILE] [--key value ...]" in shown
    assert "--text-file" in shown and "--text_file" not in shown and "File to read." in shown


def test_the_trainers_arguments(config, tmp_path: Path) -> None:
    path = config("learning_rate: 3e-5\nmax_steps: -1\nlr_scheduler_kwargs: {num_cycles: 2}\nbf16: false\n")
    (args,) = parse_config((TrainingArguments,), ["--config", path, "--output_dir", str(tmp_path), "--use_cpu"])
    assert (args.learning_rate, args.max_steps, args.lr_scheduler_kwargs) == (3e-5, -1, {"num_cycles": 2})
    assert args.use_cpu and not args.bf16


@pytest.mark.parametrize("has_instructions", [True, False])
def test_bfloat16_is_off_on_a_processor_that_would_be_slow_with_it(config, tmp_path, monkeypatch, has_instructions):
    monkeypatch.setattr("bleurt_repro.metric.options.has_bfloat16", lambda device: has_instructions)
    words = ["--config", config("bf16: true\n"), "--output_dir", str(tmp_path), "--use_cpu"]
    with nullcontext() if has_instructions else pytest.warns(UserWarning, match="no instructions for bfloat16"):
        (args,) = parse_config((FinetuningArguments,), words)
    assert args.bf16 is has_instructions


def test_passes_that_are_asked_for_count_in_place_of_a_files_steps(config, tmp_path: Path) -> None:
    words = ["--config", config("max_steps: 20\n"), "--output_dir", str(tmp_path)]
    (args,) = parse_config((FinetuningArguments,), [*words, "--num-train-epochs", "2"])
    assert (args.max_steps, args.num_train_epochs) == (-1, 2)
    (args,) = parse_config((FinetuningArguments,), [*words, "--num-train-epochs", "2", "--max-steps", "30"])
    assert args.max_steps == 30
    (args,) = parse_config((FinetuningArguments,), words)
    assert args.max_steps == 20


def test_scripts_end_in_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def main() -> None:
        raise ValueError("no\n  good")

    monkeypatch.setattr("sys.argv", ["/somewhere/translator.py"])
    monkeypatch.delenv("BLEURT_REPRO_DEBUG", raising=False)
    with pytest.raises(SystemExit) as stopped:
        run_script(main)
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "translator: error: no good\n"
    monkeypatch.setenv("BLEURT_REPRO_DEBUG", "1")
    with pytest.raises(ValueError, match="no"):
        run_script(main)


def test_help_shows_what_people_use_and_help_all_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments

    shown = {}
    for word in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            parse_config((RatingArguments, FinetuningArguments), [word])
        shown[word] = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  --")}
    assert 20 <= len(shown["--help"]) <= 28 < 100 < len(shown["--help-all"])
    assert {"--model", "--train-file", "--output", "--learning-rate"} <= shown["--help"] < shown["--help-all"]
    assert not any("_" in name for name in shown["--help-all"])


@pytest.mark.parametrize("command", ["finetune", "pretrain"])
def test_every_option_that_help_shows_has_a_text_in_a_group(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments
    from bleurt_repro.training.pretrain import PairArguments, PretrainingArguments

    kinds = {"finetune": (RatingArguments, FinetuningArguments), "pretrain": (PairArguments, PretrainingArguments)}
    with pytest.raises(SystemExit):
        parse_config(kinds[command], ["--help"])
    *_, own, _, training = re.split(r"\n([a-z ]+):\n(?=  -)", capsys.readouterr().out)
    options = [re.split(r"\s{2,}", found, maxsplit=1) for found in re.split(r"\n  (?=--)", f"\n{own}\n{training}")[1:]]
    assert len(options) > 15
    assert not [option for option in options if len(option) < 2 or re.match(r"\(|$", option[1].strip())]
    assert "(default: 1e-05)" in training and "--output TEXT" in training and "(required)" in training
    assert "--no-load-best-model-at-end" not in training
