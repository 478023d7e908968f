"""BERTscore against the library, blank sides, batches and layers."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from bert_score import BERTScorer

from bleurt_repro.datasets_builders.signals import BertScore
from bleurt_repro.datasets_builders.signals.bertscore import _pad, default_layers
from tests.tiny_teachers import SENTENCES

REFERENCES = [*SENTENCES[:6], SENTENCES[0]]
CANDIDATES = [*SENTENCES[1:7], SENTENCES[0]]


@pytest.mark.parametrize("layers", [1, 2])
def test_scores_equal_the_librarys(tiny_teachers, layers):
    folder = str(tiny_teachers.masked_lm)
    library = BERTScorer(model_type=folder, num_layers=layers, device="cpu")
    expected = np.stack([column.numpy() for column in library.score(CANDIDATES, REFERENCES)], axis=1)
    scores = BertScore(folder, layers=layers, device="cpu")(REFERENCES, CANDIDATES)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert scores[-1].tolist() == pytest.approx([1.0, 1.0, 1.0])


def test_batches_do_not_change_the_scores(tiny_teachers):
    large = BertScore(str(tiny_teachers.masked_lm), device="cpu")
    small = BertScore(str(tiny_teachers.masked_lm), device="cpu", batch_tokens=16)
    np.testing.assert_allclose(small(REFERENCES, CANDIDATES), large(REFERENCES, CANDIDATES), atol=1e-5)


def test_a_blank_side_scores_zero(tiny_teachers):
    signal = BertScore(str(tiny_teachers.masked_lm), device="cpu")
    scores = signal([SENTENCES[0], SENTENCES[0], "", " "], [" ", SENTENCES[0], SENTENCES[0], ""])
    assert scores[[0, 2, 3]].tolist() == [[0.0, 0.0, 0.0]] * 3
    assert scores[1].tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert signal([""], [""]).tolist() == [[0.0, 0.0, 0.0]]
    assert signal([], []).shape == (0, 3)


def test_texts_longer_than_the_model_are_cut(tiny_teachers):
    assert BertScore(str(tiny_teachers.masked_lm), device="cpu")(
        [" ".join(SENTENCES)], [" ".join(SENTENCES)]
    ).shape == (1, 3)


def test_the_encoders_positions_bound_a_tokenizer_without_a_bound(tiny_teachers, tmp_path):
    folder = shutil.copytree(tiny_teachers.masked_lm, tmp_path / "unbound")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": 10**9}))
    signal = BertScore(str(folder), device="cpu")
    long = " ".join(SENTENCES)
    assert len(signal.pieces(long)) == 64
    assert (
        signal([long], [SENTENCES[0]]).tolist()
        == BertScore(str(tiny_teachers.masked_lm), device="cpu")([long], [SENTENCES[0]]).tolist()
    )


def test_padding_is_masked():
    vectors, mask, weights = _pad([(torch.ones(2, 4), torch.ones(2)), (torch.ones(3, 4), torch.ones(3))])
    assert vectors.shape == (2, 3, 4)
    assert mask.tolist() == [[True, True, False], [True, True, True]]
    assert weights.tolist() == [[1, 1, 0], [1, 1, 1]]


def test_layers_are_the_librarys_choice_or_the_last(tiny_teachers):
    assert default_layers("bert-large-uncased", tiny_teachers.masked_lm) == 18
    assert default_layers("google-bert/bert-large-uncased@main", tiny_teachers.masked_lm) == 18
    assert default_layers("somewhere/else", tiny_teachers.masked_lm) == 2


def test_a_layer_that_is_not_there_is_refused(tiny_teachers):
    with pytest.raises(ValueError, match="cannot be opened at layer 3"):
        BertScore(str(tiny_teachers.masked_lm), layers=3, device="cpu")
