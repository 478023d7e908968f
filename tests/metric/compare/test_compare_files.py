"""`bleurt-repro compare`: names, files in, files out, and one line for what went wrong."""

from __future__ import annotations

import csv
import json

import pytest

from bleurt_repro.cli import main
from bleurt_repro.metric.compare.compare_files import combine_references, system_names
from tests.three_systems import REFERENCES, SYSTEMS


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "refs.txt").write_text("\n".join(REFERENCES) + "\n")
    (tmp_path / "good.txt").write_text("\n".join(SYSTEMS["good"]) + "\n")
    (tmp_path / "=bad.jsonl").write_text("\n".join(json.dumps({"candidate": text}) for text in SYSTEMS["bad"]))
    (tmp_path / "middle.csv").write_text("candidate\n" + "\n".join(SYSTEMS["middle"]) + "\n")
    return tmp_path


@pytest.fixture
def run(capsys, tiny_scorer):
    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(["compare", "--checkpoint", str(tiny_scorer), "--resamples", "50", *arguments])
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return call


ALL = ("--references", "refs.txt", "--candidates", "good.txt", "--candidates", "=bad.jsonl", "--candidates", "middle.csv")  # fmt: skip


def test_three_systems_to_json_csv_and_terminal(run, files):
    code, out, err = run(*ALL, "--output", "out.json", "--output", "out.csv", "--show", "1")
    assert (code, err) == (0, "")
    written = json.loads((files / "out.json").read_text())
    assert [system["name"] for system in written["systems"]] == ["good", "=bad", "middle"]
    assert len(written["tests"]) == 3 and "Koehn, 2004" in written["convention"]
    rows = list(csv.reader((files / "out.csv").open(newline="")))
    assert rows[0][:5] == ["segment", "spread", "score of good", "score of =bad", "score of middle"]
    assert rows[0][8:] == ["reference", "good", "'=bad", "middle", "source", "signature"]
    assert {row[-1] for row in rows[1:]} == {written["signatures"]["BLEURT"]}
    assert [int(row[0]) for row in rows[1:]] == [segment["number"] for segment in written["segments"]]
    assert [float(row[1]) for row in rows[1:]] == pytest.approx([s["spread"] for s in written["segments"]])
    best = max(written["systems"], key=lambda system: system["mean"])
    assert out.splitlines()[1].startswith(best["name"])
    assert "good - middle: " in out and ", one-sided p = " in out
    assert out.count(" apart") == 1
    assert written["signatures"]["BLEURT"] in out


def test_tables_are_written_and_written_again(run, files):
    arguments = (*ALL, "--output", "table.md", "table.tex", "--show", "0")
    for seed in ("1", "2"):  # what the command wrote it may replace
        code, out, _ = run(*arguments, "--seed", seed)
        assert code == 0 and ", two-sided p = " in out
    markdown, latex = (files / "table.md").read_text(), (files / "table.tex").read_text()
    assert markdown.startswith("| system") and "| good - =bad" in markdown and "two-sided p" in markdown
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 2
    (files / "table.tex").write_text("my own table")
    code, _, err = run(*arguments)
    assert code == 2 and "table.tex" in err and (files / "table.tex").read_text() == "my own table"


def test_the_same_seed_gives_the_same_figures(run, files):
    first, second = run(*ALL, "--seed", "3")[1], run(*ALL, "--seed", "3")[1]
    assert first == second
    assert run(*ALL, "--seed", "4")[1] != first


def test_a_second_reference_file(run, files):
    (files / "more.txt").write_text("\n".join(SYSTEMS["middle"]) + "\n")
    assert run(*ALL, "--references", "more.txt", "--output", "out.json")[0] == 0
    middle = json.loads((files / "out.json").read_text())["systems"][2]
    assert middle["sentence_bleu"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--references", "refs.txt", "--candidates", "good.txt"), "two systems or more, found 1"),
        (("--references", "refs.txt", "--candidates", "good.txt", "--candidates", "good.txt"), "found good.txt twice"),
        ((*ALL, "--output", "out.xlsx"), "must be a .json, .csv, .md or .tex file, found out.xlsx"),
        ((*ALL, "--references", "short.txt"), "3 segments in refs.txt, 1 segments in short.txt"),
        ((*ALL, "--candidates", "none.txt"), "no file none.txt"),
        ((*ALL, "--candidates", "-", "--candidates", "-"), "only one file can be standard input"),
        ((*ALL, "--sources", "refs.txt"), "reads no sources"),
    ],
)
def test_an_error_is_one_line(run, files, arguments, message):
    (files / "short.txt").write_text("one\n")
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1 and message in err


def test_systems_of_one_file_name_are_called_by_their_paths():
    assert system_names(["a/out.txt", "b/out.txt", "c.txt", "-"]) == ["a/out.txt", "b/out.txt", "c", "standard input"]


def test_references_of_several_files_are_put_together():
    assert combine_references([["a", ["b", "c"]], ["d", "e"]]) == [["a", "d"], ["b", "c", "e"]]


def test_blank_lines_of_a_second_reference_file_are_no_references(run, files):
    count = len((files / "refs.txt").read_text().splitlines())
    (files / "blank.txt").write_text(" \n" * (count - 1) + "\n")
    assert run(*ALL, "--output", "one.json")[0] == 0
    code, _, err = run(*ALL, "--references", "blank.txt", "--output", "two.json")
    assert (code, err) == (0, "")
    one, two = (json.loads((files / name).read_text()) for name in ("one.json", "two.json"))
    assert one["systems"] == two["systems"] and one["tests"] == two["tests"]


def test_control_characters_do_not_reach_the_terminal(run, files):
    (files / "good.txt").write_text("a\x1b[31mb\n\n\n")
    _, out, _ = run(*ALL, "--show", "3")
    assert "\x1b" not in out and "a [31mb" in out
