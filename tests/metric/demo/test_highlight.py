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
        (["the old cat sat"], "the cat sat", "the <del>old</del> cat sat"),
        (["the cat sat on <it>"], "the cat sat", "the cat sat <del>on &lt;it&gt;</del>"),
        (["a"], "<b>a</b> & ${1}", "<mark>&lt;b&gt;a&lt;/b&gt; &amp; ${1}</mark>"),
        (["a"], "", "<del>a</del> "),
        (["The cat sat"], "Cat sat", "<del>The</del> Cat sat"),
        (["It rained last year"], "Last year it rained", "<mark>Last year</mark> it rained"),
    ],
)
def test_words_that_only_one_text_has(references, candidate, expected):
    assert differences_html(references, candidate) == expected


def test_effects_are_shown_with_sign_strength_and_what_is_missing():
    effects = [
        Effect(0, 1, "a", "", 0.15),
        Effect(2, 5, "<i>", "b&", -0.8),
        Effect(5, 5, "", "<u>", -0.4),
        Effect(5, 6, ".", "!", 0.001),
    ]
    html = effects_html("a <i>.", effects, score_range=2.0)
    assert '<p class="effects" dir="auto">' in html
    assert '<span class="word up" style="--strength:0.15"><bdi>a</bdi><small dir="ltr">+0.15</small></span> ' in html
    assert (
        '<span class="word down" style="--strength:0.80" title="reference: b&amp;"><bdi>&lt;i&gt;</bdi>'
        '<small dir="ltr">\u22120.80</small></span>'
    ) in html
    assert (
        '<span class="word down missing" style="--strength:0.40"><del><bdi>&lt;u&gt;</bdi></del>'
        '<small dir="ltr">\u22120.40</small></span>'
    ) in html
    assert '<small dir="ltr">&nbsp;</small>' in html
    assert "<i>" not in html and "<u>" not in html


def test_colours_are_scaled_to_the_range_of_the_scores():
    effects = [Effect(0, 1, "a", "b", -0.25)]
    for score_range, strength in ((0.4, "1.00"), (1.0, "0.50"), (5.0, "0.10"), (0.0, "1.00")):
        assert f"--strength:{strength}" in effects_html("a", effects, score_range)


def test_a_minus_is_a_minus():
    assert (signed(-0.5), signed(0.25), signed(0)) == ("\u22120.50", "+0.25", "+0.00")
