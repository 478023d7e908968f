"""Rounding to float8 by what the matrices compute: nearer to the model than rounding each number by itself."""

from __future__ import annotations

import json
import runpy
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bleurt_repro import BleurtScorer
from bleurt_repro.training.combine import average_scorers
from tests.conftest import ROOT, make_tiny_scorer
from tests.tiny_teachers import SENTENCES

SCRIPT = runpy.run_path(str(ROOT / "recipes" / "exact_float8.py"))
FLOAT8 = torch.float8_e4m3fn


def on_grid(weights):
    return torch.equal(weights.to(FLOAT8).float(), weights)


def test_the_error_of_a_number_is_made_up_for_by_those_after_it():
    torch.manual_seed(0)
    weights = torch.randn(5, 200) / 10
    hidden = torch.randn(1000, 20)
    inputs = hidden @ torch.randn(20, 200) + 0.1 * torch.randn(1000, 200)  # inputs that go together
    found = SCRIPT["rounded"](weights, inputs.T @ inputs / len(inputs))
    nearest = SCRIPT["in_float8"](weights)
    assert on_grid(found)
    error, of_nearest = (((other - weights) @ inputs.T).norm() for other in (found, nearest))
    assert error < 0.4 * of_nearest
    # where no input tells of another, each number becomes the nearest
    assert torch.equal(SCRIPT["rounded"](weights, torch.eye(200)), nearest)


@pytest.fixture
def pairs(tmp_path):
    rows = [{"reference": a, "candidate": b} for a, b in zip(SENTENCES, SENTENCES[1:] + SENTENCES[:1], strict=True)]
    rows += [{"reference": text, "candidate": text} for text in SENTENCES]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path, rows


def test_a_rounded_checkpoint_scores_nearer_than_the_nearest_numbers_do(tmp_path, pairs):
    path, rows = pairs
    scorer = make_tiny_scorer(tmp_path / "scorer", max_length=128, spread=0.05)
    (scorer / "results.json").write_text('{"kind": "average"}')
    SCRIPT["main"](str(scorer), path, tmp_path / "rounded", number=1000)
    average_scorers([str(tmp_path / "rounded")], tmp_path / "exact", dtype="float8")
    average_scorers([str(scorer)], tmp_path / "nearest", dtype="float8")
    given, exact, nearest = (
        np.array(BleurtScorer(str(tmp_path / name)).score_rows(rows)) for name in ("scorer", "exact", "nearest")
    )
    assert np.abs(exact - given).mean() < 0.7 * np.abs(nearest - given).mean()
    assert json.loads((tmp_path / "rounded" / "results.json").read_text()) == {"kind": "average"}

    before, after, stored = (
        load_file(tmp_path / name / "model.safetensors") for name in ("scorer", "rounded", "exact")
    )
    matrices = {name for name in before if name.endswith("weight") and before[name].dim() == 2}
    inner = {name for name in matrices if "embeddings" not in name}
    assert inner and all(on_grid(after[name]) and stored[name].dtype == FLOAT8 for name in inner)
    assert all(torch.equal(stored[name].float(), after[name]) for name in inner)
    assert all(torch.equal(before[name], after[name]) for name in before if name not in inner)


def test_matrices_in_float8_stay_and_the_draw_decides(tmp_path, pairs, capsys):
    path, _ = pairs
    scorer = make_tiny_scorer(tmp_path / "scorer")
    average_scorers([str(scorer)], tmp_path / "stored", dtype="float8")
    SCRIPT["main"](str(tmp_path / "stored"), path, tmp_path / "again")
    assert "0 matrices" in capsys.readouterr().out
    stored, again = (load_file(tmp_path / name / "model.safetensors") for name in ("stored", "again"))
    assert all(torch.equal(stored[name].float(), again[name]) for name in stored)

    found = []
    for seed in (1, 1, 2):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        SCRIPT["main"](str(scorer), path, tmp_path / "out", number=5, seed=seed)
        found.append(load_file(tmp_path / "out" / "model.safetensors"))
    first, same, other = found
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)
