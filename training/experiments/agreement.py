"""Measure how well metrics agree with people, on any file of ratings or of relative ranks.

    bleurt-repro experiment agreement --ratings wmt18.jsonl --baselines sentbleu chrf++ --output OUT
    bleurt-repro experiment agreement --relative-ranks ranks.jsonl --checkpoint ORG/NAME --output OUT

OUT gets results.json (figures, intervals, tests, seed, signatures, fingerprint of the data) and, drawn from it alone,
table.md, comparisons.md, agreement.png and agreement.svg. What is scored is kept in OUT/cells: a killed run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bleurt_repro.metric.statistics import RESAMPLES
from bleurt_repro.training.experiments.options import MetricOptions, command, read_options
from bleurt_repro.training.experiments.report import draw_comparisons, draw_table

RESULTS = "results.json"
CELLS = "cells"


@dataclass
class AgreementOptions:
    """What is measured on."""

    output: str = field(metadata={"help": "Folder to write."})
    ratings: str | None = field(default=None, metadata={"help": "Ratings: reference, candidate, score, ..."})
    relative_ranks: str | None = field(
        default=None, metadata={"help": "Or ranks: reference, candidate_better, candidate_worse."}
    )
    by: str = field(default="lp", metadata={"help": "Column to group by; the groups are averaged."})
    title: str | None = field(default=None, metadata={"help": "What to call the data."})
    average_duplicates: bool = field(
        default=False, metadata={"help": "Average the scores of ratings with one reference and candidate."}
    )


def main(words: Sequence[str]) -> dict[str, Any]:
    """Run the experiment as the module's docstring says."""
    options, metrics = read_options((AgreementOptions, MetricOptions), words)
    return measure_agreement(options, metrics)


def run(
    *,
    output: str | Path,
    ratings: str | None = None,
    relative_ranks: str | None = None,
    checkpoints: Sequence[str] = (),
    baselines: Sequence[str] = (),
    score_files: Sequence[str] = (),
    by: str = "lp",
    resamples: int = RESAMPLES,
    seed: int = 0,
    title: str | None = None,
    scorer_options: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Score the file with every metric, and write and return the results.

    Args:
        output: the folder to write to.
        ratings: a file with reference, candidate and score (columns of the ratings datasets).
        relative_ranks: a file with reference, candidate_better and candidate_worse instead.
        checkpoints: as `BleurtScorer` takes them.
        baselines: as `find_baseline` takes them.
        score_files: as `score_file_row` takes them.
        by: the column whose values are measured apart and then averaged; without it all records are one group.
        resamples: bootstrap samples of each interval; 0 for none.
        seed: of the bootstrap.
        title: what to call the data in tables and cards; the file's name by default.
        scorer_options: further arguments of `BleurtScorer`.

    Raises:
        ValueError: if nothing is to be compared, a baseline is unknown, or the ratings of a group do not vary.
    """
    options = AgreementOptions(str(output), ratings, relative_ranks, by, title)
    metrics = MetricOptions(list(checkpoints), list(baselines), list(score_files), resamples, seed)
    return measure_agreement(options, metrics, scorer_options)


def measure_agreement(
    options: AgreementOptions, metrics: MetricOptions, scorer_options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Run the experiment with settings that were read; see `run`."""
    from bleurt_repro import __version__
    from bleurt_repro.training.experiments.baselines import find_baseline
    from bleurt_repro.training.experiments.measure import data_record, judge
    from bleurt_repro.training.experiments.metric_rows import all_rows
    from bleurt_repro.training.experiments.options import Cells

    path = options.ratings or options.relative_ranks
    if path is None or (options.ratings and options.relative_ranks):
        raise ValueError("give either a file of ratings or a file of relative ranks")
    if not (metrics.checkpoint or metrics.baselines or metrics.score_files):
        raise ValueError("nothing to measure: name at least one checkpoint or baseline")
    for name in metrics.baselines:
        find_baseline(name)
    texts, samples, records = _read(options)
    _check_variance(samples)
    rows = all_rows(texts, Cells(Path(options.output) / CELLS), metrics, scorer_options)
    results = {
        "experiment": "agreement",
        "title": options.title or Path(path).name,
        "command": command("agreement", (options, metrics)),
        "data": data_record(path, records),
        "by": options.by,
        "version": __version__,
        **judge(rows, samples, metrics.resamples, metrics.seed),
    }
    write_report(Path(options.output), results)
    return results


def write_report(folder: Path, results: dict[str, Any]) -> None:
    """Write results.json, and what is drawn from it: table.md, comparisons.md and a plot of the averages."""
    from bleurt_repro.metric.files.writing import write_text
    from bleurt_repro.training.experiments.report import draw_averages, save_plot

    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / RESULTS, json.dumps(results, indent=2) + "\n")
    write_text(folder / "table.md", draw_table(results))
    write_text(folder / "comparisons.md", draw_comparisons(results))
    save_plot(draw_averages(results), folder, results["experiment"])


def _read(options: AgreementOptions) -> tuple[Any, Any, int]:
    from bleurt_repro.training.experiments.rating_tables import (
        rating_samples,
        rating_texts,
        read_ratings,
        read_relative_ranks,
    )

    if options.relative_ranks:
        return read_relative_ranks(options.relative_ranks, options.by)
    assert options.ratings is not None
    table = read_ratings(options.ratings, options.by, options.average_duplicates)
    return rating_texts(table), rating_samples(table, options.by), len(table)


def _check_variance(samples: Sequence[Any]) -> None:
    """Refuse ratings that do not vary before anything is scored."""
    import numpy as np

    for sample in samples:
        if not sample.of_scores and np.ptp(sample.second) == 0:
            raise ValueError(
                f"all {len(sample.second)} ratings of group {sample.group} are {sample.second[0]:g}: without variance "
                "there is no correlation; leave the group out, or group by another column"
            )
