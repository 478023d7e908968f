"""Runs without pictures."""

from __future__ import annotations

import pytest


@pytest.fixture
def curves() -> None:
    """Let the runs of a test draw their curves."""


@pytest.fixture(autouse=True)
def without_curves(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no curves unless a test asks for them: that takes longer than most of the runs."""
    if "curves" not in request.fixturenames:
        monkeypatch.setattr("bleurt_repro.training.run.draw_curves", lambda *_: None)
