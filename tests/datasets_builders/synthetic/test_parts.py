"""Parts: whole or absent, checked, and the folder's recipe."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from bleurt_repro.datasets_builders.synthetic.pair_maker import Pair, Unit
from bleurt_repro.datasets_builders.synthetic.parts import PartFiles, to_table

SIGNALS = [{"name": "one", "size": 1}, {"name": "three", "size": 3}]
UNITS = [
    Unit(
        [Pair(0, "a b", "a", "mask_filling_scattered", True)],
        {"one": np.array([[1.5]]), "three": np.array([[1, 2, 3.0]])},
        [],
    ),
    Unit([], {}, []),
    Unit(
        [Pair(1, "c", "", "back_translation_fr", False)],
        {"one": np.array([[2.5]]), "three": np.array([[4, 5, 6.0]])},
        [],
    ),
]
RECIPE = {"fingerprint": "f", "config": {"seed": 0}, "input": {}, "models": {}, "environment": {"numpy": "1"}}


def test_the_table_holds_pairs_and_lists_of_numbers():
    table = to_table(UNITS, SIGNALS)
    assert table.to_pylist() == [
        {
            "segment_id": 0,
            "reference": "a b",
            "candidate": "a",
            "perturbation": "mask_filling_scattered",
            "word_dropping": True,
            "one": [1.5],
            "three": [1.0, 2.0, 3.0],
        },
        {
            "segment_id": 1,
            "reference": "c",
            "candidate": "",
            "perturbation": "back_translation_fr",
            "word_dropping": False,
            "one": [2.5],
            "three": [4.0, 5.0, 6.0],
        },
    ]
    assert to_table([], SIGNALS).num_rows == 0


def test_a_part_counts_only_if_its_bytes_are_those_recorded(tmp_path):
    part_files = PartFiles(tmp_path, "f")
    assert part_files.record(3, 2) is None
    part_files.write(3, to_table(UNITS, SIGNALS), {"segments": 2})
    assert part_files.record(3, 3) is None  # of a set that has grown
    assert part_files.record(3, 2)["segments"] == 2 and part_files.record(3, 2)["pairs"] == 2
    assert pq.read_table(tmp_path / "data" / "part-00003.parquet").num_rows == 2
    assert PartFiles(tmp_path, "other").record(3, 2) is None
    content = part_files.data_file(3).read_bytes()
    part_files.data_file(3).write_bytes(content[:-1])
    assert part_files.record(3, 2) is None
    part_files.data_file(3).write_bytes(content)
    part_files.record_file(3).write_text('{"part"')
    assert part_files.record(3, 2) is None


def test_the_same_pairs_have_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        PartFiles(tmp_path / name, "f").write(0, to_table(UNITS, SIGNALS), {})
    first, second = (PartFiles(tmp_path / name, "f").data_file(0).read_bytes() for name in ("a", "b"))
    assert first == second


def test_a_folder_belongs_to_one_recipe(tmp_path):
    part_files = PartFiles(tmp_path / "out", "f")
    assert part_files.prepare(RECIPE) == []
    assert part_files.prepare(RECIPE) == []
    assert part_files.prepare({**RECIPE, "environment": {"numpy": "2"}}) == ["numpy was 1, is 2"]
    changed = {**RECIPE, "fingerprint": "g", "config": {"seed": 1}}
    with pytest.raises(ValueError, match=r"another recipe \(config.seed differ\): choose a new folder"):
        PartFiles(tmp_path / "out", "g").prepare(changed)


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ValueError, match="is not empty and has no recipe.json: choose a new folder"):
        PartFiles(tmp_path, "f").prepare(RECIPE)
    with pytest.raises(ValueError, match="is not empty"):
        PartFiles(tmp_path / "thesis.tex", "f").prepare(RECIPE)
