"""Cards of datasets: counted from the files, and of what a folder is."""

from __future__ import annotations

import hashlib

import pytest
from huggingface_hub import DatasetCard

from bleurt_repro.datasets_builders.ratings.export import write_splits
from bleurt_repro.datasets_builders.ratings.wmt import RATING_FEATURES
from bleurt_repro.hub_cards.dataset_card import draw_dataset_card, is_stub
from bleurt_repro.hub_cards.publish import draw_card
from tests.tiny_experiments import rating


@pytest.fixture
def folder(tmp_path):
    rows = {
        "train": [rating(segment=1), rating(segment=2, year=2015), rating(segment=3, lp="fi-en")],
        "test": [rating(segment=4, year=2017)],
    }
    write_splits(rows, RATING_FEATURES, tmp_path / "ratings")
    return tmp_path / "ratings"


def test_counts_hashes_and_columns_are_those_of_the_files(folder):
    card = draw_dataset_card(folder, title="Ratings", license="cc-by-4.0", recipe="bleurt-repro data wmt")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in card.splitlines() if line.startswith("| t")]
    assert rows == [
        ["train", "3", "2015 (1), 2016 (2)", "de-en (2), fi-en (1)"],
        ["test", "1", "2017 (1)", "de-en (1)"],
    ]
    digest = hashlib.sha256((folder / "train.jsonl").read_bytes()).hexdigest()
    assert f"- `train.jsonl`: `{digest}`" in card
    assert all(f"| `{name}`" in card for name in RATING_FEATURES)
    assert "`bleurt-repro data wmt`" in card and "cc-by-4.0." in card
    data = DatasetCard(card).data
    assert (data.license, data.pretty_name, data.size_categories) == ("cc-by-4.0", "Ratings", ["n<1K"])
    assert [item["path"] for item in data.configs[0]["data_files"]] == ["train.jsonl", "test.jsonl"]


def test_what_nobody_said_is_said_to_be_so(folder):
    card = draw_dataset_card(folder)
    assert "Not recorded." in card and "Not stated. Terms of use of the sources: not stated." in card
    assert DatasetCard(card).data.license == "unknown"


def test_only_the_builders_own_card_is_replaced(folder):
    stub = (folder / "README.md").read_text()
    assert is_stub(stub)
    assert not is_stub(draw_dataset_card(folder))
    assert not is_stub(stub + "\nA word of mine.\n")


def test_a_folder_without_the_metadata_of_its_files(tmp_path):
    with pytest.raises(ValueError, match=r"has no README.md that lists its files: write the data with"):
        draw_dataset_card(tmp_path)


def test_the_card_follows_from_what_the_folder_is(folder, tiny_scorer, tmp_path):
    assert draw_card(folder, title="T") == draw_dataset_card(folder, title="T")
    assert "\nlicense: mit\n" in draw_card(tiny_scorer, license="mit")
    with pytest.raises(ValueError, match="the card of a checkpoint takes no --title"):
        draw_card(tiny_scorer, title="T")
    with pytest.raises(ValueError, match="the card of a dataset takes no --results, --domain"):
        draw_card(folder, results=["x"], domain="y")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        draw_card(tmp_path / "none")
