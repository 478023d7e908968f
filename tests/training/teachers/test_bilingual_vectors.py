"""Bilingual vectors: translations lie near each other, and every piece has a vector."""

from __future__ import annotations

import numpy as np
import pytest

from bleurt_repro.training.teachers.translator_data import bilingual_vectors


def pairs(words: int, count: int):
    """Sentence pairs in which word w is always translated as words + w, in any order."""
    random = np.random.default_rng(3)
    sentences = [random.choice(words, 3, replace=False) for _ in range(count)]
    return sentences, [random.permutation(sentence) + words for sentence in sentences]


def test_a_word_is_nearest_to_its_translation():
    vectors = bilingual_vectors(*pairs(20, 400), size=42, width=24)
    likeness = vectors[:20] @ vectors[20:40].T
    assert likeness.argmax(axis=1).tolist() == list(range(20))
    assert likeness.diagonal().min() > 0.9
    assert np.median(likeness) < 0.3


@pytest.mark.parametrize("width", [8, 64])
def test_every_piece_has_a_vector_of_unit_length(width):
    vectors = bilingual_vectors(*pairs(20, 50), size=42, width=width)  # pieces 40 and 41 stand nowhere
    assert vectors.shape == (42, width)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
