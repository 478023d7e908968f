"""Metrics of word and letter overlap to compare a learned metric with: sentence BLEU, BLEU and chrF by sacreBLEU."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from bleurt_repro.metric.inputs import without_blanks


@dataclass(frozen=True)
class Overlap:
    """Overlap metrics of one system, each from 0 to 100.

    Attributes:
        sentence_bleu: sentence BLEU of each segment: effective order, exponential smoothing (sacreBLEU's default; method 3
            of Chen and Cherry, 2014, https://aclanthology.org/W14-3346).
        mean_sentence_bleu: mean of the sentence BLEU.
        bleu: corpus BLEU (https://aclanthology.org/P02-1040).
        chrf: corpus chrF (https://aclanthology.org/W15-3049).
        precisions: modified n-gram precisions of corpus BLEU, from unigrams to 4-grams, without smoothing.
        brevity_penalty: factor of corpus BLEU from 0 to 1, below 1 if the candidates together have fewer tokens than the
            references of the closest length.
        signatures: sacreBLEU's signature of each metric, by name.
    """

    sentence_bleu: list[float]
    mean_sentence_bleu: float
    bleu: float
    chrf: float
    precisions: tuple[float, ...]
    brevity_penalty: float
    signatures: dict[str, str]


def overlap(references: Sequence[Sequence[str]], candidates: Sequence[str]) -> Overlap:
    """Compute the overlap of a system's candidates with their references.

    Args:
        references: one list of references per candidate, of any length from one. A blank reference is left out if the
            candidate has another one, as in `BleurtScorer`.
        candidates: texts of the system, at least one.
    """
    from sacrebleu.metrics import BLEU, CHRF

    # force: otherwise sacreBLEU warns once per system about text that looks tokenised.
    sentence, corpus, letters = BLEU(effective_order=True, force=True), BLEU(force=True), CHRF()
    references = [without_blanks(list(texts)) for texts in references]  # sacreBLEU leaves out empty ones alone
    pairs = zip(references, candidates, strict=True)
    sentences = [sentence.sentence_score(candidate, list(texts)).score for texts, candidate in pairs]
    streams = [list(stream) for stream in itertools.zip_longest(*references)]  # None for a candidate with fewer
    bleu = corpus.corpus_score(candidates, streams)
    return Overlap(
        sentence_bleu=sentences,
        mean_sentence_bleu=sum(sentences) / len(sentences),
        bleu=bleu.score,
        chrf=letters.corpus_score(candidates, streams).score,
        precisions=tuple(
            100 * count / total if total else 0.0 for count, total in zip(bleu.counts, bleu.totals, strict=True)
        ),
        brevity_penalty=bleu.bp,
        signatures={
            "sentence BLEU": str(sentence.get_signature()),
            "BLEU": str(corpus.get_signature()),
            "chrF": str(letters.get_signature()),
        },
    )
