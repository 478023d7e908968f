r"""Contrasts from a table of paraphrases: a sentence in two wordings, and both changed to mean something else.

    bleurt-repro data paraphrases --output paraphrases.jsonl
    bleurt-repro data paraphrases --input mine.tsv --output paraphrases.jsonl

Templates change a meaning in few ways. In free text it also changes by what is implied ("the last seat was taken",
"there was still room"). `paraphrases.tsv` has such sentences, written for this purpose. Each of the four texts of a
row is the reference of two pairs: with the other wording of the same meaning, and with a wording of the other meaning.
So each text is right as often as it is wrong, and only the reference tells which.
"""

from __future__ import annotations

from pathlib import Path

from bleurt_repro.datasets_builders.contrasts import (
    CHANGED,
    SAME,
    Contrast,
    chosen_contrasts,
    contrast,
    write_contrasts,
)
from bleurt_repro.metric.files.records import read_records

TABLE = Path(__file__).with_name("paraphrases.tsv")
# `first` and `second` are paraphrases, and so are `first_turned` and `second_turned`, which mean something else.
COLUMNS = ("first", "second", "first_turned", "second_turned")


def make_paraphrase_pairs(table: str | Path = TABLE) -> list[Contrast]:
    """Make pairs of sentences in different words, of the same meaning or of another.

    Args:
        table: file with the columns `COLUMNS`, in any format that `read_records` reads.

    Returns:
        Eight rows per row of the table, with "reference", "candidate", "score" in standard deviations of ratings, and
        "system": "contrast: paraphrase kept" or "contrast: paraphrase turned".

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the table has no rows, a column is missing or blank, or two texts of a row are the same; the
            message names file and line.
    """
    contrasts = list[Contrast]()
    for line, record in read_records(table):
        blank = [name for name in COLUMNS if not str(record.get(name) or "").strip()]
        if blank:
            raise ValueError(f"{table}, {line}: {', '.join(blank)} missing or blank; expected {', '.join(COLUMNS)}")
        first, second, first_turned, second_turned = texts = [str(record[name]) for name in COLUMNS]
        if len(set(texts)) < len(COLUMNS):
            raise ValueError(f"{table}, {line}: expected four different texts, found the same text twice")
        for reference, paraphrase, turned in (
            (first, second, second_turned),
            (second, first, first_turned),
            (first_turned, second_turned, second),
            (second_turned, first_turned, first),
        ):
            contrasts.append(contrast(reference, paraphrase, SAME, "paraphrase kept"))
            contrasts.append(contrast(reference, turned, SAME - CHANGED, "paraphrase turned"))
    if not contrasts:
        raise ValueError(f"{table} has no rows: expected at least one with {', '.join(COLUMNS)}")
    return contrasts


def paraphrase_file(output: str | Path, table: str | Path | None = None, overwrite: bool = False) -> dict[str, int]:
    """Write the pairs of a table as JSON lines.

    Args:
        output: file to write.
        table: as in `make_paraphrase_pairs`; default: `paraphrases.tsv` of the library.
        overwrite: as in `chosen_contrasts`.

    Returns:
        The number of pairs of each kind.
    """
    path = chosen_contrasts(output, [table], overwrite)
    return write_contrasts(path, make_paraphrase_pairs(table or TABLE))
