"""The search over the weights of the groups of signals."""

from __future__ import annotations

import json

import pytest
import yaml

from bleurt_repro.training import pretrain as pretraining
from bleurt_repro.training.pretrain import read_grid
from tests.conftest import make_tiny_scorer
from tests.tiny_training import STEPS, options, pretrain

GAMMAS = {"automatic_metrics": [0, 1], "likelihood": [1]}
TUNING = {"max_steps": 4, "eval_steps": 2, "save_steps": 2, "disable_tqdm": True}


def write_grid(path, **changes):
    path.write_text(yaml.safe_dump({"gammas": GAMMAS, "finetune": {"train_file": "train.jsonl"}} | changes))
    return str(path)


@pytest.mark.long
def test_a_search_goes_on_where_it_was_stopped(pairs, ratings, tmp_path, monkeypatch):
    files = {name: ratings[f"--{name}"] for name in ("train_file", "validation_file")}
    grid = write_grid(tmp_path / "grid.yaml", finetune={**files, **TUNING})
    start, output = make_tiny_scorer(tmp_path / "start", spread=0.05), tmp_path / "search"
    words = {"--grid": grid, "--model": str(start), "--pairs": str(pairs), "--output_dir": str(output)}
    steps = {**STEPS, "--max_steps": "4", "--eval_steps": "2", "--save_steps": "2"}
    tuned, tune = [], pretraining.finetune

    def stop_at_the_second(ratings, arguments):
        tuned.append(arguments.output_dir)
        if len(tuned) == 2:
            raise KeyboardInterrupt
        return tune(ratings, arguments)

    monkeypatch.setattr(pretraining, "finetune", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        pretrain(options(words, steps))
    assert not (output / "grid.json").exists()
    pretrain(options(words, steps))
    assert len(tuned) == 3  # the first combination was not tuned again

    cells = json.loads((output / "grid.json").read_text())["cells"]
    assert [cell["validation"] for cell in cells] == sorted((cell["validation"] for cell in cells), reverse=True)
    assert {cell["gammas"]["automatic_metrics"] for cell in cells} == {0.0, 1.0}
    for cell in cells:
        settings = json.loads((output / cell["folder"] / "pretrained" / "results.json").read_text())["settings"]
        assert settings["gamma_automatic_metrics"] == cell["gammas"]["automatic_metrics"]
        best = json.loads((output / cell["folder"] / "finetuned" / "results.json").read_text())["best"]["value"]
        assert cell["validation"] == best
    assert (output / "grid.md").read_text().count("\n") == 4
    assert (output / "grid.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gammas": {"likelihood": []}}, "each with a list of weights"),
        ({"gammas": {"likelihood": [-1]}}, "weights of likelihood must be numbers of at least 0, found -1"),
        ({"gammas": {"likelihood": [True]}}, "found True"),
        ({"finetune": {}}, "including train_file"),
        ({"finetune": {"train_file": "a", "output_dir": "b"}}, "must not set output_dir"),
        (
            {"gammas": {"likelyhood": [1]}},
            "there is no group likelyhood; the groups are automatic_metrics, likelihood",
        ),
        ({"more": 1}, "must have the keys gammas and finetune, found finetune, gammas, more"),
    ],
)
def test_a_wrong_grid(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_grid(write_grid(tmp_path / "grid.yaml", **changes))


def test_a_weight_that_the_grid_searches(tmp_path):
    words = {
        "--grid": write_grid(tmp_path / "grid.yaml"),
        "--model": "m",
        "--pairs": "p",
        "--gamma_likelihood": "2",
        "--max_steps": "4",
    }
    with pytest.raises(ValueError, match="leave out gamma_likelihood: the grid searches it"):
        pretrain(options(words, {"--output_dir": str(tmp_path / "o")}))


def test_no_grid(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_grid(str(tmp_path / "none.yaml"))
