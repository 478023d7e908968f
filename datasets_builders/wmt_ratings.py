"""WMT direct assessments, split by target year as the paper splits them (BLEURT, sections 5.1 and B.2)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import datasets

from bleurt_repro.datasets_builders.rating_files import Rating
from bleurt_repro.datasets_builders.splits import split_without_overlap
from bleurt_repro.datasets_builders.wmt_sources import rating_files, read_wmt

TO_ENGLISH = ("*-en",)
TARGET_YEARS = tuple(str(year) for year in range(2016, 2023))
EVERY_YEAR = "all"
# BLEURT, section B.2: 10 % for 2017 and 2018, 5 % for 2019, whose training set is larger.
VALIDATION_RATIOS = {"2016": 0.1, "2017": 0.1, "2018": 0.1}
LATER_VALIDATION_RATIO = 0.05
RATING_FEATURES = datasets.Features(
    {
        "year": datasets.Value("int32"),
        "lp": datasets.Value("string"),
        "segment_id": datasets.Value("int64"),
        "system": datasets.Value("string"),
        "source": datasets.Value("string"),
        "reference": datasets.Value("string"),
        "candidate": datasets.Value("string"),
        "score": datasets.Value("float64"),
        "raw_score": datasets.Value("float64"),
        "n_annotations": datasets.Value("int32"),
    }
)


def split_by_year(
    ratings: Sequence[Rating],
    target: str,
    language_pairs: Sequence[str] = TO_ENGLISH,
    validation_ratio: float | None = None,
    seed: int = 0,
    one_record_per_system: bool = True,
) -> dict[str, list[Rating]]:
    """Make the train, validation and test sets of a target year: all earlier years train, that year tests.

    Args:
        ratings: of any years.
        target: a year, or "all" to train on every year, with no test set.
        language_pairs: patterns such as "de-en" or "*-en".
        validation_ratio: the share of the training years to validate on; by default the paper's.
        seed: of the validation split.
        one_record_per_system: where one judged translation is the output of several systems ("a+b"), train on one
            record for each. The test set keeps one record for each judged translation.

    Raises:
        ValueError: if no rating is left to train on.
    """
    if validation_ratio is None:
        validation_ratio = VALIDATION_RATIOS.get(target, LATER_VALIDATION_RATIO)
    ratings = [rating for rating in ratings if any(fnmatch(rating["lp"], pattern) for pattern in language_pairs)]
    earlier = [rating for rating in ratings if target == EVERY_YEAR or rating["year"] < int(target)]
    if not earlier:
        years = sorted({rating["year"] for rating in ratings})
        raise ValueError(f"no ratings of {', '.join(language_pairs)} before {target}; found the years {years}")
    if one_record_per_system:
        earlier = [record for rating in earlier for record in records_per_system(rating)]
    train, validation = split_without_overlap(earlier, validation_ratio, seed)
    splits = {"train": [earlier[i] for i in train], "validation": [earlier[i] for i in validation]}
    if target != EVERY_YEAR:
        splits["test"] = [rating for rating in ratings if rating["year"] == int(target)]
    return {name: rows for name, rows in splits.items() if rows}


def records_per_system(rating: Rating) -> list[Rating]:
    """Give one record for each system of a rating whose `system` joins several names by "+", as WMT 2017 does."""
    return (
        [{**rating, "system": name} for name in (rating["system"] or "").split("+")] if rating["system"] else [rating]
    )


@dataclass
class WmtRatingsConfig(datasets.BuilderConfig):
    """Which ratings, and how they are split; see `split_by_year`."""

    language_pairs: Sequence[str] = TO_ENGLISH
    validation_ratio: float | None = None
    seed: int = 0
    one_record_per_system: bool = True
    # Of data and code: datasets' cache key would otherwise hold neither, and old rows could come back.
    fingerprint: str = ""


class WmtRatings(datasets.GeneratorBasedBuilder):
    """Ratings of translations, standardised by annotator.

    Args:
        config_name: the year to test on ("2017"), or "all".
        data_dir: the folder of ratings.

    Example:
        >>> builder = WmtRatings(config_name="2017", data_dir="wmt")  # doctest: +SKIP
        >>> builder.download_and_prepare()  # doctest: +SKIP
        >>> builder.as_dataset()  # doctest: +SKIP
    """

    VERSION = datasets.Version("1.0.0")
    BUILDER_CONFIG_CLASS = WmtRatingsConfig
    BUILDER_CONFIGS = [WmtRatingsConfig(name=name) for name in (*TARGET_YEARS, EVERY_YEAR)]

    def __init__(self, *args: Any, data_dir: str | None = None, **kwargs: Any) -> None:
        if data_dir is None:
            raise ValueError("WmtRatings needs data_dir, the folder of ratings")
        super().__init__(*args, data_dir=str(data_dir), fingerprint=fingerprint(rating_files(data_dir)), **kwargs)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            features=RATING_FEATURES, homepage="https://www.statmt.org/wmt19/metrics-task.html"
        )

    def splits(self) -> dict[str, list[Rating]]:
        """Make the sets as plain rows, without writing anything."""
        config = self.config
        options = {name: getattr(config, name) for name in ("language_pairs", "validation_ratio", "seed")}
        return split_by_year(
            read_wmt(config.data_dir), config.name, one_record_per_system=config.one_record_per_system, **options
        )

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        self._rows: Mapping[str, list[Rating]] = self.splits()
        return [datasets.SplitGenerator(name=name, gen_kwargs={"split": name}) for name in self._rows]

    def _generate_examples(self, split: str) -> Iterator[tuple[int, Rating]]:
        yield from enumerate(self._rows[split])


def fingerprint(files: Sequence[Path]) -> str:
    """Hash data files, and the code here that reads them."""
    code = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256()
    for file in [*files, *code]:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
