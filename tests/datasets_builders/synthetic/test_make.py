"""Making synthetic pairs: one command, stopped and started again, by one process or several, on good input and bad."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bleurt_repro.datasets_builders.synthetic import make as module
from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.make import make_synthetic_pairs
from bleurt_repro.datasets_builders.synthetic.pair_maker import PairMaker
from tests.tiny_teachers import SENTENCES

LINES = [*SENTENCES[:8], "...", SENTENCES[0], "word " * 4000]


@pytest.fixture(scope="module")
def config(tiny_teachers):
    recipe = SyntheticConfig(device="cpu", beam_size=1, max_masks=2, unit_segments=2, segments_per_part=4)
    return recipe.with_options(**tiny_teachers.options())


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("input") / "sentences.txt"
    path.write_text("\n".join(LINES))
    return str(path)


@pytest.fixture(scope="module")
def finished(config, text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "pairs"
    return folder, make_synthetic_pairs(text, folder, config)


def contents(folder: Path) -> dict[str, bytes]:
    """What must not depend on how the work was done: the data, its record and the log."""
    files = [*folder.glob("data/*"), folder / "dataset_info.json", folder / "skipped.jsonl"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_whole_of_it(finished):
    folder, report = finished
    assert sorted(path.name for path in folder.glob("data/*")) == [f"part-0000{i}.parquet" for i in range(2)]
    assert report["segments"] == 8 and report["input_rows"] == 11 and report["pairs"] > 16
    assert {key: report["skipped"][key] for key in ("no words", "duplicate", "longer than 600 characters")} == {
        "no words": 1,
        "duplicate": 1,
        "longer than 600 characters": 1,
    }
    assert {*report["stages"]} == {
        "mask_filling",
        "back_translation_de",
        "bleu",
        "rouge",
        "bertscore",
        "back_translation_likelihood",
        "entailment",
        "back_translation_flag",
    }
    assert len((folder / "skipped.jsonl").read_text().splitlines()) == sum(report["skipped"].values())
    assert json.loads((folder / "report.json").read_text()) == report


def test_a_finished_set_is_not_made_again(finished, config, text, monkeypatch):
    folder, _ = finished
    before = contents(folder)
    monkeypatch.setattr(module, "PairMaker", lambda *_: pytest.fail("models were opened"))
    make_synthetic_pairs(text, folder, config)
    assert contents(folder) == before


@pytest.mark.long
def test_shares_of_two_processes_make_the_same_files(finished, config, text, tmp_path):
    assert make_synthetic_pairs(text, tmp_path / "out", config, 2, 1) is None
    assert [path.name for path in (tmp_path / "out").glob("data/*")] == ["part-00001.parquet"]
    assert make_synthetic_pairs(text, tmp_path / "out", config, 2, 0)["pairs"] == finished[1]["pairs"]
    assert contents(tmp_path / "out") == contents(finished[0])


class Killed(BaseException):
    """Stands for SIGKILL: nothing in between catches it."""


@pytest.mark.long
@pytest.mark.parametrize("moment", ["between data and record", "while a unit is made", "while a file is written"])
def test_stopped_at_any_moment_and_started_again(moment, finished, config, text, tmp_path, monkeypatch):
    folder, calls = tmp_path / "out", []

    def die_at(count, original):
        def call(*arguments, **options):
            calls.append(1)
            if len(calls) == count:
                raise Killed
            return original(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        if moment == "while a unit is made":
            patch.setattr(PairMaker, "make", die_at(4, PairMaker.make))
        elif moment == "between data and record":
            patch.setattr(os, "replace", die_at(4, os.replace))  # recipe, data, record, data
        else:
            patch.setattr(os, "fsync", die_at(2, os.fsync))
        with pytest.raises(Killed):
            make_synthetic_pairs(text, folder, config)
    finished_parts = len(list(folder.glob("parts/*.json")))
    units = []
    original = PairMaker.make
    monkeypatch.setattr(PairMaker, "make", lambda *arguments: units.append(1) or original(*arguments))
    make_synthetic_pairs(text, folder, config)
    assert contents(folder) == contents(finished[0])
    assert len(units) == 4 - 2 * finished_parts  # at most the part that was being made is made again


@pytest.mark.long
def test_killed_processes_end_with_the_same_bytes(finished, config, text, tmp_path):
    import yaml

    folder, recipe = tmp_path / "out", tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(config.to_dict()))
    command = [sys.executable, "-m", "bleurt_repro.cli", "data", "synthetic", "--input", text, "--output", str(folder)]
    process = subprocess.Popen([*command, "--config", str(recipe)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 600
    while not list(folder.glob("parts/*.json")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, process.stderr.read().decode()
    assert 1 <= len(list(folder.glob("parts/*.json"))) <= 2
    make_synthetic_pairs(text, folder, config)
    assert contents(folder) == contents(finished[0])


@pytest.mark.long
def test_a_damaged_part_is_made_again(finished, config, text, tmp_path):
    make_synthetic_pairs(text, tmp_path, config, 3, 0)
    path = tmp_path / "data" / "part-00000.parquet"
    path.write_bytes(path.read_bytes()[:100])
    make_synthetic_pairs(text, tmp_path, config)
    assert contents(tmp_path) == contents(finished[0])


@pytest.mark.long
def test_a_set_grows_and_does_not_shrink(finished, config, text, tmp_path):
    small = config.with_options(max_segments=5)  # a whole part of four, and one more
    assert make_synthetic_pairs(text, tmp_path, small)["segments"] == 5
    whole = (tmp_path / "data" / "part-00000.parquet").stat().st_mtime_ns
    make_synthetic_pairs(text, tmp_path, config)
    assert contents(tmp_path) == contents(finished[0])
    assert (tmp_path / "data" / "part-00000.parquet").stat().st_mtime_ns == whole
    with pytest.raises(ValueError, match="a set only grows"):
        make_synthetic_pairs(text, tmp_path, config.with_options(max_segments=4))


def test_another_recipe_or_text_needs_another_folder(finished, config, text, tmp_path):
    folder, _ = finished
    with pytest.raises(ValueError, match="another recipe .config.seed differ."):
        make_synthetic_pairs(text, folder, config.with_options(seed=1))
    other_text = tmp_path / "other.txt"
    other_text.write_text("\n".join(SENTENCES[:4]))
    with pytest.raises(ValueError, match="input.name, input.sha256 differ"):
        make_synthetic_pairs(str(other_text), folder, config)


@pytest.mark.long
def test_a_change_of_versions_is_said(finished, config, text, tmp_path, monkeypatch):
    make_synthetic_pairs(text, tmp_path, config, 3, 0)
    monkeypatch.setattr(module, "_environment", lambda _: {"torch": "0.1"})
    with pytest.warns(UserWarning, match="started in another environment: torch was .*, is 0.1; numbers may differ"):
        make_synthetic_pairs(text, tmp_path, config)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", b"", "empty.txt is empty: expected one text per row"),
        ("words.tsv", b"a\tb\n", "has no column 'text': its first row is 'a', 'b'"),
        ("latin.txt", "caf\xe9 au lait fort\n".encode("latin-1"), "none of its 1 rows is usable: 1 not UTF-8"),
        ("dots.txt", b"... !\n?\n", "none of its 2 rows is usable: 2 no words"),
        ("long.txt", b"word " * 4000 + b".", "none of its 1 rows is usable: 1 longer than 600 characters"),
    ],
)
def test_input_that_is_wrong_is_said_before_models_are_looked_for(name, content, message, tmp_path, capsys):
    from bleurt_repro.cli import main

    (tmp_path / name).write_bytes(content)
    with pytest.raises(SystemExit) as end:
        main(
            [
                "data",
                "synthetic",
                "--input",
                str(tmp_path / name),
                "--output",
                str(tmp_path / "out"),
                "--masked-lm",
                "./no",
            ]
        )
    error = capsys.readouterr().err
    assert end.value.code == 2 and message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--masked-lm", "--translator", "--bertscore-model", "--entailment-model"])
def test_a_missing_model_is_named(option, tiny_teachers, text, tmp_path, capsys):
    from bleurt_repro.cli import main

    options = {f"--{key.replace('_', '-')}": value for key, value in tiny_teachers.options().items()} | {
        option: "./nowhere"
    }
    with pytest.raises(SystemExit) as end:
        main(["data", "synthetic", "--input", text, "--output", str(tmp_path / "out"), *sum(options.items(), ())])
    error = capsys.readouterr().err
    assert end.value.code == 2 and "there is no folder ./nowhere" in error and not (tmp_path / "out").exists()


def test_the_command_prints_the_report(finished, config, text, capsys):
    import yaml

    from bleurt_repro.cli import main

    folder, report = finished
    recipe = folder.parent / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(config.to_dict()))
    with pytest.raises(SystemExit) as end:
        main(["data", "synthetic", "--input", text, "--output", str(folder), "--config", str(recipe)])
    printed = capsys.readouterr().out
    assert end.value.code in (0, None)
    assert f"{report['pairs']} pairs from 8 segments" in printed and "Sampled rows:" in printed


def test_pivots_and_likelihoods_are_chosen_apart_on_the_command_line(config, text, tmp_path, capsys):
    import yaml
    from datasets import load_dataset

    from bleurt_repro.cli import main

    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump({**config.to_dict(), "signals": ["back_translation_likelihood"]}))
    command = ["data", "synthetic", "--input", text, "--config", str(recipe), "--max-segments", "2"]
    with pytest.raises(SystemExit):
        main([*command, "--output", str(tmp_path / "out"), "--pivots", "fr", "de", "--likelihood-pivots", "de"])
    pairs = load_dataset("parquet", data_files=str(tmp_path / "out/data/*.parquet"), split="train")
    back_translations = {name for name in pairs["perturbation"] if name.startswith("back_translation")}
    assert back_translations == {"back_translation_fr", "back_translation_de"}
    assert {len(numbers) for numbers in pairs["back_translation_likelihood"]} == {2}
    with pytest.raises(SystemExit) as end:
        main([*command, "--output", str(tmp_path / "other"), "--pivots", "es"])
    assert end.value.code == 2 and "pivots must be of fr, de, found ['es']" in capsys.readouterr().err
