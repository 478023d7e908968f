"""The reference segments: cleaned, filtered and deduplicated texts; every row left out is counted and named.

Running text can be cut into sentences (`split_sentences`) by a simple rule. A line is a paragraph; lines that do not
end in . ! or ? (headings, list items, captions) are left out. A paragraph is cut after . ! or ? and closing quotes or
brackets, if a blank and then a capital letter, a digit, or an opening quote or bracket follow, but not after a single
capital (an initial), nor after a common abbreviation.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.raw_texts import read_rows
from bleurt_repro.metric.loading.checksums import file_hash
from bleurt_repro.metric.loading.hub import dataset_revision

EXCERPT = 80  # characters of a text in records and messages
# Without the full stop, lower-cased.
ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st sr jr gen col lt sgt capt rev hon sen rep gov pres vs etc cf al ca approx no vol pp ed eds "
    "fig inc ltd co corp dept univ est mt ft jan feb mar apr jun jul aug sep sept oct nov dec e.g i.e u.s u.k".split()
)
ENDS = re.compile(r"[.!?][\"')\]\u201d\u2019]*$")
CUTS = re.compile(r"([.!?][\"')\]\u201d\u2019]*)\s+(?=[\"'(\[\u201c\u2018]?[A-Z\u00c0-\u00de0-9])")
LAST_WORD = re.compile(r"([^\s(\[\"'\u201c\u2018]+)$")


@dataclass(frozen=True)
class Skipped:
    """A row or perturbation that was left out: its row in the input, the reason, and the beginning of its text."""

    row: int
    reason: str
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return a record for the log."""
        return asdict(self)


@dataclass(frozen=True)
class Segment:
    """A reference segment.

    Attributes:
        segment_id: number of the segment, from 0.
        row: row of the input (line or record), from 1.
        text: text without line breaks, with one blank between words.
    """

    segment_id: int
    row: int
    text: str


class Segments:
    """The segments of an input. Each iteration reads the input again and refills `skipped`.

    Args:
        source: file, dataset folder or Hub id, as in `raw_texts.read_rows`.
        config: recipe with column, length limits and so on.

    Attributes:
        rows: number of rows read in the last iteration.
        skipped: rows left out in the last iteration, in order.
    """

    def __init__(self, source: str, config: SyntheticConfig) -> None:
        self.source, self.config = source, config
        self.rows = 0
        self.skipped: list[Skipped] = []

    @property
    def is_local(self) -> bool:
        """Whether the input is a file, cheap to read twice."""
        return Path(self.source).expanduser().is_file()

    def identity(self) -> dict[str, Any]:
        """Return what identifies the input: the hash of a file, or the name and revision of a dataset."""
        path = Path(self.source).expanduser()
        if path.is_file():
            return {"name": path.name, "sha256": file_hash(path).hex(), "column": self.config.column}
        fields = {"subset": self.config.subset, "split": self.config.split, "column": self.config.column}
        return {"name": self.source, "revision": None if path.is_dir() else dataset_revision(self.source), **fields}

    def __iter__(self) -> Iterator[Segment]:
        """Read the segments in order.

        Raises:
            ValueError: if no segment is left; the message has the reasons why rows were skipped.
        """
        self.rows, self.skipped = 0, []
        seen: dict[bytes, int] = {}
        for row, text, fault in self._sentences():
            text = " ".join(text.split())
            reason = fault or self._fault(text)
            key = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
            if not reason and key in seen:
                reason = f"duplicate of row {seen[key]}"
            if reason:
                self.skipped.append(Skipped(row, reason, text[:EXCERPT].encode("utf-8", "replace").decode()))
                continue
            seen[key] = row
            yield Segment(len(seen) - 1, row, text)
            if len(seen) == self.config.max_segments:
                break
        if not seen:
            raise ValueError(f"{self.source}: none of its {self.rows} rows is usable: {count_reasons(self.skipped)}")

    def _sentences(self) -> Iterator[tuple[int, str, str]]:
        config = self.config
        for row in read_rows(self.source, config.column, config.subset, config.split):
            self.rows += 1
            if row.fault or not config.split_sentences:
                yield row
                continue
            yield from ((row.number, sentence, "") for sentence in split_sentences(row.text))
            unended = [line for line in row.text.splitlines() if line.strip() and not ends_sentence(line)]
            if unended:
                yield row.number, unended[0], f"lines that end no sentence ({len(unended)})"

    def _fault(self, text: str) -> str:
        """Return the reason why a text is not used, or an empty string."""
        config = self.config
        if not any(character.isalnum() for character in text):
            return "no words"
        if len(text) > config.max_characters:
            return f"longer than {config.max_characters} characters"
        if len(text.split()) < config.min_words:
            return f"fewer than {config.min_words} words"
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            return "not UTF-8 (half of a surrogate pair)"
        return ""


def count_reasons(skipped: list[Skipped]) -> str:
    """Return the counts of the reasons in one line, the most frequent first."""
    counts = Counter(general_reason(row.reason) for row in skipped)
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common()) or "nothing was read"


def general_reason(reason: str) -> str:
    """Return a reason without the position that it names, so that equal reasons are counted together."""
    return "duplicate" if reason.startswith("duplicate") else re.sub(r" \((byte )?\d+\)$", "", reason)


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text in order.

    Args:
        text: paragraphs, one per line.
    """
    return [
        sentence for line in text.splitlines() if ends_sentence(line) for sentence in _split_paragraph(line.strip())
    ]


def ends_sentence(line: str) -> bool:
    """Return whether a line ends as a sentence does."""
    return ENDS.search(line.strip()) is not None


def _split_paragraph(paragraph: str) -> list[str]:
    sentences, start = [], 0
    for cut in CUTS.finditer(paragraph):
        if cut.group(1).startswith(".") and _abbreviated(paragraph[start : cut.start()]):
            continue
        sentences.append(paragraph[start : cut.end(1)])
        start = cut.end()
    return [*sentences, paragraph[start:]]


def _abbreviated(before: str) -> bool:
    """Return whether the full stop after a text belongs to an abbreviation or an initial."""
    match = LAST_WORD.search(before)
    word = match.group(1) if match else ""
    return word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper())
