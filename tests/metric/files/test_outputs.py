"""What `--output` names stays whole: streams are written through, links followed, inputs and foreign files kept."""

from __future__ import annotations

import gzip
import json
import os
import re
import threading
from pathlib import Path

import pytest

from bleurt_repro.cli import main
from bleurt_repro.metric.files.writing import (
    is_stream,
    validate_output,
    validate_output_folder,
    write_json_lines,
    write_text,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
OURS = re.compile(rb"ours")


def read_while(path: Path, write) -> bytes:
    """Read a named pipe in another thread while something writes to it."""
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()), daemon=True)
    reader.start()
    write()
    reader.join(timeout=30)
    return b"".join(got)


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_pipe_is_written_to_and_stays_one(pipe, tmp_path):
    assert is_stream(pipe) and not is_stream(tmp_path) and not is_stream(tmp_path / "none")
    assert read_while(pipe, lambda: write_text(pipe, "text")) == b"text"
    assert read_while(pipe, lambda: write_json_lines(pipe, [{"a": "é"}])) == '{"a": "é"}\n'.encode()
    assert is_stream(pipe) and [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_link_to_a_pipe_is_a_stream(pipe, tmp_path):
    (tmp_path / "link").symlink_to("pipe")
    assert is_stream(tmp_path / "link")
    assert read_while(pipe, lambda: write_text(tmp_path / "link", "text")) == b"text"


def test_what_a_process_has_open_is_a_stream(tmp_path):
    """As /dev/stdout is, when it leads to a file: what is in that file must not be replaced."""
    with (tmp_path / "log").open("wb") as file:
        file.write(b"before\n")
        file.flush()
        (tmp_path / "stdout").symlink_to(f"/proc/self/fd/{file.fileno()}")
        if not (tmp_path / "stdout").exists():
            pytest.skip("needs /proc")
        assert is_stream(tmp_path / "stdout")
        write_text(validate_output(str(tmp_path / "stdout"), [], OURS), "after\n")
    assert (tmp_path / "log").read_bytes() == b"before\nafter\n"


def test_a_link_to_a_file_is_followed(tmp_path):
    (tmp_path / "file").write_bytes(b"ours 1")
    (tmp_path / "link").symlink_to("file")
    write_text(validate_output(str(tmp_path / "link"), [], OURS), "ours 2")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"ours 2"


@pytest.mark.parametrize("name", ["file", "link", "./file", "hard"])
def test_an_input_is_no_output(tmp_path, name):
    (tmp_path / "file").write_bytes(b"ours")
    (tmp_path / "link").symlink_to("file")
    os.link(tmp_path / "file", tmp_path / "hard")
    with pytest.raises(ValueError, match="is the input"):
        validate_output(str(tmp_path / name), [None, "-", str(tmp_path / "file")], OURS, overwrite=True)


def test_a_file_that_others_wrote_stays_unless_asked(tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(ValueError, match="did not write it: name another file, or add --overwrite"):
        validate_output(str(tmp_path / "file"), [], OURS)
    assert validate_output(str(tmp_path / "file"), [], OURS, overwrite=True) == tmp_path / "file"
    for content in (b"ours", b""):
        (tmp_path / "file").write_bytes(content)
        assert validate_output(str(tmp_path / "file"), [], OURS) == tmp_path / "file"
    with pytest.raises(ValueError, match="is a folder"):
        validate_output(str(tmp_path), [], OURS)


def test_a_folder_that_others_wrote_stays_unless_asked(tmp_path):
    folder = tmp_path / "folder"
    assert validate_output_folder(folder, [], ["mark*"]) == folder
    folder.mkdir()
    assert validate_output_folder(folder, [], ["mark*"]) == folder
    (folder / "diary").write_text("mine")
    with pytest.raises(ValueError, match="holds files that bleurt-repro did not write"):
        validate_output_folder(folder, [], ["mark*"])
    assert validate_output_folder(folder, [], ["mark*"], overwrite=True) == folder
    (folder / "mark.json").write_text("{}")
    assert validate_output_folder(folder, [], ["mark*"]) == folder
    with pytest.raises(ValueError, match="is the input"):
        validate_output_folder(folder, [str(folder)], ["mark*"], overwrite=True)
    with pytest.raises(ValueError, match="lies in the output"):
        validate_output_folder(folder, [str(folder / "diary")], ["mark*"])
    with pytest.raises(ValueError, match="is a file"):
        validate_output_folder(folder / "diary", [], ["mark*"])


# The commands


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("r.txt", "a.txt", "b.txt"):
        (tmp_path / name).write_text("one\ntwo\n")
    (tmp_path / "ratings.jsonl").write_text(
        "".join(json.dumps({"reference": f"r {n}", "candidate": "c", "score": n}) + "\n" for n in range(20))
    )
    return tmp_path


@pytest.fixture
def run(capsys, tiny_scorer):
    def call(*command: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in command])
        return int(stop.value.code or 0), capsys.readouterr().err

    return call


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "command",
    [
        "score -r r.txt -c b.txt --output b.txt",
        "score -r r.txt -c b.txt --output ./r.txt --overwrite",
        "score --pairs ratings.jsonl --output ratings.jsonl",
        "compare -r r.txt -c a.txt b.csv --output b.csv",
        "compare -r r.txt -c a.txt b.txt --output mine.json",
        "score -r r.txt -c b.txt --output mine.json",
        "data ratings --input out/train.jsonl --output out",
        "data ratings --input ratings.jsonl --output mine",
        "average TINY TINY --output TINY",
        "average TINY TINY --output mine",
        "finetune --model TINY --train-file ratings.jsonl --output_dir TINY",
        "finetune --model TINY --train-file ratings.jsonl --output mine --max-steps 1 --eval-steps 1 --save-steps 1",
    ],
)
def test_nothing_of_the_users_is_written_over(run, files, tiny_scorer, command):
    for name in ("out", "mine"):
        (files / name).mkdir()
        (files / name / "README.md").write_text("my notes\n")
    (files / "out" / "train.jsonl").write_text((files / "ratings.jsonl").read_text())
    (files / "mine.json").write_text('{"my": "notes"}\n')
    (files / "b.csv").write_text("candidate\none\ntwo\n")
    before, checkpoint = content(files), content(tiny_scorer)
    arguments = [str(tiny_scorer) if word == "TINY" else word for word in command.split()]
    options = ["--checkpoint", tiny_scorer] if command.startswith(("score", "compare")) else []
    code, err = run(*arguments, *options)
    assert code == 2 and len(err.splitlines()) == 1, err
    assert "is the input" in err or "did not write" in err or "output" in err
    assert content(files) == before and content(tiny_scorer) == checkpoint


def test_scores_go_through_a_pipe(run, files, pipe, tiny_scorer):
    command = ("score", "-r", "r.txt", "-c", "a.txt", "--checkpoint", tiny_scorer)
    for options in ((), ("--json",)):
        run(*command, *options, "--output", "scores")
        assert (
            read_while(pipe, lambda o=options: run(*command, *o, "--output", pipe)) == (files / "scores").read_bytes()
        )
    assert is_stream(pipe)
    assert not [path.name for path in files.iterdir() if path.name.startswith(".pipe")]


@pytest.mark.parametrize("options", [(), ("--json",), ("--system", "A")])
def test_scores_in_a_file_called_gz_are_compressed(run, files, tiny_scorer, options):
    command = ("score", "-r", "r.txt", "-c", "a.txt", "--checkpoint", tiny_scorer, *options)
    for name in ("scores", "scores.gz", "scores.gz"):  # the second time it replaces its own
        code, err = run(*command, "--output", name)
        assert code == 0 and err.startswith("mean ") and err.count("\n") == 1
    assert gzip.decompress((files / "scores.gz").read_bytes()) == (files / "scores").read_bytes()
    (files / "scores.gz").write_bytes(gzip.compress(b"my notes\n"))
    assert "did not write it" in run(*command, "--output", "scores.gz")[1]
    (files / "broken.gz").write_bytes(b"my notes\n")
    assert "did not write it" in run(*command, "--output", "broken.gz")[1]


def test_json_lines_in_a_file_called_gz_are_compressed(files, run):
    for _ in range(2):
        assert run("data", "roles", "--pairs", "4", "--output", "roles.jsonl.gz")[0] == 0
    assert len(gzip.decompress((files / "roles.jsonl.gz").read_bytes()).splitlines()) >= 4


@pytest.mark.parametrize(
    ("options", "name"),
    [
        *[((), name) for name in ("s.csv", "s.json", "s.jsonl", "s.tsv", "s.parquet", "S.CSV.gz", "s.json.gz")],
        *[(("--json",), name) for name in ("s.csv", "s.jsonl", "s.tsv.gz")],
        (("--system", "A"), "s.csv"),
    ],
)
def test_an_output_whose_name_promises_another_format_is_refused(run, files, options, name):
    before = content(files)
    code, err = run("score", "-r", "r.txt", "-c", "a.txt", *options, "--output", name, "--checkpoint", "nowhere")
    assert code == 2 and err.count("\n") == 1 and "name the output" in err and err.endswith(f"found {name}\n")
    assert content(files) == before


def test_a_comparison_goes_through_a_link_and_a_second_run_replaces_its_own(run, files, tiny_scorer):
    (files / "elsewhere").mkdir()
    (files / "out.json").symlink_to("elsewhere/out.json")
    command = ("compare", "-r", "r.txt", "-c", "a.txt", "b.txt", "--checkpoint", tiny_scorer, "--resamples", "20")
    for _ in range(2):
        assert run(*command, "--output", "out.json", "segments.csv")[0] == 0
    assert (files / "out.json").is_symlink()
    assert set(json.loads((files / "elsewhere" / "out.json").read_text())) >= {"systems", "tests"}


def test_ratings_replace_those_of_an_earlier_run_and_foreign_files_when_asked(run, files):
    command = ("data", "ratings", "--input", "ratings.jsonl", "--output")
    assert run(*command, "out")[0] == run(*command, "out", "--seed", "1")[0] == 0
    (files / "mine").mkdir()
    (files / "mine" / "README.md").write_text("my notes\n")
    assert run(*command, "mine")[0] == 2
    assert run(*command, "mine", "--overwrite")[0] == 0
