"""Agreement as the WMT Metrics task measures it today, against brute force from the definitions, on small and real data."""

from __future__ import annotations

import gzip
import itertools
import json
import math

import numpy as np
import pandas
import pytest
from scipy.stats import kendalltau, pearsonr

from bleurt_repro.training.experiments.agreement import AgreementOptions, main, run_agreement
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.metrics.samples import (
    BY_SEGMENT,
    OF_SYSTEMS,
    SystemSample,
    rating_samples,
    rating_texts,
    raw_score_samples,
    read_ratings,
    segment_numbers,
)
from tests.tiny_experiments import make_ratings

ALL = (*BY_SEGMENT, *OF_SYSTEMS)


def small_table(seed, segments=6, systems="abcd"):
    """Ratings of four systems, with ties, some missing, and one output that two systems share."""
    rng = np.random.default_rng(seed)
    rows = [
        {"lp": "de-en", "source": f"s{i}", "reference": f"r{i}", "system": name, "score": float(rng.integers(0, 4))}
        for i in range(segments)
        for name in systems
        if rng.random() > 0.15
    ]
    rows.append({"lp": "de-en", "source": "s9", "reference": "r9", "system": "a+c", "score": 2.0})
    rows.append({"lp": "de-en", "source": "s9", "reference": "r9", "system": "b", "score": 1.0})
    return pandas.DataFrame(rows)


def expand(table, scores):
    """One row a system: an output that several systems share stands for each of them."""
    rows = []
    for row, score in zip(table.to_dict("records"), scores, strict=True):
        rows += [{**row, "system": name, "metric": score} for name in row["system"].split("+")]
    return rows


def brute_force(measure, rows):
    """Each measure from its definition, by loops over single ratings."""
    by_segment, by_system = {}, {}
    for row in rows:
        by_segment.setdefault((row["source"], row["reference"]), []).append(row)
        by_system.setdefault(row["system"], []).append(row)
    if measure == "acc_eq":
        return best_accuracy(list(by_segment.values()))
    if measure in ("kendall_by_item", "pearson_by_item", "kendall_by_system", "pearson_by_system"):
        groups = by_segment if measure.endswith("item") else by_system
        correlate = kendalltau if measure.startswith("kendall") else pearsonr
        values = []
        for own in groups.values():
            people, metric = [row["score"] for row in own], [row["metric"] for row in own]
            if len(set(people)) > 1 and len(set(metric)) > 1:
                values.append(correlate(metric, people).statistic)
        return np.mean(values)
    people, metric = (
        {name: np.mean([row[column] for row in own]) for name, own in by_system.items()}
        for column in ("score", "metric")
    )
    pairs = list(itertools.combinations(by_system, 2))
    if measure == "system_accuracy":
        return np.mean([np.sign(people[a] - people[b]) == np.sign(metric[a] - metric[b]) for a, b in pairs])
    names = list(by_system)
    correlate = kendalltau if measure == "system_kendall" else pearsonr
    return correlate([metric[name] for name in names], [people[name] for name in names]).statistic


def best_accuracy(groups):
    pairs = [list(itertools.combinations(own, 2)) for own in groups if len(own) > 1]
    differences = {0.0} | {abs(a["metric"] - b["metric"]) for own in pairs for a, b in own}

    def sign(value, epsilon=0.0):
        return 0 if abs(value) <= epsilon else math.copysign(1, value)

    def accuracy(epsilon, own):
        agreed = [sign(a["metric"] - b["metric"], epsilon) == sign(a["score"] - b["score"]) for a, b in own]
        return sum(agreed) / len(own)

    return max(np.mean([accuracy(epsilon, own) for own in pairs]) for epsilon in differences)


@pytest.mark.parametrize("measure", [name for name in ALL if name != "spa"])
@pytest.mark.parametrize("seed", range(5))
def test_small_cases(measure, seed):
    table = small_table(seed)
    scores = np.round(table["score"].to_numpy() + np.random.default_rng(seed).normal(size=len(table)), 1)
    (sample,) = rating_samples(table, "lp", [measure])
    assert sample.compute(scores) == pytest.approx(brute_force(measure, expand(table, scores)), abs=1e-9)


def test_tau_by_length_compares_within_tenths_of_the_lengths():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 60, 300)
    table = pandas.DataFrame(
        {
            "lp": "de-en",
            "source": "s",
            "reference": ["x" * length for length in lengths],
            "score": rng.normal(size=300) - 0.1 * lengths,
        }
    )
    brevity, noisy = -lengths.astype(float), table["score"].to_numpy() + rng.normal(size=300)
    (plain,) = rating_samples(table, "lp", ["kendall_tau"])
    (by_length,) = rating_samples(table, "lp", ["kendall_by_length"])
    edges = [np.quantile(lengths, i / 10) for i in range(1, 10)]
    tenths = [sum(length > edge for edge in edges) for length in lengths]
    people = table["score"].to_numpy()
    for scores in (brevity, noisy):
        values = [
            kendalltau(scores[rows], people[rows]).statistic
            for rows in (np.flatnonzero(np.array(tenths) == number) for number in range(10))
        ]
        assert by_length.compute(scores) == pytest.approx(np.mean(values), abs=1e-9)
    # Length alone agrees with people who rate long texts as worse, but hardly among texts of similar length.
    assert plain.compute(brevity) > 0.6 and by_length.compute(brevity) < 0.2
    assert by_length.compute(noisy) > 0.3
    resampled = by_length.resample(noisy, 100, 0)
    assert np.quantile(resampled, 0.01) < by_length.compute(noisy) < np.quantile(resampled, 0.99)


def exact_spa(rows):
    """Thompson et al. (2024): p-values of all 2^n exchanges of the shared segments of each two systems."""
    tables = {column: {} for column in ("score", "metric")}
    for row in rows:
        for column, table in tables.items():
            table.setdefault(row["system"], {})[row["reference"]] = row[column]

    def p_value(table, a, b):
        shared = sorted(set(table[a]) & set(table[b]))
        difference = np.array([table[a][name] - table[b][name] for name in shared])
        signs = np.array(list(itertools.product((1, -1), repeat=len(shared))))
        return np.mean(signs @ difference >= difference.sum() - 1e-9)

    distances = [
        abs(p_value(tables["score"], a, b) - p_value(tables["metric"], a, b))
        for a, b in itertools.combinations(tables["score"], 2)
    ]
    return 1 - np.mean(distances)


@pytest.mark.parametrize("seed", range(3))
def test_soft_pairwise_accuracy_of_small_cases(seed):
    table = small_table(seed)
    scores = table["score"].to_numpy() + np.random.default_rng(seed).normal(size=len(table))
    (sample,) = rating_samples(table, "lp", ["spa"])
    assert sample.compute(scores) == pytest.approx(exact_spa(expand(table, scores)), abs=0.02)
    assert sample.compute(table["score"].to_numpy()) == 1


@pytest.fixture(scope="module")
def real(shared_data, tmp_path_factory):
    """Ratings of 120 segments of cs-en of 2018, and the scores of a metric that knows nothing but words."""
    from bleurt_repro.datasets_builders.ratings.wmt_sources import read_wmt

    path = tmp_path_factory.mktemp("real") / "cs-en.jsonl"
    with gzip.open(shared_data / "wmt" / "wmt18_da_to_en.jsonl.gz", "rt", encoding="utf-8") as file:
        path.write_text(
            "".join(itertools.islice((line for line in file if '"cs-en"' in line), 1000)), encoding="utf-8"
        )
    rows = read_wmt(path)
    kept = list(dict.fromkeys(row["reference"] for row in rows))[:120]
    table = pandas.DataFrame([row for row in rows if row["reference"] in set(kept)])
    words = [(set(r.split()), set(c.split())) for r, c in zip(table["reference"], table["candidate"], strict=True)]
    return table, np.array([len(r & c) / max(len(r | c), 1) for r, c in words])


@pytest.mark.parametrize("measure", [name for name in ALL if name != "spa"])
def test_real_ratings(real, measure):
    table, scores = real
    (sample,) = rating_samples(table, "lp", [measure])
    rows = expand(table, scores)
    if measure == "acc_eq":  # by brute force on a part: each difference of two scores is a threshold
        few = set(table["reference"].unique()[:25])
        chosen = table["reference"].isin(few).to_numpy()
        (sample,) = rating_samples(table[chosen].reset_index(drop=True), "lp", [measure])
        scores, rows = scores[chosen], [row for row in rows if row["reference"] in few]
    assert len(rows) > 50
    assert sample.compute(scores) == pytest.approx(brute_force(measure, rows), abs=1e-9)


def test_soft_pairwise_accuracy_of_real_ratings(real):
    table, scores = real
    (sample,) = rating_samples(table, "lp", ["spa"])
    rng, rows = np.random.default_rng(7), expand(table, scores)
    systems = {name: {} for name in dict.fromkeys(row["system"] for row in rows)}
    for row in rows:
        systems[row["system"]][row["source"], row["reference"]] = (row["score"], row["metric"])
    distances = []
    for a, b in itertools.combinations(systems.values(), 2):
        shared = [key for key in a if key in b]
        differences = np.array([np.subtract(a[key], b[key]) for key in shared])  # of people, of the metric
        signs = rng.choice([-1, 1], size=(4000, len(shared)))
        p_values = np.mean(signs @ differences >= differences.sum(axis=0) - 1e-9, axis=0)
        distances.append(abs(p_values[0] - p_values[1]))
    assert len(distances) >= 6
    assert sample.compute(scores) == pytest.approx(1 - np.mean(distances), abs=0.015)


def test_records_of_one_source_and_reference_are_one_segment():
    table = pandas.DataFrame(
        {"source": ["x", "x", "y", None, None], "reference": ["a", "a", "a", "a", "b"], "score": range(5)}
    )
    assert segment_numbers(table).tolist() == [0, 0, 1, 2, 3]


def test_intervals_are_of_segments():
    table = small_table(3, segments=40)
    scores = table["score"].to_numpy() + np.random.default_rng(0).normal(size=len(table))
    for measure in ("kendall_tau", "acc_eq", "kendall_by_item", "kendall_by_system", "system_pearson"):
        (sample,) = rating_samples(table, "lp", [measure])
        drawn = sample.resample(scores, 100, 0)
        assert len(drawn) == 100 and drawn.std() > 0
        assert np.quantile(drawn, 0.01) < sample.compute(scores) < np.quantile(drawn, 0.99)
        assert (drawn == sample.resample(scores, 100, 0)).all()
    (sample,) = rating_samples(table, "lp", ["spa"])
    assert isinstance(sample, SystemSample) and len(sample.resample(scores, 100, 0)) == 0


def test_sources_are_those_of_the_ratings_and_none_where_there_is_none():
    rows = [{"reference": "r", "candidate": "c", "source": source, "system": None} for source in ("s", None, math.nan)]
    table = pandas.DataFrame([{**row, "lp": "de-en", "segment_id": i} for i, row in enumerate(rows)])
    texts = rating_texts(table)
    assert (texts.sources, texts.keys) == (["s", None, None], None)


def test_darr_of_raw_scores_compares_scores_with_scores():
    rows = [
        {
            "lp": "de-en",
            "year": 2018,
            "segment_id": i,
            "system": name,
            "raw_score": raw,
            "score": 0.0,
            "source": f"s{i}",
        }
        | {"reference": f"r{i}", "candidate": f"{name} {i}"}
        for i in range(2)
        for name, raw in (("a", 90.0), ("b", 60.0), ("c", 20.0))
    ]
    (sample,) = raw_score_samples(pandas.DataFrame(rows), "lp", 25)
    assert sample.n == 6
    assert sample.compute(np.array([3.0, 2.0, 1.0, 9.0, 8.0, 7.0])) == 1
    assert sample.compute(np.array([3.0, 2.0, 1.0, 7.0, 8.0, 9.0])) == 0
    assert sample.compute(np.array([3.0, 2.0, 1.0, 9.0, 7.0, 8.0])) == pytest.approx(4 / 6)  # five right, one wrong


def test_a_system_of_one_rating_counts():
    rows = [("a", "r0", 1.0), ("a", "r1", 2.0), ("b", "r0", 3.0), ("b", "r1", 2.0), ("c", "r0", 7.0)]
    table = pandas.DataFrame([{"lp": "x", "source": r, "reference": r, "system": s, "score": y} for s, r, y in rows])
    (sample,) = rating_samples(table, "lp", ["system_pearson"])
    scores = np.array([0.0, 1.0, 5.0, 2.0, 4.0])
    assert sample.n == 3
    assert sample.compute(scores) == pytest.approx(pearsonr([0.5, 3.5, 4.0], [1.5, 2.5, 7.0])[0])


def test_a_system_that_no_resampled_segment_has_does_not_count():
    table = small_table(5, segments=30, systems="abcde")
    scores = table["score"].to_numpy() + np.random.default_rng(1).normal(size=len(table))
    (sample,) = rating_samples(table, "lp", ["system_pearson"])
    for number in (0, 2):
        chosen = np.flatnonzero(sample.systems != number)
        means = [
            [values[chosen][sample.systems[chosen] == other].mean() for other in set(sample.systems[chosen])]
            for values in (scores[sample.first], sample.second)
        ]
        assert sample.compute(scores, chosen) == pytest.approx(pearsonr(*means)[0])


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    path = tmp_path_factory.mktemp("ratings") / "ratings.jsonl"
    rows = make_ratings(60, 1, 2018)
    rows = [{**row, "reference": rows[i - i % 2]["reference"]} for i, row in enumerate(rows)]  # of one segment
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.long
def test_the_experiment_with_all_measures(ratings, tmp_path):
    options = AgreementOptions(str(tmp_path), str(ratings), measures=["kendall_tau", *ALL])
    results = run_agreement(options, MetricOptions(baselines=["chrf++", "length_ratio"], resamples=20))
    assert results["measures"] == ["kendall_tau", *ALL]
    row = results["rows"][0]
    assert set(row["average"]) == {"kendall_tau", *ALL}
    assert row["groups"]["cs-en"]["acc_eq"]["epsilon"] >= 0
    assert row["groups"]["cs-en"]["system_pearson"]["n"] == 2  # systems
    table = (tmp_path / "table.md").read_text()
    assert "**SPA, soft pairwise accuracy of systems** x 100, by lp (n = 2, 2)" in table
    assert "| cluster" in table
    assert set(results["clusters"]["acc_eq"]) == {"chrf++", "length_ratio"}
    assert "spa" not in results["clusters"]  # without permutations there is no test of it


def test_permutations_test_every_measure(ratings, tmp_path):
    words = ["--ratings", str(ratings), "--measures", "kendall_tau", "spa", "--permutations", "30", "--resamples", "0"]
    results = main([*words, "--baselines", "chrf++", "length_ratio", "--output", str(tmp_path)])
    assert [test["measure"] for test in results["comparisons"]] == ["kendall_tau", "spa"]
    assert all(0 <= test["permutation_p"] <= 1 for test in results["comparisons"])
    assert set(results["clusters"]) == {"kendall_tau", "spa"}
    assert "PERM-BOTH" in (tmp_path / "comparisons.md").read_text()
    assert "--measures kendall_tau spa" in results["command"] and "--permutations 30" in results["command"]


def test_the_better_metric_is_better_by_permutation_and_the_other_is_not(tmp_path):
    rows = make_ratings(80, 1)
    rng = np.random.default_rng(0)
    for name, noise in (("good", 0.1), ("poor", 5.0)):
        scores = [row["score"] + noise * rng.normal() for row in rows]
        (tmp_path / f"{name}.txt").write_text("".join(f"{score}\n" for score in scores))
    path = tmp_path / "ratings.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = []
    for names in (("good", "poor"), ("poor", "good")):
        files = [f"{name}={tmp_path / name}.txt" for name in names]
        options = AgreementOptions(str(tmp_path / names[0]), str(path), measures=["kendall_tau"])
        results = run_agreement(options, MetricOptions(score_files=files, resamples=0, permutations=200))
        assert [row["name"] for row in results["rows"]] == list(names)
        found += [(test["first"], test["permutation_p"]) for test in results["comparisons"]]
    assert found == [("good", pytest.approx(0, abs=0.02))] * 2  # the better of two rows is tested, in either order


def test_intervals_of_single_rows_are_too_narrow_where_outputs_of_a_segment_are_alike(tmp_path):
    rows = [{**row, "candidate": f"{row['candidate']} {i}"} for row in make_ratings(40, 1) for i in range(8)]
    path = tmp_path / "ratings.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    widths = []
    for resample in ("segments", "rows"):
        options = AgreementOptions(str(tmp_path / resample), str(path), measures=["kendall_tau"])
        results = run_agreement(options, MetricOptions(baselines=["length_ratio"], resamples=100, resample=resample))
        figure = results["rows"][0]["groups"]["de-en"]["kendall_tau"]
        widths.append(figure["high"] - figure["low"])
    assert widths[0] > 1.5 * widths[1]


def test_published_rows_and_who_saw_such_ratings_are_columns_of_the_table(ratings, tmp_path):
    words = ["--ratings", str(ratings), "--measures", "kendall_tau", "--published", "2018", "--resamples", "0"]
    words += ["--baselines", "chrf++", "length_ratio", "--saw-ratings", "chrf++", "--saw-title", "saw ratings of 2018"]
    results = main([*words, "--output", str(tmp_path)])
    lines = (tmp_path / "table.md").read_text().splitlines()
    header = [cell.strip() for cell in lines[2].split("|")]
    place = header.index("saw ratings of 2018")
    saw = {line.split("|")[1].strip(): line.split("|")[place].strip() for line in lines if line.count("|") > place}
    assert saw["chrf++"] == "yes" and saw["length_ratio"] == saw["BERTscore w/ BERT (published)"] == "no"
    published = {row["name"]: row["average"]["kendall_tau"] for row in results["published"]}
    assert (published["BERTscore w/ BERT"], published["BERTscore w/ RoBERTa"]) == (0.31, 0.329)
    assert "saw ratings of 2018" in results["command"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--measures", "comet"], "unknown measures comet: available are kendall_tau"),
        (["--saw-ratings", "x"], "saw_ratings names x, but there is no such row: rows are chrf"),
        (["--resample", "words"], "resample must be segments or rows, found 'words'"),
    ],
)
def test_wrong_settings(ratings, tmp_path, more, message):
    words = ["--ratings", str(ratings), "--baselines", "chrf++", "--resamples", "0", "--output", str(tmp_path)]
    with pytest.raises(ValueError, match=message):
        main([*words, *more])


def test_measures_of_systems_need_systems(tmp_path):
    rows = [{"reference": "r", "candidate": f"c{i}", "score": i} for i in range(4)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(
        ValueError, match="acc_eq needs the column system in each rating, but some ratings of all have none"
    ):
        rating_samples(read_ratings(tmp_path / "r.jsonl", "lp"), "lp", ["acc_eq"])
