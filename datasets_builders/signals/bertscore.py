"""BERTScore precision, recall and F (BLEURT, section 4.2 and A.3; Zhang et al., 2020)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from bleurt_repro.datasets_builders.open_models import default_device, find_model, identify, load_tokenizer
from bleurt_repro.datasets_builders.signals.base import AUTOMATIC_METRICS, Signal
from bleurt_repro.metric.forward.pairs import batches_by_tokens
from bleurt_repro.metric.layout import readable_tokens
from bleurt_repro.metric.loading.quiet import first_line, quiet_transformers

# BLEURT, A.3: "based on BERT-large uncased".
BERTSCORE_MODEL = "google-bert/bert-large-uncased"
# The library raises an error on some blank texts, and returns 0 for others. A pair with a blank side gets 0.
BLANK_SCORE = 0.0


class BertScore(Signal):
    """Greedy matching of contextual word pieces by cosine: `bert-score`, without idf weights or rescaling.

    Encoding and matching are the library's. Batches are not: the library's follow the order of a set of strings, which
    changes from process to process, and with it the last bits of the scores.

    Args:
        model: local folder or Hub id of an encoder.
        layers: layer whose output is compared; default: the library's choice for models it knows, else the last.
        device: device of the model; default: the best one available.
        batch_tokens: number of padded tokens encoded at once.
    """

    name = "bertscore"
    loss = "regression"
    group = AUTOMATIC_METRICS
    values = ("precision", "recall", "f1")

    def __init__(
        self,
        model: str = BERTSCORE_MODEL,
        layers: int | None = None,
        device: str | None = None,
        batch_tokens: int = 4096,
    ) -> None:
        from bert_score.utils import get_model

        folder = find_model(model, "BERTscore encoder")
        self.identity = identify(model, folder)
        self.layers = layers if layers is not None else default_layers(model, folder)
        self.device, self.batch_tokens = device or default_device(), batch_tokens
        try:
            with quiet_transformers():
                self._encoder = get_model(str(folder), self.layers).to(self.device)
                self._tokenizer = load_tokenizer(folder)
        except Exception as error:
            raise ValueError(
                f"BERTscore encoder {model} cannot be opened at layer {self.layers} ({first_line(error)})"
            ) from error
        self._tokenizer.model_max_length = readable_tokens(self._encoder.config, self._tokenizer)
        # Weights of the library without idf: 1 for every token, 0 for the special tokens at both ends.
        self._weights: dict[int, float] = defaultdict(lambda: 1.0)
        self._weights[self._tokenizer.cls_token_id] = self._weights[self._tokenizer.sep_token_id] = 0.0

    def __call__(
        self, references: Sequence[str], candidates: Sequence[str], perturbations: Sequence[str] | None = None
    ) -> np.ndarray:
        """Compute precision, recall and F of each pair, shape (n, 3); 0 where a side is blank."""
        scores = np.full((len(references), 3), BLANK_SCORE)
        pairs = [i for i in range(len(references)) if references[i].strip() and candidates[i].strip()]
        if not pairs:
            return scores
        encoded = self.encode([*(references[i] for i in pairs), *(candidates[i] for i in pairs)])
        lengths = [max(len(encoded[references[i]][0]), len(encoded[candidates[i]][0])) for i in pairs]
        for batch in batches_by_tokens(lengths, self.batch_tokens):
            rows = [pairs[j] for j in batch]
            scores[rows] = self._match([encoded[references[i]] for i in rows], [encoded[candidates[i]] for i in rows])
        return scores

    def pieces(self, text: str) -> list[int]:
        """Return the token ids of a text, the special tokens at both ends included."""
        from bert_score.utils import sent_encode

        return list(sent_encode(self._tokenizer, text))

    def spelled(self, pieces: Sequence[int]) -> list[str]:
        """Return tokens as the tokenizer writes them, such as "##ing"."""
        return list(self._tokenizer.convert_ids_to_tokens(list(pieces)))

    def encode(self, texts: Sequence[str]) -> dict[str, tuple[Any, Any]]:
        """Return the vectors (tokens, hidden) and weights (tokens) of each different text."""
        from bert_score.utils import get_bert_embedding

        unique = list(dict.fromkeys(texts))
        lengths = [len(self.pieces(text)) for text in unique]
        encoded = {}
        for batch in batches_by_tokens(lengths, self.batch_tokens):
            vectors, mask, weights = get_bert_embedding(
                [unique[i] for i in batch], self._encoder, self._tokenizer, self._weights, device=self.device
            )
            for row, i in enumerate(batch):
                length = int(mask[row].sum())
                encoded[unique[i]] = (vectors[row, :length], weights[row, :length].to(self.device))
        return encoded

    def _match(self, references: list[tuple[Any, Any]], candidates: list[tuple[Any, Any]]) -> np.ndarray:
        """Compute precision, recall and F of a batch of encoded pairs, shape (n, 3)."""
        import torch
        from bert_score.utils import greedy_cos_idf

        with torch.inference_mode():
            precision, recall, f1 = greedy_cos_idf(*_pad(references), *_pad(candidates))
        return torch.stack([precision, recall, f1], dim=-1).double().cpu().numpy()


def _pad(encoded: list[tuple[Any, Any]]) -> tuple[Any, Any, Any]:
    """Stack texts into vectors (batch, tokens, hidden), mask (batch, tokens) and weights (batch, tokens)."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    vectors, weights = zip(*encoded, strict=True)
    lengths = torch.tensor([len(item) for item in vectors], device=vectors[0].device)
    # Padding may be any number but 0: the vectors are normalised before the mask is applied.
    stacked = pad_sequence(list(vectors), batch_first=True, padding_value=1.0)
    mask = torch.arange(stacked.shape[1], device=lengths.device) < lengths[:, None]
    return stacked, mask, pad_sequence(list(weights), batch_first=True)


def default_layers(model: str, folder: Any) -> int:
    """Return the layer that BERTScore compares: the library's choice by the model's name, else the last.

    Args:
        model: name of the model, as the user gave it.
        folder: folder with its configuration.
    """
    from bert_score.utils import model2layers
    from transformers import AutoConfig

    for name in (model, model.partition("@")[0].rpartition("/")[2]):
        if name in model2layers:
            return model2layers[name]
    return int(AutoConfig.from_pretrained(folder).num_hidden_layers)
