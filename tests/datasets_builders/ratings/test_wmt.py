from __future__ import annotations

import json

import pytest

from bleurt_repro.datasets_builders.ratings.rating_files import RATING_COLUMNS
from bleurt_repro.datasets_builders.ratings.wmt import (
    WmtRatings,
    average_duplicate_records,
    records_per_system,
    split_by_year,
)
from tests.real_data import segments, wmt_ratings
from tests.tiny_experiments import rating


def years(*numbers, segments=10):
    return [rating(year, segment) for year in numbers for segment in range(segments)]


def write(folder, ratings, name="ratings.jsonl"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in ratings))
    return folder


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))


@pytest.mark.filterwarnings("ignore:no ratings of 2019")
@pytest.mark.parametrize(
    ("year", "options", "training", "test"),
    [
        ("2017", {}, 5_360, 3_920),
        ("2017", {"average_duplicates": True}, 5_344, 3_920),
        pytest.param("2018", {}, 9_492, 138_199, marks=pytest.mark.long),
        pytest.param("2018", {"one_record_per_system": False}, 9_280, 138_199, marks=pytest.mark.long),
        pytest.param("2019", {}, 147_691, None, marks=pytest.mark.long),
    ],
)
def test_the_sets_have_the_sizes_of_the_paper(shared_data, tmp_path, year, options, training, test):
    folder = shared_data / "wmt"
    if year == "2017":  # the file of 2018 is ten times as large as the others
        folder = tmp_path
        for file in ("wmt15_wmt16_daseg_to_en.jsonl.gz", "wmt17_daseg_to_en.jsonl.gz"):
            (folder / file).symlink_to(shared_data / "wmt" / file)
    splits = split_by_year(wmt_ratings(folder), year, **options)
    assert len(splits["train"]) + len(splits["validation"]) == training
    assert len(splits["validation"]) == round(training * (0.05 if year == "2019" else 0.1))
    assert len(splits.get("test", ())) == (test or 0)
    assert ("test" in splits) == (test is not None)
    assert not segments(splits["train"]) & segments(splits["validation"])


def test_earlier_years_train_and_the_year_tests():
    splits = split_by_year(years(2015, 2016, 2017, 2018), "2017")
    assert {row["year"] for row in splits["train"] + splits["validation"]} == {2015, 2016}
    assert (len(splits["train"]), len(splits["validation"])) == (18, 2)
    assert [row["year"] for row in splits["test"]] == [2017] * 10


def test_all_years_train_without_a_test_set():
    splits = split_by_year(years(2015, 2016), "all", validation_ratio=0.25)
    assert {name: len(rows) for name, rows in splits.items()} == {"train": 15, "validation": 5}


def test_a_year_that_is_missing_is_warned_of():
    with pytest.warns(UserWarning, match="no ratings of 2015: the years of 2017 will lack them"):
        split_by_year(years(2016, 2017), "2017")
    with pytest.warns(UserWarning, match="no ratings of 2017: the test set of 2017 will lack them"):
        assert "test" not in split_by_year(years(2015, 2016), "2017")
    with pytest.raises(ValueError, match=r"no ratings from before 2016 to train on; found the years \[2016\]"):
        split_by_year(years(2016), "2016")


@pytest.mark.parametrize(
    ("system", "systems"),
    [
        ("Rosy.1+online-A.0+NMT-2.35", ["Rosy.1", "online-A.0", "NMT-2.35"]),
        ("Rosy.1", ["Rosy.1"]),
        ("Hybrid_NMT+RBMT.22", ["Hybrid_NMT+RBMT.22"]),
        (None, [None]),
    ],
)
def test_each_system_that_shares_an_output_has_a_record(system, systems):
    assert [row["system"] for row in records_per_system(rating(system=system))] == systems


def test_merged_systems_stay_merged_in_the_test_set():
    ratings = [rating(year, 1, "A.1+B.2") for year in (2015, 2016)]
    splits = split_by_year(ratings, "2016", validation_ratio=0)
    assert [row["system"] for row in splits["train"]] == ["A.1", "B.2"]
    assert [row["system"] for row in splits["test"]] == ["A.1+B.2"]


def test_duplicates_are_averaged():
    same = {"candidate": "the same", "n_annotations": 2}
    ratings = [
        rating(system="A.1", score=1.0, raw_score=80.0, **same),
        rating(segment=2),
        rating(system="B.2", score=0.0, raw_score=None, **same),
        rating(system="A.1", score=0.5, raw_score=60.0, lp="fi-en", **same),
    ]
    first, second, third = average_duplicate_records(ratings)
    assert (first["score"], first["raw_score"], first["n_annotations"], first["system"]) == (0.5, 80.0, 4, "A.1+B.2")
    assert (second, third) == (ratings[1], ratings[3])


def test_the_builder_gives_a_dataset_dict(tmp_path):
    builder = WmtRatings("2017", data_dir=write(tmp_path / "wmt", years(2015, 2016, 2017)))
    builder.download_and_prepare()
    dataset = builder.as_dataset()
    assert {name: rows.num_rows for name, rows in dataset.items()} == {"train": 18, "validation": 2, "test": 10}
    assert dataset["test"].column_names == list(RATING_COLUMNS)
    assert dataset["test"][3] == rating(2017, 3)
    assert next(iter(builder.as_streaming_dataset("test"))) == rating(2017, 0)


def test_the_cache_follows_the_data_and_the_options(tmp_path):
    folder = write(tmp_path / "wmt", years(2015, 2016, 2017))

    def test_rows(**options):
        builder = WmtRatings("2017", data_dir=folder, **options)
        builder.download_and_prepare()
        return builder.as_dataset(split="test").num_rows, builder.as_dataset(split="validation").num_rows

    assert test_rows() == (10, 2)
    assert test_rows(validation_ratio=0.5) == (10, 10)
    write(tmp_path / "wmt", years(2015, 2016, 2017)[:-1])
    assert test_rows() == (9, 2)


def test_language_pairs_are_chosen_by_pattern(tmp_path):
    ratings = [rating(year, n, lp=lp) for year in (2015, 2016) for n, lp in enumerate(["de-en", "fi-en", "en-de"])]
    folder = write(tmp_path / "wmt", ratings)

    def pairs(**options):
        splits = WmtRatings("2016", data_dir=folder, validation_ratio=0, **options).splits()
        return [row["lp"] for row in splits["train"]]

    assert pairs() == ["de-en", "fi-en"]
    assert pairs(language_pairs="de-en") == ["de-en"]
    assert pairs(language_pairs=["en-*", "fi-en"]) == ["fi-en", "en-de"]
    with pytest.raises(ValueError, match=r"no ratings of cs-en in .*wmt; found de-en, en-de, fi-en"):
        pairs(language_pairs=["cs-en"])


def test_an_unknown_year_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'1999' not found. Available: .*'2017'"):
        WmtRatings("1999", data_dir=write(tmp_path / "wmt", years(2015)))
