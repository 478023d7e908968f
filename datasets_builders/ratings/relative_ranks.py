"""Relative ranks from direct assessments (daRR), the test of WMT 2018 and 2019 (BLEURT, section B.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import datasets

from bleurt_repro.datasets_builders import CITATION
from bleurt_repro.datasets_builders.ratings.builder import Row
from bleurt_repro.datasets_builders.ratings.rating_files import Rating
from bleurt_repro.datasets_builders.ratings.wmt import LICENSE, TARGET_YEARS, WmtBuilder, WmtConfig
from bleurt_repro.datasets_builders.ratings.wmt_archives import RR_SEGLEVEL
from bleurt_repro.datasets_builders.ratings.wmt_sources import is_relative_ranks, matches
from bleurt_repro.metric.files.records import file_form, read_lines, read_records

# Points of 100 of the raw score, as in the WMT Metrics task: https://aclanthology.org/W18-6450.
MIN_DIFFERENCE = 25.0
RELATIVE_RANK_FEATURES = datasets.Features(
    {
        "year": datasets.Value("int32"),
        "lp": datasets.Value("string"),
        "segment_id": datasets.Value("int64"),
        "source": datasets.Value("string"),
        "reference": datasets.Value("string"),
        "candidate_better": datasets.Value("string"),
        "candidate_worse": datasets.Value("string"),
        "system_better": datasets.Value("string"),
        "system_worse": datasets.Value("string"),
        "raw_score_better": datasets.Value("float64"),
        "raw_score_worse": datasets.Value("float64"),
    }
)


@dataclass
class WmtRelativeRanksConfig(WmtConfig):
    """Which pairs: those with a minimal difference, or those of files of pairs."""

    min_difference: float = MIN_DIFFERENCE
    given: bool = False


class WmtRelativeRanks(WmtBuilder):
    """Pairs of translations of a segment, one clearly better than the other; the only split is test.

    By default they are made from the raw scores. With `given=True` they are read from the official RR-seglevel.csv, or
    from files with the columns year, lp, segment_id, better and worse (systems), in data_dir, and joined with the
    ratings. See `WmtBuilder` for the sources.

    Example:
        >>> WmtRelativeRanks("2018", min_difference=30.0).splits()["test"]  # doctest: +SKIP
    """

    DATASET_NAME = "wmt_relative_ranks"
    BUILDER_CONFIG_CLASS = WmtRelativeRanksConfig
    BUILDER_CONFIGS = [WmtRelativeRanksConfig(name=name) for name in TARGET_YEARS]

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Pairs of translations of a segment, one rated clearly better than the other (daRR), from WMT.",
            features=RELATIVE_RANK_FEATURES,
            homepage="https://aclanthology.org/W18-6450",
            license=LICENSE,
            citation=CITATION,
        )

    def years(self) -> list[int]:
        """Return the year of the pairs."""
        return [int(self.config.name)]

    def splits(self) -> dict[str, list[Row]]:
        """Return the pairs, without writing anything but downloads."""
        config = self.config
        ratings = [rating for rating in self.ratings() if str(rating["year"]) == config.name]
        if config.given:
            if config.data_dir is None:
                raise ValueError("given relative ranks are read from data_dir: name a folder with RR-seglevel.csv")
            pairs = [pair for pair in read_pairs(config.data_dir) if str(pair["year"]) == config.name]
            pairs = [pair for pair in pairs if matches(pair["lp"], config.language_pairs)]
            return {"test": list(join_pairs(pairs, ratings))}
        return {"test": list(relative_ranks(ratings, config.min_difference))}


def relative_ranks(ratings: Iterable[Rating], min_difference: float = MIN_DIFFERENCE) -> Iterator[Row]:
    """Yield all pairs of ratings of one segment whose raw scores differ enough.

    Args:
        ratings: ratings; those without a raw score make no pairs.
        min_difference: smallest difference, in points of 100; equal scores never make a pair.

    Raises:
        ValueError: if no rating has a raw score.
    """
    segments: dict[tuple[int, str, int], list[Rating]] = {}
    for rating in ratings:
        if rating["raw_score"] is not None:
            segments.setdefault((rating["year"], rating["lp"], rating["segment_id"]), []).append(rating)
    if not segments:
        raise ValueError(
            "no rating has a raw_score, which relative ranks are made from: WMT has it from 2018 on; for 2015 to "
            "2017, measure correlations instead"
        )
    for segment in segments.values():
        for first, second in combinations(segment, 2):
            difference = first["raw_score"] - second["raw_score"]
            if difference and abs(difference) >= min_difference:
                yield _pair(first, second) if difference > 0 else _pair(second, first)


def read_pairs(data_dir: str | Path | None) -> list[Row]:
    """Read pairs of systems from RR-seglevel.csv anywhere in a folder, or from files of pairs in it.

    Args:
        data_dir: the folder.

    Returns:
        Dicts with year, lp, segment_id, better and worse; the last two are systems.

    Raises:
        FileNotFoundError: if there are no pairs.
        ValueError: if a record is malformed; the message names file and line.
    """
    folder = Path(data_dir or ".")
    official = sorted(folder.rglob(RR_SEGLEVEL))
    if official:
        return [pair for file in official for pair in _official_pairs(file)]
    files = [file for file in sorted(folder.glob("*")) if file_form(file) and is_relative_ranks(file)]
    if not files:
        raise FileNotFoundError(
            f"no relative ranks in {data_dir}: looked for {RR_SEGLEVEL} in any folder below, and for files with the "
            "columns year, lp, segment_id, better, worse"
        )
    return [_system_pair(f"{file}, {line}", record) for file in files for line, record in read_records(file)]


def join_pairs(pairs: Iterable[Row], ratings: Sequence[Rating]) -> Iterator[Row]:
    """Yield pairs of systems with their texts.

    Args:
        pairs: result of `read_pairs`.
        ratings: ratings with the texts, looked up by year, lp, segment_id and system.

    Raises:
        ValueError: if a translation is not among the ratings.
    """
    by_key = {(rating["year"], rating["lp"], rating["segment_id"], rating["system"]): rating for rating in ratings}
    for pair in pairs:
        keys = [(pair["year"], pair["lp"], pair["segment_id"], pair[side]) for side in ("better", "worse")]
        for year, lp, segment_id, system in keys:
            if (year, lp, segment_id, system) not in by_key:
                raise ValueError(f"a pair names {system}, segment {segment_id}, {lp}, {year}: no such rating")
        yield _pair(*(by_key[key] for key in keys))


def _official_pairs(file: Path) -> Iterator[Row]:
    """Yield lines of pair, test set, segment, better, worse; the header of 2018 lacks a name."""
    for number, line in enumerate(read_lines(file)[1:], start=2):
        fields = line.split()
        location = f"{file}, line {number}"
        if len(fields) != 5 or not re.fullmatch(r"newstest\d{4}", fields[1]):
            raise ValueError(f"{location}: expected pair, newstestYEAR, segment, better, worse, found {line[:80]!r}")
        lp, test_set, segment_id, better, worse = fields
        record = {"year": test_set.removeprefix("newstest"), "lp": lp, "segment_id": segment_id}
        yield _system_pair(location, {**record, "better": better, "worse": worse})


def _system_pair(location: str, record: Row) -> Row:
    columns = ("year", "lp", "segment_id", "better", "worse")
    if missing := [name for name in columns if not record.get(name)]:
        raise ValueError(f"{location}: no {', '.join(missing)}; a pair has {', '.join(columns)}")
    try:
        numbers = {name: int(record[name]) for name in ("year", "segment_id")}
    except (TypeError, ValueError) as error:
        raise ValueError(f"{location}: year and segment_id must be whole numbers ({error})") from error
    return {**{name: record[name] for name in columns}, **numbers}


def _pair(better: Rating, worse: Rating) -> Row:
    sides = {"better": better, "worse": worse}
    return {
        **{name: better[name] for name in ("year", "lp", "segment_id", "source", "reference")},
        **{
            f"{name}_{side}": rating[name]
            for side, rating in sides.items()
            for name in ("candidate", "system", "raw_score")
        },
    }
