"""FSDP by the configuration that is shipped: layers are sharded one by one, and training gives what one process gives."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bleurt_repro import BleurtScorer
from tests.conftest import ROOT, make_tiny_scorer
from tests.tiny_training import STEPS, finetune, options, pretrain

SCRIPT = ROOT / "tests" / "fsdp_on_cpu.py"
# less than an epoch: its last batch is filled up where processes share it
FEW = {"--max_steps": "4", "--eval_steps": "2", "--save_steps": "2", "--logging_steps": "1", "--learning_rate": "1e-3"}


def run_with_fsdp(command: str, words: list[str]) -> str:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*launcher, str(SCRIPT), command, *words], env=environment, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr[:4000]
    return re.findall("^units: (.*)$", done.stdout, re.M)[0]


def losses(folder: Path, kind: str) -> list[float]:
    history = json.loads((folder / "results.json").read_text())["history"]
    return [entry[kind] for entry in history if kind in entry]


@pytest.fixture
def start(tmp_path):
    return str(make_tiny_scorer(tmp_path / "start", dropout=0.0))


@pytest.mark.long
def test_fine_tuning(start, ratings, tmp_path):
    words = options({"--model": start}, ratings, {**FEW, "--disable_tqdm": "true"})
    finetune([*words, "--output_dir", str(tmp_path / "one")])
    units = run_with_fsdp("finetune", [*words, "--output_dir", str(tmp_path / "two")])
    assert units.split().count("FSDPBertLayer") == 2
    for kind in ("loss", "eval_loss"):
        assert losses(tmp_path / "two", kind) == pytest.approx(losses(tmp_path / "one", kind), abs=1e-4)
    pair = {"references": ["the cat sat on"], "candidates": ["the cat fell on"]}
    one, two = (BleurtScorer(str(tmp_path / name)).score(**pair) for name in ("one", "two"))
    assert two == pytest.approx(one, abs=1e-3)


@pytest.mark.long
def test_pre_training(start, pairs, tmp_path):
    # four of five whole batches
    words = options({"--model": start, "--pairs": str(pairs)}, {**STEPS, **FEW, "--global_batch_size": "4"})
    pretrain([*words, "--output_dir", str(tmp_path / "one")])
    units = run_with_fsdp("pretrain", [*words, "--output_dir", str(tmp_path / "two")])
    assert units.split().count("FSDPBertLayer") == 2
    for kind in ("loss", "loss_rouge", "eval_loss", "eval_loss_rouge"):
        assert losses(tmp_path / "two", kind) == pytest.approx(losses(tmp_path / "one", kind), abs=1e-3)
    assert len(BleurtScorer(str(tmp_path / "two")).score(references=["a cat"], candidates=["a dog"])) == 1
