"""Tiny random BERT, RemBERT and MPNet classifiers, and encoded pairs of given lengths."""

from __future__ import annotations

import random

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    MPNetConfig,
    MPNetForSequenceClassification,
    RemBertConfig,
    RemBertForSequenceClassification,
)

from bleurt_repro.metric.forward.encoding import Encoded

SIZES = {
    "vocab_size": 50,
    "hidden_size": 48,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "num_labels": 1,
}


def bert(layers: int = 3, **settings) -> BertForSequenceClassification:
    torch.manual_seed(1)
    return BertForSequenceClassification(BertConfig(num_hidden_layers=layers, **SIZES | settings)).eval()


def rembert(**settings) -> RemBertForSequenceClassification:
    torch.manual_seed(2)
    config = RemBertConfig(num_hidden_layers=3, input_embedding_size=16, output_embedding_size=16, **SIZES | settings)
    return RemBertForSequenceClassification(config).eval()


def mpnet(layers: int = 3, **settings) -> MPNetForSequenceClassification:
    torch.manual_seed(3)
    defaults = {"max_position_embeddings": 66, "initializer_range": 0.2}
    config = MPNetConfig(num_hidden_layers=layers, **SIZES | defaults | settings)
    return MPNetForSequenceClassification(config).eval()


def inputs(*lengths: int) -> list[Encoded]:
    rng = random.Random(0)
    ids = [[rng.randrange(1, 50) for _ in range(length)] for length in lengths]
    return [Encoded(tuple(t), tuple(int(2 * i > len(t)) for i in range(len(t))), False) for t in ids]
