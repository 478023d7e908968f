"""Loading from the Hub over HTTP: revisions, the cache, and what may go wrong on the way."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.loading.checksums import content_hash
from bleurt_repro.metric.loading.ensemble import Ensemble, Member
from bleurt_repro.metric.loading.hub import download
from tests.conftest import make_tiny_scorer
from tests.loopback_hub import Fault

WEIGHTS = bytes(range(256)) * 40


@pytest.fixture
def published(hub, tmp_path):
    """A repository of two commits, the first tagged v1, pushed by the plain client."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    (folder / "config.json").write_text('{"first": 1}')
    (folder / "pytorch_model.bin").write_bytes(b"never fetched")
    api = HfApi()
    api.create_repo("org/scorer")
    api.upload_folder(repo_id="org/scorer", folder_path=folder)
    api.create_tag("org/scorer", tag="v1")
    (folder / "config.json").write_text('{"second": 2}')
    api.upload_folder(repo_id="org/scorer", folder_path=folder)
    hub.requests.clear()
    return hub


def test_a_revision_is_fetched_and_then_read_from_the_cache(published):
    assert (download("org/scorer") / "config.json").read_text() == '{"second": 2}'
    folder = download("org/scorer@v1")
    assert (folder / "config.json").read_text() == '{"first": 1}'
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert not (folder / "pytorch_model.bin").exists()
    assert sum("/cdn/" in path for _, path in published.requests) == 1  # the weights did not change
    published.stop()
    assert download("org/scorer@v1") == folder


@pytest.mark.parametrize("file", ["cdn/", "config.json"])
def test_a_download_that_differs_from_its_hash_is_not_used(published, file):
    published.faults.add(Fault(f"GET .*{file}", "corrupt"))
    with pytest.raises(ValueError, match=r"of org/scorer in the cache differs .* `hf cache rm model/org/scorer`"):
        download("org/scorer")
    with pytest.raises(ValueError, match="differs from its hash"):  # not the next time either
        download("org/scorer")
    from huggingface_hub import constants

    shutil.rmtree(Path(constants.HF_HUB_CACHE) / "models--org--scorer")
    assert (download("org/scorer") / "model.safetensors").read_bytes() == WEIGHTS


def test_a_connection_that_breaks_is_taken_up_where_it_broke(published, waits):
    published.faults.add(Fault("GET /cdn/", "cut"))
    assert (download("org/scorer") / "model.safetensors").read_bytes() == WEIGHTS
    assert sum("/cdn/" in path for _, path in published.requests) == 2


def test_troubles_of_the_hub_pass(published, waits):
    published.faults.add(Fault("GET /api/models", times=2, status=503))
    with pytest.warns(UserWarning, match=r"the Hub answered 503; attempt [23] of 4 in [12] seconds"):
        download("org/scorer")
    assert waits == [1, 2]


def test_a_hub_that_asks_to_wait_is_obeyed(published, waits):
    published.faults.add(Fault("GET /api/models", status=429, headers={"Retry-After": "7"}))
    with pytest.warns(UserWarning, match="fewer requests"):
        download("org/scorer")
    assert waits == [7]


def test_a_hub_that_stays_in_trouble(published, waits):
    published.faults.add(Fault("GET /api/models", times=99))
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="cannot be reached: the Hub answered 500"):
        download("org/scorer")


def test_a_page_in_place_of_an_answer_is_named(published):
    published.faults.add(Fault("/api/", "page", times=99))
    with pytest.raises(
        ValueError, match="org/scorer'?: its answer is no JSON; check HF_ENDPOINT and the network's proxy"
    ):
        download("org/scorer")


def test_slow_answers_are_waited_for(published):
    published.faults.add(Fault("GET /cdn/", "slow", seconds=0.5))
    assert (download("org/scorer") / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.parametrize(
    ("name", "token", "message"),
    [
        ("org/scorer", "hf_wrong", "refused the token .401.: log in with `hf auth login`"),
        ("org/scorer@v9", None, "org/scorer has no revision 'v9'"),
        ("org/nothing", None, "no such repository on the Hub"),
    ],
)
def test_what_the_hub_refuses(published, monkeypatch, name, token, message):
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(ValueError, match=message) as error:
        download(name)
    assert "hf_wrong" not in str(error.value)


class Opens:
    """Counts how often Python code opens each file of a folder; the readers of weights in Rust are not seen."""

    def __init__(self, folder):
        self.folder, self.counts = str(folder), Counter()
        sys.addaudithook(self)  # cannot be removed

    def __call__(self, event, arguments):
        if event == "open" and isinstance(arguments[0], str | Path) and str(arguments[0]).startswith(self.folder):
            if (arguments[1] or "").startswith("r"):
                self.counts[Path(os.path.realpath(arguments[0])).name] += 1


@pytest.mark.parametrize("kind", ["single", "ensemble"])
def test_a_checkpoint_is_asked_for_once_and_each_file_read_once_to_be_hashed(hub, tmp_path, tiny_scorer, kind):
    """From its name to the signature."""
    folder = shutil.copytree(tiny_scorer, tmp_path / "folder" / "own")
    if kind == "ensemble":
        make_tiny_scorer(folder.parent / "other", spread=0.2)
        members = [Member(name, content_hash(folder.parent / name), 0.5, 0.0, 1.0) for name in ("own", "other")]
        folder = folder.parent
        (folder / "ensemble.json").write_text(json.dumps(Ensemble(tuple(members)).to_json()))
    api = HfApi()
    api.create_repo("org/tiny")
    api.upload_folder(repo_id="org/tiny", folder_path=folder)
    hub.requests.clear()
    opens = Opens(tmp_path / "cache")
    scorer = BleurtScorer("org/tiny")
    assert scorer.signature.startswith("checkpoint:org/tiny|hash:")
    assert sum("/api/models/org/tiny/revision/" in path for _, path in hub.requests) == 1  # one snapshot is asked for
    weights = {path.resolve() for path in scorer.folder.rglob("*.safetensors")}
    assert {opens.counts[path.name] for path in weights} == {1}
