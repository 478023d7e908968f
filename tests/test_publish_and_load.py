"""From one machine to another over the Hub: published by the command line, opened by each library in its own process."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from bleurt_repro import BleurtScorer
from bleurt_repro.datasets_builders.ratings.export import write_splits
from bleurt_repro.datasets_builders.ratings.wmt import RATING_FEATURES
from bleurt_repro.metric.loading.official_names import OFFICIAL_CHECKPOINTS
from tests.bleurt_pytorch_ports import make_port
from tests.loopback_hub import TOKEN, LoopbackHub
from tests.loopback_hub.fixture import run_python
from tests.tiny_experiments import rating

CARD = "---\nlicense: mit\nlibrary_name: transformers\npipeline_tag: text-classification\n---\n\n# scorer\n"
PAIR = {"references": ["the cat sat on the mat"], "candidates": ["a dog sat"]}
LOAD = """
import json
from bleurt_repro import BleurtScorer

pair = {"references": ["the cat sat on the mat"], "candidates": ["a dog sat"]}
first, new = BleurtScorer("org/scorer@v1"), BleurtScorer("org/scorer")
result = {"v1": first.score(**pair), "main": new.score(**pair), "signature": first.signature}
result["official"] = BleurtScorer("bleurt-tiny-512").score(**pair)

import datasets
result["ratings"] = {name: rows.to_list() for name, rows in datasets.load_dataset("org/ratings").items()}
from bleurt_repro.datasets_builders.ratings.wmt import WmtRatings
result["splits"] = WmtRatings("2017", hub_dataset="org/ratings", language_pairs="*", validation_ratio=0).splits()

import evaluate
metric = evaluate.load("org/bleurt_repro", module_type="metric")
computed = metric.compute(predictions=pair["candidates"], references=pair["references"], checkpoint="org/scorer@v1")
result["evaluate"] = computed["scores"]
result["named"] = evaluate.load("org/bleurt_repro", "org/scorer@v1", module_type="metric").compute(
    predictions=pair["candidates"], references=pair["references"])["scores"]
print("RESULT" + json.dumps(result))
"""


PUBLISH = """
import shutil, sys
from huggingface_hub import HfApi
from bleurt_repro.cli import main

place, official = sys.argv[1:]

def publish(*words):
    try:
        main(["publish", *words])
    except SystemExit as stop:
        assert not stop.code, words

publish("model", f"{place}/scorer", "--repo-id", "org/scorer", "--revision", "v1")
shutil.copy(f"{place}/scorer/config.json", f"{place}/scorer/more.json")
publish("model", f"{place}/scorer", "--repo-id", "org/scorer")
publish("dataset", f"{place}/ratings", "--repo-id", "org/ratings")
publish("space", "--repo-id", "org/bleurt_repro")
# Of somebody without this package:
HfApi().create_repo(official)
HfApi().upload_folder(repo_id=official, folder_path=f"{place}/port")
"""


def make_official(folder):
    """A checkpoint as bleurt-pytorch writes it, of the length that its official name asks for."""
    make_port(folder, max_position_embeddings=512)
    weights = load_file(folder / "model.safetensors")
    weights["bleurt.embeddings.position_embeddings.weight"] = torch.randn(512, 32) / 10
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.fixture(scope="module")
def world(tmp_path_factory, tiny_scorer):
    """A Hub with two versions of a scorer, an official checkpoint, ratings and the Space; and what was loaded from it."""
    folder = tmp_path_factory.mktemp("world")
    home = folder / "home"
    home.mkdir()
    scorer = shutil.copytree(tiny_scorer, folder / "scorer")
    (scorer / "README.md").write_text(CARD)
    rows = {"train": [rating(segment=n) for n in range(3)], "test": [rating(year=2017, segment=9)]}
    write_splits(rows, RATING_FEATURES, folder / "ratings")
    make_official(folder / "port")
    official, _, _ = OFFICIAL_CHECKPOINTS["bleurt-tiny-512"].hub.partition("@")
    with LoopbackHub(folder / "hub") as hub:
        online = run_python(hub, home, PUBLISH + LOAD, str(folder), official)
        assert online.returncode == 0, online.stderr
        assert TOKEN not in online.stdout + online.stderr
    return hub, home, rows, online, folder


def result_of(run):
    assert "RESULT" in run.stdout, run.stderr
    return json.loads(run.stdout.split("RESULT")[1])


def test_a_checkpoint_gives_the_same_scores_by_its_id_and_revision(world, tiny_scorer):
    _, _, _, online, _ = world
    result = result_of(online)
    expected = BleurtScorer(str(tiny_scorer)).score(**PAIR)
    assert result["v1"] == result["main"] == pytest.approx(expected, abs=1e-6)
    assert result["signature"].startswith("checkpoint:org/scorer@v1|hash:")


def test_an_official_name_is_found_on_the_hub(world):
    _, _, _, online, folder = world
    assert result_of(online)["official"] == pytest.approx(BleurtScorer(str(folder / "port")).score(**PAIR), abs=1e-6)


def test_ratings_come_back_as_they_were(world):
    _, _, rows, online, _ = world
    assert result_of(online)["ratings"] == rows


def test_the_builder_reads_published_ratings(world):
    _, _, rows, online, _ = world
    assert result_of(online)["splits"] == rows


def test_evaluate_loads_the_space_and_its_checkpoints(world):
    _, _, _, online, _ = world
    result = result_of(online)
    assert result["evaluate"] == result["named"] == pytest.approx(result["v1"], abs=1e-6)


@pytest.mark.long
def test_all_of_it_again_from_the_cache_with_the_hub_gone(world):
    hub, home, _, online, _ = world
    offline = run_python(
        hub, home, LOAD, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_EVALUATE_OFFLINE="1", HF_TOKEN=""
    )
    assert result_of(offline) == result_of(online)
