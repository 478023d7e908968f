"""Pairs from a table of paraphrases: each text right as often as wrong, faults named by line, a table of one's own."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from bleurt_repro.cli import main
from bleurt_repro.datasets_builders.contrasts import CHANGED, SAME
from bleurt_repro.datasets_builders.contrasts.paraphrases import COLUMNS, TABLE, make_paraphrase_pairs
from bleurt_repro.metric.files.records import read_table
from bleurt_repro.training.experiments.minimal_pairs import TABLES, read_minimal_pairs

ROW = ("He kept it.", "It is still his.", "He sold it.", "It is his no longer.")


def table(path, *rows, columns=COLUMNS):
    path.write_text("\n".join("\t".join(row) for row in (columns, *rows)) + "\n", encoding="utf-8")
    return path


def test_a_row_makes_eight_pairs_in_which_each_text_is_right_and_wrong_twice(tmp_path):
    first, second, first_turned, second_turned = ROW
    paraphrases, turned = set(), set()
    for row in make_paraphrase_pairs(table(tmp_path / "table.tsv", ROW)):
        pairs = {"contrast: paraphrase kept": paraphrases, "contrast: paraphrase turned": turned}[row["system"]]
        assert row["score"] == (SAME if pairs is paraphrases else round(SAME - CHANGED, 4))
        pairs.add((row["reference"], row["candidate"]))
    same = {(first, second), (first_turned, second_turned)}
    turned_pairs = {(first, second_turned), (first_turned, second)}
    assert paraphrases == same | {pair[::-1] for pair in same}
    assert turned == turned_pairs | {pair[::-1] for pair in turned_pairs}


def test_the_table_of_the_library_has_no_text_twice_and_none_of_the_sanity_suite():
    texts = Counter(row[name] for row in read_table(TABLE, COLUMNS) for name in COLUMNS)
    assert texts.most_common(1)[0][1] == 1
    tested = {text for path in TABLES.values() for pair in read_minimal_pairs(path) for text in pair[1:]}
    assert not tested & set(texts)
    assert len(make_paraphrase_pairs()) == 2 * len(texts)


def test_the_command_writes_them(tmp_path, capsys):
    output = tmp_path / "pairs.jsonl"
    input_path = table(tmp_path / "table.tsv", ROW, tuple(f"Then {text}" for text in ROW))
    with pytest.raises(SystemExit) as end:
        main(["data", "paraphrases", "--input", str(input_path), "--output", str(output)])
    assert not end.value.code
    written = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert written == make_paraphrase_pairs(input_path)
    assert "contrast: paraphrase kept: 8 records" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        ([ROW, (*ROW[:3], " ")], COLUMNS, "line 3: second_turned missing or blank"),
        ([ROW], ("first", "second", "a", "b"), "line 2: first_turned, second_turned missing or blank"),
        ([(*ROW[:3], ROW[0])], COLUMNS, "line 2: expected four different texts"),
        ([], COLUMNS, "has no rows: expected at least one"),
    ],
)
def test_faults_are_named(tmp_path, rows, columns, message):
    with pytest.raises(ValueError, match=message):
        make_paraphrase_pairs(table(tmp_path / "table.tsv", *rows, columns=columns))


def test_no_table(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.tsv"):
        make_paraphrase_pairs(tmp_path / "none.tsv")
