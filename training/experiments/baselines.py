"""Metrics that people know, to stand beside a learned one: each gives one score a pair, higher is better.

A baseline is a key of `BASELINES`, or a key of `ENCODER_BASELINES` with an encoder: `bertscore:FOLDER_OR_HUB_ID`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF, TER

LANGUAGE = "en"


class Scored(NamedTuple):
    """Scores of one metric, one a pair, and the signature that reproduces them."""

    scores: list[float]
    signature: str


def sentbleu(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Moses' sentence BLEU on Moses-tokenised text, 0 to 100: the sentBLEU of the WMT Metrics task."""
    from bleurt_repro.datasets_builders.signals.bleu import Bleu

    scores = Bleu()(references, candidates)[:, 0].tolist()
    return Scored(scores, f"sentBLEU|tok:sacremoses-{version('sacremoses')}|case:mixed|smooth:add-one")


def bleu(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """SacreBLEU's sentence BLEU with its own tokenisation and effective order, 0 to 100."""
    from sacrebleu.metrics import BLEU

    return _sacrebleu(BLEU(effective_order=True), references, candidates)


def chrf_plus_plus(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """chrF++ (https://aclanthology.org/W17-4770) by sacreBLEU, 0 to 100."""
    from sacrebleu.metrics import CHRF

    return _sacrebleu(CHRF(word_order=2), references, candidates)


def ter(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """TER by sacreBLEU with its sign turned, so that higher is better: 0 is no edit, -100 one edit a word."""
    from sacrebleu.metrics import TER

    scored = _sacrebleu(TER(), references, candidates)
    return Scored([-score for score in scored.scores], f"-{scored.signature}")


def rouge(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """F of ROUGE-L (https://aclanthology.org/W04-1013) by `rouge-score`, with stemming, 0 to 1."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    pairs = zip(references, candidates, strict=True)
    scores = [scorer.score(reference, candidate)["rougeL"].fmeasure for reference, candidate in pairs]
    return Scored(scores, f"ROUGE-L|f1|stem:porter|version:{version('rouge-score')}")


def length_ratio(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """The shorter length over the longer one, in characters, 0 to 1: what knows nothing but length reaches."""
    pairs = [(len(r), len(c)) for r, c in zip(references, candidates, strict=True)]
    return Scored([min(pair) / max(*pair, 1) for pair in pairs], "length_ratio|shorter/longer|unit:character")


def _meteor(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    from bleurt_repro.training.experiments.meteor import meteor

    return meteor(references, candidates)


def _bertscore(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    from bleurt_repro.training.experiments.encoder_baselines import bertscore

    return bertscore(encoder, references, candidates)


def _mover_score(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    from bleurt_repro.training.experiments.mover_score import mover_score

    return mover_score(encoder, references, candidates)


def _cosine(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    from bleurt_repro.training.experiments.encoder_baselines import cosine

    return cosine(encoder, references, candidates)


Score = Callable[[Sequence[str], Sequence[str]], Scored]

BASELINES: dict[str, Score] = {
    "sentbleu": sentbleu,
    "bleu": bleu,
    "chrf++": chrf_plus_plus,
    "ter": ter,
    "rouge": rouge,
    "meteor": _meteor,
    "length_ratio": length_ratio,
}
ENCODER_BASELINES: dict[str, Callable[[str, Sequence[str], Sequence[str]], Scored]] = {
    "bertscore": _bertscore,
    "moverscore": _mover_score,
    "cosine": _cosine,
}


def find_baseline(name: str) -> Score:
    """Find a baseline by its name.

    Args:
        name: a key of `BASELINES`, or `KEY:ENCODER` with a key of `ENCODER_BASELINES`.

    Raises:
        ValueError: if there is none, or the encoder is missing.
    """
    key, _, encoder = name.partition(":")
    if name in BASELINES:
        return BASELINES[name]
    if key in ENCODER_BASELINES and encoder:
        return partial(ENCODER_BASELINES[key], encoder)
    known = ", ".join([*BASELINES, *(f"{key}:ENCODER" for key in ENCODER_BASELINES)])
    raise ValueError(f"unknown baselines {name}: known are {known}")


def shown_name(name: str) -> str:
    """Name a baseline in tables: `bertscore:/here/encoder` as "bertscore (encoder)"."""
    key, _, encoder = name.partition(":")
    return f"{key} ({Path(encoder).name})" if encoder else name


def tokenize(texts: Sequence[str]) -> dict[str, list[str]]:
    """Part texts into words as Moses' tokeniser does, each different text once."""
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=LANGUAGE)
    return {text: moses.tokenize(text, escape=False) for text in dict.fromkeys(texts)}


def _sacrebleu(metric: BLEU | CHRF | TER, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    pairs = zip(references, candidates, strict=True)
    scores = [metric.sentence_score(candidate, [reference]).score for reference, candidate in pairs]
    return Scored(scores, f"{type(metric).__name__}|{metric.get_signature()}")
