"""The Space as it is pushed: its front page's metadata, and the demo through its own client."""

from __future__ import annotations

import importlib.util

import pytest
from huggingface_hub import RepoCard

from bleurt_repro import BleurtScorer
from tests.test_evaluate_module import SPACE

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


def test_the_app_is_the_demo_with_the_embedded_checkpoint(app):
    from gradio_client import Client

    from bleurt_repro.metric.demo.serve import serve

    url = serve(app.demo, prevent_thread_lock=True, quiet=True)
    try:
        result = Client(url, verbose=False).predict(CAT, CAT, api_name="/score")
    finally:
        app.demo.close()
    assert result["score"] == pytest.approx(BleurtScorer().score(references=[CAT], candidates=[CAT])[0], abs=1e-5)
    assert result["signature"].startswith("checkpoint:bleurt-repro-mini|")
