"""Batches of sentence pairs: drawn by weight, of similar length, as many as fit a budget of tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import MarianTokenizer

from bleurt_repro.metric.batching import batches_by_tokens
from bleurt_repro.training.teachers.parallel_text import SentencePair
from bleurt_repro.training.teachers.vocabulary import encode_texts, tag

IGNORED = -100
# How many pairs make one long example.
JOINED = (2, 4)


@dataclass
class Examples:
    """What can be drawn.

    Attributes:
        tags: token that asks for the target language.
        sources: token ids of what is read, the end of sentence included.
        targets: token ids of what is to be written, the end of sentence included.
        weights: how often each is drawn, relative to the others.
        origins: where each comes from.
        too_long: how many were left out.
    """

    max_length: int
    tags: list[int] = field(default_factory=list)
    sources: list[np.ndarray] = field(default_factory=list)
    targets: list[np.ndarray] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)
    too_long: int = 0

    def add(self, tag: int, source: np.ndarray, target: np.ndarray, weight: float, origin: str) -> None:
        """Add an example, unless it is too long or never drawn."""
        if max(len(source) + 1, len(target)) > self.max_length:
            self.too_long += 1
        elif weight > 0:
            self.tags.append(tag)
            self.sources.append(source)
            self.targets.append(target)
            self.weights.append(weight)
            self.origins.append(origin)


def make_examples(
    pairs: list[SentencePair],
    weights: np.ndarray,
    copied: list[str],
    tokenizer: MarianTokenizer,
    *,
    joined_share: float,
    copied_share: float,
    max_length: int,
    seed: int,
) -> Examples:
    """Encode pairs in both directions, long examples joined from several, and English text to copy.

    Args:
        pairs: sentence pairs.
        weights: how often each is drawn, (pairs,).
        copied: English texts.
        tokenizer: from `train_vocabulary`.
        joined_share: joined examples for each pair.
        copied_share: of all that is drawn, how much is copied.
        max_length: tokens of the longest text.
        seed: of what is joined.
    """
    languages = ["en", *sorted({pair.language for pair in pairs})]
    tags = {name: tokenizer.get_vocab()[tag(name)] for name in languages}
    english = _encode([pair.english for pair in pairs], tokenizer)
    other = _encode([pair.target for pair in pairs], tokenizer)
    examples = Examples(max_length)

    def add_both(group: Sequence[int], origin: str) -> None:
        """Add both directions of one pair, or of some in a row."""
        language, weight = pairs[group[0]].language, float(np.mean(weights[group]))
        texts = [np.concatenate([*(side[i][:-1] for i in group[:-1]), side[group[-1]]]) for side in (english, other)]
        examples.add(tags[language], texts[0], texts[1], weight, origin)
        examples.add(tags["en"], texts[1], texts[0], weight, origin)

    for i, pair in enumerate(pairs):
        add_both([i], f"{pair.language} {pair.source}")
    for group in _joined(pairs, weights, round(joined_share * len(pairs)), np.random.default_rng(seed)):
        add_both(group, f"{pairs[group[0]].language} joined")
    if copied:
        weight = copied_share / (1 - copied_share) * sum(examples.weights) / len(copied)
        for ids in _encode(copied, tokenizer):
            examples.add(tags["en"], ids, ids, weight, "copied")
    return examples


class Batches(torch.utils.data.Dataset):
    """A data set each of whose items is a batch, so that the Trainer's own sampling and resuming apply to batches.

    Args:
        examples: what can be drawn.
        count: how many batches.
        batch_tokens: most tokens of a batch in one language, padding included.
        seed: of what is drawn.

    Attributes:
        drawn: how many examples of each origin there are in all batches.
    """

    def __init__(self, examples: Examples, count: int, batch_tokens: int, seed: int) -> None:
        self.examples = examples
        random = np.random.default_rng(seed)
        lengths = np.array([max(len(a) + 1, len(b)) for a, b in zip(examples.sources, examples.targets, strict=True)])
        expected = np.array(examples.weights) / np.mean(examples.weights)
        self._batches: list[list[int]] = []
        while len(self._batches) < count:  # a pass over all examples, each as often as it is expected on average
            copies = np.floor(expected + random.random(len(expected))).astype(int)
            drawn = random.permutation(np.repeat(np.arange(len(expected)), copies))
            batches = batches_by_tokens(lengths[drawn].tolist(), batch_tokens)
            self._batches += [drawn[batches[i]].tolist() for i in random.permutation(len(batches))]
        del self._batches[count:]
        self.drawn = Counter(examples.origins[i] for batch in self._batches for i in batch)

    def __len__(self) -> int:
        """Give the number of batches."""
        return len(self._batches)

    def __getitem__(self, index: int) -> list[tuple[list[int], list[int]]]:
        """Give a batch: source with its tag, and target, of each example."""
        of = self.examples
        return [([of.tags[i], *of.sources[i].tolist()], of.targets[i].tolist()) for i in self._batches[index]]


class BatchCollator:
    """Pads the items of `Batches`.

    Args:
        pad: id of the padding token.
        start: id that the decoder begins with.
    """

    def __init__(self, pad: int, start: int) -> None:
        self.pad, self.start = pad, start

    def __call__(self, items: list[list[tuple[list[int], list[int]]]]) -> dict[str, torch.Tensor]:
        """Give the model's inputs and labels, (pairs, tokens)."""
        pairs = [pair for item in items for pair in item]
        sources = _pad([source for source, _ in pairs], self.pad)
        labels = _pad([target for _, target in pairs], IGNORED)
        begun = torch.full_like(labels[:, :1], self.start)
        return {
            "input_ids": sources,
            "attention_mask": (sources != self.pad).long(),
            "decoder_input_ids": torch.cat(
                [begun, labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, self.pad)], 1
            ),
            "labels": labels,
        }


def _encode(texts: list[str], tokenizer: MarianTokenizer) -> list[np.ndarray]:
    end = np.array([tokenizer.eos_token_id], dtype=np.int32)
    return [np.concatenate([ids, end]) for ids in encode_texts(texts, tokenizer)]


def _joined(
    pairs: list[SentencePair], weights: np.ndarray, count: int, random: np.random.Generator
) -> list[list[int]]:
    """Choose which pairs stand in a row; all of one language."""
    by_language: dict[str, list[int]] = {}
    for i, pair in enumerate(pairs):
        by_language.setdefault(pair.language, []).append(i)
    groups = []
    for members in by_language.values():
        chances = weights[members] / weights[members].sum()
        sizes = random.integers(*JOINED, endpoint=True, size=round(count * len(members) / len(pairs)))
        drawn = random.choice(members, sizes.sum(), p=chances)
        groups += [group.tolist() for group in np.split(drawn, np.cumsum(sizes)[:-1]) if len(group)]
    return groups


def _pad(rows: list[list[int]], value: int) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=value
    )
