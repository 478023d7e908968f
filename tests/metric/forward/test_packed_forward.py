"""The packed forward pass: the model's own scores, whatever the shape of model and batch."""

from __future__ import annotations

import copy
import shutil

import pytest
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
)
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.forward import packed as packed_forward
from bleurt_repro.metric.forward.encoding import Encoded
from bleurt_repro.metric.forward.packed import PackedForward, can_pack, distance_buckets, few_sizes
from bleurt_repro.metric.forward.plain import PlainForward
from bleurt_repro.metric.loading.architecture import GELU_APPROXIMATIONS
from tests.tiny_berts import SIZES, bert, inputs, mpnet, rembert


def both(model, pairs: list[Encoded]) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.inference_mode():
        return PackedForward(model)(pairs), PlainForward(model, 0)(pairs)


LENGTHS = {
    "one": [9],
    "equal": [12] * 5,
    "falling": [60, 31, 31, 30, 7, 7, 3],
    "mixed": [3, 64, 3, 64, 17],
    "shortest": [2],
}


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("make", [bert, rembert, mpnet])
def test_the_scores_are_those_of_the_model(make, lengths):
    packed, plain = both(make(), inputs(*lengths))
    torch.testing.assert_close(packed, plain, atol=1e-5, rtol=0)
    assert len(lengths) == 1 or packed.std() > 0.01  # the model tells its inputs apart


def test_mpnets_biases_by_relative_position_count():
    model, pairs = mpnet(), inputs(40, 40, 12)
    with torch.inference_mode():
        before = PackedForward(model)(pairs)
        model.mpnet.encoder.relative_attention_bias.weight.mul_(-1)
        packed, plain = both(model, pairs)
    torch.testing.assert_close(packed, plain, atol=1e-5, rtol=0)
    assert (packed - before).abs().min() > 0.01


def test_distances_are_sorted_into_buckets_as_in_mpnet():
    distances = torch.arange(-600, 601)
    assert torch.equal(distance_buckets(distances), MPNetEncoder.relative_position_bucket(distances))


def test_a_padding_token_in_the_text_has_no_position_of_its_own():
    ids = [0, 9, 1, 9, 30, 2]  # 1 is MPNet's padding token
    pair = Encoded(ids, [0] * len(ids), False)
    packed, plain = both(mpnet(), [pair, pair._replace(ids=[0, 9, 9, 9, 30, 2])])
    torch.testing.assert_close(packed, plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("gelu", sorted(GELU_APPROXIMATIONS))
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("make", [bert, mpnet])
def test_every_gelu_is_the_models(make, gelu, layers):
    packed, plain = both(make(layers, hidden_act=gelu), inputs(9, 9, 5))
    torch.testing.assert_close(packed, plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("make", [bert, rembert, mpnet])
def test_weights_may_be_read_where_they_are(make, monkeypatch):
    monkeypatch.setattr(packed_forward, "LAID_OUT_BYTES", 0)
    packed, plain = both(make(hidden_act="gelu_new"), inputs(9, 9, 5))
    torch.testing.assert_close(packed, plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("make", [bert, mpnet])
def test_half_precision_is_near(make):
    model = make(initializer_range=0.1).to(torch.bfloat16)
    assert can_pack(model)
    packed, plain = both(model, inputs(30, 30, 9))
    assert packed.dtype == torch.float32
    torch.testing.assert_close(packed, plain, atol=0.05, rtol=0)


@pytest.mark.parametrize("make", [bert, rembert, mpnet])
def test_float16_is_computed_as_on_a_gpu_with_a_head_in_float32(make):
    model = make(initializer_range=0.1)
    pairs = inputs(30, 30, 9)
    with torch.inference_mode():
        exact = PlainForward(model, 0)(pairs)
        halves = PackedForward(model.half(), laid_out=False)
        scores = halves(pairs)
    torch.testing.assert_close(scores, exact, atol=2e-2, rtol=0)
    assert halves._classifier.weight.dtype == torch.float32 and model.dtype == torch.float16


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("make", [bert, mpnet])
def test_compiled_kernels_give_the_scores_of_the_model(make, dtype, tolerance):
    if not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("no C++ compiler, which torch.compile needs on a CPU")
    model = make(initializer_range=0.1 if dtype == torch.bfloat16 else 0.3)
    pairs = inputs(30, 30, 9, 5)
    with torch.inference_mode():
        exact = PlainForward(model, 0)(pairs)
        compiled = PackedForward(model.to(dtype), compiled=True)
        torch.testing.assert_close(compiled(pairs), exact, atol=tolerance, rtol=0)
        torch.testing.assert_close(compiled(pairs[1:]), exact[1:], atol=tolerance, rtol=0)  # another size


@pytest.mark.parametrize("make", [bert, mpnet])
def test_changed_weights_are_noticed(make):
    model = make()
    packed = PackedForward(model)
    assert packed.is_current(model)
    assert not packed.is_current(copy.deepcopy(model))
    with torch.no_grad():
        next(model.classifier.parameters()).add_(1)
    assert not packed.is_current(model)


OTHERS = {
    "two labels": lambda: bert(num_labels=2),
    "relu": lambda: bert(hidden_act="relu"),
    "MPNet's relu": lambda: mpnet(hidden_act="relu"),
    "decoder": lambda: bert(is_decoder=True),
    "float16": lambda: bert().half(),
    "elsewhere": lambda: bert().to("meta"),
    "subclass": lambda: type("Other", (BertForSequenceClassification,), {})(BertConfig(num_hidden_layers=1, **SIZES)),
    "XLM-R": lambda: XLMRobertaForSequenceClassification(XLMRobertaConfig(num_hidden_layers=1, **SIZES)),
    "DistilBERT": lambda: DistilBertForSequenceClassification(
        DistilBertConfig(vocab_size=50, dim=48, n_heads=4, hidden_dim=96, n_layers=1, num_labels=1)
    ),
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_other_models_are_left_alone(make):
    assert not can_pack(make())


def test_the_plain_pass_serves_other_models():
    model = OTHERS["DistilBERT"]().eval()
    pairs = inputs(9, 4)
    with torch.inference_mode():
        expected = [model(input_ids=torch.tensor([pair.ids])).logits.item() for pair in pairs]
        assert PlainForward(model, 0)(pairs).tolist() == pytest.approx(expected, abs=1e-5)


def test_the_scorer_packs_what_it_can(tiny_scorer):
    scorer = BleurtScorer(str(tiny_scorer), device="cpu")
    texts = {"references": ["the cat sat", "it rains"], "candidates": ["a cat", "good bye"]}
    before = scorer.score(**texts)
    assert isinstance(scorer.members[0].forward(), PackedForward)
    assert scorer.members[0].forward() is scorer.members[0].forward()
    with torch.no_grad():
        scorer.model.classifier.bias.add_(1)
    assert scorer.score(**texts) == pytest.approx([score + 1 for score in before], abs=1e-5)
    scorer.model.train()
    assert isinstance(scorer.members[0].forward(), PlainForward)
    assert all(weight.requires_grad for weight in scorer.model.parameters())


def test_stored_halves_are_computed_with_in_full():
    scorer = BleurtScorer(device="cpu")
    assert scorer.model.config.dtype == torch.float32
    texts = [f"It rained for {n} days , then the sun came out again ." for n in range(5)] + [
        "",
        "Rain .",
        "so " * 200,
    ]
    items = [(text, texts[-1 - i]) for i, text in enumerate(texts)]
    tokens = scorer.members[0].encoder.tokenize(texts)
    encoded = [scorer.members[0].encoder.encode([tokens[text] for text in item]) for item in items]
    packed, plain = both(scorer.model, encoded)
    assert torch.float32 == packed.dtype
    torch.testing.assert_close(packed, plain, atol=1e-5, rtol=0)


def test_rows_are_of_few_sizes():
    sizes = [few_sizes(count) for count in range(1, 4097)]
    assert all(count <= size <= count * 17 / 16 for count, size in enumerate(sizes, start=1))
    assert sizes[:32] == list(range(1, 33)) and sizes == sorted(sizes)
    assert len(set(sizes)) == 144


@pytest.mark.long
def test_a_scorer_compiles(tiny_scorer):
    if not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("no C++ compiler, which torch.compile needs on a CPU")
    texts = {"references": ["a cat", "the mat", "it rains"], "candidates": ["the cat", "a mat", "good bye hi"]}
    compiled, plain = BleurtScorer(str(tiny_scorer), backend="compile", device="cpu"), BleurtScorer(str(tiny_scorer))
    assert compiled.score(**texts) == pytest.approx(plain.score(**texts), abs=2e-5)
    assert compiled.signature == plain.signature


def test_what_cannot_be_compiled_is_named(tiny_scorer, monkeypatch):
    texts = {"references": ["a cat"], "candidates": ["the cat"]}
    scorer = BleurtScorer(str(tiny_scorer), backend="compile", device="cpu")

    def no_compiler(*_, **__):
        raise RuntimeError("no compiler found\nand a long trace")

    monkeypatch.setattr(packed_forward, "_compiled_after_attention", lambda: no_compiler)
    with pytest.raises(
        ValueError, match=r"^backend compile does not work on this machine \(no compiler found\): leave backend out$"
    ):
        scorer.score(**texts)
    monkeypatch.setattr(packed_forward, "can_pack", lambda model: False)
    with pytest.raises(ValueError, match="backend compile is for checkpoints of Bert, RemBert, MPNet: leave backend"):
        scorer.score(**texts)
