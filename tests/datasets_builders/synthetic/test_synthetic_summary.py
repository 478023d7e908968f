"""The summary: statistics over all parts, counts, and the logs beside them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.pair_maker import Pair, Unit
from bleurt_repro.datasets_builders.synthetic.parts import PartFiles, to_table
from bleurt_repro.datasets_builders.synthetic.segments import Skipped
from bleurt_repro.datasets_builders.synthetic.summary import Moments, summarise

SIGNAL = {"name": "bleu", "size": 1, "loss": "regression", "group": "automatic_metrics", "values": ["bleu"]}
RECIPE = {
    "fingerprint": "f",
    "config": SyntheticConfig().to_dict(),
    "input": {"name": "in.txt"},
    "models": {"translator en-fr": {"name": "mt", "sha256": "abc", "revision": "r1"}},
    "environment": {},
}


@given(st.lists(st.lists(st.floats(-1e3, 1e3), max_size=20), max_size=6))
def test_moments_of_blocks_are_those_of_the_whole(blocks):
    moments = Moments(1)
    for block in blocks:
        moments.add(np.array(block).reshape(-1, 1))
    whole = np.array([number for block in blocks for number in block])
    assert moments.count == len(whole)
    if len(whole):
        assert moments.mean[0] == pytest.approx(whole.mean(), abs=1e-8)
        assert moments.std[0] == pytest.approx(whole.std(), abs=1e-6)


@pytest.fixture()
def finished(tmp_path):
    part_files = PartFiles(tmp_path, "f")
    rows_by_part = [
        [("a b", "a b", "mask_filling_scattered", False, 100.0), ("a b", "a", "mask_filling_scattered", True, 10.0)],
        [("c d", "e", "back_translation_fr", False, 4.0)],
    ]
    for number, rows in enumerate(rows_by_part):
        pairs = [Pair(number, *row[:4]) for row in rows]
        unit = Unit(pairs, {"bleu": np.array([[row[4]] for row in rows])}, [])
        skipped = [Skipped(7 + number, "back_translation_de: came back blank", "c d").to_dict()]
        facts = {
            "segments": 1,
            "stages": {"bleu": [0.5, len(rows)]},
            "truncated": {"entailment": number},
            "skipped": skipped,
        }
        part_files.write(number, to_table([unit], [SIGNAL]), facts)
    records = [part_files.record(number, 1) for number in range(2)]
    skipped = [Skipped(2, "duplicate of row 1", "a b"), Skipped(4, "duplicate of row 3", "c d")]
    report = summarise(tmp_path, RECIPE, [SIGNAL], records, 6, skipped)
    return tmp_path, report


def test_the_record_has_what_training_needs(finished):
    folder, _ = finished
    info = json.loads((folder / "dataset_info.json").read_text())
    assert info["signals"] == [{**SIGNAL, "mean": [38.0], "std": [pytest.approx(np.std([100, 10, 4]))]}]
    assert (info["pairs"], info["segments"], info["input_rows"]) == (3, 2, 6)
    assert info["config"]["seed"] == 0 and info["models"]["translator en-fr"]["revision"] == "r1"
    assert [entry["file"] for entry in info["parts"]] == ["data/part-00000.parquet", "data/part-00001.parquet"]


def test_counts_means_and_speed(finished):
    _, report = finished
    assert report["counts"] == {
        "back_translation_fr": 1,
        "identical": 1,
        "mask_filling_scattered": 1,
        "mask_filling_scattered+word_dropping": 1,
    }
    assert report["signal_means"]["identical"] == {"bleu": [100.0]}
    assert report["signal_means"]["back_translation_fr"] == {"bleu": [4.0]}
    assert report["stages"] == {"bleu": {"seconds": 1.0, "pairs": 3, "pairs_per_second": 3.0}}
    assert report["truncated"] == {"entailment": 1}
    assert len(report["sampled_rows"]) == 3 and report["sampled_rows"][2]["candidate"] == "e"


def test_every_row_left_out_is_named(finished):
    folder, report = finished
    assert report["skipped"] == {"duplicate": 2, "back_translation_de: came back blank": 2}
    lines = [json.loads(line) for line in (folder / "skipped.jsonl").read_text().splitlines()]
    assert [(line["row"], line["reason"]) for line in lines] == [
        (2, "duplicate of row 1"),
        (4, "duplicate of row 3"),
        (7, "back_translation_de: came back blank"),
        (8, "back_translation_de: came back blank"),
    ]


def test_leftovers_of_killed_processes_are_removed(finished):
    folder, _ = finished
    assert not list(folder.rglob("*.tmp"))
    leftover = folder / "data" / ".part-00001.parquet.77.tmp"
    leftover.write_bytes(b"half")
    records = [PartFiles(folder, "f").record(number, 1) for number in range(2)]
    summarise(folder, RECIPE, [SIGNAL], records, 6, [])
    assert not leftover.exists()
