"""Names of things on this machine, made fit to be seen elsewhere."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from typing import Any


def shorten_paths(value: Any) -> Any:
    """Put its last name in the place of every absolute path in a JSON value."""
    if isinstance(value, dict):
        return {key: shorten_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shorten_paths(item) for item in value]
    if isinstance(value, str) and "\n" not in value:
        if value.startswith(("/", "~/")):
            return PurePosixPath(value).name
        if PureWindowsPath(value).is_absolute():
            return PureWindowsPath(value).name
    return value
