"""Shared fixtures: a tiny scorer made on the spot, the shared data where it is, and no network anywhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Before any Hugging Face library is imported: nothing here may reach out.
os.environ.update(
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


@pytest.fixture(scope="session", autouse=True)
def _own_caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what the libraries cache away from the user's home."""
    import datasets.config
    import evaluate.config

    home = tmp_path_factory.mktemp("hf")
    datasets.config.HF_DATASETS_CACHE = home / "datasets"
    evaluate.config.HF_METRICS_CACHE = home / "metrics"
    evaluate.config.HF_MODULES_CACHE = home / "modules"
