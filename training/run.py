"""What all training shares: the paper's settings, the folder of a run, resuming after a kill, and the result.

A run holds its folder locked, and keeps there what it began with (`RUN_FILE`): it is resumed with the same model, data and
settings only. Model, results.json, curves.png and the card take their place together at the end.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from filelock import FileLock, Timeout
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import ExportableState

from bleurt_repro.metric.files.writing import atomic_folder, error_context, validate_output_folder, write_text
from bleurt_repro.metric.loading.checksums import CHECKSUMS_FILE, WEIGHT_FILES, content_hash
from bleurt_repro.training.results import COLOURS, RESULTS, Result, plain, repeating_command

if TYPE_CHECKING:
    from torch import Tensor

# The Trainer's settings that decide what a run gives.
RECORDED = (
    "learning_rate lr_scheduler_type warmup_steps weight_decay max_grad_norm layer_decay frozen_layers frozen_head dropout bf16 "
    "max_steps num_train_epochs global_batch_size per_device_train_batch_size gradient_accumulation_steps world_size seed"
).split()
# Of these, what may differ when a run is resumed: how a batch is shared among processes.
OF_THE_MACHINE = ("per_device_train_batch_size", "gradient_accumulation_steps", "world_size")
MANY_PASSES = 20  # a run of more begins with a warning
RUN_FILE = "run.json"
CARD = "README.md"
LOCK_FILE = ".lock"


@dataclass
class RunArguments(TrainingArguments):
    """The Trainer's arguments, with the defaults of BLEURT, section B.1: Adam, 1e-5, batch 32.

    Raises:
        ValueError: for settings by which no step would be made, or that need a package that is not installed.
    """

    _argument_group_name: ClassVar[str] = "training"  # in --help

    # by which the best checkpoint may be chosen: patterns of names
    MEASURES: ClassVar[tuple[str, ...]] = ("loss",)
    # of training where neither steps nor passes are given
    PAPER_STEPS: ClassVar[int] = -1

    output_dir: str = field(metadata={"help": "Folder for the checkpoint; those of the run lie in it too."})
    resume: bool = field(
        default=False, metadata={"help": "Continue from the last complete checkpoint in output_dir, if there is one."}
    )
    num_proc: int | None = field(
        default=None, metadata={"help": "Processes that tokenise; default: one per core, fewer for few rows."}
    )
    overwrite: bool = field(default=False, metadata={"help": "Write to a folder that holds other files, too."})
    global_batch_size: int = field(default=32, metadata={"help": "Pairs per step over all processes."})
    layer_decay: float = field(
        default=1.0, metadata={"help": "Learning rate of a layer over that of the next one up."}
    )
    frozen_layers: int = field(
        default=0,
        metadata={"help": "Lowest layers that stay as they are, the embeddings with them: training takes less time."},
    )
    frozen_head: bool = field(
        default=False, metadata={"help": "The head, which turns the first token's vector into scores, stays as it is."}
    )
    dropout: float | None = field(
        default=None, metadata={"help": "Share of units left out in each step; by default what the model records."}
    )
    early_stopping: int = field(
        default=0, metadata={"help": "Stop after so many evaluations without improvement; 0: never."}
    )
    max_steps: int | None = None  # type: ignore[assignment]
    num_train_epochs: float | None = field(  # type: ignore[assignment]
        default=None, metadata={"help": "Passes over the training data; not counted where max_steps is above 0."}
    )
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

        self._choose_length()
        self._check_values()
        if not (torch.cuda.is_available() or torch.backends.mps.is_available()):
            self.use_cpu = True  # the Trainer computes in bf16 on a CPU only when told that it is one
        super().__post_init__()
        self._check_packages()
        self._share_batch()

    def _choose_length(self) -> None:
        """Set steps and passes as the Trainer reads them, for which steps above 0 count alone."""
        if self.max_steps is None:
            self.max_steps = self.PAPER_STEPS if self.num_train_epochs is None else -1
        if self.num_train_epochs is None:
            self.num_train_epochs = 3.0  # the Trainer's own default
        if self.max_steps == 0 or self.num_train_epochs <= 0:
            raise ValueError(
                f"max_steps {self.max_steps} with num_train_epochs {self.num_train_epochs:g} makes no step, or is a mistake: "
                "give one of them, above 0"
            )

    def _check_values(self) -> None:
        if self.global_batch_size < 1 or self.per_device_train_batch_size < 1:
            raise ValueError(
                f"global_batch_size and per_device_train_batch_size must be at least 1, found {self.global_batch_size} "
                f"and {self.per_device_train_batch_size}"
            )
        if not 0 <= self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be 0 or more, found {self.learning_rate:g}")
        if not 0 < self.layer_decay <= 1:
            raise ValueError(f"layer_decay must be above 0 and at most 1, found {self.layer_decay:g}")
        for name in ("seed", "early_stopping"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, found {getattr(self, name)}")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be from 0 to below 1, found {self.dropout:g}")
        measure = (self.metric_for_best_model or "loss").removeprefix("eval_")
        if not any(re.fullmatch(known, measure) for known in self.MEASURES):
            raise ValueError(
                f"metric_for_best_model must be one of {', '.join(self.MEASURES)}, found {self.metric_for_best_model!r}"
            )
        if self.deepspeed and importlib.util.find_spec("deepspeed") is None:
            raise ValueError(
                "--deepspeed needs the package deepspeed, which is not installed: pip install deepspeed, or use FSDP"
            )

    def _check_packages(self) -> None:
        """Check that the packages that follow a run are there; the Trainer would look for them only at its start."""
        from transformers.integrations.integration_utils import (
            INTEGRATION_TO_CALLBACK,
            get_available_reporting_integrations,
        )

        for name in self.report_to or ():
            if name not in INTEGRATION_TO_CALLBACK:
                known = ", ".join(sorted(INTEGRATION_TO_CALLBACK))
                raise ValueError(f"--report-to {name} is unknown; there are {known}, all and none")
            if name not in get_available_reporting_integrations():
                raise ValueError(
                    f"--report-to {name} needs a package that is not installed: pip install {name}, or --report-to none"
                )

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


@contextlib.contextmanager
def run_folder(args: Any, settings: Any, model: Path, data: Mapping[str, Any]) -> Iterator[None]:
    """Hold the folder of a run while it trains, and check that a resumed run is the one that began there.

    Args:
        args: the Trainer's arguments.
        settings: the dataclass of what is trained, on which data.
        model: folder of what training starts from.
        data: what is trained on, by name: its SHA-256.

    Raises:
        ValueError: if the folder is the model's own, another process trains in it, or it holds another run.
    """
    check_output(args)
    if args.process_index:
        yield
        return
    folder = Path(args.output_dir)
    validate_output_folder(folder, [str(model)], (LOCK_FILE, RESULTS, CHECKSUMS_FILE, "checkpoint-*"), args.overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ValueError(
            f"another process trains in {folder}: wait until it is done, or choose another --output"
        ) from None
    try:
        _check_start(folder, _start_of(args, settings, model, data))
        yield
    finally:
        lock.release()


def _start_of(args: Any, settings: Any, model: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """Describe what a run begins with, by name."""
    names = [name for name in RECORDED if name not in OF_THE_MACHINE]
    given = plain({**asdict(settings), **{name: getattr(args, name) for name in names}})
    start = {**given, "model": f"{model.resolve().name}, {content_hash(model)}", **data}
    return json.loads(json.dumps(start))  # as it is read again


def _short(value: Any) -> str:
    """Return a value as it is shown in a message, a hash by its first digits."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", str(value))


def _check_start(folder: Path, start: dict[str, Any]) -> None:
    """Compare with the start of the run that the folder holds; where there is none, record this one.

    Raises:
        ValueError: naming what differs.
    """
    path = folder / RUN_FILE
    if not last_checkpoint(folder)[0] or not path.is_file():
        write_text(path, json.dumps(start, indent=2, ensure_ascii=False) + "\n")
        return
    try:
        begun = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}): remove it to resume the run all the same") from error
    differing = [name for name in start if name in begun and begun[name] != start[name]]
    if differing:
        shown = "; ".join(f"{name} was {_short(begun[name])} and is {_short(start[name])}" for name in differing)
        raise ValueError(
            f"{folder} holds a run that began with other settings: {shown}. Resume it with those it began with, or choose "
            "another --output"
        )


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
        """Return what a checkpoint keeps."""
        return {"args": {"seconds": self.seconds}, "attributes": {}}


def last_checkpoint(folder: Path) -> tuple[Path | None, float]:
    """Find the last checkpoint that was written completely.

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
    """Read how near a run was to its early stop: the Trainer itself would start counting again."""
    state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    found = state["stateful_callbacks"].get(EarlyStoppingCallback.__name__, {"attributes": {}})
    return int(found["attributes"].get("early_stopping_patience_counter", 0))


def check_output(args: Any) -> None:
    """Refuse to write over another run's checkpoints, or to push as the Trainer would: at each save, without a card.

    Raises:
        ValueError: if there are checkpoints and the run is not to resume from them, or the run is to push.
    """
    if args.push_to_hub:
        raise ValueError(
            "push_to_hub is for the command line: `bleurt-repro finetune ...` publishes the finished checkpoint with its "
            "card; from Python, use bleurt_repro.hub_cards.publish"
        )
    found, _ = last_checkpoint(Path(args.output_dir))
    if found and not args.resume:
        raise ValueError(
            f"{args.output_dir} holds a run already ({found.name}): add --resume to continue it, or choose another "
            "--output"
        )


def naming_a_full_disk(folder: str | Path) -> contextlib.AbstractContextManager[None]:
    """Turn what the libraries raise when the disk is full into one clear error that names the last complete checkpoint.

    Args:
        folder: that is written to.
    """

    def advice() -> str:
        found, _ = last_checkpoint(Path(folder))
        return f"{found.name} is complete: make room and add --resume" if found else "nothing was saved yet: make room"

    return error_context(folder, advice)


def train(trainer: Trainer, args: Any) -> float:
    """Train, from the last complete checkpoint if `args.resume` asks for it and there is one.

    Returns:
        seconds of training, those of earlier sessions included.

    Raises:
        ValueError: if the checkpoint to resume from is of a model of another size.
        OSError: if the disk is full.
    """
    checkpoint, seconds = last_checkpoint(Path(args.output_dir)) if args.resume else (None, 0.0)
    stopwatch = Stopwatch(seconds)
    trainer.add_callback(stopwatch)
    examples = len(cast("Any", trainer.train_dataset))
    in_a_step = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
    if (passes := args.max_steps * in_a_step / examples) > MANY_PASSES:
        warnings.warn(
            f"{args.max_steps:,} steps are {passes:,.0f} passes over {examples:,} examples: give fewer, "
            "or --num-train-epochs",
            stacklevel=2,
        )
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
                "began with, or choose another --output"
            ) from error
    return stopwatch.seconds


def whole_state(trainer: Trainer) -> dict[str, Tensor]:
    """Return the trained weights, gathered where FSDP shards them; to be called by every process."""
    state: dict[str, Tensor] = trainer.accelerator.get_state_dict(trainer.model)
    return state


def finish(
    trainer: Trainer,
    kind: str,
    settings: Any,
    data: dict[str, Any],
    seconds: float,
    save: Callable[[Path], None],
    card: Callable[[Path], None] | None = None,
) -> Result:
    """Write checkpoint, results.json, curves.png and the card into the run's folder; to be called by every process.

    Args:
        trainer: after training.
        kind: of training, "finetune" or "pretrain".
        settings: the dataclass of what is trained, on which data.
        data: what was trained on.
        seconds: of training.
        save: writes the checkpoint into a folder; called by the main process only.
        card: draws the card into the folder of the checkpoint, likewise; without it there is none, and one of an earlier
            run stays, with a warning.

    Returns:
        what results.json holds.

    Raises:
        OSError: if the disk is full.
    """
    result = _result(trainer, kind, settings, data, seconds)
    folder = Path(str(trainer.args.output_dir))
    if trainer.is_world_process_zero():
        with naming_a_full_disk(folder):
            with atomic_folder(folder, "config.json", replaced=WEIGHT_FILES) as unfinished:
                save(unfinished)
                draw_curves(result, unfinished / "curves.png")
                result.write(unfinished)
                if card is not None:
                    card(unfinished)
        if card is None and (folder / CARD).exists():
            warnings.warn(
                f"{folder / CARD} describes the checkpoint that was there before: draw a new card with "
                f"`bleurt-repro card {folder}`",
                stacklevel=2,
            )
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
