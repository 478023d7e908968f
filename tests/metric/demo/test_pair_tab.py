"""One pair: every figure against its source, and what is refused."""

from __future__ import annotations

import re

import pytest
from sacrebleu import sentence_bleu, sentence_chrf

from bleurt_repro.metric.calibration import Calibration
from bleurt_repro.metric.compare.attribution import attribute
from bleurt_repro.metric.demo.page import build_page
from bleurt_repro.metric.demo.pair_tab import EXAMPLES, pair_html, scale_html, score_pair, spoken
from bleurt_repro.metric.demo.shared_scorer import SCALE_CANDIDATES, SCALE_REFERENCE, SharedScorer
from bleurt_repro.metric.options import DEFAULT_CHECKPOINT


@pytest.fixture(scope="module")
def shared(tiny_scorer):
    return SharedScorer(str(tiny_scorer), "cpu")


def test_the_figures_are_those_of_their_sources(shared):
    pair = score_pair(shared, ["the cat sat on the mat", " ", "a cat\n"], "the cat sat.")
    references = ["the cat sat on the mat", "a cat"]
    assert pair.references == references
    assert pair.score == pytest.approx(
        shared.scorer.score(references=[references], candidates=["the cat sat."])[0], abs=1e-6
    )
    bleu = sentence_bleu("the cat sat.", references)
    assert (pair.sentence_bleu, pair.brevity_penalty) == (pytest.approx(bleu.score), bleu.bp)
    assert pair.precisions == pytest.approx(
        [100 * n / total for n, total in zip(bleu.counts, bleu.totals, strict=True)]
    )
    assert pair.chrf_plus_plus == pytest.approx(sentence_chrf("the cat sat.", references, word_order=2).score)
    assert pair.effects == attribute(shared, references, "the cat sat.") != []
    assert (pair.truncated, pair.signature) == (False, shared.scorer.signature)


def test_the_parts_of_bleu_stand_below_its_number(shared):
    pair = score_pair(shared, ["the old cat sat on the mat"], "the cat sat on it")
    bleu = sentence_bleu(pair.candidate, pair.references)
    assert bleu.bp < 1
    assert (  # "the cat sat on it" shares 4 of 5 words, 2 of 4 bigrams and 1 of 3 trigrams
        f"<b>{bleu.score:.1f}</b><span>sentence BLEU, 0 to 100</span><small>unsmoothed n-gram precision<br>"
        f"80.0 / 50.0 / 33.3 / 0.0<br>brevity penalty {bleu.bp:.2f}</small>"
    ) in pair_html(pair, shared)


def test_a_metric_has_one_name_on_the_page(shared):
    html = pair_html(score_pair(shared, ["a cat"], "the cat"), shared)
    assert "sentence BLEU: nrefs:1|" in html and "sentBLEU" not in html


def test_two_paragraphs_are_one_reference(shared):
    text = "the cat sat.\n\nthe dog sat."
    pair = score_pair(shared, [text], text)
    [expected] = shared.scorer.score(references=[text], candidates=[text])
    assert pair.references == [text]
    assert pair.score == pytest.approx(expected, abs=1e-6)


def test_the_number_below_a_difference_is_what_its_text_says(shared):
    """The reference with the difference in it, scored against the references, minus the reference itself."""
    references = ["the cat sat on the mat", "it rains"]
    pair = score_pair(shared, references, "the dog sat on the mat")
    [effect] = pair.effects
    changed, same = shared.scorer.score(
        references=[references] * 2, candidates=["the dog sat on the mat", "the cat sat on the mat"]
    )
    assert effect.effect == pytest.approx(changed - same, abs=1e-5)
    text = "Numbers: change in score if this difference alone were put into the reference that shares most words"
    assert text in pair_html(pair, shared)
    single = pair_html(score_pair(shared, references[:1], "the dog sat on the mat"), shared)
    assert "change in score if this difference alone were put into the reference. " in single


def test_a_percentile_is_shown_where_there_is_a_calibration(shared, monkeypatch):
    pair = score_pair(shared, ["a cat"], "the cat")
    assert pair.percentile is None and "percentile" not in pair_html(pair, shared)
    calibration = Calibration((pair.score - 1, pair.score + 1), (20.0, 60.0), {})
    monkeypatch.setattr(shared.scorer, "calibration", calibration)
    pair = score_pair(shared, ["a cat"], "the cat")
    assert pair.percentile == pytest.approx(40, abs=1e-3)
    assert "<b>40</b><span>percentile of human ratings</span>" in pair_html(pair, shared)


def test_a_long_pair_is_reported_as_cut(shared):
    pair = score_pair(shared, ["the cat " * 60], "the cat")
    assert pair.truncated
    assert "1 of 1 pairs were longer than the 64 tokens" in pair_html(pair, shared)
    assert "longer" in spoken(pair)


def test_text_that_the_checkpoint_does_not_read_is_reported():
    shared = SharedScorer(DEFAULT_CHECKPOINT, "cpu")
    pair = score_pair(shared, ["רכבת מאחרת"], "חתול ישן")
    assert "this checkpoint reads English" in pair_html(pair, shared)
    assert pair.percentile is None and "percentile" not in pair_html(pair, shared) + spoken(pair)
    assert score_pair(shared, ["A cat sleeps.", "רכבת מאחרת"], "A cat is asleep.").percentile is None
    assert score_pair(shared, ["A cat sleeps."], "A cat is asleep.").percentile is not None
    assert "warned" not in pair_html(score_pair(shared, ["A cat sleeps."], "A cat is asleep."), shared)
    references = ["רכבת מאחרת"] * 150
    [warning] = shared.compute(references=references, candidates=references).warnings
    assert warning.startswith("150 of 150 pairs")


def test_the_page_shows_the_pair_and_escapes_it(shared):
    pair = score_pair(shared, ["a cat"], "<script>alert(1)</script> cat")
    html = pair_html(pair, shared)
    assert "<script" not in html and "&lt;" in html
    assert f"{pair.score:.2f}".replace("-", "\u2212") in html and f"{pair.chrf_plus_plus:.1f}" in html
    assert "longer than" not in html


def test_what_a_score_means_is_shown_by_examples_that_the_checkpoint_scored(shared):
    assert [point.name for point in shared.scale] != [] and len(shared.scale) == 5
    scores = [point.score for point in shared.scale]
    assert scores == sorted(scores, reverse=True)
    expected = shared.scorer.score(references=[SCALE_REFERENCE] * 5, candidates=[p.candidate for p in shared.scale])
    assert scores == pytest.approx(expected, abs=1e-6)
    between = (scores[1] + scores[2]) / 2
    rows = re.findall(r'<tr class="(\w*)"><td class="number">(.*?)</td>', scale_html(shared.scale, between))
    assert [row_class for row_class, _ in rows] == ["", "", "own", "", "", ""]
    assert rows[2][1].replace("\u2212", "-") == f"{between:.2f}"


def test_the_embedded_checkpoint_orders_its_scale_as_people_would():
    shared = SharedScorer(DEFAULT_CHECKPOINT, "cpu")
    assert [point.name for point in shared.scale] == list(SCALE_CANDIDATES)


def test_the_examples_show_what_bleu_does_not():
    shared = SharedScorer(DEFAULT_CHECKPOINT, "cpu")
    opposite, paraphrase = (score_pair(shared, *EXAMPLES[label]) for label in ("Opposite meaning", "Same meaning"))
    assert opposite.references == paraphrase.references
    assert paraphrase.score > opposite.score and paraphrase.sentence_bleu < opposite.sentence_bleu


@pytest.mark.parametrize(
    ("references", "candidate", "message"),
    [
        (["", " "], "a cat", "give a reference and a candidate"),
        (["a cat"], " \n", "give a reference and a candidate"),
        (["r"] * 9, "a cat", "at most 8 references"),
    ],
)
def test_what_cannot_be_scored(shared, references, candidate, message):
    with pytest.raises(ValueError, match=message):
        score_pair(shared, references, candidate)


def test_a_checkpoint_that_reads_sources(tiny_source_scorer):
    shared = SharedScorer(str(tiny_source_scorer), "cpu")
    pairs = [score_pair(shared, ["a cat"], "the cat", source) for source in ("un chat", "il pleut")]
    assert pairs[0].score != pytest.approx(pairs[1].score)


def test_the_page_of_a_checkpoint_that_reads_sources_opens_with_a_scored_example(tiny_source_scorer):
    page = build_page(str(tiny_source_scorer), "cpu")
    blocks = {block.elem_id: block for block in page.blocks.values() if getattr(block, "elem_id", None)}
    example = next(iter(EXAMPLES.values()))
    expected = score_pair(SharedScorer(str(tiny_source_scorer), "cpu"), *example).score
    assert f"<b>{expected:.2f}</b>".replace("-", "\u2212") in blocks["pair-result"].value
    assert "compare-source" in blocks and not blocks["fill-example"].visible
