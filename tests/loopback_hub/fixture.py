"""The loopback Hub as a fixture: the real client of this process, led to it for the time of one test."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import huggingface_hub.constants as constants
import pytest
from huggingface_hub.utils._xet import abort_xet_session

from tests.loopback_hub.server import TOKEN, LoopbackHub
from tests.loopback_hub.xet import VARIABLES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hub without repositories; this process is logged in to it, and has an empty cache."""
    with LoopbackHub(tmp_path / "hub") as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", server.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.fixture
def xet(hub, monkeypatch):
    """The same Hub for a client that uploads large files through hf_xet, as clients do unless they are told not to."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HF_XET_CLIENT_RETRY_MAX_ATTEMPTS", raising=False)
    yield hub
    abort_xet_session()  # a session reads its settings once


@pytest.fixture
def waits(monkeypatch):
    """The seconds that the client and the package would have waited; nobody waits."""
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


def run_python(
    server: LoopbackHub, home: Path, code: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own that knows no other Hub.

    Args:
        server: the Hub.
        home: for HF_HOME.
        code: the program.
        arguments: its arguments.
        variables: of the environment, over those of the Hub.
    """
    environment = {**os.environ, **server.environment(home), **variables}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
    )
