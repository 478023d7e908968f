"""BLEURT and RoBLEURT: learned metrics that score a candidate sentence against a reference.

The public names are loaded on first use, so that `import bleurt_repro` takes no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bleurt_repro.hub_cards.train import finetune, pretrain
    from bleurt_repro.metric.choose import choose
    from bleurt_repro.metric.register import register
    from bleurt_repro.metric.scorer import BleurtScorer, ScoringResult

    LengthBatchingBleurtScorer = BleurtScorer

__version__ = "0.1.0"
__all__ = ["BleurtScorer", "LengthBatchingBleurtScorer", "ScoringResult", "choose", "finetune", "pretrain", "register"]

_LOCATIONS = {
    "BleurtScorer": "bleurt_repro.metric.scorer:BleurtScorer",
    # The official library's scorer that sorts pairs by length, which BleurtScorer always does.
    "LengthBatchingBleurtScorer": "bleurt_repro.metric.scorer:BleurtScorer",
    "ScoringResult": "bleurt_repro.metric.scorer:ScoringResult",
    "choose": "bleurt_repro.metric.choose:choose",
    "finetune": "bleurt_repro.hub_cards.train:finetune",
    "pretrain": "bleurt_repro.hub_cards.train:pretrain",
    "register": "bleurt_repro.metric.register:register",
}


def __getattr__(name: str) -> Any:
    if name not in _LOCATIONS:
        raise AttributeError(f"module 'bleurt_repro' has no attribute {name!r}; it offers {', '.join(__all__)}")
    from importlib import import_module

    module, _, attribute = _LOCATIONS[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
