"""`bleurt-repro compare`: names, files in, files out, and one line for what went wrong."""

from __future__ import annotations

import csv
import io
import json
import re
from functools import partial

import pytest
from sacrebleu import significance

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
    code, out, err = run(*ALL, "--output", "out.json", "--output", "out.csv", "--disagreements", "1")
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


def test_tables_are_written_and_written_again(run, files, monkeypatch):
    monkeypatch.setattr(significance, "PairedTest", partial(significance.PairedTest, n_samples=50))
    arguments = (*ALL, "--output", "table.md", "table.tex", "--disagreements", "0")
    old = "| system |   mean |\n"  # the table before it had three metrics
    (files / "table.md").write_text(old)
    for _ in range(2):  # what the command wrote it may replace
        code, out, _ = run(*arguments)
        assert code == 0 and ", two-sided p = " in out
    markdown, latex = (files / "table.md").read_text(), (files / "table.tex").read_text()
    assert markdown.startswith("| system") and markdown != old and latex.count(r"\toprule") == 1
    assert run(*ALL, "--format", "markdown")[1] == markdown and run(*ALL, "--format", "latex")[1] == latex
    (files / "table.tex").write_text("my own table")
    code, _, err = run(*arguments)
    assert code == 2 and "table.tex" in err and (files / "table.tex").read_text() == "my own table"


def rows_of(out: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(out)))


def test_one_system(run, files):
    code, out, err = run("-r", "refs.txt", "-c", "good.txt", "--worst", "1", "--output", "out.json")
    written = json.loads((files / "out.json").read_text())
    assert (code, err, written["tests"]) == (0, "", [])
    assert out.splitlines()[1].startswith("good") and "one-sided" not in out
    lowest = min(written["segments"], key=lambda segment: segment["scores"])
    assert f"segment {lowest['number']}\n" in out and out.count("\nsegment ") == 1
    [row] = rows_of(run("-r", "refs.txt", "-c", "good.txt", "--format", "csv")[1])
    assert row["system"] == "good" and float(row["BLEURT"]) == written["systems"][0]["mean"]


def test_the_worst_segments_of_a_system(run, files):
    code, out, _ = run(*ALL, "--output", "out.json", "--worst", "2", "--system", "middle")
    segments = json.loads((files / "out.json").read_text())["segments"]
    worst = [segment["number"] for segment in sorted(segments, key=lambda segment: segment["scores"][2])][:2]
    assert code == 0 and re.findall(r"^segment (\d)", out, flags=re.M) == [str(number) for number in worst]
    rows = rows_of(run(*ALL, "--worst", "2", "--system", "middle", "--format", "csv")[1])
    assert [int(row["segment"]) for row in rows] == worst


def test_disagreements_as_csv(run, files):
    rows = rows_of(run(*ALL, "--disagreements", "2", "--format", "csv", "--output", "out.csv")[1])
    assert rows == rows_of((files / "out.csv").read_text())[:2]


def test_means_by_a_column_of_the_references(run, files):
    lines = [f'"{text}",{domain}' for text, domain in zip(REFERENCES, ("news", "chat", "news"), strict=True)]
    (files / "refs.csv").write_text("\n".join(["reference,domain", *lines]) + "\n")
    arguments = ("-r", "refs.csv", "-c", "good.txt", "middle.csv", "--by", "domain")
    chat, news = rows_of(run(*arguments, "--format", "csv", "--output", "out.json")[1])
    scores = {s["number"]: s["scores"] for s in json.loads((files / "out.json").read_text())["segments"]}
    assert (chat["domain"], chat["segments"], chat["low of good"]) == ("chat", "1", "")
    assert (news["domain"], news["segments"]) == ("news", "2")
    assert float(chat["mean of good"]) == scores[2][0]
    assert float(news["mean of middle"]) == pytest.approx((scores[1][1] + scores[3][1]) / 2)
    assert float(news["low of good"]) < float(news["mean of good"]) < float(news["high of good"])
    _, out, _ = run(*arguments)
    cells = [line.split() for line in out.splitlines() if line.startswith(("domain", "chat", "news"))]
    assert cells[0] == ["domain", "segments", "good", "middle"]
    assert cells[1][:3] == ["chat", "1", f"{scores[2][0]:.4f}"] and cells[2][1] == "2"
    assert " apart" not in out


def test_means_by_length(run, files):
    (files / "refs.txt").write_text("\n".join([" ".join(["w"] * count) for count in (9, 10, 99)]) + "\n")
    rows = rows_of(run("-r", "refs.txt", "-c", "good.txt", "--by", "length", "--format", "csv")[1])
    assert [row["length"] for row in rows] == ["0 to 9", "10 to 19", "50 or more"]


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
        ((*ALL, "--worst", "1"), "give a number of segments and the name of a system"),
        ((*ALL, "--system", "good"), "give a number of segments and the name of a system"),
        ((*ALL, "--worst", "1", "--system", "best"), "--system must be one of good, =bad, middle, found 'best'"),
        ((*ALL, "--worst", "1", "--disagreements", "1"), "give either --worst or --disagreements"),
        (("-r", "refs.txt", "-c", "good.txt", "--disagreements", "1"), "--disagreements needs two systems or more"),
        ((*ALL, "--format", "html"), "--format must be one of text, markdown, latex, csv, found 'html'"),
        ((*ALL, "--format", "latex", "--by", "length"), "need --format text or csv"),
        ((*ALL, "--format", "csv", "--by", "length", "--disagreements", "1"), "--format csv prints one table"),
        ((*ALL, "--by", "domain"), "expected a table or JSON lines, found refs.txt"),
        (("-r", "middle.csv", "-c", "good.txt", "--by", "domain"), "expected a header with a column 'reference'"),
        (("-r", "many.csv", "-c", "many.txt", "--by", "id"), "--by id has 101 values, expected at most 100"),
        (
            ("-r", "many.csv", "-c", "many.txt", "--by", "domain"),
            "expected a column 'domain' for --by, found reference, id",
        ),
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
    (files / "many.csv").write_text("reference,id\n" + "".join(f"one,{i}\n" for i in range(101)))
    (files / "many.txt").write_text("one\n" * 101)
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
    _, out, _ = run(*ALL, "--disagreements", "3")
    assert "\x1b" not in out and "a [31mb" in out
