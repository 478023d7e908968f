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


MARKED_ERRORS = """system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\tcomment
Nemo\tt1\t1\t1\tr1\tEins.\tA <v>bad</v> one.\tAccuracy/Mistranslation\tMajor\t
Nemo\tt1\t1\t1\tr1\tEins.\tA bad one<v>.</v>\tFluency/Punctuation\tMinor\t"odd
Nemo\tt1\t1\t1\tr2\tEins.\tA bad one.\tNo-error\tNo-error\t
metricsystem1\tt1\t1\t1\tr1\t<v>Ei</v>ns.\tOne.\tAccuracy/Omission\tminor
metricsystem1\tt1\t1\t1\tr1\tEins.\t<v>O</v>ne.\tStyle/Awkward\tNeutral
refB\tt1\t1\t1\tr1\tEins.\tThe <v>one</v>.\tStyle/Awkward\tMajor
ref\tt1\t1\t1\tr1\tEins.\tPoor.\tNo-error\tNo-error
Nemo\tt1\t2\t2\tr1\tZwei.\tXyz\tNon-translation!\tMajor
ref.B\tt1\t2\t2\tr1\tZwei.\tTwo.\tno-error\tno-error
Nemo\tt1\t3\t3\tr1\tDrei.\tThree.\tNo-error\tNo-error
"""


@pytest.fixture
def marked(tmp_path):
    (tmp_path / "mqm_ted_zhen.tsv").write_text(MARKED_ERRORS)
    return tmp_path


@pytest.mark.filterwarnings("ignore:.*left out 1 outputs without reference B")
def test_marked_errors_are_weighed_and_averaged_over_raters(marked):
    ratings = mqm.read_marked([marked], "ted-zh-en")
    found = [(row["segment_id"], row["system"], row["raw_score"], row["n_annotations"]) for row in ratings]
    # By hand: raters 5 + 0.1 and 0; a minor and a neutral error; no translation.
    assert found == [(1, "Nemo", pytest.approx(-2.55), 2), (1, "metricsystem1", -1.0, 1), (2, "Nemo", -25.0, 1)]
    assert {key: ratings[0][key] for key in ("year", "lp", "source", "reference", "candidate")} == {
        "year": 2021,
        "lp": "zh-en",
        "source": "Eins.",
        "reference": "The one.",
        "candidate": "A bad one.",
    }
    spans = [(span["side"], span["start"], span["end"], span["severity"]) for row in ratings for span in row["spans"]]
    assert spans == [
        ("target", 2, 5, "Major"),
        ("target", 9, 10, "Minor"),
        ("source", 0, 2, "minor"),
        ("target", 0, 1, "Neutral"),
        ("target", None, None, "Major"),
    ]
    assert ratings[0]["candidate"][2:5] == "bad"


def test_outputs_without_the_standard_reference_are_counted(marked):
    with pytest.warns(UserWarning, match=r"mqm_ted_zhen\.tsv: left out 1 outputs without reference B"):
        mqm.read_marked([marked], "ted-zh-en")


def test_the_layout_of_2022_names_segments_otherwise(tmp_path):
    header, *lines = MARKED_ERRORS.replace("refB", "refA").splitlines()
    header = header.replace("doc_id\tseg_id", "docSegId\tglobalSegId")
    path = tmp_path / "mqm_generalMT2022_zhen.tsv"
    path.write_text("\n".join([header, *lines[:6]]) + "\n")
    assert [row["raw_score"] for row in mqm.read_marked([tmp_path], "2022-zh-en")] == pytest.approx([-2.55, -1.0])


@pytest.mark.filterwarnings("ignore:.*left out 1 outputs")
def test_the_builder_keeps_the_spans(marked, tmp_path):
    builder = MqmRatings("ted-zh-en", data_dir=marked, cache_dir=str(tmp_path / "cache"))
    builder.download_and_prepare()
    rows = builder.as_dataset(split="validation").to_list()
    assert rows == builder.splits()["validation"] and len(rows[0]["spans"]) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Nemo\tt1\t3", "line 12: expected system, seg_id, rater"),
        ("Nemo\tt1\t3\t3\tr1\tDrei.\tThree.\tStyle\tbad", "line 12: expected a severity .*, found 'bad'"),
    ],
)
def test_a_bad_line_of_marked_errors_is_named(marked, line, message):
    (marked / "mqm_ted_zhen.tsv").write_text(MARKED_ERRORS + line + "\n")
    with pytest.raises(ValueError, match=message):
        mqm.read_marked([marked], "ted-zh-en")
    (marked / "mqm_ted_zhen.tsv").write_text("system\ttarget\n")
    with pytest.raises(ValueError, match="no column seg_id, rater, source, category, severity; found system, target"):
        mqm.read_marked([marked], "ted-zh-en")


@pytest.mark.parametrize("name", mqm.MARKED)
def test_marked_errors_need_one_file(name):
    [source] = mqm.mqm_sources(name)
    assert source.url == f"{downloads.MQM}/{mqm.MARKED[name][0]}"
    assert name[-5:].replace("-", "") in source.path


def test_a_file_that_has_the_rows_is_split_the_same_way(folder, tmp_path):
    splits = MqmRatings("en-de", data_dir=folder).splits()
    rows = [row for split in splits.values() for row in split]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert MqmRatings("en-de", data_dir=tmp_path / "rows.jsonl").splits() == splits
