"""What all training shares: the folder of a run, resuming after a kill, the training itself, and its result.

A run holds a lock on its folder, and records there what it began with (`RUN_FILE`): it is resumed only with the same model,
data and settings. Weights, results.json, curves.png and the card are written together at the end; then the intermediate
checkpoints are removed.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from filelock import FileLock, Timeout
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback
from transformers.trainer_callback import ExportableState, PrinterCallback, ProgressCallback

from bleurt_repro.metric.files.writing import atomic_folder, error_context, validate_output_folder, write_text
from bleurt_repro.metric.loading.checksums import CHECKSUMS_FILE, WEIGHT_FILES, content_hash, file_records
from bleurt_repro.training.results import COLOURS, RESULTS, Result

if TYPE_CHECKING:
    from torch import Tensor

# With fewer validation ratings than this, the summary of a run says how many there were.
FEW_RATINGS = 50
# Settings of the Trainer that decide the result of a run.
RECORDED = (
    "learning_rate lr_scheduler_type warmup_steps weight_decay max_grad_norm frozen_layers dropout bf16 "
    "max_steps num_train_epochs global_batch_size per_device_train_batch_size gradient_accumulation_steps world_size seed"
).split()
# Those of them that may differ when a run is resumed: how a batch is divided among processes.
OF_THE_MACHINE = ("per_device_train_batch_size", "gradient_accumulation_steps", "world_size")
# Settings that follow from the machine: they are recorded, but a command that repeats the run does not give them.
FROM_THE_MACHINE = ("world_size", "gradient_accumulation_steps")
MANY_EPOCHS = 20  # a run of more begins with a warning
RUN_FILE = "run.json"
FINISHED = "finished"  # key of RUN_FILE
CARD = "README.md"
LOCK_FILE = ".lock"


# --- the folder of a run -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """What a run begins with.

    Attributes:
        settings: settings that decide the result, by name, as results.json records them.
        model: folder of the model that training starts from.
        files: name and SHA-256 of each file of data.
        finished: result of the run, if it is one that is finished already.
    """

    settings: dict[str, Any]
    model: Path
    files: list[dict[str, str]]
    finished: Result | None = None


@contextlib.contextmanager
def run_folder(
    args: Any, settings: Any, files: Sequence[str] = (), data: Mapping[str, str] | None = None
) -> Iterator[Start]:
    """Hold the folder of a run while it trains, and check that a resumed run is the one that began there.

    Args:
        args: arguments of the Trainer.
        settings: dataclass with the model and the data of the run.
        files: files of data.
        data: hashes of other data, by name.

    Raises:
        FileNotFoundError: if there is no such model or file.
        ValueError: if the folder is the model's, another process trains in it, or it holds another run.
    """
    from bleurt_repro.metric.loading.find import find_checkpoint

    values = plain({**asdict(settings), **{name: getattr(args, name) for name in RECORDED}})
    model, records = find_checkpoint(settings.model), file_records(files)
    folder = Path(args.output_dir)
    check_output(args)
    if args.process_index:
        yield Start(values, model, records, _finished(folder) if args.resume else None)
        return
    # What a resumed run must share with the one that began.
    shared = {name: value for name, value in values.items() if name not in OF_THE_MACHINE}
    shared["model"] = f"{model.resolve().name}, {content_hash(model)}"
    shared |= {f"data {record['file']}": record["sha256"] for record in records} | dict(data or {})
    validate_output_folder(folder, [str(model)], (LOCK_FILE, RESULTS, CHECKSUMS_FILE, "checkpoint-*"), args.overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ValueError(
            f"another process trains in {folder}: wait until it is finished, or choose another --output"
        ) from None
    try:
        _check_start(folder, json.loads(json.dumps(shared)), args.resume)  # as they are read again
        yield Start(values, model, records, _finished(folder) if args.resume else None)
    finally:
        lock.release()


def _check_start(folder: Path, start: dict[str, Any], resume: bool) -> None:
    """Compare a start with that of the run in the folder; if there is none to resume, record this one.

    Raises:
        ValueError: naming the settings that differ.
    """
    path = folder / RUN_FILE
    begun = _read_start(folder)
    if not resume or not path.is_file() or not (last_checkpoint(folder)[0] or begun.get(FINISHED)):
        write_text(path, json.dumps(start, indent=2, ensure_ascii=False) + "\n")
        return
    differing = [name for name in start if name in begun and begun[name] != start[name]]
    if differing:
        differences = "; ".join(f"{name} was {_short(begun[name])} and is {_short(start[name])}" for name in differing)
        raise ValueError(
            f"{folder} holds a run that began with other settings: {differences}. Resume it with those it began with, or "
            "choose another --output"
        )


def _read_start(folder: Path) -> dict[str, Any]:
    """Read what the run in a folder began with; an empty mapping if there is none."""
    path = folder / RUN_FILE
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}): remove it to resume the run all the same") from error


def _short(value: Any) -> str:
    """Return a value for a message: hashes are cut to their first digits."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1", str(value))


def _finished(folder: Path) -> Result | None:
    """Return the result of the run in a folder, if it is finished."""
    is_finished = _read_start(folder).get(FINISHED) and (folder / RESULTS).is_file()
    return Result.read(folder) if is_finished else None


def check_output(args: Any) -> None:
    """Refuse to write over another run, or to push as the Trainer would: at each save, without a card.

    Raises:
        ValueError: if the folder holds a run and the arguments do not ask to resume it, or if the run is to push.
    """
    if args.push_to_hub:
        raise ValueError(
            "push_to_hub needs the card of the checkpoint: call bleurt_repro.finetune or bleurt_repro.pretrain, which draw and "
            "publish it, or use the command line"
        )
    folder = Path(args.output_dir)
    checkpoint, _ = last_checkpoint(folder)
    if checkpoint and not args.resume:
        raise ValueError(
            f"{folder} holds a run already ({checkpoint.name}): add --resume to continue it, or choose another --output"
        )
    if not args.resume and not getattr(args, "overwrite", False) and _finished(folder):
        raise ValueError(f"{folder} holds a finished run: choose another --output, or add --overwrite to replace it")


def last_checkpoint(folder: Path) -> tuple[Path | None, float]:
    """Find the last checkpoint that was written completely.

    Args:
        folder: folder in which a run writes its checkpoints.

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


def disk_full_context(folder: str | Path) -> contextlib.AbstractContextManager[None]:
    """Turn the libraries' errors on a full disk into one message that names the last complete checkpoint.

    Args:
        folder: folder that is written to.
    """

    def advice() -> str:
        checkpoint, _ = last_checkpoint(Path(folder))
        if checkpoint is None:
            return "nothing was saved yet: make room"
        return f"{checkpoint.name} is complete: make room and add --resume"

    return error_context(folder, advice)


# --- training ------------------------------------------------------------------------------------------------------


class Stopwatch(TrainerCallback, ExportableState):
    """Counts the seconds of training, including those before a kill, up to the last checkpoint."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._before, self._started = seconds, time.monotonic()

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Start."""
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds until now."""
        return self._before + time.monotonic() - self._started

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps."""
        return {"args": {"seconds": self.seconds}, "attributes": {}}


class TrainingProgress(ProgressCallback):
    """Shows a progress bar, and writes losses and measures as lines to stderr.

    Args:
        bar: whether to show the bar.
    """

    def __init__(self, bar: bool = True) -> None:
        super().__init__()
        self._bar = bar

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the bar."""
        if self._bar:
            super().on_train_begin(args, state, control, **kwargs)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Move the bar."""
        if self._bar:
            super().on_step_end(args, state, control, **kwargs)

    def on_prediction_step(
        self, args: Any, state: Any, control: Any, eval_dataloader: Any = None, **kwargs: Any
    ) -> None:
        """Move the bar of a validation."""
        if self._bar:
            super().on_prediction_step(args, state, control, eval_dataloader, **kwargs)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the bar."""
        if self._bar:
            super().on_train_end(args, state, control, **kwargs)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Write a line."""
        from tqdm import tqdm

        if state.is_world_process_zero and (line := log_line(logs or {}, state.global_step, state.max_steps)):
            tqdm.write(line, file=sys.stderr)


def log_line(logs: Mapping[str, Any], step: int, steps: int) -> str:
    """Return an entry of the Trainer's log as a line, such as "step 20 of 160: loss 0.8312"; "" for one without figures."""
    is_validation = any(name.startswith("eval_") for name in logs)
    prefix = "eval_" if is_validation else ""
    hidden = ("epoch", "total_flos", "runtime", "samples_per_second", "steps_per_second", "grad_norm")
    figures = {
        name.removeprefix(prefix): value
        for name, value in logs.items()
        if isinstance(value, int | float) and name.removeprefix(prefix) not in hidden
    }
    if not figures or any(name.startswith("train_") for name in logs):  # the last entry sums up the run
        return ""
    title = "validation at step" if is_validation else "step"
    return f"{title} {step} of {steps}: " + ", ".join(
        f"{name.replace('_', ' ')} {value:.4g}" for name, value in figures.items()
    )


def train(trainer: Trainer, args: Any) -> float:
    """Train; with `args.resume` from the last complete checkpoint, if there is one.

    Returns:
        seconds of training, including those of earlier sessions.

    Raises:
        ValueError: if the checkpoint to resume from is of a model of another size.
        OSError: if the disk is full.
    """
    checkpoint, seconds = last_checkpoint(Path(args.output_dir)) if args.resume else (None, 0.0)
    stopwatch = Stopwatch(seconds)
    trainer.add_callback(stopwatch)
    # The Trainer's own callbacks print dictionaries.
    for callback in (ProgressCallback, PrinterCallback):
        trainer.remove_callback(callback)
    trainer.add_callback(TrainingProgress(bar=not args.disable_tqdm))
    examples = len(cast("Any", trainer.train_dataset))
    per_step = args.per_device_train_batch_size * args.gradient_accumulation_steps * args.world_size
    if (epochs := args.max_steps * per_step / examples) > MANY_EPOCHS:
        warnings.warn(
            f"{args.max_steps:,} steps are {epochs:,.0f} epochs of {examples:,} examples: give fewer, or --num-train-epochs",
            stacklevel=2,
        )
    if patience := getattr(args, "early_stopping", 0):
        stopping = EarlyStoppingCallback(patience)
        stopping.early_stopping_patience_counter = _validations_without_gain(checkpoint) if checkpoint else 0
        trainer.add_callback(stopping)
    with disk_full_context(args.output_dir):
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


def _validations_without_gain(checkpoint: Path) -> int:
    """Read how close a run was to its early stop: the Trainer itself would start counting again."""
    state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    callback = state["stateful_callbacks"].get(EarlyStoppingCallback.__name__, {"attributes": {}})
    return int(callback["attributes"].get("early_stopping_patience_counter", 0))


def gather_state(trainer: Trainer) -> dict[str, Tensor]:
    """Return the trained weights, gathered where FSDP shards them; every process must call this."""
    state: dict[str, Tensor] = trainer.accelerator.get_state_dict(trainer.model)
    return state


# --- the result ----------------------------------------------------------------------------------------------------


def finish(
    trainer: Trainer,
    kind: str,
    settings: Mapping[str, Any],
    data: dict[str, Any],
    seconds: float,
    save: Callable[[Path], None],
    card: Callable[[Path], None] | None = None,
) -> Result:
    """Write checkpoint, results.json, curves.png and the card to the run's folder; every process must call this.

    Args:
        trainer: the Trainer after training.
        kind: "finetune" or "pretrain".
        settings: those of the run's `Start`.
        data: record of the data.
        seconds: seconds of training.
        save: function that writes the checkpoint to a folder; only the main process calls it.
        card: function that draws the card into the folder of the checkpoint; only the main process calls it. Without it
            there is no card, and one of an earlier run stays, with a warning.

    Returns:
        what results.json holds.

    Raises:
        OSError: if the disk is full.
    """
    result = _make_result(trainer, kind, settings, data, seconds)
    args: Any = trainer.args
    folder = Path(str(args.output_dir))
    if trainer.is_world_process_zero():
        with disk_full_context(folder):
            with atomic_folder(folder, "config.json", replaced=WEIGHT_FILES) as unfinished:
                save(unfinished)
                draw_curves(result, unfinished / "curves.png")
                result.write(unfinished)
                if card is not None:
                    card(unfinished)
            if start := _read_start(folder):
                write_text(
                    folder / RUN_FILE, json.dumps({**start, FINISHED: True}, indent=2, ensure_ascii=False) + "\n"
                )
        if not args.keep_checkpoints:
            for checkpoint in folder.glob("checkpoint-*"):
                shutil.rmtree(checkpoint)
        if card is None and (folder / CARD).exists():
            warnings.warn(
                f"{folder / CARD} describes the checkpoint that was there before: draw a new card with "
                f"`bleurt-repro card {folder}`",
                stacklevel=2,
            )
    trainer.accelerator.wait_for_everyone()  # so that no process reads files that are not there yet
    return result


def _make_result(
    trainer: Trainer, kind: str, settings: Mapping[str, Any], data: dict[str, Any], seconds: float
) -> Result:
    args: Any = trainer.args
    state = trainer.state
    figures = {
        "best": {"measure": args.metric_for_best_model, "value": state.best_metric, "step": state.best_global_step},
        "steps": state.global_step,
        "epochs": state.epoch,
        "seconds": round(seconds, 1),
        "examples_per_second": round(state.global_step * args.global_batch_size / seconds, 1),
        "settings": dict(settings),
        "history": state.log_history,
    }
    return Result(kind, repeating_command(f"bleurt-repro {kind}", settings), figures, args.seed, data=data)


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in a form fit for JSON, paths without their folders."""
    values = {name: getattr(value, "value", value) for name, value in settings.items()}  # value of an enumeration
    return {name: Path(value).name if isinstance(value, str) else value for name, value in values.items()}


def repeating_command(program: str, settings: Mapping[str, Any]) -> str:
    """Return the command that repeats a training run, with paths without their folders.

    Args:
        program: program that was run, such as "bleurt-repro finetune".
        settings: settings of the run by name; None and empty lists are left out.
    """
    arguments = [program]
    # A step has `global_batch_size` pairs on any machine; how a process divides its share is then up to the machine.
    skipped = (*FROM_THE_MACHINE, *(["per_device_train_batch_size"] if "global_batch_size" in settings else []))
    for name, value in settings.items():
        if name not in skipped and value is not None and value != []:
            text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
            arguments.append(f"--{name.replace('_', '-')} {text.lower() if isinstance(value, bool) else text}")
    return " ".join([*arguments, "--output-dir OUT"])


def summarize(result: Mapping[str, Any], folder: str | Path) -> str:
    """Return one line on a finished run: its folder, its best validation, and the next command."""
    best = result["best"]
    validation = "no validation"
    if best["value"] is not None:
        measure = str(best["measure"]).removeprefix("eval_").replace("_", " ")
        validation = f"best validation {measure} {best['value']:.4g}"
        validation += (
            f" at step {best['step']} of {result['steps']}" if best["step"] else "; the weights are the last ones"
        )
        ratings = result["data"].get("validation_ratings")
        if ratings and ratings < FEW_RATINGS:
            validation += f", on only {ratings} ratings"
    following = {
        "finetune": f"bleurt-repro score --checkpoint {folder} --references FILE --candidates FILE",
        "pretrain": f"bleurt-repro finetune --model {folder} --train-file RATINGS --output-dir FOLDER",
    }
    return f"{folder}: {validation}. Next: {following[result['kind']]}"


def draw_curves(result: Mapping[str, Any], path: Path) -> None:
    """Draw losses, and validation measures where there are any, against steps.

    Args:
        result: result of a training run; its "history" is the Trainer's log.
        path: PNG or SVG file to write.
    """
    from matplotlib.figure import Figure

    history = result["history"]
    losses = _series(history, lambda name: name == "loss" or name.endswith("_loss") or "loss_" in name)
    measures = _series(history, lambda name: name in ("eval_kendall_tau", "eval_pearson_r"))
    panels = [(series, label) for series, label in ((losses, "loss"), (measures, "agreement")) if series]
    figure = Figure(figsize=(6 * max(len(panels), 1), 4), layout="constrained")
    for number, (series, label) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), number)
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


def _series(history: list[dict[str, Any]], includes: Callable[[str], bool]) -> dict[str, list[tuple[int, float]]]:
    """Return the points (step, value) of the quantities of a log whose names a function includes."""
    series: dict[str, list[tuple[int, float]]] = {}
    for entry in history:
        for name, value in entry.items():
            if includes(name) and isinstance(value, int | float) and name != "train_loss":
                series.setdefault(name, []).append((entry["step"], value))
    return series
