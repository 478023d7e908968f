"""`bleurt-repro agree`: a page on ratings, whose figures are those of the experiment, and its verdicts."""

from __future__ import annotations

import json
import random
from functools import partial

import numpy as np
import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.training.experiments import agree as module
from bleurt_repro.training.experiments.agree import agree, needed_ratings
from bleurt_repro.training.metrics import options
from bleurt_repro.training.metrics.statistics import kendall_tau

WORDS = "the cat sat on a mat it rains dog good bye hi there stock prices fell".split()


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    """A fifth of the resamples: the intervals are as clear, and the tests faster."""
    monkeypatch.setattr(options, "MetricOptions", partial(options.MetricOptions, resamples=200))


@pytest.fixture
def make_ratings(tmp_path, tiny_scorer):
    """Return a function that writes ratings of some segments, by two systems each, that follow the scores or noise."""

    def make(segments: int, follow: float) -> tuple[str, list[dict]]:
        rng = random.Random(0)
        rows = []
        for n in range(segments):
            reference = " ".join(rng.choices(WORDS, k=7)) + f" {n}"
            for system in "ab":
                candidate = " ".join(word if rng.random() < 0.6 else rng.choice(WORDS) for word in reference.split())
                rows.append({"reference": reference, "candidate": candidate, "system": system})
        texts = {f"{role}s": [row[role] for row in rows] for role in ("reference", "candidate")}
        scores = np.array(BleurtScorer(str(tiny_scorer), device="cpu", progress=False).score(**texts))
        noise = np.array([rng.gauss(0, 1) for _ in rows])
        for row, score in zip(rows, follow * scores / scores.std() + noise, strict=True):
            row["score"] = float(score)
        path = tmp_path / f"ratings-{segments}-{follow}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path), rows

    return make


def test_the_page_has_the_counts_the_figures_and_a_clear_answer(make_ratings, tiny_scorer):
    path, rows = make_ratings(60, 3.0)
    text = agree(path, str(tiny_scorer), {"progress": False})
    assert text.startswith("120 ratings of 60 segments and 2 systems\n")
    scorer = BleurtScorer(str(tiny_scorer), device="cpu", progress=False)
    tau = kendall_tau(scorer.score_rows(rows), [row["score"] for row in rows])
    line = next(line for line in text.splitlines() if line.startswith("tiny "))
    assert line.split()[1] == f"{100 * tau:.1f}"
    assert all(any(line.startswith(name) for line in text.splitlines()) for name in ("sentence BLEU", "chrF++"))
    assert "tiny agrees more with your people than chrF++, by " in text
    assert "Fine-tuning is not measured on fewer ratings or segments than these: on WebNLG 2017, 311 ratings" in text
    assert text.endswith(scorer.signature)


def test_an_unclear_answer_says_how_many_ratings_it_takes(make_ratings, tiny_scorer):
    path, _ = make_ratings(40, 0.0)
    text = agree(path, str(tiny_scorer), {"progress": False})
    assert "Not clear yet: " in text and " ratings are needed to show it (80% probability)" in text


def test_few_segments_give_no_verdict(make_ratings, tiny_scorer):
    path, _ = make_ratings(module.FEWEST_SEGMENTS - 1, 3.0)
    text = agree(path, str(tiny_scorer), {"progress": False})
    assert text.endswith("No verdict: 29 segments are too few, at least 30 are needed. Rate more.")
    assert "agrees" not in text and "Fine-tuning" not in text


def test_fine_tuning_is_recommended_from_the_size_on_that_was_measured(make_ratings, tiny_scorer, monkeypatch):
    path, _ = make_ratings(40, 3.0)
    monkeypatch.setattr(module, "TUNED_RATINGS", 80)
    assert "Fine-tuning is worth trying: " in agree(path, str(tiny_scorer), {"progress": False})
    monkeypatch.setattr(module, "TUNED_RATINGS", 81)
    assert "Fine-tuning is not measured on fewer ratings or segments than these: " in agree(
        path, str(tiny_scorer), {"progress": False}
    )


def test_what_is_said_of_fine_tuning_is_in_the_results():
    from tests.conftest import ROOT

    conditions = json.loads((ROOT / "docs/results/reproduction/webnlg.json").read_text())["conditions"]
    outputs = {c["size"]: c["test_outputs"] for c in conditions if c["split"] == "input"}
    assert outputs[0] - outputs[module.TUNED_SEGMENTS] == module.TUNED_RATINGS
    for condition in conditions:
        if condition["split"] == "input" and condition["size"] in (0, module.TUNED_SEGMENTS):
            taus = {row["name"]: row["average"]["kendall_tau"] for row in condition["rows"]}
            lead = f"{100 * (taus['BLEURT mini'] - taus['chrf++']):.1f}"
            ends = {0: f"from {lead} to", module.TUNED_SEGMENTS: f"to {lead} in {condition['aspect']}"}
            assert ends[condition["size"]] in module.FINETUNING


def test_the_number_of_ratings_follows_from_the_standard_error():
    # 100 ratings, difference 0.1, standard error 0.1: (1.96 + 0.84)^2 = 7.85 times as many
    assert needed_ratings(100, 0.1, 0.1 - 0.196, 0.1 + 0.196) == 790
    assert needed_ratings(100, 0.05, 0.05 - 0.196, 0.05 + 0.196) == 3200


def test_the_command_prints_the_page(make_ratings, tiny_scorer, capsys):
    path, _ = make_ratings(31, 3.0)
    with pytest.raises(SystemExit) as stop:
        main(["agree", "--ratings", path, "--checkpoint", str(tiny_scorer), "--device", "cpu"])
    assert not stop.value.code
    assert capsys.readouterr().out.startswith("62 ratings of 31 segments and 2 systems\n")
