"""`score --keep-above`: the rows with high scores, byte for byte, in every format, after a kill, in shares."""

from __future__ import annotations

import csv
import gzip
import json

import pyarrow
import pyarrow.parquet
import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.metric.bulk import scoring as module
from bleurt_repro.metric.bulk.scoring import score_files
from bleurt_repro.metric.files import texts as texts_module
from bleurt_repro.metric.options import ScoreOptions

WORDS = "the cat sat on a mat it rains dog good bye hi there stock prices fell".split()
COUNT = 40


@pytest.fixture
def rows():
    """Return rows with further columns, some with line breaks, quotes and letters beyond ASCII."""
    return [
        {
            "id": n,
            "candidate": " ".join(WORDS[: 1 + n % 13]),
            "reference": " ".join(WORDS[n % 7 :]),
            "note": ["plain", 'two\nlines, "quoted"', "naïve \u2028 line", "", "two\n\n\nbreaks"][n % 5],
        }
        for n in range(COUNT)
    ]


@pytest.fixture
def scores(rows, tiny_scorer):
    texts = {f"{role}s": [row[role] for row in rows] for role in ("candidate", "reference")}
    return [round(score, 7) for score in BleurtScorer(str(tiny_scorer), device="cpu").score(**texts)]


@pytest.fixture
def threshold(scores):
    """Return a threshold between two scores, so that rounding decides nothing."""
    ranked = sorted(scores)
    return (ranked[25] + ranked[26]) / 2


@pytest.fixture
def keep(tmp_path, tiny_scorer, threshold, monkeypatch):
    monkeypatch.setitem(module.WINDOWS, "cpu", 8)

    def call(pairs: str, output: str, **options):
        summary = score_files(
            ScoreOptions(str(tiny_scorer), progress=False),
            pairs=str(tmp_path / pairs),
            output=str(tmp_path / output),
            keep_above=threshold,
            **options,
        )
        return tmp_path / output, summary

    return call


def json_lines(rows) -> list[bytes]:
    return [(json.dumps(row, indent=None, ensure_ascii=False) + "\n").encode() for row in rows]


def write_csv(path, rows, delimiter=",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def test_json_lines_are_copied_byte_for_byte(keep, rows, scores, threshold, tmp_path):
    lines = json_lines(rows)
    lines[3] = lines[3].replace(b'": ', b'" :  ').replace(b"\n", b"\r\n")
    lines[-1] = lines[-1].rstrip()
    (tmp_path / "pairs.jsonl").write_bytes(b"".join(lines))
    path, summary = keep("pairs.jsonl", "kept.jsonl")
    expected = [line for line, score in zip(lines, scores, strict=True) if score >= threshold]
    assert path.read_bytes() == b"".join(expected)
    assert summary.startswith(f"kept {len(expected)} of {COUNT} rows with a score of at least {threshold:g}; mean ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.jsonl", "pairs.jsonl"]


@pytest.mark.parametrize(("name", "delimiter"), [("pairs.csv", ","), ("pairs.tsv", "\t"), ("pairs.csv.gz", ",")])
def test_tables_keep_their_header_and_the_line_breaks_of_their_cells(
    keep, rows, scores, threshold, tmp_path, name, delimiter
):
    expected = [row for row, score in zip(rows, scores, strict=True) if score >= threshold]
    for file, table in (("all", rows), ("expected", expected)):
        write_csv(tmp_path / file, table, delimiter)
    content = b"\xef\xbb\xbf" + (tmp_path / "all").read_bytes()
    is_gzip = name.endswith(".gz")
    (tmp_path / name).write_bytes(gzip.compress(content) if is_gzip else content)
    path, _ = keep(name, name.replace("pairs", "kept"))
    written = gzip.decompress(path.read_bytes()) if is_gzip else path.read_bytes()
    assert written == b"\xef\xbb\xbf" + (tmp_path / "expected").read_bytes()


def test_parquet_keeps_its_columns_and_schema(keep, rows, scores, threshold, tmp_path):
    table = pyarrow.Table.from_pylist(rows).replace_schema_metadata({"origin": "a test"})
    pyarrow.parquet.write_table(table, tmp_path / "pairs.parquet", row_group_size=7)
    path, _ = keep("pairs.parquet", "kept.parquet")
    kept = pyarrow.parquet.read_table(path)
    assert kept.to_pylist() == [row for row, score in zip(rows, scores, strict=True) if score >= threshold]
    assert kept.schema.equals(table.schema, check_metadata=True)


def test_a_table_without_a_row_that_is_good_enough_is_its_header(keep, rows, tmp_path, tiny_scorer):
    write_csv(tmp_path / "pairs.csv", rows)
    score_files(
        ScoreOptions(str(tiny_scorer), progress=False),
        pairs=str(tmp_path / "pairs.csv"),
        output=str(tmp_path / "kept.csv"),
        keep_above=1000.0,
    )
    assert (tmp_path / "kept.csv").read_bytes() == b"id,candidate,reference,note\r\n"


def test_a_stopped_run_is_resumed_and_writes_the_same_rows(keep, rows, scores, threshold, tmp_path, monkeypatch):
    lines = json_lines(rows)
    (tmp_path / "pairs.jsonl").write_bytes(b"".join(lines))
    compute, windows = BleurtScorer.compute_quietly, []

    def stop_at_the_third(self, **texts):
        windows.append(texts)
        if len(windows) == 3:
            raise KeyboardInterrupt
        return compute(self, **texts)

    monkeypatch.setattr(BleurtScorer, "compute_quietly", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        keep("pairs.jsonl", "kept.jsonl")
    assert not (tmp_path / "kept.jsonl").exists()
    with pytest.warns(UserWarning, match="resuming the unfinished kept.jsonl after 16 records"):
        path, _ = keep("pairs.jsonl", "kept.jsonl")
    assert len(windows) == 3 + (COUNT - 16) // 8
    assert path.read_bytes() == b"".join(line for line, score in zip(lines, scores, strict=True) if score >= threshold)


def test_shares_put_together_are_the_rows_of_the_whole(keep, rows, scores, threshold, tmp_path):
    lines = json_lines(rows)
    (tmp_path / "pairs.jsonl").write_bytes(b"".join(lines))
    summaries = [keep("pairs.jsonl", "kept.jsonl", num_shards=3, shard_index=i)[1] for i in range(3)]
    written = b"".join(path.read_bytes() for path in sorted(tmp_path.glob("kept-*.jsonl")))
    assert written == b"".join(line for line, score in zip(lines, scores, strict=True) if score >= threshold)
    assert " of 13 rows" in summaries[0] or " of 14 rows" in summaries[0]


def test_an_input_that_changed_while_it_was_scored_is_an_error(keep, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(texts_module, "SMALL", 0)
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(b"".join(json_lines(rows)))
    to_file = module._Run.to_file

    def change_then_write(self, *arguments):
        results = list(self._results(0))
        path.write_bytes(b"".join(json_lines([{**row, "candidate": "other"} for row in rows])))
        monkeypatch.setattr(type(self), "_results", lambda self, finished: iter(results))
        return to_file(self, *arguments)

    monkeypatch.setattr(module._Run, "to_file", change_then_write)
    with pytest.raises(ValueError, match="the input changed while it was read"):
        keep("pairs.jsonl", "kept.jsonl")
    assert not (tmp_path / "kept.jsonl").exists()


def test_rows_go_to_standard_output(rows, scores, threshold, tmp_path, tiny_scorer, capfdbinary):
    lines = json_lines(rows)
    (tmp_path / "pairs.jsonl").write_bytes(b"".join(lines))
    score_files(
        ScoreOptions(str(tiny_scorer), progress=False),
        pairs=str(tmp_path / "pairs.jsonl"),
        output="-",
        keep_above=threshold,
    )
    expected = b"".join(line for line, score in zip(lines, scores, strict=True) if score >= threshold)
    assert capfdbinary.readouterr().out == expected


@pytest.mark.parametrize(
    ("output", "options", "message"),
    [
        ("kept.csv", {}, "expected an output ending in .jsonl"),
        ("kept.jsonl", {"as_json": True}, "leave out --json and --system"),
        ("kept.jsonl", {"system": "a"}, "leave out --json and --system"),
        ("pairs.jsonl", {}, "is the input"),
        ("old.jsonl", {}, "exists and bleurt-repro did not write it"),
    ],
)
def test_what_cannot_be_kept_is_an_error_before_anything_is_scored(keep, rows, tmp_path, output, options, message):
    (tmp_path / "pairs.jsonl").write_bytes(b"".join(json_lines(rows)))
    (tmp_path / "old.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match=message):
        keep("pairs.jsonl", output, **options)


def test_rows_of_two_files_are_refused(tiny_scorer):
    with pytest.raises(ValueError, match="give --pairs instead of --references and --candidates"):
        score_files(ScoreOptions(str(tiny_scorer)), references="r.txt", candidates="c.txt", output="-", keep_above=0.5)


def test_the_command_says_how_many_rows_were_kept(rows, scores, threshold, tmp_path, tiny_scorer, capsys):
    lines = json_lines(rows)
    (tmp_path / "pairs.jsonl").write_bytes(b"".join(lines))
    words = [
        "score",
        "--pairs",
        tmp_path / "pairs.jsonl",
        "--checkpoint",
        tiny_scorer,
        "--output",
        tmp_path / "kept.jsonl",
    ]
    with pytest.raises(SystemExit) as stop:
        main([*map(str, words), "--keep-above", repr(threshold)])
    count = sum(score >= threshold for score in scores)
    assert not stop.value.code
    assert capsys.readouterr().err.startswith(f"kept {count} of {COUNT} rows with a score of at least ")
    assert len((tmp_path / "kept.jsonl").read_bytes().splitlines()) == count
