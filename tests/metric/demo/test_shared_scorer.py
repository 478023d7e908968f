"""The shared scorer: the same scores as alone, in turns, in one thread."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bleurt_repro.metric.demo.shared_scorer import TURN, SharedScorer


@pytest.fixture(scope="module")
def shared(tiny_scorer):
    return SharedScorer(str(tiny_scorer), "cpu")


def test_scores_in_turns_are_those_of_one_call(shared):
    total = 2 * TURN + 5
    references = [f"the cat {i}" for i in range(total)]
    candidates = [f"the dog {i} " * (i % 30 + 1) for i in range(total)]
    reports: list[tuple[int, int]] = []
    systems = {"A": candidates}
    result = shared.compute_systems(
        references=references, systems=systems, report=lambda *counts: reports.append(counts)
    )["A"]
    expected = shared.scorer.compute(references=references, candidates=candidates)
    assert reports == [(TURN, total), (2 * TURN, total), (total, total)]
    assert result.scores == pytest.approx(expected.scores, abs=1e-5)
    assert result.mean_score == pytest.approx(expected.mean_score, abs=1e-5)
    assert (result.truncated, result.signature) == (expected.truncated, expected.signature)
    assert result.truncated > 0


def test_nothing_to_score(shared):
    assert shared.compute(references=[], candidates=[]).mean_score is None


def test_many_visitors_take_turns_in_one_thread(shared, monkeypatch):
    threads, compute = set(), shared.scorer.compute_systems
    monkeypatch.setattr(
        shared.scorer, "compute_systems", lambda **texts: threads.add(threading.get_ident()) or compute(**texts)
    )
    texts = [f"the cat sat on {i}" for i in range(40)]
    with ThreadPoolExecutor(20) as visitors:
        answers = visitors.map(lambda text: shared.compute(references=["the cat"], candidates=[text]).scores[0], texts)
        scores = list(answers)
    assert scores == pytest.approx(shared.scorer.score(references=["the cat"] * 40, candidates=texts), abs=1e-5)
    assert len(threads) == 1


def test_an_error_reaches_the_visitor_whose_it_is(shared):
    with pytest.raises(ValueError, match="equally long"):
        shared.compute(references=["a"], candidates=["a", "b"])
