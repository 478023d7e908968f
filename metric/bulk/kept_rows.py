"""Copy the rows of a file of pairs whose scores are high enough: all columns as they are, in the same format.

Lines of CSV, TSV and JSON lines are copied byte by byte, and Parquet keeps its schema. Rows are read one after the other,
so memory does not grow with the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from bleurt_repro.metric.files.records import DELIMITERS, file_form, parse_records


def copy_rows(file: BinaryIO, path: str, mask: Iterator[bool], output: BinaryIO) -> None:
    """Copy rows, and the header of a table.

    Args:
        file: what `open_input` returns, at its start.
        path: its name, whose extension says how to read it.
        mask: whether to copy each row, in order.
        output: file to write.
    """
    if file_form(path) == ".parquet":
        _copy_parquet(file, mask, output)
        return
    lines = _Lines(file)
    copied = file_form(path) in DELIMITERS  # what is before the first row: the header, or blank lines
    for location, _ in parse_records(lines, path, quoted_tsv=True):  # type: ignore[arg-type]  # it only iterates
        # A row ends where the next one begins; its cells may have line breaks.
        row = lines.pop_before(int(location.removeprefix("line ")))
        if copied:
            output.writelines(row)
        copied = next(mask)
    if copied:
        output.writelines(lines.pop_before(None))


class _Lines:
    """Lines of a file that one function reads and another one copies.

    Args:
        file: file at its start.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._lines, self._first = file, deque[bytes](), 1

    def __iter__(self) -> Iterator[bytes]:
        for line in self._file:
            self._lines.append(line)
            yield line

    def pop_before(self, number: int | None) -> list[bytes]:
        """Return the lines that were read and not returned yet, up to the one with a number; None returns all."""
        count = len(self._lines) if number is None else number - self._first
        self._first += count
        return [self._lines.popleft() for _ in range(count)]


def _copy_parquet(file: BinaryIO, mask: Iterator[bool], output: BinaryIO) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file)
    with pyarrow.parquet.ParquetWriter(output, table.schema_arrow) as writer:
        for batch in table.iter_batches():
            writer.write_batch(batch.filter(pyarrow.array(islice(mask, batch.num_rows), pyarrow.bool_())))
