"""MoverScore (https://aclanthology.org/D19-1053): how far the candidate's words must move to become the reference's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.training.experiments.baselines import Scored

Values = NDArray[np.float64]


def mover_score(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """One minus the earth mover's distance of the two texts' word pieces, at most 1; 0 where a side is blank.

    Single word pieces of the last layer, of length 1, with Euclidean distances and weights by inverse document
    frequency: the paper's unigram form, but for its averaging of the last five layers.

    Args:
        encoder: folder or Hub id.
        references, candidates: the pairs; either side's document frequencies are counted in its own texts.
    """
    from tqdm import tqdm

    from bleurt_repro.training.experiments.encoder_baselines import describe, last_layer

    signal = last_layer(encoder)
    encoded = signal.encode([text for text in (*references, *candidates) if text.strip()])
    pieces = {text: signal.pieces(text) for text in encoded}
    weights = [
        inverse_frequencies([pieces[text] for text in side if text in pieces]) for side in (references, candidates)
    ]
    scores = []
    for pair in tqdm(list(zip(references, candidates, strict=True)), desc="moverscore", unit="pair", disable=None):
        if any(text not in encoded for text in pair):
            scores.append(0.0)
            continue
        sides = [_side(encoded[text], pieces[text], weight) for text, weight in zip(pair, weights, strict=True)]
        scores.append(1.0 - earth_movers_distance(*sides[0], *sides[1]))
    return Scored(scores, f"MoverScore|unigrams|idf:yes|solver:highs|{describe(signal)}")


def inverse_frequencies(texts: Sequence[Sequence[int]]) -> dict[int, float]:
    """Give each word piece log((n + 1) / (number of the n texts that hold it + 1))."""
    counts = Counter(piece for text in texts for piece in set(text))
    return {piece: float(np.log((len(texts) + 1) / (count + 1))) for piece, count in counts.items()}


def earth_movers_distance(first: Values, first_weights: Values, second: Values, second_weights: Values) -> float:
    """Give the least cost of moving one set of weighted points onto another.

    Args:
        first, second: points, of shapes (n, size) and (m, size).
        first_weights, second_weights: of shapes (n,) and (m,), not negative; each is scaled to a sum of 1.
    """
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack
    from scipy.spatial.distance import cdist

    costs = cdist(first, second)
    n, m = costs.shape
    leaving = kron(eye_array(n), np.ones((1, m)))
    arriving = kron(np.ones((1, n)), eye_array(m))
    amounts = np.concatenate([_scaled(first_weights), _scaled(second_weights)])
    # the last constraint follows from the others: without it rounding cannot make them contradict each other
    moved = linprog(costs.ravel(), A_eq=vstack([leaving, arriving]).tocsr()[:-1], b_eq=amounts[:-1], method="highs")
    return float(moved.fun)


def _scaled(weights: Values) -> Values:
    """Make weights sum to 1; where all are 0, make them equal."""
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def _side(encoded: tuple[Any, Any], pieces: Sequence[int], frequencies: dict[int, float]) -> tuple[Values, Values]:
    vectors, inner = encoded[0].double().cpu().numpy(), encoded[1].cpu().numpy() > 0
    weights = np.array([frequencies[piece] for piece in pieces])
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return (vectors / lengths)[inner], weights[inner]
