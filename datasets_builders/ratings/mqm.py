"""Expert ratings of WMT 2021 as a `datasets` builder: errors marked by professional translators (MQM).

The scores are the released averages of https://github.com/google/wmt-mqm-human-evaluation: minus the weights of the
errors that translators marked in a segment, with the context of the whole document: 5 for a major error, 1 for a minor
one, 0.1 for minor punctuation, 25 for a text that is no translation. They are fewer and much less noisy than crowd
ratings, so use them to test, not to train. The texts are those of
https://github.com/wmt-conference/wmt21-news-systems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np

from bleurt_repro.datasets_builders.fingerprints import fingerprint
from bleurt_repro.datasets_builders.ratings.builder import RatingsBuilder, Row
from bleurt_repro.datasets_builders.ratings.downloads import MQM, WMT21, Source
from bleurt_repro.datasets_builders.ratings.rating_files import Rating, ratings_features
from bleurt_repro.datasets_builders.ratings.wmt_archives import index_files, read_lines
from bleurt_repro.datasets_builders.ratings.wmt_xml import XmlTexts
from bleurt_repro.metric.statistics import standardise

YEAR = 2021
# Translator of the standard reference of each language pair.
REFERENCES = {"zh-en": "A", "en-de": "C"}
# References that were rated as translations, and systems whose outputs are not public.
NO_SYSTEMS = re.compile(r"ref-?.|metricsystem\d")
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


def mqm_sources(lp: str) -> list[Source]:
    """Return the files of scores and of texts of a language pair."""
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
    """Expert ratings of WMT 2021, the first half of the segments for validation, the second for testing.

    Args:
        config_name: language pair, "zh-en" or "en-de".
        data_dir: folder with both repositories, or with the files of `mqm_sources`; default: they are downloaded.
        options: arguments of `datasets.DatasetBuilder`, such as cache_dir.

    Example:
        >>> MqmRatings("zh-en").splits()["test"]  # doctest: +SKIP
    """

    DATASET_NAME = "mqm_ratings"
    VERSION = datasets.Version("1.1.0")
    BUILDER_CONFIG_CLASS = MqmConfig
    BUILDER_CONFIGS = [MqmConfig(name=lp) for lp in REFERENCES]

    def __init__(self, config_name: str | None = None, *, data_dir: str | Path | None = None, **options: Any) -> None:
        names = ("*.avg_seg_scores.tsv*", "*.all.xml*")
        files = [] if data_dir is None else sorted(path for name in names for path in Path(data_dir).rglob(name))
        super().__init__(config_name, data_dir=data_dir, fingerprint=fingerprint(files), **options)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Expert ratings (MQM) of machine translation from WMT 2021.",
            features=ratings_features(),
            homepage="https://github.com/google/wmt-mqm-human-evaluation",
            license="apache-2.0; the texts are published for research by the organisers of WMT, without a licence",
            citation=CITATION,
        )

    def splits(self) -> dict[str, list[Row]]:
        """Return the rows of each split, without writing anything but downloads."""
        config = self.config
        folders = self.download(mqm_sources(config.name)) if config.data_dir is None else [Path(config.data_dir)]
        return split_by_segment(read_mqm(folders, config.name))


def read_mqm(folders: list[Path], lp: str) -> list[Rating]:
    """Read the expert ratings of a language pair.

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
    if scores_file(lp) not in files:
        raise FileNotFoundError(f"no file {scores_file(lp)} in {', '.join(map(str, folders))}")
    texts = XmlTexts(files, YEAR, lp, translator=REFERENCES[lp])
    rows = []
    for system, segment_id, raw_score, location in _scores(files[scores_file(lp)][0]):
        try:
            rows.append({"segment_id": segment_id, "raw_score": raw_score, **texts.line(system, segment_id - 1)})
        except ValueError as error:
            raise ValueError(f"{location}: {error}") from error
    scores = standardise(np.array([row["raw_score"] for row in rows]))
    return [
        {"year": YEAR, "lp": lp, "n_annotations": None, **row, "score": float(score)}
        for row, score in zip(rows, scores, strict=True)
    ]


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
