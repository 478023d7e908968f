"""What holds of the public functions whatever they are given: their laws, and nothing but clear errors.

`make test` tries a few cases of each, always the same; `make test-long` tries thousands, new ones each time.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bleurt_repro import BleurtScorer
from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
from bleurt_repro.datasets_builders.signals.bleu import Bleu
from bleurt_repro.datasets_builders.signals.rouge import Rouge
from bleurt_repro.datasets_builders.synthetic.config import read_config
from bleurt_repro.metric.calibration import Calibration
from bleurt_repro.metric.compare.compare import compare
from bleurt_repro.metric.files.tables import FORMULA_STARTS, csv_text
from bleurt_repro.metric.files.texts import PairStream, read_segments
from bleurt_repro.metric.forward.encoding import PairEncoder
from bleurt_repro.metric.layout import ROLES, Layout
from bleurt_repro.metric.scorer import ScoringResult
from bleurt_repro.metric.statistics import paired_test, resampled_indices, resampled_means
from bleurt_repro.training.arguments import read_yaml
from bleurt_repro.training.metrics.rows import Texts, read_scores
from bleurt_repro.training.metrics.statistics import darr, kendall_tau, pearson_r, spearman_rho

FEW, MANY = 12, 500
# Any character, halves of surrogate pairs and control characters too, and what breaks formats more often than chance.
AWKWARD = st.sampled_from(
    ["[SEP]", '"', "\t", ",", "\r", "\u2028", "\x85", "\x00", "=1", "<b>", "{{1}}", "\ufeff", "a b c"]
)
TEXT = st.one_of(st.text(max_size=30), st.lists(AWKWARD | st.text(max_size=5), max_size=5).map("".join))
WRITABLE = TEXT.filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
LINE = WRITABLE.map(lambda text: text.replace("\n", " ").replace("\r", " ").lstrip("\ufeff"))
# What a table's cell can hold: the csv module of Python 3.10 writes no NUL.
CELL = WRITABLE.filter(lambda text: "\0" not in text or sys.version_info >= (3, 11))
FULL = CELL.filter(str.strip)
NUMBER = st.floats(-1e6, 1e6) | st.integers(-1000, 1000).map(float)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@pytest.fixture(scope="module")
def tools(tiny_scorer, tmp_path_factory):
    scorer = BleurtScorer(str(tiny_scorer), device="cpu", progress=False)
    return SimpleNamespace(scorer=scorer, folder=tmp_path_factory.mktemp("files"))


# The scorer


def junk_is_scored_or_refused(tools, case):
    references, candidates = case
    try:
        scores = tools.scorer.score(references=references, candidates=candidates)
    except (TypeError, ValueError) as error:
        assert "references" in str(error) or "candidates" in str(error)
    else:
        assert len(scores) == len(candidates) and all(map(math.isfinite, scores))


def any_text_has_one_score_wherever_it_stands(tools, pairs):
    references, candidates = (list(texts) for texts in zip(*pairs, strict=True))
    scores = tools.scorer.score(references=references, candidates=candidates)
    backwards = tools.scorer.score(references=references[::-1], candidates=candidates[::-1])
    alone = tools.scorer.score(references=references[:1], candidates=candidates[:1])
    assert scores == pytest.approx(backwards[::-1], abs=1e-5)
    assert scores[0] == pytest.approx(alone[0], abs=1e-5)


def an_encoding_fits_the_model(tools, case):
    texts, length, separators = case
    layout = Layout(ROLES[-len(texts) :], length, separators)
    encoder = PairEncoder(tools.scorer.tokenizer, layout)
    tokens = encoder.tokenize(texts)
    encoded = encoder.encode([tokens[text] for text in texts])
    assert len(encoded.ids) == len(encoded.segments) <= length
    whole = sum(len(tokens[text]) for text in texts) + layout.special_tokens
    assert encoded.truncated == (whole > length) and (encoded.truncated or len(encoded.ids) == whole)
    assert all(0 <= token < len(tools.scorer.tokenizer) for token in encoded.ids)


# Readers


def read_pairs(path: str) -> dict[str, list]:
    with PairStream(pairs=path) as stream:
        records = stream.survey().records
        return next(stream.windows(0, records, max(records, 1)), {"references": [], "candidates": []})


def pairs_are_read_as_written(tools, pairs):
    path = tools.folder / "pairs.jsonl"
    path.write_text("".join(json.dumps({"references": r, "candidate": c}) + "\n" for r, c in pairs))
    read = read_pairs(str(path))
    assert list(zip(read["references"], read["candidates"], strict=True)) == [(r, c) for r, c in pairs]


def junk_for_pairs_is_refused_by_line(tools, records):
    path = tools.folder / "junk.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    try:
        assert len(read_pairs(str(path))["candidates"]) == len(records)
    except ValueError as error:
        assert str(error).startswith(str(path))


def lines_and_columns_are_read_as_written(tools, texts):
    (tools.folder / "texts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8", newline="")
    assert read_segments(str(tools.folder / "texts.txt"), "candidates") == texts
    with (tools.folder / "texts.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["n", "candidate"], *([i, text] for i, text in enumerate(texts))])
    assert read_segments(str(tools.folder / "texts.csv"), "candidates") == texts


def ratings_are_read_as_written(tools, ratings):
    expected = [{"reference": r, "candidate": c, "score": s} for r, c, s in ratings]
    (tools.folder / "r.jsonl").write_text("".join(json.dumps(rating) + "\n" for rating in expected))
    with (tools.folder / "r.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["reference", "candidate", "score"], *ratings])
    for name in ("r.jsonl", "r.csv"):
        read = rating_records(tools.folder / name)
        assert [{key: rating[key] for key in expected[0]} for rating in read] == expected


def junk_for_ratings_is_refused_by_line(tools, records):
    path = tools.folder / "junk-ratings.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    try:
        assert len(rating_records(path)) == len(records)
    except ValueError as error:
        assert str(error).startswith(str(path))


def junk_for_scores_is_refused_by_file(tools, case):
    suffix, content = case
    path = tools.folder / f"scores{suffix}"
    path.write_bytes(content)
    texts = Texts(references=["a", "b"], candidates=["a", "b"], keys=None)
    try:
        assert read_scores(path, texts).shape == (2,)
    except ValueError as error:
        assert path.name in str(error)


def junk_for_settings_is_refused_by_file(tools, content):
    path = tools.folder / "settings.yaml"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    for read in (lambda: read_yaml(path, ("seed",)), lambda: read_config(path).to_dict()):
        try:
            assert set(read()) <= {"seed", *read_config(path).to_dict()}
        except ValueError as error:
            assert str(path) in str(error)


# Figures


def correlations_keep_their_laws(tools, case):
    pairs, factor, shift = case
    scores, ratings = (list(values) for values in zip(*pairs, strict=True))
    assume(np.ptp(scores) > 1e-3 and np.ptp(ratings) > 1e-3)
    for measure in (kendall_tau, spearman_rho, pearson_r):
        value = measure(scores, ratings)
        assert -1 - 1e-9 <= value <= 1 + 1e-9
        assert measure(ratings, scores) == pytest.approx(value, abs=1e-6)
        assert measure([-score for score in scores], ratings) == pytest.approx(-value, abs=1e-6)
        assert measure(scores, scores) == pytest.approx(1, abs=1e-6)
        order = np.argsort(ratings, kind="stable")
        assert measure(np.array(scores)[order], np.array(ratings)[order]) == pytest.approx(value, abs=1e-6)
    assert pearson_r([factor * score + shift for score in scores], ratings) == pytest.approx(
        pearson_r(scores, ratings), abs=1e-4
    )


def any_numbers_have_a_correlation_or_are_refused(tools, pairs):
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for measure in (kendall_tau, spearman_rho, pearson_r, darr):
            try:
                assert -1 - 1e-9 <= measure(first, second) <= 1 + 1e-9
            except ValueError:
                pass


def relative_ranks_keep_their_laws(tools, pairs):
    better, worse = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
    ties = sum(a == b for a, b in pairs) / len(pairs)
    assert darr(better, worse) + darr(worse, better) == pytest.approx(-2 * ties, abs=1e-9)
    resampled = [darr(better[places], worse[places]) for places in resampled_indices(len(pairs), 20, 0)]
    assert all(-1 <= value <= 1 for value in (*resampled, darr(better, worse)))


def overlap_signals_keep_their_bounds(tools, pairs):
    references, candidates = (list(texts) for texts in zip(*pairs, strict=True))
    bleu, rouge = Bleu()(references, candidates), Rouge()(references, candidates)
    assert bleu.shape == (len(pairs), 1) and rouge.shape == (len(pairs), 3)
    assert (bleu >= 0).all() and (bleu <= 100 + 1e-9).all() and (rouge >= 0).all() and (rouge <= 1 + 1e-9).all()
    assert set(np.round(Bleu()(references, references)[:, 0], 6)) <= {0.0, 100.0}
    backwards = Rouge()(candidates, references)
    assert rouge[:, [1, 0, 2]] == pytest.approx(backwards, abs=1e-9)


class LengthScorer:
    """A scorer whose scores are lengths."""

    def compute_systems(
        self, *, references: object, systems: Mapping[str, Sequence[str]], sources: object = None
    ) -> dict[str, ScoringResult]:
        return {
            name: ScoringResult([float(len(text)) for text in candidates], None, "lengths", 0)
            for name, candidates in systems.items()
        }


def a_comparison_turned_round_says_the_opposite(tools, rows):
    references, first, second = (list(texts) for texts in zip(*rows, strict=True))
    there = compare(LengthScorer(), references, {"A": first, "B": second}, resamples=50)
    back = compare(LengthScorer(), references, {"B": second, "A": first}, resamples=50)
    [test], [turned] = there.tests, back.tests
    assert test.difference == pytest.approx(-turned.difference, abs=1e-9)
    assert (test.wins, test.losses, test.ties) == (turned.losses, turned.wins, turned.ties)
    assert test.wins + test.losses + test.ties == len(rows) == len(there.segments)
    assert test.p_value == turned.p_value and (test.p_value is None or 0 < test.p_value <= 1)
    assert test.p_two_sided == turned.p_two_sided and (test.p_two_sided is None or 0 < test.p_two_sided <= 1)
    assert [s.spread for s in there.segments] == sorted((s.spread for s in there.segments), reverse=True)
    json.dumps(there.to_dict())


def a_paired_test_holds_what_it_observes(tools, pairs):
    scores = np.array(pairs, dtype=np.float64).T
    test = paired_test(("A", "B"), (list(scores[0]), list(scores[1])), resampled_means(scores, 50))
    gaps = scores[0] - scores[1]
    assert test.difference == pytest.approx(float(gaps.mean()), abs=1e-6)
    if test.low is not None and test.high is not None:
        assert gaps.min() - 1e-6 <= test.low <= test.high <= gaps.max() + 1e-6


def a_calibration_never_falls(tools, case):
    points, scores = case
    knots = sorted({round(score, 6) for score, _ in points})
    assume(len(knots) >= 2)
    percentiles = sorted(percentile for _, percentile in points)[: len(knots)]
    calibration = Calibration(tuple(knots), tuple(percentiles), {"ratings": 1})
    mapped = calibration(sorted(scores))
    assert mapped == sorted(mapped) and all(percentiles[0] <= value <= percentiles[-1] for value in mapped)
    again = Calibration.from_config(SimpleNamespace(bleurt={"calibration": calibration.to_config()}))
    assert again == calibration


def junk_for_a_calibration_is_refused(tools, entry):
    try:
        Calibration.from_config(SimpleNamespace(bleurt={"calibration": entry}))
        Layout.from_config(SimpleNamespace(bleurt=entry))
    except ValueError as error:
        assert (
            "calibration" in str(error) or "layout" in str(error) or "length" in str(error) or "bleurt" in str(error)
        )


def no_cell_is_a_formula(tools, rows):
    text = csv_text(["a", "b"], rows)
    read = list(csv.reader(io.StringIO(text, newline="")))[1:]
    for row, cells in zip(rows, read, strict=True):
        for value, cell in zip(row, cells, strict=True):
            if isinstance(value, str):
                assert not cell.startswith(FORMULA_STARTS) and cell.removeprefix("'") == value.removeprefix("'")


REFERENCES = st.lists(WRITABLE, min_size=1, max_size=3)
ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True)
RECORD = st.fixed_dictionaries(
    {}, optional={name: JUNK for name in ("reference", "references", "candidate", "source")}
)
RATING = st.fixed_dictionaries({"reference": JUNK | TEXT, "candidate": TEXT, "score": JUNK | NUMBER}, optional={name: JUNK for name in ("year", "lp", "segment_id", "system", "raw_score")})  # fmt: skip
SETTING = st.dictionaries(st.sampled_from(["seed", "signals", "pivots", "dtype", "min_words", "mask_strategies"]) | TEXT, JUNK, max_size=3)  # fmt: skip
PROPERTIES = {
    junk_is_scored_or_refused: st.tuples(JUNK, st.lists(JUNK | TEXT, max_size=3) | JUNK),
    any_text_has_one_score_wherever_it_stands: st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6),
    an_encoding_fits_the_model: st.tuples(st.lists(TEXT, min_size=1, max_size=3), st.integers(9, 64), st.integers(1, 2)),
    pairs_are_read_as_written: st.lists(st.tuples(st.lists(TEXT, min_size=1, max_size=3), TEXT), max_size=4),
    junk_for_pairs_is_refused_by_line: st.lists(RECORD | JUNK, max_size=3),
    lines_and_columns_are_read_as_written: st.lists(LINE, max_size=5),
    ratings_are_read_as_written: st.lists(st.tuples(FULL, CELL, NUMBER), min_size=1, max_size=4),
    junk_for_ratings_is_refused_by_line: st.lists(RATING, min_size=1, max_size=3),
    junk_for_scores_is_refused_by_file: st.tuples(st.sampled_from([".txt", ".jsonl", ".csv", ".scr", ".scr.gz"]), st.binary(max_size=60)),
    junk_for_settings_is_refused_by_file: SETTING | JUNK | st.binary(max_size=60),
    correlations_keep_their_laws: st.tuples(st.lists(st.tuples(NUMBER, NUMBER), min_size=3, max_size=12), st.floats(0.1, 10), st.floats(-10, 10)),
    any_numbers_have_a_correlation_or_are_refused: st.lists(st.tuples(ANY_NUMBER, ANY_NUMBER), max_size=8),
    relative_ranks_keep_their_laws: st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=12),
    overlap_signals_keep_their_bounds: st.lists(st.tuples(WRITABLE, WRITABLE), min_size=1, max_size=4),
    a_comparison_turned_round_says_the_opposite: st.lists(st.tuples(WRITABLE, WRITABLE, WRITABLE), min_size=1, max_size=4),
    a_paired_test_holds_what_it_observes: st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=10),
    a_calibration_never_falls: st.tuples(st.lists(st.tuples(NUMBER, st.floats(0, 100)), min_size=2, max_size=8), st.lists(NUMBER, max_size=8)),
    junk_for_a_calibration_is_refused: JUNK | st.fixed_dictionaries({"scores": JUNK, "percentiles": JUNK}) | st.fixed_dictionaries({"inputs": JUNK, "max_length": JUNK}),
    no_cell_is_a_formula: st.lists(st.tuples(CELL, NUMBER), max_size=4),
}  # fmt: skip


def hold(law, tools, **options) -> None:
    """Try a law on cases of its kind."""

    @settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), **options)
    @given(PROPERTIES[law])
    def holds(case):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            law(tools, case)

    holds()


@pytest.mark.parametrize("law", PROPERTIES, ids=lambda law: law.__name__)
def test_a_few_cases(tools, law):
    hold(law, tools, max_examples=FEW, derandomize=True)


@pytest.mark.long
@pytest.mark.parametrize("law", PROPERTIES, ids=lambda law: law.__name__)
def test_many_cases(tools, law):
    hold(law, tools, max_examples=MANY)
