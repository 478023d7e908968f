"""Baselines that compare an encoder's vectors: BERTscore and the cosine of whole sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bleurt_repro.training.experiments.baselines import Scored

if TYPE_CHECKING:
    import numpy

    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

# Of a pair with a blank side, as in BERTscore.
BLANK_SCORE = 0.0


def bertscore(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """F of BERTscore (https://arxiv.org/abs/1904.09675), without idf weights or rescaling.

    Args:
        encoder: folder or Hub id; the layer is the library's choice for those it knows, else the last.
        references, candidates: the pairs.
    """
    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

    signal = BertScore(encoder)
    return Scored(signal(references, candidates)[:, 2].tolist(), f"BERTscore|f1|{describe(signal)}|idf:no")


def cosine(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Cosine of the means of the last layer's vectors, -1 to 1; 0 where a side is blank.

    Args:
        encoder: folder or Hub id, best one made for sentences (https://arxiv.org/abs/1908.10084).
        references, candidates: the pairs.
    """
    signal = last_layer(encoder)
    means = sentence_means(signal, [*references, *candidates])
    scores = [
        float(means[reference] @ means[candidate]) if reference in means and candidate in means else BLANK_SCORE
        for reference, candidate in zip(references, candidates, strict=True)
    ]
    return Scored(scores, f"cosine|pooling:mean|{describe(signal)}")


def sentence_means(signal: BertScore, texts: Sequence[str]) -> dict[str, numpy.ndarray]:
    """Give each different text that is not blank the mean of its vectors, of length 1."""
    import numpy as np

    means = {}
    for text, (vectors, _) in signal.encode([text for text in texts if text.strip()]).items():
        mean = vectors.float().mean(dim=0).cpu().numpy()
        means[text] = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return means


def last_layer(encoder: str) -> BertScore:
    """Open an encoder to give the vectors of its last layer."""
    from transformers import AutoConfig

    from bleurt_repro.datasets_builders.models import find_model
    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

    layers = int(AutoConfig.from_pretrained(find_model(encoder, "encoder")).num_hidden_layers)
    return BertScore(encoder, layers=layers)


def describe(signal: BertScore) -> str:
    """Name an encoder, the hash of its weights and its layer, for a signature."""
    name = signal.identity["name"]
    shown = Path(name).name if Path(name).is_dir() else name
    return f"encoder:{shown}|sha256:{signal.identity['sha256']}|layer:{signal.layers}"
