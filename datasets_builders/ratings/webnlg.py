"""WebNLG 2017: ratings of fluency, grammar and semantics, split by system and by input (BLEURT, section 5.3, figure
3).

The ratings are those of https://gitlab.com/shimorina/webnlg-human-evaluation. The builder has one row per input and
system: 223 x 9 = 2,007. The paper counts 4,677 "sentence pairs, null values removed": pairs of a candidate and one of
its 1 to 3 references. Of the 2,007 outputs 193 are missing (168 of vietnam, 25 of tilburg-pipe); the others make 4,772
pairs, by `pairs_with_references`. We found no rule that gives 4,677, but the paper's training sets by system follow
from the 4,772:

| systems | pairs |
|---|---|
| two with all outputs | 2 x 587 = 1,174 |
| and vietnam (143) | 1,317 |
| and tilburg-pipe (520), and a third with all outputs | 2,424 |

`TRAINING_SYSTEMS` has such an order. By input the paper counts 224 where the data have 223, and gives 836, 1,445 and
2,689 records for 38, 66 and 122 of them; it does not name these inputs, so our numbers of records differ slightly.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets

from bleurt_repro.datasets_builders.fingerprints import fingerprint
from bleurt_repro.datasets_builders.ratings.builder import RatingsBuilder, Row
from bleurt_repro.datasets_builders.ratings.downloads import WEBNLG
from bleurt_repro.datasets_builders.ratings.splits import split_without_overlap
from bleurt_repro.metric.files.records import file_form, read_lines, read_records

ASPECTS = ("fluency", "grammar", "semantics")
# The team of the references, which were judged beside the nine systems.
HUMAN_TEAM = "webnlg"
RECORD_COLUMNS = ("input_id", "mr", "team", "candidate", "references_eval", *ASPECTS)
AVERAGED = "all_data_final_averaged.csv"
# Files of the official package.
PACKAGE = (AVERAGED, "MRs.txt", "sample-ids.txt", "gold-sample-reference0.lex", "...1.lex", "...2.lex")
# Texts in the official package that mark an output as missing.
NO_OUTPUT = ("", "null")

VERSION = datasets.Version("1.1.0")
CITATION = """\
@techreport{shimorina-etal-2018-webnlg,
  title = "{WebNLG} Challenge: Human Evaluation Results",
  author = "Shimorina, Anastasia and Gardent, Claire and Narayan, Shashi and Perez-Beltrachini, Laura",
  institution = "Loria & Inria Grand Est",
  year = "2018",
  url = "https://hal.science/hal-03007072"
}
"""
# Numbers of training systems and inputs in BLEURT, figure 3.
PAPER_SYSTEMS = (0, 2, 3, 5)
PAPER_INPUTS = (0, 38, 66, 122)
# The paper does not name its systems; the first 2, 3 and 5 of these give its numbers of pairs.
TRAINING_SYSTEMS = (
    "adapt",
    "baseline",
    "vietnam",
    "tilburg-pipe",
    "melbourne",
    "pkuwriter",
    "tilburg-nmt",
    "tilburg-smt",
    "upf-forge",
)
VALIDATION_RATIO = 0.10  # the paper gives a ratio for WMT alone (section B.2); this is that of 2017

WEBNLG_FEATURES = datasets.Features(
    {
        "segment_id": datasets.Value("int64"),  # line of the input in the test set of the challenge, from 1
        "system": datasets.Value("string"),
        "source": datasets.Value("string"),  # RDF triples: subject | predicate | object, joined by <br>
        # 1 to 3 references, lower-cased and tokenised as the candidates are
        "references": datasets.List(datasets.Value("string")),
        # the references as written, if the source has them
        "references_text": datasets.List(datasets.Value("string")),
        "candidate": datasets.Value("string"),
        **{aspect: datasets.Value("float64") for aspect in ASPECTS},  # mean of the judges, 1 to 3
        "missing_output": datasets.Value("bool"),
        "category": datasets.Value("string"),
        "seen": datasets.Value("bool"),
        "triples": datasets.Value("int32"),
    }
)


@dataclass
class WebNlgConfig(datasets.BuilderConfig):
    """Options of the splits; see `split_by_system` and `split_by_input`."""

    version: datasets.Version = VERSION
    training_systems: int = PAPER_SYSTEMS[-1]
    training_inputs: int = PAPER_INPUTS[-1]
    validation_ratio: float = VALIDATION_RATIO
    seed: int = 0
    drop_missing_outputs: bool = False
    fingerprint: str = ""


class WebNlgRatings(RatingsBuilder):
    """Ratings of nine data-to-text systems over 223 inputs.

    Args:
        config_name: "all" (the only split is test), "by_system" or "by_input" (train, validation, test).
        data_dir: folder with the official package, or with records, see `read_webnlg`; default: the package is
            downloaded.
        options: fields of `WebNlgConfig`, and arguments of `datasets.DatasetBuilder` such as cache_dir.

    Example:
        >>> WebNlgRatings("by_input", training_inputs=38).splits()["train"]  # doctest: +SKIP
    """

    DATASET_NAME = "webnlg_ratings"
    VERSION = VERSION
    BUILDER_CONFIG_CLASS = WebNlgConfig
    BUILDER_CONFIGS = [WebNlgConfig(name=name) for name in ("all", "by_system", "by_input")]
    DEFAULT_CONFIG_NAME = "all"

    def __init__(self, config_name: str | None = None, *, data_dir: str | Path | None = None, **options: Any) -> None:
        options["fingerprint"] = fingerprint(webnlg_files(data_dir) if data_dir is not None else [])
        super().__init__(config_name, data_dir=data_dir, **options)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Human ratings of the fluency, grammar and semantics of texts in the WebNLG challenge 2017.",
            features=WEBNLG_FEATURES,
            homepage="https://gitlab.com/shimorina/webnlg-human-evaluation",
            license="the official package states none",
            citation=CITATION,
        )

    def splits(self) -> dict[str, list[Row]]:
        """Return the rows of each split, without writing anything but the download."""
        config = self.config
        folder = self.download([WEBNLG])[0] if config.data_dir is None else config.data_dir
        rows = [row for row in read_webnlg(folder) if not (config.drop_missing_outputs and row["missing_output"])]
        if config.name == "by_system":
            return split_by_system(rows, config.training_systems, config.validation_ratio, config.seed)
        if config.name == "by_input":
            return split_by_input(rows, config.training_inputs, config.validation_ratio, config.seed)
        return {"test": rows}


def read_webnlg(data_dir: str | Path) -> list[Row]:
    """Read the mean ratings of the nine systems.

    Args:
        data_dir: folder with the official package; or a file of records, or a folder with one, with the columns
            `RECORD_COLUMNS` and, optionally, references, category, seen, triplesize.

    Returns:
        Dicts with the columns of `WEBNLG_FEATURES`, ordered by input and system.

    Raises:
        FileNotFoundError: if there are no ratings; the message says what was looked for.
        ValueError: if a record is malformed; the message names file and line.
    """
    files = webnlg_files(data_dir)
    if files[0].name == AVERAGED:
        rows = list(_package_rows(files[0].parent))
    else:
        rows = [_row(f"{files[0]}, {line}", record) for line, record in read_records(files[0])]
    rows = [row for row in rows if row["system"] != HUMAN_TEAM]
    return sorted(rows, key=lambda row: (row["segment_id"], row["system"]))


def webnlg_files(data_dir: str | Path) -> list[Path]:
    """Return the files that `read_webnlg` reads; errors are those of `read_webnlg`."""
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
    for line, record in read_records(package / AVERAGED):
        location = f"{package / AVERAGED}, {line}"
        if (index := inputs.get(str(record.get("mr")).strip())) is None:
            raise ValueError(f"{location}: its mr is not in MRs.txt")
        candidate = record.get("text", "").strip()
        additional = {
            "input_id": input_ids[index],
            "references_eval": [column[index] for column in references if column[index]],
            "candidate": candidate,
            "missing_output": candidate in NO_OUTPUT,
            "seen": record.get("type"),
        }
        yield _row(location, {**record, **additional})


def _reference_files(package: Path) -> list[Path]:
    return sorted(package.glob("gold-sample-reference*.lex"))


def _row(location: str, record: Mapping[str, Any]) -> Row:
    if missing := [name for name in RECORD_COLUMNS if record.get(name) is None]:
        raise ValueError(f"{location}: no {', '.join(missing)}; expected {', '.join(RECORD_COLUMNS)}")
    if not record["references_eval"]:
        raise ValueError(f"{location}: no reference")
    try:
        numbers: Row = {name: float(record[name]) for name in ASPECTS} | {"segment_id": int(record["input_id"])}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{location}: {', '.join(ASPECTS)} and input_id must be numbers ({error})") from error
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
    return [line.strip() for line in read_lines(file)]


def split_by_system(
    rows: Sequence[Row], training_systems: int, validation_ratio: float = VALIDATION_RATIO, seed: int = 0
) -> dict[str, list[Row]]:
    """Train on some systems and test on the others, both on all inputs.

    Args:
        rows: result of `read_webnlg`.
        training_systems: number of `TRAINING_SYSTEMS` to train on; the paper has 0, 2, 3 and 5.
        validation_ratio: share of the training rows to validate on; they have other inputs than the rest of them.
        seed: seed of the choice of validation rows.

    Returns:
        "train", "validation" and "test", those that are not empty.

    Raises:
        ValueError: if there are not that many systems, or a system is unknown.
    """
    systems = {row["system"] for row in rows}
    if unknown := systems - set(TRAINING_SYSTEMS):
        raise ValueError(f"unknown systems {', '.join(sorted(unknown))}; expected {', '.join(TRAINING_SYSTEMS)}")
    return _split(rows, "system", TRAINING_SYSTEMS, training_systems, validation_ratio, seed)


def split_by_input(
    rows: Sequence[Row], training_inputs: int, validation_ratio: float = VALIDATION_RATIO, seed: int = 0
) -> dict[str, list[Row]]:
    """Train on some inputs and test on the others, both with all systems.

    Args:
        rows: result of `read_webnlg`.
        training_inputs: number of inputs to train on; the paper has 0, 38, 66 and 122. Larger sets include smaller
            ones.
        validation_ratio: share of the training rows to validate on; they have other inputs than the rest of them.
        seed: seed of the choice of inputs and of validation rows.

    Returns:
        "train", "validation" and "test", those that are not empty.

    Raises:
        ValueError: if there are not that many inputs.
    """
    inputs = sorted({row["segment_id"] for row in rows})
    random.Random(seed).shuffle(inputs)
    return _split(rows, "segment_id", inputs, training_inputs, validation_ratio, seed)


def pairs_with_references(rows: Iterable[Row], aspect: str) -> list[Row]:
    """Return one rating per reference, as the paper fine-tunes on them.

    Args:
        rows: rows of the builder.
        aspect: "fluency", "grammar" or "semantics", which becomes the score.

    Returns:
        Dicts with segment_id, system, source, reference, candidate and score; missing outputs are left out.

    Raises:
        ValueError: if the aspect is unknown.
    """
    if aspect not in ASPECTS:
        raise ValueError(f"the aspect must be one of {', '.join(ASPECTS)}, found {aspect!r}")
    same = ("segment_id", "system", "source", "candidate")
    return [
        {**{name: row[name] for name in same}, "reference": reference, "score": row[aspect]}
        for row in rows
        if not row["missing_output"]
        for reference in row["references"]
    ]


def _split(
    rows: Sequence[Row], column: str, order: Sequence[Any], number: int, validation_ratio: float, seed: int
) -> dict[str, list[Row]]:
    if not 0 <= number <= len(order):
        raise ValueError(f"cannot train on {number} of {len(order)} values of {column}")
    chosen = set(order[:number])
    training = [row for row in rows if row[column] in chosen]
    train, validation = split_without_overlap(training, validation_ratio, seed, ("source", "references"))
    splits = {
        "train": [training[i] for i in train],
        "validation": [training[i] for i in validation],
        "test": [row for row in rows if row[column] not in chosen],
    }
    return {name: members for name, members in splits.items() if members}
