"""Ratings of WMT (direct assessments) as a `datasets` builder, split by target year as in BLEURT, sections 5.1 and B.2.

`WmtRatings` is the builder; `WmtBuilder`, its base, is that of relative ranks, too. `wmt_sources` says where ratings come from.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import datasets

from bleurt_repro.datasets_builders.ratings.rating_files import RATING_COLUMNS, Rating, ratings_features
from bleurt_repro.datasets_builders.ratings.splits import split_without_overlap
from bleurt_repro.datasets_builders.ratings.wmt_sources import TO_ENGLISH, read_wmt, source_fingerprint

Row = dict[str, Any]

FIRST_YEAR = 2015
TARGET_YEARS = tuple(str(year) for year in range(FIRST_YEAR + 1, 2023))
EVERY_YEAR = "all"
# BLEURT, section B.2: 10 % for 2017 and 2018, 5 % for 2019, whose training set is larger.
VALIDATION_RATIOS = {"2016": 0.10, "2017": 0.10, "2018": 0.10}
LATER_VALIDATION_RATIO = 0.05
# Submissions of WMT 2017 end in their number, and several with the same output are joined, as in "a.123+b.45".
MERGED_SYSTEMS = re.compile(r"[^+]+\.\d+(?:\+[^+]+\.\d+)+")
RATING_FEATURES = ratings_features()


@dataclass
class WmtConfig(datasets.BuilderConfig):
    """Where ratings come from; see `wmt_sources.read_wmt`."""

    hub_dataset: str | None = None
    hub_revision: str | None = None
    language_pairs: Sequence[str] = TO_ENGLISH
    # Of data and code: without it, the cache of `datasets` would return old rows.
    fingerprint: str = ""

    def source(self) -> dict[str, Any]:
        """Return the arguments of `read_wmt`."""
        return {
            "data_dir": self.data_dir,
            "hub_dataset": self.hub_dataset,
            "hub_revision": self.hub_revision,
            "language_pairs": self.language_pairs,
        }


class WmtBuilder(datasets.GeneratorBasedBuilder):
    """A builder whose rows are few enough to be made at once; subclasses make them, in `splits`.

    Args:
        config_name: the year to test on, such as "2017".
        data_dir: a file of ratings, a folder of such files, or a folder with the official archives, unpacked.
        hub_dataset: instead, the dataset on the Hub.
        hub_revision: its branch, tag or commit.
        options: fields of the configuration, and arguments of `datasets.DatasetBuilder` such as cache_dir.
    """

    # Of the cache folder and of Parquet files; `datasets` would take the name of the Python file.
    DATASET_NAME: ClassVar[str]

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
        folder = None if data_dir is None else str(data_dir)
        options.setdefault("dataset_name", self.DATASET_NAME)
        super().__init__(config_name=config_name, data_dir=folder, **source, **options)
        self.name = self.info.builder_name = self.DATASET_NAME

    def splits(self) -> Mapping[str, Sequence[Row]]:
        """Make the rows of each split, without writing anything."""
        raise NotImplementedError

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        self._rows = self.splits()
        return [datasets.SplitGenerator(name=name, gen_kwargs={"split": name}) for name in self._rows]

    def _generate_examples(self, split: str) -> Iterator[tuple[int, Row]]:
        yield from enumerate(self._rows[split])


@dataclass
class WmtRatingsConfig(WmtConfig):
    """Which ratings, and how they are split; see `split_by_year`."""

    validation_ratio: float | None = None
    seed: int = 0
    one_record_per_system: bool = True
    average_duplicates: bool = False


class WmtRatings(WmtBuilder):
    """Ratings of translations, standardised by annotator, as the train, validation and test sets of a year.

    See `WmtBuilder` for the sources, `split_by_year` for the options, `rating_files.RATING_COLUMNS` for the columns.

    Example:
        >>> builder = WmtRatings("2018", data_dir="wmt", language_pairs=["de-en", "zh-en"])  # doctest: +SKIP
        >>> builder.download_and_prepare()  # doctest: +SKIP
        >>> builder.as_dataset(split="train")  # doctest: +SKIP
    """

    DATASET_NAME = "wmt_ratings"
    VERSION = datasets.Version("1.0.0")
    BUILDER_CONFIG_CLASS = WmtRatingsConfig
    BUILDER_CONFIGS = [WmtRatingsConfig(name=name) for name in (*TARGET_YEARS, EVERY_YEAR)]

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            features=RATING_FEATURES, homepage="https://www.statmt.org/wmt19/metrics-task.html"
        )

    def splits(self) -> dict[str, list[Rating]]:
        """Make the rows of each split, without writing anything."""
        config = self.config
        return split_by_year(
            read_wmt(**config.source()),
            config.name,
            validation_ratio=config.validation_ratio,
            seed=config.seed,
            one_record_per_system=config.one_record_per_system,
            average_duplicates=config.average_duplicates,
        )


def split_by_year(
    ratings: Sequence[Rating],
    target: str,
    *,
    validation_ratio: float | None = None,
    seed: int = 0,
    one_record_per_system: bool = True,
    average_duplicates: bool = False,
) -> dict[str, list[Rating]]:
    """Make the sets of a target year: all earlier years train, that year tests.

    The test set is as it was judged; the last two options shape the training years alone.

    Args:
        ratings: of any years.
        target: a year, or "all" to train on every year, with no test set.
        validation_ratio: the share of the training years to validate on; by default the paper's.
        seed: of the validation split.
        one_record_per_system: where systems had the same output and it was judged once, train on a record for each.
        average_duplicates: join the records of the same candidate and reference; see `average_duplicate_records`.

    Returns:
        train, validation and test, those that are not empty. A year that is missing is warned of.

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
    """Return a record for each system of a rating that several share; others stay as they are."""
    if not MERGED_SYSTEMS.fullmatch(rating["system"] or ""):
        return [rating]
    return [{**rating, "system": system} for system in rating["system"].split("+")]


def average_duplicate_records(ratings: Sequence[Rating]) -> list[Rating]:
    """Join the ratings of the same language pair, reference and candidate into one, in place of the first.

    With it the training set for 2017 has the 5,344 records of BLEURT, section 5.2, in place of 5,360.

    Returns:
        records with the mean scores, the sum of the annotations, and the names of the systems joined by "+".
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
