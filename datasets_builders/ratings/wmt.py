"""Ratings of WMT (direct assessments) as a `datasets` builder, split by target year as in BLEURT, sections 5.1 and
B.2.

`WmtRatings` is the builder; `WmtBuilder` is its base, and that of relative ranks. The ratings are downloaded from the
official sources (`downloads`), or read from local files or from the Hub (`wmt_sources`).
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import datasets

from bleurt_repro.datasets_builders import CITATION
from bleurt_repro.datasets_builders.ratings.builder import RatingsBuilder
from bleurt_repro.datasets_builders.ratings.downloads import wmt_sources
from bleurt_repro.datasets_builders.ratings.rating_files import RATING_COLUMNS, Rating, ratings_features
from bleurt_repro.datasets_builders.ratings.splits import split_without_overlap
from bleurt_repro.datasets_builders.ratings.wmt_archives import index_files
from bleurt_repro.datasets_builders.ratings.wmt_sources import TO_ENGLISH, read_wmt, source_fingerprint
from bleurt_repro.datasets_builders.ratings.wmt_xml import XmlTexts

FIRST_YEAR, LAST_YEAR = 2015, 2022
TARGET_YEARS = tuple(str(year) for year in range(FIRST_YEAR + 1, LAST_YEAR + 1))
EVERY_YEAR = "all"
BY_DOCUMENT = "2022-by-document"
# BLEURT, section B.2: 10 % for 2017 and 2018, 5 % for 2019, whose training set is larger.
VALIDATION_RATIOS = {"2016": 0.10, "2017": 0.10, "2018": 0.10}
LATER_VALIDATION_RATIO = 0.05
# Submissions of WMT 2017 end in their number, and several with the same output are joined, as in "a.123+b.45".
MERGED_SYSTEMS = re.compile(r"[^+]+\.\d+(?:\+[^+]+\.\d+)+")
RATING_FEATURES = ratings_features()
BY_DOCUMENT_FEATURES = datasets.Features({**RATING_FEATURES, "domain": datasets.Value("string")})
UNKNOWN_DOMAIN = "unknown"
VERSION = datasets.Version("1.1.0")
LICENSE = "published for research by the organisers, without a licence; cite the findings papers of the years used"


@dataclass
class WmtConfig(datasets.BuilderConfig):
    """Source of the ratings; see `wmt_sources.read_wmt`."""

    version: datasets.Version = VERSION
    hub_dataset: str | None = None
    hub_revision: str | None = None
    language_pairs: Sequence[str] = TO_ENGLISH
    # Hash of data and code: without it, the cache of `datasets` would return old rows.
    fingerprint: str = ""


class WmtBuilder(RatingsBuilder):
    """The base of the builders of WMT data.

    Args:
        config_name: year to test on, such as "2017".
        data_dir: file of ratings, folder of such files, or folder with the unpacked official archives; default: the
            official sources are downloaded.
        hub_dataset: dataset on the Hub to read instead.
        hub_revision: branch, tag or commit of the dataset.
        options: fields of the configuration, and arguments of `datasets.DatasetBuilder` such as cache_dir.
    """

    VERSION = VERSION

    def __init__(
        self,
        config_name: str | None = None,
        *,
        data_dir: str | Path | None = None,
        hub_dataset: str | None = None,
        hub_revision: str | None = None,
        **options: Any,
    ) -> None:
        source: dict[str, Any] = {"hub_dataset": hub_dataset, "hub_revision": hub_revision}
        if isinstance(options.get("language_pairs"), str):
            options["language_pairs"] = (options["language_pairs"],)
        options["fingerprint"] = source_fingerprint(data_dir, **source)
        super().__init__(config_name, data_dir=data_dir, **source, **options)

    def years(self) -> list[int]:
        """Return the years whose ratings are needed."""
        raise NotImplementedError

    def ratings(self) -> list[Rating]:
        """Read the ratings; without data_dir and hub_dataset, download them first."""
        config = self.config
        data_dir: Any = config.data_dir
        if data_dir is None and config.hub_dataset is None:
            data_dir = self.download(wmt_sources(self.years(), config.language_pairs))
        return read_wmt(data_dir, config.hub_dataset, config.hub_revision, config.language_pairs)


@dataclass
class WmtRatingsConfig(WmtConfig):
    """Options of the splits; see `split_by_year`."""

    validation_ratio: float | None = None
    seed: int = 0
    one_record_per_system: bool = True
    average_duplicates: bool = False


class WmtRatings(WmtBuilder):
    """Ratings of translations, standardised by annotator, as the train, validation and test sets of a year.

    See `WmtBuilder` for the sources, `split_by_year` for the options, `rating_files.RATING_COLUMNS` for the columns.
    "2022-by-document" divides the ratings of 2022 alone, by `document_split`, and has a column "domain" too.

    Example:
        >>> builder = WmtRatings("2018", language_pairs=["de-en", "zh-en"])  # doctest: +SKIP
        >>> builder.download_and_prepare()  # doctest: +SKIP
        >>> builder.as_dataset(split="train")  # doctest: +SKIP
    """

    DATASET_NAME = "wmt_ratings"
    BUILDER_CONFIG_CLASS = WmtRatingsConfig
    BUILDER_CONFIGS = [WmtRatingsConfig(name=name) for name in (*TARGET_YEARS, EVERY_YEAR, BY_DOCUMENT)]

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Direct assessments of machine translation from the WMT shared tasks, split by year.",
            features=BY_DOCUMENT_FEATURES if self.config.name == BY_DOCUMENT else RATING_FEATURES,
            homepage="https://www.statmt.org/wmt19/metrics-task.html",
            license=LICENSE,
            citation=CITATION,
        )

    def years(self) -> list[int]:
        """Return the years up to the target year."""
        if self.config.name == BY_DOCUMENT:
            return [LAST_YEAR]
        last = LAST_YEAR if self.config.name == EVERY_YEAR else int(self.config.name)
        return list(range(FIRST_YEAR, last + 1))

    def splits(self) -> dict[str, list[Rating]]:
        """Return the rows of each split, without writing anything but downloads."""
        config = self.config
        if config.name == BY_DOCUMENT:
            return self._split_by_document()
        return split_by_year(
            self.ratings(),
            config.name,
            validation_ratio=config.validation_ratio,
            seed=config.seed,
            one_record_per_system=config.one_record_per_system,
            average_duplicates=config.average_duplicates,
        )

    def _split_by_document(self) -> dict[str, list[Rating]]:
        """Divide the ratings of 2022 such that all of a document are in one set, by `document_split`."""
        folders = self.config.data_dir or self.download(wmt_sources(self.years(), self.config.language_pairs))
        files = index_files(folders)
        texts_of = cache(lambda lp: XmlTexts(files, LAST_YEAR, lp))
        splits: dict[str, list[Rating]] = {"train": [], "validation": [], "test": []}
        for rating in self.ratings():
            if rating["year"] == LAST_YEAR:
                texts, line = texts_of(rating["lp"]), rating["segment_id"] - 1
                domain = texts.domains[line] or UNKNOWN_DOMAIN
                splits[document_split(texts.documents[line])].append({**rating, "domain": domain})
        return {name: rows for name, rows in splits.items() if rows}


def document_split(document: str) -> str:
    """Return "test" for 15 % of the documents of 2022, "validation" for 5 %, else "train", by a hash of the id."""
    percent = int(hashlib.sha256(f"wmt22{document}".encode()).hexdigest(), 16) % 100
    return "test" if percent < 15 else "validation" if percent < 20 else "train"


def split_by_year(
    ratings: Sequence[Rating],
    target: str,
    *,
    validation_ratio: float | None = None,
    seed: int = 0,
    one_record_per_system: bool = True,
    average_duplicates: bool = False,
) -> dict[str, list[Rating]]:
    """Make the sets of a target year: all earlier years are for training, that year for testing.

    The test set is as it was rated; the last two options change the training years alone. Missing years are a warning.

    Args:
        ratings: ratings of any years.
        target: year to test on, or "all" to train on every year, without a test set.
        validation_ratio: share of the training years to validate on; default: the paper's.
        seed: seed of the validation split.
        one_record_per_system: whether an output that several systems share makes a training record for each of them.
        average_duplicates: whether to average the ratings of one candidate; see `average_duplicate_records`.

    Returns:
        "train", "validation" and "test", those that are not empty.

    Raises:
        ValueError: if no rating is left to train on.
    """
    years = {rating["year"] for rating in ratings}
    earlier = [rating for rating in ratings if target == EVERY_YEAR or rating["year"] < int(target)]
    if not earlier:
        raise ValueError(f"no ratings from before {target} to train on; found the years {sorted(years)}")
    _warn_of_missing_years(years, target)
    if one_record_per_system:
        earlier = [record for rating in earlier for record in records_per_system(rating)]
    if average_duplicates:
        earlier = average_duplicate_records(earlier)
    if validation_ratio is None:
        validation_ratio = VALIDATION_RATIOS.get(target, LATER_VALIDATION_RATIO)
    train, validation = split_without_overlap(earlier, validation_ratio, seed)
    test = [rating for rating in ratings if str(rating["year"]) == target]
    splits = {"train": [earlier[i] for i in train], "validation": [earlier[i] for i in validation], "test": test}
    return {name: rows for name, rows in splits.items() if rows}


def _warn_of_missing_years(years: set[int], target: str) -> None:
    last = max(years) if target == EVERY_YEAR else int(target)
    if missing := [str(year) for year in range(FIRST_YEAR, last + 1) if year not in years]:
        uses = "test set" if missing == [target] else "years"
        warnings.warn(f"no ratings of {', '.join(missing)}: the {uses} of {target} will lack them", stacklevel=3)


def records_per_system(rating: Rating) -> list[Rating]:
    """Return one record per system that shares the rated output."""
    if not MERGED_SYSTEMS.fullmatch(rating["system"] or ""):
        return [rating]
    return [{**rating, "system": system} for system in rating["system"].split("+")]


def average_duplicate_records(ratings: Sequence[Rating]) -> list[Rating]:
    """Average the ratings of the same language pair, reference and candidate.

    The training set for 2017 then has the 5,344 records of BLEURT, section 5.2, instead of 5,360.

    Returns: Records with the mean scores, the sum of the annotations, and the names of the systems joined by "+", each
        at the position of the first.
    """
    groups: dict[tuple[str, ...], list[Rating]] = {}
    for rating in ratings:
        groups.setdefault((rating["lp"], rating["reference"], rating["candidate"]), []).append(rating)
    return [_average(group) if len(group) > 1 else group[0] for group in groups.values()]


def _average(group: list[Rating]) -> Rating:
    values = {name: [rating[name] for rating in group if rating[name] is not None] for name in RATING_COLUMNS}
    return {
        **group[0],
        "score": sum(values["score"]) / len(group),
        "raw_score": sum(values["raw_score"]) / len(values["raw_score"]) if values["raw_score"] else None,
        "n_annotations": sum(values["n_annotations"]) if values["n_annotations"] else None,
        "system": "+".join(dict.fromkeys(values["system"])) or None,
    }
