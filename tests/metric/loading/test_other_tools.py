"""What other tools compute with our checkpoints: the same scores, in float32 and without a sigmoid."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.loading.checksums import FOR_OTHER_TOOLS, UNNAMED_LABELS, content_hash
from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER
from bleurt_repro.metric.loading.open import load_checkpoint
from bleurt_repro.metric.loading.save import prepare_scorer, record_for_other_tools, save_scorer

MINI = EMBEDDED_FOLDER / "bleurt-repro-mini"
PAIRS = [("The cat sat on the mat.", "A cat was sitting on the mat."), ("It rains.", "Stock prices fell.")]
TEXTS = {"references": [pair[0] for pair in PAIRS], "candidates": [pair[1] for pair in PAIRS]}


@pytest.fixture
def stored(tiny_scorer, tmp_path):
    """Return a function that saves a scorer whose weights are stored in another type."""

    def save(dtype):
        loaded = load_checkpoint(str(tiny_scorer))
        prepare_scorer(loaded.model, loaded.tokenizer, loaded.layout)
        save_scorer(loaded.model, loaded.tokenizer, tmp_path / "half", dtype)
        return tmp_path / "half"

    return save


@pytest.fixture
def half(stored):
    """A scorer whose weights are stored in half precision."""
    return stored(torch.float16)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float8_e4m3fn, None], ids=["half", "float8", "mini"])
def test_plain_transformers_compute_in_float32(dtype, stored):
    folder = stored(dtype) if dtype else MINI
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(*map(list, zip(*PAIRS, strict=True)), return_tensors="pt", padding=True)
    with torch.inference_mode():
        scores = model(**inputs).logits[:, 0].tolist()
    assert scores == pytest.approx(BleurtScorer(str(folder), device="cpu").score(**TEXTS), abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float8_e4m3fn, None], ids=["half", "float8", "mini"])
def test_a_cross_encoder_predicts_our_scores(dtype, stored):
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    folder = stored(dtype) if dtype else MINI
    predicted = sentence_transformers.CrossEncoder(str(folder), device="cpu").predict(PAIRS).tolist()
    assert predicted == pytest.approx(BleurtScorer(str(folder), device="cpu").score(**TEXTS), abs=1e-5)


def test_a_pipeline_calls_the_number_a_score(half):
    found = pipeline("text-classification", model=str(half), function_to_apply="none")({"text": "a", "text_pair": "b"})
    assert found["label"] == "score"


def test_recording_it_later_changes_no_hash(half, tmp_path):
    recorded = json.loads((half / "config.json").read_text())
    assert {name: recorded[name] for name in FOR_OTHER_TOOLS} == FOR_OTHER_TOOLS
    before = shutil.copytree(half, tmp_path / "before")
    plain = {name: value for name, value in recorded.items() if name != "sentence_transformers"}
    plain |= {"dtype": "float16", **UNNAMED_LABELS}  # as save_pretrained() writes it
    (before / "config.json").write_text(json.dumps(plain, indent=2, sort_keys=True) + "\n")
    assert content_hash(before) == content_hash(half)
    record_for_other_tools(before)
    assert (before / "config.json").read_bytes() == (half / "config.json").read_bytes()


def test_all_other_settings_count(half, tmp_path):
    for name, value in {"hidden_act": "relu", "bleurt": {}, "layer_norm_eps": 1e-6}.items():
        changed = shutil.copytree(half, tmp_path / name)
        config = {**json.loads((half / "config.json").read_text()), name: value}
        (changed / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
        assert content_hash(changed) != content_hash(half)
