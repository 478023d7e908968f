"""Measure how well metrics agree with people, on any file of ratings or of relative ranks.

    bleurt-repro experiment agreement --ratings mine.jsonl --baselines sentbleu chrf++ --output OUT
    bleurt-repro experiment agreement --ratings mqm21 --baselines sentbleu chrf++ --output OUT
    bleurt-repro experiment agreement --relative-ranks ranks.jsonl --checkpoint ORG/NAME --output OUT
    bleurt-repro experiment agreement --ratings wmt18.jsonl --checkpoint ORG/NAME --measures acc_eq spa --output OUT

`YARDSTICKS` has names of public ratings, which are downloaded. OUT gets results.json (figures, intervals, tests, seed, signatures, fingerprint of the data) and, drawn from it alone,
table.md, comparisons.md, agreement.png and agreement.svg. Scores are kept in OUT/cells: a killed run resumes. The table says
which checkpoints were fine-tuned on references that are measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.training.experiments.options import command, read_options
from bleurt_repro.training.experiments.report import draw_table, write_report
from bleurt_repro.training.metrics.cells import CELLS, Cells
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.results import Result

if TYPE_CHECKING:
    from bleurt_repro.datasets_builders.ratings.rating_files import Rating
    from bleurt_repro.training.metrics.rows import Texts
    from bleurt_repro.training.metrics.samples import Sample

__all__ = ["YARDSTICKS", "AgreementOptions", "draw_table", "main", "run_agreement"]

DEFAULT_MEASURES = ("kendall_tau", "pearson_r")
YARDSTICK_MEASURES = (
    "kendall_tau",
    "kendall_by_length",
    "pearson_r",
    "acc_eq",
    "kendall_by_item",
    "system_accuracy",
    "spa",
)


def _mqm21(data_dir: str | None, split: str, lp: str = "zh-en") -> list[Rating]:
    from bleurt_repro.datasets_builders.ratings.mqm import MqmRatings

    return MqmRatings(lp, data_dir=data_dir).splits()[split]


def _wmt(data_dir: str | None, name: str) -> list[Rating]:
    from bleurt_repro.datasets_builders.ratings.wmt import WmtRatings

    return WmtRatings(name, data_dir=data_dir).splits()["test"]


# Public ratings by name: their title, and the function that reads them from a folder or downloads them.
YARDSTICKS: dict[str, tuple[str, Callable[[str | None], list[Rating]]]] = {
    "mqm21": ("MQM 2021, Chinese to English, test half", lambda data_dir: _mqm21(data_dir, "test")),
    "mqm21-dev": ("MQM 2021, Chinese to English, validation half", lambda data_dir: _mqm21(data_dir, "validation")),
    "mqm21-en-de": (
        "MQM 2021, English to German, test half",
        lambda data_dir: _mqm21(data_dir, "test", "en-de"),
    ),
    "wmt22": ("WMT 2022, to English, test split", lambda data_dir: _wmt(data_dir, "2022-by-document")),
    "wmt18": ("WMT 2018, to English", lambda data_dir: _wmt(data_dir, "2018")),
}


@dataclass
class AgreementOptions:
    """Which ratings, and which measures of agreement with them."""

    output: str = field(metadata={"help": "Folder for results, tables and plots."})
    ratings: str | None = field(
        default=None,
        metadata={
            "help": "File of ratings with the columns reference, candidate, score, ..., or the name of public ratings: mqm21, "
            "mqm21-dev, mqm21-en-de, wmt22 or wmt18."
        },
    )
    data_dir: str | None = field(
        default=None,
        metadata={"help": "Folder or file that named ratings are read from; by default they are downloaded."},
    )
    relative_ranks: str | None = field(
        default=None,
        metadata={"help": "File of relative ranks instead: reference, candidate_better, candidate_worse."},
    )
    by: str = field(
        default="lp",
        metadata={"help": "Column to group by, or length (of the reference); figures are averaged over groups."},
    )
    title: str | None = field(default=None, metadata={"help": "Name of the data in tables and plots."})
    average_duplicates: bool = field(
        default=False, metadata={"help": "Average the scores of ratings with equal reference and candidate."}
    )
    measures: list[str] = field(
        default_factory=lambda: list(DEFAULT_MEASURES),
        metadata={
            "help": "Measures of all ratings: kendall_tau, pearson_r, spearman_rho; among segments of similar length: "
            "kendall_by_length; by segment: acc_eq, kendall_by_item, pearson_by_item; of systems: kendall_by_system, "
            "pearson_by_system, system_kendall, system_pearson, system_accuracy, spa."
        },
    )
    published: int = field(
        default=0, metadata={"help": "Year whose published values are added as rows, 2017 to 2019; 0: none."}
    )
    saw_ratings: list[str] = field(
        default_factory=list,
        metadata={"help": "Rows whose metric was trained on ratings of this kind, for a column with --saw-title."},
    )
    saw_title: str = field(default="saw such ratings", metadata={"help": "Heading of that column."})

    def __post_init__(self) -> None:
        from bleurt_repro.training.experiments.wmt import PUBLISHED_YEARS
        from bleurt_repro.training.metrics.samples import MEASURES

        if self.published not in (0, *PUBLISHED_YEARS):
            raise ValueError(
                f"published must be one of {', '.join(map(str, PUBLISHED_YEARS))}, or 0, found {self.published}"
            )
        available = [name for name in MEASURES if name != "darr"]
        if unknown := sorted(set(self.measures) - set(available)):
            raise ValueError(f"unknown measures {', '.join(unknown)}: available are {', '.join(available)}")


def main(argv: Sequence[str]) -> Result:
    """Run the experiment with the options of a command line."""
    return run_agreement(*read_options((AgreementOptions, MetricOptions), argv))


def run_agreement(
    options: AgreementOptions, metrics: MetricOptions, scorer_options: Mapping[str, Any] | None = None
) -> Result:
    """Score the file with every metric, and write and return the results.

    Args:
        options: file of ratings or ranks, and measures.
        metrics: metrics to measure.
        scorer_options: further arguments of `BleurtScorer`.

    Raises:
        ValueError: if there is no metric, a baseline is unknown, or the ratings of a group do not vary.
    """
    from bleurt_repro.training.metrics.baselines import find_baseline
    from bleurt_repro.training.metrics.measure import measure_rows
    from bleurt_repro.training.metrics.rows import score_metrics, signatures
    from bleurt_repro.training.metrics.samples import data_record

    if (options.ratings is None) == (options.relative_ranks is None):
        raise ValueError("name either a file of ratings or a file of relative ranks")
    if not metrics.names_any:
        raise ValueError("nothing to measure: name at least one checkpoint or baseline")
    for name in metrics.baselines:
        find_baseline(name)
    run_command = command("agreement", (options, metrics))
    options = _read_yardstick(options)
    texts, samples, records = _read(options)
    _check_variance(samples)
    rows = score_metrics(texts, Cells(Path(options.output) / CELLS), metrics, scorer_options, each_input=True)
    path = str(options.ratings or options.relative_ranks)
    figures = {
        "title": options.title or Path(path).name,
        "by": options.by,
        **measure_rows(rows, samples, metrics),
    }
    result = Result(
        kind="agreement",
        command=run_command,
        seed=metrics.seed,
        signatures=signatures(rows),
        data=data_record(path, records),
        figures={**figures, **_published_and_columns(options, figures)},
    )
    write_report(options.output, result)
    return result


def _read_yardstick(options: AgreementOptions) -> AgreementOptions:
    """Write named ratings as a file into the output, and return the options with this file, a title and measures.

    Raises:
        ValueError: if there is no such file, and no ratings of this name.
    """
    from bleurt_repro.metric.files.writing import write_json_lines

    if options.ratings is None or options.ratings not in YARDSTICKS or Path(options.ratings).is_file():
        if options.data_dir is not None:
            names = ", ".join(YARDSTICKS)
            raise ValueError(
                f"data_dir is for named ratings ({names}), found --ratings {options.ratings}: leave it out"
            )
        return options
    title, read_rows = YARDSTICKS[options.ratings]
    path = Path(options.output) / "ratings" / f"{options.ratings}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json_lines(path, read_rows(options.data_dir))
    measures = YARDSTICK_MEASURES if options.measures == list(DEFAULT_MEASURES) else options.measures
    return replace(options, ratings=str(path), title=options.title or title, measures=list(measures))


def _read(options: AgreementOptions) -> tuple[Texts, list[Sample], int]:
    from bleurt_repro.training.metrics.samples import rating_samples, rating_texts, read_ratings, read_relative_ranks

    if options.relative_ranks:
        return read_relative_ranks(options.relative_ranks, options.by)
    assert options.ratings is not None
    table = read_ratings(options.ratings, options.by, options.average_duplicates)
    return rating_texts(table), rating_samples(table, options.by, options.measures), len(table)


def _check_variance(samples: Sequence[Sample]) -> None:
    """Raise ValueError, before anything is scored, if the ratings of a group do not vary."""
    import numpy as np

    for sample in samples:
        if not sample.of_scores and np.ptp(sample.second) == 0:
            raise ValueError(
                f"all {len(sample.second)} ratings of group {sample.group} are {sample.second[0]:g}: without variance "
                "there is no correlation; leave the group out, or group by another column"
            )


def _published_and_columns(options: AgreementOptions, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the published rows, and all rows with the column on what their metrics were trained on."""
    from bleurt_repro.training.experiments.wmt import SOURCE, published_rows

    published = published_rows(options.published, tuple(figures["measures"])) if options.published else []
    rows = figures["rows"]
    if options.saw_ratings:
        if unknown := sorted(set(options.saw_ratings) - {row["name"] for row in rows}):
            names = ", ".join(row["name"] for row in rows)
            raise ValueError(f"saw_ratings names {unknown[0]}, but there is no such row: rows are {names}")
        rows = [_with_column(row, options, row["name"] in options.saw_ratings) for row in rows]
        published = [_with_column(row, options, False) for row in published]
    return {"rows": rows, **({"published": published, "published_source": SOURCE} if published else {})}


def _with_column(row: Mapping[str, Any], options: AgreementOptions, saw: bool) -> dict[str, Any]:
    return {**row, "columns": {options.saw_title: "yes" if saw else "no"}}
