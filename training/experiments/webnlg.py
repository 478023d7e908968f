r"""WebNLG 2017 (BLEURT, section 5.3, figure 3): a new task, new systems, new inputs, and few ratings of them.

    bleurt-repro experiment webnlg --config experiment_webnlg_mini --data WEBNLG --encoder ENCODER \
        --pretrained PRETRAINED --wmt-tuned CHECKPOINT --output OUT
    bleurt-repro experiment webnlg --data WEBNLG --training-systems 0 --training-inputs 0 --checkpoint ORG/NAME --output OUT

WEBNLG is what `bleurt-repro data webnlg` takes as --data-dir. Part of the systems or of the inputs train, the others
test; fluency, grammar and semantics are tasks of their own. OUT gets results.json and, drawn from it alone, table.md
and figure3 as PNG and SVG. Scores are kept in OUT/cells: a killed run resumes.
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
from bleurt_repro.training.experiments.report import add_legend, error_bars, markdown, percent, style, write_report
from bleurt_repro.training.metrics.cells import CELLS, Cells
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bleurt_repro.training.metrics.rows import Row, Texts

WebNlgRow = dict[str, Any]


@dataclass
class WebNlgOptions:
    """Which ratings, and how much of them trains."""

    output: str = field(metadata={"help": "Folder to write."})
    data: str = field(metadata={"help": "Folder or file of WebNLG 2017 ratings."})
    wmt_tuned: str | None = field(
        default=None,
        metadata={"help": "A pre-trained BLEURT fine-tuned on WMT: the full model; also scored as it is."},
    )
    aspects: list[str] = field(default_factory=lambda: [*ASPECTS], metadata={"help": "Which ratings."})
    training_systems: list[int] = field(
        default_factory=lambda: [*PAPER_SYSTEMS], metadata={"help": "How many systems train."}
    )
    training_inputs: list[int] = field(
        default_factory=lambda: [*PAPER_INPUTS], metadata={"help": "How many inputs train."}
    )

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.aspects) - set(ASPECTS)):
            raise ValueError(f"unknown aspects {', '.join(unknown)}: known are {', '.join(ASPECTS)}")


def main(words: Sequence[str]) -> Result:
    """Run the experiment as the module's docstring says."""
    return run_webnlg(*read_options((WebNlgOptions, MetricOptions, ModelOptions), words))


def run_webnlg(options: WebNlgOptions, metrics: MetricOptions, models: ModelOptions) -> Result:
    """Train and measure on every split, and write and return the results.

    Args:
        options: which ratings, and how much of them trains.
        metrics: which metrics are measured.
        models: which models are trained.

    Raises:
        FileNotFoundError: if the data are not there.
        ValueError: if nothing is to be measured, or a size is not possible.
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
    conditions = make_conditions(rows, options, metrics.seed)
    found = [(part, untrained + _trained(part, outputs, training, options)) for part in conditions]
    result = Result(
        kind="webnlg",
        command=command("webnlg", (options, metrics, models)),
        seed=metrics.seed,
        signatures=signatures([row for _, rows in found for row in rows]),
        data=data_record(webnlg_files(options.data)[0], len(rows)),
        figures={
            "title": "WebNLG 2017",
            "outputs": len(outputs.rows),
            "pairs": len(outputs.texts.candidates),
            "missing_outputs": len(rows) - len(outputs.rows),
            "resamples": metrics.resamples,
            "resample": metrics.resample,
            "conditions": [_measure(part, outputs, rows, metrics) for part, rows in found],
        },
    )
    write_report(options.output, result, {"table.md": draw_table(result)}, {"figure3": draw_plot(result)})
    return result


@dataclass(frozen=True)
class Condition:
    """One split and one aspect: what trains, and which outputs test."""

    split: str
    size: int
    aspect: str
    sides: dict[str, list[WebNlgRow]]

    def records(self, side: str) -> list[WebNlgRow]:
        """Return one rating a reference, of train or validation, standardised by the training ratings.

        Ratings from 1 to 3 are far from the scores of a metric trained on WMT: as they are, a few hundred of them teach
        it little but the new mean.
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
    """All outputs that are not missing, and their pairs with each reference, of which the highest score counts."""

    rows: list[WebNlgRow]
    texts: Texts
    first_pair: np.ndarray

    def highest(self, row: Row) -> Row:
        """Return a row with one score an output in place of one a pair."""
        return replace(row, vectors=[np.maximum.reduceat(vector, self.first_pair) for vector in row.vectors])

    def places(self, rows: Sequence[WebNlgRow]) -> np.ndarray:
        """Find rows among the outputs; missing outputs are left out."""
        place = {(row["segment_id"], row["system"]): i for i, row in enumerate(self.rows)}
        return np.array(
            [place[key] for row in rows if (key := (row["segment_id"], row["system"])) in place], dtype=int
        )


def make_outputs(rows: Sequence[WebNlgRow]) -> Outputs:
    """Pair all outputs that are not missing with each of their references."""
    from bleurt_repro.training.metrics.rows import Texts

    kept = [row for row in rows if not row["missing_output"]]
    pairs = [(reference, row["candidate"]) for row in kept for reference in row["references"]]
    counts = [len(row["references"]) for row in kept]
    texts = Texts([reference for reference, _ in pairs], [candidate for _, candidate in pairs])
    return Outputs(kept, texts, np.cumsum([0, *counts[:-1]]))


def make_conditions(rows: Sequence[WebNlgRow], options: WebNlgOptions, seed: int) -> list[Condition]:
    """Split the ratings in every way that is set."""
    from bleurt_repro.datasets_builders.ratings.webnlg import split_by_input, split_by_system

    splits = [("system", size, split_by_system(rows, size, seed=seed)) for size in options.training_systems]
    splits += [("input", size, split_by_input(rows, size, seed=seed)) for size in options.training_inputs]
    return [Condition(split, size, aspect, sides) for aspect in options.aspects for split, size, sides in splits]


def _trained(condition: Condition, outputs: Outputs, training: Any, options: WebNlgOptions) -> list[Row]:
    """Train each of the three models on what the condition gives; with nothing, take the full model as it is."""
    from bleurt_repro.training.metrics.rows import score_checkpoint

    models, name = training.options, training.options.model_name
    if condition.size == 0:
        if options.wmt_tuned is None:
            return []
        row = score_checkpoint(options.wmt_tuned, outputs.texts, training.cells)
        return [outputs.highest(replace(row, name=name, kind="model"))]
    named = [(f"{name} -pre -wmt", models.encoder), (f"{name} -wmt", models.pretrained), (name, options.wmt_tuned)]
    files = partial(_files, Path(options.output) / "data", condition)
    return [outputs.highest(training.row(title, start, files, outputs.texts)) for title, start in named if start]


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

    places = outputs.places(condition.sides["test"])
    ratings = np.array([outputs.rows[i][condition.aspect] for i in places])
    inputs = np.unique([outputs.rows[i]["segment_id"] for i in places], return_inverse=True)[1]
    sample = Sample("kendall_tau", "all", places, ratings, segments=inputs)
    if not rows:
        raise ValueError("nothing to measure: name an encoder to train, a checkpoint or a baseline")
    records = {side: len(condition.records(side)) for side in ("train", "validation")}
    return {
        "split": condition.split,
        "size": condition.size,
        "aspect": condition.aspect,
        "training_records": sum(records.values()),
        "test_outputs": len(places),
        **measure_rows(rows, [sample], metrics),
    }


def draw_table(results: Mapping[str, Any]) -> str:
    """Draw absolute Kendall tau times 100: a table for each way to split and aspect, a column a size."""
    table: dict[str, dict[str, str]]
    parts = [
        f"{results['outputs']} outputs with {results['pairs']} references; {results['missing_outputs']} missing outputs "
        "left out. The highest score over the references counts. Absolute Kendall tau x 100 [95 % interval].\n"
    ]
    if not any(part["size"] for part in results["conditions"]):  # nothing trains: all ways to split are one
        table = {row["name"]: {} for row in results["conditions"][0]["rows"]}
        for part in results["conditions"]:
            for row in part["rows"]:
                table[row["name"]][f"{part['aspect']} (n = {part['test_outputs']})"] = percent(*_absolute(row))
        return "\n".join([*parts, markdown(table)])
    for (split, aspect), conditions in _panels(results).items():
        table = {}
        for part in conditions:
            heading = (
                f"{part['training_records']} records of {part['size']} {split}s train (test: {part['test_outputs']})"
            )
            for row in part["rows"]:
                table.setdefault(row["name"], {})[heading] = percent(*_absolute(row))
        parts.append(f"**{aspect}**, by {split}\n\n{markdown(table)}")
    return "\n".join(parts)


def draw_plot(results: Mapping[str, Any]) -> Figure:
    """Draw agreement against the ratings that train: a row a way to split, a column an aspect (BLEURT, figure 3)."""
    from matplotlib.figure import Figure

    panels = _panels(results)
    splits, aspects = (list(dict.fromkeys(key[i] for key in panels)) for i in (0, 1))
    names = list(dict.fromkeys(row["name"] for part in results["conditions"] for row in part["rows"]))
    names.sort(key=lambda name: not _is_model(results, name))
    figure = Figure(figsize=(3.4 * len(aspects) + 0.6, 3.1 * len(splits) + 0.8), layout="constrained")
    for (split, aspect), conditions in panels.items():
        place = splits.index(split) * len(aspects) + aspects.index(aspect) + 1
        _draw_panel(figure.add_subplot(len(splits), len(aspects), place), conditions, names, f"{aspect}, by {split}")
    add_legend(figure, 4)
    return figure


def _panels(results: Mapping[str, Any]) -> dict[tuple[str, str], list[Any]]:
    panels: dict[tuple[str, str], list[Any]] = {}
    for part in results["conditions"]:
        panels.setdefault((part["split"], part["aspect"]), []).append(part)
    return panels


def _draw_panel(axes: Axes, conditions: list[Any], names: list[str], title: str) -> None:
    most = max(part["training_records"] for part in conditions)
    for i, name in enumerate(names):
        found = [(part["training_records"], row) for part in conditions for row in part["rows"] if row["name"] == name]
        if not found:
            continue
        figures = [_absolute(row) for _, row in found]
        # beside each other, so that intervals do not hide one another
        places = [records + 0.008 * most * i for records, _ in found]
        bars = error_bars([value for value, *_ in figures], [ends for _, *ends in figures], 100)
        axes.errorbar(places, [100 * value for value, *_ in figures], yerr=bars, label=name, **style(i))
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("training records (candidate, reference)")
    axes.set_ylabel("|Kendall tau| x 100 (95 % interval)")
    axes.grid(alpha=0.3)


def _is_model(results: Mapping[str, Any], name: str) -> bool:
    return any(
        row["name"] == name and row["kind"] == "model" for part in results["conditions"] for row in part["rows"]
    )


def _absolute(row: Mapping[str, Any]) -> tuple[float, float | None, float | None]:
    value, (low, high) = row["average"]["kendall_tau"], row["average_intervals"]["kendall_tau"]
    return (value, low, high) if value >= 0 or low is None else (-value, -high, -low)
