"""Where things are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from bleurt_repro.metric.forward.score_cache import ScoreCache
from bleurt_repro.metric.options import cache_folder, make_cache


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


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch):
    for name in ("BLEURT_REPRO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(ValueError, match="no home folder .*: set HOME, or BLEURT_REPRO_CACHE"):
        cache_folder()


def test_a_cache_that_is_a_file_is_named(tmp_path):
    file = tmp_path / "cache"
    file.write_text("mine")
    with pytest.raises(OSError, match=r"cache .*cache must be a folder, but .*cache is a file"):
        ScoreCache(file, "settings")
    with pytest.raises(OSError, match=r"onnx must be a folder, but .*cache is a file"):
        make_cache(file / "onnx")
    assert file.read_text() == "mine"
