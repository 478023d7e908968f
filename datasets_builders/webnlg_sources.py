"""Read the human evaluation of WebNLG 2017 (https://gitlab.com/shimorina/webnlg-human-evaluation)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bleurt_repro.datasets_builders.record_files import file_form, read_records

ASPECTS = ("fluency", "grammar", "semantics")
# The team of the references, which were judged beside the nine systems.
HUMAN_TEAM = "webnlg"
RECORD_COLUMNS = ("input_id", "mr", "team", "candidate", "references_eval", *ASPECTS)
AVERAGED = "all_data_final_averaged.csv"
PACKAGE = (AVERAGED, "MRs.txt", "sample-ids.txt", "gold-sample-reference0.lex", "...1.lex", "...2.lex")
# What the official package has in place of an output that a system did not give.
NO_OUTPUT = ("", "null")

Row = dict[str, Any]


def read_webnlg(data_dir: str | Path) -> list[Row]:
    """Read the mean ratings of the nine systems.

    Args:
        data_dir: the official package; or a folder with one file of records (or that file) with the columns
            `RECORD_COLUMNS`, and if they are there references, category, seen, triplesize.

    Returns:
        dicts with the columns of `webnlg_ratings.WEBNLG_FEATURES`, ordered by input and system.

    Raises:
        FileNotFoundError: saying what was looked for.
        ValueError: naming file and line of a bad record.
    """
    files = webnlg_files(data_dir)
    if files[0].name == AVERAGED:
        rows = list(_package_rows(files[0].parent))
    else:
        rows = [_row(f"{files[0]}, {place}", record) for place, record in read_records(files[0])]
    rows = [row for row in rows if row["system"] != HUMAN_TEAM]
    return sorted(rows, key=lambda row: (row["segment_id"], row["system"]))


def webnlg_files(data_dir: str | Path) -> list[Path]:
    """Find the files that `read_webnlg` reads; its errors are those of `read_webnlg`."""
    folder = Path(data_dir)
    if averaged := sorted(folder.rglob(AVERAGED)) if folder.is_dir() else []:
        package = averaged[0].parent
        return [averaged[0], *(package / name for name in ("MRs.txt", "sample-ids.txt")), *_reference_files(package)]
    files = [folder] if folder.is_file() else sorted(folder.iterdir()) if folder.is_dir() else []
    files = [file for file in files if file.is_file() and file_form(file) and _is_mean_ratings(file)]
    if len(files) != 1:
        raise FileNotFoundError(
            f"{len(files) or 'no'} files of WebNLG ratings in {data_dir}: looked for one file of records with "
            f"{', '.join(RECORD_COLUMNS)}, and for the official {', '.join(PACKAGE)} in any folder below"
        )
    return files


def _is_mean_ratings(file: Path) -> bool:
    _, record = next(read_records(file), ("", {}))
    return all(name in record for name in RECORD_COLUMNS)


def _package_rows(package: Path) -> Iterator[Row]:
    inputs = {mr: index for index, mr in enumerate(_lines(package / "MRs.txt"))}
    input_ids = _lines(package / "sample-ids.txt")
    references = [_lines(file) for file in _reference_files(package)]
    if len({len(inputs), len(input_ids), *map(len, references)}) > 1:
        raise ValueError(f"{package}: MRs.txt, sample-ids.txt and gold-sample-reference*.lex must be equally long")
    for place, record in read_records(package / AVERAGED):
        place = f"{package / AVERAGED}, {place}"
        if (index := inputs.get(str(record.get("mr")).strip())) is None:
            raise ValueError(f"{place}: its mr is not in MRs.txt")
        candidate = record.get("text", "").strip()
        more = {
            "input_id": input_ids[index],
            "references_eval": [column[index] for column in references if column[index]],
            "candidate": candidate,
            "missing_output": candidate in NO_OUTPUT,
            "seen": record.get("type"),
        }
        yield _row(place, {**record, **more})


def _reference_files(package: Path) -> list[Path]:
    return sorted(package.glob("gold-sample-reference*.lex"))


def _row(place: str, record: Mapping[str, Any]) -> Row:
    if missing := [name for name in RECORD_COLUMNS if record.get(name) is None]:
        raise ValueError(f"{place}: no {', '.join(missing)}; expected {', '.join(RECORD_COLUMNS)}")
    if not record["references_eval"]:
        raise ValueError(f"{place}: no reference")
    try:
        numbers: Row = {name: float(record[name]) for name in ASPECTS} | {"segment_id": int(record["input_id"])}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {', '.join(ASPECTS)} and input_id must be numbers ({error})") from error
    triples = re.match(r"\d+", str(record.get("triplesize") or ""))
    return {
        "system": record["team"],
        "source": record["mr"],
        "references": list(record["references_eval"]),
        "references_text": list(record.get("references") or []),
        "candidate": record["candidate"],
        "missing_output": bool(record.get("missing_output", record["candidate"] in NO_OUTPUT)),
        "category": record.get("category"),
        "seen": None if record.get("seen") is None else record["seen"] == "seen",
        "triples": int(triples[0]) if triples else None,
        **numbers,
    }


def _lines(file: Path) -> list[str]:
    if not file.is_file():
        raise FileNotFoundError(f"no file {file}: the official package has {', '.join(PACKAGE)}")
    try:
        return [line.strip() for line in file.read_text(encoding="utf-8").removesuffix("\n").split("\n")]
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: not UTF-8 ({error.reason} at byte {error.start})") from error
