r"""What pre-training adds (BLEURT, section 5.4, figures 4 and 5): by task, and by step.

    bleurt-repro experiment ablation --config experiment_ablation_mini --data ratings/2017 --encoder ENCODER \
        --pairs PAIRS --output OUT
    bleurt-repro experiment ablation --config experiment_ablation_mini --data ratings/2017 --encoder ENCODER \
        --pairs PAIRS --signals none --output OUT

DATA is what `bleurt-repro data wmt` wrote for 2017, PAIRS what `bleurt-repro data synthetic` made. Models are
pre-trained on one task and on all but one, and on all to ever more steps (the second command: these alone); each is
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

# What a model is pre-trained on: nothing, all tasks, one, all but one, or all for so many steps.
NONE, ALL, ONLY, WITHOUT, STEPS = "none", "all", "only", "without", "steps"
# The models of single seeds in the figures.
DOTS: dict[str, Any] = {"color": "#888888", "s": 9}


@dataclass
class AblationOptions:
    """What is pre-trained on, and what is judged on."""

    output: str = field(metadata={"help": "Folder to write."})
    data: str = field(metadata={"help": "Folder of `bleurt-repro data wmt`: train, validation and test."})
    pairs: str = field(metadata={"help": "Synthetic pairs: folder that `bleurt-repro data synthetic` made."})
    pretrain: str = field(default="pretrain_mini", metadata={"help": "Configuration of `bleurt-repro pretrain`."})
    pretrain_steps: int = field(default=0, metadata={"help": "Steps of each pre-training; 0: as configured."})
    every: int = field(default=0, metadata={"help": "Fine-tune from every so many steps of it (figure 5); 0: no."})
    signals: list[str] = field(
        default_factory=list, metadata={"help": "Tasks to ablate; all of the pairs by default, none with `none`."}
    )


@dataclass(frozen=True)
class Arm:
    """One way to pre-train."""

    kind: str
    signal: str = ""
    steps: int = 0

    @property
    def name(self) -> str:
        """In tables."""
        return f"{self.kind} {self.signal or self.steps or ''}".strip().replace("_", " ")


def main(words: Sequence[str]) -> Result:
    """Run the experiment as the module's docstring says."""
    return run_ablation(*read_options((AblationOptions, MetricOptions, ModelOptions), words))


def run_ablation(options: AblationOptions, metrics: MetricOptions, models: ModelOptions) -> Result:
    """Pre-train, fine-tune and measure each arm, and write and return the results.

    Args:
        options: what is pre-trained on, and what is judged on.
        metrics: how figures are resampled and tested.
        models: the encoder, and how it is fine-tuned.

    Raises:
        FileNotFoundError: if the data are not there.
        ValueError: if no encoder is named, or a task is not in the pairs.
    """
    from bleurt_repro.datasets_builders.synthetic.builder import read_info
    from bleurt_repro.training.experiments.wmt import data_file
    from bleurt_repro.training.metrics.measure import measure_rows
    from bleurt_repro.training.metrics.rows import signatures
    from bleurt_repro.training.metrics.samples import data_record, rating_samples, rating_texts, read_ratings

    if models.encoder is None:
        raise ValueError("name the bare encoder that is pre-trained: --encoder FOLDER_OR_HUB_ID")
    info = read_info(options.pairs)
    known = [signal["name"] for signal in info["signals"]]
    ablated = [] if options.signals == [NONE] else options.signals or known
    if unknown := sorted(set(ablated) - set(known)):
        raise ValueError(f"the pairs have no signals {', '.join(unknown)}; they have {', '.join(known)}")
    test = data_file(options.data, "test")
    table = read_ratings(test, "lp")
    rows = list(_rows(rating_texts(table), ablated, known, options, metrics, models))
    result = Result(
        kind="ablation",
        command=command("ablation", (options, metrics, models)),
        seed=metrics.seed,
        signatures=signatures(rows),
        data=data_record(test, len(table)),
        figures={
            "title": "Pre-training tasks and steps",
            "pairs": [part["sha256"] for part in info["parts"]],
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
    """Return all ways to pre-train but the numbers of steps, with some signals alone and left out."""
    alone = [Arm(ONLY, signal) for signal in signals]
    return [Arm(NONE), Arm(ALL), *alone, *(Arm(WITHOUT, signal) for signal in signals)]


def left_out(arm: Arm, known: Sequence[str]) -> list[str]:
    """Return the signals that an arm does not learn.

    Args:
        arm: of kind all, only or without.
        known: all signals of the pairs.
    """
    return [name for name in known if (name == arm.signal) == (arm.kind == WITHOUT) and arm.signal]


def _rows(
    texts: Texts,
    ablated: Sequence[str],
    known: Sequence[str],
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
            start = str(pretraining.run(left_out(arm, known), options.pretrain_steps, every))
            pretrained = Result.read(start)
            notes["pretraining"] = {name: pretrained[name] for name in ("steps", "seconds")}
        yield tuning.row(arm.name, start, lambda _: training_files(options.data), texts, notes)
        if every:
            for steps, stage in pretraining.stages(Path(start)):
                arm_at = Arm(STEPS, steps=steps)
                notes = {"arm": STEPS, "signal": "", "steps": steps}
                yield tuning.row(arm_at.name, str(stage), lambda _: training_files(options.data), texts, notes)


def relative_gain(results: Mapping[str, Any], row: Mapping[str, Any], base: Mapping[str, Any]) -> tuple[float, Any]:
    """Compute how much higher one row's average tau is than another's, as a share of the other's, with its interval.

    Args:
        results: of the experiment; the interval is that of the paired bootstrap in its "comparisons".
        row, base: two of its rows.

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
    """Compute how much higher the average tau of each seed of a row is than another row's mean, as a share of that.

    Args:
        row, base: two rows of the experiment's results; a row of one seed has no seeds to show.
    """
    seeds = row.get("seeds", {}).get("kendall_tau", {"values": []})
    return [value / base["average"]["kendall_tau"] - 1 for value in seeds["values"]]


def draw_tasks(results: Mapping[str, Any]) -> Figure:
    """Draw one task against none, and all but one against all (BLEURT, figure 4), each seed as a dot."""
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
    axes.set_xlabel("pre-training steps")
    axes.set_ylabel("gain in Kendall tau over no pre-training, %\n(95 % interval)")
    axes.grid(alpha=0.3)
    return figure


def _draw_gains(
    axes: Axes, results: Mapping[str, Any], rows: list[Any], base: Mapping[str, Any], title: str, i: int
) -> None:
    gains = [relative_gain(results, row, base) for row in rows]
    bars = error_bars([gain for gain, _ in gains], [ends for _, ends in gains], 100)
    places = range(len(rows), 0, -1)
    axes.errorbar([100 * g for g, _ in gains], list(places), xerr=bars, **{**style(i), "linestyle": "none"})
    dots = [(100 * gain, place) for row, place in zip(rows, places, strict=True) for gain in seed_gains(row, base)]
    axes.scatter([gain for gain, _ in dots], [place for _, place in dots], **DOTS)
    axes.axvline(0, color="#444444", linewidth=1, linestyle="--")
    axes.set_yticks(list(places), [row["signal"].replace("_", " ") for row in rows])
    axes.set_ylim(0.4, len(rows) + 0.6)
    axes.set(title=title, xlabel="gain in Kendall tau, % (95 % interval)")
    axes.grid(axis="x", alpha=0.3)
