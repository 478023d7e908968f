"""Mask filling: the beam search against a slow one, batches, passes, and words that stay as they were."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from bleurt_repro.datasets_builders.perturbations import CONTIGUOUS, SCATTERED
from bleurt_repro.datasets_builders.perturbations.mask_filling import STRATEGIES, MaskFiller
from tests.tiny_teachers import SENTENCES, make_classifier


@pytest.fixture(scope="module")
def filler(tiny_teachers):
    return MaskFiller(str(tiny_teachers.masked_lm), beam_size=4, max_masks=5, device="cpu")


def masked(filler, count=6):
    return [
        filler.mask(text, strategy, np.random.default_rng(i))
        for i, text in enumerate(SENTENCES[:count])
        for strategy in STRATEGIES
    ]


def slow_search(folder, item, beam_size, per_pass=1):
    """One text, one hypothesis at a time, in float64, with the whole model's output."""
    model = AutoModelForMaskedLM.from_pretrained(folder).eval().double()
    special = AutoTokenizer.from_pretrained(folder).all_special_ids
    beam = [(0.0, list(item.ids))]
    for first in range(0, len(item.masks), per_pass):
        with torch.no_grad():
            log_probabilities = {tuple(ids): model(torch.tensor([ids])).logits[0].log_softmax(-1) for _, ids in beam}
        # Each hypothesis carries the one that the model read at the start of the pass.
        hypotheses = [(score, ids, tuple(ids)) for score, ids in beam]
        for position in item.masks[first : first + per_pass]:
            extended = []
            for score, ids, start in hypotheses:
                fills = log_probabilities[start][position].clone()
                fills[special] = -torch.inf
                for token in fills.topk(beam_size).indices.tolist():
                    child = list(ids)
                    child[position] = token
                    extended.append((score + fills[token].item(), child, start))
            hypotheses = sorted(extended, key=lambda item: -item[0])[:beam_size]
        beam = [(score, ids) for score, ids, _ in hypotheses]
    return beam[0][1]


@pytest.mark.parametrize(("beam_size", "per_pass"), [(1, 1), (4, 1), (4, 2), (3, 5)])
def test_beam_search_equals_a_slow_one(tiny_teachers, beam_size, per_pass):
    filler = MaskFiller(str(tiny_teachers.masked_lm), beam_size, 5, per_pass, device="cpu")
    items = masked(filler)
    assert len({len(item.masks) for item in items}) > 2
    order = sorted(range(len(items)), key=lambda i: -len(items[i].masks))
    with torch.inference_mode():
        best = filler._search([items[i] for i in order])
    assert best == [slow_search(tiny_teachers.masked_lm, items[i], beam_size, per_pass) for i in order]


def test_conditioning_on_earlier_fills_matters(filler, tiny_teachers):
    at_once = MaskFiller(str(tiny_teachers.masked_lm), 4, 5, masks_per_pass=5, device="cpu")
    assert filler.fill(masked(filler)) != at_once.fill(masked(filler))


def test_batches_do_not_change_the_fills(filler, tiny_teachers):
    items = masked(filler)
    together = filler.fill(items)
    assert [filler.fill([item])[0] for item in items] == together
    small = MaskFiller(str(tiny_teachers.masked_lm), beam_size=4, max_masks=5, device="cpu", batch_tokens=64)
    assert small.fill(items) == together


@pytest.mark.parametrize("strategy", [SCATTERED, CONTIGUOUS])
def test_masks_cover_whole_words_and_no_special_token_is_written(filler, strategy):
    for seed, text in enumerate(SENTENCES):
        item = filler.mask(text, strategy, np.random.default_rng(seed))
        assert 1 <= len(item.masks) <= 5
        mask = filler._tokenizer.mask_token_id
        assert [i for i, token in enumerate(item.ids) if token == mask] == item.masks
        text = filler.fill([item])[0]
        assert not any(token in text for token in filler._tokenizer.all_special_tokens)


def test_words_filled_with_themselves_stay_as_written(filler):
    text = "The OLD bridge, over the River (was closed)."
    item = filler.mask(text, SCATTERED, np.random.default_rng(0))
    assert filler._write(item, item.original_ids) == text


def test_text_outside_the_masks_stays_as_written(filler):
    text = "HEAVY rain  delayed the Train"
    item = filler.mask(text, CONTIGUOUS, np.random.default_rng(4))
    start, end = item.spans[item.masks[0]][0], item.spans[item.masks[-1]][1]
    filled = filler.fill([item])[0]
    assert filled != text
    assert filled.startswith(text[:start].rstrip()) and filled.endswith(text[end:].lstrip())


def test_a_text_whose_words_are_too_long_has_nothing_to_mask(filler):
    assert filler.mask("qwxzqwxz", SCATTERED, np.random.default_rng(0)) is None
    assert filler.fill([]) == []


def test_a_model_that_cannot_fill_masks_is_refused(tmp_path):
    with pytest.raises(ValueError, match="masked language model .* lacks weights"):
        MaskFiller(str(make_classifier(tmp_path)), device="cpu")
