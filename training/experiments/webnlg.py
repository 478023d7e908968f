"""WebNLG 2017 (BLEURT, section 5.3, figure 3): a new task, new systems, new inputs, and few ratings of them.

    bleurt-repro experiment webnlg --config experiment_webnlg_mini --data WEBNLG --encoder ENCODER \\
        --pretrained PRETRAINED --wmt_tuned CHECKPOINT --output OUT

WEBNLG is what `bleurt-repro data webnlg` takes as --data-dir. Part of the systems or of the inputs train, the others
test; fluency, grammar and semantics are tasks of their own. OUT gets results.json and, drawn from it alone, table.md
and figure3 as PNG and SVG. Scores are kept in OUT/cells: a killed run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.datasets_builders.webnlg_sources import ASPECTS
from bleurt_repro.datasets_builders.webnlg_splits import PAPER_INPUTS, PAPER_SYSTEMS
from bleurt_repro.training.experiments.options import MetricOptions, ModelOptions, command, read_options
from bleurt_repro.training.experiments.webnlg_report import draw_plot, draw_table

if TYPE_CHECKING:
    from bleurt_repro.training.experiments.scoring import Row, Texts

__all__ = ["draw_table", "main", "run"]

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


@dataclass(frozen=True)
class Condition:
    """One split and one aspect: what trains, and which outputs test."""

    split: str
    size: int
    aspect: str
    sides: dict[str, list[WebNlgRow]]

    def records(self, side: str) -> list[WebNlgRow]:
        """Give one rating a reference, of train or validation; in standard deviations of the training ratings.

        Ratings from 1 to 3 are far from what a scorer of WMT gives: as they are, a few hundred of them teach it little
        but the new mean.
        """
        from bleurt_repro.datasets_builders.webnlg_splits import pairs_with_references

        rows = pairs_with_references(self.sides.get(side, []), self.aspect)
        training = [row["score"] for row in pairs_with_references(self.sides.get("train", []), self.aspect)]
        mean, deviation = (np.mean(training), np.std(training) or 1.0) if training else (0.0, 1.0)
        return [{**row, "score": float((row["score"] - mean) / deviation)} for row in rows]


@dataclass(frozen=True)
class Outputs:
    """All outputs that were given, and their pairs with each reference, of which the highest score counts."""

    rows: list[WebNlgRow]
    texts: Texts
    first_pair: np.ndarray

    def highest(self, row: Row) -> Row:
        """Give a row one score an output in place of one a pair."""
        return replace(row, vectors=[np.maximum.reduceat(vector, self.first_pair) for vector in row.vectors])

    def places(self, rows: Sequence[WebNlgRow]) -> np.ndarray:
        """Find rows among the outputs; missing outputs are left out."""
        place = {(row["segment_id"], row["system"]): i for i, row in enumerate(self.rows)}
        return np.array(
            [place[key] for row in rows if (key := (row["segment_id"], row["system"])) in place], dtype=int
        )


def main(words: Sequence[str]) -> dict[str, Any]:
    """Run the experiment as the module's docstring says."""
    return run(*read_options((WebNlgOptions, MetricOptions, ModelOptions), words))


def run(options: WebNlgOptions, metrics: MetricOptions, models: ModelOptions) -> dict[str, Any]:
    """Run the experiment, and write and return the results.

    Raises:
        FileNotFoundError: if the data are not there.
        ValueError: if nothing is to be measured, or a size is not possible.
    """
    from bleurt_repro import __version__
    from bleurt_repro.datasets_builders.webnlg_sources import read_webnlg, webnlg_files
    from bleurt_repro.training.experiments.agreement import CELLS
    from bleurt_repro.training.experiments.cells import Cells
    from bleurt_repro.training.experiments.fine_tuning import FineTuning
    from bleurt_repro.training.experiments.judging import data_record
    from bleurt_repro.training.experiments.scoring import all_rows

    rows = read_webnlg(options.data)
    outputs = make_outputs(rows)
    cells = Cells(Path(options.output) / CELLS)
    training = FineTuning(Path(options.output), cells, models, metrics.scorer_options)
    found = all_rows(outputs.texts, cells, metrics)
    untrained = [outputs.highest(row) for row in found]
    conditions = make_conditions(rows, options, metrics.seed)
    results = {
        "experiment": "webnlg",
        "title": "WebNLG 2017",
        "command": command("webnlg", (options, metrics, models)),
        "data": data_record(webnlg_files(options.data)[0], len(rows)),
        "outputs": len(outputs.rows),
        "pairs": len(outputs.texts.candidates),
        "missing_outputs": len(rows) - len(outputs.rows),
        "version": __version__,
        "resamples": metrics.resamples,
        "seed": metrics.seed,
        "conditions": [
            _measure(condition, outputs, untrained + _trained(condition, outputs, training, options), metrics)
            for condition in conditions
        ],
    }
    _write(Path(options.output), results)
    return results


def make_outputs(rows: Sequence[WebNlgRow]) -> Outputs:
    """Pair all outputs that are not missing with each of their references."""
    from bleurt_repro.training.experiments.scoring import Texts

    kept = [row for row in rows if not row["missing_output"]]
    pairs = [(reference, row["candidate"]) for row in kept for reference in row["references"]]
    counts = [len(row["references"]) for row in kept]
    texts = Texts([reference for reference, _ in pairs], [candidate for _, candidate in pairs])
    return Outputs(kept, texts, np.cumsum([0, *counts[:-1]]))


def make_conditions(rows: Sequence[WebNlgRow], options: WebNlgOptions, seed: int) -> list[Condition]:
    """Split the ratings in every way that is set."""
    from bleurt_repro.datasets_builders.webnlg_splits import split_by_input, split_by_system

    splits = [("system", size, split_by_system(rows, size, seed=seed)) for size in options.training_systems]
    splits += [("input", size, split_by_input(rows, size, seed=seed)) for size in options.training_inputs]
    return [Condition(split, size, aspect, sides) for aspect in options.aspects for split, size, sides in splits]


def _trained(condition: Condition, outputs: Outputs, training: Any, options: WebNlgOptions) -> list[Row]:
    """Train each of the three models on what the condition gives; with nothing, take the full model as it is."""
    from bleurt_repro.training.experiments.scoring import checkpoint_row

    models, name = training.options, training.options.model_name
    if condition.size == 0:
        if options.wmt_tuned is None:
            return []
        row = checkpoint_row(options.wmt_tuned, outputs.texts, training.cells)
        return [outputs.highest(replace(row, name=name, kind="model"))]
    named = [(f"{name} -pre -wmt", models.encoder), (f"{name} -wmt", models.pretrained), (name, options.wmt_tuned)]
    files = partial(_files, Path(options.output) / "data", condition)
    return [outputs.highest(training.row(title, start, files, outputs.texts)) for title, start in named if start]


def _files(folder: Path, condition: Condition, _: int) -> tuple[Path, Path]:
    from bleurt_repro.training.experiments.fine_tuning import write_ratings

    name = f"{condition.split}-{condition.size}-{condition.aspect}"
    train, validation = (
        write_ratings(folder / f"{name}-{side}.jsonl", condition.records(side)) for side in ("train", "validation")
    )
    return train, validation


def _measure(condition: Condition, outputs: Outputs, rows: Sequence[Row], metrics: MetricOptions) -> dict[str, Any]:
    from bleurt_repro.training.experiments.judging import judge
    from bleurt_repro.training.experiments.measuring import Sample

    places = outputs.places(condition.sides["test"])
    ratings = np.array([outputs.rows[i][condition.aspect] for i in places])
    sample = Sample("kendall_tau", "all", places, ratings)
    if not rows:
        raise ValueError("nothing to measure: name an encoder to train, a checkpoint or a baseline")
    records = {side: len(condition.records(side)) for side in ("train", "validation")}
    return {
        "split": condition.split,
        "size": condition.size,
        "aspect": condition.aspect,
        "training_records": sum(records.values()),
        "test_outputs": len(places),
        **judge(rows, [sample], metrics.resamples, metrics.seed),
    }


def _write(folder: Path, results: dict[str, Any]) -> None:
    from bleurt_repro.metric.atomic import write_text
    from bleurt_repro.training.experiments.plots import save_plot

    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "results.json", json.dumps(results, indent=2) + "\n")
    write_text(folder / "table.md", draw_table(results))
    save_plot(draw_plot(results), folder, "figure3")
