"""Ratings to train on: read, divided and standardised."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from bleurt_repro.datasets_builders.ratings.training_ratings import rank_indices, read_training_ratings
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.checksums import file_records


def read(train_file, validation_file, layout, **options):
    hashes = [record["sha256"] for record in file_records([path for path in (train_file, validation_file) if path])]
    return read_training_ratings(train_file, validation_file, layout, hashes=hashes, **options)


def write(path, records):
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    return str(path)


def rated(scores, lp=None, side="train"):
    return [{"reference": f"{side} {lp} {i}", "candidate": "a", "score": s, "lp": lp} for i, s in enumerate(scores)]


@pytest.mark.parametrize(
    ("scale", "shift", "standardized"), [(1.0, 0.0, False), (50.0, 25.0, True), (1.0, 2.0, True), (0.01, 0.0, True)]
)
def test_ratings_are_standardised_if_they_are_far_from_it(tmp_path, scale, shift, standardized):
    scores = [scale * (i % 3 - 1) + shift for i in range(30)]
    path = write(tmp_path / "ratings.jsonl", rated(scores))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read(path, None, Layout())
    assert [f"the scores of {path} are far from standardised" in str(warning.message) for warning in caught] == [
        True
    ] * standardized
    train = np.array(data.sides["train"]["score"])
    if not standardized:
        assert data.standardized is None
        assert sorted([*data.sides["train"]["score"], *data.sides["validation"]["score"]]) == sorted(scores)
        return
    assert (train.mean(), train.std()) == (pytest.approx(0, abs=1e-9), pytest.approx(1))
    group = data.standardized["groups"]["all"]
    assert (data.standardized["by"], group["ratings"]) == ("file", len(train))
    # Back on the old scale, the ratings are those of the file, validation's too: one mean and deviation for both.
    back = [s * group["deviation"] + group["mean"] for side in data.sides.values() for s in side["score"]]
    assert sorted(back) == pytest.approx(sorted(scores))


def test_each_language_pair_is_standardised_by_its_own_training_ratings(tmp_path):
    train = rated([10.0, 30.0] * 15, "de-en") + rated([60.0, 100.0] * 15, "zh-en") + rated([50.0] * 3, "fi-en")
    held = [rated([40.0], lp, "held")[0] for lp in ("de-en", "zh-en", "ru-en")]
    held[2]["score"] = 55.0
    files = write(tmp_path / "train.jsonl", train), write(tmp_path / "held.jsonl", held)
    with pytest.warns(UserWarning, match="are standardised now .mean 0, deviation 1 by lp."):
        data = read(*files, Layout())
    assert sorted(set(np.round(data.sides["train"]["score"][:60], 6))) == [-1.0, 1.0]
    # By the mean and deviation of the training ratings of the pair: (40 - 20) / 10 and (40 - 80) / 20
    assert data.sides["validation"]["score"][:2] == pytest.approx([2.0, -2.0])
    # a pair of few ratings, or of none, by those of all
    pooled = data.standardized["groups"]["all others"]
    assert data.sides["validation"]["score"][2] == pytest.approx((55 - pooled["mean"]) / pooled["deviation"])
    assert set(data.standardized["groups"]) == {"de-en", "zh-en", "all others"}
    assert data.standardized["groups"]["zh-en"] == {"mean": 80.0, "deviation": 20.0, "ratings": 30}


def test_ratings_that_are_left_as_they_are(tmp_path):
    scores = [float(i % 100) for i in range(40)]
    path = write(tmp_path / "ratings.jsonl", rated(scores))
    data = read(path, None, Layout(), standardize=False)
    assert data.standardized is None
    assert sorted([*data.sides["train"]["score"], *data.sides["validation"]["score"]]) == scores


def test_ratings_are_kept_on_disk_and_read_anew_when_the_file_changes(tmp_path):
    path = write(tmp_path / "ratings.jsonl", rated([float(i % 3) - 1 for i in range(30)]))
    first = read(path, None, Layout()).sides
    assert all(Path(file["filename"]).stat().st_size for side in first.values() for file in side.cache_files)
    assert first["train"].cache_files and first["validation"].cache_files
    write(tmp_path / "ratings.jsonl", rated([0.5 * (float(i % 3) - 1) for i in range(30)]))
    second = read(path, None, Layout()).sides
    assert max(second["train"]["score"]) == 0.5
    write(tmp_path / "ratings.jsonl", [{"reference": "a", "candidate": "b", "score": "many"}] * 30)
    with pytest.raises(ValueError, match="30 bad record.s.: line 1: score must be a number"):
        read(path, None, Layout())


@pytest.mark.parametrize(
    ("count", "options", "message"),
    [
        (2, {}, r"has 2 rating\(s\), too few to set any apart for validation: at least 20 are needed"),
        (1, {"validation_ratio": 0.5}, "at least 4 are needed with validation_ratio 0.5, or a --validation-file"),
        (1, {"validation_file": True}, r"the train ratings \(1 of .*ratings.jsonl\) must be at least two"),
    ],
)
def test_too_few_ratings(tmp_path, count, options, message):
    options = dict(options)
    path = write(tmp_path / "ratings.jsonl", rated([float(i) for i in range(count)]))
    validation_file = path if options.pop("validation_file", False) else None
    with pytest.raises(ValueError, match=message):
        read(path, validation_file, Layout(), **options)


def test_better_and_worse_ratings_of_a_segment_are_found_by_their_raw_scores(tmp_path):
    rows = [
        {"reference": text, "candidate": f"{text} {raw}", "score": raw / 50 - 1, "raw_score": raw}
        for text, raw in [("a", 10.0), ("b", 90.0), ("a", 40.0), ("b", 70.0), ("a", 35.0), ("b", None)]
        if raw is not None
    ]
    path = write(tmp_path / "ratings.jsonl", rows)
    data = read(path, path, Layout(), with_ranks=True)
    better, worse = data.ranks
    assert (better.tolist(), worse.tolist()) == ([2, 4], [0, 0])  # 90 and 70 are too close
    with pytest.raises(ValueError, match="metric_for_best_model darr needs validation ratings with a raw_score"):
        rank_indices(data.sides["validation"].select([1, 3]), Layout())


def test_kinds_are_put_on_one_scale_and_weighted(tmp_path):
    crowd = rated([0.0, 100.0] * 14 + [900.0, 50.0], "de-en")
    experts = rated([-20.0, 0.0] * 10, "zh-en") + rated([-30.0], "ja-en")
    rows = [
        *({**row, "kind": "crowd", "n_annotations": 1} for row in crowd),
        *({**row, "kind": "expert", "n_annotations": 3, "weight": 2.0} for row in experts),
    ]
    held = [
        {**rated([-10.0], "zh-en", "held")[0], "kind": "expert"},
        {**rated([100.0], "de-en", "held")[0], "kind": "crowd"},
    ]
    files = write(tmp_path / "train.jsonl", rows), write(tmp_path / "held.jsonl", held)
    data = read(*files, Layout())
    assert data.standardized["by"] == "kind and lp"
    assert set(data.standardized["groups"]) == {"crowd de-en", "expert zh-en", "expert"}
    assert data.standardized["groups"]["expert zh-en"] == {"mean": -10.0, "deviation": 10.0, "ratings": 20}
    scores, crowd_scores = np.array(data.sides["train"]["score"]), np.array([row["score"] for row in crowd])
    expected = (crowd_scores - crowd_scores.mean()) / crowd_scores.std()
    assert scores[:30] == pytest.approx(expected.clip(-3, 3)) and scores[28] == 3 < expected[28]
    assert scores[30:50] == pytest.approx([-1, 1] * 10)
    expert_scores = np.array([row["score"] for row in experts])
    assert scores[50] == pytest.approx((-30 - expert_scores.mean()) / expert_scores.std())  # few: by the kind
    assert data.sides["validation"]["score"][0] == pytest.approx(0)
    # n / (n + k), times the weight of the file, with mean 1: 1 / 2, and 2 * 3 / 3.3.
    mean = (30 * 0.5 + 21 * 6 / 3.3) / 51
    assert data.sides["train"]["weight"][:] == pytest.approx([0.5 / mean] * 30 + [6 / 3.3 / mean] * 21)
    assert data.sides["validation"]["weight"][:] == pytest.approx([1 / 1.3 / mean, 0.5 / mean])


def test_a_kind_of_few_ratings_is_named(tmp_path):
    rows = [{**row, "kind": "crowd"} for row in rated([0.0, 1.0] * 20)] + [{**rated([1.0])[0], "kind": "expert"}]
    files = write(tmp_path / "train.jsonl", rows), write(tmp_path / "held.jsonl", rated([0.0, 1.0], side="held"))
    with pytest.raises(ValueError, match="ratings of kind 'expert' cannot be standardised: expected at least 20"):
        read(*files, Layout())


@pytest.mark.parametrize("column", [{}, {"kind": "crowd", "n_annotations": 3}, {"weight": 2.0}])
def test_ratings_of_one_kind_and_weight_stay_as_they_are(tmp_path, column):
    rows = [{**row, **column} for row in rated([-1.0, 0.0, 1.0] * 10, "de-en")]
    data = read(write(tmp_path / "ratings.jsonl", rows), None, Layout())
    assert data.standardized is None and "weight" not in data.sides["train"].column_names
    scores = [*data.sides["train"]["score"], *data.sides["validation"]["score"]]
    assert sorted(scores) == sorted([-1.0, 0.0, 1.0] * 10)


@pytest.mark.parametrize(("weights", "found"), [([1.0, -1.0], "-1 to 1"), ([0.0, 0.0], "0 to 0")])
def test_weights_that_are_none_are_refused(tmp_path, weights, found):
    rows = [{**row, "weight": weight} for row, weight in zip(rated([-1.0, 1.0] * 10), weights * 10, strict=True)]
    held = write(tmp_path / "held.jsonl", rated([0.0, 1.0], side="held"))
    with pytest.raises(ValueError, match=f"must be 0 or more, and some above 0, found {found}"):
        read(write(tmp_path / "ratings.jsonl", rows), held, Layout())
