"""What pre-training adds (BLEURT, section 5.4, figures 4 and 5): by task, and by step.

    bleurt-repro experiment ablation --config experiment_ablation_mini --data ratings/2017 --encoder ENCODER \\
        --pairs PAIRS --output OUT

DATA is what `bleurt-repro data wmt` wrote for 2017, PAIRS what `bleurt-repro data synthetic` made. Models are
pre-trained on one task and on all but one, and on all to ever more steps; each is fine-tuned on DATA. OUT gets
results.json and, drawn from it alone, table.md, comparisons.md, figure4 and figure5 as PNG and SVG. Pre-trained models
and scores are kept in OUT: a killed run goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.training.experiments.options import MetricOptions, ModelOptions, command, read_options

if TYPE_CHECKING:
    from bleurt_repro.training.experiments.scoring import Row

NONE, ALL, ONLY, WITHOUT, STEPS = "none", "all", "only", "without", "steps"


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
        default_factory=list, metadata={"help": "Tasks to ablate; all of the pairs by default."}
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


def main(words: Sequence[str]) -> dict[str, Any]:
    """Run the experiment as the module's docstring says."""
    return run(*read_options((AblationOptions, MetricOptions, ModelOptions), words))


def run(options: AblationOptions, metrics: MetricOptions, models: ModelOptions) -> dict[str, Any]:
    """Run the experiment, and write and return the results.

    Raises:
        FileNotFoundError: if the data are not there.
        ValueError: if no encoder is named, or a task is not in the pairs.
    """
    from bleurt_repro import __version__
    from bleurt_repro.datasets_builders.synthetic_pairs import read_info
    from bleurt_repro.training.experiments.judging import data_record, judge
    from bleurt_repro.training.experiments.rating_tables import rating_samples, rating_texts, read_ratings
    from bleurt_repro.training.experiments.wmt import data_file

    if models.encoder is None:
        raise ValueError("name the bare encoder that is pre-trained: --encoder FOLDER_OR_HUB_ID")
    known = [signal["name"] for signal in read_info(options.pairs)["signals"]]
    if unknown := sorted(set(options.signals) - set(known)):
        raise ValueError(f"the pairs have no signals {', '.join(unknown)}; they have {', '.join(known)}")
    test = data_file(options.data, "test")
    table = read_ratings(test, "lp")
    rows = list(_rows(rating_texts(table), known, options, metrics, models))
    results = {
        "experiment": "ablation",
        "title": "Pre-training tasks and steps",
        "command": command("ablation", (options, metrics, models)),
        "data": data_record(test, len(table)),
        "pairs": [part["sha256"] for part in read_info(options.pairs)["parts"]],
        "by": "lp",
        "version": __version__,
        **judge(rows, rating_samples(table, "lp", ("kendall_tau",)), metrics.resamples, metrics.seed),
    }
    _write(Path(options.output), results)
    return results


def make_arms(signals: Sequence[str]) -> list[Arm]:
    """Give all ways to pre-train but the numbers of steps."""
    alone = [Arm(ONLY, signal) for signal in signals]
    return [Arm(NONE), Arm(ALL), *alone, *(Arm(WITHOUT, signal) for signal in signals)]


def left_out(arm: Arm, known: Sequence[str]) -> list[str]:
    """Give the signals that an arm does not learn.

    Args:
        arm: of kind all, only or without.
        known: all signals of the pairs.
    """
    return [name for name in known if (name == arm.signal) == (arm.kind == WITHOUT) and arm.signal]


def _rows(
    texts: Any, known: Sequence[str], options: AblationOptions, metrics: MetricOptions, models: ModelOptions
) -> Iterator[Row]:
    from bleurt_repro.training.experiments.agreement import CELLS
    from bleurt_repro.training.experiments.cells import Cells
    from bleurt_repro.training.experiments.fine_tuning import FineTuning
    from bleurt_repro.training.experiments.pre_training import PreTraining
    from bleurt_repro.training.experiments.wmt import training_files

    folder = Path(options.output)
    assert models.encoder is not None
    tuning = FineTuning(folder, Cells(folder / CELLS), models, metrics.scorer_options)
    pretraining = PreTraining(folder / "pretrained", models.encoder, options.pairs, options.pretrain)
    for arm in make_arms(options.signals or known):
        start, every = models.encoder, options.every if arm.kind == ALL else 0
        if arm.kind != NONE:
            start = str(pretraining.run(left_out(arm, known), options.pretrain_steps, every))
        notes = {"arm": arm.kind, "signal": arm.signal, "steps": arm.steps}
        yield tuning.row(arm.name, start, lambda _: training_files(options.data), texts, notes)
        if every:
            for steps, stage in pretraining.stages(Path(start)):
                arm_at = Arm(STEPS, steps=steps)
                notes = {"arm": STEPS, "signal": "", "steps": steps}
                yield tuning.row(arm_at.name, str(stage), lambda _: training_files(options.data), texts, notes)


def _write(folder: Path, results: dict[str, Any]) -> None:
    from bleurt_repro.metric.atomic import write_text
    from bleurt_repro.training.experiments.ablation_report import draw_steps, draw_tasks
    from bleurt_repro.training.experiments.plots import save_plot
    from bleurt_repro.training.experiments.tables import draw_comparisons, draw_table

    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "results.json", json.dumps(results, indent=2) + "\n")
    write_text(folder / "table.md", draw_table(results))
    write_text(folder / "comparisons.md", draw_comparisons(results))
    save_plot(draw_tasks(results), folder, "figure4")
    if any(row["arm"] == STEPS for row in results["rows"]):
        save_plot(draw_steps(results), folder, "figure5")
