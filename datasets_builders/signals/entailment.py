"""Entailment: does the reference entail or contradict the candidate? (BLEURT, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bleurt_repro.datasets_builders.open_models import default_device, load_model
from bleurt_repro.datasets_builders.signals.base import CLASSIFICATION, Signal
from bleurt_repro.metric.forward.pairs import batches_by_tokens
from bleurt_repro.metric.layout import readable_tokens

# BLEURT, 4.2: "BERT fine-tuned on MNLI". The paper's classifier is not public; this one is BERT-large, trained on
# MNLI.
ENTAILMENT_MODEL = "yoshitomo-matsubara/bert-large-uncased-mnli"
# Classifiers whose configuration leaves the labels unnamed. This one was trained on the labels of GLUE:
# https://github.com/yoshitomo-matsubara/torchdistill/tree/main/examples/legacy/hf_transformers
UNNAMED_LABELS = {ENTAILMENT_MODEL: ("entailment", "neutral", "contradiction")}


class Entailment(Signal):
    """Probabilities that the reference entails the candidate, contradicts it, or does neither.

    Args:
        model: local folder or Hub id of a classifier of sentence pairs with three labels.
        labels: its labels in the order of its outputs, each beginning with "entail", "contra" or "neutral"; default:
            those of its configuration.
        device: device of the model; default: the best one available.
        batch_tokens: number of padded tokens classified at once.
    """

    name = "entailment"
    loss = "classification"
    group = CLASSIFICATION
    values = ("entail", "contradict", "neutral")

    def __init__(
        self,
        model: str = ENTAILMENT_MODEL,
        labels: Sequence[str] | None = None,
        device: str | None = None,
        batch_tokens: int = 4096,
    ) -> None:
        from transformers import AutoModelForSequenceClassification

        self.device, self.batch_tokens = device or default_device(), batch_tokens
        role = "entailment classifier"
        self._model, self._tokenizer, self.identity = load_model(
            AutoModelForSequenceClassification, model, role, self.device
        )
        config = self._model.config
        labels = labels or UNNAMED_LABELS.get(model.partition("@")[0])
        names = list(labels) if labels else [config.id2label[i] for i in range(config.num_labels)]
        self._columns = label_columns(names, config.num_labels, model)
        self._max_length = readable_tokens(config, self._tokenizer)
        self.truncated = 0

    def __call__(
        self, references: Sequence[str], candidates: Sequence[str], perturbations: Sequence[str] | None = None
    ) -> np.ndarray:
        """Compute the probabilities in the order of `values`, shape (n, 3); the reference is the premise."""
        import torch

        encoded = self._tokenizer(list(references), list(candidates), verbose=False)["input_ids"] if references else []
        lengths = [min(len(ids), self._max_length) for ids in encoded]
        self.truncated += sum(len(ids) > self._max_length for ids in encoded)
        probabilities = np.zeros((len(references), 3))
        for batch in batches_by_tokens(lengths, self.batch_tokens):
            inputs = self._tokenizer(
                [references[i] for i in batch],
                [candidates[i] for i in batch],
                padding=True,
                truncation="longest_first",
                max_length=self._max_length,
                return_tensors="pt",
            ).to(self.device)
            with torch.inference_mode():
                logits = self._model(**inputs).logits.double()
            probabilities[batch] = logits.softmax(dim=-1)[:, self._columns].cpu().numpy()
        return probabilities


def label_columns(names: Sequence[str], size: int, model: str) -> list[int]:
    """Return the indices of a classifier's outputs for entailment, contradiction and neutral, in that order.

    Args:
        names: labels of the classifier in the order of its outputs.
        size: number of its outputs.
        model: name of the classifier, for the message.

    Raises:
        ValueError: if the labels are not these three, each once.
    """
    columns = [
        [i for i, name in enumerate(names) if str(name).lower().startswith(start)]
        for start in ("entail", "contra", "neutral")
    ]
    if len(names) != size or size != 3 or any(len(indices) != 1 for indices in columns):
        raise ValueError(
            f"entailment classifier {model} must have three labels, entailment, contradiction and neutral, found "
            f"{', '.join(map(str, names))} for {size} outputs: give entailment_labels, in the order of its outputs"
        )
    return [indices[0] for indices in columns]
