"""An exact forward pass for scorers shaped as BERT, RemBERT or MPNet, on a CPU, that computes only what the score needs.

The tokens of all pairs stand in one row, so linear layers see no padding but a little at its end (`few_sizes`); attention
runs over pairs of equal length, which need no mask but MPNet's bias by relative position; the last layer computes only
[CLS], the one token that the score reads (BLEURT, section 3.2). The weights are those of the `transformers` model, laid
out once as oneDNN's matrix products want them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, pad, scaled_dot_product_attention

from bleurt_repro.metric.forward.encoding import Encoded
from bleurt_repro.metric.loading.architecture import GELU_APPROXIMATIONS

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# The classes whose architecture is written out here.
PACKED = ("BertForSequenceClassification", "RemBertForSequenceClassification", "MPNetForSequenceClassification")
# A second layout of the weights doubles their memory: beyond this many bytes they are read where they are.
LAID_OUT_BYTES = 1 << 30
TOKENS_HINT = 2048  # tokens of a batch that the layout of the weights is chosen for


class Group(NamedTuple):
    """Neighbouring pairs of one length: the first token's place, how many pairs, how many tokens each."""

    start: int
    pairs: int
    length: int


class _Attention(NamedTuple):
    """The modules of a layer's attention, which MPNet calls by other names."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    output: nn.Linear
    norm: nn.LayerNorm


def can_pack(model: PreTrainedModel) -> bool:
    """Return whether this forward pass computes what the model's own would: a class of `PACKED` on a CPU."""
    config = model.config
    return (
        type(model).__name__ in PACKED
        and type(model).__module__.startswith("transformers.")
        and model.device.type == "cpu"
        and model.dtype in (torch.float32, torch.bfloat16)
        and config.hidden_act in GELU_APPROXIMATIONS
        and config.num_labels == 1
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
        and not getattr(config, "is_decoder", False)
        and not getattr(config, "add_cross_attention", False)
    )


def packed_forward(model: PreTrainedModel, before: PackedForward | None = None) -> PackedForward | None:
    """Return the packed forward pass of a model in evaluation mode, or None where it has none.

    Args:
        model: of a checkpoint.
        before: what was returned the last time; it is kept as long as the model's weights are the same.
    """
    if model.training or not can_pack(model):
        return None
    return before if before is not None and before.is_current(model) else PackedForward(model)


class PackedForward:
    """Scores pairs as the model itself would in evaluation mode, up to rounding (at most 1e-5 in float32).

    Args:
        model: a model for which `can_pack` holds, or the modules of a `LightScorer`.
        laid_out: whether to copy the weights into oneDNN's layout; by default if they are not too large.
    """

    def __init__(self, model: Any, laid_out: bool | None = None) -> None:
        encoder: Any = getattr(model, model.base_model_prefix)
        if laid_out is None:
            laid_out = sum(weight.nbytes for weight in encoder.encoder.parameters()) <= LAID_OUT_BYTES
        self._embeddings = encoder.embeddings
        self._widen = getattr(encoder.encoder, "embedding_hidden_mapping_in", None)  # RemBERT's
        is_mpnet = model.base_model_prefix == "mpnet"
        self._biases = _biases_by_distance(encoder) if is_mpnet else None
        # MPNet numbers the tokens from the one after the padding token's id, without the padding tokens among them.
        self._padding: int | None = encoder.embeddings.padding_idx if is_mpnet else None
        layers = list(encoder.encoder.layer)
        self._layers = [_Layer(layer, model.config, laid_out) for layer in layers[:-1]]
        self._last = _LastLayer(layers[-1], model.config, laid_out)
        head: Any = model.classifier
        self._pooler: Any = head.dense if is_mpnet else encoder.pooler.dense
        self._classifier: Any = head.out_proj if is_mpnet else head
        self._weights = _versions(model)

    def is_current(self, model: nn.Module) -> bool:
        """Return whether the weights of `model` are still those that were read (writes to `weight.data` are not noticed)."""
        return self._weights == _versions(model)

    def __call__(self, pairs: Sequence[Encoded]) -> Tensor:
        """Score pairs, those of equal length side by side.

        Args:
            pairs: the model's inputs; the fewer lengths among neighbours, the faster.

        Returns:
            (pairs,) float32.
        """
        groups, start = [], 0
        for length, same in groupby(len(pair.ids) for pair in pairs):
            groups.append(Group(start, len(list(same)), length))
            start += groups[-1].pairs * length
        ids = torch.tensor([token for pair in pairs for token in pair.ids])
        segments = torch.tensor([segment for pair in pairs for segment in pair.segments])
        return self.score(ids, segments, groups)

    def score(self, ids: Tensor, segments: Tensor, groups: Sequence[Group], any_size: bool = False) -> Tensor:
        """Score tokens in a row.

        Args:
            ids: (tokens,) of all pairs, one after the other.
            segments: (tokens,) segment ids.
            groups: where the pairs begin and end.
            any_size: leave numbers of rows as they are, as a graph of any size must.

        Returns:
            (pairs,) float32.
        """
        tokens, pairs = sum(group.pairs * group.length for group in groups), sum(group.pairs for group in groups)
        more_tokens = 0 if any_size else few_sizes(tokens) - tokens
        more_pairs = 0 if any_size else few_sizes(pairs) - pairs
        hidden = self._embed(_longer(ids, more_tokens), _longer(segments, more_tokens), groups)
        biases = [self._bias(group.length) for group in groups]
        for layer in self._layers:
            hidden = layer(hidden, groups, biases, more_tokens)
        first = _joined([torch.arange(group.pairs) * group.length + group.start for group in groups])
        pooled = torch.tanh(self._pooler(self._last(hidden, groups, biases, _longer(first, more_pairs), more_pairs)))
        scores = self._classifier(pooled)[:, 0].float()
        return scores[:pairs] if more_pairs else scores

    def _embed(self, ids: Tensor, segments: Tensor, groups: Sequence[Group]) -> Tensor:
        """Return the sum of the embeddings, normalised; (tokens, hidden)."""
        own = self._embeddings
        hidden = own.word_embeddings(ids)
        if self._padding is None:
            hidden = hidden + own.token_type_embeddings(segments)
        positions = own.position_embeddings.weight
        for start, count, length in groups:
            place = slice(start, start + count * length)
            if self._padding is None:
                hidden[place].view(count, length, -1).add_(positions[:length])
            else:
                is_text = ids[place].view(count, length).ne(self._padding).long()
                numbers = is_text.cumsum(1) * is_text + self._padding
                hidden[place].view(count, length, -1).add_(positions[numbers])
        hidden = own.LayerNorm(hidden)
        return hidden if self._widen is None else self._widen(hidden)

    def _bias(self, length: int) -> Tensor | None:
        """Return what MPNet adds to the products of queries and keys, (1, heads, length, length); None of the others."""
        if self._biases is None:
            return None
        places = torch.arange(length)
        return self._biases[:, places[None] - places[:, None] + self._biases.shape[1] // 2][None]


class _Block:
    """What the two kinds of layers share: everything after the attention."""

    def __init__(self, layer: Any, config: Any, laid_out: bool) -> None:
        self.heads = config.num_attention_heads
        self.attention_output = _product([_attention(layer).output], laid_out)
        self.attention_norm = _attention(layer).norm
        self.up = _product([layer.intermediate.dense], laid_out, GELU_APPROXIMATIONS[config.hidden_act])
        self.down = _product([layer.output.dense], laid_out)
        self.norm = layer.output.LayerNorm

    def after_attention(self, attended: Tensor, hidden: Tensor) -> Tensor:
        """Return both residual branches and their normalisation, post-LN; (rows, hidden)."""
        hidden = self.attention_norm(self.attention_output(attended).add_(hidden))
        return self.norm(self.down(self.up(hidden)).add_(hidden))


class _Layer(_Block):
    """A layer over all tokens."""

    def __init__(self, layer: Any, config: Any, laid_out: bool) -> None:
        super().__init__(layer, config, laid_out)
        own = _attention(layer)
        self.query_key_value = _product([own.query, own.key, own.value], laid_out)

    def __call__(self, hidden: Tensor, groups: Sequence[Group], biases: Sequence[Tensor | None], more: int) -> Tensor:
        projected = self.query_key_value(hidden)  # (tokens, 3 * hidden)
        attended = []
        for (start, count, length), bias in zip(groups, biases, strict=True):
            own = projected[start : start + count * length].view(count, length, 3, self.heads, -1)
            query, key, value = own.permute(2, 0, 3, 1, 4)  # each (pairs, heads, length, head size)
            mixed = scaled_dot_product_attention(query, key, value, bias)
            attended.append(mixed.transpose(1, 2).reshape(count * length, -1))
        return self.after_attention(_joined(attended, more), hidden)


class _LastLayer(_Block):
    """The last layer, for [CLS] only: keys and values of all tokens, the rest of one token a pair."""

    def __init__(self, layer: Any, config: Any, laid_out: bool) -> None:
        super().__init__(layer, config, laid_out)
        own = _attention(layer)
        self.query = _product([own.query], laid_out)
        self.key_value = _product([own.key, own.value], laid_out)

    def __call__(
        self, hidden: Tensor, groups: Sequence[Group], biases: Sequence[Tensor | None], first: Tensor, more: int
    ) -> Tensor:
        hidden_first = hidden[first]
        query, projected = self.query(hidden_first), self.key_value(hidden)
        attended, done = [], 0
        for (start, count, length), bias in zip(groups, biases, strict=True):
            own = projected[start : start + count * length].view(count, length, 2, self.heads, -1)
            key, value = own.permute(2, 0, 3, 1, 4)
            mine = query[done : done + count].view(count, self.heads, 1, -1)
            mixed = scaled_dot_product_attention(mine, key, value, None if bias is None else bias[:, :, :1])
            attended.append(mixed.reshape(count, -1))
            done += count
        return self.after_attention(_joined(attended, more), hidden_first)


def _attention(layer: Any) -> _Attention:
    """Return the modules of a layer's attention."""
    attention = layer.attention
    if hasattr(attention, "attn"):  # MPNet's
        own = attention.attn
        return _Attention(own.q, own.k, own.v, own.o, attention.LayerNorm)
    own, after = attention.self, attention.output
    return _Attention(own.query, own.key, own.value, after.dense, after.LayerNorm)


def _biases_by_distance(encoder: Any) -> Tensor:
    """Return MPNet's attention biases for all distances between two tokens, from the largest negative to the largest.

    Args:
        encoder: an `MPNetModel`, whose own method sorts distances into buckets.

    Returns:
        (heads, 2 * positions - 1).
    """
    farthest = encoder.embeddings.position_embeddings.num_embeddings - 1
    buckets = encoder.encoder.relative_position_bucket(torch.arange(-farthest, farthest + 1))
    return encoder.encoder.relative_attention_bias.weight.detach()[buckets].T.contiguous()


def _longer(row: Tensor, more: int) -> Tensor:
    return pad(row, (0, more)) if more else row


def _joined(parts: list[Tensor], more: int = 0) -> Tensor:
    """Put parts one below the other, and `more` rows of zeros below them."""
    if more:
        parts = [*parts, parts[0].new_zeros(more, *parts[0].shape[1:])]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def few_sizes(count: int) -> int:
    """Round a number of rows up, by a sixteenth at most.

    oneDNN prepares and keeps a product for each number of rows that it meets, and the allocator a block: of ever new
    sizes a process that scores for hours grows by gigabytes. Up to 4,096 rows these are 144 sizes.
    """
    step = 1 << max(0, count.bit_length() - 5)
    return -(-count // step) * step


def _lays_out(dtype: torch.dtype) -> bool:
    """Return whether oneDNN is available and multiplies this type on this processor."""
    operations = torch.ops.mkldnn
    if not torch.backends.mkldnn.is_available() or not hasattr(operations, "_linear_pointwise"):
        return False
    return dtype == torch.float32 or operations._is_mkldnn_bf16_supported()


def _versions(model: nn.Module) -> list[tuple[int, int]]:
    """Return where each weight is in memory and how often it was written to."""
    return [(weight.data_ptr(), weight._version) for weight in model.parameters()]


def _product(modules: list[nn.Linear], laid_out: bool, activation: str | None = None) -> Callable[[Tensor], Tensor]:
    """Return the linear map of one or several modules side by side, with the GELU after it if one is named.

    Args:
        modules: linear layers that read the same input.
        laid_out: whether to copy the weights into oneDNN's layout, which multiplies 1.1 times as fast here.
        activation: torch's name of the GELU's approximation, "none" or "tanh".
    """
    weight = modules[0].weight if len(modules) == 1 else torch.cat([module.weight for module in modules])
    bias = torch.cat([module.bias for module in modules])
    weight, bias = weight.detach(), bias.detach()
    if laid_out and _lays_out(weight.dtype):
        blocked = torch.ops.mkldnn._reorder_linear_weight(weight, TOKENS_HINT)
        after = ("none", "") if activation is None else ("gelu", activation)
        return lambda rows: torch.ops.mkldnn._linear_pointwise(rows, blocked, bias, after[0], [], after[1])
    if activation is None:
        return lambda rows: linear(rows, weight, bias)
    return lambda rows: gelu(linear(rows, weight, bias), approximate=activation)
