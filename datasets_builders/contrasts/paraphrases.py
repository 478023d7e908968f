r"""Contrasts from a table of paraphrases: a sentence in two wordings, and both turned to say something else.

    bleurt-repro data paraphrases --output paraphrases.jsonl
    bleurt-repro data paraphrases --input mine.tsv --output paraphrases.jsonl

Templates turn a meaning in few ways. In free text it is turned by what is implied, too ("the last seat was taken", "there was
still room"). `paraphrases.tsv` holds such sentences, written for this purpose. Each of the four texts of a row is a reference of two
pairs: with the other wording that says the same, and with the one that says what the turned sentence says. So each text is right
as often as it is wrong, and only the reference tells which.
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
# `first` and `second` say the same in other words, and so do both turned.
COLUMNS = ("first", "second", "first_turned", "second_turned")


def make_paraphrase_pairs(table: str | Path = TABLE) -> list[Contrast]:
    """Make pairs of sentences in different words, of the same meaning or of another.

    Args:
        table: a file with the columns `COLUMNS`, in any form that `read_records` reads.

    Returns:
        eight rows for each of the table's, with "reference", "candidate", "score" in standard deviations of ratings, and "system":
        "contrast: paraphrase kept" or "contrast: paraphrase turned".

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and line, if a column is missing or blank, or two of a row's texts are the same; if there is no row.
    """
    made = list[Contrast]()
    for place, record in read_records(table):
        blank = [name for name in COLUMNS if not str(record.get(name) or "").strip()]
        if blank:
            raise ValueError(f"{table}, {place}: {', '.join(blank)} missing or blank; expected {', '.join(COLUMNS)}")
        first, second, first_turned, second_turned = texts = [str(record[name]) for name in COLUMNS]
        if len(set(texts)) < len(COLUMNS):
            raise ValueError(f"{table}, {place}: expected four different texts, found the same one twice")
        for reference, same, other in (
            (first, second, second_turned),
            (second, first, first_turned),
            (first_turned, second_turned, second),
            (second_turned, first_turned, first),
        ):
            made.append(contrast(reference, same, SAME, "paraphrase kept"))
            made.append(contrast(reference, other, SAME - CHANGED, "paraphrase turned"))
    if not made:
        raise ValueError(f"{table} has no rows: expected at least one with {', '.join(COLUMNS)}")
    return made


def paraphrase_file(output: str | Path, table: str | Path | None = None, overwrite: bool = False) -> dict[str, int]:
    """Write the pairs of a table as JSON lines.

    Args:
        output: file to write.
        table: as in `make_paraphrase_pairs`; default: `paraphrases.tsv` of the library.
        overwrite: replace a file that holds no contrasts, too.

    Returns:
        how many pairs of each kind there are.
    """
    place = chosen_contrasts(output, [table], overwrite)
    return write_contrasts(place, make_paraphrase_pairs(table or TABLE))
