"""The Space as it is pushed: its front page's metadata, and the demo through its own client."""

from __future__ import annotations

import importlib.util
import os

import pytest
from huggingface_hub import RepoCard

from bleurt_repro import BleurtScorer
from tests.test_evaluate_module import SPACE

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
CAT = "The cat sat on the mat."


@pytest.fixture(scope="module")
def app():
    specification = importlib.util.spec_from_file_location("space_app", SPACE / "app.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_folder_is_a_space():
    card = RepoCard.load(SPACE / "README.md", ignore_metadata_errors=False).data
    assert (card.sdk, card.app_file, card.license) == ("gradio", "app.py", "apache-2.0")
    assert {"evaluate", "metric"} <= set(card.tags)
    assert (SPACE / f"{SPACE.name}.py").is_file() and (SPACE / "requirements.txt").read_text().strip()


def test_the_demo_scores_as_the_scorer_does(app):
    rows, note = app.score(f"{CAT}\nA cat was on a mat.", f"{CAT}\nIt rains.")
    expected = BleurtScorer().compute(references=[[CAT, "A cat was on a mat."]] * 2, candidates=[CAT, "It rains."])
    assert [row[0] for row in rows] == [CAT, "It rains."]
    assert [row[1] for row in rows] == pytest.approx(expected.scores, abs=1e-3)
    assert expected.signature in note


def test_nothing_to_score_is_said(app):
    import gradio

    with pytest.raises(gradio.Error, match="at least one reference and one candidate"):
        app.score("  ", "something")


def test_the_demo_answers_its_client(app):
    from gradio_client import Client

    _, url, _ = app.demo.launch(prevent_thread_lock=True, quiet=True)
    try:
        table, note = Client(url, verbose=False).predict(CAT, CAT, api_name="/score")
    finally:
        app.demo.close()
    assert table["headers"] == ["candidate", "score"]
    assert table["data"][0][1] > 0.5
    assert "Signature" in note
