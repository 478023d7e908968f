"""Finding and opening models: folders, Hub ids, conversions, identities, and what is refused."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from unittest.mock import Mock

import huggingface_hub
import pytest
from huggingface_hub.errors import RepositoryNotFoundError
from transformers import AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from bleurt_repro.datasets_builders.open_models import find_model, identify, load_model
from bleurt_repro.metric.loading.hub import CONVERSION_TITLE, CONVERTER


def test_a_folder_is_known_by_its_content(tiny_teachers, tmp_path):
    first = identify("a", tiny_teachers.masked_lm)
    copied = shutil.copytree(tiny_teachers.masked_lm, tmp_path / "copy")
    assert identify("b", copied)["sha256"] == first["sha256"] and len(first["sha256"]) == 12
    (copied / "README.md").write_text("a card does not count")
    (copied / "results.json").write_text('{"nor": "does the record of a training"}')
    assert identify("b", copied)["sha256"] == first["sha256"]
    (copied / "vocab.txt").write_text("another vocabulary")
    assert identify("b", copied)["sha256"] != first["sha256"]
    assert "revision" not in first


def test_a_hub_model_has_a_revision(tmp_path):
    folder = tmp_path / "models--org--name" / "snapshots" / "abc123"
    folder.mkdir(parents=True)
    assert identify("org/name", folder)["revision"] == "abc123"


@pytest.fixture()
def hub(monkeypatch, tiny_teachers, tmp_path):
    """A Hub whose main revision has pickled weights only; its converter's pull request has safetensors."""
    pickled = shutil.copytree(tiny_teachers.translator, tmp_path / "main")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    discussions = [SimpleNamespace(title=CONVERSION_TITLE, num=7)]
    calls = []

    def download(repo_id, revision=None, allow_patterns=None):
        calls.append((repo_id, revision))
        assert "*.spm" in allow_patterns and not any("bin" in pattern for pattern in allow_patterns)
        return str(tiny_teachers.translator if revision == "refs/pr/7" else pickled)

    class Api:
        def get_repo_discussions(self, repo_id, author, discussion_type):
            assert (author, discussion_type) == (CONVERTER, "pull_request")
            return iter(discussions)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    return SimpleNamespace(asked=calls, discussions=discussions)


def test_converted_weights_are_found(hub, tiny_teachers):
    assert find_model("org/name", "translator") == tiny_teachers.translator
    assert hub.asked == [("org/name", None), ("org/name", "refs/pr/7")]


def test_pickled_weights_are_refused(hub):
    hub.discussions.clear()
    with pytest.raises(ValueError, match="translator org/name has no .*safetensors weights"):
        find_model("org/name", "translator")
    with pytest.raises(ValueError, match="translator org/name@old has no"):
        find_model("org/name@old", "translator")
    assert hub.asked[-1] == ("org/name", "old")


def test_what_is_not_there(monkeypatch, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder ./nowhere"):
        find_model("./nowhere", "translator")
    with pytest.raises(FileNotFoundError, match="there is no folder a/b/c"):
        find_model("a/b/c", "translator")
    with pytest.raises(FileNotFoundError, match="translator 'org/name' is neither a folder nor in the cache"):
        find_model("org/name", "translator")

    def refuse(*_, **__):
        raise RepositoryNotFoundError("404", response=Mock())

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(
        FileNotFoundError, match="unknown translator 'org/name': no such folder here and no such repository"
    ):
        find_model("org/name", "translator")
    with pytest.raises(ValueError, match="has no config.json"):
        find_model(str(tmp_path), "translator")


def test_damaged_and_unfit_models_are_refused(tiny_teachers, tmp_path):
    broken = shutil.copytree(tiny_teachers.masked_lm, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(ValueError, match="masked language model .*broken cannot be opened"):
        load_model(AutoModelForMaskedLM, str(broken), "masked language model")
    with pytest.raises(ValueError, match="translator .* cannot be opened"):
        load_model(AutoModelForSeq2SeqLM, str(tiny_teachers.masked_lm), "translator")
    with pytest.raises(ValueError, match="was not trained for this task: it lacks weights .cls"):
        load_model(AutoModelForMaskedLM, str(tiny_teachers.classifier), "masked language model")
