"""Official names: where each resolves to, from a cache laid out as the Hub's client lays it out; no network."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.convert.convert import convert
from bleurt_repro.metric.loading.find import find_checkpoint
from bleurt_repro.metric.loading.hub import HUB_ID
from bleurt_repro.metric.loading.official_names import OFFICIAL_CHECKPOINTS
from bleurt_repro.metric.loading.open import load_checkpoint
from tests.bleurt_pytorch_ports import edit_config, make_port, put_into_cache

NAMES = [f"bleurt-{size}-{length}" for size in ("tiny", "base", "large") for length in (128, 512)]
NAMES += ["BLEURT-20", "BLEURT-20-D12", "BLEURT-20-D6", "BLEURT-20-D3"]
WITH_COPY = [name for name in NAMES if OFFICIAL_CHECKPOINTS[name].hub]
WITHOUT_COPY = [name for name in NAMES if not OFFICIAL_CHECKPOINTS[name].hub]


@pytest.fixture
def cache(tmp_path):
    """A function that puts a port into the cache under a name's Hub id; taken out again in the end."""
    made = []

    def put(name, **settings):
        embedding = 8 if name.startswith("BLEURT-20") else None
        make_port(tmp_path / name, embedding, **settings)
        made.append(put_into_cache(tmp_path / name, OFFICIAL_CHECKPOINTS[name].hub))
        return made[-1]

    yield put
    for folder in made:
        shutil.rmtree(folder.parents[1])


def test_all_official_names_are_known():
    assert list(OFFICIAL_CHECKPOINTS) == NAMES
    for name in NAMES:
        official = OFFICIAL_CHECKPOINTS[name]
        assert official.max_length == (128 if name.endswith("-128") else 512)
        assert official.archive.startswith("https://storage.googleapis.com/bleurt-oss")
        assert official.archive.endswith(f"/{name}.zip")
        assert official.hub is None or HUB_ID.fullmatch(official.hub)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_of_the_docs_has_it(name):
    table = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "official-checkpoints.md").read_text(
        encoding="utf-8"
    )
    official = OFFICIAL_CHECKPOINTS[name]
    assert f"| `{name}` | {official.max_length} | {'by name (' if official.hub else 'download and convert |'}" in table
    assert official.hub is None or official.hub.partition("@")[0] in table


@pytest.mark.parametrize("name", WITHOUT_COPY)
def test_a_name_without_a_copy_says_what_to_do(name):
    with pytest.raises(ValueError) as error:
        load_checkpoint(name)
    assert "no safe copy on the Hub" in str(error.value)
    assert f"download {OFFICIAL_CHECKPOINTS[name].archive} and run `bleurt-repro convert {name}.zip" in str(
        error.value
    )


@pytest.mark.parametrize("name", WITH_COPY)
def test_a_copy_out_of_reach_says_what_to_do(name):
    with pytest.raises(ValueError) as error:
        find_checkpoint(name)
    assert "the Hub cannot be reached" in str(error.value)
    assert f"`bleurt-repro convert {name}.zip {name}-converted`" in str(error.value)


@pytest.mark.parametrize("name", WITH_COPY)
def test_a_name_resolves_to_its_copy_and_official_length(cache, name):
    length = OFFICIAL_CHECKPOINTS[name].max_length
    folder = cache(name, model_type="bleurt")
    edit_config(folder, max_position_embeddings=64)
    with pytest.raises(ValueError, match=f"reads {length} tokens, but the model has 64 positions"):
        load_checkpoint(name)


def test_a_name_scores(cache, monkeypatch):
    monkeypatch.setitem(OFFICIAL_CHECKPOINTS, "bleurt-tiny-128", _short("bleurt-tiny-128"))
    cache("bleurt-tiny-128")
    scorer = BleurtScorer("bleurt-tiny-128")
    assert (scorer.checkpoint, scorer.layout.max_length) == ("bleurt-tiny-128", 20)
    assert "checkpoint:bleurt-tiny-128|" in scorer.signature
    assert "max_length:20|" in scorer.signature
    assert len(scorer.score(references=["the cat"], candidates=["the dog"])) == 1


def test_a_copy_under_another_model_type_will_do(cache, monkeypatch):
    monkeypatch.setitem(OFFICIAL_CHECKPOINTS, "bleurt-base-128", _short("bleurt-base-128"))
    cache("bleurt-base-128", model_type="bert", hidden_act="gelu_new")
    loaded = load_checkpoint("bleurt-base-128")
    assert loaded.model.config.hidden_act == "gelu_pytorch_tanh"
    assert loaded.layout.max_length == 20
    assert loaded.tokenizer.tokenize("[SEP]") == ["[", "s", "##e", "##p", "]"]


def test_a_name_converts(cache, monkeypatch, tmp_path):
    monkeypatch.setitem(OFFICIAL_CHECKPOINTS, "BLEURT-20", _short("BLEURT-20"))
    cache("BLEURT-20", hidden_act="gelu_new")
    made = convert("BLEURT-20", str(tmp_path / "out"))
    assert (made.architecture, made.max_length, made.activation) == (
        "RemBertForSequenceClassification",
        20,
        "gelu_pytorch_tanh",
    )
    pair = {"references": ["the cat"], "candidates": ["the dog"]}
    scores = BleurtScorer(str(tmp_path / "out")).score(**pair)
    assert scores == pytest.approx(BleurtScorer("BLEURT-20").score(**pair), abs=1e-6)


def test_a_folder_of_that_name_comes_first(tiny_scorer, tmp_path, monkeypatch):
    shutil.copytree(tiny_scorer, tmp_path / "BLEURT-20")
    monkeypatch.chdir(tmp_path)
    assert load_checkpoint("BLEURT-20").layout.max_length == 64


def test_a_hub_id_in_that_format_opens(cache):
    cache("BLEURT-20")
    assert load_checkpoint("BramVanroy/BLEURT-20-pt").layout.max_length == 64


def _short(name):
    """The same checkpoint at a length that tiny weights have positions for."""
    import dataclasses

    return dataclasses.replace(OFFICIAL_CHECKPOINTS[name], max_length=20)
