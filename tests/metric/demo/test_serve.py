"""Starting the demo: one line reports what is missing or taken."""

from __future__ import annotations

import socket
import sys

import pytest

from bleurt_repro.cli import main
from bleurt_repro.metric.demo import serve


def test_the_command_passes_its_options_on(monkeypatch, tiny_scorer):
    seen = {}
    monkeypatch.setattr(serve, "serve", lambda page, **options: seen.update(title=page.title, **options))
    serve.run_demo(str(tiny_scorer), port=7999, device="cpu")
    assert seen == {"title": "BLEURT", "server_port": 7999, "share": False}


def test_without_gradio(monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", None)
    with pytest.raises(
        ValueError, match=r"the demo needs gradio: install .* `pip install -c constraints.txt '.\[demo\]'`"
    ):
        serve.run_demo("bleurt-repro-mini")


def test_a_port_that_is_taken(tiny_scorer, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SystemExit) as stop:
            main(["demo", "--checkpoint", str(tiny_scorer), "--port", str(taken.getsockname()[1])])
    error = capsys.readouterr().err.splitlines()[-1]
    assert stop.value.code == 2
    assert error.startswith("bleurt-repro: error: ") and str(taken) not in error and "port" in error


def test_no_statistics_are_sent():
    import os

    import bleurt_repro.metric.demo.page  # noqa: F401

    assert os.environ["GRADIO_ANALYTICS_ENABLED"] == "False"
