"""Where things are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from bleurt_repro.metric.options import cache_folder


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"BLEURT_REPRO_CACHE": "/named", "XDG_CACHE_HOME": "/xdg", "HOME": "/home/me"}, "/named"),
        ({"BLEURT_REPRO_CACHE": "~/named", "HOME": "/home/me"}, "/home/me/named"),
        ({"XDG_CACHE_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/bleurt_repro"),
        ({"XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache/bleurt_repro"),
    ],
)
def test_the_folder_named_first_is_taken(settings, expected, monkeypatch):
    for name in ("BLEURT_REPRO_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)
