"""Open a BERT or MPNet scorer without `transformers`, whose import takes longer than all else before a first score.

Modules of torch hold the weights under the names that they have in the file, and `tokenizers` reads the vocabulary:
what `PackedForward` and `PairEncoder` need. A checkpoint that differs in anything from a plain scorer with its own
WordPiece tokenizer is left to `transformers`, and so is one that is damaged, for its errors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.loading.architecture import GELU_APPROXIMATIONS
from bleurt_repro.metric.loading.wordpiece import WordPieceTokenizer, open_wordpiece

if TYPE_CHECKING:
    from torch import nn

ARCHITECTURES = {"bert": "BertForSequenceClassification", "mpnet": "MPNetForSequenceClassification"}
# Settings of config.json that the modules are built by; one that is missing has a default in `transformers`.
SETTINGS = {
    "vocab_size": int,
    "hidden_size": int,
    "intermediate_size": int,
    "num_hidden_layers": int,
    "num_attention_heads": int,
    "max_position_embeddings": int,
    "layer_norm_eps": float,
    "hidden_act": str,
}
MPNET_PADDING = 1  # of every MPNet encoder, whatever config.json says
OWN_SETTINGS = {"bert": "type_vocab_size", "mpnet": "relative_attention_num_buckets"}
# What the other settings that change the model's function must be, where they are there.
PLAIN = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "chunk_size_feed_forward": 0,
    "pruned_heads": {},
}


@dataclass(frozen=True)
class LightScorer:
    """A scorer without `transformers`.

    Attributes:
        model: modules under the names of one of `ARCHITECTURES`; they have no forward pass.
        config: the settings of config.json.
        tokenizer: the tokenizer of tokenizer.json.
    """

    model: nn.Module
    config: Any
    tokenizer: WordPieceTokenizer


def open_light(folder: Path, settings: Mapping[str, Any]) -> LightScorer | None:
    """Open a checkpoint, its weights in the types that they are stored in.

    Args:
        folder: files of the checkpoint.
        settings: content of config.json.

    Returns:
        None if it is no plain BERT or MPNet scorer, or its weights are not what config.json describes.
    """
    tokenizer = open_wordpiece(folder, settings["model_type"]) if _is_plain(settings) else None
    if tokenizer is None:
        return None
    config = SimpleNamespace(**{"pad_token_id": 0, "bleurt": None, **settings, "num_labels": 1})
    model = _with_weights(config, folder)
    return None if model is None else LightScorer(model, config, tokenizer)


def _is_plain(settings: Mapping[str, Any]) -> bool:
    """Return whether config.json describes a scorer that `PackedForward` computes, and in full."""
    labels, model_type = settings.get("id2label"), settings["model_type"]
    return (
        model_type in ARCHITECTURES
        and settings.get("architectures") == [ARCHITECTURES[model_type]]
        and type(settings.get(OWN_SETTINGS[model_type])) is int
        and all(type(settings.get(name)) is expected_type for name, expected_type in SETTINGS.items())
        and settings["hidden_act"] in GELU_APPROXIMATIONS
        and settings["num_attention_heads"] > 0
        and settings["hidden_size"] % settings["num_attention_heads"] == 0
        and all(settings.get(name, value) == value for name, value in PLAIN.items())
        and isinstance(labels, dict)
        and len(labels) == 1
        and "quantization_config" not in settings
    )


def _with_weights(config: Any, folder: Path) -> nn.Module | None:
    """Read the weights into modules.

    Returns:
        None if there are other weights than these, or of other shapes.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        shards = _shards(folder)
        # Modules on the meta device have shapes but no memory; the weights of the files take their places.
        with torch.device("meta"):
            model = _modules(config)
        weights = {name: weight for shard in shards for name, weight in load_file(folder / shard).items()}
        model.load_state_dict(weights, assign=True)
    except (SafetensorError, OSError, RuntimeError, ValueError, KeyError, TypeError):
        return None
    return model.eval().requires_grad_(False)


def _shards(folder: Path) -> list[str]:
    """Return the names of the files of weights.

    Raises:
        ValueError: if there are other files of weights than one, or than the index of several names.
    """
    names = {path.name for path in folder.glob("*.safetensors*")}
    if names == {"model.safetensors"}:
        return ["model.safetensors"]
    index = "model.safetensors.index.json"
    shards = set(json.loads((folder / index).read_text(encoding="utf-8"))["weight_map"].values())
    if names != {index, *shards}:
        raise ValueError(f"expected the files that {index} names, found {', '.join(sorted(names))}")
    return sorted(shards)


def _modules(config: Any) -> nn.Module:
    """Make the modules of a scorer, by the names of its weights, which they do not have yet."""
    import torch
    from torch import nn

    width, inner = config.hidden_size, config.intermediate_size
    is_mpnet = config.model_type == "mpnet"

    def group(**members: nn.Module) -> nn.Module:
        module = nn.Module()
        for name, member in members.items():
            module.add_module(name, member)
        return module

    def norm() -> nn.Module:
        return nn.LayerNorm(width, eps=config.layer_norm_eps)

    def attention() -> nn.Module:
        if is_mpnet:
            return group(attn=group(**{name: nn.Linear(width, width) for name in "qkvo"}), LayerNorm=norm())
        projections = {name: nn.Linear(width, width) for name in ("query", "key", "value")}
        return group(self=group(**projections), output=group(dense=nn.Linear(width, width), LayerNorm=norm()))

    def layer() -> nn.Module:
        return group(
            attention=attention(),
            intermediate=group(dense=nn.Linear(width, inner)),
            output=group(dense=nn.Linear(inner, width), LayerNorm=norm()),
        )

    def embedding(count: int, size: int = width) -> nn.Module:
        return nn.Embedding.from_pretrained(torch.empty(count, size))  # without the random start of its weights

    embeddings = group(
        word_embeddings=embedding(config.vocab_size),
        position_embeddings=embedding(config.max_position_embeddings),
        LayerNorm=norm(),
    )
    layers = nn.ModuleList(layer() for _ in range(config.num_hidden_layers))
    dense = nn.Linear(width, width)
    if is_mpnet:
        embeddings.padding_idx = MPNET_PADDING  # type: ignore[assignment]
        biases = embedding(config.relative_attention_num_buckets, config.num_attention_heads)
        encoder = group(embeddings=embeddings, encoder=group(layer=layers, relative_attention_bias=biases))
        model = group(mpnet=encoder, classifier=group(dense=dense, out_proj=nn.Linear(width, 1)))
    else:
        embeddings.add_module("token_type_embeddings", embedding(config.type_vocab_size))
        encoder = group(embeddings=embeddings, encoder=group(layer=layers), pooler=group(dense=dense))
        model = group(bert=encoder, classifier=nn.Linear(width, 1))
    model.config, model.base_model_prefix = config, config.model_type
    return model
