"""What is asked of the Hub's client, and how its faults are said; no network."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub.errors import (
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from bleurt_repro.metric.convert.convert import OFFICIAL_FILES
from bleurt_repro.metric.loading.hub import HUB_FILES, HUB_ID, download


@pytest.mark.parametrize(
    "file, fetched",
    [
        ("config.json", True),
        ("model.safetensors", True),
        ("model-00001-of-00002.safetensors", True),
        ("vocab.txt", True),
        ("spm.model", True),
        ("pytorch_model.bin", False),
        ("model.pt", False),
        ("handler.py", False),
        ("variables/variables.index", False),
    ],
)
def test_neither_pickles_nor_scripts_are_fetched(file, fetched):
    assert any(fnmatch(file, pattern) for pattern in HUB_FILES) == fetched


@pytest.mark.parametrize(
    "file",
    ["saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001", "a.vocab", "a.zip"],
)
def test_to_convert_official_files_are_fetched_too(file):
    assert any(fnmatch(file, pattern) for pattern in OFFICIAL_FILES)


@pytest.mark.parametrize(
    "name, repository, revision",
    [
        ("org/name", "org/name", None),
        ("org/name@v1.0", "org/name", "v1.0"),
        ("org/name@refs/pr/1", "org/name", "refs/pr/1"),
    ],
)
def test_a_name_is_a_repository_and_a_revision(monkeypatch, name, repository, revision):
    asked = {}

    def snapshot_download(repo_id, **options):
        asked.update(options, repo_id=repo_id)
        return "/somewhere"

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert HUB_ID.fullmatch(name)
    assert download(name, ("*.json",)) == Path("/somewhere")
    assert asked == {"repo_id": repository, "revision": revision, "allow_patterns": ["*.json"]}


@pytest.mark.parametrize(
    "fault, message",
    [
        (RevisionNotFoundError, "org/name has no revision 'v9' on the Hub"),
        (RepositoryNotFoundError, "unknown checkpoint 'org/name@v9': no such folder here and no such repository"),
        (LocalEntryNotFoundError, "neither a folder nor in the cache, and the Hub cannot be reached"),
        (HfHubHTTPError, "the Hub did not give checkpoint 'org/name@v9': teapot"),
    ],
)
def test_faults_are_said_in_one_sentence(monkeypatch, fault, message):
    class Fault(fault):
        def __init__(self):
            Exception.__init__(self, "teapot")

    def snapshot_download(*_, **__):
        raise Fault

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    with pytest.raises(ValueError, match=message):
        download("org/name@v9")
