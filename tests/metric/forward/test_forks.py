"""Forked processes score after the parent has: OpenMP's threads do not survive a fork, and a wait for them never ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

SECONDS = 120
# As documented: one scorer, used before and shared by the processes of `map`. Tests run with one thread, users do not.
PROGRAM = """
import torch
torch.set_num_threads(max(2, torch.get_num_threads()))
from datasets import Dataset
from bleurt_repro import BleurtScorer

scorer = BleurtScorer()
rows = {"reference": ["It rains today.", "The cat sat."] * 8, "candidate": ["It rains.", "A cat sat."] * 8}
dataset = Dataset.from_dict(rows)

def add_scores(batch):
    return {"score": scorer.score(references=batch["reference"], candidates=batch["candidate"])}

here = add_scores(rows)["score"]
there = dataset.map(add_scores, batched=True, num_proc=2, keep_in_memory=True)["score"]
assert max(abs(one - other) for one, other in zip(here, there)) < 1e-5

if child := os.fork():
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
else:
    os._exit(add_scores(rows)["score"] != there)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on POSIX only")
@pytest.mark.long
def test_the_processes_of_map_score_after_the_parent_has(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment |= {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    program = [sys.executable, "-c", f"import os\n{PROGRAM}"]
    process = subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        _, errors = process.communicate(timeout=SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # those that it forked wait, too
    assert process.returncode == 0, errors[-2000:]
