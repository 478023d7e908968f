"""What callers pass: columns of the libraries that people use are read; tables, sets and mappings are refused."""

from __future__ import annotations

import evaluate
import numpy as np
import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.inputs import check_list, check_texts
from tests.conftest import SPACE

ROWS = {"reference": ["a cat", "it rains"], "candidate": ["the cat", "a dog"]}

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")


def dataset(form=None):
    import datasets

    return datasets.Dataset.from_dict(ROWS).with_format(form)


COLUMNS = {
    "list": lambda name: ROWS[name],
    "tuple": lambda name: tuple(ROWS[name]),
    "generator": lambda name: (text for text in ROWS[name]),
    "numpy": lambda name: np.array(ROWS[name]),
    "pandas": lambda name: pandas.DataFrame(ROWS)[name],
    "pandas objects": lambda name: pandas.Series(ROWS[name], dtype=object),
    "pyarrow": lambda name: pyarrow.array(ROWS[name]),
    "pyarrow table": lambda name: pyarrow.table(ROWS)[name],
    "datasets": lambda name: dataset()[name],
    "datasets rows": lambda name: dataset()[:][name],
    "datasets arrow": lambda name: dataset("arrow")[name],
    "datasets arrow rows": lambda name: dataset("arrow")[:][name],
    "datasets pandas": lambda name: dataset("pandas")[:][name],
    "datasets numpy": lambda name: dataset("numpy")[:][name],
}


@pytest.fixture(scope="module")
def expected(tiny_scorer):
    return BleurtScorer(str(tiny_scorer)).score(references=ROWS["reference"], candidates=ROWS["candidate"])


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_are_accepted(tiny_scorer, expected, kind):
    column = COLUMNS[kind]
    scorer = BleurtScorer(str(tiny_scorer))
    assert scorer.score(references=column("reference"), candidates=column("candidate")) == pytest.approx(expected)
    metric = evaluate.load(str(SPACE), str(tiny_scorer))
    found = metric.compute(predictions=column("candidate"), references=column("reference"))
    assert found["scores"] == pytest.approx(expected)


def test_lists_of_references_in_arrow(tiny_scorer):
    lists = [["a cat", "the mat"], ["it rains"]]
    scorer = BleurtScorer(str(tiny_scorer))
    expected = scorer.score(references=lists, candidates=["a", "b"])
    for column in (pyarrow.array(lists), pandas.Series(lists), pandas.Series([np.array(texts) for texts in lists])):
        assert scorer.score(references=column, candidates=["a", "b"]) == pytest.approx(expected)


REFUSED = {
    "a DataFrame": (
        lambda: pandas.DataFrame(ROWS),
        r'found DataFrame: pass one column, such as {name}=data\["\.\.\."\]',
    ),
    "a pyarrow table": (lambda: pyarrow.table(ROWS), "found Table: pass one column"),
    "a data set": (dataset, "found Dataset: pass one column"),
    "a set": (lambda: {"a", "b"}, "found set, which has no order: pass a list"),
    "a frozen set": (lambda: frozenset("ab"), "found frozenset, which has no order"),
    "a dict": (lambda: dict(ROWS), "found dict: pass one column"),
    "a number": (lambda: 3, "found int"),
    "missing values": (lambda: pandas.Series(["a", None]), r"{name}\[1\] must be a string"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_column_is_refused(tiny_scorer, kind):
    make, message = REFUSED[kind]
    scorer, metric = BleurtScorer(str(tiny_scorer)), evaluate.load(str(SPACE), str(tiny_scorer))
    for name, call in (
        ("candidates", lambda given: scorer.score(references=["a", "b"], candidates=given)),
        ("references", lambda given: scorer.score(references=given, candidates=["a", "b"])),
        ("predictions", lambda given: metric.compute(predictions=given, references=["a", "b"])),
        ("predictions", lambda given: metric.add_batch(predictions=given, references=["a", "b"])),
    ):
        with pytest.raises(TypeError, match=message.format(name=name)):
            call(make())


def test_what_was_checked_is_not_checked_again():
    texts = check_texts("candidates", ["a", "b"])
    assert check_texts("candidates", texts) is texts
    assert check_list("candidates", iter("ab")) == ["a", "b"]


def test_rows(tiny_scorer, tiny_source_scorer, expected):
    rows = [{"reference": r, "candidate": c, "more": 1} for r, c in zip(*ROWS.values(), strict=True)]
    scorer = BleurtScorer(str(tiny_scorer))
    assert scorer.score_rows(rows) == pytest.approx(expected)
    several = [{"references": [rows[0]["reference"], "a mat"], "candidate": "the cat"}]
    assert scorer.score_rows(several) == scorer.score(references=[["a cat", "a mat"]], candidates=["the cat"])
    with pytest.raises(ValueError, match="row 1 has no 'source', which checkpoint tiny-source reads; found reference"):
        BleurtScorer(str(tiny_source_scorer)).score_rows([{**rows[0], "source": "Hi"}, rows[1]])
