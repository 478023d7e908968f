"""An exact forward pass for scorers like BERT, RemBERT or MPNet, on a CPU or GPU, that computes only what the score needs.

The tokens of all pairs stand in one row, so linear layers see no padding but a little at its end (`few_sizes`);
attention runs over pairs of equal length, which need no mask but MPNet's bias by relative position; the last layer
computes only [CLS], the one token that the score reads (BLEURT, section 3.2). The weights are those of the
`transformers` model, on a CPU laid out once as oneDNN's matrix products want them. On a GPU the softmax and the head
compute in float32 whatever the type of the weights. `torch.compile` can make few kernels of what a layer does after the
attention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import cache, partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, linear, pad, scaled_dot_product_attention

from bleurt_repro.metric.forward.encoding import Encoded
from bleurt_repro.metric.loading.architecture import GELU_APPROXIMATIONS

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# The classes whose architecture is written out here.
PACKED = ("BertForSequenceClassification", "RemBertForSequenceClassification", "MPNetForSequenceClassification")
# A second layout of the weights doubles their memory: beyond this many bytes they are read where they are.
LAID_OUT_BYTES = 1 << 30
TOKENS_HINT = 2048  # tokens of a batch that the layout of the weights is chosen for
BUCKETS, NEAR, FAR = 32, 8, 128  # of distances between tokens, in MPNet
# The types of weights that are computed with, by device.
DTYPES = {
    "cpu": (torch.float32, torch.bfloat16),
    "cuda": (torch.float32, torch.bfloat16, torch.float16),
}


class Group(NamedTuple):
    """Neighbouring pairs of one length: index of the first token, number of pairs, number of tokens of each."""

    start: int
    pairs: int
    length: int


class _Attention(NamedTuple):
    """The modules of a layer's attention, which have other names in MPNet."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    output: nn.Linear
    norm: nn.LayerNorm


def can_pack(model: PreTrainedModel) -> bool:
    """Return whether this forward pass computes what the model's own would: a class of `PACKED` on a CPU or GPU."""
    config = model.config
    return (
        type(model).__name__ in PACKED
        and type(model).__module__.startswith("transformers.")
        and model.dtype in DTYPES.get(model.device.type, ())
        and config.hidden_act in GELU_APPROXIMATIONS
        and config.num_labels == 1
        and getattr(config, "position_embedding_type", "absolute") == "absolute"
        and not getattr(config, "is_decoder", False)
        and not getattr(config, "add_cross_attention", False)
    )


def packed_forward(
    model: PreTrainedModel, before: PackedForward | None = None, compiled: bool = False
) -> PackedForward | None:
    """Return the packed forward pass of a model in evaluation mode, or None if it has none.

    Args:
        model: model of a checkpoint.
        before: result of the last call, which is returned again as long as the model's weights are the same.
        compiled: as of `PackedForward`.
    """
    if model.training or not can_pack(model):
        return None
    return before if before is not None and before.is_current(model) else PackedForward(model, compiled=compiled)


class PackedForward:
    """Score pairs as the model itself would in evaluation mode, up to rounding (at most 1e-5 in float32).

    Args:
        model: model for which `can_pack` is true, or the modules of a `LightScorer`.
        laid_out: whether to copy the weights into oneDNN's layout; by default if they are not too large.
        compiled: whether `torch.compile` makes the kernels of what follows the attention, in place of oneDNN.
    """

    def __init__(self, model: Any, laid_out: bool | None = None, compiled: bool = False) -> None:
        encoder: Any = getattr(model, model.base_model_prefix)
        weight: Tensor = encoder.embeddings.word_embeddings.weight
        self._device = weight.device
        if laid_out is None:
            laid_out = sum(weight.nbytes for weight in encoder.encoder.parameters()) <= LAID_OUT_BYTES
        laid_out = laid_out and self._device.type == "cpu" and not compiled
        self._embeddings = encoder.embeddings
        self._widen = getattr(encoder.encoder, "embedding_hidden_mapping_in", None)  # RemBERT's
        is_mpnet = model.base_model_prefix == "mpnet"
        self._biases = _biases_by_distance(encoder) if is_mpnet else None
        # MPNet numbers the tokens from the one after the padding token's id, without the padding tokens among them.
        self._padding: int | None = encoder.embeddings.padding_idx if is_mpnet else None
        layers = list(encoder.encoder.layer)
        self._layers = [_Layer(layer, model.config, laid_out, compiled) for layer in layers[:-1]]
        self._last = _LastLayer(layers[-1], model.config, laid_out, compiled)
        head: Any = model.classifier
        self._pooler: Any = head.dense if is_mpnet else encoder.pooler.dense
        self._classifier: Any = head.out_proj if is_mpnet else head
        is_bfloat16_on_cpu = self._device.type == "cpu" and weight.dtype == torch.bfloat16
        self._head_dtype = torch.bfloat16 if is_bfloat16_on_cpu else torch.float32
        if weight.dtype != self._head_dtype:
            self._pooler, self._classifier = deepcopy(self._pooler).float(), deepcopy(self._classifier).float()
        self._weights = _versions(model)

    def is_current(self, model: nn.Module) -> bool:
        """Return whether the model's weights are those that were read; writes to `weight.data` are not noticed."""
        return self._weights == _versions(model)

    def __call__(self, pairs: Sequence[Encoded]) -> Tensor:
        """Score pairs; pairs of equal length that stand side by side are computed together.

        Args:
            pairs: inputs of the model; the fewer changes of length from one to the next, the faster.

        Returns:
            (pairs,) float32.
        """
        groups, start = [], 0
        for length, same in groupby(len(pair.ids) for pair in pairs):
            groups.append(Group(start, len(list(same)), length))
            start += groups[-1].pairs * length
        ids = self._on_device(chain.from_iterable(pair.ids for pair in pairs), start)
        segments = self._on_device(chain.from_iterable(pair.segments for pair in pairs), start)
        return self.score(ids, segments, groups)

    def _on_device(self, numbers: Iterable[int], count: int) -> Tensor:
        """Return whole numbers as a tensor on the model's device; nothing here waits for a GPU."""
        tensor = torch.from_numpy(np.fromiter(numbers, dtype=np.int64, count=count))
        if self._device.type != "cuda":
            return tensor
        return tensor.pin_memory().to(self._device, non_blocking=True)

    def score(self, ids: Tensor, segments: Tensor, groups: Sequence[Group], any_size: bool = False) -> Tensor:
        """Score the tokens of all pairs in one row.

        Args:
            ids: (tokens,) token ids of all pairs, one after the other.
            segments: (tokens,) segment ids.
            groups: where the pairs begin and end.
            any_size: leave numbers of rows as they are, as a graph of any size must.

        Returns:
            (pairs,) float32.
        """
        # Rows of zeros at the end round the sizes up; no pair attends to them, and their scores are cut off.
        tokens, pairs = sum(group.pairs * group.length for group in groups), sum(group.pairs for group in groups)
        token_padding = 0 if any_size else few_sizes(tokens) - tokens
        pair_padding = 0 if any_size else few_sizes(pairs) - pairs
        # All layers but the last: linear maps over the whole row, attention within each pair.
        hidden = self._embed(_padded(ids, token_padding), _padded(segments, token_padding), groups)
        biases = [self._bias(group.length) for group in groups]
        for layer in self._layers:
            hidden = layer(hidden, groups, biases, token_padding)
        # The last layer, pooler and classifier: only the first token of each pair.
        firsts = [torch.arange(group.pairs, device=self._device) * group.length + group.start for group in groups]
        first = _stacked(firsts)
        hidden_first = self._last(hidden, groups, biases, _padded(first, pair_padding), pair_padding)
        scores = self._classifier(torch.tanh(self._pooler(hidden_first.to(self._head_dtype))))[:, 0].float()
        return scores[:pairs] if pair_padding else scores

    def _embed(self, ids: Tensor, segments: Tensor, groups: Sequence[Group]) -> Tensor:
        """Return the sum of the embeddings, normalised; (tokens, hidden)."""
        embeddings = self._embeddings
        hidden = embeddings.word_embeddings(ids)
        if self._padding is None:
            hidden = hidden + embeddings.token_type_embeddings(segments)
        positions = embeddings.position_embeddings.weight
        for start, count, length in groups:
            rows = slice(start, start + count * length)
            if self._padding is None:
                hidden[rows].view(count, length, -1).add_(positions[:length])
            else:
                is_text = ids[rows].view(count, length).ne(self._padding).long()
                numbers = is_text.cumsum(1) * is_text + self._padding
                hidden[rows].view(count, length, -1).add_(positions[numbers])
        hidden = embeddings.LayerNorm(hidden)
        return hidden if self._widen is None else self._widen(hidden)

    def _bias(self, length: int) -> Tensor | None:
        """Return what MPNet adds to the products of queries and keys, (1, heads, length, length); None for others."""
        if self._biases is None:
            return None
        positions = torch.arange(length, device=self._device)
        return self._biases[:, positions[None] - positions[:, None] + self._biases.shape[1] // 2][None]


class _Block:
    """What the two kinds of layers share: everything after the attention."""

    def __init__(self, layer: Any, config: Any, laid_out: bool, compiled: bool) -> None:
        self.heads = config.num_attention_heads
        attention, approximation = _attention(layer), GELU_APPROXIMATIONS[config.hidden_act]
        self.attention_output = _product([attention.output], laid_out)
        self.attention_norm = attention.norm
        self.up = _product([layer.intermediate.dense], laid_out, approximation)
        self.down = _product([layer.output.dense], laid_out)
        self.norm = layer.output.LayerNorm
        self.compiled: Callable[[Tensor, Tensor], Tensor] | None = None
        if compiled:
            modules = (attention.output, attention.norm, layer.intermediate.dense, layer.output.dense, self.norm)
            weights = [weight.detach() for module in modules for weight in (module.weight, module.bias)]
            settings = {"weights": weights, "eps": self.norm.eps, "approximation": approximation}
            self.compiled = partial(_compiled_after_attention(), **settings)

    def after_attention(self, attended: Tensor, hidden: Tensor) -> Tensor:
        """Return both residual branches and their normalisation, post-LN; (rows, hidden)."""
        if self.compiled is not None:
            return self.compiled(attended, hidden)
        hidden = self.attention_norm(self.attention_output(attended).add_(hidden))
        return self.norm(self.down(self.up(hidden)).add_(hidden))


def _after_attention(
    attended: Tensor, hidden: Tensor, weights: Sequence[Tensor], eps: float, approximation: str
) -> Tensor:
    """Compute what `_Block.after_attention` does, from the weights and biases of its modules in order."""
    output, output_bias, norm, norm_bias, up, up_bias, down, down_bias, last_norm, last_norm_bias = weights
    hidden = layer_norm(linear(attended, output, output_bias) + hidden, norm.shape, norm, norm_bias, eps)
    wide = gelu(linear(hidden, up, up_bias), approximate=approximation)
    return layer_norm(linear(wide, down, down_bias) + hidden, last_norm.shape, last_norm, last_norm_bias, eps)


@cache
def _compiled_after_attention() -> Callable[..., Tensor]:
    """Return one function for all layers and any number of rows; it is compiled when it is called first."""
    return torch.compile(_after_attention, dynamic=True)


class _Layer(_Block):
    """A layer over all tokens."""

    def __init__(self, layer: Any, config: Any, laid_out: bool, compiled: bool) -> None:
        super().__init__(layer, config, laid_out, compiled)
        attention = _attention(layer)
        self.query_key_value = _product([attention.query, attention.key, attention.value], laid_out)

    def __call__(
        self, hidden: Tensor, groups: Sequence[Group], biases: Sequence[Tensor | None], padding: int
    ) -> Tensor:
        projected = self.query_key_value(hidden)  # (tokens, 3 * hidden)
        attended = []
        for (start, count, length), bias in zip(groups, biases, strict=True):
            group = projected[start : start + count * length].view(count, length, 3, self.heads, -1)
            query, key, value = group.permute(2, 0, 3, 1, 4)  # each (pairs, heads, length, head size)
            mixed = scaled_dot_product_attention(query, key, value, bias)
            attended.append(mixed.transpose(1, 2).reshape(count * length, -1))
        return self.after_attention(_stacked(attended, padding), hidden)


class _LastLayer(_Block):
    """The last layer, for [CLS] only: keys and values of all tokens, everything else of one token per pair."""

    def __init__(self, layer: Any, config: Any, laid_out: bool, compiled: bool) -> None:
        super().__init__(layer, config, laid_out, compiled)
        attention = _attention(layer)
        self.query = _product([attention.query], laid_out)
        self.key_value = _product([attention.key, attention.value], laid_out)

    def __call__(
        self, hidden: Tensor, groups: Sequence[Group], biases: Sequence[Tensor | None], first: Tensor, padding: int
    ) -> Tensor:
        hidden_first = hidden[first]  # (pairs, hidden)
        queries, projected = self.query(hidden_first), self.key_value(hidden)
        attended, pair = [], 0
        for (start, count, length), bias in zip(groups, biases, strict=True):
            group = projected[start : start + count * length].view(count, length, 2, self.heads, -1)
            key, value = group.permute(2, 0, 3, 1, 4)  # each (pairs, heads, length, head size)
            query = queries[pair : pair + count].view(count, self.heads, 1, -1)
            mixed = scaled_dot_product_attention(query, key, value, None if bias is None else bias[:, :, :1])
            attended.append(mixed.reshape(count, -1))
            pair += count
        return self.after_attention(_stacked(attended, padding), hidden_first)


def _attention(layer: Any) -> _Attention:
    """Return the modules of a layer's attention."""
    attention = layer.attention
    if hasattr(attention, "attn"):  # MPNet's
        inner = attention.attn
        return _Attention(inner.q, inner.k, inner.v, inner.o, attention.LayerNorm)
    inner, output = attention.self, attention.output
    return _Attention(inner.query, inner.key, inner.value, output.dense, output.LayerNorm)


def _biases_by_distance(encoder: Any) -> Tensor:
    """Return MPNet's attention biases for all distances between two tokens, from the largest negative to the largest.

    Args:
        encoder: `MPNetModel`, or the modules of a `LightScorer`.

    Returns:
        (heads, 2 * positions - 1).
    """
    farthest = encoder.embeddings.position_embeddings.num_embeddings - 1
    buckets = distance_buckets(torch.arange(-farthest, farthest + 1))
    return encoder.encoder.relative_attention_bias.weight.detach()[buckets].T.contiguous()


def distance_buckets(distances: Tensor) -> Tensor:
    """Return the numbers of the buckets that MPNet sorts distances into, as T5 does (https://arxiv.org/abs/1910.10683).

    Half of the buckets are for keys after the query. In each half, distances up to `NEAR` have a bucket each; farther ones
    share buckets that widen up to `FAR`, and all beyond are in the last one.

    Args:
        distances: whole numbers, position of the key minus that of the query.
    """
    half = BUCKETS // 2
    sizes = distances.abs()
    share = torch.log(sizes.clamp(min=1).float() / NEAR) / math.log(FAR / NEAR)
    far = (NEAR + (share * (half - NEAR)).long()).clamp(max=half - 1)
    return torch.where(sizes < NEAR, sizes, far) + half * (distances > 0)


def _padded(row: Tensor, padding: int) -> Tensor:
    return pad(row, (0, padding)) if padding else row


def _stacked(blocks: list[Tensor], padding: int = 0) -> Tensor:
    """Return blocks of rows as one, with `padding` rows of zeros below them."""
    if padding:
        blocks = [*blocks, blocks[0].new_zeros(padding, *blocks[0].shape[1:])]
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks)


def few_sizes(count: int) -> int:
    """Return a number of rows rounded up, by a sixteenth at most.

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
    """Return the linear map of modules side by side, followed by a GELU on request.

    Args:
        modules: linear layers that read the same input.
        laid_out: whether to copy the weights into oneDNN's layout, which multiplies 1.1 times as fast here.
        activation: approximation of the GELU, "none" or "tanh" as torch calls them.
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
