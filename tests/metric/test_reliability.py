"""How far scores can be trusted: P(raters prefer a system), intervals, P(no error); by scorer, command line, module, page."""

from __future__ import annotations

import csv
import json
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.metric.calibration import (
    FEWEST_SEGMENTS,
    RELIABILITY_FILE,
    ErrorFree,
    Preference,
    RatingIntervals,
    Reliability,
)
from bleurt_repro.metric.compare.compare import compare
from bleurt_repro.metric.loading.checksums import content_hash
from tests.conftest import SPACE, make_tiny_scorer

# Residuals of both bands are even between -2 and 2 deviations, but for a long lower tail in the first.
# Candidates of 3 words and fewer vary twice as much as those of 8 words and more.
INTERVALS = RatingIntervals(
    scores=(-1.0, 1.0),
    means=(-0.5, 0.5),
    deviations=(1.0, 0.5),
    noise=0.75,
    quantiles=((-6.0, -1.0, 0.0, 1.0, 2.0), (-2.0, -1.0, 0.0, 1.0, 2.0)),
    words=(3.0, 8.0),
    factors=(2.0, 1.0),
    groups={"de-en": (0.5, 2.0)},
)
FREE = ErrorFree((-1.0, 0.0, 1.0), (0.1, 0.2, 0.8), 0.6, 0.1)
PREFERENCE = Preference(2.0, 0.05)
numbers = st.floats(-3, 3)


@pytest.mark.parametrize(
    ("difference", "error", "expected"),
    [(0.0, 0.1, 0.5), (0.05, 0.0, 1 / (1 + math.exp(-2))), (0.05, 0.12, 1 / (1 + math.exp(-2 * 0.05 / 0.13)))],
)
def test_preference_by_hand(difference, error, expected):
    assert PREFERENCE(difference, error) == pytest.approx(expected)
    assert PREFERENCE(-difference, error) == pytest.approx(1 - expected)


@pytest.mark.parametrize(("slope", "error"), [(0, 1), (1, 0), (-1, 1), (1, -1), (math.inf, 1), (1, math.inf)])
def test_what_is_no_preference(slope, error):
    with pytest.raises(ValueError, match="must be positive, found"):
        Preference(slope, error)


@given(numbers, numbers, st.floats(0, 2), st.floats(0, 2))
def test_preference_rises_with_the_difference_and_with_its_certainty(a, b, one, other):
    low, high = sorted((a, b))
    assert PREFERENCE(low, one) <= PREFERENCE(high, one)
    less, more = sorted((one, other))
    assert PREFERENCE(abs(a), less) >= PREFERENCE(abs(a), more) >= 0.5


def test_preference_of_scores_is_that_of_their_paired_differences():
    generator = random.Random(0)
    first = [generator.gauss(0, 1) for _ in range(30)]
    second = [score - generator.gauss(0.1, 0.3) for score in first]
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    mean = sum(gaps) / 30
    error = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / 29 / 30)
    expected = 1 / (1 + math.exp(-2 * mean / math.sqrt(error**2 + 0.05**2)))
    assert PREFERENCE.of_scores(first, second) == pytest.approx(expected)
    assert PREFERENCE.of_scores(first[: FEWEST_SEGMENTS - 1], second[: FEWEST_SEGMENTS - 1]) is None


@pytest.mark.parametrize(
    ("score", "coverage", "judgements", "expected"),
    [
        (-1.0, 0.75, 1, (-1.5, 1.5)),  # the upper three quarters of the first band: -1 to 2 deviations
        (-9.0, 0.75, 1, (-1.5, 1.5)),
        (1.0, 0.5, 1, (-0.5, 0.5)),
        (0.0, 0.75, 1, (-1.25, 1.25)),  # half way between -1.5 to 1.5 and -1 to 1
        (-1.0, 0.75, 4, (-0.5 - math.sqrt(0.4375), -0.5 + 2 * math.sqrt(0.4375))),  # 1 - 0.75 + 0.75 / 4
    ],
)
def test_intervals_by_hand(score, coverage, judgements, expected):
    [(low, high)] = INTERVALS([score], coverage, judgements)
    if score == 1.0 or score == 0.0:  # several are equally short
        assert high - low == pytest.approx(expected[1] - expected[0], abs=0.3)
    else:
        assert (low, high) == pytest.approx(expected)


def test_intervals_of_short_candidates_and_of_groups_by_hand():
    assert INTERVALS([-1.0], 0.75, words=[1]) == [pytest.approx((-2.5, 3.5))]
    assert INTERVALS([-1.0], 0.75, words=[5]) == [pytest.approx((-0.5 - 1.5, -0.5 + 3.0))]  # log(6) is half way
    assert INTERVALS([-1.0], 0.75, group="de-en") == [pytest.approx((-0.5 + 0.5 - 2, -0.5 + 0.5 + 4))]
    with pytest.raises(ValueError, match=r"fitted on \(de-en\), or be left out, found 'fi-en'"):
        INTERVALS([-1.0], 0.75, group="fi-en")


@given(st.lists(numbers, min_size=1, max_size=5), st.floats(0.5, 0.99), st.floats(0.5, 0.99), st.integers(1, 30))
def test_intervals_widen_with_coverage_and_shrink_with_judgements(scores, one, other, judgements):
    less, more = sorted((one, other))
    for small, large in zip(INTERVALS(scores, less), INTERVALS(scores, more), strict=True):
        assert small[1] - small[0] <= large[1] - large[0] + 1e-9
    for single, many in zip(INTERVALS(scores, one), INTERVALS(scores, one, judgements), strict=True):
        assert many[1] - many[0] <= single[1] - single[0] + 1e-9


@pytest.mark.parametrize(
    ("coverage", "judgements", "message"),
    [(0.2, 1, "0.5 to 0.99, found 0.2"), (0.9, 0, "judgements must be 1 or more")],
)
def test_intervals_that_cannot_be_given(coverage, judgements, message):
    with pytest.raises(ValueError, match=message):
        INTERVALS([0.0], coverage, judgements)


def test_without_numbers_of_judgements_there_is_no_noise_to_take_out():
    plain = RatingIntervals((0.0,), (0.0,), (1.0,), None, ((-1.0, 0.0, 1.0),))
    assert plain([0.0], 0.5) == [(-1.0, 0.0)]
    with pytest.raises(ValueError, match="do not say of how many judgements"):
        plain([0.0], 0.9, 15)


def test_the_noise_of_single_judgements_is_taken_out_where_it_is_known():
    plain = replace(INTERVALS, noise=None)
    assert plain.prediction([-1.0], judgements=4)[1] == pytest.approx([1.0])
    assert INTERVALS.prediction([-1.0], judgements=4)[1] == pytest.approx([math.sqrt(0.4375)])


def test_without_lengths_in_the_fit_they_do_not_matter():
    plain = RatingIntervals((0.0,), (0.0,), (1.0,), None, ((-1.0, 0.0, 1.0),))
    assert plain([0.0], 0.5, words=[30]) == plain([0.0], 0.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"means": (0.0,)}, "as many as scores"),
        ({"quantiles": ((0.0, 1.0, 2.0), (0.0, 1.0))}, "as many in each band"),
        ({"quantiles": ((0.0, 1.0), (0.0, 1.0))}, "quantiles must be three or more"),
        ({"quantiles": ((0.0, 2.0, 1.0), (0.0, 1.0, 2.0))}, "quantiles must not fall"),
        ({"words": (3.0,)}, "factors be as many as words"),
        ({"words": (8.0, 3.0)}, "scores and words must rise"),
        ({"scores": (1.0, 1.0)}, "scores and words must rise"),
        ({"deviations": (1.0, -0.5)}, "must not be negative"),
        ({"factors": (-1.0, 1.0)}, "must not be negative"),
        ({"words": (-1.0, 8.0)}, "must not be negative"),
        ({"groups": {"de-en": (0.5,)}}, "a shift and a factor"),
        ({"groups": {"de-en": (0.5, -1.0)}}, "a shift and a factor"),
        ({"noise": 1.5}, "noise must be from 0 to 1, found 1.5"),
        ({"noise": -0.5}, "noise must be from 0 to 1, found -0.5"),
    ],
)
def test_what_is_no_fit_of_intervals(settings, message):
    with pytest.raises(ValueError, match=message):
        replace(INTERVALS, **settings)


def test_the_ends_of_what_a_fit_may_be():
    for settings in (
        {"noise": 0.0},
        {"noise": 1.0},
        {"deviations": (0.0, 0.0)},
        {"factors": (0.0, 0.0)},
        {"words": (0.0, 8.0)},
        {"groups": {"de-en": (0.0, 0.0)}},
    ):
        replace(INTERVALS, **settings)
    assert replace(FREE, missed=0.0).missed == 0
    with pytest.raises(ValueError, match="missed from 0 to 1"):
        replace(FREE, missed=1.0)


def test_error_free_is_interpolated_and_never_falls():
    assert FREE([-5.0, -0.5, 0.5, 5.0]) == pytest.approx([0.1, 0.15, 0.5, 0.8])
    assert FREE([]) == []
    with pytest.raises(ValueError, match="never fall"):
        ErrorFree((0.0, 1.0), (0.5, 0.4), 0.6, 0.1)


@pytest.fixture
def folder(tmp_path):
    made = make_tiny_scorer(tmp_path / "scorer")
    Reliability(content_hash(made), PREFERENCE, INTERVALS, FREE, {"file": "r.jsonl", "ratings": 9}).write(made)
    return made


TEXTS = {"references": ["the cat sat", "it rains"], "candidates": ["the dog sat", "it rains"]}


def test_it_is_kept_beside_the_weights_and_changes_neither_score_nor_signature(folder):
    scorer = BleurtScorer(str(folder))
    assert scorer.reliability == Reliability.from_folder(folder, content_hash(folder))
    result = scorer.compute(**TEXTS, interval=0.9, error_free=True)
    (folder / RELIABILITY_FILE).unlink()
    plain = BleurtScorer(str(folder))
    assert (plain.reliability, plain.signature) == (None, scorer.signature)
    assert result.scores == plain.score(**TEXTS)
    assert result.intervals == INTERVALS(result.scores, 0.9, words=[3, 2]) and result.error_free == FREE(result.scores)
    assert plain.compute(**TEXTS).intervals is None and plain.compute(**TEXTS).error_free is None


def test_other_weights_have_no_use_for_it(folder):
    config = json.loads((folder / "config.json").read_text())
    config["bleurt"]["max_length"] = 40
    (folder / "config.json").write_text(json.dumps(config))
    assert BleurtScorer(str(folder)).reliability is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": 0.9}, "has no intervals fitted"),
        ({"error_free": True}, "has no P\\(no error\\) fitted"),
        ({"judgements": 3}, "give interval, too"),
    ],
)
def test_what_was_not_fitted_is_refused(folder, options, message):
    (folder / RELIABILITY_FILE).unlink()
    with pytest.raises(ValueError, match=message):
        BleurtScorer(str(folder)).compute(**TEXTS, **options)


def test_percentiles_have_no_intervals(folder):
    with pytest.raises(ValueError, match="leave calibrated out"):
        BleurtScorer(str(folder)).compute(**TEXTS, interval=0.9, calibrated=True)


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"hash": 3', "null"])
def test_a_damaged_file_is_named(folder, content):
    (folder / RELIABILITY_FILE).write_text(content)
    with pytest.raises(ValueError, match=r"reliability\.json cannot be read .* `bleurt-repro calibrate`"):
        _ = BleurtScorer(str(folder)).reliability
    assert BleurtScorer(str(folder)).score(**TEXTS)  # which do not depend on it


def test_a_part_that_is_damaged_is_named(folder):
    found = json.loads((folder / RELIABILITY_FILE).read_text())
    found["intervals"]["quantiles"][0][0] = 100
    (folder / RELIABILITY_FILE).write_text(json.dumps(found))
    with pytest.raises(ValueError, match="quantiles must not fall"):
        BleurtScorer(str(folder)).compute(**TEXTS, interval=0.9)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, folder):
    monkeypatch.chdir(tmp_path)
    for name, lines in (("r.txt", TEXTS["references"]), ("c.txt", TEXTS["candidates"])):
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    def call(*words):
        with pytest.raises(SystemExit) as stop:
            main([*words, "--checkpoint", str(folder)])
        captured = capsys.readouterr()
        return stop.value.code or 0, captured.out, captured.err

    return call


SCORE = ("score", "-r", "r.txt", "-c", "c.txt")


def test_columns_and_fields_of_the_command_line(run, folder, tmp_path):
    expected = BleurtScorer(str(folder)).compute(**TEXTS, interval=0.8, judgements=15, error_free=True)
    words = (*SCORE, "--interval", "0.8", "--judgements", "15", "--error-free")
    rows = [[float(cell) for cell in line.split("\t")] for line in run(*words)[1].splitlines()]
    both = zip(expected.scores, expected.intervals, expected.error_free, strict=True)
    assert rows == [pytest.approx([score, *ends, p], abs=1e-6) for score, ends, p in both]
    found = json.loads(run(*words, "--json")[1])
    assert found["scores"] == pytest.approx(expected.scores, abs=1e-6)
    assert found["intervals"] == [pytest.approx(list(ends), abs=1e-6) for ends in expected.intervals]
    assert found["error_free"] == pytest.approx(expected.error_free, abs=1e-6)
    assert run(*words, "--output", "out.txt")[0] == 0
    assert run(*words, "--output", "out.txt")[0] == 0  # it knows its own output again
    assert len((tmp_path / "out.txt").read_text().splitlines()[0].split("\t")) == 4


def test_the_command_line_refuses_in_one_line(run, folder):
    assert "leave --interval and --error-free out" in run(*SCORE, "--interval", "0.9", "--system", "a")[2]
    (folder / RELIABILITY_FILE).unlink()
    code, _, err = run(*SCORE, "--error-free")
    assert code == 2 and "bleurt-repro calibrate --reliability" in err and err.count("\n") == 1


def test_through_the_module(folder):
    import evaluate

    module = evaluate.load(str(SPACE), str(folder))
    found = module.compute(
        predictions=TEXTS["candidates"],
        references=TEXTS["references"],
        interval=0.9,
        judgements=3,
        group="de-en",
        error_free=True,
    )
    assert found["intervals"] == [pytest.approx(ends) for ends in INTERVALS(found["scores"], 0.9, 3, [3, 2], "de-en")]
    assert found["error_free"] == pytest.approx(FREE(found["scores"]))


WORDS = "the cat sat on mat it rains dog".split()


@pytest.fixture
def systems():
    generator = random.Random(1)
    made = [[" ".join(generator.sample(WORDS, 4)) for _ in range(25)] for _ in range(3)]
    return made[0], {"one": made[1], "two": made[2]}


def test_a_comparison_says_whether_people_would_prefer_a_system(folder, systems):
    references, texts = systems
    scorer = BleurtScorer(str(folder))
    comparison = compare(scorer, references, texts, resamples=20)
    scores = [scorer.score(references=references, candidates=own) for own in texts.values()]
    assert comparison.tests[0].preferred == pytest.approx(PREFERENCE.of_scores(*scores))
    assert "9 ratings" in comparison.preferred
    few = compare(scorer, references[:5], {name: own[:5] for name, own in texts.items()}, resamples=20)
    assert few.tests[0].preferred is None
    assert "P(people prefer it)" in comparison.to_markdown() and "P(people prefer it)" in comparison.to_latex()


def test_the_command_compare_shows_it_in_table_json_and_csv(run, systems, tmp_path):
    references, texts = systems
    for name, lines in (("refs.txt", references), *((f"{name}.txt", own) for name, own in texts.items())):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    words = ("compare", "-r", "refs.txt", "-c", "one.txt", "two.txt", "--resamples", "20", "--show", "0")
    code, out, err = run(*words, "--output", "out.json", "out.csv")
    assert (code, err) == (0, "")
    p = json.loads((tmp_path / "out.json").read_text())["tests"][0]["preferred"]
    assert f"P(people prefer one) = {p:.2f}" in out
    rows = list(csv.DictReader((tmp_path / "out.csv").open(newline="")))
    assert {float(row["P(people prefer one)"]) for row in rows} == {p}


def test_the_demo_shows_it(folder, systems):
    pytest.importorskip("gradio")
    from bleurt_repro.metric.demo.compare_tab import compare_two, verdict, verdict_html
    from bleurt_repro.metric.demo.pair_tab import pair_html, score_pair
    from bleurt_repro.metric.demo.shared_scorer import SharedScorer

    shared = SharedScorer(str(folder), device="cpu")
    references, texts = systems
    comparison = compare_two(shared, references, tuple(texts.values()))
    [test] = comparison.tests
    p = test.preferred if test.difference > 0 else 1 - test.preferred
    assert f"probability of <b>{100 * p:.0f} %</b>" in verdict(comparison)
    assert "9 ratings" in verdict_html(comparison)
    pair = score_pair(shared, "the cat sat", "the dog sat")
    assert pair.interval == INTERVALS([pair.score], words=[3])[0] and pair.error_free == FREE([pair.score])[0]
    page = pair_html(pair, shared)
    assert "9 of 10 ratings by one person" in page and f"{100 * pair.error_free:.0f} %" in page
