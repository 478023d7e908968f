"""The command line: what it prints, its exit codes, and one line for what went wrong."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from types import SimpleNamespace

import pyarrow
import pyarrow.parquet
import pytest
import typer

from bleurt_repro import BleurtScorer, __version__
from bleurt_repro.cli import app, main
from bleurt_repro.cli_style import spread
from bleurt_repro.metric.install import EXTRAS, install_command, require_extra
from bleurt_repro.score_files import main as official_main

REFERENCES = ["the cat sat on the mat", "it rains", "good bye"]
CANDIDATES = ["the cat sat", "the dog rains", "good bye"]
# The line that `score` ends with, on standard error.
SUMMARY = r"mean (-?\d\.\d{4}) \(95% interval (-?\d\.\d{4}) to (-?\d\.\d{4})\), 3 segments, checkpoint:tiny\|.*\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.txt").write_text("\n".join(REFERENCES) + "\n")
    (tmp_path / "c.txt").write_text("\n".join(CANDIDATES) + "\n")
    return tmp_path


@pytest.fixture
def run(capsys, tiny_scorer):
    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture
def expected(tiny_scorer):
    return BleurtScorer(str(tiny_scorer), device="cpu").score(references=REFERENCES, candidates=CANDIDATES)


def test_one_score_per_line_in_order(run, files, tiny_scorer, expected):
    code, out, err = run("score", "--references", "r.txt", "--candidates", "c.txt", "--checkpoint", tiny_scorer)
    assert code == 0
    assert [float(line) for line in out.splitlines()] == pytest.approx(expected, abs=1e-6)
    assert re.fullmatch(SUMMARY, err)


def test_json(run, files, tiny_scorer, expected):
    code, out, err = run(
        "score", "--references", "r.txt", "--candidates", "c.txt", "--checkpoint", tiny_scorer, "--json"
    )
    result = json.loads(out)
    assert code == 0
    assert set(result) == {"scores", "mean_score", "low", "high", "signature", "truncated", "unknown", "warnings"}
    assert result["scores"] == pytest.approx(expected, abs=1e-6)
    assert result["mean_score"] == pytest.approx(sum(expected) / 3, abs=1e-6)
    assert result["signature"].startswith("checkpoint:tiny|")
    assert result["truncated"] == 0
    figures = re.fullmatch(SUMMARY, err)
    assert figures.groups() == tuple(f"{result[name]:.4f}" for name in ("mean_score", "low", "high"))


def test_pairs_with_several_references_to_a_file(run, files, tiny_scorer, expected):
    records = [{"references": [r, "hi"], "candidate": c} for r, c in zip(REFERENCES, CANDIDATES, strict=True)]
    (files / "pairs.jsonl").write_text("\n".join(map(json.dumps, records)))
    options = ("score", "--pairs", "pairs.jsonl", "--checkpoint", tiny_scorer)
    code, out, _ = run(*options, "--output", "scores.txt")
    assert (code, out) == (0, "")
    written = [float(line) for line in (files / "scores.txt").read_text().splitlines()]
    assert all(best >= one - 1e-6 for best, one in zip(written, expected, strict=True))
    assert sorted(path.name for path in files.iterdir()) == ["c.txt", "pairs.jsonl", "r.txt", "scores.txt"]
    _, out, _ = run(*options, "--aggregate", "mean")
    assert [float(line) for line in out.splitlines()] != pytest.approx(written)


def test_standard_input(run, files, tiny_scorer, expected, monkeypatch):
    with (files / "r.txt").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        code, out, err = run("score", "--references", "-", "--candidates", "c.txt", "--checkpoint", tiny_scorer)
    assert code == 0 and re.fullmatch(SUMMARY, err)
    assert [float(line) for line in out.splitlines()] == pytest.approx(expected, abs=1e-6)


def test_truncation_is_said_on_standard_error(run, files, tiny_scorer):
    (files / "r.txt").write_text("cat " * 100 + "\n" * 3)
    code, out, err = run("score", "--references", "r.txt", "--candidates", "c.txt", "--checkpoint", tiny_scorer)
    assert code == 0
    assert len(out.splitlines()) == 3
    assert err.startswith("bleurt-repro: warning: 1 of 3 pairs were longer than the 64 tokens")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--references", "r.txt"], "nothing to score: give --references and --candidates, or --pairs"),
        (["--references", "r.txt", "--candidates", "c.txt", "--pairs", "p.jsonl"], "not both"),
        (["--references", "-", "--candidates", "-"], "only one file can be standard input"),
        (["--references", "r.txt", "--candidates", "none.txt"], "no file none.txt"),
        (["--references", "r.txt", "--candidates", "short.txt"], "found 3 segments in r.txt, 1 segments in short.txt"),
        (["--references", "r.txt", "--candidates", "c.txt", "--sources", "c.txt"], "tiny reads no sources"),
        (["--references", "r.txt", "--candidates", "c.txt", "--checkpoint", "unheard-of"], "known names are bleurt-repro-"),
        (["--references", "r.txt", "--candidates", "c.txt", "--aggregate", "median"], "one of max, mean"),
        (["--references", "r.txt", "--candidates", "c.txt", "--output", "no/such/folder/x"], "in a folder that does not exist"),
        (["--pairs", "bad.jsonl"], "bad.jsonl, line 1: not JSON"),
    ],
)  # fmt: skip
def test_an_input_error_is_one_line_and_exit_code_2(run, files, tiny_scorer, options, message):
    (files / "short.txt").write_text("one\n")
    (files / "bad.jsonl").write_text("{\n")
    if "--checkpoint" not in options:
        options = [*options, "--checkpoint", tiny_scorer]
    code, out, err = run("score", *options)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("bleurt-repro: error: ")
    assert message in err


def test_a_usage_error_is_exit_code_2(run):
    code, _, err = run("score", "--refrences", "r.txt")
    assert code == 2
    assert "No such option" in err


def test_a_failed_run_leaves_the_old_output(run, files, tiny_scorer):
    (files / "scores.txt").write_text("kept\n")
    (files / "c.txt").write_text("only one\n")
    code, _, _ = run(
        "score",
        "--references",
        "r.txt",
        "--candidates",
        "c.txt",
        "--checkpoint",
        tiny_scorer,
        "--output",
        "scores.txt",
    )
    assert code == 2
    assert (files / "scores.txt").read_text() == "kept\n"


def test_version(run):
    assert run("--version") == (0, f"bleurt-repro {__version__}\n", "")


HEAVY = ("torch", "transformers", "datasets", "evaluate", "numpy", "scipy", "huggingface_hub")


@pytest.mark.parametrize("action", ["import bleurt_repro", "from bleurt_repro.cli import main; main(['--help'])"])
def test_nothing_heavy_is_imported_before_it_is_needed(action):
    script = (
        f"import sys, contextlib\nwith contextlib.suppress(SystemExit):\n    {action}\n"
        f"print('loaded:', *[name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ})
    assert done.stdout.splitlines()[-1].strip() == "loaded:", done.stdout + done.stderr


def test_public_names():
    import bleurt_repro

    assert {"BleurtScorer", "ScoringResult", "register"} <= set(dir(bleurt_repro))
    assert bleurt_repro.ScoringResult.__name__ == "ScoringResult"
    with pytest.raises(AttributeError, match="has no attribute 'Scorer'; it offers BleurtScorer"):
        _ = bleurt_repro.Scorer


def test_several_values_after_one_option_or_one_by_one(run, files, tiny_scorer):
    (files / "b.txt").write_text("a\nb\nc\n")
    options = ("--checkpoint", tiny_scorer, "--resamples", "20", "--disagreements", "0")
    alone = run("compare", "-r", "r.txt", "--candidates", "c.txt", "--candidates", "b.txt", *options)
    together = run("compare", "-r", "r.txt", "--candidates", "c.txt", "b.txt", *options)
    assert alone == together and alone[0] == 0
    assert alone == run("compare", "-r", "r.txt", "-c", "c.txt", "b.txt", *options)


@pytest.mark.parametrize(
    ("words", "params", "expected"),
    [
        ("A --weight 1 2 B", "--weight", "A --weight 1 --weight 2 B"),
        ("--baselines bleu ter --seed 3", "--baselines", "--baselines bleu --baselines ter --seed 3"),
        ("--leave_out=x y -- z", "--leave-out", "--leave_out=x --leave-out y -- z"),
        ("--year 2017 -1 --x -y z", "--year", "--year 2017 --year -1 --x -y z"),
    ],
)
def test_words_are_spread(words, params, expected):
    option = SimpleNamespace(opts=[params], multiple=True, param_type_name="option")
    argument = [SimpleNamespace(opts=["a"], param_type_name="argument")] if "A" in words else []
    assert spread(words.split(), [option, *argument]) == expected.split()


def test_underscores_are_accepted_and_not_shown(run, files, tiny_scorer, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, _, err = run("score", "-r", "r.txt", "-c", "c.txt", "--checkpoint", tiny_scorer, "--batch_tokens", "0")
    assert code == 2 and "batch_tokens must be a positive number" in err
    assert "--batch-tokens" in (shown := run("score", "--help")[1]) and "--batch_tokens" not in shown


APP = typer.main.get_command(app)
GROUPS = {(): APP, **{(name,): command for name, command in APP.commands.items() if hasattr(command, "commands")}}
COMMANDS = [
    "score", "compare", "choose", "agree", "demo", "convert", "register", "card", "average", "ensemble", "calibrate",
    "data wmt", "data relative-ranks", "data webnlg", "data mqm", "data ratings", "data anchors", "data contrasts", "data roles",
    "data opposites", "data paraphrases", "data near-copies", "data synthetic", "data denoise", "data pseudo-labels",
    "data mlqe", "publish model", "publish dataset", "publish space",
]  # fmt: skip


HELP: dict[str, str] = {}


@pytest.fixture
def read_help(run, monkeypatch):
    """Return a function that returns the help of a command, which takes a tenth of a second to draw."""
    monkeypatch.setenv("COLUMNS", "200")

    def read(command: str) -> str:
        if command not in HELP:
            code, HELP[command], _ = run(*command.split(), "--help")
            assert code == 0
        return HELP[command]

    return read


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_two_examples_the_programs_name_and_no_type_of_switches(read_help, command):
    out = read_help(command)
    assert f"Usage: bleurt-repro {command} " in out
    assert len([line for line in out.splitlines() if line.strip().startswith(f"$ bleurt-repro {command}")]) >= 2
    assert "<bool>" not in out and "BOOLEAN" not in out


SETTINGS = ["finetune", "pretrain", *(f"experiment {name}" for name in (
    "agreement", "wmt", "drift", "webnlg", "ablation", "robleurt", "sanity", "adversarial",
))]  # fmt: skip


@pytest.mark.parametrize("command", SETTINGS)
def test_help_of_commands_with_settings_has_the_programs_name_and_two_examples(run, command):
    code, out, _ = run(*command.split(), "--help")
    assert code == 0 and out.startswith(f"usage: bleurt-repro {command} [--config FILE]")
    assert len([line for line in out.splitlines() if line.startswith(f"    bleurt-repro {command} ")]) >= 2
    assert "--output TEXT" in out
    assert not [word for word in out.split() if word.startswith("--") and "_" in word]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_a_panel_with_its_default(read_help, command):
    out = read_help(command)
    panels = re.findall(r"─ ([A-Z][a-z ]+) ─.*\n((?:│.*\n)+)", out)
    assert len(panels) > 1 and len(panels) == len(dict(panels))
    assert re.findall(r"--[a-z-]+", dict(panels)["Options"]) == ["--help"]
    known = APP
    for word in command.split():
        known = known.commands[word]
    defaults = [
        p
        for p in known.params
        if isinstance(p.default, int | float | str) and p.default is not False and p.default != ""
    ]
    shown = " ".join(re.sub("[│\\s]+", " ", text) for _, text in panels)
    for option in defaults:
        assert f"[default: {option.default}]" in shown or option.default is True, option.name


@pytest.mark.parametrize("command", SETTINGS)
def test_commands_with_settings_are_documented(command):
    pages = (Path(__file__).parents[1] / "docs").rglob("*.md")
    assert any(f"bleurt-repro {command}" in page.read_text(encoding="utf-8") for page in pages)


WRITERS = [c for c in COMMANDS if c not in ("agree", "demo", "register", "calibrate") and not c.startswith("publish")]


@pytest.mark.parametrize("command", WRITERS)
def test_commands_that_write_take_an_output(read_help, command):
    assert "--output" in read_help(command)


def test_convert_and_card_write_to_the_output(run, files, tiny_scorer, monkeypatch):
    from bleurt_repro.hub_cards import publish

    for words in (("a",), ("a", "b", "--output", "c")):
        code, _, err = run("convert", *words)
        assert code == 2 and "expected one folder to write" in err
    code, _, err = run("convert", "no-such-checkpoint", "--output", "new")
    assert code == 2 and "expected one folder" not in err and "no-such-checkpoint" in err
    monkeypatch.setattr(publish, "draw_card", lambda folder, **_: f"card of {folder}")
    assert run("card", "folder", "--output", "card.md")[0] == 0
    assert (files / "card.md").read_text() == "card of folder"
    code, _, err = run("card", "folder", "--output", "r.txt")
    assert code == 2 and "the output r.txt exists" in err


def test_all_commands_are_tested(run):
    named = {(*prefix, name) for prefix, group in GROUPS.items() for name in group.commands} - {
        (p[0],) for p in GROUPS if p
    }
    assert {" ".join(words) for words in named} == {*COMMANDS, *SETTINGS}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["demo", "--port", "70000"], "--port"),
        (["demo", "--port", "-1"], "--port"),
        (["demo", "--port", "0"], "--port"),
        (["scor"], "No such command 'scor'"),
        (["compare", "-r", "r.txt", "-c", "c.txt", "r.txt", "--resamples", "100000000"], "--resamples"),
        (["score", "-r", "r.txt", "-c", "c.txt", "--by", "typo"], "No such option --by"),
        (["average", "a", "b", "--dtype", "foo", "--output", "o"], "dtype must be"),
        (["score", "-r", "hf_abcdefghijklmnop.txt", "-c", "c.txt"], "no file hf_***.txt"),
    ],
)
def test_what_cannot_be_is_one_line_without_secrets(run, files, words, message):
    code, out, err = run(*words)
    assert (code, out, len(err.splitlines())) == (2, "", 1), (out, err)
    plain = err.replace("option: ", "option ").replace("'--by'", "--by")  # versions of click write it differently
    assert err.startswith("bleurt-repro: error: ") and message in plain
    assert "hf_a" not in err


@pytest.mark.parametrize("module", ["bleurt_repro", "bleurt_repro.cli"])
def test_as_a_module(module):
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"bleurt-repro {__version__}\n")


def test_completion_of_a_shell_offers_the_options():
    environment = {**os.environ, "_BLEURT_REPRO_COMPLETE": "complete_bash", "COMP_WORDS": "bleurt-repro score --ref"}
    done = subprocess.run(
        [sys.executable, "-m", "bleurt_repro"],
        env={**environment, "COMP_CWORD": "2", "_TYPER_COMPLETE_ARGS": "bleurt-repro score --ref"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["--references"]


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_the_flags_of_official_bleurt(files, tiny_scorer, expected, dashes):
    records = [{"reference": r, "candidate": c} for r, c in zip(REFERENCES, CANDIDATES, strict=True)]
    (files / "pairs.jsonl").write_text("\n".join(map(json.dumps, records)))
    for given in (["candidate_file=c.txt", "reference_file=r.txt"], ["sentence_pairs_file=pairs.jsonl"]):
        flags = [*given, f"bleurt_checkpoint={tiny_scorer}", "bleurt_batch_size=2", "scores_file=scores"]
        with pytest.raises(SystemExit) as stop:
            official_main([f"{dashes}{flag}" for flag in flags])
        assert not stop.value.code
        written = [float(line) for line in (files / "scores").read_text().splitlines()]
        assert written == pytest.approx(expected, abs=1e-6)


def test_scores_of_a_system_as_mt_metrics_eval_reads_them(run, files, tiny_scorer, expected):
    words = ("score", "-r", "r.txt", "-c", "c.txt", "--checkpoint", tiny_scorer, "--system", "mine", "-o", "mine.seg")
    assert run(*words)[0] == run(*words)[0] == 0  # written again over its own output
    rows = [line.split("\t") for line in (files / "mine.seg").read_text().splitlines()]
    assert [name for name, _ in rows] == ["mine"] * 3
    assert [float(number) for _, number in rows] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.tsv", "pairs.parquet", "pairs.csv.gz"])
def test_pairs_of_a_table(run, files, tiny_scorer, expected, name):
    rows = [("Reference", "candidate"), *zip(REFERENCES, CANDIDATES, strict=True)]
    if name.endswith("parquet"):
        columns = {"reference": REFERENCES, "candidate": CANDIDATES}
        pyarrow.parquet.write_table(pyarrow.table(columns), files / name)
    else:
        opener = gzip.open if name.endswith(".gz") else open
        with opener(files / name, "wt", newline="") as file:
            csv.writer(file, delimiter="\t" if "tsv" in name else ",").writerows(rows)
    code, out, _ = run("score", "--pairs", name, "--checkpoint", tiny_scorer)
    assert code == 0
    assert [float(line) for line in out.splitlines()] == pytest.approx(expected, abs=1e-6)


def test_tables_as_references_and_candidates_are_parsed(run, files, tiny_scorer, expected):
    (files / "r.csv").write_text("reference\n" + "\n".join(REFERENCES) + "\n")
    (files / "c.jsonl").write_text("\n".join(json.dumps({"candidate": text}) for text in CANDIDATES))
    code, out, _ = run("score", "-r", "r.csv", "-c", "c.jsonl", "--checkpoint", tiny_scorer)
    assert code == 0
    assert [float(line) for line in out.splitlines()] == pytest.approx(expected, abs=1e-6)


def test_a_user_without_a_home(run, files, tiny_scorer, monkeypatch):
    def homeless(_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.expanduser", homeless)
    code, _, err = run("score", "-r", "r.txt", "-c", "c.txt", "--checkpoint", "~/checkpoint")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "Set HOME" in err


# --- what is not installed -----------------------------------------------------------------------------------------

NEED_EXTRAS = {
    "demo": "demo",
    "finetune --model bleurt-repro-mini --train-file r.txt --output out": "train",
    "pretrain --model bleurt-repro-mini --pairs r.txt --max-steps 2 --output out": "train",
    "experiment agreement --ratings r.txt --checkpoint bleurt-repro-mini --output out": "train",
    "experiment robleurt --data r.txt --test r.txt --encoder a --output out": "train",
    "ensemble bleurt-repro-mini bleurt-repro-mini --validation r.txt --output out": "train",
    "calibrate out --ratings r.txt": "train",
    "data denoise --ratings r.txt --checkpoint a b --output out": "train",
    "data synthetic --input r.txt --config small --output out": "data",
}
# Runs commands without the modules that its first argument lists; prints the exit code of each below its message.
WITHOUT_MODULES = """
import sys
sys.modules |= dict.fromkeys(sys.argv[1].split(","))
from bleurt_repro.cli import main
for command in sys.argv[2:]:
    try:
        main(command.split())
    except SystemExit as stop:
        print(stop.code, file=sys.stderr)
"""


def test_a_missing_extra_is_named_in_one_line_before_anything_is_imported_or_written(files):
    """One process for all commands: without PyTorch and transformers either, so nothing large is imported first."""
    modules = {"torch", "transformers", *(module for extra in EXTRAS.values() for module in extra)}
    arguments = [",".join(modules), *NEED_EXTRAS]
    result = subprocess.run([sys.executable, "-c", WITHOUT_MODULES, *arguments], capture_output=True, text=True)
    messages = result.stderr.splitlines()
    assert (result.stdout, messages[1::2]) == ("", ["2"] * len(NEED_EXTRAS)), result.stderr
    for message, (command, extra) in zip(messages[::2], NEED_EXTRAS.items(), strict=True):
        assert f"needs {', '.join(EXTRAS[extra])}: install" in message and install_command(extra) in message, command
    assert not (files / "out").exists()


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_module_of_an_extra_is_looked_for(monkeypatch, extra):
    for module in EXTRAS[extra]:
        with monkeypatch.context() as patch, pytest.raises(ValueError, match=f"this needs {module}: install"):
            patch.setitem(sys.modules, module, None)
            require_extra(extra, "this")


def test_the_modules_of_an_extra_are_its_requirements():
    config = ConfigParser()
    config.read(Path(__file__).parents[1] / "setup.cfg")
    sections = config["options.extras_require"]
    if not sections:
        pytest.skip("needs a clone")

    def modules(text: str) -> set[str]:
        names = re.findall(r"^([\w-]+)", re.sub(r"^ *#.*$", "", text, flags=re.MULTILINE), re.MULTILINE)
        return {name.replace("-py", "").replace("-", "_") for name in names}

    plain = modules(config["options"]["install_requires"]) | {"pandas"}  # which datasets requires
    for extra, expected in EXTRAS.items():
        assert modules(sections[extra]) - plain == set(expected), extra


# --- what the system and checkpoints do ----------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("--version >&-", 2, "standard input or output is closed"),
        ("--version <&- 2>&-", 0, ""),
        ("--version >/dev/full", 2, "No space left on device"),
        ("score -r - -c c.txt --checkpoint CHECKPOINT <&-", 2, "standard input or output is closed"),
        ("score -r none.txt -c c.txt --checkpoint CHECKPOINT 2>&-", 2, ""),
        ("data roles --pairs 10 -o pairs.jsonl <&- 2>&-", 0, ""),
    ],
)
def test_closed_standard_streams(files, tiny_scorer, command, code, message):
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    line = f"{sys.executable} -m bleurt_repro {command.replace('CHECKPOINT', str(tiny_scorer))}"
    result = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert (result.returncode, len(result.stderr.splitlines())) == (code, bool(message)), result.stderr
    assert message in result.stderr
    if "pairs.jsonl" in command:
        assert all(json.loads(line)["candidate"] for line in (files / "pairs.jsonl").read_text().splitlines())


class RustPanic(BaseException):
    """What a panic of a Rust library looks like: no Exception, of a module that does not exist."""

    __module__ = "pyo3_runtime"


def raising(error: BaseException, module: str):
    """Return a function of a module that raises an error."""
    namespace = {"__name__": module, "error": error}
    exec("def fail(*_, **__): raise error", namespace)
    return namespace["fail"]


ENCODING = "bleurt_repro.metric.forward.encoding"


@pytest.mark.parametrize(
    ("error", "module", "is_one_line"),
    [
        (RuntimeError("size mismatch"), ENCODING, True),  # as torch raises them
        (Exception("no unknown token"), ENCODING, True),  # as tokenizers raises them
        (RustPanic("out of bounds"), ENCODING, True),
        (KeyError("a layer"), "transformers.modeling", True),
        (KeyError("a mistake of this package"), ENCODING, False),
        (AssertionError("a mistake of this package"), ENCODING, False),
    ],
)
def test_an_error_of_a_library_that_reads_a_checkpoint_is_one_line(
    run, files, tiny_scorer, monkeypatch, error, module, is_one_line
):
    monkeypatch.setattr(f"{ENCODING}.PairEncoder.tokenize", raising(error, module))
    command = ("score", "-r", "r.txt", "-c", "c.txt", "--checkpoint", tiny_scorer)
    if is_one_line:
        code, out, err = run(*command)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert f"the checkpoint or its tokenizer cannot be used: {type(error).__name__}: {error}" in err
        monkeypatch.setenv("BLEURT_REPRO_DEBUG", "1")
    with pytest.raises(type(error)):
        main([str(argument) for argument in command])


def test_an_error_away_from_checkpoints_keeps_its_traceback(monkeypatch):
    name = "bleurt_repro.metric.bulk.scoring"
    monkeypatch.setattr(f"{name}.score_files", raising(RuntimeError("a mistake of this package"), name))
    with pytest.raises(RuntimeError):
        main(["score"])


RATING = {"year": 2018, "reference": "6 dogs ran home today", "candidate": "6 dogs went home", "score": 0.5}


@pytest.fixture
def made_data(files, tiny_scorer):
    """The `data` commands that write one file, with small inputs."""
    rows = [{**RATING, "reference": f"{i} dogs ran home again today", "score": float(i % 5)} for i in range(20)]
    (files / "ratings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (files / "judge.txt").write_text("".join(f"{i}\n" for i in range(20)))
    sentences = ("He found 3 old keys.\tLes clés.", "He did find 3 old keys.\tLes clés.", "It rains.\tIl pleut.")
    (files / "en-fr.tsv").write_text("".join(f"tatoeba\ttrain\t{line}\n" for line in sentences))
    return {
        "anchors": ["--ratings", "ratings.jsonl"],
        "contrasts": ["--parallel", "en-fr.tsv", "--pairs", "20"],
        "roles": ["--pairs", "10"],
        "opposites": ["--pairs", "10"],
        "paraphrases": [],
        "near-copies": ["--ratings", "ratings.jsonl", "--pairs", "10"],
        "denoise": ["--ratings", "ratings.jsonl", "--checkpoint", tiny_scorer, "--scores", "judge=judge.txt"],
    }


@pytest.mark.parametrize(
    "command", ["anchors", "contrasts", "roles", "opposites", "paraphrases", "near-copies", "denoise"]
)
def test_data_commands_write_over_their_own_files_alone(run, files, made_data, command):
    words = ("data", command, *made_data[command], "--output", "out.jsonl")
    (files / "out.jsonl").write_text(json.dumps(RATING) + "\n")
    code, _, err = run(*words)
    assert code == 2 and "the output out.jsonl exists and bleurt-repro did not write it" in err
    assert json.loads((files / "out.jsonl").read_text()) == RATING
    assert run(*words, "--overwrite")[0] == 0
    assert json.loads((files / "out.jsonl").read_text().splitlines()[-1]) != RATING
    assert run(*words)[0] == 0


@pytest.mark.parametrize("command", ["anchors", "denoise"])
def test_data_commands_keep_their_inputs(run, files, made_data, command):
    before = (files / "ratings.jsonl").read_bytes()
    code, _, err = run("data", command, *made_data[command], "--output", "ratings.jsonl", "--overwrite")
    assert code == 2 and "the output ratings.jsonl is the input ratings.jsonl" in err
    assert (files / "ratings.jsonl").read_bytes() == before


def test_contrasts_keep_their_inputs(run, files, made_data):
    before = (files / "en-fr.tsv").read_bytes()
    code, _, err = run("data", "contrasts", *made_data["contrasts"], "--output", "en-fr.tsv", "--overwrite")
    assert code == 2 and "the output en-fr.tsv is the input en-fr.tsv" in err
    assert (files / "en-fr.tsv").read_bytes() == before


def test_denoise_keeps_a_record_of_others(run, files, made_data):
    (files / "out.jsonl.json").write_text("[]")
    code, _, err = run("data", "denoise", *made_data["denoise"], "--output", "out.jsonl")
    assert code == 2 and "the output out.jsonl.json exists" in err
    assert (files / "out.jsonl.json").read_text() == "[]" and not (files / "out.jsonl").exists()
