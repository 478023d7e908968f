"""Where what is made once and used again is kept."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "BLEURT_REPRO_CACHE"


def cache_folder() -> Path:
    """Give the folder that $BLEURT_REPRO_CACHE names, else one below $XDG_CACHE_HOME or ~/.cache; it may not exist."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bleurt_repro"
