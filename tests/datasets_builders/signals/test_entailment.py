"""Entailment: which output is which, premise first, batches, lengths."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from bleurt_repro.datasets_builders.signals import Entailment
from bleurt_repro.datasets_builders.signals.entailment import label_columns
from tests.tiny_robertas import make_tiny_encoder
from tests.tiny_teachers import SENTENCES, make_classifier


def test_probabilities_in_the_papers_order_with_the_reference_as_premise(tiny_teachers):
    model = AutoModelForSequenceClassification.from_pretrained(tiny_teachers.classifier).eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_teachers.classifier)
    references, candidates = SENTENCES[:4], [*SENTENCES[4:7], ""]
    expected = []
    for reference, candidate in zip(references, candidates, strict=True):
        with torch.no_grad():
            logits = model(**tokenizer([reference], [candidate], return_tensors="pt")).logits[0]
        expected.append(logits.softmax(-1).numpy()[[1, 0, 2]])  # it has contradiction, entailment, neutral
    for batch_tokens in (4096, 64):
        probabilities = Entailment(str(tiny_teachers.classifier), device="cpu", batch_tokens=batch_tokens)(
            references, candidates
        )
        np.testing.assert_allclose(probabilities, expected, atol=1e-5)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_pairs_longer_than_the_model_are_cut_and_counted(tiny_teachers):
    signal = Entailment(str(tiny_teachers.classifier), device="cpu")
    assert signal([" ".join(SENTENCES), SENTENCES[0]], [" ".join(SENTENCES), SENTENCES[1]]).shape == (2, 3)
    assert signal.truncated == 1
    assert signal([], []).shape == (0, 3)


def test_a_pair_that_is_too_long_loses_the_end_of_its_longer_text(tiny_teachers, tmp_path):
    folder = shutil.copytree(tiny_teachers.classifier, tmp_path / "unbound")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": 10**9}))
    signal = Entailment(str(folder), device="cpu")
    long, short = " ".join(SENTENCES), "cat"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer(long, short)["input_ids"]) > 64
    inputs = tokenizer([long], [short], truncation="only_first", max_length=64, return_tensors="pt")
    with torch.no_grad():
        logits = AutoModelForSequenceClassification.from_pretrained(folder).eval()(**inputs).logits[0]
    np.testing.assert_allclose(signal([long], [short])[0], logits.softmax(-1).numpy()[[1, 0, 2]], atol=1e-5)


def test_positions_of_robertas_begin_after_the_padding_index(tmp_path):
    folder = make_tiny_encoder(tmp_path / "roberta", "roberta")
    config = json.loads((folder / "config.json").read_text())
    model = RobertaForSequenceClassification(RobertaConfig(**{**config, "num_labels": 3})).eval()
    model.save_pretrained(folder)
    signal = Entailment(str(folder), labels=["entailment", "neutral", "contradiction"], device="cpu")
    assert signal([" ".join(SENTENCES)], [" ".join(SENTENCES)]).shape == (1, 3)
    assert signal.truncated == 1


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["entailment", "neutral", "contradiction"], [0, 2, 1]),
        (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], [2, 0, 1]),
    ],
)
def test_label_columns(names, expected):
    assert label_columns(names, 3, "model") == expected


@pytest.mark.parametrize(
    "names",
    [["LABEL_0", "LABEL_1", "LABEL_2"], ["entailment", "not_entailment"], ["entailment", "entails", "neutral"]],
)
def test_labels_that_do_not_say_so_are_refused(names):
    with pytest.raises(ValueError, match=f"three labels.*found {', '.join(names)} .*entailment_labels"):
        label_columns(names, len(names), "model")


@pytest.mark.parametrize("outputs", [3, 4])
def test_a_fourth_label_is_refused(outputs):
    with pytest.raises(ValueError, match=f"found entailment, neutral, contradiction, other for {outputs} outputs"):
        label_columns(["entailment", "neutral", "contradiction", "other"], outputs, "model")


def test_labels_can_be_named(tmp_path):
    folder = make_classifier(tmp_path, labels=("LABEL_0", "LABEL_1", "LABEL_2"))
    with pytest.raises(ValueError, match="LABEL_0"):
        Entailment(str(folder), device="cpu")
    classifier = Entailment(str(folder), labels=["contradiction", "entailment", "neutral"], device="cpu")
    assert classifier._columns == [1, 0, 2]


def test_the_default_classifier_has_labels_although_its_configuration_names_none(tmp_path, monkeypatch):
    from bleurt_repro.datasets_builders.signals import entailment

    folder = make_classifier(tmp_path, labels=("LABEL_0", "LABEL_1", "LABEL_2"))
    load = entailment.load_model
    monkeypatch.setattr(entailment, "load_model", lambda cls, name, *options: load(cls, str(folder), *options))
    for revision in ("", "@main"):
        assert Entailment(entailment.ENTAILMENT_MODEL + revision, device="cpu")._columns == [0, 2, 1]
    with pytest.raises(ValueError, match="three labels.*found LABEL_0"):
        Entailment("someone/bert-mnli", device="cpu")
