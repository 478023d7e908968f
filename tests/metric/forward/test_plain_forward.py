"""Padding of batches on a GPU and elsewhere."""

from __future__ import annotations

import pytest

from bleurt_repro.metric.forward.plain import padded_length


@pytest.mark.parametrize(
    ("longest", "on_gpu", "most", "expected"),
    [
        (13, False, 512, 13),
        (13, True, 512, 16),
        (16, True, 512, 16),
        (17, True, None, 24),
        (509, True, 510, 510),
        (510, True, 510, 510),
    ],
)
def test_lengths_are_rounded_up_for_a_gpu_within_the_positions(longest, on_gpu, most, expected):
    assert padded_length(longest, on_gpu, most) == expected
