"""Expert ratings of WMT as a `datasets` builder: errors marked by professional translators (MQM).

The ratings are those of https://github.com/google/wmt-mqm-human-evaluation: minus the weights of the errors that
translators marked in a segment, with the context of the whole document: 5 for a major error, 1 for a minor one, 0.1
for minor punctuation, 25 for a text that is no translation. They are fewer and much less noisy than crowd ratings, so
use them to test, not to train.

The news of 2021 are read from the released averages, and their texts from
https://github.com/wmt-conference/wmt21-news-systems. The other sets are read from the marked errors, which have the
texts and the references too.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets
import numpy as np

from bleurt_repro.datasets_builders.fingerprints import fingerprint
from bleurt_repro.datasets_builders.ratings.builder import RatingsBuilder, Row
from bleurt_repro.datasets_builders.ratings.downloads import MQM, WMT21, Source
from bleurt_repro.datasets_builders.ratings.rating_files import Rating, rating_records, ratings_features
from bleurt_repro.datasets_builders.ratings.wmt_archives import index_files, read_lines
from bleurt_repro.datasets_builders.ratings.wmt_sources import ALIASES, REQUIRED_COLUMNS
from bleurt_repro.datasets_builders.ratings.wmt_xml import XmlTexts
from bleurt_repro.metric.files.records import text_lines
from bleurt_repro.metric.statistics import standardise

YEAR = 2021
# Translator of the standard reference of each language pair.
REFERENCES = {"zh-en": "A", "en-de": "C"}
# References that were rated as translations, and systems whose outputs are not public.
NO_SYSTEMS = re.compile(r"ref-?.|metricsystem\d")
# Sets with marked errors: file in the repository, year, and translator of the standard reference. The first reference
# of the TED talks from Chinese is poor: 5.5 points of errors per segment, more than any system.
MARKED = {
    "2020-zh-en": ("newstest2020/zhen/mqm_newstest2020_zhen.tsv", 2020, "A"),
    "2020-en-de": ("newstest2020/ende/mqm_newstest2020_ende.tsv", 2020, "A"),
    "ted-zh-en": ("ted/zhen/mqm_ted_zhen.tsv", 2021, "B"),
    "ted-en-de": ("ted/ende/mqm_ted_ende.tsv", 2021, "A"),
    "2022-zh-en": ("generalMT2022/zhen/mqm_generalMT2022_zhen.tsv", 2022, "A"),
    "2022-en-de": ("generalMT2022/ende/mqm_generalMT2022_ende.tsv", 2022, "A"),
}
CONFIGURATIONS = (*REFERENCES, *MARKED)
# References among the rated systems, with the letter of their translator: ref, refB, ref.A, ref-C, Human-A.0.
TRANSLATOR = re.compile(r"(?:ref|human)[-.]?([a-z]?)(?:\.0)?", re.IGNORECASE)
SEVERITIES = {"major": 5.0, "minor": 1.0, "neutral": 0.0, "no-error": 0.0}
NON_TRANSLATION, MINOR_PUNCTUATION = 25.0, 0.1
MARKER = re.compile(r"<v>(.*?)</v>")
MARKED_COLUMNS = ("system", "seg_id", "rater", "source", "target", "category", "severity")
SPAN_TYPES = {
    "start": datasets.Value("int32"),
    "end": datasets.Value("int32"),
    **{name: datasets.Value("string") for name in ("side", "severity", "category", "rater")},
}
CITATION = """\
@article{freitag-etal-2021-experts, title = "Experts, Errors, and Context: A Large-Scale Study of Human Evaluation for
  Machine Translation", author = "Freitag, Markus and Foster, George and Grangier, David and Ratnakar, Viresh and Tan,
  Qijun and Macherey, Wolfgang", journal = "Transactions of the Association for Computational Linguistics", volume =
  "9", year = "2021", url = "https://aclanthology.org/2021.tacl-1.87"
}
"""


def scores_file(lp: str) -> str:
    """Return the name of the file of scores of a language pair."""
    return f"mqm_newstest{YEAR}_{lp.replace('-', '')}.avg_seg_scores.tsv"


def mqm_sources(name: str) -> list[Source]:
    """Return the files of a configuration: marked errors, or scores and texts."""
    if name in MARKED:
        path = MARKED[name][0]
        return [Source(f"{MQM}/{path}", f"mqm/{path}")]
    lp = name
    scores = f"newstest{YEAR}/{lp.replace('-', '')}/{scores_file(lp)}"
    texts = f"xml/newstest{YEAR}.{lp}.all.xml"
    return [Source(f"{MQM}/{scores}", f"mqm/{scores}"), Source(f"{WMT21}/{texts}", f"wmt21/{texts}")]


@dataclass
class MqmConfig(datasets.BuilderConfig):
    """Options of `MqmRatings`."""

    version: datasets.Version = datasets.Version("1.1.0")
    # Hash of data and code: without it, the cache of `datasets` would return old rows.
    fingerprint: str = ""


class MqmRatings(RatingsBuilder):
    """Expert ratings of WMT, the first half of the segments for validation, the second for testing.

    The sets of `MARKED` have a further column "spans", the marked errors: start and end (exclusive) in the candidate,
    or in the source if "side" is "source", severity, category and rater. An error without a place has None there.

    Args:
        config_name: "zh-en" or "en-de" for the news of 2021, or a key of `MARKED`.
        data_dir: folder with the repositories, or with the files of `mqm_sources`; or a file of ratings that has the
            rows already; default: the files are downloaded.
        options: arguments of `datasets.DatasetBuilder`, such as cache_dir.

    Example:
        >>> MqmRatings("zh-en").splits()["test"]  # doctest: +SKIP
    """

    DATASET_NAME = "mqm_ratings"
    VERSION = datasets.Version("1.1.0")
    BUILDER_CONFIG_CLASS = MqmConfig
    BUILDER_CONFIGS = [MqmConfig(name=name) for name in CONFIGURATIONS]

    def __init__(self, config_name: str | None = None, *, data_dir: str | Path | None = None, **options: Any) -> None:
        files = []
        if data_dir is not None:
            names = ("mqm_*.tsv*", "*.all.xml*")
            files = sorted(path for name in names for path in Path(data_dir).rglob(name))
            files = [Path(data_dir)] if Path(data_dir).is_file() else files
        super().__init__(config_name, data_dir=data_dir, fingerprint=fingerprint(files), **options)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Expert ratings (MQM) of machine translation from WMT.",
            features=mqm_features(self.config.name),
            homepage="https://github.com/google/wmt-mqm-human-evaluation",
            license="apache-2.0; the texts are published for research by the organisers of WMT, without a licence",
            citation=CITATION,
        )

    def splits(self) -> dict[str, list[Row]]:
        """Return the rows of each split, without writing anything but downloads."""
        config = self.config
        if config.data_dir is not None and Path(config.data_dir).is_file():
            ratings = rating_records(config.data_dir, REQUIRED_COLUMNS, ALIASES)
            return split_by_segment([rating for rating in ratings if rating["lp"] == config.name])
        folders = self.download(mqm_sources(config.name)) if config.data_dir is None else [Path(config.data_dir)]
        reader = read_marked if config.name in MARKED else read_mqm
        return split_by_segment(reader(folders, config.name))


def mqm_features(name: str) -> datasets.Features:
    """Return the types of the columns of a configuration."""
    spans = {"spans": [SPAN_TYPES]} if name in MARKED else {}
    return datasets.Features({**ratings_features(), **spans})


def read_mqm(folders: list[Path], lp: str) -> list[Rating]:
    """Read the released averages of a language pair of 2021.

    Args:
        folders: folders that have the files of `mqm_sources` anywhere below.
        lp: "zh-en" or "en-de".

    Returns: Ratings with the columns `rating_files.RATING_COLUMNS`. "raw_score" is minus the weight of the errors,
        "score" the same with mean 0 and standard deviation 1.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a line is malformed, or a segment has no output; the message names file and line.
    """
    files = index_files(folders)
    file = _find(files, scores_file(lp), folders)
    texts = XmlTexts(files, YEAR, lp, translator=REFERENCES[lp])
    rows = []
    for system, segment_id, raw_score, location in _scores(file):
        try:
            rows.append({"segment_id": segment_id, "raw_score": raw_score, **texts.line(system, segment_id - 1)})
        except ValueError as error:
            raise ValueError(f"{location}: {error}") from error
    return _standardised([{"year": YEAR, "lp": lp, "n_annotations": None, **row} for row in rows])


def read_marked(folders: list[Path], name: str) -> list[Rating]:
    """Read the marked errors of a set, and compute the scores.

    Outputs of a segment without the standard reference are left out, with a warning that counts them.

    Args:
        folders: folders that have the file of `mqm_sources` anywhere below.
        name: key of `MARKED`.

    Returns: Ratings as of `read_mqm`, averaged over raters, with "spans".

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if a line is malformed; the message names file and line.
    """
    path, year, translator = MARKED[name]
    file = _find(index_files(folders), Path(path).name, folders)
    outputs: dict[tuple[int, str], MarkedOutput] = {}
    references: dict[int, str] = {}
    for record in _marked_errors(file):
        segment_id, target = record["seg_id"], MARKER.sub(r"\1", record["target"])
        if match := TRANSLATOR.fullmatch(record["system"]):
            if (match[1] or "A").upper() == translator:
                references[segment_id] = target
            continue
        source = MARKER.sub(r"\1", record["source"])
        output = outputs.setdefault((segment_id, record["system"]), MarkedOutput(source, target))
        output.weights[record["rater"]] = output.weights.get(record["rater"], 0.0) + record["weight"]
        output.spans += _spans(record)
    rows = [
        {
            "year": year,
            "lp": name[-5:],
            "segment_id": segment_id,
            "system": system,
            "source": output.source,
            "reference": references[segment_id],
            "candidate": output.candidate,
            "raw_score": -sum(output.weights.values()) / len(output.weights),
            "n_annotations": len(output.weights),
            "spans": output.spans,
        }
        for (segment_id, system), output in outputs.items()
        if segment_id in references
    ]
    if len(rows) < len(outputs):
        count = len(outputs) - len(rows)
        warnings.warn(f"{file}: left out {count} outputs without reference {translator}", stacklevel=2)
    return _standardised(rows)


@dataclass
class MarkedOutput:
    """An output: its texts, the weight of the errors by rater, and the marked errors."""

    source: str
    candidate: str
    weights: dict[str, float] = field(default_factory=dict)
    spans: list[dict[str, Any]] = field(default_factory=list)


def _find(files: Mapping[str, list[Path]], name: str, folders: list[Path]) -> Path:
    if name not in files:
        raise FileNotFoundError(f"no file {name} in {', '.join(map(str, folders))}")
    return files[name][0]


def _standardised(rows: list[Row]) -> list[Rating]:
    scores = standardise(np.array([row["raw_score"] for row in rows]))
    return [{**row, "score": float(score)} for row, score in zip(rows, scores, strict=True)]


def _marked_errors(file: Path) -> Iterator[Row]:
    """Yield the columns `MARKED_COLUMNS` of each line, and the weight of its error."""
    lines = enumerate(text_lines(file), start=1)
    # The file of 2022 numbers segments within documents as well.
    header = [{"globalSegId": "seg_id"}.get(name, name) for name in next(lines, (0, ""))[1].split("\t")]
    if missing := [name for name in MARKED_COLUMNS if name not in header]:
        raise ValueError(f"{file}: no column {', '.join(missing)}; found {', '.join(header)}")
    for number, line in lines:
        record: Row = dict(zip(header, line.split("\t"), strict=False))
        if len(record) <= header.index("severity") or not record["seg_id"].isdecimal():
            raise ValueError(f"{file}, line {number}: expected {', '.join(MARKED_COLUMNS)}, found {line[:80]!r}")
        try:
            record["weight"] = error_weight(record["category"], record["severity"])
        except ValueError as error:
            raise ValueError(f"{file}, line {number}: {error}") from error
        yield {**record, "seg_id": int(record["seg_id"])}


def error_weight(category: str, severity: str) -> float:
    """Return the weight of an error (Freitag et al., 2021, table 4); raise ValueError if the severity is unknown."""
    category, severity = category.strip().lower(), severity.strip().lower().replace(" ", "-")
    if severity not in SEVERITIES:
        raise ValueError(f"expected a severity ({', '.join(SEVERITIES)}), found {severity!r}")
    if category.startswith("non-translation"):
        return NON_TRANSLATION
    if severity == "minor" and category.startswith("fluency/punctuation"):
        return MINOR_PUNCTUATION
    return SEVERITIES[severity]


def _spans(record: Row) -> list[dict[str, Any]]:
    """Return the place of a line's error; nothing for a line that says that there is no error."""
    if record["category"].strip().lower().replace(" ", "-") == "no-error":
        return []
    side = "source" if "<v>" in record["source"] else "target"
    match = MARKER.search(record[side])
    start = match.start() if match else None
    end = match.start() + len(match[1]) if match else None
    return [{"start": start, "end": end, "side": side, **{n: record[n] for n in ("severity", "category", "rater")}}]


def _scores(file: Path) -> Iterator[tuple[str, int, float, str]]:
    """Yield system, line of the test set from 1, score, and location in the file of each rated output."""
    for number, line in enumerate(read_lines(file)[1:], start=2):
        fields = line.split()
        location = f"{file}, line {number}"
        if len(fields) != 3 or not fields[2].isdecimal():
            raise ValueError(f"{location}: expected system, score and segment, found {line[:80]!r}")
        if fields[1] != "None" and not NO_SYSTEMS.fullmatch(fields[0]):
            try:
                yield fields[0], int(fields[2]), float(fields[1]), location
            except ValueError as error:
                raise ValueError(f"{location}: expected a number as the score, found {fields[1]!r}") from error


def split_by_segment(ratings: list[Rating]) -> dict[str, list[Rating]]:
    """Divide ratings into validation and test: the first and the second half of the rated segments."""
    segments = sorted({rating["segment_id"] for rating in ratings})
    first_of_test = segments[len(segments) // 2]
    return {
        "validation": [rating for rating in ratings if rating["segment_id"] < first_of_test],
        "test": [rating for rating in ratings if rating["segment_id"] >= first_of_test],
    }
