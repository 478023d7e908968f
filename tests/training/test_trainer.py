"""The Trainer's additions: layer-wise rates, frozen layers, the halt on a loss that is no number."""

from __future__ import annotations

import json

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    BertConfig,
    BertForSequenceClassification,
    MPNetConfig,
    MPNetForSequenceClassification,
    TrainingArguments,
)

from bleurt_repro.training.run import last_checkpoint
from bleurt_repro.training.trainer import ScorerTrainer, freeze_layers
from tests.tiny_training import QUICK, finetune, options

FEW = {**QUICK, "--max_steps": "4", "--eval_steps": "4", "--save_steps": "4"}

WEIGHTS = "model.safetensors"


def tiny_bert():
    return BertForSequenceClassification(
        BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, num_labels=1)
    )  # fmt: skip


def test_lengths_that_decide_the_order_are_read_once(tmp_path):
    """A column of `datasets` is read from its file row by row: of many pairs that takes longer than to train on them."""
    lengths = [3, 9, 4, 8, 5, 7] * 50
    data = Dataset.from_dict({"input_ids": [[1] * length for length in lengths], "length": lengths})
    arguments = TrainingArguments(
        str(tmp_path), train_sampling_strategy="group_by_length", report_to=[], use_cpu=True, per_device_train_batch_size=4
    )  # fmt: skip
    sampler = ScorerTrainer(tiny_bert(), arguments, train_dataset=data)._get_train_sampler()
    assert type(sampler.lengths) is list and sampler.lengths == lengths
    order = list(sampler)
    assert sorted(order) == list(range(len(lengths)))
    spread = [max(batch) - min(batch) for i in range(0, 200, 4) for batch in [[lengths[j] for j in order[i : i + 4]]]]
    assert sum(spread) / len(spread) < 1


def test_frozen_layers_and_the_embeddings_stay_as_they_are(ratings, tiny_scorer, tmp_path):
    finetune(options({"--model": str(tiny_scorer)}, ratings, {**FEW, "--frozen_layers": "1"}))
    before, after = load_file(tiny_scorer / WEIGHTS), load_file(tmp_path / "out" / WEIGHTS)
    assert before.keys() == after.keys()
    same = {name for name in before if torch.equal(before[name].float(), after[name])}
    assert {name for name in same if ".layer.1." in name} == set()
    assert {name for name in before if "embeddings" in name or ".layer.0." in name} <= same


def test_more_frozen_layers_than_there_are_are_refused(ratings, tiny_scorer):
    with pytest.raises(ValueError, match="frozen_layers must be from 0 to the model's 2 layers, found 3"):
        finetune(options({"--model": str(tiny_scorer)}, ratings, {**FEW, "--frozen_layers": "3"}))


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_dropout_is_what_was_asked_for(ratings, tiny_scorer, tmp_path, monkeypatch, dropout):
    seen = set()
    compute = ScorerTrainer.compute_loss

    def look(self, model, *args, **kwargs):
        seen.update(module.p for module in model.modules() if isinstance(module, torch.nn.Dropout))
        return compute(self, model, *args, **kwargs)

    monkeypatch.setattr(ScorerTrainer, "compute_loss", look)
    finetune(options({"--model": str(tiny_scorer)}, ratings, {**FEW, "--dropout": str(dropout)}))
    assert seen == {dropout}
    assert AutoConfig.from_pretrained(tmp_path / "out").hidden_dropout_prob == 0.1  # the checkpoint's own stays


def test_the_bias_that_layers_of_mpnet_share_is_frozen_with_the_lowest():
    model = MPNetForSequenceClassification(
        MPNetConfig(vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16)
    )
    freeze_layers(model, 1)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert trained and all(".layer.1." in name or name.startswith("classifier") for name in trained)


def test_a_loss_that_is_no_number_ends_the_run_and_keeps_what_was_saved(ratings, tiny_scorer, tmp_path, monkeypatch):
    steps = {**QUICK, "--max_steps": "10", "--eval_steps": "2", "--save_steps": "2", "--logging_steps": "1"}
    words = options({"--model": str(tiny_scorer)}, ratings, steps)
    compute, calls = ScorerTrainer.compute_loss, []

    def overflow_in_the_fifth_batch(*args, **kwargs):
        found = compute(*args, **kwargs)
        if not kwargs.get("return_outputs"):
            calls.append(found)
            return found * float("inf") if len(calls) == 5 else found
        return found

    monkeypatch.setattr(ScorerTrainer, "compute_loss", overflow_in_the_fifth_batch)
    with pytest.raises(ValueError, match="the loss became inf at step 3: lower the learning rate"):
        finetune(words)
    assert last_checkpoint(tmp_path / "out")[0] == tmp_path / "out" / "checkpoint-2"


def test_weights_count_in_the_squared_error(tmp_path):
    torch.manual_seed(0)
    model = tiny_bert().eval()
    arguments = TrainingArguments(str(tmp_path), report_to=[], use_cpu=True)
    trainer = ScorerTrainer(model, arguments)
    inputs = {"input_ids": torch.tensor([[1, 2], [3, 4]]), "labels": torch.tensor([1.0, -2.0])}
    with torch.no_grad():
        scores = model(inputs["input_ids"]).logits.squeeze(-1)
        losses = [trainer.compute_loss(model, {**inputs, "weight": torch.tensor(w)}) for w in ([1.0, 1.0], [2.0, 0.0])]
        plain = trainer.compute_loss(model, dict(inputs))
    assert losses[0] == pytest.approx(plain.item())
    assert losses[1] == pytest.approx((scores[0].item() - 1.0) ** 2)


def test_a_rating_of_weight_0_teaches_nothing(ratings, tiny_scorer, tmp_path):
    rows = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    learnt = []
    for name, score in (("a", 0.0), ("b", 0.7)):
        changed = [
            {**row, "weight": 1.0} if i % 2 else {**row, "score": score, "weight": 0.0} for i, row in enumerate(rows)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, changed)))
        files = {"--train_file": str(tmp_path / f"{name}.jsonl"), "--output_dir": str(tmp_path / name)}
        finetune(options({"--model": str(tiny_scorer)}, {**ratings, **FEW, **files}))
        learnt.append(load_file(tmp_path / name / WEIGHTS))
    assert all(torch.equal(learnt[0][key], learnt[1][key]) for key in learnt[0])
