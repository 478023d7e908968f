"""Marked words: what is marked, and that a visitor's text stays text."""

from __future__ import annotations

import pytest

from bleurt_repro.metric.compare.attribution import Effect
from bleurt_repro.metric.demo.highlight import differences_html, effects_html, signed


@pytest.mark.parametrize(
    ("references", "candidate", "expected"),
    [
        (["the cat sat"], "the dog sat", "the <mark>dog</mark> sat"),
        (["the cat sat"], "The CAT sat", "The CAT sat"),
        (["the cat"], "a big dog", "<mark>a big dog</mark>"),
        (["it rains", "the dog sat"], "a dog sat", "<mark>a</mark> dog sat"),
        (["a"], "<b>a</b> & ${1}", "<mark>&lt;b&gt;a&lt;/b&gt; &amp; ${1}</mark>"),
        (["a"], "", ""),
    ],
)
def test_words_that_the_reference_lacks(references, candidate, expected):
    marked = differences_html(references, candidate)
    assert marked.replace("</mark><mark>", "") == expected


def test_effects_are_shown_with_sign_and_strength():
    html = effects_html("a <i>.", [Effect(0, 1, "a", 0.15), Effect(2, 5, "<i>", -0.4), Effect(5, 6, ".", 0.001)])
    assert '<span class="word up" style="--strength:0.50">a<small>+0.15</small></span> ' in html
    assert '<span class="word down" style="--strength:1.00">&lt;i&gt;<small>\u22120.40</small></span>' in html
    assert "<small>&nbsp;</small>" in html
    assert "<i>" not in html


def test_a_minus_is_a_minus():
    assert (signed(-0.5), signed(0.25), signed(0)) == ("\u22120.50", "+0.25", "+0.00")
