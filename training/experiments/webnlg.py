r"""WebNLG 2017 (BLEURT, section 5.3, figure 3): a new task, new systems, new inputs, and few ratings of them.

    bleurt-repro experiment webnlg --config experiment_webnlg_mini --data WEBNLG --encoder ENCODER \
        --pretrained PRETRAINED --wmt-data ratings/2019 --output OUT
    bleurt-repro experiment webnlg --data WEBNLG --training-systems 0 --training-inputs 0 --checkpoint ORG/NAME --output OUT

WEBNLG is what `bleurt-repro data webnlg` takes as --data-dir. Ratings of some systems or of some inputs train, the rest
tests; fluency, grammar and semantics are separate tasks. The full model is trained in three steps, as in the paper: on
synthetic pairs (PRETRAINED), then on the WMT ratings of 2016 to 2018 (of what `bleurt-repro data wmt` wrote for 2019), and
then on WebNLG. BLEU, TER and Meteor are computed here; the paper has them from the organisers.

OUT gets results.json and, drawn from it alone, table.md and figure3 as PNG and SVG. Scores are kept in OUT/cells: a killed
run resumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.datasets_builders.ratings.webnlg import ASPECTS, PAPER_INPUTS, PAPER_SYSTEMS
from bleurt_repro.metric.statistics import standardise
from bleurt_repro.training.experiments.options import ModelOptions, command, read_options
from bleurt_repro.training.experiments.report import (
    add_legend,
    error_bars,
    markdown,
    overlap_section,
    percent,
    style,
    write_report,
)
from bleurt_repro.training.metrics.cells import CELLS, Cells
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bleurt_repro.training.experiments.trained_models import FineTuning
    from bleurt_repro.training.metrics.rows import Row, Texts

WebNlgRow = dict[str, Any]
WMT_YEARS = (2016, 2017, 2018)  # ratings of the full model (BLEURT, section 5.3)


@dataclass
class WebNlgOptions:
    """Which ratings, and how many of them train."""

    output: str = field(metadata={"help": "Folder for results, tables and plots."})
    data: str = field(metadata={"help": "Folder or file of WebNLG 2017 ratings."})
    wmt_data: str | None = field(
        default=None,
        metadata={
            "help": "Folder that `bleurt-repro data wmt` wrote for 2019: the pre-trained model is first fine-tuned on its "
            "ratings of --wmt-years, which makes the full model."
        },
    )
    wmt_years: list[int] = field(
        default_factory=lambda: [*WMT_YEARS], metadata={"help": "Years of the ratings of --wmt-data that train."}
    )
    wmt_tuned: str | None = field(
        default=None,
        metadata={"help": "A pre-trained BLEURT that was fine-tuned on WMT: the full model, in place of --wmt-data."},
    )
    aspects: list[str] = field(
        default_factory=lambda: [*ASPECTS], metadata={"help": "Aspects of the ratings: fluency, grammar, semantics."}
    )
    training_systems: list[int] = field(
        default_factory=lambda: [*PAPER_SYSTEMS], metadata={"help": "Numbers of systems whose ratings train."}
    )
    training_inputs: list[int] = field(
        default_factory=lambda: [*PAPER_INPUTS], metadata={"help": "Numbers of inputs whose ratings train."}
    )

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.aspects) - set(ASPECTS)):
            raise ValueError(f"unknown aspects {', '.join(unknown)}: available are {', '.join(ASPECTS)}")
        if self.wmt_data and self.wmt_tuned:
            raise ValueError(
                "give either wmt_data, from which the full model is trained, or wmt_tuned, the full model"
            )


def main(argv: Sequence[str]) -> Result:
    """Run the experiment with the options of a command line."""
    return run_webnlg(*read_options((WebNlgOptions, MetricOptions, ModelOptions), argv))


def run_webnlg(options: WebNlgOptions, metrics: MetricOptions, models: ModelOptions) -> Result:
    """Train and measure on every split, and write and return the results.

    Args:
        options: ratings, and how many of them train.
        metrics: metrics to measure.
        models: models to train.

    Raises:
        FileNotFoundError: if the data are missing.
        ValueError: if there is no metric and no model, or a size is not possible.
    """
    from bleurt_repro.datasets_builders.ratings.webnlg import read_webnlg, webnlg_files
    from bleurt_repro.training.experiments.trained_models import FineTuning
    from bleurt_repro.training.metrics.rows import score_metrics, signatures
    from bleurt_repro.training.metrics.samples import data_record

    rows = read_webnlg(options.data)
    outputs = make_outputs(rows)
    cells = Cells(Path(options.output) / CELLS)
    training = FineTuning(Path(options.output), cells, models, metrics.scorer_options)
    untrained = [outputs.highest(row) for row in score_metrics(outputs.texts, cells, metrics)]
    full_model = train_full_model(options, training) if options.wmt_data else options.wmt_tuned
    conditions = [
        (condition, untrained + _trained(condition, outputs, training, full_model, Path(options.output)))
        for condition in make_conditions(rows, options, metrics.seed)
    ]
    result = Result(
        kind="webnlg",
        command=command("webnlg", (options, metrics, models)),
        seed=metrics.seed,
        signatures=signatures([row for _, measured in conditions for row in measured]),
        data=data_record(webnlg_files(options.data)[0], len(rows)),
        figures={
            "title": "WebNLG 2017",
            "outputs": len(outputs.rows),
            "pairs": len(outputs.texts.candidates),
            "missing_outputs": len(rows) - len(outputs.rows),
            "resamples": metrics.resamples,
            "resample": metrics.resample,
            "conditions": [_measure(condition, outputs, measured, metrics) for condition, measured in conditions],
        },
    )
    write_report(options.output, result, {"table.md": draw_table(result)}, {"figure3": draw_plot(result)})
    return result


def train_full_model(options: WebNlgOptions, training: FineTuning) -> str:
    """Fine-tune the pre-trained model on the WMT ratings of some years, unless that is finished already.

    Args:
        options: folder of WMT ratings, and years.
        training: models, and how they are fine-tuned; the first seed is used.

    Returns:
        folder of the model.

    Raises:
        ValueError: if there is no pre-trained model, or there are no ratings of these years.
    """
    from bleurt_repro.training.experiments.trained_models import write_ratings
    from bleurt_repro.training.experiments.wmt import data_file
    from bleurt_repro.training.metrics.samples import rating_rows, read_ratings

    if training.options.pretrained is None:
        raise ValueError("name the pre-trained model that is fine-tuned on --wmt-data: --pretrained FOLDER_OR_HUB_ID")
    assert options.wmt_data is not None
    files = []
    for side in ("train", "validation"):
        table = read_ratings(data_file(options.wmt_data, side), "lp")
        table = table[table["year"].isin(options.wmt_years)]
        if table.empty:
            raise ValueError(f"the {side} ratings of {options.wmt_data} have none of {options.wmt_years}")
        files.append(write_ratings(Path(options.output) / "data" / f"wmt-{side}.jsonl", rating_rows(table)))
    return training.train(f"{training.options.model_name} WMT", training.options.pretrained, (files[0], files[1]))


@dataclass(frozen=True)
class Condition:
    """One split and one aspect: the ratings that train, and the outputs that test."""

    split: str
    size: int
    aspect: str
    sides: dict[str, list[WebNlgRow]]

    def records(self, side: str) -> list[WebNlgRow]:
        """Return one rating per reference, of train or validation, standardised by the training ratings.

        Ratings from 1 to 3 are far from the scores of a metric trained on WMT: without standardising, a few hundred of
        them teach it little but the new mean.
        """
        from bleurt_repro.datasets_builders.ratings.webnlg import pairs_with_references

        rows = pairs_with_references(self.sides.get(side, []), self.aspect)
        training = pairs_with_references(self.sides.get("train", []), self.aspect)
        if not training or not rows:
            return rows
        by = np.array([row["score"] for row in training], dtype=float)
        scores = standardise(np.array([row["score"] for row in rows], dtype=float), by, constant=1.0)
        return [{**row, "score": float(score)} for row, score in zip(rows, scores, strict=True)]


@dataclass(frozen=True)
class Outputs:
    """All outputs that are not missing, and their pairs with each reference; the highest score of an output counts.

    Attributes:
        rows: outputs.
        texts: pairs of an output and a reference, those of an output after each other.
        first_pair: index of the first pair of each output.
    """

    rows: list[WebNlgRow]
    texts: Texts
    first_pair: np.ndarray

    def highest(self, row: Row) -> Row:
        """Return a row with one score per output in place of one per pair."""
        return replace(row, vectors=[np.maximum.reduceat(vector, self.first_pair) for vector in row.vectors])

    def indices(self, rows: Sequence[WebNlgRow]) -> np.ndarray:
        """Return the index of each row among the outputs; missing outputs are left out."""
        index = {(row["segment_id"], row["system"]): i for i, row in enumerate(self.rows)}
        return np.array(
            [index[key] for row in rows if (key := (row["segment_id"], row["system"])) in index], dtype=int
        )


def make_outputs(rows: Sequence[WebNlgRow]) -> Outputs:
    """Pair all outputs that are not missing with each of their references."""
    from bleurt_repro.training.metrics.rows import Texts

    outputs = [row for row in rows if not row["missing_output"]]
    pairs = [(reference, row["candidate"]) for row in outputs for reference in row["references"]]
    counts = [len(row["references"]) for row in outputs]
    texts = Texts([reference for reference, _ in pairs], [candidate for _, candidate in pairs])
    return Outputs(outputs, texts, np.cumsum([0, *counts[:-1]]))


def make_conditions(rows: Sequence[WebNlgRow], options: WebNlgOptions, seed: int) -> list[Condition]:
    """Return a condition for each aspect and each split of the options."""
    from bleurt_repro.datasets_builders.ratings.webnlg import split_by_input, split_by_system

    splits = [("system", size, split_by_system(rows, size, seed=seed)) for size in options.training_systems]
    splits += [("input", size, split_by_input(rows, size, seed=seed)) for size in options.training_inputs]
    return [Condition(split, size, aspect, sides) for aspect in options.aspects for split, size, sides in splits]


def _trained(
    condition: Condition, outputs: Outputs, training: FineTuning, full_model: str | None, folder: Path
) -> list[Row]:
    """Train each of the three models on the ratings of a condition; without ratings, score with the full model itself."""
    from bleurt_repro.training.metrics.rows import score_checkpoint

    models, name = training.options, training.options.model_name
    if condition.size == 0:
        if full_model is None:
            return []
        row = score_checkpoint(full_model, outputs.texts, training.cells)
        return [outputs.highest(replace(row, name=name, kind="model"))]
    rows = [(f"{name} -pre -wmt", models.encoder), (f"{name} -wmt", models.pretrained), (name, full_model)]
    files = partial(_files, folder / "data", condition)
    return [outputs.highest(training.row(title, start, files, outputs.texts)) for title, start in rows if start]


def _files(folder: Path, condition: Condition, _: int) -> tuple[Path, Path]:
    from bleurt_repro.training.experiments.trained_models import write_ratings

    name = f"{condition.split}-{condition.size}-{condition.aspect}"
    train, validation = (
        write_ratings(folder / f"{name}-{side}.jsonl", condition.records(side)) for side in ("train", "validation")
    )
    return train, validation


def _measure(condition: Condition, outputs: Outputs, rows: Sequence[Row], metrics: MetricOptions) -> dict[str, Any]:
    from bleurt_repro.training.metrics.measure import measure_rows
    from bleurt_repro.training.metrics.samples import Sample

    indices = outputs.indices(condition.sides["test"])
    ratings = np.array([outputs.rows[i][condition.aspect] for i in indices])
    inputs = np.unique([outputs.rows[i]["segment_id"] for i in indices], return_inverse=True)[1]
    sample = Sample("kendall_tau", "all", indices, ratings, segments=inputs)
    if not rows:
        raise ValueError("nothing to measure: name an encoder to train, a checkpoint or a baseline")
    records = {side: len(condition.records(side)) for side in ("train", "validation")}
    return {
        "split": condition.split,
        "size": condition.size,
        "aspect": condition.aspect,
        "training_records": sum(records.values()),
        "test_outputs": len(indices),
        **measure_rows(rows, [sample], metrics),
    }


def draw_table(results: Mapping[str, Any]) -> str:
    """Return absolute Kendall tau times 100: one table per split and aspect, one column per size."""
    table: dict[str, dict[str, str]]
    sections = [
        f"{results['outputs']} outputs with {results['pairs']} references; {results['missing_outputs']} missing outputs "
        "left out. The highest score over the references counts. Absolute Kendall tau x 100 [95 % interval].\n"
    ]
    overlaps = overlap_section([row for row in results["conditions"][0]["rows"] if row["kind"] == "checkpoint"])
    if not any(condition["size"] for condition in results["conditions"]):  # nothing trains: all splits are the same
        table = {row["name"]: {} for row in results["conditions"][0]["rows"]}
        for condition in results["conditions"]:
            heading = f"{condition['aspect']} (n = {condition['test_outputs']})"
            for row in condition["rows"]:
                table[row["name"]][heading] = percent(*_absolute(row))
        return "\n".join([*sections, markdown(table), *overlaps])
    for (split, aspect), conditions in _panels(results).items():
        table = {}
        for condition in conditions:
            heading = (
                f"{condition['training_records']} records of {condition['size']} {split}s train "
                f"(test: {condition['test_outputs']})"
            )
            for row in condition["rows"]:
                table.setdefault(row["name"], {})[heading] = percent(*_absolute(row))
        sections.append(f"**{aspect}**, by {split}\n\n{markdown(table)}")
    return "\n".join([*sections, *overlaps])


def draw_plot(results: Mapping[str, Any]) -> Figure:
    """Draw agreement against the number of training records: one row per split, one column per aspect (BLEURT, figure 3)."""
    from matplotlib.figure import Figure

    panels = _panels(results)
    splits, aspects = (list(dict.fromkeys(key[i] for key in panels)) for i in (0, 1))
    names = list(dict.fromkeys(row["name"] for condition in results["conditions"] for row in condition["rows"]))
    names.sort(key=lambda name: not _is_model(results, name))
    figure = Figure(figsize=(3.4 * len(aspects) + 0.6, 3.1 * len(splits) + 0.8), layout="constrained")
    for (split, aspect), conditions in panels.items():
        number = splits.index(split) * len(aspects) + aspects.index(aspect) + 1
        _draw_panel(figure.add_subplot(len(splits), len(aspects), number), conditions, names, f"{aspect}, by {split}")
    add_legend(figure, 4)
    return figure


def _panels(results: Mapping[str, Any]) -> dict[tuple[str, str], list[Any]]:
    panels: dict[tuple[str, str], list[Any]] = {}
    for condition in results["conditions"]:
        panels.setdefault((condition["split"], condition["aspect"]), []).append(condition)
    return panels


def _draw_panel(axes: Axes, conditions: list[Any], names: list[str], title: str) -> None:
    most = max(condition["training_records"] for condition in conditions)
    for i, name in enumerate(names):
        points = [
            (condition["training_records"], _absolute(row))
            for condition in conditions
            for row in condition["rows"]
            if row["name"] == name
        ]
        if not points:
            continue
        figures = [figure for _, figure in points]
        # Lines are shifted a little, so that intervals do not hide each other.
        x = [records + 0.008 * most * i for records, _ in points]
        bars = error_bars([value for value, *_ in figures], [ends for _, *ends in figures], 100)
        axes.errorbar(x, [100 * value for value, *_ in figures], yerr=bars, label=name, **style(i))
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("training records (candidate, reference)")
    axes.set_ylabel("|Kendall tau| x 100 (95 % interval)")
    axes.grid(alpha=0.3)


def _is_model(results: Mapping[str, Any], name: str) -> bool:
    return any(
        row["name"] == name and row["kind"] == "model"
        for condition in results["conditions"]
        for row in condition["rows"]
    )


def _absolute(row: Mapping[str, Any]) -> tuple[float, float | None, float | None]:
    value, (low, high) = row["average"]["kendall_tau"], row["average_intervals"]["kendall_tau"]
    return (value, low, high) if value >= 0 or low is None else (-value, -high, -low)
