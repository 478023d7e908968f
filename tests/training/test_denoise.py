"""Denoising: ranks and their variance by hand, what each method leaves, and the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bleurt_repro.cli import main as run
from bleurt_repro.training.denoise import default_share, denoise, rank_variance
from tests.conftest import make_tiny_scorer


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([[1, 2, 3], [10, 20, 30]], [0, 0, 0]),  # scales do not matter, only ranks
        ([[1, 2, 3], [3, 2, 1]], [0.25, 0, 0.25]),
        ([[1, 1, 3], [1, 2, 3]], [0.015625, 0.015625, 0]),  # ties share a rank
        ([[1, 2, 3], [3, np.nan, 1]], [0.25, 0, 0.25]),  # scored by one metric alone: nothing to disagree with
    ],
)
def test_rank_variance(scores, expected):
    assert rank_variance(np.array(scores, dtype=float)) == pytest.approx(np.array(expected))


def ratings():
    return [
        {"year": year, "reference": "a", "candidate": str(i), "score": float(i)}
        for year in (2018, 2019)
        for i in range(5)
    ]


# In each year the metrics agree but on items 0 and 4, which they put at opposite ends.
SCORES = [[0, 1, 2, 3, 4] * 2, [4, 1, 2, 3, 0] * 2]
Z = [(i - 2) / np.sqrt(2) for i in range(5)]  # of 0..4


def test_marking_keeps_all_and_standardises_by_year():
    done = denoise(ratings(), SCORES, share=0.4, method="mark", within="year")
    assert [row["score"] for row in done.rows] == pytest.approx(Z * 2)
    assert [row["noisy"] for row in done.rows] == [True, False, False, False, True] * 2
    assert [row["original_score"] for row in done.rows] == [0, 1, 2, 3, 4] * 2
    assert [row["rank_variance"] for row in done.rows] == pytest.approx([0.25, 0, 0, 0, 0.25] * 2)
    assert done.counts == {"ratings": 10, "noisy": 4, "kept": 10}


def test_removing():
    done = denoise(ratings(), SCORES, share=0.4, method="remove")
    assert [(row["year"], row["candidate"]) for row in done.rows] == [
        (year, candidate) for year in (2018, 2019) for candidate in "123"
    ]
    assert [row["score"] for row in done.rows] == pytest.approx([-np.sqrt(1.5), 0, np.sqrt(1.5)] * 2)
    assert done.by_year["2018"] == {"ratings": 5, "noisy": 2, "kept": 3}


def test_rescoring():
    done = denoise(ratings(), SCORES, share=0.4, method="rescore")
    # the two metrics' standardised scores of items 0 and 4 are opposite: their mean is 0
    values = np.array([0, Z[1], 0, Z[3], 0])
    assert [row["score"] for row in done.rows] == pytest.approx((values / values.std()).tolist() * 2)
    assert done.counts == {"ratings": 10, "noisy": 4, "kept": 10}


def test_only_some_years():
    done = denoise(ratings(), SCORES, share=0.4, method="remove", years=[2019], within="year")
    assert done.by_year == {
        "2018": {"ratings": 5, "noisy": 0, "kept": 5},
        "2019": {"ratings": 5, "noisy": 2, "kept": 3},
    }
    assert [row["score"] for row in done.rows[:5]] == pytest.approx(Z)


# In 2018 the metrics agree on the order; in 2019 they put items at opposite ends of the whole data set.
UNEVEN = [[10, 11, 12, 13, 14, 0, 1, 20, 21, 22], [10, 11, 12, 13, 14, 22, 21, 20, 1, 0]]


def test_ranks_within_the_whole_data_set_find_noise_where_it_is():
    done = denoise(ratings(), UNEVEN, share=0.4, method="remove")
    assert done.by_year == {
        "2018": {"ratings": 5, "noisy": 0, "kept": 5},
        "2019": {"ratings": 5, "noisy": 4, "kept": 1},
    }
    by_year = denoise(ratings(), UNEVEN, share=0.4, method="remove", within="year").by_year
    assert {year: found["noisy"] for year, found in by_year.items()} == {"2018": 2, "2019": 2}


def test_the_share_is_of_all_ratings_where_only_some_years_are_suspect():
    # 4 of 10, all of them of the one year; and no more than it has
    assert denoise(ratings(), UNEVEN, share=0.4, years=[2018]).by_year["2018"]["noisy"] == 4
    assert denoise(ratings(), UNEVEN, share=0.9, years=[2018]).counts == {"ratings": 10, "noisy": 5, "kept": 10}


def test_rescored_ratings_are_standardised_by_year():
    done = denoise(ratings(), UNEVEN, share=0.9, method="rescore")
    scores = np.array([row["score"] for row in done.rows]).reshape(2, 5)
    assert scores.mean(axis=1) == pytest.approx([0, 0], abs=1e-9) and scores.std(axis=1) == pytest.approx([1, 1])


@pytest.mark.parametrize(
    ("names", "share"),
    [(["COMET", "BLEURT-20", "ours"], 237 / 247), (["COMET", "ours"], 0.2), (["bleurt"], 0.2), ([], 0.2)],
)
def test_the_paper_share_needs_the_paper_metrics(names, share):
    assert default_share(names) == share


def test_a_metric_without_scores_of_some_items():
    scores = [[*row] for row in SCORES]
    scores.append([np.nan] * 5 + [0, 1, 2, 3, 4])
    done = denoise(ratings(), scores, share=0.4, method="rescore")
    assert np.isfinite([row["score"] for row in done.rows]).all()


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (SCORES[:1], {}, "at least two metrics for each of the 10 ratings"),
        ([row[:3] for row in SCORES], {}, "at least two metrics for each of the 10 ratings"),
        (SCORES, {"share": 1}, "share must be above 0 and below 1, found 1"),
        (SCORES, {"share": 0}, "share must be above 0 and below 1, found 0"),
        (SCORES, {"within": "pair"}, "within dataset or year, found 'pair'"),
        (SCORES, {"method": "drop"}, "method must be one of rescore, remove, mark, found 'drop'"),
    ],
)
def test_what_cannot_be_denoised(scores, options, message):
    with pytest.raises(ValueError, match=message):
        denoise(ratings(), scores, **options)


def test_on_the_command_line(tmp_path, capsys):
    words = "the a cat sat on mat it rains dog not good bye hi there".split()
    rows = [
        {"year": 2018, "reference": f"the {a}", "candidate": f"{b} {a}", "source": "Hi", "score": float(len(b))}
        for a in words[:5]
        for b in words[5:9]
    ]
    (tmp_path / "ratings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "scores.txt").write_text("".join(f"{i}\n" for i in range(20)))
    checkpoints = [
        make_tiny_scorer(tmp_path / "nosrc"),
        make_tiny_scorer(tmp_path / "src", inputs=("source", "candidate", "reference")),
    ]
    command = ["data", "denoise", "--ratings", str(tmp_path / "ratings.jsonl"), "--share", "0.25"]
    command += ["--output", str(tmp_path / "out.jsonl"), "--scores", f"ranks={tmp_path / 'scores.txt'}"]
    for checkpoint in checkpoints:
        command += ["--checkpoint", str(checkpoint)]
    with pytest.raises(SystemExit) as ended:
        run(command)
    assert ended.value.code == 0
    assert "2018: 20 ratings, 5 noisy, 20 kept" in capsys.readouterr().out
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["original_score"] for row in written] == [row["score"] for row in rows]
    assert sum(row["noisy"] for row in written) == 5
    scores = np.array([row["score"] for row in written])
    assert (scores.mean(), scores.std()) == pytest.approx((0, 1), abs=1e-9)
    record = json.loads((tmp_path / "out.jsonl.json").read_text())
    assert list(record["signatures"]) == ["nosrc", "src", "ranks"]
    assert (record["kind"], record["share"], record["within"]) == ("denoise", 0.25, "dataset")
    assert record["command"].startswith("bleurt-repro data denoise --ratings ratings.jsonl --checkpoint nosrc")
    # and it is what fine-tuning reads
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records

    assert [row["score"] for row in rating_records(tmp_path / "out.jsonl")] == scores.tolist()


@pytest.mark.parametrize(("names", "share"), [(("COMET", "BLEURT"), 237 / 247), (("COMET", "ours"), 0.2)])
def test_the_command_line_takes_the_papers_share_where_the_papers_metrics_judge(tmp_path, capsys, names, share):
    rows = [{"year": 2018, "reference": "r", "candidate": "c", "score": float(i)} for i in range(10)]
    (tmp_path / "ratings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--ratings", str(tmp_path / "ratings.jsonl"), "--output", str(tmp_path / "out.jsonl")]
    for name, row in zip(names, SCORES, strict=False):
        (tmp_path / f"{name}.txt").write_text("".join(f"{score}\n" for score in row))
        words += ["--scores", f"{name}={tmp_path / name}.txt"]
    with pytest.raises(SystemExit) as ended:
        run(["data", "denoise", *words])
    assert ended.value.code == 0, capsys.readouterr().err
    assert json.loads((tmp_path / "out.jsonl.json").read_text())["share"] == share


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--output", "out.jsonl"], "at least two metrics: name more with --checkpoint or --scores"),
        (["--output", "out.csv", "--scores", "a=x", "--scores", "b=y"], "must be a .jsonl file, found out.csv"),
    ],
)
def test_the_command_line_says_what_is_wrong(capsys, more, message):
    with pytest.raises(SystemExit) as ended:
        run(["data", "denoise", "--ratings", "x.jsonl", *more])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
