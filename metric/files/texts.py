"""Read the texts to score from files of any size: lists of segments, and pairs.

A list of segments is a text file with one segment per line, or a column of a table (CSV, TSV, Parquet) or of JSON lines.
Pairs are records with a candidate, its references and its source. Text, CSV, TSV and JSON lines may be gzipped. Errors name
the file and the line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from bleurt_repro.metric.files.records import (
    DELIMITERS,
    STDIN,
    check_column_names,
    display_name,
    file_form,
    numbered_lines,
    open_input,
    parquet_records,
    parse_json,
    parse_records,
    table_rows,
)
from bleurt_repro.metric.inputs import check_same_length
from bleurt_repro.metric.layout import ROLES

# Names of the column with the texts of each role, the first one that a file has.
COLUMNS = {
    "references": ("reference", "references", "text"),
    "candidates": ("candidate", "text"),
    "sources": ("source", "text"),
}
# Formats whose lines are not segments, with what to do instead.
_MARKUP = "save the segments alone as .txt, one per line, as `sacrebleu --echo` does for the test sets of WMT"
_OFFICE = "save the table as .csv"
NOT_TEXT = {
    **dict.fromkeys((".sgm", ".sgml", ".xml", ".tmx", ".xlf", ".xliff", ".html", ".htm"), _MARKUP),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), _OFFICE),
    ".json": "write one object or string per line as .jsonl",
}
# Files of segments that the demo accepts; Parquet is left out, since a small file can unpack to a huge one.
SUFFIXES = (".txt", *DELIMITERS, ".jsonl", ".ndjson")
FIELDS = '"candidate", "reference" (or "references", a list) and, where the checkpoint reads it, "source"'

# Bytes of text up to which the pairs of the first pass are kept: a small input is read only once.
SMALL = 1 << 20
# Pairs that are hashed together, so that the second pass is compared with the first before they are scored.
BLOCK = 1024
CHANGED = "the input changed while it was read: give a file that nothing writes to, and start again"

# References (none for a checkpoint that reads none), candidate, source.
Pair = tuple[list[str], str, str | None]


class Survey(NamedTuple):
    """Number and hashes of the pairs that the first pass over the input read.

    Attributes:
        records: number of candidates.
        blocks: SHA-256 of each `BLOCK` pairs.
    """

    records: int
    blocks: tuple[bytes, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of all blocks, which identifies the input."""
        return hashlib.sha256(b"".join(self.blocks)).hexdigest()


class PairStream:
    """Read the pairs of files in bounded memory: all of them once, to check them, then window by window.

    Args:
        references, candidates, sources: files of segments (see `read_segments`), or "-" for standard input.
        pairs: file of pairs instead of them: JSON lines, CSV, TSV or Parquet.

    Raises:
        FileNotFoundError: if a file does not exist.
        ValueError: if files are missing, or both pairs and lists are given.
    """

    def __init__(
        self,
        *,
        references: str | None = None,
        candidates: str | None = None,
        sources: str | None = None,
        pairs: str | None = None,
    ) -> None:
        self._paths = _choose_files(references, candidates, sources, pairs)
        self._stack = ExitStack()
        self._files: dict[str, BinaryIO] = {}
        self._survey = Survey(0, ())
        self._small: list[Pair] | None = None
        self.roles: set[str] = set()  # the texts that the pairs have, known after the survey

    def __enter__(self) -> PairStream:
        for name, path in self._paths.items():
            self._files[name] = self._stack.enter_context(open_input(path))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def survey(self) -> Survey:
        """Read all pairs, so that every fault is found before anything is scored.

        Raises:
            ValueError: naming file and line, if the input is malformed or the files are not equally long.
        """
        count, size = 0, 0
        blocks: list[bytes] = []
        small: list[Pair] | None = []
        first: dict[tuple[str, bool], int] = {}  # the first pair that has, or has not, a source or a reference
        pairs = self.pairs()
        while block := list(islice(pairs, BLOCK)):
            for number, (references, _, source) in enumerate(block, start=count + 1):
                first.setdefault(("source", source is not None), number)
                first.setdefault(("reference", bool(references)), number)
            digest, length = _hash_pairs(block)
            blocks.append(digest)
            count, size = count + len(block), size + length
            small = None if small is None or size > SMALL else small + block
        self.roles = {role for role in ROLES if role == "candidate" or not count or (role, True) in first}
        for name in ("source", "reference"):
            if (name, True) in first and (name, False) in first:
                location = f"{display_name(self._paths['pairs'])}: record {first[name, False]}"
                raise ValueError(f'{location} has no "{name}" but others have one')
        self._small = small
        self._survey = Survey(count, tuple(blocks))
        return self._survey

    def windows(self, first: int, last: int, size: int) -> Iterator[dict[str, list[Any]]]:
        """Read the pairs from `first` up to `last`, `size` at a time, as the keyword arguments of `score`.

        Call `survey` before.

        Raises:
            ValueError: if the input is no longer the one that the survey read.
        """
        pairs = self.checked_pairs(self._survey) if self._small is None else iter(self._small)
        selected = islice(pairs, first, last)
        while window := list(islice(selected, size)):
            yield arguments_of(window)
        if last == self._survey.records:
            next(pairs, None)  # runs the check for further pairs

    def check_unchanged(self) -> BinaryIO:
        """Return the open file of pairs at its start, if its pairs are those that the survey read.

        Raises:
            ValueError: if they are not.
        """
        for _ in self.checked_pairs(self._survey):
            pass
        file = self._files["pairs"]
        file.seek(0)
        return file

    def checked_pairs(self, survey: Survey) -> Iterator[Pair]:
        """Read all pairs one by one, each block only if it is the one that the survey read.

        Raises:
            ValueError: at the first block that is not.
        """
        pairs = self.pairs()
        try:
            for digest in survey.blocks:
                block = list(islice(pairs, BLOCK))
                if _hash_pairs(block)[0] != digest:
                    raise ValueError("other pairs")
                yield from block
            if next(pairs, None) is not None:
                raise ValueError("more pairs")
        except ValueError as error:  # of a reader, too: the survey found no fault
            raise ValueError(CHANGED) from error

    def pairs(self) -> Iterator[Pair]:
        """Read all pairs one by one, from the first."""
        for file in self._files.values():
            file.seek(0)
        if "pairs" in self._files:
            return read_pairs(self._files["pairs"], self._paths["pairs"])
        return self._lists()

    def _lists(self) -> Iterator[Pair]:
        """Read one pair from each row of the lists, which must be equally long."""
        columns = {name: _segments(file, self._paths[name], name) for name, file in self._files.items()}
        for number, texts in enumerate(zip_longest(*columns.values())):
            row = dict(zip(columns, texts, strict=True))
            if None in texts:
                counts = {
                    f"segments in {self._paths[name]}": number + (row[name] is not None) + sum(1 for _ in column)
                    for name, column in columns.items()
                }
                check_same_length(counts)
            references = row.get("references", [])
            yield [references] if isinstance(references, str) else references, row["candidates"], row.get("sources")


def _hash_pairs(pairs: list[Pair]) -> tuple[bytes, int]:
    """Return the SHA-256 of pairs, and the number of bytes hashed."""
    content = repr(pairs).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).digest(), len(content)


def arguments_of(pairs: Sequence[Pair]) -> dict[str, list[Any]]:
    """Return pairs, at least one, as the keyword arguments of `score`."""
    references, candidates, sources = (list(column) for column in zip(*pairs, strict=True))
    texts: dict[str, list[Any]] = {"references": references} if references[0] else {}
    texts["candidates"] = candidates
    return texts if sources[0] is None else {**texts, "sources": sources}


def _choose_files(
    references: str | None, candidates: str | None, sources: str | None, pairs: str | None
) -> dict[str, str]:
    """Return the files to read by the role of their texts."""
    if pairs is not None:
        if references or candidates or sources:
            raise ValueError("give either --pairs or --references and --candidates, not both")
        return {"pairs": pairs}
    if candidates is None or (references is None and sources is None):
        raise ValueError("nothing to score: give --references and --candidates, or --pairs")
    roles = {"references": references, "candidates": candidates, "sources": sources}
    paths = {role: path for role, path in roles.items() if path is not None}
    if list(paths.values()).count(STDIN) > 1:
        raise ValueError("only one file can be standard input ('-')")
    return paths


def read_pairs(file: BinaryIO, path: str) -> Iterator[Pair]:
    """Read pairs one by one from JSON lines or, by the file's extension, from CSV, TSV or Parquet.

    Args:
        file: what `open_input` returns.
        path: name of the file. Fields other than candidate, reference or references, and source are ignored.

    Raises:
        ValueError: naming file and line, if a record is malformed.
    """
    is_table = file_form(path) in DELIMITERS
    for location, record in parse_records(file, path, quoted_tsv=True):
        if is_table:
            record = {name.lower(): value for name, value in record.items()}
        yield _pair(record, f"{display_name(path)}, {location}")


def _pair(record: dict[str, Any], location: str) -> Pair:
    references, source = record.get("references"), record.get("source")
    if references is None and "reference" in record:
        references = [record["reference"]]
    elif "reference" in record or (references is None and source is None):
        # Only a checkpoint that reads no references takes a source and a candidate alone.
        raise ValueError(f'{location}: needs one of "reference" and "references"; each record has {FIELDS}')
    if references is not None and (not isinstance(references, list) or not references):
        raise ValueError(f'{location}: "references" must be a list of at least one string')
    references = references or []
    texts = {"candidate": record.get("candidate"), **{f"reference {i}": text for i, text in enumerate(references)}}
    for name, text in (texts if source is None else {**texts, "source": source}).items():
        if not isinstance(text, str):
            raise ValueError(f"{location}: {name} must be a string, found {_excerpt(text)}; each record has {FIELDS}")
    return references, record["candidate"], source


def read_segments(path: str, role: str) -> list[Any]:
    """Read the references, the candidates or the sources of a test set, one per segment.

    Args:
        path: file; `.csv` and `.tsv` are tables with a header, `.jsonl` and `.ndjson` hold one object or string per line,
            `.parquet` has columns, and other files, or "-" for standard input, are text with one segment per line.
        role: "references", "candidates" or "sources"; it selects the column or field (`COLUMNS`).

    Returns:
        one string per segment; for references in JSON lines or Parquet, a string or a list of strings.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: naming file and line, if the file is malformed or has no such column.
    """
    with open_input(path) as file:
        return list(_segments(file, path, role))


def _segments(file: BinaryIO, path: str, role: str) -> Iterator[Any]:
    """Read the segments of an open file one by one; see `read_segments`."""
    form = file_form(path)
    if form in DELIMITERS:
        return _column_of_table(file, path, COLUMNS[role])
    if form == ".parquet":
        rows = parquet_records(file, path)
        return (_field(record, COLUMNS[role], f"{path}, {location}") for location, record in rows)
    if form == ".jsonl":
        return _column_of_json_lines(file, path, COLUMNS[role])
    extension = Path(path.lower().removesuffix(".gz")).suffix
    if extension in NOT_TEXT:
        raise ValueError(
            f"{path}: expected text with one segment per line, a table or JSON lines, found {extension}: {NOT_TEXT[extension]}"
        )
    return (line for _, line in numbered_lines(file, path))


def _column_of_table(file: BinaryIO, path: str, names: tuple[str, ...]) -> Iterator[str]:
    rows = table_rows(file, path, quoted=True)
    _, header = next(rows, (1, []))
    column = _column(header, names, path)
    for _, fields in rows:
        yield fields[column]


def _column(header: list[str], names: tuple[str, ...], path: str) -> int:
    columns = [name.lower() for name in header]
    for name in names:
        if name in columns:
            return columns.index(name)
    raise ValueError(
        f"{path}, line 1: expected a header with a column {' or '.join(map(repr, names))}, found "
        f"{', '.join(repr(name[:30]) for name in header) or 'nothing'}; for text with one segment per line, name the file .txt"
    )


def _column_of_json_lines(file: BinaryIO, path: str, names: tuple[str, ...]) -> Iterator[Any]:
    for number, line in numbered_lines(file, path):
        if line.strip():
            location = f"{path}, line {number}"
            yield _field(parse_json(line, location, "each line is a string or an object"), names, location)


def _field(record: Any, names: tuple[str, ...], location: str) -> Any:
    value = record
    if isinstance(record, dict):
        check_column_names(record, location)
        present = [name for name in names if name in record]
        if not present:
            raise ValueError(f"{location}: expected a field {' or '.join(map(repr, names))}, found {list(record)[:5]}")
        value = record[present[0]]
    if isinstance(value, str) or ("references" in names and _is_list_of_strings(value)):
        return value
    expected = "a string or a list of strings" if "references" in names else "a string"
    raise ValueError(f"{location}: expected {expected}, found {_excerpt(value)}")


def _is_list_of_strings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


def _excerpt(value: Any) -> str:
    return json.dumps(value, default=str)[:40]
