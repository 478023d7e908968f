"""The pairs of files of any size, window by window: checked in a first pass, read in a second."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from bleurt_repro.metric.files.reading import STDIN, numbered_lines, opened, pair_records
from bleurt_repro.metric.inputs import check_same_length

Record = tuple[list[str], str, str | None]  # references (none for a checkpoint that reads none), candidate, source


class Survey(NamedTuple):
    """What the first pass over the input found.

    Attributes:
        records: how many candidates.
        digest: the SHA-256 of all texts.
    """

    records: int
    digest: str


class PairStream:
    """Reads text files of one segment a line, or JSON lines of pairs, without holding them in memory.

    Args:
        references, candidates, sources: files of one segment a line, or "-" for standard input.
        pairs: a JSONL file instead of them.

    Raises:
        ValueError: if what is given is incomplete or too much.
    """

    def __init__(
        self, *, references: str | None, candidates: str | None, sources: str | None, pairs: str | None
    ) -> None:
        if pairs is not None:
            if references or candidates or sources:
                raise ValueError("give either --pairs or --references and --candidates, not both")
            self._paths = {"pairs": pairs}
        else:
            if candidates is None or (references is None and sources is None):
                raise ValueError("nothing to score: give --references and --candidates, or --pairs")
            given = {"references": references, "candidates": candidates, "sources": sources}
            self._paths = {name: path for name, path in given.items() if path is not None}
        if list(self._paths.values()).count(STDIN) > 1:
            raise ValueError("only one file can be standard input ('-')")
        self._stack = ExitStack()
        self._files: dict[str, BinaryIO] = {}

    def __enter__(self) -> PairStream:
        for name, path in self._paths.items():
            self._files[name] = self._stack.enter_context(opened(path))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def survey(self) -> Survey:
        """Read all records, so that every fault is found before anything is scored.

        Raises:
            ValueError: naming file and line, if the input is malformed or the files are not equally long.
        """
        self._check_lengths()
        digest, records = hashlib.sha256(), 0
        first: dict[tuple[str, bool], int] = {}  # the first record that has, or has not, a source or a reference
        for references, candidate, source in self._records():
            digest.update(repr((references, candidate, source)).encode("utf-8", "surrogatepass"))
            records += 1
            first.setdefault(("source", source is not None), records)
            first.setdefault(("reference", bool(references)), records)
        for name in ("source", "reference"):
            if (name, True) in first and (name, False) in first:
                place = first[name, False]
                raise ValueError(f'{self._paths["pairs"]}: record {place} has no "{name}" but others have one')
        return Survey(records, digest.hexdigest())

    def windows(self, first: int, last: int, size: int) -> Iterator[dict[str, list[Any]]]:
        """Give the records from `first` up to `last`, `size` at a time, as the keyword arguments of `score`."""
        records = islice(self._records(), first, last)
        while window := list(islice(records, size)):
            references, candidates, sources = (list(column) for column in zip(*window, strict=True))
            texts: dict[str, list[Any]] = {"references": references} if references[0] else {}
            texts["candidates"] = candidates
            yield texts if sources[0] is None else {**texts, "sources": sources}

    def _check_lengths(self) -> None:
        if "pairs" not in self._files:
            lines = {name: sum(1 for _ in self._lines(name)) for name in self._files}
            check_same_length({f"lines in {self._paths[name]}": count for name, count in lines.items()})

    def _records(self) -> Iterator[Record]:
        if "pairs" in self._files:
            self._files["pairs"].seek(0)
            yield from pair_records(self._files["pairs"], self._paths["pairs"])
            return
        columns = {name: self._lines(name) for name in self._files}
        for texts in zip(*columns.values(), strict=True):
            row = dict(zip(columns, texts, strict=True))
            references = [row["references"]] if "references" in row else []
            yield references, row["candidates"], row.get("sources")

    def _lines(self, name: str) -> Iterator[str]:
        self._files[name].seek(0)
        return (line for _, line in numbered_lines(self._files[name], self._paths[name]))
