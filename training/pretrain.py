"""Pre-train an encoder on synthetic pairs and their signals (BLEURT, sections 4 and B.1).

    bleurt-repro pretrain --model ENCODER --pairs FOLDER --output OUT
    bleurt-repro pretrain --config pretrain_mini --model ENCODER --pairs FOLDER --output OUT [--resume]
    bleurt-repro pretrain --grid grid.yaml --config pretrain_mini --model ENCODER --pairs FOLDER --output OUT
    torchrun --nproc-per-node 8 -m bleurt_repro.training.pretrain --config pretrain_large ...

ENCODER is any `transformers` encoder, by folder or Hub id; FOLDER what `bleurt-repro data synthetic` made, or several such
folders of the same signals. OUT becomes the checkpoint that `bleurt-repro finetune --model OUT` starts from, with
results.json and curves.png beside it. A grid searches the weights of the groups of signals: see `gamma_grid`.

From Python:

    pretrain(PairArguments(model="encoder", pairs=["pairs"]), PretrainingArguments(output_dir="out"))
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bleurt_repro.metric.layout import Layout, readable_positions, separators_of
from bleurt_repro.training.arguments import run_as_command
from bleurt_repro.training.run import RunArguments

if TYPE_CHECKING:
    from datasets import Dataset

    from bleurt_repro.training.results import Result


@dataclass
class PairArguments:
    """What is trained, on which pairs."""

    _argument_group_name: ClassVar[str] = "model and pairs"  # in --help

    model: str = field(metadata={"help": "Encoder: folder or Hub id."})
    pairs: list[str] = field(metadata={"help": "Synthetic pairs: folders that `bleurt-repro data synthetic` made."})
    max_length: int = field(default=512, metadata={"help": "Most tokens of a pair, special tokens included."})
    validation_segments: int = field(
        default=1000, metadata={"help": "Segments whose pairs are held out to follow the losses."}
    )
    gamma_automatic_metrics: float = field(default=1.0, metadata={"help": "Weight of BLEU, ROUGE, BERTscore."})
    gamma_likelihood: float = field(default=1.0, metadata={"help": "Weight of the four likelihoods."})
    gamma_classification: float = field(default=1.0, metadata={"help": "Weight of entailment and flag."})
    leave_out: list[str] = field(default_factory=list, metadata={"help": "Signals not to learn, for ablations."})

    def gammas(self, groups: set[str]) -> dict[str, float]:
        """Return the weights of the groups that are there."""
        return {group: getattr(self, f"gamma_{group}") for group in sorted(groups)}


@dataclass
class PretrainingArguments(RunArguments):
    """The Trainer's arguments, with the defaults of BLEURT, section B.1."""

    MEASURES: ClassVar[tuple[str, ...]] = ("loss", "loss_.+")

    max_steps: int = 800_000
    metric_for_best_model: str | None = "loss"
    greater_is_better: bool | None = False


def hold_out(pairs: Dataset, segments: int, seed: int) -> tuple[Dataset, Dataset]:
    """Split the pairs by their reference, so that no text trained on is validated on.

    Args:
        pairs: with "reference"; by its text, since sets made apart number their segments alike.
        segments: how many segments to hold out.
        seed: of the choice.

    Returns:
        the pairs to train on and those held out.

    Raises:
        ValueError: if nothing would be left to train on.
    """
    import numpy as np

    numbers: dict[str, int] = {}
    segment = np.asarray([numbers.setdefault(reference, len(numbers)) for reference in pairs["reference"]])
    if not 0 < segments < len(numbers):
        raise ValueError(f"validation_segments must be from 1 to {len(numbers) - 1} here, found {segments}")
    held = np.isin(segment, np.random.default_rng(seed).choice(len(numbers), segments, replace=False))
    return pairs.select(np.flatnonzero(~held)), pairs.select(np.flatnonzero(held))


def pretrain(data: PairArguments, arguments: PretrainingArguments) -> Result:
    """Pre-train an encoder, and write what fine-tuning starts from to `arguments.output_dir`.

    Args:
        data: what is trained, on which pairs.
        arguments: how, and where the checkpoint goes.

    Returns:
        what results.json holds, in every process.

    Raises:
        FileNotFoundError: if there is no such model or set of pairs.
        ValueError: if settings and data do not fit together, or the folder holds another run.
        OSError: if the disk is full.
    """
    from bleurt_repro.datasets_builders.synthetic.builder import join_sets
    from bleurt_repro.metric.loading.find import find_checkpoint
    from bleurt_repro.training.run import run_folder

    record, model = join_sets(data.pairs), find_checkpoint(data.model)
    with run_folder(arguments, data, model, {"pairs": _digest(record)}):
        return _pretrain(model, record, data, arguments)


def _pretrain(folder: Path, record: dict[str, Any], data: PairArguments, arguments: PretrainingArguments) -> Result:
    import datasets
    from transformers import AutoModel, AutoTokenizer, set_seed

    from bleurt_repro.training.collator import PairCollator, encode_texts
    from bleurt_repro.training.pretraining_model import TARGET, PretrainingModel, export_scorer, read_tasks
    from bleurt_repro.training.run import finish, train, whole_state
    from bleurt_repro.training.trainer import PretrainingTrainer

    set_seed(arguments.seed)
    tasks = read_tasks(record["signals"], data.leave_out)
    _check_measure(arguments, [f"loss_{task.name}" for task in tasks])
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    encoder = AutoModel.from_pretrained(folder, dtype="float32", trust_remote_code=False, use_safetensors=True)
    model = PretrainingModel(encoder, tasks, data.gammas({task.group for task in tasks}))
    longest = min(data.max_length, readable_positions(encoder.config) or data.max_length)
    layout = Layout(max_length=longest, separators=separators_of(tokenizer))

    # By the files and not by the folder: `datasets` takes two folders of one name for the same data.
    files = [part["file"] for part in record["parts"]]
    names = [task.name for task in tasks]
    with arguments.main_process_first(desc="tokenise"):  # the others read what it has written
        pairs = datasets.load_dataset("parquet", data_files=files, split="train")
        train_pairs, held_pairs = (
            encode_texts(part, tokenizer, layout, keep=names, num_proc=arguments.num_proc)
            for part in hold_out(pairs, data.validation_segments, arguments.seed)
        )

    trainer = PretrainingTrainer(
        model=model,
        args=arguments,
        data_collator=PairCollator(tokenizer, {name: TARGET + name for name in names}),
        train_dataset=train_pairs,
        eval_dataset=held_pairs,
        processing_class=tokenizer,
    )
    seconds = train(trainer, arguments)
    state = whole_state(trainer)

    def save(folder: Path) -> None:
        export_scorer(encoder.config, state, tokenizer, layout, folder, arguments.seed)

    return finish(trainer, "pretrain", data, _provenance(data, record, train_pairs, held_pairs), seconds, save)


def _digest(record: dict[str, Any]) -> str:
    """Return one hash of the pairs, from those of their parts."""
    return hashlib.sha256("".join(part["sha256"] for part in record["parts"]).encode()).hexdigest()


def _check_measure(arguments: PretrainingArguments, losses: list[str]) -> None:
    measure = str(arguments.metric_for_best_model).removeprefix("eval_")
    if measure not in ("loss", *losses):
        raise ValueError(f"metric_for_best_model must be one of loss, {', '.join(losses)}, found {measure!r}")


def _provenance(data: PairArguments, record: dict[str, Any], train: Dataset, held: Dataset) -> dict[str, Any]:
    return {
        "pairs": {
            "folder": ", ".join(Path(folder).name for folder in data.pairs),
            "parts": [part["sha256"] for part in record["parts"]],
        },
        "signals": [item["name"] for item in record["signals"] if item["name"] not in data.leave_out],
        "train_pairs": len(train),
        "validation_pairs": len(held),
        "truncated": sum(train["truncated"]),
    }


if __name__ == "__main__":
    run_as_command("pretrain")
