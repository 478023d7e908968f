"""Same input, same machine: the same scores to the bit, in any process, from any thread."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from bleurt_repro import BleurtScorer

WORDS = "the cat sat on a mat it rains dog good bye hi there stock prices fell".split()
THREADS = 8
# How far scores of one input may differ between machines, as the documents promise; float32.
ACROSS_MACHINES = 1e-4
CODE = """
import json, sys
from bleurt_repro import BleurtScorer
texts = json.loads(sys.stdin.read())
scorer = BleurtScorer(sys.argv[1], device="cpu")
print("SCORES" + json.dumps([score.hex() for score in scorer.score(**texts)]))
"""


def texts(count: int, seed: int = 0) -> dict[str, list[str]]:
    draw = random.Random(seed)
    columns = [[" ".join(draw.choices(WORDS, k=draw.randint(0, 20))) for _ in range(count)] for _ in range(2)]
    return dict(zip(("references", "candidates"), columns, strict=True))


def in_a_process_of_its_own(checkpoint: str, pairs: dict[str, list[str]], **variables: str) -> list[str]:
    """Score elsewhere, under other variables of the environment."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    process = subprocess.run(
        [sys.executable, "-c", CODE, checkpoint],
        input=json.dumps(pairs),
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.split("SCORES")[1])


@pytest.mark.long
@pytest.mark.parametrize("checkpoint", ["tiny", "bleurt-repro-mini"])
def test_two_processes_agree_to_the_bit(checkpoint, tiny_scorer):
    name = str(tiny_scorer) if checkpoint == "tiny" else checkpoint
    pairs = texts(300)
    first, second = (in_a_process_of_its_own(name, pairs, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first == second and len(set(first)) > 200


@pytest.mark.long
@pytest.mark.parametrize(
    "machine",
    [
        {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
        {"ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default"},
        {"OMP_NUM_THREADS": "2"},
    ],
    ids=["AVX2", "SSE4.1", "two threads"],
)
def test_other_instructions_and_threads_stay_within_the_tolerance(machine):
    """What another machine would compute with, as far as this one can be told to."""
    pairs = texts(300)
    scores = BleurtScorer(device="cpu").score(**pairs)
    other_scores = [float.fromhex(score) for score in in_a_process_of_its_own("bleurt-repro-mini", pairs, **machine)]
    largest = max(abs(a - b) for a, b in zip(scores, other_scores, strict=True))
    sys.stdout.write(f"largest difference over {len(scores)} pairs: {largest:.2e}\n")
    assert largest < ACROSS_MACHINES


def test_scoring_again_gives_the_same_bits(tiny_scorer):
    pairs = texts(200)
    scorer = BleurtScorer(str(tiny_scorer), device="cpu")
    first = scorer.score(**pairs)
    scorer.score(**texts(50, seed=1))  # what was scored in between does not matter
    assert scorer.score(**pairs) == first
    assert BleurtScorer(str(tiny_scorer), device="cpu").score(**pairs) == first


def test_one_scorer_under_eight_threads_gives_the_serial_scores(tiny_scorer):
    jobs = [texts(1 + 13 * (n % 7), seed=n) for n in range(32)]
    alone = BleurtScorer(str(tiny_scorer), device="cpu")
    serial = [alone.score(**job) for job in jobs]
    shared = BleurtScorer(str(tiny_scorer), device="cpu")  # new: threads meet while it first lays out its weights
    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(lambda job: shared.score(**job), jobs)) == serial


def test_threads_share_one_cache(tiny_scorer, tmp_path):
    jobs = [texts(20, seed=n % 4) for n in range(24)]
    alone = BleurtScorer(str(tiny_scorer), device="cpu")
    serial = [alone.score(**job) for job in jobs]
    shared = BleurtScorer(str(tiny_scorer), device="cpu", cache=tmp_path)
    with ThreadPoolExecutor(THREADS) as pool:
        for scores, expected in zip(pool.map(lambda job: shared.score(**job), jobs), serial, strict=True):
            assert scores == pytest.approx(expected, abs=1e-5)
