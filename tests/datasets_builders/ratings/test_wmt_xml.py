"""Texts of 2021 and later: ratings count segments of documents sorted by id, and the XML shuffles the documents."""

from __future__ import annotations

import gzip
import json

import pytest

from bleurt_repro.datasets_builders.ratings.wmt import WmtRatings, document_split
from bleurt_repro.datasets_builders.ratings.wmt_archives import index_files, read_archives
from bleurt_repro.datasets_builders.ratings.wmt_xml import XmlTexts
from tests.wmt_xml_files import make_document

# Sorted by id the documents are text_10 (1 segment), text_2 (2), text_30 (1).
DOCUMENTS = {"text_2": ["Eitt.", "Tvö."], "text_30": ["Þrjú."], "text_10": ["Fjögur."]}


def write(folder, scores, documents=DOCUMENTS, test_set="newstest2021", **options):
    (folder / "xml").mkdir(exist_ok=True)
    content = "".join(make_document(name, texts, **options) for name, texts in documents.items())
    xml = f'<?xml version="1.0" encoding="utf-8"?><dataset><collection>{content}</collection></dataset>'
    with gzip.open(folder / f"xml/{test_set}.is-en.all.xml.gz", "wt", encoding="utf-8") as file:
        file.write(xml)
    ratings = folder / f"humaneval/newstest{test_set[-4:]}-toen"
    ratings.mkdir(parents=True)
    lines = ["SYS SID RAW.SCR Z.SCR N ", *scores]
    (ratings / "ad-seg-scores-is-en.csv").write_text("".join(f"{line} \n" for line in lines))
    return folder


@pytest.mark.parametrize("test_set", ["newstest2021", "wmttest2022"])
def test_segments_are_counted_in_documents_sorted_by_id(tmp_path, test_set):
    scores = ["Online-A.0 1 80.5 0.5 2", "Nemo.12 2 70 0.25 1", "Online-A.0 3 60 0 1", "Online-A.0 4 50 -0.5 1"]
    ratings = read_archives(write(tmp_path, scores, test_set=test_set))
    assert [(rating["source"], rating["segment_id"], rating["system"]) for rating in ratings] == [
        ("Fjögur.", 4, "Online-A"),
        ("Eitt.", 1, "NVIDIA-NeMo"),
        ("Tvö.", 2, "Online-A"),
        ("Þrjú.", 3, "Online-A"),
    ]
    assert ratings[0] == {
        "year": int(test_set[-4:]),
        "lp": "is-en",
        "segment_id": 4,
        "system": "Online-A",
        "source": "Fjögur.",
        "reference": "A of Fjögur.",
        "candidate": "Online-A: Fjögur.",
        "score": 0.5,
        "raw_score": 80.5,
        "n_annotations": 2,
    }


def test_without_translator_a_the_first_is_the_reference(tmp_path):
    ratings = read_archives(write(tmp_path, ["Online-A.0 1 80 0.5 2"], translators=("C", "B")))
    assert ratings[0]["reference"] == "B of Fjögur."


def test_segments_without_a_reference_and_rated_references_are_left_out(tmp_path):
    write(tmp_path, ["Online-A.0 1 80 0.5 2", "HUMAN.0 1 80 0.5 2"], translators=())
    with pytest.warns(UserWarning, match="left out 1 ratings without a reference"):
        assert read_archives(tmp_path) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Online-A.0 5 80 0.5 2", "line 2: no segment 5 in newstest2021.is-en.all.xml.gz, which has 4"),
        ("Online-Z.0 1 80 0.5 2", "line 2: no output of Online-Z for line 4"),
    ],
)
def test_a_rating_without_texts_is_named(tmp_path, line, message):
    with pytest.raises(ValueError, match=message):
        read_archives(write(tmp_path, [line]))


def test_an_output_of_some_documents_is_of_those_alone(tmp_path):
    write(tmp_path, [], documents={"b": ["Eitt."]}, systems=("Online-A",))
    (tmp_path / "xml/newstest2021.is-en.all.xml").write_text(
        f"<dataset>{make_document('b', ['Eitt.'], systems=())}{make_document('a', ['Tvö.'], systems=('Late',))}</dataset>"
    )
    (tmp_path / "xml/newstest2021.is-en.all.xml.gz").unlink()
    texts = XmlTexts(index_files(tmp_path), 2021, "is-en")
    assert texts.segment("Late", "1")["candidate"] == "Late: Tvö."
    with pytest.raises(ValueError, match="no output of Late for line 1"):
        texts.segment("Late", "2")


def test_missing_and_malformed_texts_are_named(tmp_path):
    write(tmp_path, ["Online-A.0 1 80 0.5 2"])
    (tmp_path / "xml/newstest2021.is-en.all.xml.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"no file newstest2021.is-en.all.xml, .* document ids of is-en, 2021"):
        read_archives(tmp_path)
    (tmp_path / "xml/newstest2021.is-en.all.xml").write_text("<dataset><doc>")
    with pytest.raises(ValueError, match="newstest2021.is-en.all.xml is not XML"):
        read_archives(tmp_path)


@pytest.mark.parametrize(
    ("file", "lp", "year", "count"),
    [("wmt21_da_to_en.jsonl.gz", "is-en", 2021, 8_903), ("wmt22_da_to_en.jsonl.gz", "ru-en", 2022, 18_776)],
)
def test_all_rows_of_real_files_equal_the_converted_ones(shared_data, file, lp, year, count):
    if not (shared_data / "raw").is_dir():
        pytest.skip("no files of the original repositories")
    names = {"score": "z_score", "n_annotations": "n_annot"}
    columns = ("segment_id", "system", "source", "reference", "candidate", "score", "raw_score", "n_annotations")
    ratings = [row for row in read_archives(shared_data / "raw", lambda pair: pair == lp) if row["year"] == year]
    with gzip.open(shared_data / "ratings" / file, "rt", encoding="utf-8") as lines:
        converted = [row for row in map(json.loads, lines) if row["lp"] == lp]
    assert len(ratings) == len(converted) == count
    actual = sorted(tuple(row[name] for name in columns) for row in ratings)
    expected = sorted(tuple(row[names.get(name, name)] for name in columns) for row in converted)
    assert actual == expected


def test_2022_is_divided_by_document(tmp_path):
    names = [f"{'news_' if n % 2 else ''}d{n}" for n in range(60)]
    splits_of_names = {name: document_split(name) for name in names}
    assert set(splits_of_names.values()) == {"train", "validation", "test"}
    scores = [f"Online-A.1 {number} 50 0.5 1" for number in range(1, 121)]
    write(tmp_path, scores, {name: [f"{name} 1", f"{name} 2"] for name in reversed(names)}, "wmttest2022")
    splits = WmtRatings("2022-by-document", data_dir=tmp_path).splits()
    for split, rows in splits.items():
        assert {row["source"] for row in rows} == {
            f"{name} {n}" for name in names for n in (1, 2) if splits_of_names[name] == split
        }
        for row in rows:
            assert row["domain"] == ("news" if row["source"].startswith("news_") else "unknown")


def test_the_split_of_real_documents_is_that_of_the_converted_file(shared_data, tmp_path):
    if not (shared_data / "raw").is_dir():
        pytest.skip("no files of the original repositories")
    builder = WmtRatings("2022-by-document", data_dir=shared_data / "raw", language_pairs="ru-en")
    with gzip.open(shared_data / "ratings/wmt22_da_to_en.jsonl.gz", "rt", encoding="utf-8") as lines:
        converted = [row for row in map(json.loads, lines) if row["lp"] == "ru-en"]
    names = {"train": "train", "validation": "dev", "test": "test"}
    for split, rows in builder.splits().items():
        columns = ("segment_id", "system", "domain")
        expected = sorted(tuple(row[name] for name in columns) for row in converted if row["split"] == names[split])
        assert sorted(tuple(row[name] for name in columns) for row in rows) == expected
