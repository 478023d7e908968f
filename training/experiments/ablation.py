r"""What pre-training adds (BLEURT, section 5.4, figures 4 and 5): by task, and by step.

    bleurt-repro experiment ablation --config experiment_ablation_mini --data ratings/2017 --encoder ENCODER \
        --pairs PAIRS --output OUT
    bleurt-repro experiment ablation --config experiment_ablation_mini --data ratings/2017 --encoder ENCODER \
        --pairs PAIRS --signals none --output OUT

DATA is what `bleurt-repro data wmt` wrote for 2017, PAIRS what `bleurt-repro data synthetic` made. Models are pre-trained on
one task, on all tasks but one, and on all tasks for more and more steps (the second command does the last only); each is
fine-tuned on DATA. OUT gets results.json and, drawn from it alone, table.md, comparisons.md, figure4 and figure5 as PNG
and SVG. Pre-trained models and scores are kept in OUT: a killed run resumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.training.experiments.options import ModelOptions, command, read_options
from bleurt_repro.training.experiments.report import (
    draw_comparisons,
    draw_table,
    error_bars,
    style,
    write_report,
)
from bleurt_repro.training.metrics.cells import CELLS, Cells
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bleurt_repro.training.metrics.rows import Row, Texts

# What a model is pre-trained on: nothing, all tasks, one task, all but one, or all tasks for a number of steps.
NONE, ALL, ONLY, WITHOUT, STEPS = "none", "all", "only", "without", "steps"
DOTS: dict[str, Any] = {"color": "#888888", "s": 9}  # models of single seeds in the figures
# The bars are bootstrap intervals of the mean over seeds; the dots show the variance between seeds.
BARS_AND_DOTS = "bars: 95 % interval over segments, without the variance of seeds; dots: seeds"


@dataclass
class AblationOptions:
    """Synthetic pairs to pre-train on, and ratings to measure on."""

    output: str = field(metadata={"help": "Folder for results, tables and plots."})
    data: str = field(
        metadata={"help": "Folder that `bleurt-repro data wmt` wrote, with train, validation and test ratings."}
    )
    pairs: str = field(metadata={"help": "Synthetic pairs: folder that `bleurt-repro data synthetic` made."})
    pretrain: str = field(
        default="pretrain_mini", metadata={"help": "Configuration of `bleurt-repro pretrain` for all models."}
    )
    pretrain_steps: int = field(
        default=0, metadata={"help": "Number of steps of each pre-training; 0: that of the configuration."}
    )
    every: int = field(
        default=0,
        metadata={
            "help": "Number of pre-training steps after which a model is fine-tuned for figure 5; 0: no figure 5."
        },
    )
    signals: list[str] = field(
        default_factory=list,
        metadata={"help": "Tasks to ablate; default: all of the pairs. `none`: no ablation, for figure 5 only."},
    )


@dataclass(frozen=True)
class Arm:
    """One way to pre-train."""

    kind: str
    signal: str = ""
    steps: int = 0

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{self.kind} {self.signal or self.steps or ''}".strip().replace("_", " ")


def main(argv: Sequence[str]) -> Result:
    """Run the experiment with the options of a command line."""
    return run_ablation(*read_options((AblationOptions, MetricOptions, ModelOptions), argv))


def run_ablation(options: AblationOptions, metrics: MetricOptions, models: ModelOptions) -> Result:
    """Pre-train, fine-tune and measure each arm, and write and return the results.

    Args:
        options: pairs to pre-train on, and ratings to measure on.
        metrics: settings of intervals and tests.
        models: encoder, and configuration of the fine-tuning.

    Raises:
        FileNotFoundError: if the data are missing.
        ValueError: if there is no encoder, or a task is not in the pairs.
    """
    from bleurt_repro.datasets_builders.synthetic.builder import read_info
    from bleurt_repro.training.experiments.wmt import data_file
    from bleurt_repro.training.metrics.measure import measure_rows
    from bleurt_repro.training.metrics.rows import signatures
    from bleurt_repro.training.metrics.samples import data_record, rating_samples, rating_texts, read_ratings

    if models.encoder is None:
        raise ValueError("name the bare encoder that is pre-trained: --encoder FOLDER_OR_HUB_ID")
    info = read_info(options.pairs)
    signals = [signal["name"] for signal in info["signals"]]
    ablated = [] if options.signals == [NONE] else options.signals or signals
    if unknown := sorted(set(ablated) - set(signals)):
        raise ValueError(f"the pairs have no signals {', '.join(unknown)}; they have {', '.join(signals)}")
    test = data_file(options.data, "test")
    table = read_ratings(test, "lp")
    rows = list(_rows(rating_texts(table), ablated, signals, options, metrics, models))
    result = Result(
        kind="ablation",
        command=command("ablation", (options, metrics, models)),
        seed=metrics.seed,
        signatures=signatures(rows),
        data=data_record(test, len(table)),
        figures={
            "title": "Pre-training tasks and steps",
            "pairs": [file["sha256"] for file in info["parts"]],
            "by": "lp",
            **measure_rows(rows, rating_samples(table, "lp", ("kendall_tau",)), metrics),
        },
    )
    _write(options.output, result)
    return result


def _write(output: str, result: Result) -> None:
    plots = {}
    if any(row["arm"] == ONLY for row in result["rows"]):
        plots["figure4"] = draw_tasks(result)
    if any(row["arm"] == STEPS for row in result["rows"]):
        plots["figure5"] = draw_steps(result)
    texts = {"table.md": draw_table(result), "comparisons.md": draw_comparisons(result)}
    write_report(output, result, texts, plots)


def make_arms(signals: Sequence[str]) -> list[Arm]:
    """Return the arms of figure 4: no pre-training, all tasks, each signal alone, and all but each signal."""
    return [Arm(NONE), Arm(ALL), *(Arm(ONLY, name) for name in signals), *(Arm(WITHOUT, name) for name in signals)]


def left_out(arm: Arm, signals: Sequence[str]) -> list[str]:
    """Return the signals that an arm does not learn.

    Args:
        arm: arm of kind all, only or without.
        signals: all signals of the pairs.
    """
    return [name for name in signals if (name == arm.signal) == (arm.kind == WITHOUT) and arm.signal]


def _rows(
    texts: Texts,
    ablated: Sequence[str],
    signals: Sequence[str],
    options: AblationOptions,
    metrics: MetricOptions,
    models: ModelOptions,
) -> Iterator[Row]:
    from bleurt_repro.training.experiments.trained_models import FineTuning, PreTraining
    from bleurt_repro.training.experiments.wmt import training_files

    folder = Path(options.output)
    assert models.encoder is not None
    tuning = FineTuning(folder, Cells(folder / CELLS), models, metrics.scorer_options)
    pretraining = PreTraining(folder / "pretrained", models.encoder, options.pairs, options.pretrain)
    for arm in make_arms(ablated):
        start, every = models.encoder, options.every if arm.kind == ALL else 0
        notes: dict[str, Any] = {"arm": arm.kind, "signal": arm.signal, "steps": arm.steps}
        if arm.kind != NONE:
            start = str(pretraining.run(left_out(arm, signals), options.pretrain_steps, every))
            pretrained = Result.read(start)
            notes["pretraining"] = {name: pretrained[name] for name in ("steps", "seconds")}
        yield tuning.row(arm.name, start, lambda _: training_files(options.data), texts, notes)
        if every:
            for steps, stage in pretraining.stages(Path(start)):
                arm_at = Arm(STEPS, steps=steps)
                notes = {"arm": STEPS, "signal": "", "steps": steps}
                yield tuning.row(arm_at.name, str(stage), lambda _: training_files(options.data), texts, notes)


def relative_gain(results: Mapping[str, Any], row: Mapping[str, Any], base: Mapping[str, Any]) -> tuple[float, Any]:
    """Compute the difference of the average tau of two rows, as a share of that of the second, with its interval.

    Args:
        results: results of the experiment; the interval is that of the paired bootstrap in its "comparisons".
        row, base: rows of the results.

    Returns:
        the gain, and the ends of its interval (None where there is none).
    """
    level = base["average"]["kendall_tau"]
    names = {row["name"], base["name"]}
    test = next((test for test in results["comparisons"] if {test["first"], test["second"]} == names), None)
    if test is None:
        return 0.0, (None, None)
    ends = (test["low"], test["high"])
    if test["first"] == base["name"]:
        ends = (None if ends[1] is None else -ends[1], None if ends[0] is None else -ends[0])
    gain = row["average"]["kendall_tau"] / level - 1
    return gain, tuple(None if end is None else end / level for end in ends)


def seed_gains(row: Mapping[str, Any], base: Mapping[str, Any]) -> list[float]:
    """Compute the gain of each seed of a row over the mean of another row, as a share of that mean.

    Args:
        row, base: rows of the results; without the seeds of a row that has only one.
    """
    seeds = row.get("seeds", {}).get("kendall_tau", {"values": []})
    return [value / base["average"]["kendall_tau"] - 1 for value in seeds["values"]]


def draw_tasks(results: Mapping[str, Any]) -> Figure:
    """Draw the gain of one task over none, and of all tasks but one over all (BLEURT, figure 4), each seed as a dot."""
    from matplotlib.figure import Figure

    arms = {arm: [row for row in results["rows"] if row["arm"] == arm] for arm in (NONE, ALL, ONLY, WITHOUT)}
    figure = Figure(figsize=(10, 1.4 + 0.4 * max(len(arms[ONLY]), 1)), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_gains(left, results, arms[ONLY], arms[NONE][0], "one task, over no pre-training", 0)
    _draw_gains(right, results, arms[WITHOUT], arms[ALL][0], "all tasks but one, over all", 1)
    return figure


def draw_steps(results: Mapping[str, Any]) -> Figure:
    """Draw the gain in tau over no pre-training against its steps (BLEURT, figure 5), each seed as a dot."""
    from matplotlib.figure import Figure

    rows = results["rows"]
    none = next(row for row in rows if row["arm"] == NONE)
    stages = [none, *sorted((row for row in rows if row["arm"] == STEPS), key=lambda row: row["steps"])]
    gains = [relative_gain(results, row, none) for row in stages]
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    bars = error_bars([gain for gain, _ in gains], [ends for _, ends in gains], 100)
    axes.errorbar([row["steps"] for row in stages], [100 * gain for gain, _ in gains], yerr=bars, **style(0))
    dots = [(row["steps"], 100 * gain) for row in stages for gain in seed_gains(row, none)]
    axes.scatter([steps for steps, _ in dots], [gain for _, gain in dots], **DOTS)
    axes.set_xlabel(f"pre-training steps\n({BARS_AND_DOTS})", fontsize=9)
    axes.set_ylabel("gain in Kendall tau over no pre-training, %")
    axes.grid(alpha=0.3)
    return figure


def _draw_gains(
    axes: Axes, results: Mapping[str, Any], rows: list[Any], base: Mapping[str, Any], title: str, i: int
) -> None:
    gains = [relative_gain(results, row, base) for row in rows]
    bars = error_bars([gain for gain, _ in gains], [ends for _, ends in gains], 100)
    lines = list(range(len(rows), 0, -1))
    axes.errorbar([100 * gain for gain, _ in gains], lines, xerr=bars, **{**style(i), "linestyle": "none"})
    dots = [(100 * gain, y) for row, y in zip(rows, lines, strict=True) for gain in seed_gains(row, base)]
    axes.scatter([gain for gain, _ in dots], [y for _, y in dots], **DOTS)
    axes.axvline(0, color="#444444", linewidth=1, linestyle="--")
    axes.set_yticks(lines, [row["signal"].replace("_", " ") for row in rows])
    axes.set_ylim(0.4, len(rows) + 0.6)
    axes.set_title(title)
    axes.set_xlabel(f"gain in Kendall tau, %\n({BARS_AND_DOTS})", fontsize=9)
    axes.grid(axis="x", alpha=0.3)
