"""The WMT Metrics shared task (BLEURT, section 5.1, tables 2 to 4): agreement with a year's ratings.

    bleurt-repro experiment wmt --config experiment_wmt17_mini --data ratings/2017 --output OUT
    bleurt-repro experiment wmt --data ratings/2018 --baselines sentbleu --checkpoint ORG/NAME --output OUT

DATA is what `bleurt-repro data wmt` wrote: train, validation and test. Models are trained where an encoder, a
pre-trained BLEURT or both are named. OUT gets results.json and, drawn from it alone, table.md, comparisons.md, wmt.png
and wmt.svg. Scores and models are kept in OUT: a killed run resumes.

The published figures (Sellam et al., 2020, https://aclanthology.org/2020.acl-main.704) stand beside ours, marked.
`published.tsv` holds them times 100, by year, metric, language pair (and their average) and measure; what the paper does
not print is missing there.
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
# Pearson's r is reported for 2017 and before, daRR from 2018 on (BLEURT, section 5.1).
FIRST_DARR_YEAR = 2018


@dataclass
class WmtOptions:
    """Which ratings."""

    output: str = field(metadata={"help": "Folder to write."})
    data: str = field(metadata={"help": "Folder of `bleurt-repro data wmt`: train, validation and test."})
    average_duplicates: bool = field(
        default=False, metadata={"help": "Average test ratings of one pair, reference and candidate; not for daRR."}
    )
    min_difference: float = field(
        default=25.0, metadata={"help": "Of raw scores that make a pair of daRR, in points of 100."}
    )
    title: str | None = field(default=None, metadata={"help": "What to call the data."})


def main(words: Sequence[str]) -> Result:
    """Run the experiment as the module's docstring says."""
    return run_wmt(*read_options((WmtOptions, MetricOptions, ModelOptions), words))


def run_wmt(options: WmtOptions, metrics: MetricOptions, models: ModelOptions) -> Result:
    """Train and score, and write and return the results.

    Args:
        options: which ratings.
        metrics: which metrics are measured.
        models: which models are trained.

    Raises:
        FileNotFoundError: if the data are not there.
        ValueError: if nothing is to be measured, the test ratings are of several years, or a setting is wrong.
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
    if options.average_duplicates:  # merged candidates are no single systems
        return rating_samples(table, "lp", ("kendall_tau",))
    return [*rating_samples(table, "lp", ("kendall_tau",)), *raw_score_samples(table, "lp", options.min_difference)]


def measured_rows(texts: Texts, output: str, data: str, metrics: MetricOptions, models: ModelOptions) -> list[Row]:
    """Train the models that are set, and score with them and with all metrics.

    Args:
        texts: what is scored.
        output: folder of the experiment.
        data: folder with train and validation.
        metrics, models: the settings.

    Raises:
        ValueError: if neither a model nor a metric is named.
    """
    from bleurt_repro.training.experiments.trained_models import FineTuning, starts
    from bleurt_repro.training.metrics.rows import score_metrics

    if not (metrics.checkpoint or metrics.baselines or metrics.score_files or starts(models)):
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
    """Find a split in a folder of ratings.

    Raises:
        FileNotFoundError: if it is not there.
    """
    for form in (".jsonl", ".parquet"):
        if (path := Path(folder) / f"{name}{form}").is_file():
            return path
    raise FileNotFoundError(f"no {name}.jsonl or {name}.parquet in {folder}: make them with `bleurt-repro data wmt`")


def published_rows(year: int, measures: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read the published figures of a year.

    Args:
        year: of the test set; only `PUBLISHED_YEARS` have any.
        measures: which.

    Returns:
        a dict a metric: "name", "groups" (by pair and measure, as fractions of 1) and "average" (by measure).
    """
    from bleurt_repro.metric.files.records import read_records

    rows: dict[str, dict[str, Any]] = {}
    for _, record in read_records(PUBLISHED_TABLE):
        if int(record["year"]) != year or record["measure"] not in measures:
            continue
        row = rows.setdefault(record["metric"], {"name": record["metric"], "groups": {}, "average": {}})
        value = round(float(record["value"]) / 100, 4)
        place = row["average"] if record["group"] in AVERAGES else row["groups"].setdefault(record["group"], {})
        place[record["measure"]] = value
    return list(rows.values())
