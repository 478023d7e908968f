"""Pairs and signals of a unit: which, in what order, the same in whatever company."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bleurt_repro.datasets_builders.synthetic import pair_maker
from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.pair_maker import PairMaker, model_identities, random_for
from bleurt_repro.datasets_builders.synthetic.segments import Segment
from tests.tiny_teachers import SENTENCES

SEGMENTS = [Segment(i, i + 1, text) for i, text in enumerate(SENTENCES[:8])]


@pytest.fixture(scope="module")
def config(tiny_teachers):
    return SyntheticConfig(device="cpu", beam_size=2, max_masks=5).with_options(**tiny_teachers.options())


@pytest.fixture(scope="module")
def maker(config):
    return PairMaker(config)


@pytest.fixture(scope="module")
def unit(maker):
    maker.restart()
    return maker.make(SEGMENTS)


def test_three_perturbations_a_segment_in_order_each_before_its_dropped_variant(unit, config):
    order = [*config.mask_strategies, "back_translation_de"]
    for segment in SEGMENTS:
        pairs = [pair for pair in unit.pairs if pair.segment_id == segment.segment_id]
        perturbations = [pair.perturbation for pair in pairs if not pair.word_dropping]
        blank = [item.reason.split(":")[0] for item in unit.skipped if item.row == segment.row]
        assert len({*perturbations, *blank}) == len(perturbations) + len(blank) == 3
        assert perturbations == sorted(perturbations, key=order.index)
        for before, pair in zip(pairs, pairs[1:], strict=False):
            if pair.word_dropping:
                tokens = iter(before.candidate.split())
                assert (before.perturbation, before.word_dropping) == (pair.perturbation, False)
                assert all(word in tokens for word in pair.candidate.split())
        assert {pair.reference for pair in pairs} == {segment.text}
    assert len(unit.pairs) + len(unit.skipped) >= 3 * len(SEGMENTS)
    assert {pair.perturbation for pair in unit.pairs} == {*order}


def test_every_pair_has_every_signal(unit, config):
    assert list(unit.signals) == list(config.signals)
    sizes = {name: numbers.shape for name, numbers in unit.signals.items()}
    count = len(unit.pairs)
    assert sizes == {
        "bleu": (count, 1),
        "rouge": (count, 3),
        "bertscore": (count, 3),
        "back_translation_likelihood": (count, 4),
        "entailment": (count, 3),
        "back_translation_flag": (count, 2),
    }
    flags = [pair.perturbation.startswith("back_translation") for pair in unit.pairs]
    assert unit.signals["back_translation_flag"][:, 0].tolist() == flags


@pytest.mark.long
def test_a_unit_has_the_same_bytes_whatever_was_made_before(maker, unit, config):
    maker.make(SEGMENTS[3:7])
    for again in (maker.make(SEGMENTS), PairMaker(config).make(SEGMENTS)):
        assert again.pairs == unit.pairs and again.skipped == unit.skipped
        assert all(np.array_equal(again.signals[name], unit.signals[name]) for name in unit.signals)


@pytest.mark.long
def test_other_units_and_batches_give_the_same_pairs_and_nearly_the_same_numbers(config, unit):
    maker = PairMaker(config.with_options(batch_tokens=64))
    units = [maker.make(SEGMENTS[:5]), maker.make(SEGMENTS[5:])]
    assert [pair for small_unit in units for pair in small_unit.pairs] == unit.pairs
    for name, numbers in unit.signals.items():
        np.testing.assert_allclose(
            np.concatenate([small_unit.signals[name] for small_unit in units]), numbers, atol=1e-4
        )


def test_each_text_is_translated_once_in_each_direction(maker, monkeypatch):
    counts: Counter[int] = Counter()
    for translator in maker.translators.values():
        original = translator._generate
        monkeypatch.setattr(
            translator, "_generate", lambda rows, call=original: counts.update(map(str, rows)) or call(rows)
        )
    unit = maker.make(SEGMENTS[:4])
    references = 4 * 2  # into French and German, for back-translation and likelihood alike
    assert counts and max(counts.values()) == 1
    assert len(counts) <= references + 2 * len({pair.candidate for pair in unit.pairs}) + references


def test_another_seed_gives_other_pairs(config, unit):
    pairs = PairMaker(config.with_options(seed=1)).make(SEGMENTS[:4]).pairs
    assert pairs != unit.pairs[: len(pairs)]


def test_random_numbers_depend_on_seed_text_and_purpose_alone():
    first = random_for(0, "text", "purpose").random()
    assert first == random_for(0, "text", "purpose").random()
    numbers = {
        random_for(1, "text", "purpose").random(),
        random_for(0, "texT", "purpose").random(),
        random_for(0, "text", "x").random(),
    }
    assert len(numbers | {first}) == 4


def test_all_perturbations_and_no_dropping(config):
    from dataclasses import replace

    everything = replace(config, perturbations_per_segment=None, dropping_rate=0.0, signals=("bleu",))
    unit = PairMaker(everything).make(SEGMENTS[:3])
    assert len(unit.pairs) + len(unit.skipped) == 9 and not any(pair.word_dropping for pair in unit.pairs)
    dropped = PairMaker(replace(everything, dropping_rate=1.0)).make(SEGMENTS[:3])
    assert len(dropped.pairs) == 2 * len(unit.pairs)


def test_segments_that_no_model_can_read_are_named(maker):
    long = Segment(0, 5, " ".join(SENTENCES))
    unmaskable = Segment(1, 6, "qwxzqwxzq wxzqwxzqw")
    unit = maker.make([long, unmaskable])
    reasons = [(item.row, item.reason) for item in unit.skipped]
    assert (5, "more than the 64 tokens that the translator en-fr reads") in [
        (row, reason.replace(Path(next(iter(maker.translators))).name, "en-fr")) for row, reason in reasons
    ]
    assert any(row == 6 and reason.endswith("no word of at most 5 tokens") for row, reason in reasons)
    assert {pair.segment_id for pair in unit.pairs} <= {1}


def test_numbers_that_are_not_finite_stop_the_work(maker, monkeypatch):
    monkeypatch.setattr(type(maker.signals[0]), "__call__", lambda *_: np.array([[1.0], [np.nan]] + [[1.0]] * 99))
    with pytest.raises(ValueError, match="signal bleu must be finite, found .nan. for reference 'The old bridge"):
        maker.make(SEGMENTS)


def test_a_model_of_several_roles_is_hashed_once(config, monkeypatch):
    identified = []
    monkeypatch.setattr(pair_maker, "identify", lambda name, folder: identified.append(name) or {"name": name})
    identities = model_identities(config)
    assert list(identities) == [
        "masked language model",
        "translator en-fr",
        "translator fr-en",
        "translator en-de",
        "translator de-en",
        "BERTscore encoder",
        "entailment classifier",
    ]
    assert len(identified) == 3


def test_bfloat16_changes_signals_little(unit, config, monkeypatch):
    """The first tokens that a random translator finds likeliest may differ, so only pairs that both make are compared."""
    import torch

    used = []
    linear = torch.nn.functional.linear
    monkeypatch.setattr(
        torch.nn.functional, "linear", lambda *arguments: used.append(out := linear(*arguments)) or out
    )
    rounded = PairMaker(config.with_options(dtype="bfloat16")).make(SEGMENTS[:3])
    assert {tensor.dtype for tensor in used} == {torch.bfloat16}
    rows = {(pair.reference, pair.candidate): i for i, pair in enumerate(unit.pairs)}
    common = [
        (rows[key], i) for i, pair in enumerate(rounded.pairs) if (key := (pair.reference, pair.candidate)) in rows
    ]
    assert common
    ours, theirs = (list(side) for side in zip(*common, strict=True))
    for name, size in (("bertscore", 0.02), ("entailment", 0.02), ("bleu", 1e-9)):
        np.testing.assert_allclose(rounded.signals[name][theirs], unit.signals[name][ours], atol=size)
