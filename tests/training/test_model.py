"""The pre-training model: its loss by hand, its gradients, that every head learns, and what it exports."""

from __future__ import annotations

import math

import pytest
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.layout import Layout
from bleurt_repro.training.pretraining_model import PretrainingModel, Task, export_scorer, read_tasks
from tests.conftest import make_tiny_tokenizer

TASKS = [
    Task("bleu", 1, "regression", "automatic_metrics", (20.0,), (10.0,)),
    Task("rouge", 3, "regression", "automatic_metrics", (0.5, 0.4, 0.3), (0.1, 0.2, 0.0)),
    Task("entailment", 3, "classification", "classification", (0, 0, 0), (1, 1, 1)),
]
GAMMAS = {"automatic_metrics": 0.5, "classification": 2.0}


def tiny_encoder(vocabulary: int = 60) -> BertModel:
    torch.manual_seed(0)
    return BertModel(
        BertConfig(
            vocab_size=vocabulary, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
            max_position_embeddings=64,
        )
    )  # fmt: skip


def tiny_roberta(vocabulary: int = 60, **options) -> RobertaModel:
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=vocabulary, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=66, type_vocab_size=1, pad_token_id=0,
    )  # fmt: skip
    return RobertaModel(config, **options)


def batch(pairs: int = 4):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 60, (pairs, 9), generator=generator)
    probabilities = torch.rand(pairs, 3, generator=generator)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
        "target_bleu": 100 * torch.rand(pairs, 1, generator=generator),
        "target_rouge": torch.rand(pairs, 3, generator=generator),
        "target_entailment": probabilities / probabilities.sum(1, keepdim=True),
    }


def test_the_loss_is_the_papers():
    model = PretrainingModel(tiny_encoder(), TASKS, GAMMAS).eval()
    inputs = batch(2)
    outputs = model(**inputs)
    bleu = (
        sum((outputs["bleu"][i, 0].item() - (inputs["target_bleu"][i, 0].item() - 20) / 10) ** 2 for i in range(2)) / 2
    )
    rouge = 0.0
    for i in range(2):
        for j, (mean, std) in enumerate([(0.5, 0.1), (0.4, 0.2), (0.3, 1.0)]):  # no spread: not divided
            target = (inputs["target_rouge"][i, j].item() - mean) / std
            rouge += (outputs["rouge"][i, j].item() - target) ** 2 / 3 / 2
    entailment = 0.0
    for i in range(2):
        logits = outputs["entailment"][i].tolist()
        total = math.log(sum(math.exp(value) for value in logits))
        entailment -= (
            sum(p * (x - total) for p, x in zip(inputs["target_entailment"][i].tolist(), logits, strict=True)) / 2
        )
    assert outputs["loss_bleu"].mean().item() == pytest.approx(bleu, abs=1e-6, rel=1e-6)
    assert outputs["loss_rouge"].mean().item() == pytest.approx(rouge, abs=1e-6, rel=1e-6)
    assert outputs["loss_entailment"].mean().item() == pytest.approx(entailment, abs=1e-6)
    expected = 0.5 * (bleu + rouge) + 2 * entailment
    assert outputs["loss"].item() == pytest.approx(expected, abs=1e-6, rel=1e-6)


def test_segments_are_read_where_the_encoder_knows_them():
    inputs = {name: value for name, value in batch().items() if not name.startswith("target_")}
    second = {**inputs, "token_type_ids": torch.ones_like(inputs["input_ids"])}
    model = PretrainingModel(tiny_encoder(), TASKS).eval()
    assert not torch.allclose(model(**inputs)["bleu"], model(**second)["bleu"])
    without = {name: value for name, value in inputs.items() if name != "token_type_ids"}
    assert torch.equal(model(**inputs)["bleu"], model(**without)["bleu"])
    model = PretrainingModel(tiny_roberta(), TASKS).eval()
    assert torch.equal(model(**second)["bleu"], model(**without)["bleu"])


def test_without_a_pooler_the_first_token_is_read():
    model = PretrainingModel(tiny_roberta(add_pooling_layer=False), TASKS).eval()
    inputs = {name: batch()[name] for name in ("input_ids", "attention_mask")}
    first = model.encoder(**inputs).last_hidden_state[:, 0]
    assert torch.equal(model(**inputs)["bleu"], model.heads["bleu"](first))


def test_means_and_deviations_of_signals_are_not_among_the_weights():
    assert not [
        name for name in PretrainingModel(tiny_encoder(), TASKS).state_dict() if "mean" in name or "std" in name
    ]


def test_each_head_and_the_encoder_receive_gradient():
    model = PretrainingModel(tiny_encoder(), TASKS, GAMMAS)
    model(**batch())["loss"].backward()
    untouched = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert untouched == []
    for name in ("heads.bleu.weight", "heads.rouge.weight", "heads.entailment.weight", "encoder.pooler.dense.weight"):
        assert model.get_parameter(name).grad.abs().sum() > 0


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_64_pairs_can_be_learnt_by_heart(task):
    model = PretrainingModel(tiny_encoder(), [task]).eval()  # without dropout
    inputs = {name: value for name, value in batch(64).items() if not name.startswith("target_")}
    target = batch(64)[f"target_{task.name}"]
    if task.loss == "classification":
        target = torch.nn.functional.one_hot(target.argmax(1), 3).float()  # soft labels leave their own entropy
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(250):
        loss = model(**inputs, **{f"target_{task.name}": target})["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if losses[-1] < 0.01 * losses[0]:
            return
    pytest.fail(f"the loss went from {losses[0]:.3g} to {min(losses):.3g} only")


def test_tasks_are_read_from_the_record_of_the_data():
    signals = [{"name": t.name, "size": t.size, "loss": t.loss, "group": t.group, "mean": list(t.mean), "std": list(t.std)} for t in TASKS]  # fmt: skip
    assert read_tasks(signals) == TASKS
    assert read_tasks(signals, leave_out=["bleu", "rouge"]) == TASKS[2:]
    with pytest.raises(ValueError, match="have no signal blue: they have bleu, rouge, entailment"):
        read_tasks(signals, leave_out=["blue"])
    with pytest.raises(ValueError, match="no signal is left"):
        read_tasks(signals, leave_out=["bleu", "rouge", "entailment"])
    with pytest.raises(ValueError, match="has 2 numbers but 1 means"):
        read_tasks([{**signals[0], "size": 2}])


def test_a_gamma_of_no_task_is_an_error():
    with pytest.raises(
        ValueError, match="no task is in group likelihood: the groups are automatic_metrics, classification"
    ):
        PretrainingModel(tiny_encoder(), TASKS, {"likelihood": 1.0})


def test_the_export_keeps_encoder_and_pooler_and_scores(tmp_path):
    tokenizer = make_tiny_tokenizer(tmp_path / "words")
    model = PretrainingModel(tiny_encoder(len(tokenizer)), TASKS)
    export_scorer(model.encoder.config, model.state_dict(), tokenizer, Layout(max_length=48), tmp_path / "out")
    weights = load_file(tmp_path / "out" / "model.safetensors")
    for name, value in model.encoder.state_dict().items():
        assert torch.equal(weights[f"bert.{name}"], value), name
    assert not [name for name in weights if "heads" in name]
    assert weights["classifier.weight"].shape == (1, 32)
    scorer = BleurtScorer(str(tmp_path / "out"))
    assert scorer.layout.max_length == 48
    assert len(scorer.score(references=["a cat"], candidates=["a dog"])) == 1


def test_two_exports_are_equal_byte_for_byte(tmp_path):
    tokenizer = make_tiny_tokenizer(tmp_path / "words")
    model = PretrainingModel(tiny_encoder(len(tokenizer)), TASKS)
    files = []
    for name, seed in (("one", 7), ("two", 7), ("three", 8)):
        torch.manual_seed(len(files))  # whatever was drawn before
        drawn = torch.get_rng_state()
        export_scorer(
            model.encoder.config, model.state_dict(), tokenizer, Layout(max_length=48), tmp_path / name, seed
        )
        assert torch.equal(torch.get_rng_state(), drawn), "what training draws next must not depend on it"
        files.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert files[0] == files[1]
    assert files[0]["model.safetensors"] != files[2]["model.safetensors"]


def test_an_encoder_whose_classifier_has_its_own_pooler(tmp_path):
    tokenizer = make_tiny_tokenizer(tmp_path / "words")
    model = PretrainingModel(tiny_roberta(len(tokenizer)), TASKS)
    export_scorer(
        model.encoder.config, model.state_dict(), tokenizer, Layout(max_length=48, separators=2), tmp_path / "out"
    )
    assert "classifier.out_proj.weight" in load_file(tmp_path / "out" / "model.safetensors")
