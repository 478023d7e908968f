"""What `datasets` calls the builders: their cache folders and Parquet files keep their names, wherever their code stands."""

from __future__ import annotations

import json

import pytest

from bleurt_repro.datasets_builders import fingerprints
from bleurt_repro.datasets_builders.ratings.relative_ranks import WmtRelativeRanks
from bleurt_repro.datasets_builders.ratings.webnlg import WebNlgRatings
from bleurt_repro.datasets_builders.ratings.wmt import WmtRatings
from bleurt_repro.datasets_builders.synthetic.builder import SyntheticPairs

RATING = {"lp": "de-en", "segment_id": 1, "system": "A", "source": "Eins", "reference": "One", "candidate": "Two"}


@pytest.fixture
def wmt(tmp_path):
    rows = [{**RATING, "year": year, "score": 0.5, "raw_score": 50.0} for year in (2017, 2018)]
    rows.append({**rows[1], "system": "B", "raw_score": 90.0})
    (tmp_path / "wmt.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "wmt.jsonl"


@pytest.mark.parametrize(("builder", "name"), [(WmtRatings, "wmt_ratings"), (WmtRelativeRanks, "wmt_relative_ranks")])
@pytest.mark.filterwarnings("ignore:no ratings of")
def test_files_and_cache_have_the_name_of_the_data(builder, name, wmt, tmp_path):
    instance = builder("2018", data_dir=wmt, cache_dir=str(tmp_path / "cache"))
    instance.download_and_prepare(str(tmp_path / "out"), file_format="parquet")
    assert instance.name == instance.info.builder_name == name
    assert f"{name}-test.parquet" in {path.name for path in (tmp_path / "out").iterdir()}
    assert f"/cache/{name}/" in builder("2018", data_dir=wmt, cache_dir=str(tmp_path / "cache")).cache_dir


@pytest.mark.filterwarnings("ignore:no ratings of")
def test_every_builder_has_a_version_and_says_what_it_builds(wmt, pairs):
    builders = [
        WmtRatings("2018", data_dir=wmt),
        WmtRelativeRanks("2018", data_dir=wmt),
        WebNlgRatings(),
        SyntheticPairs(data_dir=pairs),
    ]
    for builder in builders:
        info = builder.info
        assert str(info.version) == str(builder.config.version) == "1.1.0"
        assert info.description and info.license and info.homepage.startswith("https://")
        assert info.citation.startswith("@") and "year = " in info.citation


def test_every_builder_has_a_name_of_its_own():
    builders = (WmtRatings, WmtRelativeRanks, WebNlgRatings, SyntheticPairs)
    assert [builder.DATASET_NAME for builder in builders] == [
        "wmt_ratings",
        "wmt_relative_ranks",
        "webnlg_ratings",
        "synthetic_pairs",
    ]


@pytest.mark.parametrize("folder", ["datasets_builders/ratings", "metric/files"])
def test_a_fingerprint_changes_with_the_code_that_reads(monkeypatch, tmp_path, folder):
    package = tmp_path / "package"
    for name in ("datasets_builders/ratings", "metric/files"):
        (package / name).mkdir(parents=True)
        (package / name / "reader.py").write_text("one")
    monkeypatch.setattr(fingerprints, "__file__", str(package / "datasets_builders/fingerprints.py"))
    before = fingerprints.fingerprint([])
    (package / folder / "reader.py").write_text("two")
    assert fingerprints.fingerprint([]) != before
