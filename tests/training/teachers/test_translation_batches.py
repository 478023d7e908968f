"""Batches of sentence pairs: both directions, drawn by weight, within the budget, padded as the model expects."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bleurt_repro.training.teachers.translator_data import (
    BatchCollator,
    Batches,
    Examples,
    SentencePair,
    make_examples,
    train_vocabulary,
)
from tests.tiny_teachers import SENTENCES


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory):
    return train_vocabulary(SENTENCES * 2, ["en", "fr", "de"], 400, tmp_path_factory.mktemp("vocabulary"))


PAIRS = [
    SentencePair("fr", "web", "train", "The old bridge.", "Le vieux pont."),
    SentencePair("de", "web", "train", "The violin.", "Die Geige."),
    SentencePair("de", "mail", "train", "The letter.", "Der Brief."),
]


def build(tokenizer, weights=(1.0, 1.0, 1.0), copied=(), **options) -> Examples:
    settings = {"joined_share": 0.0, "copied_share": 0.5, "max_length": 64, "seed": 0, **options}
    return make_examples(PAIRS, np.array(weights), list(copied), tokenizer, **settings)


def read(tokenizer, item) -> list[tuple[str, str]]:
    return [(tokenizer.decode(source), tokenizer.decode(target)) for source, target in item]


def test_both_directions_with_the_tag_of_the_target(tokenizer) -> None:
    examples = build(tokenizer, weights=(1, 0, 1))
    assert examples.origins == ["fr web", "fr web", "de mail", "de mail"]
    batches = Batches(examples, count=1, batch_tokens=1000, seed=0)
    assert sorted(read(tokenizer, batches[0])) == [
        (">>de<< The letter.</s>", "Der Brief.</s>"),
        (">>en<< Der Brief.</s>", "The letter.</s>"),
        (">>en<< Le vieux pont.</s>", "The old bridge.</s>"),
        (">>fr<< The old bridge.</s>", "Le vieux pont.</s>"),
    ]


def test_joined_pairs_are_of_one_language_and_end_once(tokenizer) -> None:
    examples = build(tokenizer, joined_share=4.0)
    joined = [i for i, origin in enumerate(examples.origins) if origin.endswith("joined")]
    assert len(joined) == 2 * 12
    for i in joined:
        source, target = tokenizer.decode(examples.sources[i]), tokenizer.decode(examples.targets[i])
        assert source.count("</s>") == target.count("</s>") == 1
        assert source.count(".") == target.count(".") in (2, 3, 4)
        assert examples.origins[i][:2] == ("fr" if "vieux" in source + target else "de")


def test_long_examples_are_left_out_and_counted(tokenizer) -> None:
    examples = build(tokenizer, copied=["bridge " * 80], max_length=40)
    assert examples.too_long == 1
    assert len(examples.sources) == 6


def test_copied_text_and_its_share(tokenizer) -> None:
    examples = build(tokenizer, copied=["Anna", "Otto"], copied_share=0.25)
    weights = np.array(examples.weights)
    assert [origin == "copied" for origin in examples.origins[-2:]] == [True, True]
    assert weights[-2:].sum() / weights.sum() == pytest.approx(0.25)
    assert examples.sources[-1].tolist() == examples.targets[-1].tolist()


def examples_of(lengths: list[int], weights: list[float]) -> Examples:
    ids = [np.arange(2, length + 1) for length in lengths]
    return Examples(999, [1] * len(ids), ids, ids, weights, [str(i) for i in range(len(ids))])


def test_batches_keep_to_the_budget_and_the_weights() -> None:
    lengths = [3 + i % 17 for i in range(400)]
    batches = Batches(examples_of(lengths, [1.0 if i % 2 else 3.0 for i in range(400)]), 200, 60, seed=1)
    assert len(batches) == 200
    sizes = [[len(source) for source, _ in batches[i]] for i in range(200)]
    assert all(len(batch) * max(batch) <= 60 for batch in sizes)
    assert np.mean([max(batch) - min(batch) for batch in sizes]) < 1  # alike in length
    often = sum(count for name, count in batches.counts.items() if int(name) % 2 == 0)
    assert often / batches.counts.total() == pytest.approx(0.75, abs=0.03)
    assert batches.counts.total() == sum(len(batch) for batch in sizes)


def test_batches_depend_on_the_seed_only() -> None:
    examples = examples_of(list(range(3, 40)), [1.0] * 37)
    assert [Batches(examples, 9, 90, seed=1)[i] for i in range(9)] == [
        Batches(examples, 9, 90, 1)[i] for i in range(9)
    ]
    assert [Batches(examples, 9, 90, seed=1)[i] for i in range(9)] != [
        Batches(examples, 9, 90, 2)[i] for i in range(9)
    ]


def test_collator() -> None:
    batch = BatchCollator(pad=9, start=8)([[([1, 2, 3, 0], [4, 0])], [([1, 0], [5, 6, 0])]])
    assert {name: values.tolist() for name, values in batch.items()} == {
        "input_ids": [[1, 2, 3, 0], [1, 0, 9, 9]],
        "attention_mask": [[1, 1, 1, 1], [1, 1, 0, 0]],
        "decoder_input_ids": [[8, 4, 0], [8, 5, 6]],
        "labels": [[4, 0, -100], [5, 6, 0]],
    }
    assert batch["labels"].dtype == torch.long
