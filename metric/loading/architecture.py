"""The two encoders of official BLEURT checkpoints, as classes of plain `transformers`.

English checkpoints are BERT; the BLEURT-20 family is RemBERT, whose token embeddings are narrower than its layers
(https://openreview.net/forum?id=xpFFI_NtgpW). Both end in BERT's tanh pooler and one linear layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.layout import CONFIG_KEY, Layout
from bleurt_repro.metric.loading.limits import StoredSize, size_limit
from bleurt_repro.metric.loading.quiet import first_line, quiet_transformers

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel

# "gelu" means the tanh approximation in the official code and the exact, error-function GELU in transformers.
GELU_NAMES = {"tanh": "gelu_pytorch_tanh", "erf": "gelu"}
# The GELUs of `transformers` by name, and the approximation by which torch computes each.
GELU_APPROXIMATIONS = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh"}
SHAPE_SETTINGS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
LAYER_NORM_EPSILON = 1e-12  # the official graph's, whatever the settings say
PADDING_ID = 0


def is_rembert(settings: Mapping[str, Any]) -> bool:
    """Return whether settings are those of the BLEURT-20 family, which projects narrow embeddings."""
    return settings.get("embedding_size") is not None


def scorer_config(settings: Mapping[str, Any], layout: Layout, activation: str) -> PreTrainedConfig:
    """Describe a scorer to `transformers`.

    Args:
        settings: sizes by the names that bert_config.json uses; `embedding_size` makes it a RemBERT.
        layout: what the checkpoint reads.
        activation: name of the GELU in `transformers`.

    Raises:
        ValueError: if a size is missing or no whole number, or the sizes do not fit together.
    """
    import transformers

    names = SHAPE_SETTINGS + (("embedding_size",) if is_rembert(settings) else ())
    sizes: dict[str, Any] = {name: _size(settings, name) for name in names}
    if layout.max_length > sizes["max_position_embeddings"]:
        raise ValueError(
            f"reads {layout.max_length} tokens, but the model has {sizes['max_position_embeddings']} positions"
        )
    if sizes["hidden_size"] % sizes["num_attention_heads"]:
        raise ValueError(
            f"hidden_size {sizes['hidden_size']} is no multiple of num_attention_heads {sizes['num_attention_heads']}"
        )
    common: dict[str, Any] = {
        "hidden_act": activation,
        "hidden_dropout_prob": settings.get("hidden_dropout_prob", 0.1),
        "attention_probs_dropout_prob": settings.get("attention_probs_dropout_prob", 0.1),
        "initializer_range": settings.get("initializer_range", 0.02),
        "layer_norm_eps": LAYER_NORM_EPSILON,
        "pad_token_id": PADDING_ID,
        "num_labels": 1,
        "problem_type": "regression",
        CONFIG_KEY: layout.to_config(),
    }
    config_class: Any = transformers.BertConfig
    if is_rembert(settings):
        config_class = transformers.RemBertConfig
        sizes["input_embedding_size"] = sizes.pop("embedding_size")
        common.update(bos_token_id=None, eos_token_id=None, classifier_dropout_prob=0.0)
    else:
        common["classifier_dropout"] = 0.0
    try:
        return config_class(**sizes, **common)
    except Exception as error:  # whatever value the library refuses, the user needs one sentence
        raise ValueError(f"its settings describe no model ({first_line(error)})") from error


def _size(settings: Mapping[str, Any], name: str) -> int:
    size = settings.get(name)
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"its settings need {name}, a whole number above 0; found {repr(size)[:20]}")
    return size


def scorer_model(config: PreTrainedConfig, weights: dict[str, torch.Tensor]) -> PreTrainedModel:
    """Build a scorer from weights, in float32 and in evaluation mode.

    Args:
        config: as `scorer_config` returns it.
        weights: all of its weights, by their names in `transformers`.

    Raises:
        ValueError: naming the weights that are missing, unknown, of another shape, or no numbers.
    """
    import torch

    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    stored = StoredSize(len(weights), sum(weight.numel() for weight in weights.values()))
    check_weights(shapes, weight_shapes(config, stored))
    if damaged := [name for name, weight in weights.items() if not weight.isfinite().all()]:
        raise ValueError(f"{_first_three(damaged)} NaN or infinite in places")
    try:
        with quiet_transformers():
            model = _model_class(config).from_pretrained(None, config=config, state_dict=weights, dtype=torch.float32)
    except Exception as error:  # whatever the library refuses, the user needs one sentence
        raise ValueError(f"its weights make no model ({first_line(error)})") from error
    return model.eval()


def weight_shapes(config: PreTrainedConfig, stored: StoredSize) -> dict[str, tuple[int, ...]]:
    """List the weights of a scorer and their shapes, without allocating them.

    Args:
        config: as `scorer_config` returns it.
        stored: size of the weights that there are.

    Raises:
        ValueError: if the config describes a much larger model.
    """
    import torch

    try:
        with torch.device("meta"), size_limit(stored):
            model = _model_class(config)(config)
    except Exception as error:  # torch's own, of sizes beyond its whole numbers
        raise ValueError(f"its settings describe no model ({first_line(error)})") from error
    return {name: tuple(weight.shape) for name, weight in model.state_dict().items()}


def check_weights(shapes: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Compare weights by name and shape.

    Args:
        shapes: shapes of the weights that there are, by name.
        expected: shapes of the weights that a scorer has.

    Raises:
        ValueError: naming what is missing, of another shape, or unknown.
    """
    if missing := [name for name in expected if name not in shapes]:
        raise ValueError(f"{_first_three(missing)} missing")
    for name, shape in expected.items():
        if shapes[name] != shape:
            raise ValueError(f"{name} has shape {shapes[name]}, expected {shape}")
    if unknown := [name for name in shapes if name not in expected]:
        raise ValueError(f"{_first_three(unknown)} of no use to a scorer")


def _first_three(names: list[str]) -> str:
    count = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(sorted(names)[:3])}{count} {'is' if len(names) == 1 else 'are'}"


def _model_class(config: PreTrainedConfig) -> Any:
    import transformers

    is_bert = config.model_type == "bert"
    return transformers.BertForSequenceClassification if is_bert else transformers.RemBertForSequenceClassification
