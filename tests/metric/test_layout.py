"""The layout: what a config records and what it may not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bleurt_repro.metric.layout import Layout, readable_positions


def test_what_is_recorded_is_read_back():
    layout = Layout(inputs=("source", "candidate", "reference"), max_length=192, separators=2)
    assert Layout.from_config(SimpleNamespace(bleurt=layout.to_config())) == layout
    assert (layout.special_tokens, layout.reads_sources, layout.reads_references) == (6, True, True)


@pytest.mark.parametrize(
    ("positions", "max_length"), [(512, 512), (128, 128), (4096, 512), (None, 512)]
)  # BLEURT reads at most 512
def test_a_config_that_records_nothing(positions, max_length):
    config = SimpleNamespace(max_position_embeddings=positions)
    assert Layout.from_config(config) == Layout(("reference", "candidate"), max_length, 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"inputs": ("reference",)}, "with 'candidate' among them"),
        ({"inputs": ("candidate", "candidate")}, "must be different names"),
        ({"inputs": ("candidate", "target")}, "must be different names of"),
        ({"separators": 3}, "1 or 2 separators"),
        ({"max_length": 4}, "leaves no room for text"),
        ({"optional": ("reference",)}, "can be optional where a layout has both"),
    ],
)
def test_a_layout_that_cannot_be(fields, message):
    with pytest.raises(ValueError, match=message):
        Layout(**fields)


def test_texts_that_may_be_left_out():
    layout = Layout(("source", "candidate", "reference"), optional=("source", "reference"))
    assert layout.required == ("candidate",)
    assert Layout.from_config(SimpleNamespace(bleurt=layout.to_config())) == layout


def test_reference_free():
    layout = Layout(inputs=("source", "candidate"))
    assert (layout.reads_sources, layout.reads_references) == (True, False)


@pytest.mark.parametrize("padding", [0, 1])  # MPNet numbers positions from 2, whatever its padding token
def test_mpnet_reads_two_tokens_less_than_it_has_positions(padding):
    config = SimpleNamespace(model_type="mpnet", max_position_embeddings=514, pad_token_id=padding)
    assert readable_positions(config) == Layout.from_config(config).max_length == 512
    config.bleurt = {"max_length": 513}
    with pytest.raises(ValueError, match="513 is more than the model's 512 positions"):
        Layout.from_config(config)
