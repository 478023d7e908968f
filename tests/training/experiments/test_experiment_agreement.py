"""The agreement experiment on files whose figures can be computed by hand."""

from __future__ import annotations

import dataclasses
import json
import shutil

import numpy as np
import pytest
from sacrebleu.metrics import CHRF
from typer.testing import CliRunner

from bleurt_repro.cli import app
from bleurt_repro.training.experiments.agreement import (
    YARDSTICK_MEASURES,
    AgreementOptions,
    draw_table,
    run_agreement,
)
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.metrics.rows import Texts, score_texts
from bleurt_repro.training.metrics.samples import read_ratings
from bleurt_repro.training.metrics.statistics import williams_test
from bleurt_repro.training.training_references import TrainingReferences
from tests.tiny_experiments import CANDIDATES, REFERENCE, write_ratings

# chrF++ ranks these from worst to best


METRIC_NAMES = {item.name for item in dataclasses.fields(MetricOptions)}


def run(output, **settings):
    """Run the experiment with settings of either kind by name."""
    metrics = {name: settings.pop(name) for name in METRIC_NAMES & set(settings)}
    return run_agreement(AgreementOptions(str(output), **settings), MetricOptions(**metrics))


def test_tau_by_hand(tmp_path):
    ratings = write_ratings(tmp_path / "ratings.jsonl", [1, 0, 3, 2])  # 4 concordant pairs of 6
    results = run(tmp_path / "out", ratings=ratings, baselines=["chrf++"], resamples=0)
    (row,) = results["rows"]
    assert row["groups"]["de-en"]["kendall_tau"] == {"value": pytest.approx(1 / 3), "low": None, "high": None, "n": 4}
    assert row["signature"].startswith("CHRF|nrefs:1|case:mixed|eff:yes|nc:6|nw:2")


def test_groups_count_once_in_the_average(tmp_path):
    ratings = tmp_path / "ratings.jsonl"
    one = write_ratings(tmp_path / "a.jsonl", [0, 1, 2, 3])
    other = write_ratings(tmp_path / "b.jsonl", [3, 2, 1, 0], pairs=("fi-en",))
    ratings.write_text(open(one).read() + "\n" + open(one).read() + "\n" + open(other).read())
    row = run(tmp_path, ratings=str(ratings), baselines=["chrf++"], resamples=0)["rows"][0]
    assert [row["groups"][lp]["kendall_tau"]["value"] for lp in ("de-en", "fi-en")] == pytest.approx([1, -1])
    assert row["average"]["kendall_tau"] == pytest.approx(0)


def test_darr_by_hand_with_a_tie_as_discordant(tmp_path):
    pairs = [(3, 0), (2, 3), (1, 1), (3, 2)]  # right, wrong, tie, right
    records = [
        {"reference": REFERENCE, "candidate_better": CANDIDATES[a], "candidate_worse": CANDIDATES[b]} for a, b in pairs
    ]
    path = tmp_path / "ranks.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    row = run(tmp_path, relative_ranks=str(path), baselines=["chrf++"], resamples=0)["rows"][0]
    assert row["groups"]["all"]["darr"]["value"] == pytest.approx(0)


def test_checkpoints_and_baselines_stand_in_one_table(tmp_path, tiny_scorer):
    ratings = write_ratings(tmp_path / "ratings.jsonl", [0, 1, 2, 3], pairs=("de-en", "fi-en"))
    results = run(
        output=tmp_path / "out",
        ratings=ratings,
        checkpoint=[str(tiny_scorer)],
        baselines=["sentbleu", "bleu"],
        resamples=50,
    )
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == results
    table = (tmp_path / "out" / "table.md").read_text()
    assert table == draw_table(results)
    assert "| sentbleu" in table and "fi-en" in table and "average" in table
    assert results["rows"][0]["signature"].startswith("checkpoint:tiny|hash:")
    assert results["data"]["records"] == 8


def test_an_overlap_with_training_references_is_said(tmp_path, tiny_scorer):
    ratings = write_ratings(tmp_path / "ratings.jsonl", [0, 1, 2, 3])
    seen = shutil.copytree(tiny_scorer, tmp_path / "seen")
    TrainingReferences.from_texts([REFERENCE.upper(), "another"]).write(seen)
    unseen = shutil.copytree(tiny_scorer, tmp_path / "unseen")
    TrainingReferences.from_texts(["another"]).write(unseen)
    unknown = str(tiny_scorer)
    with pytest.warns(
        UserWarning, match="seen was fine-tuned on 1 of the 1 different references .*measure it on other"
    ):
        checkpoints = [str(seen), str(unseen), unknown]
        results = run(tmp_path / "out", ratings=ratings, checkpoint=checkpoints, baselines=["ter"], resamples=0)
    table = (tmp_path / "out" / "table.md").read_text()
    lines = table[table.index("Training references among those measured:") :].splitlines()[1:5]
    assert lines == [
        "- seen: **1 of 1; its agreement is too high**",
        "- unseen: none of 1",
        "- tiny: training references unknown",
        "",
    ]
    assert [row.get("training_references") for row in results["rows"]] == [
        {"references": 1, "seen": 1}, {"references": 1, "seen": 0}, None, None,
    ]  # fmt: skip


def test_checkpoints_score_in_the_precision_that_is_asked_for(tmp_path, tiny_scorer):
    ratings = write_ratings(tmp_path / "ratings.jsonl", [0, 1, 2, 3])
    words = ["experiment", "agreement", "--ratings", ratings, "--checkpoint", str(tiny_scorer), "--resamples", "0"]
    for dtype in ([], ["--dtype", "bfloat16"]):
        assert CliRunner().invoke(app, [*words, *dtype, "--output", str(tmp_path / "out")]).exit_code == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert "bfloat16" in results["rows"][0]["signature"] and "--dtype bfloat16" in results["command"]
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 2  # one precision is no cell for the other


def test_scores_of_earlier_runs_are_read_from_the_cache_and_the_command_does_not_name_it(tmp_path, tiny_scorer):
    from bleurt_repro.metric.forward.pairs import PairScorer

    ratings = write_ratings(tmp_path / "ratings.jsonl", [0, 1, 2, 3])
    settings = {"ratings": ratings, "checkpoint": [str(tiny_scorer)], "resamples": 0}
    without = run(tmp_path / "without", **settings)
    first = run(tmp_path / "first", **settings, cache=str(tmp_path / "cache"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PairScorer, "_score_encoded", lambda *_, **__: pytest.fail("scored again"))
        second = run(tmp_path / "second", **settings, cache=str(tmp_path / "cache"))
    assert without["rows"] == first["rows"] == second["rows"]
    assert without["command"] == first["command"]
    without_cells, first_cells = (
        sorted(c.name for c in (tmp_path / out / "cells").iterdir()) for out in ("without", "first")
    )
    assert without_cells == first_cells  # a run with a cache resumes one without it


def test_equal_items_are_scored_once(tiny_scorer, monkeypatch):
    from bleurt_repro.metric.scorer import BleurtScorer

    seen = []
    compute = BleurtScorer.compute
    monkeypatch.setattr(
        BleurtScorer, "compute", lambda self, **columns: seen.append(columns) or compute(self, **columns)
    )
    texts = Texts([REFERENCE] * 3, [CANDIDATES[0], CANDIDATES[1], CANDIDATES[0]])
    scores = score_texts(str(tiny_scorer), texts, {})["scores"]
    assert seen == [{"candidates": CANDIDATES[:2], "references": [REFERENCE] * 2}]
    assert scores[0] == scores[2] != scores[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baselines": ["chrf++"]}, "either a file of ratings or a file of relative ranks"),
        ({"ratings": "x", "relative_ranks": "y", "baselines": ["chrf++"]}, "either a file of ratings or"),
        ({"ratings": "x"}, "name at least one checkpoint or baseline"),
        ({"ratings": "x", "baselines": ["bleurgh"]}, "unknown baseline bleurgh: available are sentbleu, bleu, chrf"),
    ],
)
def test_what_cannot_be_measured(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(tmp_path, **options)


def test_ratings_without_variance_are_refused(tmp_path):
    ratings = write_ratings(tmp_path / "ratings.jsonl", [1, 1, 1, 1])
    with pytest.raises(ValueError, match="all 4 ratings of group de-en are 1: without variance"):
        run(tmp_path, ratings=ratings, baselines=["chrf++"])


def test_a_measure_that_is_undefined_for_one_metric_is_left_out_with_a_warning(tmp_path):
    rows = [(reference, candidate) for reference in (REFERENCE, "A dog.") for candidate in CANDIDATES]
    records = [
        {"reference": reference, "candidate": candidate, "score": score, "system": str(score), "lp": "de-en"}
        for score, (reference, candidate) in enumerate(rows)
    ]
    ratings = tmp_path / "ratings.jsonl"
    ratings.write_text("\n".join(map(json.dumps, records)))
    measures = ["kendall_tau", "kendall_by_item"]
    with pytest.warns(UserWarning, match=r"brevity, kendall_by_item of de-en: .*The tables leave this figure out"):
        results = run(tmp_path, ratings=str(ratings), baselines=["brevity", "chrf++"], measures=measures)
    averages = {row["name"]: row["average"] for row in results["rows"]}
    assert set(averages["chrf++"]) == set(measures) and set(averages["brevity"]) == {"kendall_tau"}
    with pytest.raises(ValueError, match="brevity, kendall_by_item of de-en: kendall_by_item is undefined"):
        run(tmp_path, ratings=str(ratings), baselines=["brevity"], measures=measures)


def test_a_file_of_ranks_without_its_columns(tmp_path):
    path = tmp_path / "ranks.jsonl"
    path.write_text(json.dumps({"reference": "r", "candidate_better": "b"}))
    with pytest.raises(
        ValueError, match=r"ranks\.jsonl has no column candidate_worse; found reference, candidate_better"
    ):
        run(tmp_path, relative_ranks=str(path), baselines=["chrf++"])


def test_the_command_line_takes_lists_and_hyphens(tmp_path):
    records = [
        {"reference": REFERENCE, "candidate_better": CANDIDATES[a], "candidate_worse": CANDIDATES[b], "topic": topic}
        for a, b, topic in ((3, 0, "x"), (3, 1, "x"), (2, 3, "y"), (1, 1, "y"))
    ]
    (tmp_path / "ranks.jsonl").write_text("\n".join(map(json.dumps, records)))
    words = ["experiment", "agreement", "--relative-ranks", str(tmp_path / "ranks.jsonl"), "--by", "topic"]
    words += ["--baselines", "chrf++", "length_ratio", "--resamples", "0", "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "| chrf++       | 100.0 | -100.0 | 0.0       |" in result.output
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["command"].endswith("--baselines chrf++ length_ratio --resamples 0 --output OUT")


def test_scores_from_a_file_stand_beside_the_others_and_are_tested_against_them(tmp_path):
    ratings = write_ratings(tmp_path / "ratings.jsonl", [0, 1, 2, 3])
    (tmp_path / "scores.txt").write_text("3\n2\n1\n0\n")
    files = [f"backwards={tmp_path / 'scores.txt'}"]
    results = run(tmp_path / "out", ratings=ratings, baselines=["chrf++"], score_files=files, resamples=20)
    assert [(row["name"], row["average"]["kendall_tau"]) for row in results["rows"]] == [
        ("chrf++", pytest.approx(1)), ("backwards", pytest.approx(-1)),
    ]  # fmt: skip
    tau, pearson = results["comparisons"]
    assert (tau["first"], tau["second"], tau["difference"]) == ("chrf++", "backwards", pytest.approx(2))
    chrf = [CHRF(word_order=2).sentence_score(candidate, [REFERENCE]).score for candidate in CANDIDATES]
    r = np.corrcoef([[0, 1, 2, 3], chrf, [3, 2, 1, 0]])
    t, p = williams_test(r[0, 1], r[0, 2], r[1, 2], 4)
    assert pearson["williams"]["de-en"] == {"t": pytest.approx(t), "p": pytest.approx(p)}
    assert 0 < p < 0.5 < t
    assert "chrf++ over backwards" in (tmp_path / "out" / "comparisons.md").read_text()


def test_two_rows_of_one_name_are_refused(tmp_path):
    ratings = write_ratings(tmp_path / "ratings.jsonl", [0, 1, 2, 3])
    with pytest.raises(ValueError, match="two rows are called bleu"):
        run(tmp_path / "out", ratings=ratings, baselines=["bleu", "bleu"])


def test_duplicates_are_averaged_where_asked(tmp_path):
    path = tmp_path / "ratings.jsonl"
    scores = [0, 2, 5]
    records = [{"lp": "de-en", "reference": "r", "candidate": "c", "score": score} for score in scores[:2]]
    records.append({"lp": "de-en", "reference": "r", "candidate": "d", "score": scores[2]})
    path.write_text("\n".join(map(json.dumps, records)))
    table = read_ratings(path, "lp", average_duplicates=True)
    assert table[["candidate", "score"]].to_numpy().tolist() == [["c", 1.0], ["d", 5.0]]
    assert len(read_ratings(path, "lp")) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "topic"}, "no record has a topic to group by: name another column"),
        ({"by": "year"}, "no record has a year to group by"),  # a column of all ratings, empty here
        ({"published": 1999}, "published must be one of 2017, 2018, 2019, or 0, found 1999"),
        ({"resamples": -3}, r"resamples must be 0 \(none\) or more, found -3"),
        ({"permutations": -1}, r"permutations must be 0 \(none\) or more, found -1"),
    ],
)
def test_settings_that_fit_nothing_are_refused(tmp_path, settings, message):
    ratings = write_ratings(tmp_path / "ratings.jsonl", [0, 1, 2, 3])
    with pytest.raises(ValueError, match=message):
        run(tmp_path / "out", ratings=ratings, baselines=["chrf++"], **settings)
    assert not (tmp_path / "out").exists()


def test_ranks_without_the_column_to_group_by_are_refused(tmp_path):
    path = tmp_path / "ranks.jsonl"
    path.write_text(json.dumps({"reference": "a b", "candidate_better": "a", "candidate_worse": "b"}))
    with pytest.raises(ValueError, match="no record has a topic to group by"):
        run(tmp_path / "out", relative_ranks=str(path), by="topic", baselines=["chrf++"])


def write_mqm(folder, lp):
    """Write expert ratings of two systems for four segments, as a file that has the rows already."""
    # In the test half, segments 3 and 4, system A is better in one segment, and B in the other, by less.
    cells = {1: (0, 1), 2: (1, 0), 3: (3, 0), 4: (1, 2)}
    rows = [
        {"year": 2021, "lp": lp, "segment_id": segment, "system": system, "source": f"source {segment}",
         "reference": REFERENCE, "candidate": CANDIDATES[quality], "score": quality}
        for segment, qualities in cells.items() for system, quality in zip("AB", qualities, strict=True)
    ]  # fmt: skip
    path = folder / "mqm.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("name", "segments", "lp", "title"),
    [
        ("mqm21", {3, 4}, "zh-en", "MQM 2021, Chinese to English"),
        ("mqm21-dev", {1, 2}, "zh-en", "MQM 2021, Chinese to English"),
        ("mqm21-en-de", {3, 4}, "en-de", "MQM 2021, English to German"),
    ],
)
def test_a_name_stands_for_public_ratings_and_measures(tmp_path, name, segments, lp, title):
    path = write_mqm(tmp_path, lp)
    results = run(tmp_path / "out", ratings=name, data_dir=str(path), baselines=["chrf++"], resamples=0)
    rows = [json.loads(line) for line in (tmp_path / f"out/ratings/{name}.jsonl").read_text().splitlines()]
    assert {row["segment_id"] for row in rows} == segments
    assert results["title"].startswith(title)
    assert results["command"] == (
        f"bleurt-repro experiment agreement --ratings {name} --baselines chrf++ --resamples 0 --output OUT"
    )
    assert results["data"]["file"] == f"{name}.jsonl"
    assert list(results["rows"][0]["groups"][lp]) == list(YARDSTICK_MEASURES)
    values = results["rows"][0]["average"]
    # chrF++ ranks these candidates as people do; its differences are not theirs, which r and SPA depend on.
    assert [values[measure] for measure in YARDSTICK_MEASURES if measure not in ("pearson_r", "spa")] == [1] * 5


def test_ratings_are_grouped_by_the_length_of_the_reference(tmp_path):
    rows = [
        {"reference": "x" * length, "candidate": f"{length} {score}", "score": score}
        for length in (4, 5, 10, 11, 30, 40)
        for score in (0, 1)
    ]
    path = tmp_path / "ratings.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = read_ratings(path, "length")["length"].value_counts().to_dict()
    assert counts == {"1. up to 5 characters": 4, "2. 6 to 11 characters": 4, "3. over 11 characters": 4}


def test_a_folder_for_ratings_that_are_no_name_is_refused(tmp_path):
    ratings = write_ratings(tmp_path / "ratings.jsonl", [0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"data_dir is for named ratings \(mqm21, .*\), found --ratings .*: leave it"):
        run(tmp_path / "out", ratings=ratings, data_dir="folder", baselines=["chrf++"])
