"""Pseudo-labels: triples from parallel text, words dropped from some, labels by checkpoints and files of scores."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main as run
from bleurt_repro.datasets_builders import pseudo_labels
from bleurt_repro.datasets_builders.pseudo_labels import PseudoLabelOptions, make_pseudo_labels
from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
from bleurt_repro.datasets_builders.translator import Translator
from bleurt_repro.metric.files.writing import write_json_lines
from tests.conftest import make_tiny_scorer
from tests.killed import kill_at_every_operation
from tests.tiny_teachers import SENTENCES


@pytest.fixture
def parallel(tmp_path):
    """Twelve pairs with hypotheses; no header."""
    path = tmp_path / "parallel.tsv"
    path.write_text("".join(f"{text}\t{text.lower()}\t{text[:-5]} {i}\n" for i, text in enumerate(SENTENCES)))
    return str(path)


@pytest.fixture(scope="module")
def judges(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judges")
    return (
        str(make_tiny_scorer(folder / "nosrc", max_length=96)),
        str(make_tiny_scorer(folder / "src", inputs=("source", "candidate", "reference"), max_length=96)),
    )


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def z(values):
    return (np.array(values) - np.mean(values)) / np.std(values)


def test_labels_are_the_mean_of_the_teachers_standardised(parallel, judges, tmp_path):
    scores = tmp_path / "comet.txt"
    scores.write_text("".join(f"{i / 7}\n" for i in range(12)))
    options = PseudoLabelOptions(
        parallel, str(tmp_path / "out"), teachers=judges, score_files=(str(scores),), lp="de-en"
    )
    info = make_pseudo_labels(options)
    rows = rating_records(tmp_path / "out" / "train.jsonl")
    texts = {name: [row[name] for row in rows] for name in ("source", "reference", "candidate")}
    nosrc = BleurtScorer(judges[0]).score(references=texts["reference"], candidates=texts["candidate"])
    src = BleurtScorer(judges[1]).score(
        references=texts["reference"], candidates=texts["candidate"], sources=texts["source"]
    )
    expected = z((z(nosrc) + z(src) + z(range(12))) / 3)
    assert [row["score"] for row in rows] == pytest.approx(expected.tolist(), abs=1e-4)
    assert [teacher["name"] for teacher in info["teachers"]] == ["nosrc", "src", "comet.txt"]
    assert [teacher.get("truncated") for teacher in info["teachers"]] == [10, 12, None]  # what read too little is told
    assert {row["lp"] for row in rows} == {"de-en"}
    assert texts["source"] == SENTENCES


def test_words_are_dropped_from_some_hypotheses(parallel, tmp_path):
    info = make_pseudo_labels(PseudoLabelOptions(parallel, str(tmp_path / "out")))
    triples = lines(tmp_path / "out" / "triples.jsonl")
    hypotheses = [f"{text[:-5]} {i}" for i, text in enumerate(SENTENCES)]
    for triple, text in zip(triples, hypotheses, strict=True):
        if triple["word_dropping"]:
            assert set(triple["candidate"].split()) <= set(text.split())
        else:
            assert triple["candidate"] == text
    assert 0 < info["with_dropped_words"] == sum(triple["word_dropping"] for triple in triples) < 12
    assert not (tmp_path / "out" / "train.jsonl").exists()


def test_about_thirty_percent_lose_words(tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text('{"source": "a", "reference": "b", "candidate": "c d e"}\n' * 3000)
    info = make_pseudo_labels(PseudoLabelOptions(str(path), str(tmp_path / "out")))
    assert info["with_dropped_words"] / 3000 == pytest.approx(0.3, abs=0.03)


def test_hypotheses_by_a_translator(tiny_teachers, tmp_path):
    path = tmp_path / "parallel.tsv"
    path.write_text("source\treference\n" + "".join(f"{text}\t{text.lower()}\n" for text in SENTENCES[:3]))
    model = str(tiny_teachers.translator)
    options = PseudoLabelOptions(str(path), str(tmp_path / "out"), translator=model, prefix=">>fr<< ", dropping_rate=0)
    make_pseudo_labels(options)
    triples = lines(tmp_path / "out" / "triples.jsonl")
    assert [triple["candidate"] for triple in triples] == Translator(model).translate(SENTENCES[:3], ">>fr<< ")


def test_a_killed_run_goes_on_and_more_records_are_added(parallel, judges, tmp_path, monkeypatch):
    monkeypatch.setattr(pseudo_labels, "PART_SIZE", 5)
    whole = PseudoLabelOptions(parallel, str(tmp_path / "whole"), teachers=judges[:1])
    make_pseudo_labels(whole)
    batches = []
    score = BleurtScorer.compute_quietly

    def killed(self, **texts):
        batches.append(len(texts["candidates"]))
        if len(batches) == 2:
            raise KeyboardInterrupt
        return score(self, **texts)

    monkeypatch.setattr(BleurtScorer, "compute_quietly", killed)
    options = PseudoLabelOptions(parallel, str(tmp_path / "out"), teachers=judges[:1])
    with pytest.raises(KeyboardInterrupt):
        make_pseudo_labels(options)
    make_pseudo_labels(options)
    assert batches == [5, 5, 5, 2]  # the first part was not scored again
    assert (tmp_path / "out" / "train.jsonl").read_text() == (tmp_path / "whole" / "train.jsonl").read_text()


def test_teachers_and_files_of_scores_can_weigh_more_or_less(parallel, judges, tmp_path):
    scores = tmp_path / "comet.txt"
    scores.write_text("".join(f"{i % 5}\n" for i in range(12)))
    options = {"teachers": judges[:1], "score_files": (str(scores),)}
    make_pseudo_labels(PseudoLabelOptions(parallel, str(tmp_path / "out"), **options, weights=(3.0, 1.0)))
    rows = rating_records(tmp_path / "out" / "train.jsonl")
    teacher = BleurtScorer(judges[0]).score(
        references=[row["reference"] for row in rows], candidates=[row["candidate"] for row in rows]
    )
    expected = z(0.75 * z(teacher) + 0.25 * z([i % 5 for i in range(12)]))
    assert [row["score"] for row in rows] == pytest.approx(expected.tolist(), abs=1e-4)
    for weights in [(1.0,), (1.0, 0.0), (1.0, float("nan"))]:
        with pytest.raises(ValueError, match="expected a weight above 0 for each of 2 teachers and score files"):
            PseudoLabelOptions(parallel, str(tmp_path / "out"), **options, weights=weights)


def test_teachers_in_half_precision_give_nearly_the_same_labels(parallel, judges, tmp_path):
    def labels(name, **options):
        info = make_pseudo_labels(PseudoLabelOptions(parallel, str(tmp_path / name), teachers=judges[:1], **options))
        return info["teachers"][0]["signature"], [
            row["score"] for row in rating_records(tmp_path / name / "train.jsonl")
        ]

    (whole, exact), (half, rounded) = labels("whole"), labels("half", dtype="bfloat16")
    assert "|dtype:float32|" in whole
    assert "|dtype:bfloat16|" in half
    assert rounded != exact
    assert np.corrcoef(rounded, exact)[0, 1] > 0.99
    with pytest.raises(ValueError, match="dtype must be one of"):
        labels("wrong", dtype="float8")


def test_other_data_need_another_folder(parallel, tmp_path):
    make_pseudo_labels(PseudoLabelOptions(parallel, str(tmp_path / "out")))
    with pytest.raises(ValueError, match="has data of another recipe"):
        make_pseudo_labels(PseudoLabelOptions(parallel, str(tmp_path / "out"), seed=1))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not empty and was not started by this command"):
        make_pseudo_labels(PseudoLabelOptions(parallel, str(tmp_path / "other")))


@pytest.mark.parametrize(
    ("content", "message"),
    [("1\n2\n", "finite number for each of 12 triples, found 2"), ("1\nx\n", "line 2: expected a number, found 'x'")],
)
def test_scores_at_fault(parallel, tmp_path, content, message):
    (tmp_path / "s.txt").write_text(content)
    options = PseudoLabelOptions(parallel, str(tmp_path / "out"), score_files=(str(tmp_path / "s.txt"),))
    with pytest.raises(ValueError, match=message):
        make_pseudo_labels(options)


def test_scores_that_do_not_vary(parallel, tmp_path):
    (tmp_path / "s.txt").write_text("1\n" * 12)
    options = PseudoLabelOptions(parallel, str(tmp_path / "out"), score_files=(str(tmp_path / "s.txt"),))
    with pytest.raises(ValueError, match=r"s\.txt must give different scores to the 12 triples"):
        make_pseudo_labels(options)


def test_on_the_command_line(parallel, judges, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run(["data", "pseudo-labels", "--input", parallel, "--output", str(tmp_path / "out"), "--teacher", judges[1]])
    assert ended.value.code == 0
    assert "12 triples, " in capsys.readouterr().out
    assert len(rating_records(tmp_path / "out" / "train.jsonl")) == 12


def test_a_teacher_that_reads_sources_needs_them(judges, tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps({"reference": text, "candidate": text[:-9]}) + "\n" for text in SENTENCES))
    info = make_pseudo_labels(PseudoLabelOptions(str(path), str(tmp_path / "out"), teachers=judges[:1]))
    assert info["triples"] == len(SENTENCES)
    with pytest.raises(ValueError, match="src reads sources: expected one in each record of .*pairs.jsonl"):
        make_pseudo_labels(PseudoLabelOptions(str(path), str(tmp_path / "src"), teachers=judges[1:]))


def test_killed_at_any_operation_labels_and_their_record_are_of_one_run(tmp_path):
    """The labels of one set of weights beside the record of another would be a false record."""
    source, files = tmp_path / "pairs.jsonl", [tmp_path / "a.txt", tmp_path / "b.txt"]
    write_json_lines(source, [{"source": "Ja.", "reference": f"Yes {i}.", "candidate": f"Yes {i}!"} for i in range(5)])
    files[0].write_text("1\n2\n3\n4\n5\n")
    files[1].write_text("1\n5\n2\n4\n3\n")
    folder = tmp_path / "set"

    def make(weight):
        options = {
            "input": str(source),
            "output": str(folder),
            "score_files": tuple(map(str, files)),
            "dropping_rate": 0.0,
        }
        make_pseudo_labels(PseudoLabelOptions(**options, weights=(1.0, weight)), progress=False)
        return {name: (folder / name).read_bytes() for name in ("train.jsonl", "info.json")}

    new, old = make(3.0), make(1.0)
    assert all(old[name] != new[name] for name in old)
    seen = []
    for _ in kill_at_every_operation(lambda: make(3.0)):
        if (folder / "info.json").is_file():  # without it, the folder does not count as finished
            seen.append({name: (folder / name).read_bytes() for name in old})
            assert seen[-1] in (old, new)
        make(1.0)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt", "pairs.jsonl", "set"]
    assert old in seen and new in seen
