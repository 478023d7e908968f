"""The Slurm script, with two local processes in the place of two nodes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, make_tiny_scorer
from tests.tiny_training import finetune, options

SCRIPT = ROOT / "recipes" / "train.sbatch"
# Slurm's own commands: srun starts one task a node, scontrol writes the names of the nodes out
SRUN = '#!/bin/bash\n"$@" & first=$!\n"$@" & second=$!\nwait "$first" && wait "$second"\n'
SCONTROL = '#!/bin/bash\n[ "$*" = "show hostnames node[1-2]" ] && printf "127.0.0.1\\n127.0.0.1\\n"\n'


@pytest.fixture
def slurm(tmp_path) -> dict[str, str]:
    """An environment as a job of two nodes has it."""
    commands = tmp_path / "slurm"
    commands.mkdir()
    for name, content in (("srun", SRUN), ("scontrol", SCONTROL)):
        (commands / name).write_text(content)
        (commands / name).chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    job = {"SLURM_NNODES": "2", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[1-2]", "GPUS": "1", "PORT": port}
    path = f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, **job, "PATH": path, "OMP_NUM_THREADS": "1"}


def run(slurm, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(["bash", SCRIPT, *words], env=slurm, capture_output=True, text=True, timeout=300)


@pytest.mark.long
def test_two_nodes_learn_as_one_process(slurm, ratings, tmp_path):
    start = make_tiny_scorer(tmp_path / "start", dropout=0.0)
    few = {
        "--max-steps": "6",
        "--eval-steps": "3",
        "--save-steps": "3",
        "--logging-steps": "1",
        "--disable-tqdm": "true",
    }
    words = options({"--model": str(start)}, ratings, few)
    finetune([*words, "--output-dir", str(tmp_path / "one")])
    for _ in range(2):  # the second time as a job that was queued again after it had ended
        done = run(slurm, "finetune", *words, "--output-dir", str(tmp_path / "two"))
        assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads((tmp_path / name / "results.json").read_text()) for name in ("one", "two")]
    assert [result["settings"]["world_size"] for result in found] == [1, 2]
    one, two = ([entry["loss"] for entry in result["history"] if "loss" in entry] for result in found)
    assert len(one) == 6 and two == pytest.approx(one, abs=1e-4)


def test_a_job_without_a_command_says_what_is_missing(slurm):
    done = run(slurm)
    assert done.returncode != 0 and "give pretrain or finetune, with its options" in done.stderr
