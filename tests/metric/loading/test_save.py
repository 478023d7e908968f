"""What a checkpoint is stored in: float8, and several files; whatever stops it, it is old, new or refused."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForSequenceClassification

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.loading.checksums import CHECKSUMS_FILE
from bleurt_repro.metric.loading.open import load_checkpoint
from bleurt_repro.metric.loading.save import _one_of_the_two_nearest, rounded_to_float8, save_scorer
from tests.conftest import make_tiny_scorer
from tests.killed import kill_at_every_operation

FLOAT8 = torch.float8_e4m3fn
SHARD = 30_000  # bytes
TEXTS = {"references": ["the cat sat", "it rains", "hi"], "candidates": ["a cat", "good bye", "hi there"]}


def save(source, folder, *settings, **named):
    loaded = load_checkpoint(str(source))
    save_scorer(loaded.model, loaded.tokenizer, folder, *settings, **named)
    return folder


@pytest.fixture
def rounded(tiny_scorer, tmp_path):
    return save(tiny_scorer, tmp_path / "rounded", FLOAT8)


@pytest.fixture
def shards(tiny_scorer, tmp_path):
    return save(tiny_scorer, tmp_path / "shards", max_shard_size=f"{SHARD // 1000}KB")


def stored_types(folder) -> dict[str, str]:
    types = {}
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            types |= {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
    return types


def scores(folder) -> list[float]:
    return BleurtScorer(str(folder), device="cpu").score(**TEXTS)


def test_matrices_are_stored_in_float8_and_the_rest_in_float32(tiny_scorer, rounded):
    shapes = {name: weight.dim() for name, weight in load_checkpoint(str(tiny_scorer)).model.state_dict().items()}
    assert stored_types(rounded) == {name: "F8_E4M3" if dims == 2 else "F32" for name, dims in shapes.items()}


def test_transformers_open_float8_as_float32(tiny_scorer, rounded):
    original = AutoModelForSequenceClassification.from_pretrained(tiny_scorer).state_dict()
    opened = AutoModelForSequenceClassification.from_pretrained(rounded)
    assert opened.dtype == torch.float32 and json.loads((rounded / "config.json").read_text())["dtype"] == "float32"
    for name, weight in opened.state_dict().items():
        expected = original[name].to(FLOAT8).float() if weight.dim() == 2 else original[name]
        assert weight.dtype == torch.float32 and torch.equal(weight, expected), name
    assert not torch.equal(opened.get_input_embeddings().weight, original["bert.embeddings.word_embeddings.weight"])


def test_scores_and_signature_are_those_of_the_rounded_weights(tiny_scorer, rounded):
    before, after = (BleurtScorer(str(folder), device="cpu") for folder in (tiny_scorer, rounded))
    expected = load_checkpoint(str(tiny_scorer)).model
    with torch.no_grad():
        for weight in before.model.parameters():
            if weight.dim() == 2:
                weight.copy_(weight.to(FLOAT8).float())
    # The last bit of a score may depend on where in memory the weights are.
    assert after.score(**TEXTS) == pytest.approx(before.score(**TEXTS), abs=1e-6)
    assert after.score(**TEXTS) != pytest.approx(scores(tiny_scorer), abs=1e-3)
    assert after.signature.split("|")[1] != before.signature.split("|")[1]  # the hash
    assert "dtype:float32" in after.signature and expected.dtype == torch.float32


@pytest.mark.parametrize("change", [lambda weight: weight.mul_(1e-4), lambda weight: weight[0, 0].fill_(455.0)])
def test_matrices_that_float8_would_change_much_are_stored_in_bfloat16(tiny_scorer, tmp_path, change):
    model = load_checkpoint(str(tiny_scorer)).model
    with torch.no_grad():
        change(model.classifier.weight)
    rounded = rounded_to_float8(model)
    torch.testing.assert_close(rounded.classifier.weight.float(), model.classifier.weight, rtol=2**-8, atol=0)
    assert rounded.classifier.weight.dtype == torch.bfloat16 and rounded.bert.pooler.dense.weight.dtype == FLOAT8
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}, "the model itself is left alone"
    save_scorer(model, load_checkpoint(str(tiny_scorer)).tokenizer, tmp_path / "rounded", FLOAT8)
    opened = AutoModelForSequenceClassification.from_pretrained(tmp_path / "rounded")
    assert opened.dtype == torch.float32 and torch.equal(opened.classifier.weight, rounded.classifier.weight.float())


def test_training_from_float8_is_kept_on_average_and_what_was_not_trained_stays(rounded):
    """A step of training is less than half the distance of two numbers of float8: the nearest one would undo it."""
    loaded = load_checkpoint(str(rounded))
    before = {name: weight.clone() for name, weight in loaded.model.named_parameters()}
    trained = loaded.model.bert.encoder.layer[0].intermediate.dense.weight
    with torch.no_grad():
        trained.mul_(1 + 0.01 * torch.rand(trained.shape, generator=torch.Generator().manual_seed(1)))
    assert torch.equal(trained.to(FLOAT8), before["bert.encoder.layer.0.intermediate.dense.weight"].to(FLOAT8))
    again, once_more = rounded_to_float8(loaded.model), rounded_to_float8(loaded.model)
    for name, weight in again.named_parameters():
        assert torch.equal(weight.float(), once_more.get_parameter(name).float()), "the same draws every time"
        if weight is not again.bert.encoder.layer[0].intermediate.dense.weight:
            assert torch.equal(weight.float(), before[name]), name
    grown = again.bert.encoder.layer[0].intermediate.dense.weight.detach().float().abs().sum()
    was = before["bert.encoder.layer.0.intermediate.dense.weight"].abs().sum()
    assert (grown / was).item() == pytest.approx(1.005, abs=0.002)


def test_numbers_of_float8_stay_to_the_bit():
    """A layer that stood still gives the same file."""
    numbers = torch.arange(256, dtype=torch.uint8).view(FLOAT8).float()
    numbers = numbers[numbers.isfinite()]
    drawn = _one_of_the_two_nearest(numbers, torch.Generator().manual_seed(0))
    assert torch.equal(drawn.view(torch.uint8), numbers.to(FLOAT8).view(torch.uint8))


def test_a_number_becomes_one_of_the_two_nearest_in_proportion():
    numbers = [0.0, 1.0, 1.03, -1.03, 0.9999, 2**-9 / 4, -0.0171, 300.0]
    weights = torch.tensor(numbers).repeat(4000, 1)
    drawn = _one_of_the_two_nearest(weights, torch.Generator().manual_seed(0))
    assert drawn.dtype == FLOAT8
    neighbours = [[0], [1], [1, 1.125], [-1.125, -1], [0.9375, 1], [0, 2**-9], [-0.017578125, -0.015625], [288, 320]]
    for i, (number, pair) in enumerate(zip(numbers, neighbours, strict=True)):
        column = drawn[:, i].float()
        assert set(column.tolist()) == set(pair)
        assert column.mean().item() == pytest.approx(number, abs=0.06 * (max(pair) - min(pair)) + 1e-9)


@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_weights_that_are_no_float8_are_refused(tiny_scorer, tmp_path, factor):
    loaded = load_checkpoint(str(tiny_scorer))
    with torch.no_grad():
        for weight in loaded.model.parameters():
            weight.mul_(factor)
    with pytest.raises(ValueError, match=r"float8 would change most of the weights by more than 3.5%.*in float16"):
        save_scorer(loaded.model, loaded.tokenizer, tmp_path / "out", FLOAT8)
    assert not (tmp_path / "out").exists()


def test_shards_are_checked_and_score_as_one_file(tiny_scorer, shards):
    files = sorted(shards.glob("model-*.safetensors"))
    assert len(files) > 2 and not (shards / "model.safetensors").exists()
    assert max(sum(tensors) for tensors in map(_bytes, files)) <= SHARD
    listed = json.loads((shards / CHECKSUMS_FILE).read_text())["sha256"]
    assert {file.name for file in files} | {"model.safetensors.index.json"} <= listed.keys()
    assert scores(shards) == scores(tiny_scorer)
    damaged = bytearray(files[1].read_bytes())
    damaged[-1] ^= 1
    files[1].write_bytes(damaged)
    with pytest.raises(ValueError, match=f"{files[1].name} differs from its SHA-256"):
        BleurtScorer(str(shards))


def _bytes(path) -> list[int]:
    with safe_open(path, "pt") as file:
        return [file.get_tensor(name).nbytes for name in file.keys()]  # noqa: SIM118


def test_a_missing_shard_is_named(shards):
    gone = sorted(shards.glob("model-*.safetensors"))[1]
    gone.unlink()
    with pytest.raises(ValueError, match=f"names '{gone.name}': expected only safetensors files in the folder"):
        BleurtScorer(str(shards))


@pytest.mark.parametrize("sizes", [(None, "20KB"), ("20KB", None), ("20KB", "40KB")], ids=str)
def test_weights_in_other_files_are_replaced(tiny_scorer, tmp_path, sizes):
    other, out = make_tiny_scorer(tmp_path / "other", spread=0.2), tmp_path / "out"
    save(other, out, max_shard_size=sizes[0])
    save(tiny_scorer, out, max_shard_size=sizes[1])
    assert scores(out) == pytest.approx(scores(tiny_scorer), abs=1e-6)
    save(tiny_scorer, tmp_path / "fresh", max_shard_size=sizes[1])
    assert {path.name for path in out.iterdir()} == {path.name for path in (tmp_path / "fresh").iterdir()}


def five_digits(values):
    return tuple(round(value, 5) for value in values)


@pytest.mark.long
@pytest.mark.parametrize("sizes", [(None, "20KB"), ("20KB", None)], ids=str)
def test_killed_at_any_operation_it_is_old_new_or_refused(tiny_scorer, tmp_path, sizes):
    other = load_checkpoint(str(make_tiny_scorer(tmp_path / "other", spread=0.2)))
    new, out = load_checkpoint(str(tiny_scorer)), tmp_path / "out"
    save_scorer(other.model, other.tokenizer, tmp_path / "old", max_shard_size=sizes[0])
    # Where weights begin in a file may change the last bits of a score.
    allowed = {five_digits(scores(tmp_path / "old")): "old", five_digits(scores(tiny_scorer)): "new"}
    shutil.copytree(tmp_path / "old", out)
    seen = []
    for number in kill_at_every_operation(lambda: save_scorer(new.model, new.tokenizer, out, max_shard_size=sizes[1])):
        try:
            seen.append(allowed[five_digits(scores(out))])
        except ValueError as refused:
            assert str(refused).startswith(f"checkpoint {out}"), (number, refused)
            seen.append("refused")
        shutil.rmtree(out)
        shutil.copytree(tmp_path / "old", out)
    assert {"old", "refused"} <= set(seen)
    assert five_digits(scores(out)) in allowed
