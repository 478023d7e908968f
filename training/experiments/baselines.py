"""Metrics that people know, to stand beside a learned one: each gives one score a pair, higher is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF


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


BASELINES: dict[str, Callable[[Sequence[str], Sequence[str]], Scored]] = {
    "sentbleu": sentbleu,
    "bleu": bleu,
    "chrf++": chrf_plus_plus,
}


def _sacrebleu(metric: BLEU | CHRF, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    pairs = zip(references, candidates, strict=True)
    scores = [metric.sentence_score(candidate, [reference]).score for reference, candidate in pairs]
    return Scored(scores, f"{type(metric).__name__}|{metric.get_signature()}")
