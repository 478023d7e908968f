"""Files as people have them: in other encodings, with other separators, with values that mean two things."""

from __future__ import annotations

import datetime
import gzip
import json
import re
import struct

import pyarrow
import pyarrow.parquet
import pytest

from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
from bleurt_repro.metric.files.records import parse_number, read_lines, read_records
from bleurt_repro.metric.files.texts import PairStream, read_segments


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.jsonl"])
def test_utf16_is_named(tmp_path, encoding, name):
    (tmp_path / name).write_text("candidate,score\none two,3\n", encoding=encoding)
    with pytest.raises(ValueError, match=rf"{name} is UTF-16: save it as UTF-8"):
        read_segments(str(tmp_path / name), "candidates")
    if name != "a.txt":
        with pytest.raises(ValueError, match="is UTF-16"):
            list(read_records(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "content", "separator"),
    [
        ("a.csv", "reference;candidate\na;b\n", "semicolon"),
        ("a.csv", "reference\tcandidate\na\tb\n", "tab"),
        ("a.tsv", "reference,candidate\na,b\n", "comma"),
    ],
)
def test_another_separator_is_named(tmp_path, name, content, separator):
    (tmp_path / name).write_text(content)
    for reader in (lambda path: read_segments(path, "candidates"), lambda path: list(read_records(path))):
        with pytest.raises(ValueError, match=rf"line 1: expected columns .*, found a {separator}"):
            reader(str(tmp_path / name))


def test_headers_in_another_case(tmp_path):
    (tmp_path / "a.csv").write_text("Reference,CANDIDATE,Score\nr,c,0.5\n")
    assert read_segments(str(tmp_path / "a.csv"), "candidates") == ["c"]
    with PairStream(pairs=str(tmp_path / "a.csv")) as stream:
        assert next(stream.windows(0, stream.survey().records, 9)) == {"references": [["r"]], "candidates": ["c"]}
    [rating] = rating_records(tmp_path / "a.csv")
    assert (rating["reference"], rating["candidate"], rating["score"]) == ("r", "c", 0.5)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_long_field(tmp_path, name):
    text = "word " * 50_000
    (tmp_path / name).write_text(f"candidate\n{text}\n")
    assert read_segments(str(tmp_path / name), "candidates") == [text]
    assert [record for _, record in read_records(tmp_path / name)] == [{"candidate": text}]


@pytest.mark.parametrize(
    "line", ['{"candidate": "a", "candidate": "b", "reference": "r", "score": 1}', '{"score": {"a": 1, "a": 2}}']
)
def test_a_key_that_stands_twice(tmp_path, line):
    (tmp_path / "a.jsonl").write_text(line + "\n")
    with PairStream(pairs=str(tmp_path / "a.jsonl")) as stream, pytest.raises(ValueError, match="occurs twice"):
        stream.survey()
    for reader in (rating_records, lambda path: read_segments(str(path), "candidates")):
        with pytest.raises(ValueError, match=r"a\.jsonl, line 1: .*the key '\w+' occurs twice"):
            reader(tmp_path / "a.jsonl")


@pytest.mark.parametrize("names", [("candidate", "candidate"), ("Candidate", "candidate"), ("candidate", "N", "n")])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.jsonl", "a.parquet"])
def test_two_columns_of_one_name_are_refused(tmp_path, name, names):
    path, delimiter = tmp_path / name, "\t" if ".tsv" in name else ","
    columns = {**dict.fromkeys(names, "c"), "reference": "r", "score": 1}
    if name == "a.parquet":
        table = pyarrow.table([["c"]] * len(names) + [["r"], [1]], names=[*names, "reference", "score"])
        pyarrow.parquet.write_table(table, path)
    elif name == "a.jsonl":
        if len({*names}) < len(names):
            pytest.skip("repeated keys are tested elsewhere")
        path.write_text(json.dumps(columns) + "\n")
    else:
        rows = [[*names, "reference", "score"], [*["c"] * len(names), "r", "1"]]
        content = "".join(delimiter.join(row) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    expected = rf"{re.escape(name)}.*: expected different column names, found '{names[-2]}' and '{names[-1]}'"
    with PairStream(pairs=str(path)) as stream, pytest.raises(ValueError, match=expected):
        stream.survey()
    for reader in (
        lambda path: read_segments(str(path), "candidates"),
        lambda path: list(read_records(path)),
        rating_records,
    ):
        with pytest.raises(ValueError, match=expected):
            reader(path)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz"])
def test_blank_rows_of_one_column_are_empty_segments(tmp_path, name):
    """As spreadsheets save an empty cell."""
    content = b"\ncandidate\r\none\r\n\r\nthree\r\n\r\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert read_segments(str(tmp_path / name), "candidates") == ["one", "", "three", ""]
    wide = content.replace(b"candidate", b"candidate,n").replace(b"one", b"one,1").replace(b"three", b"three,3")
    (tmp_path / "wide.csv").write_bytes(wide)
    assert read_segments(str(tmp_path / "wide.csv"), "candidates") == ["one", "three"]


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.txt.gz", "a"])
@pytest.mark.parametrize("end", [b"\r", b"", b"\n", b"\r\n"])
def test_lines_that_end_in_carriage_returns_alone_are_refused(tmp_path, name, end):
    content = b"candidate\rone\rtwo" + end
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(
        ValueError, match=rf"{name}: expected lines that end in line feeds, found carriage returns alone"
    ):
        read_segments(str(tmp_path / name), "candidates")
    (tmp_path / "b.txt").write_bytes(b"one\rtwo\nthree\n")  # a carriage return within a line is text
    assert read_lines(tmp_path / "b.txt") == ["one\rtwo", "three"]


@pytest.mark.parametrize(
    "extension", [".sgm", ".SGML", ".xml", ".html", ".htm", ".tmx", ".xliff", ".xml.gz", ".xlsx", ".ods"]
)
def test_markup_and_sheets_are_refused_and_not_scored_line_by_line(tmp_path, extension):
    content = b"<refset>\n<seg id=1>one</seg>\n</refset>\n"
    (tmp_path / f"a{extension}").write_bytes(gzip.compress(content) if extension.endswith(".gz") else content)
    name = re.escape(extension.lower().removesuffix(".gz"))
    with pytest.raises(ValueError, match=rf"expected text with one segment per line, .* found {name}: save the "):
        read_segments(str(tmp_path / f"a{extension}"), "candidates")
    with (
        PairStream(references=str(tmp_path / f"a{extension}"), candidates=str(tmp_path / f"a{extension}")) as stream,
        pytest.raises(ValueError, match="save the segments|save the table"),
    ):
        stream.survey()


@pytest.mark.parametrize("number", ["1_000", "", "one", None, True, "0x10"])
def test_what_is_no_number(tmp_path, number):
    with pytest.raises(ValueError):
        parse_number(number)
    (tmp_path / "a.jsonl").write_text(json.dumps({"reference": "r", "candidate": "c", "score": number}) + "\n")
    with pytest.raises(ValueError, match="score"):
        rating_records(tmp_path / "a.jsonl")


def test_json_that_is_no_lines_is_refused(tmp_path):
    (tmp_path / "a.json").write_text('[\n"one",\n"two"\n]\n')
    with pytest.raises(ValueError, match=r"found \.json: write one object or string per line as \.jsonl"):
        read_segments(str(tmp_path / "a.json"), "candidates")


def parquet(path, column):
    pyarrow.parquet.write_table(pyarrow.table({"candidate": column}), path)


ODD_COLUMNS = {
    "text that is not UTF-8": lambda: pyarrow.array([b"caf\xe9"]).view(pyarrow.string()),
    "an unknown time zone": lambda: pyarrow.array([0], pyarrow.timestamp("s", tz="Mars/Olympus")),
    "the year 60,000": lambda: pyarrow.array([1_831_000_000_000], pyarrow.timestamp("s")),
    "a date before all years": lambda: pyarrow.array([-10_000_000], pyarrow.date32()),
}


@pytest.mark.parametrize("name", ODD_COLUMNS)
def test_parquet_that_python_has_no_values_for(tmp_path, name):
    parquet(tmp_path / "a.parquet", ODD_COLUMNS[name]())
    for reader in (lambda path: read_segments(str(path), "candidates"), lambda path: list(read_records(path))):
        with pytest.raises(ValueError, match=r"a\.parquet: not a Parquet file that can be read \(\w+: ") as error:
            reader(tmp_path / "a.parquet")
        assert len(str(error.value).splitlines()) == 1 and len(str(error.value)) < 600


def test_segments_of_parquet_and_gzip(tmp_path):
    parquet(tmp_path / "a.parquet", ["one", "two"])
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"candidate\tn\none\t1\ntwo\t2\n"))
    for name in ("a.parquet", "a.txt.gz", "a.tsv.gz"):
        assert read_segments(str(tmp_path / name), "candidates") == ["one", "two"], name
    parquet(tmp_path / "dates.parquet", [datetime.date(2020, 1, 1)])
    with pytest.raises(ValueError, match="row 1: expected a string, found"):
        read_segments(str(tmp_path / "dates.parquet"), "candidates")


def test_a_small_input_is_read_once_and_a_large_one_twice(tmp_path, monkeypatch):
    from bleurt_repro.metric.files import texts

    passes = []
    pairs = PairStream.pairs
    monkeypatch.setattr(PairStream, "pairs", lambda self: passes.append(1) or pairs(self))
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    for size, expected in ((1 << 20, 1), (10, 2)):
        monkeypatch.setattr(texts, "SMALL", size)
        passes.clear()
        with PairStream(references=str(tmp_path / "a.txt"), candidates=str(tmp_path / "a.txt")) as stream:
            records = stream.survey().records
            assert next(stream.windows(0, records, 9)) == {
                "references": [["one"], ["two"]],
                "candidates": ["one", "two"],
            }
        assert len(passes) == expected


def test_a_binary_file_is_one_line(tmp_path):
    (tmp_path / "a.csv").write_bytes(struct.pack("<8d", *range(8)))
    with pytest.raises(ValueError) as error:
        read_segments(str(tmp_path / "a.csv"), "candidates")
    assert "a.csv" in str(error.value)
