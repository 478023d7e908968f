"""Open a BERT scorer without `transformers`, whose import takes longer than everything else before a first score.

Modules of torch hold the weights under the names that they have in the file, and `tokenizers` reads the vocabulary:
what `PackedForward` and `PairEncoder` need. A checkpoint that differs in anything from a plain BERT scorer with its
own WordPiece tokenizer is left to `transformers`, and so is one that is damaged, for its errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.loading.architecture import GELU_APPROXIMATIONS
from bleurt_repro.metric.loading.wordpiece import WordPieceTokenizer, open_wordpiece

if TYPE_CHECKING:
    from torch import nn

# Settings of config.json that the modules are built by; one that is missing has a default in `transformers`.
SETTINGS = {
    "vocab_size": int,
    "hidden_size": int,
    "intermediate_size": int,
    "num_hidden_layers": int,
    "num_attention_heads": int,
    "max_position_embeddings": int,
    "type_vocab_size": int,
    "layer_norm_eps": float,
    "hidden_act": str,
}
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
        model: modules under the names of `BertForSequenceClassification`; they have no forward pass.
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
        None if it is no plain BERT scorer, or its weights are not what config.json describes.
    """
    tokenizer = open_wordpiece(folder) if _is_plain(settings) else None
    if tokenizer is None:
        return None
    config = SimpleNamespace(**{"pad_token_id": 0, "bleurt": None, **settings, "num_labels": 1})
    model = _with_weights(config, folder)
    return None if model is None else LightScorer(model, config, tokenizer)


def _is_plain(settings: Mapping[str, Any]) -> bool:
    """Return whether config.json describes a BERT scorer that `PackedForward` computes, and in full."""
    labels = settings.get("id2label")
    return (
        settings["model_type"] == "bert"
        and settings.get("architectures") == ["BertForSequenceClassification"]
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

    files = [path.name for path in folder.glob("*.safetensors*")]
    if files != ["model.safetensors"]:
        return None
    try:
        # Modules on the meta device have shapes but no memory; the weights of the file take their places.
        with torch.device("meta"):
            model = _modules(config)
        model.load_state_dict(load_file(folder / files[0]), assign=True)
    except (SafetensorError, OSError, RuntimeError, ValueError):
        return None
    return model.eval().requires_grad_(False)


def _modules(config: Any) -> nn.Module:
    """Make the modules of a BERT scorer, by the names of its weights, which they do not have yet."""
    import torch
    from torch import nn

    width, inner = config.hidden_size, config.intermediate_size

    def group(**members: nn.Module) -> nn.Module:
        module = nn.Module()
        for name, member in members.items():
            module.add_module(name, member)
        return module

    def norm() -> nn.Module:
        return nn.LayerNorm(width, eps=config.layer_norm_eps)

    def layer() -> nn.Module:
        projections = {name: nn.Linear(width, width) for name in ("query", "key", "value")}
        return group(
            attention=group(
                self=group(**projections),
                output=group(dense=nn.Linear(width, width), LayerNorm=norm()),
            ),
            intermediate=group(dense=nn.Linear(width, inner)),
            output=group(dense=nn.Linear(inner, width), LayerNorm=norm()),
        )

    def embedding(count: int) -> nn.Module:
        return nn.Embedding.from_pretrained(torch.empty(count, width))  # without the random start of its weights

    embeddings = group(
        word_embeddings=embedding(config.vocab_size),
        position_embeddings=embedding(config.max_position_embeddings),
        token_type_embeddings=embedding(config.type_vocab_size),
        LayerNorm=norm(),
    )
    layers = nn.ModuleList(layer() for _ in range(config.num_hidden_layers))
    model = group(
        bert=group(embeddings=embeddings, encoder=group(layer=layers), pooler=group(dense=nn.Linear(width, width))),
        classifier=nn.Linear(width, 1),
    )
    model.config, model.base_model_prefix = config, "bert"  # type: ignore[assignment]
    return model
