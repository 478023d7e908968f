"""The table of segments where two systems differ most: sorted by a click on a heading, words marked, text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bleurt_repro.metric.compare import Comparison, Segment
from bleurt_repro.metric.demo.highlight import differences_html, signed, unsigned

# Rows on the page; the downloads have all.
ROWS = 100
# Sorts the rows by a column's numbers, largest first and then smallest first. The listener stays when the table changes.
SORT = """
element.addEventListener("click", (event) => {
  const heading = event.target.closest("th:has(button)");
  if (!heading || !event.target.closest("button")) return;
  const order = heading.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
  const sign = order === "descending" ? -1 : 1;
  const value = (row) => Number(row.cells[heading.cellIndex].dataset.value);
  const body = heading.closest("table").tBodies[0];
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", order);
  body.append(...[...body.rows].sort((a, b) => sign * (value(a) - value(b))));
});
"""


def segment_table(comparison: Comparison, names: tuple[str, str]) -> str:
    """Show the segments of two systems, largest difference first.

    Args:
        comparison: of the two.
        names: what the page calls them.
    """
    first, second = map(escape, names)
    headings = ("#", f"{first} \N{MINUS SIGN} {second}", first, second)
    head = "".join(f'<th scope="col"><button type="button">{heading}</button></th>' for heading in headings)
    rows = "".join(_row(segment, names) for segment in comparison.segments[:ROWS])
    shown = min(ROWS, len(comparison.segments))
    return (
        f'<table class="segments"><caption>Where they differ most: {shown:,} of {len(comparison.segments):,} segments. '
        "<mark>Marked</mark> words are not in the reference at that place. A heading sorts.</caption>"
        f'<thead><tr>{head}<th scope="col">texts</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def _row(segment: Segment, names: Sequence[str]) -> str:
    first, second = segment.scores
    difference = first - second
    ahead = "first" if difference > 0 else "second" if difference < 0 else ""
    cells = (
        _number(segment.number, str(segment.number)),
        _number(difference, signed(difference), ahead),
        _number(first, unsigned(first)),
        _number(second, unsigned(second)),
    )
    return f"<tr>{''.join(cells)}<td>{_texts(segment, names)}</td></tr>"


def _number(value: float, shown: str, kind: str = "") -> str:
    return f'<td class="number {kind}" data-value="{value!r}"><span>{shown}</span></td>'


def _texts(segment: Segment, names: Sequence[str]) -> str:
    lines = [("Source", escape(segment.source))] if segment.source is not None else []
    lines += [("Reference", escape(text)) for text in segment.references]
    for name, text in zip(names, segment.candidates, strict=True):
        lines.append((escape(name), differences_html(segment.references, text)))
    return "".join(f"<div><i>{name}</i> {text}</div>" for name, text in lines)
