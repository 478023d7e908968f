"""A sequence-to-sequence model that translates greedily and computes how likely a given translation is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bleurt_repro.datasets_builders.open_models import default_device, load_model
from bleurt_repro.metric.forward.pairs import batches_by_tokens
from bleurt_repro.metric.layout import readable_tokens

# Longest translation of a source of n tokens: 2 n + 8 tokens, where a model that repeats itself is stopped.
LENGTH_FACTOR, LENGTH_SLACK = 2, 8
# Scoring holds the distribution over the vocabulary for every token, so its batches are smaller by this factor.
SCORED_SHARE = 4


class Translator:
    """A translation model that remembers its translations.

    Args:
        model: local folder or Hub id of a sequence-to-sequence model.
        role: role of the model, for messages.
        device: device of the model; default: the best one available.
        batch_tokens: number of padded source tokens translated at once.

    Attributes:
        identity: name and hash of the model.
        max_tokens: length of the longest text that the model reads or writes, in tokens.
        truncated: number of texts that were truncated to that length.
    """

    def __init__(
        self, model: str, role: str = "translator", device: str | None = None, batch_tokens: int = 4096
    ) -> None:
        from transformers import AutoModelForSeq2SeqLM

        self.device, self.batch_tokens = device or default_device(), batch_tokens
        self._model, self._tokenizer, self.identity = load_model(AutoModelForSeq2SeqLM, model, role, self.device)
        self.max_tokens = readable_tokens(self._model.config, self._tokenizer)
        self.truncated = 0
        self._memory: dict[tuple[str, str], str] = {}
        # Greedy search with the model's begin, end and forbidden tokens. It sets no end token at the batch's length
        # limit, which would depend on the other texts of the batch.
        self._model.generation_config.update(
            num_beams=1,
            do_sample=False,
            max_length=None,
            early_stopping=False,
            length_penalty=1.0,
            forced_eos_token_id=None,
        )

    def forget(self) -> None:
        """Forget all translations."""
        self._memory.clear()

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text of the source language, the end-of-sentence token included."""
        return len(self._tokenizer(text, verbose=False)["input_ids"])

    def translate(self, texts: Sequence[str], prefix: str = "") -> list[str]:
        """Translate texts greedily; translations that are remembered are not computed again.

        Args:
            texts: any texts.
            prefix: prefix of each text, such as ">>fr<< " for a model of several target languages.
        """
        new = [text for text in dict.fromkeys(texts) if (prefix, text) not in self._memory]
        sources = self._encode([prefix + text for text in new])
        for batch in batches_by_tokens([len(ids) for ids in sources], self.batch_tokens):
            for i, translation in zip(batch, self._generate([sources[i] for i in batch]), strict=True):
                self._memory[prefix, new[i]] = translation
        return [self._memory[prefix, text] for text in texts]

    def log_likelihoods(self, sources: Sequence[str], targets: Sequence[str], prefix: str = "") -> np.ndarray:
        """Compute log P(target | source) / |target|, the end-of-sentence token included in both.

        Args:
            sources: n texts of the source language.
            targets: n texts of the target language.
            prefix: prefix of each source.

        Returns:
            Mean log-probability of the tokens of each target in nats, shape (n,).
        """
        source_ids = self._encode([prefix + text for text in sources])
        target_ids = self._encode(targets, target=True)
        means = np.zeros(len(sources))
        lengths = [max(len(a), len(b)) for a, b in zip(source_ids, target_ids, strict=True)]
        for batch in batches_by_tokens(lengths, max(1, self.batch_tokens // SCORED_SHARE)):
            means[batch] = self._score([source_ids[i] for i in batch], [target_ids[i] for i in batch])
        return means

    def _encode(self, texts: Sequence[str], target: bool = False) -> list[list[int]]:
        if not texts:
            return []
        encoded = self._tokenizer(**{"text_target" if target else "text": list(texts)}, verbose=False)["input_ids"]
        self.truncated += sum(len(ids) > self.max_tokens for ids in encoded)
        # Texts that are too long keep their last token, which ends the sentence.
        return [ids if len(ids) <= self.max_tokens else ids[: self.max_tokens - 1] + ids[-1:] for ids in encoded]

    def _generate(self, sources: list[list[int]]) -> list[str]:
        import torch

        limits = [min(LENGTH_FACTOR * len(ids) + LENGTH_SLACK, self.max_tokens - 1) for ids in sources]
        with torch.inference_mode():
            generated = self._model.generate(**self._pad(sources), max_new_tokens=max(limits))
        # Each text has its own limit, so that its translation does not depend on the other texts of the batch.
        ids = [row[1 : 1 + limit] for row, limit in zip(generated.tolist(), limits, strict=True)]
        return [text.strip() for text in self._tokenizer.batch_decode(ids, skip_special_tokens=True)]

    def _score(self, sources: list[list[int]], targets: list[list[int]]) -> np.ndarray:
        import torch

        labels = self._pad(targets)
        with torch.inference_mode():
            logits = self._model(
                **self._pad(sources), labels=labels["input_ids"]
            ).logits  # (batch, tokens, vocabulary)
            # Flattened, so that the vocabulary is the last dimension: over a transposed one, softmax is five times
            # slower.
            token_losses = torch.nn.functional.cross_entropy(
                logits.float().flatten(0, 1), labels["input_ids"].flatten(), reduction="none"
            ).view(labels["input_ids"].shape)
        mask = labels["attention_mask"].double()
        return (-(token_losses.double() * mask).sum(dim=1) / mask.sum(dim=1)).cpu().numpy()

    def _pad(self, rows: list[list[int]]) -> dict[str, Any]:
        return self._tokenizer.pad({"input_ids": rows}, return_tensors="pt", verbose=False).to(self.device)
