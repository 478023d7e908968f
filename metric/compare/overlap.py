"""Metrics of word and letter overlap, to stand beside a learned one: sentBLEU, BLEU and chrF by sacreBLEU."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Overlap:
    """What overlap metrics say of one system, each figure from 0 to 100.

    Attributes:
        sentbleu: sentence BLEU of each segment: effective order, exponential smoothing (sacreBLEU's default; method 3
            of Chen and Cherry, 2014, https://aclanthology.org/W14-3346).
        mean_sentbleu: their mean.
        bleu: corpus BLEU (https://aclanthology.org/P02-1040).
        chrf: corpus chrF (https://aclanthology.org/W15-3049).
        signatures: sacreBLEU's, by metric.
    """

    sentbleu: list[float]
    mean_sentbleu: float
    bleu: float
    chrf: float
    signatures: dict[str, str]


def overlap(references: Sequence[Sequence[str]], candidates: Sequence[str]) -> Overlap:
    """Compute the overlap of a system's candidates with their references.

    Args:
        references: one list of references a candidate, of any length from one.
        candidates: the system's texts, at least one.
    """
    from sacrebleu.metrics import BLEU, CHRF

    # force: sacreBLEU would otherwise warn of text that looks tokenised, once for each system.
    sentence, corpus, letters = BLEU(effective_order=True, force=True), BLEU(force=True), CHRF()
    pairs = zip(references, candidates, strict=True)
    sentences = [sentence.sentence_score(candidate, list(several)).score for several, candidate in pairs]
    streams = [list(stream) for stream in itertools.zip_longest(*references)]  # None where there are fewer
    return Overlap(
        sentbleu=sentences,
        mean_sentbleu=sum(sentences) / len(sentences),
        bleu=corpus.corpus_score(candidates, streams).score,
        chrf=letters.corpus_score(candidates, streams).score,
        signatures={
            "sentBLEU": str(sentence.get_signature()),
            "BLEU": str(corpus.get_signature()),
            "chrF": str(letters.get_signature()),
        },
    )
