"""RoBLEURT's experiment on tiny models: which rows stand in which table, combination, noise, and resuming."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bleurt_repro.training.experiments import trained_models as fine_tuning
from bleurt_repro.training.experiments.robleurt import draw_table, main, read_published
from tests.tiny_experiments import write_config, write_data
from tests.tiny_robertas import make_tiny_encoder


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("robleurt")
    encoder = str(make_tiny_encoder(folder / "xlm-roberta", "xlm-roberta"))
    words = ["--data", write_data(folder / "data", 2018), "--encoder", encoder, "--finetune", write_config(folder)]
    words += ["--encoders", f"other={make_tiny_encoder(folder / 'roberta', 'roberta')}", "--baselines", "chrf++"]
    words += ["--seeds", "1", "2", "--resamples", "5", "--output", str(folder / "out"), "--noisy_share", "0.3"]
    words += ["--tokens_src", "40", "--tokens_nosrc", "32"]
    return words, main(words), folder / "out"


@pytest.mark.long
def test_the_rows_of_each_table(done):
    _, results, folder = done
    assert results["tables"] == {
        "1": ["chrf++", "RoBLEURT"],
        "2": ["RoBLEURT-NoSrc", "RoBLEURT-Src", "RoBLEURT"],
        "3": ["RoBLEURT-Src", "RoBLEURT-Src, other"],
        "5": ["RoBLEURT-Src, full set", "RoBLEURT-Src, noisy removed", "RoBLEURT-Src"],
    }
    assert results["measures"] == ["kendall_tau", "darr"]
    signatures = {row["name"]: row["signature"] for row in results["rows"]}
    assert "inputs:source+candidate+reference|max_length:40|" in signatures["RoBLEURT-Src"]
    assert "inputs:candidate+reference|max_length:32|" in signatures["RoBLEURT-NoSrc"]
    assert (folder / "tables.md").read_text() == draw_table(results)


@pytest.mark.long
def test_the_published_tables_stand_below_ours(done):
    _, results, _ = done
    table = draw_table(results)
    headings = [line for line in table.splitlines() if line.startswith("## Table")]
    assert [heading[:10] for heading in headings] == [f"## Table {number}" for number in "12345"]
    fifth = table[table.index("## Table 5") : table.index("## Noise")]
    assert fifth.index("RoBLEURT-Src, full set") < fifth.index("published: Wan et al. (2021)")
    assert "| noisy items rescored | 14.1 " in " ".join(fifth.split())


def test_published_values_are_those_of_the_paper():
    published = read_published()
    assert {number: len(rows) for number, rows in published.items()} == {"1": 7, "2": 2, "3": 3, "4": 2, "5": 3}
    assert published["1"]["RoBLEURT"]["cs-en"] == 0.152 and published["1"]["sentBLEU"]["ru-en"] == -0.005
    # One model stands in tables 2 to 5.
    shared = ("cs-en", "de-en", "ja-en", "ru-en", "zh-en")
    rows = [published[n][m] for n, m in (("2", "RoBLEURT-Src"), ("3", "Src large-xnli"), ("4", "Src w pretrain"))]
    rows.append(published["5"]["noisy items rescored"])
    assert len({tuple(row[group] for group in shared) for row in rows}) == 1


@pytest.mark.long
def test_with_folds_each_seed_validates_on_one_and_trains_on_the_others(tmp_path):
    encoder = str(make_tiny_encoder(tmp_path / "xlm-roberta", "xlm-roberta"))
    words = ["--data", write_data(tmp_path / "data", 2018), "--encoder", encoder, "--finetune", write_config(tmp_path)]
    words += ["--baselines", "chrf++", "--seeds", "1", "2", "--resamples", "0", "--folds", "2"]
    results = main([*words, "--output", str(tmp_path / "out")])
    files = {
        f"{name}-fold{i}": [json.loads(line) for line in (tmp_path / "out" / "data" / f"{name}-fold{i}.jsonl").open()]
        for name in ("train-rescore", "validation")
        for i in (0, 1)
    }
    assert [len(rows) for rows in files.values()] == [70, 70, 10, 10]
    for i in (0, 1):
        sides = [{row["reference"] for row in files[f"{name}-fold{i}"]} for name in ("train-rescore", "validation")]
        assert not sides[0] & sides[1]
    (both,) = [row for row in results["rows"] if row["name"] == "RoBLEURT"]
    assert both["weights"] == [0.25] * 4


@pytest.mark.long
def test_noise_is_found_and_each_method_trains_on_its_own_ratings(done):
    _, results, folder = done
    assert results["denoising"] == {
        "judges": 4,
        "share": 0.3,
        "within": "dataset",
        "by_year": {"2018": {"ratings": 60, "noisy": 18, "kept": 60}},
    }
    sizes = {}
    for method in ("mark", "remove", "rescore"):
        rows = [json.loads(line) for line in (folder / "data" / f"train-{method}.jsonl").read_text().splitlines()]
        sizes[method] = len(rows)
        scores = np.array([row["score"] for row in rows])
        assert (scores.mean(), scores.std()) == pytest.approx((0, 1), abs=1e-9)
    assert sizes == {"mark": 60, "remove": 42, "rescore": 60}
    trained = {row["name"]: row["training"][0]["train_ratings"] for row in results["rows"] if "training" in row}
    assert (trained["RoBLEURT-Src"], trained["RoBLEURT-Src, noisy removed"]) == (60, 42)


@pytest.mark.long
def test_the_combination_is_of_all_models(done):
    _, results, _ = done
    (both,) = [row for row in results["rows"] if row["name"] == "RoBLEURT"]
    assert len(both["weights"]) == 4 and min(both["weights"]) >= 0 and sum(both["weights"]) == pytest.approx(1)
    assert results["uncertainty"]["members"] == 4
    assert -1 <= results["uncertainty"]["pearson_r"] <= 1


@pytest.mark.long
def test_it_resumes_from_its_cells(done, monkeypatch):
    words, results, _ = done
    monkeypatch.setattr(fine_tuning.FineTuning, "_train", lambda *_: pytest.fail("trained again"))
    assert main(words) == results


def test_what_it_needs(tmp_path):
    data = write_data(tmp_path / "data")
    with pytest.raises(ValueError, match="name an --encoder"):
        main(["--data", data, "--output", str(tmp_path / "out")])
    lines = [json.loads(line) for line in (tmp_path / "data" / "test.jsonl").read_text().splitlines()]
    text = "".join(json.dumps({**line, "source": None}) + "\n" for line in lines)
    (tmp_path / "data" / "test.jsonl").write_text(text)
    with pytest.raises(ValueError, match="40 of 40 ratings have no source, which RoBLEURT-Src reads"):
        main(["--data", data, "--encoder", "x", "--output", str(tmp_path / "out")])
    with pytest.raises(ValueError, match="noise must be one of"):
        main(["--data", data, "--encoder", "x", "--output", str(tmp_path / "out"), "--noise", "keep"])
    with pytest.raises(ValueError, match="folds must be 0 .none., or 2 or more, found 1"):
        main(["--data", data, "--encoder", "x", "--output", str(tmp_path / "out"), "--folds", "1"])
    with pytest.raises(ValueError, match="noise_within must be dataset or year, found 'pair'"):
        main(["--data", data, "--encoder", "x", "--output", str(tmp_path / "out"), "--noise_within", "pair"])
