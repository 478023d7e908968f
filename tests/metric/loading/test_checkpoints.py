"""Opening checkpoints: what is found, what is refused, and why."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading import find as find_module
from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER, embedded_names, find_checkpoint
from bleurt_repro.metric.loading.open import load_checkpoint
from tests.conftest import make_tiny_scorer


@pytest.fixture
def folder(tiny_scorer, tmp_path):
    return shutil.copytree(tiny_scorer, tmp_path / "copy")


def edit_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    config.update(changes)
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


def edit_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "checksums.json").unlink()


def put(name, value):
    return lambda weights: weights.__setitem__(name, value)


def test_the_embedded_checkpoint_opens_by_name():
    assert "bleurt-repro-mini" in embedded_names()
    loaded = load_checkpoint("bleurt-repro-mini")
    assert loaded.layout.inputs == ("reference", "candidate")
    assert loaded.model.dtype == torch.float32
    assert loaded.tokenizer.split_special_tokens


def test_a_folder_named_as_the_embedded_checkpoint_is_opened_as_a_path(folder, tmp_path, monkeypatch):
    own = folder.rename(tmp_path / "bleurt-repro-mini")
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="is the embedded one, not .*: for that give ./bleurt-repro-mini") as said:
        assert find_checkpoint("bleurt-repro-mini") == find_checkpoint("bleurt-repro-mini") != own
    assert len(said) == 1
    assert find_checkpoint("./bleurt-repro-mini").samefile(own)
    monkeypatch.chdir(EMBEDDED_FOLDER)  # the folder here is the embedded one
    assert find_checkpoint("bleurt-repro-mini") == EMBEDDED_FOLDER / "bleurt-repro-mini"


def test_a_clone_has_a_checkpoint_more(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(find_module, "EMBEDDED_FOLDER", tmp_path / "checkpoint")
    own = shutil.copytree(folder, tmp_path / "checkpoint" / "bleurt-repro-base")
    assert find_checkpoint("bleurt-repro-base") == find_checkpoint("BLEURT-Repro-Base") == own
    assert BleurtScorer("Bleurt-Repro-Base", device="cpu").signature.startswith("checkpoint:bleurt-repro-base|hash:")


def test_an_installation_without_it_tells_how_to_get_it(folder, tmp_path, monkeypatch):
    (tmp_path / "checkpoint").mkdir()
    monkeypatch.setattr(find_module, "EMBEDDED_FOLDER", tmp_path / "checkpoint")
    monkeypatch.chdir(tmp_path)
    for name in ("bleurt-repro-base", "BLEURT-repro-base"):
        with pytest.raises(ValueError, match="too large for the installed package") as refused:
            BleurtScorer(name)
        message = str(refused.value)
        assert "metric/checkpoint/bleurt-repro-base in a clone" in message and "Hub id" in message
        assert "\n" not in message
    folder.rename(tmp_path / "bleurt-repro-base")  # a folder of one's own by that name
    assert find_checkpoint("bleurt-repro-base").samefile(tmp_path / "bleurt-repro-base")


def test_a_folder_opens(folder):
    loaded = load_checkpoint(str(folder))
    assert (loaded.name, loaded.folder) == ("copy", folder)
    assert loaded.layout == Layout(max_length=64)
    assert not loaded.model.training


def test_weights_stored_in_half_precision_are_computed_in_full(folder):
    edit_weights(folder, lambda weights: weights.update({name: value.half() for name, value in weights.items()}))
    edit_config(folder, dtype="float16")
    assert load_checkpoint(folder).model.dtype == torch.float32


def test_a_plain_one_label_checkpoint_gets_bleurts_layout(folder):
    edit_config(folder, bleurt=None)
    assert load_checkpoint(folder).layout == Layout(inputs=("reference", "candidate"), max_length=128)


BROKEN = [
    (lambda f: (f / "config.json").unlink(), "has no config.json"),
    (lambda f: (f / "config.json").write_text("{"), "config.json cannot be read"),
    (lambda f: (f / "config.json").write_text("[]"), "config.json holds list, expected settings by name"),
    (lambda f: (f / "config.json").write_text("{}"), "names no model_type"),
    (lambda f: edit_config(f, model_type="abacus"), "cannot be opened"),
    (lambda f: (f / "model.safetensors").unlink(), "has no weights"),
    (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "only pytorch_model.bin, a pickle"),
    (lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-100]), "cannot be opened"),
    (lambda f: edit_weights(f, lambda w: w.pop("classifier.weight")), r"lacks weights of a scorer \(classifier.weight\)"),
    (lambda f: edit_weights(f, put("classifier.bias", torch.tensor([float("nan")]))), "NaN or infinite weights in classifier.bias"),
    (lambda f: [path.unlink() for path in (f / "tokenizer.json", f / "vocab.txt")], "has no tokenizer"),
    (lambda f: (f / "tokenizer.json").write_text("{}"), "its tokenizer cannot be opened"),
    (lambda f: edit_config(f, bleurt={"inputs": ["reference", "target"]}), "a layout's inputs must be"),
    (lambda f: edit_config(f, bleurt={"max_length": 4}), "leaves no room for text"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), BROKEN)
def test_a_folder_that_is_no_scorer_is_refused_with_the_reason(folder, damage, message):
    damage(folder)
    with pytest.raises(ValueError, match=message):
        load_checkpoint(str(folder))


def test_more_than_one_label_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has 3 labels; a scorer has one"):
        load_checkpoint(make_tiny_scorer(tmp_path / "three", labels=3))


def test_a_tokenizer_of_another_model_is_refused(folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"].update({f"word{i}": 10_000 + i for i in range(500)})
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ValueError, match=r"its tokenizer has a token with id \d+, but the model has \d+ embeddings"):
        load_checkpoint(folder)


def test_no_code_of_a_checkpoint_is_run(folder):
    edit_config(folder, auto_map={"AutoModelForSequenceClassification": "evil.Model"}, model_type="evil")
    (folder / "evil.py").write_text("raise SystemExit('this ran')")
    with pytest.raises(ValueError, match="cannot be opened"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "bleurt-repro-maxi",
            ValueError,
            "unknown checkpoint 'bleurt-repro-maxi': known names are .*bleurt-repro-mini",
        ),
        ("./no/such/folder", ValueError, "unknown checkpoint"),
        ("nobody/nothing", ValueError, "neither a folder nor in the cache"),
        ("nobody/nothing@v1", ValueError, "neither a folder nor in the cache"),
        (None, TypeError, "checkpoint must be a name or a path, found NoneType"),
        (3, TypeError, "checkpoint must be a name or a path, found int"),
    ],
)
def test_an_unknown_name_is_an_error(name, error, message):
    with pytest.raises(error, match=message):
        find_checkpoint(name)


def test_a_file_is_no_checkpoint(folder):
    with pytest.raises(ValueError, match="is a file"):
        find_checkpoint(str(folder / "config.json"))
