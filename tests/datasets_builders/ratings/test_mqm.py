"""Expert ratings: scores and texts by line, what is left out, halves, and the split of the converted files."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from bleurt_repro.cli import main
from bleurt_repro.datasets_builders.ratings import downloads, mqm
from bleurt_repro.datasets_builders.ratings.mqm import MqmRatings, read_mqm, split_by_segment
from tests.wmt_xml_files import make_document

SCORES = """system mqm_avg_score seg_id
ref-C\t-0.000000 1
Nemo\tNone 1
Nemo\t-5.000000 2
Nemo\t-0.000000 3
Online-A\tNone 1
Online-A\t-1.100000 2
Online-A\t-25.000000 3
metricsystem1\t-1.000000 3
"""


@pytest.fixture
def folder(tmp_path):
    """Own sentences in the layout of the two repositories; the documents are not sorted by id."""
    sentences = {"b": ["One.", "Two."], "a": ["Three."]}
    documents = "".join(make_document(name, texts, translators=("A", "C")) for name, texts in sentences.items())
    (tmp_path / "xml").mkdir()
    (tmp_path / "xml/newstest2021.en-de.all.xml").write_text(f"<dataset>{documents}</dataset>")
    (tmp_path / "mqm_newstest2021_ende.avg_seg_scores.tsv").write_text(SCORES)
    return tmp_path


def test_scores_are_joined_with_texts_by_line(folder):
    ratings = read_mqm([folder], "en-de")
    assert [(row["system"], row["segment_id"], row["raw_score"], row["source"]) for row in ratings] == [
        ("NVIDIA-NeMo", 2, -5.0, "Two."),
        ("NVIDIA-NeMo", 3, -0.0, "Three."),
        ("Online-A", 2, -1.1, "Two."),
        ("Online-A", 3, -25.0, "Three."),
    ]
    assert ratings[0]["candidate"] == "NVIDIA-NeMo: Two." and ratings[0]["reference"] == "C of Two."
    raw_scores = np.array([-5, 0, -1.1, -25])
    expected = (raw_scores - raw_scores.mean()) / raw_scores.std()
    assert [row["score"] for row in ratings] == pytest.approx(expected.tolist())


def test_the_builder_makes_two_halves(folder, tmp_path):
    builder = MqmRatings("en-de", data_dir=folder, cache_dir=str(tmp_path / "cache"))
    builder.download_and_prepare()
    data = builder.as_dataset()
    assert {name: set(rows["segment_id"]) for name, rows in data.items()} == {"validation": {2}, "test": {3}}
    assert data["test"].to_list() == builder.splits()["test"]
    assert (str(builder.info.version), builder.info.builder_name) == ("1.1.0", "mqm_ratings")
    assert all((builder.info.description, builder.info.license, builder.info.homepage, builder.info.citation))


def test_the_command_writes_the_halves(folder, tmp_path):
    with pytest.raises(SystemExit) as end:
        main(["data", "mqm", "--config-name", "en-de", "--data-dir", str(folder), "--output", str(tmp_path / "out")])
    assert end.value.code == 0
    rows = [json.loads(line) for line in (tmp_path / "out/validation.jsonl").read_text().splitlines()]
    assert [row["system"] for row in rows] == ["NVIDIA-NeMo", "Online-A"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Online-A\t-1", "line 10: expected system, score and segment"),
        ("Online-A\tbad 1", "line 10: expected a number as the score, found 'bad'"),
        ("Online-A\t-1.0 4", "line 10: no output of Online-A for line 4"),
        ("Online-Z\t-1.0 1", "line 10: no output of Online-Z for line 1"),
    ],
)
def test_a_bad_line_is_named(folder, line, message):
    (folder / "mqm_newstest2021_ende.avg_seg_scores.tsv").write_text(f"{SCORES}{line}\n")
    with pytest.raises(ValueError, match=message):
        read_mqm([folder], "en-de")


def test_missing_scores_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file mqm_newstest2021_zhen.avg_seg_scores.tsv in"):
        read_mqm([tmp_path], "zh-en")


def test_without_a_folder_both_repositories_are_asked_for(monkeypatch):
    requested = []
    monkeypatch.setattr(MqmRatings, "download", lambda self, sources: requested.extend(sources) or [])
    with pytest.raises(FileNotFoundError):
        MqmRatings("zh-en").splits()
    assert [source.url.rpartition("/")[2] for source in requested] == [
        "mqm_newstest2021_zhen.avg_seg_scores.tsv",
        "newstest2021.zh-en.all.xml",
    ]
    assert [
        source.url.startswith(base) for source, base in zip(requested, (downloads.MQM, downloads.WMT21), strict=True)
    ]


@pytest.mark.parametrize(("lp", "count"), [("zh-en", 5_200), ("en-de", 4_216)])
def test_splits_and_scores_are_those_of_the_converted_files(shared_data, lp, count):
    file = shared_data / "ratings" / f"wmt21_mqm_{lp}.jsonl.gz"
    if not file.is_file():
        pytest.skip("no converted expert ratings")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(rows) == count
    names = {"dev": "validation", "test": "test"}
    for name, split in split_by_segment(rows).items():
        assert {names[row["split"]] for row in split} == {name}
    scores = mqm.standardise(np.array([row["raw_score"] for row in rows]))
    assert scores.tolist() == pytest.approx([row["z_score"] for row in rows])
