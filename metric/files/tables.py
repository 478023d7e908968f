"""Write tables for people: CSV that is safe to open in a spreadsheet, and Markdown."""

from __future__ import annotations

import csv
import io
import sys
import unicodedata
from collections.abc import Iterable, Sequence

# https://owasp.org/www-community/attacks/CSV_Injection
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
# Characters at the start of a cell in which a formula is looked for.
CELL_START = 4096


def plain_cell(value: object) -> object:
    """Return a cell with an apostrophe before text that a spreadsheet would take for a formula; numbers stay numbers."""
    if isinstance(value, str) and sys.version_info < (3, 11):
        value = value.replace("\0", "\N{REPLACEMENT CHARACTER}")  # its csv module refuses to write NUL
    if isinstance(value, str) and (value.startswith(FORMULA_STARTS) or _is_formula(value)):
        return f"'{value}"
    return value


def _is_formula(text: str) -> bool:
    """Return whether blanks or invisible characters, or full-width signs, hide the start of a formula."""
    visible = "".join(letter for letter in text[:CELL_START] if unicodedata.category(letter)[0] not in "CZ")
    return unicodedata.normalize("NFKC", visible[:1]).startswith(FORMULA_STARTS)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]], delimiter: str = ",") -> str:
    """Return a table as CSV with CRLF line ends (RFC 4180); no cell runs as a formula.

    Args:
        header: names of the columns.
        rows: cells of each row; None leaves a cell empty.
        delimiter: character between cells.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter)
    for row in (header, *rows):
        writer.writerow([plain_cell(cell) for cell in row])
    return buffer.getvalue()


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]], align: str = "left") -> str:
    """Return a Markdown table without a line end after it; no text can end a cell.

    Args:
        header: names of the columns.
        rows: cells of each row.
        align: "left" or "right", for all columns but the first.
    """
    from tabulate import tabulate

    head, *cells = ([str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in (header, *rows))
    columns = None if align == "left" else ("left", *[align] * (len(head) - 1))
    return str(tabulate(cells, head, "github", disable_numparse=True, colalign=columns))
