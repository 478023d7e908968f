"""CSV that is safe to open in a spreadsheet: text that it would run as a formula is written so that it stays text."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence

# https://owasp.org/www-community/attacks/CSV_Injection
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def plain_cell(value: object) -> object:
    """Put an apostrophe before text that a spreadsheet would take for a formula; numbers stay numbers."""
    if isinstance(value, str) and sys.version_info < (3, 11):
        value = value.replace("\0", "\N{REPLACEMENT CHARACTER}")  # its csv module refuses to write NUL
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table as CSV, with every text cell and the header made plain by `plain_cell`.

    Args:
        header: names of the columns.
        rows: their cells; None leaves a cell empty.

    Returns:
        the file's text, with CRLF line ends (RFC 4180).
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in (header, *rows):
        writer.writerow([plain_cell(cell) for cell in row])
    return buffer.getvalue()
