"""The pre-training signals of BLEURT, one file each (section 4.2, Table 1)."""

from __future__ import annotations

from bleurt_repro.datasets_builders.signals.back_translation import BackTranslationFlag, BackTranslationLikelihood
from bleurt_repro.datasets_builders.signals.base import GROUPS, Signal
from bleurt_repro.datasets_builders.signals.bertscore import BertScore
from bleurt_repro.datasets_builders.signals.bleu import Bleu
from bleurt_repro.datasets_builders.signals.entailment import Entailment
from bleurt_repro.datasets_builders.signals.rouge import Rouge

SIGNALS: dict[str, type[Signal]] = {
    signal.name: signal
    for signal in (Bleu, Rouge, BertScore, BackTranslationLikelihood, Entailment, BackTranslationFlag)
}

__all__ = ["GROUPS", "SIGNALS", "Signal", *sorted(cls.__name__ for cls in SIGNALS.values())]
