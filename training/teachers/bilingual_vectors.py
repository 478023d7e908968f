"""Embeddings in which a word lies near its translations, from parallel text alone, to begin a translator with.

Pieces that stand in the same sentence pairs get similar vectors: latent semantic indexing of bilingual documents (Dumais
et al., 1997, https://aaai.org/papers/0003-ss97-05-003-automatic-cross-language-retrieval-using-latent-semantic-indexing/).
A translator with one embedding matrix for both sides then has to learn only where to look, since writing what it sees is
nearly right; from random embeddings it takes many times as many steps until it looks at its source at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def bilingual_vectors(
    sentences: Sequence[np.ndarray], translations: Sequence[np.ndarray], size: int, width: int
) -> np.ndarray:
    """Give a vector for each piece of a shared vocabulary.

    Args:
        sentences, translations: token ids of the two sides of each pair.
        size: of the vocabulary.
        width: of the vectors; numbers beyond `size` are 0.

    Returns:
        float32, (size, width), of unit length; random ones for pieces that stand in no pair.
    """
    from scipy.linalg import eigh
    from scipy.sparse import csr_matrix, diags

    pieces = [np.unique(np.concatenate(pair)) for pair in zip(sentences, translations, strict=True)]
    starts = np.cumsum([0, *map(len, pieces)])
    stands = csr_matrix((np.ones(starts[-1], np.float32), np.concatenate(pieces), starts), shape=(len(pieces), size))
    frequency = np.asarray(stands.sum(axis=0)).ravel()
    rarity = np.log1p(len(pieces) / (1 + frequency)).astype(np.float32)
    weighted = stands @ diags(rarity)
    lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    documents = diags(1 / np.maximum(lengths, 1e-6)) @ weighted  # (pairs, pieces), rows of unit length
    likeness = (documents.T @ documents).toarray()  # (pieces, pieces)
    norms = np.sqrt(np.maximum(np.diag(likeness), 1e-12))
    values, vectors = eigh(likeness / norms[:, None] / norms, subset_by_index=[max(size - width, 0), size - 1])
    found = np.zeros((size, width))
    found[:, : len(values)] = vectors * np.sqrt(np.maximum(values, 0))
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    random = np.random.default_rng(0).normal(size=found.shape)
    found = np.where(lengths > 1e-6, found, random)
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
