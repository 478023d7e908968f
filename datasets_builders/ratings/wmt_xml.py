"""Texts of WMT test sets from 2021 on: one XML file per language pair, with sources, references and outputs.

The numbers of segments in the ratings of these years are **not** lines of the test set. They count the segments after
the documents were sorted by their ids, while the XML has the documents in a shuffled order. A join by line raises no
error, since all numbers exist, but gives noise: the tau of chrF falls from 0.14 to 0.30 to 0.00 to 0.09.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from bleurt_repro.metric.files.records import open_input

TEST_SETS = {2021: "newstest2021"}
LATER_TEST_SET = "wmttest{year}"
# Domains of the test sets of 2022.
DOMAINS = ("news", "social", "ecommerce", "conversation")
# Systems that the ratings call by another name than the texts.
RENAMED = {"Nemo": "NVIDIA-NeMo"}


class XmlTexts:
    """Sources, references and outputs of the systems, of a year and a language pair.

    Args:
        files: paths by file name, as of `wmt_archives.index_files`.
        year: year of the test set.
        lp: language pair, such as "is-en".
        translator: translator of the references; default: A or, in documents without A, the first.

    Raises:
        FileNotFoundError: if the XML file is missing.
        ValueError: if it is malformed.

    Attributes:
        sources: sources in the order of the test set.
        references: references, None where a document has none.
        outputs: outputs by system, None where a document has none.
        documents: ids of the documents of the lines.
        domains: domains of the documents of the lines, such as "news"; None where the file does not say it.
    """

    def __init__(self, files: Mapping[str, Sequence[Path]], year: int, lp: str, translator: str | None = None) -> None:
        self.year, self.lp, self.translator = year, lp, translator
        name = f"{TEST_SETS.get(year, LATER_TEST_SET.format(year=year))}.{lp}.all.xml"
        if name not in files:
            raise FileNotFoundError(f"no file {name}, which has the texts and the document ids of {lp}, {year}")
        self.file = files[name][0]
        self.sources: list[str] = []
        self.references: list[str | None] = []
        self.outputs: dict[str, list[str | None]] = {}
        self.documents: list[str] = []
        self.domains: list[str | None] = []
        lines_by_document: dict[str, list[int]] = {}
        for document in self._root().iter("doc"):
            first = len(self.sources)
            self._add(document)
            lines = range(first, len(self.sources))
            lines_by_document.setdefault(document.get("id", ""), []).extend(lines)
            self.documents += [document.get("id", "")] * len(lines)
            self.domains += [_domain(document)] * len(lines)
        # Line of the test set, from 0, of each segment number of the ratings.
        self.lines = [line for _, lines in sorted(lines_by_document.items()) for line in lines]

    def _root(self) -> Any:
        with open_input(self.file) as file:
            try:
                return ElementTree.parse(file).getroot()
            except ElementTree.ParseError as error:
                raise ValueError(f"{self.file} is not XML: {error}") from error

    def _add(self, document: Any) -> None:
        """Append the segments of a document."""
        source = document.find("src")
        if source is None:
            raise ValueError(f"{self.file}: document {document.get('id')} has no source")
        ids = [segment.get("id") for segment in source.iter("seg")]
        references = {reference.get("translator", ""): reference for reference in document.findall("ref")}
        outputs = {output.get("system", ""): output for output in document.findall("hyp")}
        translator = self.translator or min(references, default="")  # A sorts first
        count = len(self.sources)
        self.sources += [text or "" for text in _texts(source, ids)]
        self.references += _texts(references.get(translator), ids)
        for system in {*self.outputs, *outputs}:
            column = self.outputs.setdefault(system, [None] * count)
            column += _texts(outputs.get(system), ids)

    def segment(self, system: str, number: str) -> dict[str, Any]:
        """Return the texts of one rating.

        Args:
            system: name of the system in the ratings, without its number.
            number: number of the segment in the ratings, from 1.

        Returns:
            "segment_id" (line of the test set, from 1), "system", "source", "reference" and "candidate".

        Raises:
            ValueError: if there is no such segment, or no output of the system.
        """
        if not number.isdecimal() or not 1 <= int(number) <= len(self.lines):
            raise ValueError(f"no segment {number} in {self.file.name}, which has {len(self.lines)}")
        line = self.lines[int(number) - 1]
        return {"segment_id": line + 1, **self.line(system, line)}

    def line(self, system: str, line: int) -> dict[str, Any]:
        """Return system, source, reference and candidate of a line, from 0; raise ValueError if there is no output."""
        system = RENAMED.get(system, system)
        column = self.outputs.get(system, [])
        candidate = column[line] if 0 <= line < len(column) else None
        if candidate is None:
            raise ValueError(f"no output of {system} for line {line + 1} in {self.file.name}")
        texts = {"source": self.sources[line], "reference": self.references[line], "candidate": candidate}
        return {"system": system, **texts}


def _domain(document: Any) -> str | None:
    """Return the domain of a document: an attribute, or in some language pairs the beginning of the id, `news_ru_12`."""
    start = str(document.get("id", "")).partition("_")[0]
    return document.get("domain") or (start if start in DOMAINS else None)


def _texts(element: Any, ids: Sequence[str | None]) -> list[str | None]:
    """Return the text of each segment of a source, reference or output; None for segments that it lacks."""
    segments = {} if element is None else {segment.get("id"): segment for segment in element.iter("seg")}
    return ["".join(segments[name].itertext()).strip() if name in segments else None for name in ids]
