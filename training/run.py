"""What all training shares: the paper's settings, resuming after a kill, and the record of a run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import ExportableState

from bleurt_repro.metric.files.writing import naming_what_fails
from bleurt_repro.training.results import COLOURS, Result, plain, repeating_command

if TYPE_CHECKING:
    from torch import Tensor

# The Trainer's settings that decide what a run gives.
RECORDED = (
    "learning_rate lr_scheduler_type warmup_steps weight_decay max_grad_norm layer_decay bf16 max_steps "
    "num_train_epochs global_batch_size per_device_train_batch_size gradient_accumulation_steps world_size seed"
).split()


@dataclass
class RunArguments(TrainingArguments):
    """The Trainer's arguments, with the defaults of BLEURT, section B.1: Adam, 1e-5, batch 32."""

    output_dir: str = field(metadata={"help": "Folder for the checkpoint; those of the run lie in it too."})
    resume: bool = field(default=False, metadata={"help": "Go on from the last whole checkpoint in output_dir."})
    global_batch_size: int = field(default=32, metadata={"help": "Pairs a step over all processes."})
    layer_decay: float = field(
        default=1.0, metadata={"help": "Learning rate of a layer over that of the next one up."}
    )
    early_stopping: int = field(default=0, metadata={"help": "Stop after so many evaluations without gain; 0: never."})
    learning_rate: float = 1e-5
    lr_scheduler_type: str = "constant"
    weight_decay: float = 0.0  # AdamW without decay is Adam
    per_device_train_batch_size: int = 32
    per_device_eval_batch_size: int = 128
    eval_strategy: str = "steps"
    eval_steps: float | None = 1_500
    save_steps: float = 1_500
    save_total_limit: int | None = 2
    load_best_model_at_end: bool = True
    remove_unused_columns: bool = False
    report_to: None | str | list[str] = "none"  # the order that HfArgumentParser can read

    def __post_init__(self) -> None:
        import torch

        if not (torch.cuda.is_available() or torch.backends.mps.is_available()):
            self.use_cpu = True  # the Trainer computes in bf16 on a CPU only when told that it is one
        super().__post_init__()
        self._share_batch()

    def _share_batch(self) -> None:
        """Keep the batch of a step the same for any number of processes, by accumulation where need be."""
        share, rest = divmod(self.global_batch_size, self.world_size)
        self.per_device_train_batch_size = min(self.per_device_train_batch_size, share)
        if rest or share % max(self.per_device_train_batch_size, 1):
            raise ValueError(
                f"global_batch_size {self.global_batch_size} cannot be shared by {self.world_size} processes in batches "
                f"of {self.per_device_train_batch_size}: choose numbers that divide"
            )
        self.gradient_accumulation_steps = share // self.per_device_train_batch_size


class Stopwatch(TrainerCallback, ExportableState):
    """Counts the seconds of training, those before a kill included (up to the last checkpoint)."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._before, self._started = seconds, time.monotonic()

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Start."""
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return self._before + time.monotonic() - self._started

    def state(self) -> dict[str, Any]:
        """Give what a checkpoint keeps."""
        return {"args": {"seconds": self.seconds}, "attributes": {}}


def last_checkpoint(folder: Path) -> tuple[Path | None, float]:
    """Find the last checkpoint that was written whole.

    Args:
        folder: where a run writes its checkpoints.

    Returns:
        the checkpoint, or None if there is none; and the seconds of training up to it.
    """
    for path in sorted(folder.glob("checkpoint-*"), key=lambda path: -int(path.name.split("-")[1])):
        try:  # the Trainer writes this file last
            state = json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return path, float(state["stateful_callbacks"].get("Stopwatch", {"args": {"seconds": 0}})["args"]["seconds"])
    return None, 0.0


def _evaluations_without_gain(checkpoint: Path) -> int:
    """Read how near a run was to its early stop: the Trainer itself would begin to count anew."""
    state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    found = state["stateful_callbacks"].get(EarlyStoppingCallback.__name__, {"attributes": {}})
    return int(found["attributes"].get("early_stopping_patience_counter", 0))


def check_output(args: Any) -> None:
    """Refuse to write over another run's checkpoints, or to push as the Trainer would: at each save, without a card.

    Raises:
        ValueError: if there are checkpoints and the run does not go on from them, or the run is to push.
    """
    if args.push_to_hub:
        raise ValueError(
            "--push_to_hub is for the command line: `bleurt-repro finetune ...` publishes the finished checkpoint with its "
            "card (under torchrun: `torchrun --no-python bleurt-repro finetune ...`)"
        )
    found, _ = last_checkpoint(Path(args.output_dir))
    if found and not args.resume:
        raise ValueError(
            f"{args.output_dir} holds a run already ({found.name}): add --resume to go on from there, or choose "
            "another --output_dir"
        )


def naming_a_full_disk(folder: str | Path) -> AbstractContextManager[None]:
    """Turn what the libraries raise when the disk is full into one clear error that names the last whole checkpoint.

    Args:
        folder: that is written to.
    """

    def advice() -> str:
        found, _ = last_checkpoint(Path(folder))
        return f"{found.name} is whole: make room and add --resume" if found else "nothing was saved yet: make room"

    return naming_what_fails(folder, advice)


def train(trainer: Trainer, args: Any) -> float:
    """Train, from the last whole checkpoint if `args.resume` asks for it and there is one.

    Returns:
        seconds of training, those of earlier sessions included.

    Raises:
        ValueError: if the checkpoint to go on from is of a model of another size.
        OSError: if the disk is full.
    """
    checkpoint, seconds = last_checkpoint(Path(args.output_dir)) if args.resume else (None, 0.0)
    stopwatch = Stopwatch(seconds)
    trainer.add_callback(stopwatch)
    if patience := getattr(args, "early_stopping", 0):
        stopping = EarlyStoppingCallback(patience)
        stopping.early_stopping_patience_counter = _evaluations_without_gain(checkpoint) if checkpoint else 0
        trainer.add_callback(stopping)
    with naming_a_full_disk(args.output_dir):
        try:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        except RuntimeError as error:
            if checkpoint is None or "size mismatch" not in str(error):
                raise
            raise ValueError(
                f"{checkpoint} is of a model of another size than the one given now: give the --model that the run "
                "began with, or choose another --output_dir"
            ) from error
    return stopwatch.seconds


def whole_state(trainer: Trainer) -> dict[str, Tensor]:
    """Give the trained weights, gathered where FSDP shared them out; to be called by every process."""
    state: dict[str, Tensor] = trainer.accelerator.get_state_dict(trainer.model)
    return state


def finish(
    trainer: Trainer,
    kind: str,
    settings: Any,
    data: dict[str, Any],
    seconds: float,
    save: Callable[[Path], None],
) -> Result:
    """Write checkpoint, results.json and curves.png into the run's folder; to be called by every process.

    Args:
        trainer: after training.
        kind: of training, "finetune" or "pretrain".
        settings: the dataclass of what is trained, on which data.
        data: what was trained on.
        seconds: of training.
        save: writes the checkpoint into a folder; called by the main process only.

    Returns:
        what results.json holds.

    Raises:
        OSError: if the disk is full.
    """
    result = _result(trainer, kind, settings, data, seconds)
    folder = Path(str(trainer.args.output_dir))
    if trainer.is_world_process_zero():
        with naming_a_full_disk(folder):
            save(folder)
            draw_curves(result, folder / "curves.png")
            result.write(folder)
    trainer.accelerator.wait_for_everyone()  # so that no process reads what is not there yet
    return result


def _result(trainer: Trainer, kind: str, settings: Any, data: dict[str, Any], seconds: float) -> Result:
    args: Any = trainer.args
    state = trainer.state
    given = plain({**asdict(settings), **{name: getattr(args, name) for name in RECORDED}})
    figures = {
        "best": {"measure": args.metric_for_best_model, "value": state.best_metric, "step": state.best_global_step},
        "steps": state.global_step,
        "epochs": state.epoch,
        "seconds": round(seconds, 1),
        "examples_per_second": round(state.global_step * args.global_batch_size / seconds, 1),
        "settings": given,
        "history": state.log_history,
    }
    return Result(kind, repeating_command(f"bleurt-repro {kind}", given), figures, args.seed, data=data)


def draw_curves(result: Mapping[str, Any], path: Path) -> None:
    """Draw losses, and validation measures where there are any, against steps.

    Args:
        result: of a training run; its "history" is the Trainer's log.
        path: the PNG or SVG file to write.
    """
    from matplotlib.figure import Figure

    history = result["history"]
    losses = _series(history, lambda name: name == "loss" or name.endswith("_loss") or "loss_" in name)
    measures = _series(history, lambda name: name in ("eval_kendall_tau", "eval_pearson_r"))
    panels = [(values, label) for values, label in ((losses, "loss"), (measures, "agreement")) if values]
    figure = Figure(figsize=(6 * max(len(panels), 1), 4), layout="constrained")
    for place, (series, label) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        _draw_panel(axes, series)
        axes.set_ylabel(label)
    figure.savefig(path, dpi=150)


def _draw_panel(axes: Any, series: Mapping[str, list[tuple[int, float]]]) -> None:
    """Draw some quantities; each has one colour, dotted in training and solid in validation."""
    quantities = list(dict.fromkeys(name.removeprefix("eval_") for name in series))
    for name, points in series.items():
        is_validation = name.startswith("eval_")
        axes.plot(
            *zip(*points, strict=True),
            "-" if is_validation else ":",
            marker="o" if is_validation else None,
            markersize=4,
            color=COLOURS[quantities.index(name.removeprefix("eval_")) % len(COLOURS)],
            label=name.replace("eval_", "validation ").replace("_", " "),
        )
    axes.set_xlabel("step")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _series(history: list[dict[str, Any]], wanted: Callable[[str], bool]) -> dict[str, list[tuple[int, float]]]:
    """Collect the points (step, value) of the wanted quantities of a log."""
    series: dict[str, list[tuple[int, float]]] = {}
    for entry in history:
        for name, value in entry.items():
            if wanted(name) and isinstance(value, int | float) and name != "train_loss":
                series.setdefault(name, []).append((entry["step"], value))
    return series
