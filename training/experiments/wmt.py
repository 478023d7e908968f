"""The WMT Metrics shared task (BLEURT, section 5.1, tables 2 to 4): agreement with the ratings of a year.

    bleurt-repro experiment wmt --config experiment_wmt17_mini --data ratings/2017 --output OUT
    bleurt-repro experiment wmt --data ratings/2018 --baselines sentbleu --checkpoint ORG/NAME --output OUT

DATA is what `bleurt-repro data wmt` wrote: train, validation and test. With an encoder, a pre-trained BLEURT or both, models
are trained. OUT gets results.json and, drawn from it alone, table.md, comparisons.md, wmt.png and wmt.svg. Scores and models
are kept in OUT: a killed run resumes.

The published values (Sellam et al., 2020, https://aclanthology.org/2020.acl-main.704) are added as marked rows.
`published.tsv` holds them times 100, by year, metric, language pair (and their average) and measure; values that the paper
does not print are missing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.training.experiments.options import ModelOptions, command, read_options
from bleurt_repro.training.experiments.report import draw_table, write_report
from bleurt_repro.training.metrics.cells import CELLS, Cells
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.results import Result

if TYPE_CHECKING:
    import pandas

    from bleurt_repro.training.metrics.rows import Row, Texts
    from bleurt_repro.training.metrics.samples import Sample

__all__ = ["WmtOptions", "data_file", "draw_table", "main", "published_rows", "run_wmt", "training_files"]

PUBLISHED_TABLE = Path(__file__).with_name("published.tsv")
SOURCE = "Sellam et al. (2020), tables 2 to 4, https://aclanthology.org/2020.acl-main.704"
AVERAGES = ("avg", "average")
PUBLISHED_YEARS = (2017, 2018, 2019)
FIRST_DARR_YEAR = 2018  # Pearson's r is reported until 2017, daRR from 2018 on (BLEURT, section 5.1)


@dataclass
class WmtOptions:
    """Which ratings."""

    output: str = field(metadata={"help": "Folder for results, tables and plots."})
    data: str = field(
        metadata={"help": "Folder that `bleurt-repro data wmt` wrote, with train, validation and test ratings."}
    )
    average_duplicates: bool = field(
        default=False,
        metadata={"help": "Average test ratings of equal language pair, reference and candidate; leaves out daRR."},
    )
    min_difference: float = field(
        default=25.0,
        metadata={"help": "Smallest difference of raw scores, in points of 100, that makes a pair of daRR."},
    )
    title: str | None = field(default=None, metadata={"help": "Name of the data in tables and plots."})


def main(argv: Sequence[str]) -> Result:
    """Run the experiment with the options of a command line."""
    return run_wmt(*read_options((WmtOptions, MetricOptions, ModelOptions), argv))


def run_wmt(options: WmtOptions, metrics: MetricOptions, models: ModelOptions) -> Result:
    """Train and score, and write and return the results.

    Args:
        options: ratings.
        metrics: metrics to measure.
        models: models to train.

    Raises:
        FileNotFoundError: if the data are missing.
        ValueError: if there is no metric and no model, the test ratings are of several years, or a setting is wrong.
    """
    from bleurt_repro.training.metrics.measure import measure_rows
    from bleurt_repro.training.metrics.rows import signatures
    from bleurt_repro.training.metrics.samples import data_record, rating_texts, read_ratings

    test = data_file(options.data, "test")
    table = read_ratings(test, "lp", options.average_duplicates)
    years = sorted({int(year) for year in table["year"].dropna()})
    if len(years) != 1:
        raise ValueError(f"{test} has ratings of the years {years or 'unknown'}: a test set is of one year")
    rows = measured_rows(rating_texts(table), options.output, options.data, metrics, models)
    figures = {
        "title": options.title or f"WMT {years[0]}, to English",
        "year": years[0],
        "by": "lp",
        **measure_rows(rows, _samples(table, years[0], options), metrics),
    }
    if published := published_rows(years[0], tuple(figures["measures"])):
        figures |= {"published": published, "published_source": SOURCE}
    result = Result(
        kind="wmt",
        command=command("wmt", (options, metrics, models)),
        seed=metrics.seed,
        signatures=signatures(rows),
        data=data_record(test, len(table)),
        figures=figures,
    )
    write_report(options.output, result)
    return result


def _samples(table: pandas.DataFrame, year: int, options: WmtOptions) -> list[Sample]:
    from bleurt_repro.training.metrics.samples import rating_samples, raw_score_samples

    if year < FIRST_DARR_YEAR:
        return rating_samples(table, "lp")
    if options.average_duplicates:  # a merged rating is not of a single system
        return rating_samples(table, "lp", ("kendall_tau",))
    return [*rating_samples(table, "lp", ("kendall_tau",)), *raw_score_samples(table, "lp", options.min_difference)]


def measured_rows(texts: Texts, output: str, data: str, metrics: MetricOptions, models: ModelOptions) -> list[Row]:
    """Train the models, and score with them and with all metrics.

    Args:
        texts: items to score.
        output: folder of the experiment.
        data: folder with train and validation ratings.
        metrics, models: metrics to measure, models to train.

    Raises:
        ValueError: if there is no metric and no model.
    """
    from bleurt_repro.training.experiments.trained_models import FineTuning, starts
    from bleurt_repro.training.metrics.rows import score_metrics

    if not (metrics.names_any or starts(models)):
        raise ValueError("nothing to measure: name an encoder to train, a checkpoint or a baseline")
    cells = Cells(Path(output) / CELLS)
    rows = score_metrics(texts, cells, metrics)
    training = FineTuning(Path(output), cells, models, metrics.scorer_options)
    return [
        *(training.row(name, start, lambda _: training_files(data), texts) for name, start in starts(models)),
        *rows,
    ]


def training_files(data: str) -> tuple[Path, Path]:
    """Return the ratings to train and to validate on."""
    return data_file(data, "train"), data_file(data, "validation")


def data_file(folder: str, name: str) -> Path:
    """Return the file of a split in a folder of ratings.

    Raises:
        FileNotFoundError: if there is none.
    """
    for extension in (".jsonl", ".parquet"):
        if (path := Path(folder) / f"{name}{extension}").is_file():
            return path
    raise FileNotFoundError(f"no {name}.jsonl or {name}.parquet in {folder}: make them with `bleurt-repro data wmt`")


def published_rows(year: int, measures: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read the published values of a year.

    Args:
        year: year of the test set; there are values of `PUBLISHED_YEARS`.
        measures: measures to read.

    Returns:
        one dict per metric: "name", "groups" (by language pair and measure, as fractions of 1) and "average" (by measure).
    """
    from bleurt_repro.metric.files.records import read_records

    rows: dict[str, dict[str, Any]] = {}
    for _, record in read_records(PUBLISHED_TABLE):
        if int(record["year"]) != year or record["measure"] not in measures:
            continue
        row = rows.setdefault(record["metric"], {"name": record["metric"], "groups": {}, "average": {}})
        value = round(float(record["value"]) / 100, 4)
        is_average = record["group"] in AVERAGES
        figures = row["average"] if is_average else row["groups"].setdefault(record["group"], {})
        figures[record["measure"]] = value
    return list(rows.values())
