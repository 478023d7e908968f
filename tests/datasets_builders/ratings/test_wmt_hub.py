from __future__ import annotations

import csv

import pytest
from datasets import Dataset

from bleurt_repro.datasets_builders.ratings.wmt import WmtRatings
from bleurt_repro.datasets_builders.ratings.wmt_sources import from_hub_columns, hub_fingerprint, read_hub

COLUMNS = ["lp", "src", "mt", "ref", "score", "raw", "annotators", "domain", "year"]
ROWS = [
    ["de-en", "Guten Tag.", "Good day.", "Hello.", 0.5, 80.0, 3, "news", 2017],
    ["de-en", "Bis bald.", "Bye.", "See you soon.", -0.5, 40.0, 1, "news", 2017],
    ["de-en", "Guten Tag.", "Good tag.", "Hello.", -1.0, 20.0, 1, "news", 2017],
    ["de-en", "Guten Tag.", "Hi.", "Hello.", 0.25, 75.0, 1, "news", 2018],
    ["en-de", "Hello.", "Hallo.", "Guten Tag.", 0.75, 90.0, 2, "news", 2017],
]


@pytest.fixture
def folder(tmp_path):
    """A folder in the form of the dataset: one CSV file, which `load_dataset` opens as it does the Hub's."""
    (tmp_path / "hub").mkdir()
    with open(tmp_path / "hub" / "train.csv", "w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *ROWS])
    return tmp_path / "hub"


def table(rows=ROWS, columns=COLUMNS):
    return Dataset.from_dict(
        {name: list(values) for name, values in zip(columns, zip(*rows, strict=True), strict=True)}
    )


def test_columns_are_renamed_and_segments_numbered(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    ratings = read_hub(str(folder))
    assert [rating["segment_id"] for rating in ratings] == [1, 2, 1, 1, 1]
    assert ratings[2] == {
        "year": 2017,
        "lp": "de-en",
        "segment_id": 1,
        "system": None,
        "source": "Guten Tag.",
        "reference": "Hello.",
        "candidate": "Good tag.",
        "score": -1.0,
        "raw_score": 20.0,
        "n_annotations": 1,
    }


def test_the_builder_reads_it(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    builder = WmtRatings("2018", hub_dataset=str(folder), validation_ratio=0.4)
    with pytest.warns(UserWarning, match="no ratings of 2015, 2016"):
        splits = builder.splits()
    assert {name: len(rows) for name, rows in splits.items()} == {"train": 2, "validation": 1, "test": 1}
    before = hub_fingerprint(str(folder))
    (folder / "train.csv").write_text((folder / "train.csv").read_text() + "de-en,Ja.,Yes.,Yes.,1,99,1,news,2018\n")
    assert hub_fingerprint(str(folder)) != before


def test_an_empty_output_stays_and_a_missing_reference_goes():
    rows = [ROWS[0], [*ROWS[1][:2], None, *ROWS[1][3:]], [*ROWS[2][:3], None, *ROWS[2][4:]]]
    with pytest.warns(UserWarning, match="left out 1 ratings without a reference"):
        assert [rating["candidate"] for rating in from_hub_columns(table(rows))] == ["Good day.", ""]


def test_language_pairs_are_chosen_and_rows_keep_their_number():
    assert [rating["lp"] for rating in from_hub_columns(table(), lambda lp: lp == "en-de")] == ["en-de"]
    with pytest.raises(ValueError, match="row 5 of the dataset: score is missing"):
        from_hub_columns(table([*ROWS[:4], [*ROWS[4][:4], None, *ROWS[4][5:]]]), lambda lp: lp == "en-de")


def test_wrong_columns_and_values_are_named():
    with pytest.raises(ValueError, match=r"no column raw in the dataset: looked for lp, src, .*found lp, src"):
        from_hub_columns(table().remove_columns("raw"))
    with pytest.raises(ValueError, match="row 2 of the dataset: score is missing"):
        from_hub_columns(table([ROWS[0], [*ROWS[1][:4], None, *ROWS[1][5:]]]))


def test_the_error_says_what_was_looked_for(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="looked for the dataset .*none, revision v2, with the columns lp.* or year, lp"
    ):
        read_hub(str(tmp_path / "none"), "v2")
