"""The ways to score the same pairs with the same weights that `scoring.py` compares."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.forward.encoding import Encoded
from bleurt_repro.metric.forward.pairs import batches_by_tokens
from bleurt_repro.metric.forward.plain import PlainForward

Pair = tuple[str, str]


class Strategy(NamedTuple):
    """One way: its name, how it scores, and the tokens it computes on for pairs of given lengths."""

    name: str
    score: Callable[[Sequence[Pair]], list[float]]
    padded_tokens: Callable[[Sequence[int]], int]
    slow: bool = False


def peers(scorer: BleurtScorer) -> list[Strategy]:
    """What others do, with the scorer's own `transformers` model and tokens."""
    plans: dict[str, tuple[Callable[[Sequence[int]], list[list[int]]], int | None]] = {
        "padded to 512": (functools.partial(in_order, size=32), 512),
        "padded to 128": (functools.partial(in_order, size=32), 128),
        "given order, batch 32": (functools.partial(in_order, size=32), None),
        "sorted, batch 16": (functools.partial(by_length, size=16), None),
    }
    return [
        Strategy(
            name,
            functools.partial(_score, scorer, plan, fixed),
            functools.partial(_padded_tokens, plan, fixed),
            slow=fixed is not None,
        )
        for name, (plan, fixed) in plans.items()
        if fixed is None or fixed <= scorer.model.config.max_position_embeddings
    ]


def own(name: str, scorer: BleurtScorer) -> Strategy:
    """Our scorer as it stands."""

    def score(pairs: Sequence[Pair]) -> list[float]:
        references, candidates = zip(*pairs, strict=True)
        return scorer.score(references=references, candidates=candidates)

    def padded_tokens(lengths: Sequence[int]) -> int:
        if scorer.device.type == "cpu":
            return sum(lengths)
        return sum(len(batch) * lengths[batch[0]] for batch in batches_by_tokens(lengths, scorer.members[0].batch_tokens))

    return Strategy(name, score, padded_tokens)


def bert_score(encoder: str, layers: int, device: str) -> Strategy:
    """BERTScore by its own package, on an encoder of the same size; its scores are no BLEURT scores."""
    from bert_score import BERTScorer

    made = BERTScorer(model_type=encoder, num_layers=layers, device=device)

    def score(pairs: Sequence[Pair]) -> list[float]:
        references, candidates = ([text or "." for text in texts] for texts in zip(*pairs, strict=True))
        return made.score(candidates, references)[2].tolist()

    return Strategy("bert-score, same encoder", score, sum)


def encode(scorer: BleurtScorer, pairs: Sequence[Pair]) -> list[Encoded]:
    """Tokenise pairs as the scorer does."""
    return scorer.members[0].encoder.encode_all([(reference, candidate) for reference, candidate in pairs])


def in_order(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Batches of a number of pairs in the given order."""
    return [list(range(start, min(start + size, len(lengths)))) for start in range(0, len(lengths), size)]


def by_length(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Batches of a number of pairs in order of length, as the official length batching makes them."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return [order[start : start + size] for start in range(0, len(order), size)]


class _Fixed(PlainForward):
    """The model's own forward pass over batches of one fixed length."""

    def __init__(self, scorer: BleurtScorer, length: int | None) -> None:
        super().__init__(scorer.model, scorer.tokenizer.pad_token_id)
        self._length = length

    def __call__(self, pairs: Sequence[Encoded]) -> torch.Tensor:
        if self._length is None:
            return super().__call__(pairs)
        ids, mask, segments = self._padded(pairs)
        room = (0, max(0, self._length - ids.shape[1]))
        padded = [torch.nn.functional.pad(tensor, room).to(self._model.device) for tensor in (ids, mask, segments)]
        return self._model(input_ids=padded[0], attention_mask=padded[1], token_type_ids=padded[2]).logits[:, 0]


def _score(
    scorer: BleurtScorer,
    plan: Callable[[Sequence[int]], list[list[int]]],
    fixed: int | None,
    pairs: Sequence[Pair],
) -> list[float]:
    encoded = encode(scorer, pairs)
    forward, scores = _Fixed(scorer, fixed), [0.0] * len(pairs)
    with torch.inference_mode():
        for batch in plan([len(pair.ids) for pair in encoded]):
            for i, score in zip(batch, forward([encoded[i] for i in batch]).tolist(), strict=True):
                scores[i] = score
    return scores


def _padded_tokens(plan: Callable[[Sequence[int]], list[list[int]]], fixed: int | None, lengths: Sequence[int]) -> int:
    return sum(len(batch) * max(fixed or 0, *(lengths[i] for i in batch)) for batch in plan(lengths))
