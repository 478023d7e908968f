"""Comparing systems: figures against their parts, and what is refused."""

from __future__ import annotations

import math
from html.parser import HTMLParser

import numpy as np
import pytest
from sacrebleu import corpus_bleu, corpus_chrf, sentence_bleu

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.compare.compare import compare, p_text
from bleurt_repro.metric.compare.overlap import bleu_tokenizer, overlap, overlap_tests
from bleurt_repro.metric.compare.report import comparison_text
from bleurt_repro.metric.scorer import ScoringResult
from bleurt_repro.metric.statistics import two_sided_p_values
from tests.three_systems import REFERENCES, SYSTEMS


@pytest.fixture(scope="module")
def scorer(tiny_scorer):
    return BleurtScorer(str(tiny_scorer), device="cpu", progress=False)


@pytest.fixture(scope="module")
def comparison(scorer):
    return compare(scorer, REFERENCES, SYSTEMS, resamples=200)


def test_systems_in_the_order_given(comparison, scorer):
    assert [system.name for system in comparison.systems] == ["good", "bad", "middle"]
    for system in comparison.systems:
        scores = scorer.score(references=REFERENCES, candidates=SYSTEMS[system.name])
        assert system.mean == pytest.approx(sum(scores) / 3, abs=1e-6)
        assert min(scores) - 1e-6 <= system.low <= system.mean <= system.high <= max(scores) + 1e-6
        texts = SYSTEMS[system.name]
        assert system.bleu == pytest.approx(corpus_bleu(texts, [REFERENCES]).score)
        assert system.chrf_plus_plus == pytest.approx(corpus_chrf(texts, [REFERENCES], word_order=2).score)
        sentences = [sentence_bleu(c, [r]).score for c, r in zip(texts, REFERENCES, strict=True)]
        assert system.sentence_bleu == pytest.approx(sum(sentences) / 3)


def test_every_two_systems_are_tested(comparison):
    means = {system.name: system.mean for system in comparison.systems}
    assert [(test.first, test.second) for test in comparison.tests] == [
        ("good", "bad"),
        ("good", "middle"),
        ("bad", "middle"),
    ]
    for test in comparison.tests:
        assert test.difference == pytest.approx(means[test.first] - means[test.second], abs=1e-6)
        assert test.wins + test.losses + test.ties == 3


def test_two_sided_p_is_that_of_the_differences_of_the_same_segments():
    generator = np.random.default_rng(3)
    scores = generator.normal(size=(3, 20)) + [[0.4], [0.0], [0.1]]
    texts = {name: [str(score) for score in row] for name, row in zip("ABC", scores, strict=True)}
    comparison = compare(NumberScorer(), ["r"] * 20, texts, resamples=300, seed=7)
    for test, (i, j) in zip(comparison.tests, [(0, 1), (0, 2), (1, 2)], strict=True):
        [p] = two_sided_p_values(scores[i : i + 1] - scores[j : j + 1], 300, 7)
        assert test.p_two_sided == pytest.approx(p)
        assert 0.01 < p < 1


def test_the_seed_is_0_and_two_segments_have_an_interval():
    texts = {"A": ["1", "5"], "B": ["2", "2.5"]}
    comparison = compare(NumberScorer(), ["r", "s"], texts, resamples=20)
    assert comparison == compare(NumberScorer(), ["r", "s"], texts, resamples=20, seed=0)
    assert comparison.seed == 0 and None not in (comparison.systems[0].low, comparison.systems[0].high)


@pytest.mark.parametrize("resamples", [0, 1_000_001])
def test_resamples_that_cannot_be_drawn(resamples):
    with pytest.raises(ValueError, match="resamples must be from 1 to 1,000,000, found"):
        compare(NumberScorer(), ["r"], {"A": ["1"], "B": ["2"]}, resamples=resamples)
    assert compare(NumberScorer(), ["r"], {"A": ["1"], "B": ["2"]}, resamples=1).resamples == 1


def test_without_a_fit_of_preferences_none_is_named():
    scorer = NumberScorer()
    scorer.reliability = None
    assert compare(scorer, ["r"], {"A": ["1"], "B": ["2"]}, resamples=1).preferred is None


def test_one_system_is_scored_and_not_tested(comparison, scorer):
    alone = compare(scorer, REFERENCES, {"good": SYSTEMS["good"]}, resamples=200)
    assert alone.tests == [] and alone.systems[0].bleu == comparison.systems[0].bleu
    assert alone.systems[0].mean == pytest.approx(comparison.systems[0].mean, abs=1e-6)
    assert (alone.systems[0].low, alone.systems[0].high) == pytest.approx(
        (comparison.systems[0].low, comparison.systems[0].high), abs=1e-6
    )
    assert "one-sided" not in comparison_text(alone) and "one-sided" not in alone._repr_html_()


def test_segments_with_the_largest_spread_come_first(comparison):
    spreads = [segment.spread for segment in comparison.segments]
    assert spreads == sorted(spreads, reverse=True)
    assert sorted(segment.number for segment in comparison.segments) == [1, 2, 3]
    for segment in comparison.segments:
        assert segment.references == [REFERENCES[segment.number - 1]]
        assert segment.candidates == [texts[segment.number - 1] for texts in SYSTEMS.values()]
        assert segment.spread == pytest.approx(max(segment.scores) - min(segment.scores))


def test_signatures_are_there(comparison, scorer):
    assert comparison.signatures["BLEURT"] == scorer.signature
    assert "smooth:exp" in comparison.signatures["sentence BLEU"] and "nc:6|nw:2" in comparison.signatures["chrF++"]


def test_several_references_of_any_number(scorer):
    references = [["the cat sat on the mat", "a cat was on the mat"], ["it rains"], ["good bye"]]
    candidates = ["a cat was on the mat", "it rains", "good bye"]
    first = compare(scorer, references, {"A": candidates, "B": SYSTEMS["bad"]}, resamples=10).systems[0]
    assert (first.sentence_bleu, first.chrf_plus_plus) == pytest.approx((100, 100))


def test_sources_reach_a_checkpoint_that_reads_them(tiny_source_scorer):
    scorer = BleurtScorer(str(tiny_source_scorer), device="cpu", progress=False)
    systems = {"A": ["the cat"], "B": ["a dog"]}
    first = compare(scorer, ["the cat"], systems, ["le chat"], resamples=5)
    second = compare(scorer, ["the cat"], systems, ["il pleut"], resamples=5)
    assert first.segments[0].source == "le chat"
    assert first.systems[0].mean != pytest.approx(second.systems[0].mean)
    assert (first.systems[0].low, first.tests[0].p_value) == (None, None)


@pytest.mark.parametrize(
    ("references", "systems", "message"),
    [
        (["r"], {}, "at least one system, found none"),
        (["r"], {"A": ["a"], "B": []}, "1 references, 1 candidates of A, 0 candidates of B"),
        ([], {"A": [], "B": []}, "at least one segment"),
    ],
)
def test_what_cannot_be_compared(scorer, references, systems, message):
    with pytest.raises(ValueError, match=message):
        compare(scorer, references, systems)


# Tables, of systems whose names would be formatting.

ODD_NAMES = ["a_b|*c*", "50% <b>&", "\\x{y}~^#$\nz"]


class LengthScorer:
    """A scorer whose scores are lengths."""

    def compute_systems(self, *, references, systems, sources=None):
        return {
            name: ScoringResult([float(len(text)) for text in candidates], None, "lengths<b>", 0)
            for name, candidates in systems.items()
        }


class NumberScorer:
    """A scorer whose scores stand in the candidates."""

    def compute_systems(self, *, references, systems, sources=None):
        return {
            name: ScoringResult([float(text) for text in candidates], None, "numbers", 0)
            for name, candidates in systems.items()
        }


@pytest.fixture(scope="module")
def odd():
    texts = [[f"{name} <i>{'x' * (i + number)}</i>" for i in range(30)] for number, name in enumerate(ODD_NAMES)]
    return compare(LengthScorer(), ["<p>reference"] * 30, dict(zip(ODD_NAMES, texts, strict=True)), resamples=50)


class Cells(HTMLParser):
    """The rows of all tables of a page as text, and the tags that it has."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.tags, self._in_cell = [], set(), False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self._in_cell = tag in ("td", "th")
        if tag == "tr":
            self.rows.append([])
        elif self._in_cell:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data):
        if self._in_cell:
            self.rows[-1][-1] += data


def expected_rows(comparison):
    """The rows of both tables: of the systems, best first, and of the tests."""
    names = {name: name.replace("\n", " ") for name in ODD_NAMES}
    systems = sorted(comparison.systems, key=lambda system: -system.mean)
    return (
        [["system", "mean", "95% interval", "sentence BLEU", "BLEU", "chrF++"]]
        + [[names[system.name], f"{system.mean:.4f}", f"{system.low:.4f} to {system.high:.4f}"]
           + [f"{system.sentence_bleu:.2f}", f"{system.bleu:.2f}", f"{system.chrf_plus_plus:.2f}"] for system in systems]
        + [["systems", "difference", "95% interval", "one-sided p", "two-sided p", "higher", "lower", "same"]]
        + [[f"{names[test.first]} - {names[test.second]}", f"{test.difference:+.4f}", f"{test.low:.4f} to {test.high:.4f}"]
           + [f"{test.p_value:.4f}", f"{test.p_two_sided:.4f}", str(test.wins), str(test.losses), str(test.ties)]
           for test in comparison.tests]
    )  # fmt: skip


def test_a_notebook_gets_tables_of_limited_size(odd):
    page = Cells(odd._repr_html_())
    both, segments = expected_rows(odd), page.rows[len(expected_rows(odd)) :]
    assert [[cell.strip() for cell in row] for row in page.rows[: len(both)]] == both
    assert len(segments) == 1 + 5
    assert segments[1][0].strip() == str(odd.segments[0].number)
    assert page.tags == {"table", "thead", "tbody", "tr", "th", "td", "p", "br"}
    assert "lengths&lt;b&gt;" in odd._repr_html_()

    long = compare(LengthScorer(), ["r"], {"A": ["x" * 10_000], "B": ["y"]}, resamples=5)
    assert len(long._repr_html_()) < 5000 and "no interval" in long._repr_html_()
    assert repr(long) == "Comparison(A: 10000.0000, B: 1.0000; 1 segments)"


@pytest.mark.parametrize(("length", "visible"), [(200, "x" * 200), (201, "x" * 200 + "\N{HORIZONTAL ELLIPSIS}")])
def test_a_notebook_shows_200_characters_of_a_text(length, visible):
    page = Cells(compare(LengthScorer(), ["r"], {"A": ["x" * length], "B": ["y"]}, resamples=5)._repr_html_())
    assert f"{length}.0000 {visible}" in [cell.strip() for cell in page.rows[-1]]


def test_results_are_shown_in_short():
    result = ScoringResult(
        [0.123456] * 2000, 0.123456, "sig<b>", 3, warnings=("3 pairs <were> cut",), std=[0.5] * 2000
    )
    assert repr(result) == (
        "ScoringResult(scores=[0.1235, 0.1235, 0.1235, 0.1235, 0.1235, ... 2,000 in all], mean_score=0.1235, "
        "signature='sig<b>', truncated=3)"
    )
    page = Cells(result._repr_html_())
    assert page.rows == [["", "score", "standard deviation"], *([str(i), "0.1235", "0.5000"] for i in range(5))]
    assert page.tags == {"table", "thead", "tbody", "tr", "th", "td", "p"}
    assert "3 pairs &lt;were&gt; cut" in result._repr_html_() and "sig&lt;b&gt;" in result._repr_html_()
    empty = ScoringResult([], None, "sig", 0)
    assert repr(empty) == "ScoringResult(scores=[], mean_score=None, signature='sig')"
    assert Cells(empty._repr_html_()).rows == [["", "score"]]


# BLEU as the worked examples of Papineni et al. (2002) have it; text is lower case, since sacreBLEU tells cases apart.

MAT = ["the cat is on the mat", "there is a cat on the mat"]
GUIDE = [
    "it is a guide to action that ensures that the military will forever heed party commands",
    "it is the guiding principle which guarantees the military forces always being under the command of the party",
    "it is the practical guide for the army always to heed the directions of the party",
]


@pytest.mark.parametrize(
    ("references", "candidate", "precisions"),
    [
        (MAT, "the the the the the the the", [(2, 7), (0, 6), (0, 5), (0, 4)]),  # section 2.1: clipped to 2 of 7
        (MAT[1:], "the the the the the the the", [(1, 7), (0, 6), (0, 5), (0, 4)]),
        (MAT, "the the cat", [(3, 3), (1, 2), (0, 1), (0, 0)]),
        (MAT, "the cat", [(2, 2), (1, 1), (0, 0), (0, 0)]),
        # section 2.1, example 1: 17 of 18 words of candidate 1 and 8 of 14 of candidate 2, 10 of 17 and 1 of 13 bigrams
        (
            GUIDE,
            "it is a guide to action which ensures that the military always obeys the commands of the party",
            [(17, 18), (10, 17), (7, 16), (4, 15)],
        ),
        (
            GUIDE,
            "it is to insure the troops forever hearing the activity guidebook that party direct",
            [(8, 14), (1, 13), (0, 12), (0, 11)],
        ),
    ],
)
def test_precisions_are_those_of_the_paper(references, candidate, precisions):
    system = compare(LengthScorer(), [references], {"A": [candidate], "B": ["x"]}, resamples=1).systems[0]
    assert system.precisions == pytest.approx([100 * count / total if total else 0 for count, total in precisions])


@pytest.mark.parametrize(
    ("references", "lengths", "expected"),
    [
        ([[12, 15, 17]], [12], 1.0),  # section 2.2.2: the same length as one reference, no penalty
        ([[12, 15, 17]], [16], 1.0),
        ([[12, 15, 17]], [11], math.exp(1 - 12 / 11)),  # the closest reference counts, not the shortest or the longest
        ([[4, 10]], [7], 1.0),  # equally close: the shorter one
        ([[10], [10]], [12, 8], 1.0),  # the penalty is of the corpus, not of each segment
        ([[10], [10]], [8, 8], math.exp(1 - 20 / 16)),
        ([[6, 7]], [2], math.exp(1 - 6 / 2)),  # "the cat" beside the two references of the mat
    ],
)
def test_the_brevity_penalty_is_that_of_the_paper(references, lengths, expected):
    texts = [[" ".join(["w"] * length) for length in row] for row in references]
    candidates = [" ".join(["w"] * length) for length in lengths]
    system = compare(LengthScorer(), texts, {"A": candidates, "B": ["x"] * len(lengths)}, resamples=1).systems[0]
    assert system.brevity_penalty == pytest.approx(expected)
    if len(lengths) == 1 and min(lengths) >= 4:  # BLEU is the geometric mean of the precisions times the penalty
        assert system.bleu == pytest.approx(math.prod(system.precisions) ** 0.25 * expected)


@pytest.mark.parametrize(
    ("references", "tokenizer"),
    [
        ([["It rains in Zürich."], ["Дождь."]], "13a"),
        ([["北京今天下雨。", "今天北京下雨。"], ["GDP 增长了 3%。"]], "zh"),
        ([["東京は雨が降っています。"]], "char"),  # Japanese
        ([["ฝนตกในกรุงเทพฯ"]], "char"),
        ([["비가 옵니다."]], "13a"),  # Korean has spaces
        ([["1990"]], "13a"),
    ],
)
def test_bleu_takes_the_tokenizer_of_the_language(references, tokenizer):
    candidates = [texts[0] for texts in references]
    assert bleu_tokenizer(references) == tokenizer
    result = overlap(references, candidates)
    assert f"tok:{tokenizer}" in result.signatures["BLEU"] and f"tok:{tokenizer}" in result.signatures["sentence BLEU"]
    assert result.mean_sentence_bleu == pytest.approx(100)


def test_the_test_of_bleu_has_the_same_tokenizer():
    references = [["北京今天下雨。"], ["国内生产总值增长了百分之三。"]]
    systems = {"a": ["北京今天有雨。", "国内生产总值增长了百分之三。"], "b": ["北京下雨。", "总值增长了三。"]}
    scores, signature = overlap_tests(references, systems)["BLEU"]
    assert "tok:zh" in signature
    assert [score.score for score in scores] == pytest.approx([overlap(references, c).bleu for c in systems.values()])


def test_equal_texts_are_ties(scorer):
    """A batch of other pairs would change the last bits of a score."""
    words = "the cat sat on mat it rains dog not good".split()
    shared = [" ".join(words[: 1 + n % 10]) for n in range(60)]
    other = [" ".join(words[n % 7 :]) + " bye" * (n % 5) for n in range(60)]
    systems = {"A": shared, "B": [a if n % 2 else b for n, (a, b) in enumerate(zip(shared, other, strict=True))]}
    comparison = compare(scorer, ["the cat sat on the mat"] * 60, systems, resamples=5)
    equal = [len(set(segment.candidates)) == 1 for segment in comparison.segments]
    assert [segment.spread == 0 for segment in comparison.segments] == equal and sum(equal) >= 30
    assert comparison.tests[0].ties == sum(equal)


@pytest.mark.parametrize(
    ("p", "text"), [(0.0, "< 0.001"), (0.00099, "< 0.001"), (0.001, "0.0010"), (0.51234, "0.5123")]
)
def test_a_p_value_is_never_zero(p, text):
    assert p_text(p) == text


def test_small_p_values_are_shown_as_such():
    systems = {"A": [str(n + 5) for n in range(40)], "B": [str(n) for n in range(40)]}
    comparison = compare(NumberScorer(), ["r"] * 40, systems, resamples=2000)
    assert comparison.tests[0].p_value == pytest.approx(1 / 2001)
    text = comparison_text(comparison)
    assert (
        ", one-sided p < 0.001, two-sided p < 0.001; " in text and "0.0000)" not in text and "p = 0.0000" not in text
    )
    assert "< 0.001" in comparison._repr_html_().replace("&lt;", "<")
