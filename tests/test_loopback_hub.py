"""The Hub of the tests: that it answers as the real one does where the tests rely on it."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from huggingface_hub import HfApi, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

from tests.loopback_hub import Fault, LoopbackHub, api


def test_long_lists_come_by_pages(hub, monkeypatch):
    monkeypatch.setattr(api, "PAGE", 3)
    hub.store.create("dataset", "org/many", private=False)
    names = [f"folder/{n}.txt" for n in range(7)]
    hub.store.commit("dataset", "org/many", "main", "all", {name: hub.store.keep(name.encode()) for name in names})
    tree = HfApi().list_repo_tree("org/many", repo_type="dataset", recursive=True)
    assert sorted(item.path for item in tree) == ["folder", *names]
    assert sum("/tree/" in path for _, path in hub.requests) == 3


@pytest.mark.parametrize(
    ("wanted", "status", "content"), [("bytes=2-4", 206, b"cde"), ("bytes=-2", 206, b"fg"), ("bytes=5-", 206, b"fg")]
)
def test_parts_of_files(hub, wanted, status, content):
    hub.store.create("model", "org/name", private=False)
    hub.store.commit("model", "org/name", "main", "all", {"a.txt": hub.store.keep(b"abcdefg")})
    request = urllib.request.Request(hf_hub_url("org/name", "a.txt", endpoint=hub.url), headers={"Range": wanted})
    with urllib.request.urlopen(request) as answer:
        assert (answer.status, answer.read()) == (status, content)
        assert answer.headers["Content-Range"].endswith("/7")
    request.add_header("Range", "bytes=9-")
    with pytest.raises(urllib.error.HTTPError, match="416"):
        urllib.request.urlopen(request)


def test_private_things_are_hidden_and_writing_takes_a_login(hub, monkeypatch):
    HfApi().create_repo("org/hidden", private=True)
    HfApi().create_repo("org/seen")
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(RepositoryNotFoundError):
        HfApi().model_info("org/hidden")
    assert HfApi().model_info("org/seen").private is False
    with pytest.raises(HfHubHTTPError):
        HfApi().upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id="org/seen")


def test_what_was_stored_is_there_after_a_restart(tmp_path):
    with LoopbackHub(tmp_path) as first:
        first.store.create("space", "org/name", private=False, sdk="gradio")
    with LoopbackHub(tmp_path) as second:
        assert second.store.messages("space", "org/name") == ["initial commit"]


def test_a_fault_that_is_none():
    with pytest.raises(ValueError, match="a fault is one of"):
        Fault("GET", "sulk")
