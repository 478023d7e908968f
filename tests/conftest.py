"""Shared fixtures: a tiny scorer made on the spot, the shared data where it is, and no network anywhere."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

# Before any Hugging Face library is imported: nothing here may reach out, or touch the user's caches.
CACHES = tempfile.mkdtemp(prefix="bleurt-repro-tests-")
atexit.register(shutil.rmtree, CACHES, ignore_errors=True)
os.environ.update(
    HF_HOME=CACHES,
    HF_HUB_OFFLINE="1",
    HF_EVALUATE_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    TQDM_DISABLE="1",
)

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real ratings and text beside the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"needs the real data in {SHARED_DATA}, which is not part of a clone")
    return SHARED_DATA
