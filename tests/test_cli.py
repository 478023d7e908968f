"""The command line: what it prints, its exit codes, and one line for what went wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from bleurt_repro import BleurtScorer, __version__
from bleurt_repro.cli import main

REFERENCES = ["the cat sat on the mat", "it rains", "good bye"]
CANDIDATES = ["the cat sat", "the dog rains", "good bye"]


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


def test_one_score_a_line_in_order(run, files, tiny_scorer, expected):
    code, out, err = run("score", "--references", "r.txt", "--candidates", "c.txt", "--checkpoint", tiny_scorer)
    assert code == 0
    assert [float(line) for line in out.splitlines()] == pytest.approx(expected, abs=1e-6)
    assert err == ""


def test_json(run, files, tiny_scorer, expected):
    code, out, _ = run(
        "score", "--references", "r.txt", "--candidates", "c.txt", "--checkpoint", tiny_scorer, "--json"
    )
    result = json.loads(out)
    assert code == 0
    assert set(result) == {"scores", "mean_score", "signature", "truncated"}
    assert result["scores"] == pytest.approx(expected, abs=1e-6)
    assert result["mean_score"] == pytest.approx(sum(expected) / 3, abs=1e-6)
    assert result["signature"].startswith("checkpoint:tiny|")
    assert result["truncated"] == 0


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


def test_standard_input(files, tiny_scorer, expected):
    command = [sys.executable, "-m", "bleurt_repro.cli", "score", "--references", "-", "--candidates", "c.txt"]
    done = subprocess.run(
        [*command, "--checkpoint", str(tiny_scorer)], input="\n".join(REFERENCES), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [float(line) for line in done.stdout.splitlines()] == pytest.approx(expected, abs=1e-6)


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
        (["--references", "r.txt", "--candidates", "c.txt", "--checkpoint", "unheard-of"], "known names are bleurt-repro-mini"),
        (["--references", "r.txt", "--candidates", "c.txt", "--aggregate", "median"], "one of max, mean"),
        (["--references", "r.txt", "--candidates", "c.txt", "--output", "no/such/folder/x"], "No such file or directory"),
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
