"""Fine-tune a scorer on human ratings (BLEURT, sections 3.3 and B.1).

    bleurt-repro finetune --model MODEL --train_file train.jsonl --validation_file validation.jsonl --output_dir OUT
    bleurt-repro finetune --config mini.yaml --train_file train.jsonl --validation_file validation.jsonl --output_dir OUT
    torchrun --nproc_per_node 8 -m bleurt_repro.training.finetune --config large.yaml ...

MODEL is a bare encoder, a pre-trained BLEURT, or a scorer, by folder, Hub id or embedded name. OUT becomes a checkpoint
that `BleurtScorer(OUT)` opens, with `results.json` beside the weights.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainingArguments

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import EvalPrediction, PreTrainedModel, PreTrainedTokenizerBase

from bleurt_repro.metric.layout import Layout


@dataclass
class RatingArguments:
    """What is trained, on what."""

    model: str = field(metadata={"help": "Encoder, pre-trained BLEURT or scorer: folder, Hub id or embedded name."})
    train_file: str = field(metadata={"help": "Ratings to train on: JSONL, CSV, TSV or Parquet."})
    validation_file: str = field(metadata={"help": "Ratings that choose the best checkpoint."})
    max_length: int = field(default=512, metadata={"help": "Most tokens of a pair, special tokens included."})
    export_dtype: str = field(
        default="float32", metadata={"help": "Of the stored weights: float32, bfloat16, float16."}
    )

    def __post_init__(self) -> None:
        if self.export_dtype not in ("float32", "bfloat16", "float16"):
            raise ValueError(f"export_dtype must be float32, bfloat16 or float16, found {self.export_dtype!r}")


@dataclass
class FinetuningArguments(TrainingArguments):
    """The Trainer's arguments, with the defaults of BLEURT, section B.1."""

    learning_rate: float = 1e-5
    lr_scheduler_type: str = "constant"
    weight_decay: float = 0.0  # AdamW without decay is Adam
    per_device_train_batch_size: int = 32
    per_device_eval_batch_size: int = 128
    max_steps: int = 40_000
    eval_strategy: str = "steps"
    eval_steps: float = 1_500
    save_steps: float = 1_500
    save_total_limit: int | None = 2
    load_best_model_at_end: bool = True
    metric_for_best_model: str | None = "kendall_tau"
    greater_is_better: bool | None = True
    report_to: None | str | list[str] = "none"  # the order that HfArgumentParser can read

    def __post_init__(self) -> None:
        import torch

        if not (torch.cuda.is_available() or torch.backends.mps.is_available()):
            self.use_cpu = True  # the Trainer computes in bf16 on a CPU only when told that it is one
        super().__post_init__()


def encode_ratings(ratings: list[dict[str, Any]], tokenizer: PreTrainedTokenizerBase, layout: Layout) -> Dataset:
    """Give the model's inputs and labels for each rating.

    Args:
        ratings: with the columns of the layout's inputs, and score.
        tokenizer: the model's.
        layout: which texts the model reads, and how long.

    Returns:
        input_ids, token_type_ids, attention_mask, labels, length.
    """
    from datasets import Dataset

    from bleurt_repro.metric.encoding import PairEncoder

    encoder = PairEncoder(tokenizer, layout)

    def encode(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        texts = list(zip(*(batch[role] for role in layout.inputs), strict=True))
        tokens = encoder.tokenize(text for pair in texts for text in pair)
        encoded = [encoder.encode([tokens[text] for text in pair]) for pair in texts]
        return {
            "input_ids": [pair.ids for pair in encoded],
            "token_type_ids": [pair.segments for pair in encoded],
            "attention_mask": [[1] * len(pair.ids) for pair in encoded],
            "length": [len(pair.ids) for pair in encoded],
            "labels": [float(score) for score in batch["score"]],
        }

    texts = Dataset.from_list([{name: rating[name] for name in (*layout.inputs, "score")} for rating in ratings])
    return texts.map(encode, batched=True, remove_columns=texts.column_names, desc="encode")


def agreement(prediction: EvalPrediction) -> dict[str, float]:
    """Give Kendall tau and Pearson r of a validation pass, for the Trainer."""
    import numpy as np

    from bleurt_repro.training.agreement import kendall_tau, pearson_r

    scores, ratings = np.ravel(prediction.predictions), np.ravel(prediction.label_ids)
    return {"kendall_tau": kendall_tau(scores, ratings), "pearson_r": pearson_r(scores, ratings)}


def open_model(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Open what fine-tuning starts from; where it has no head of one label, with a new one."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from bleurt_repro.metric.checkpoints import find_checkpoint

    folder = find_checkpoint(name)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder,
        num_labels=1,
        problem_type="regression",
        dtype="float32",
        trust_remote_code=False,
        use_safetensors=True,
        ignore_mismatched_sizes=True,  # an entailment classifier's encoder is a good start (RoBLEURT, section 2.1)
    )
    return model, tokenizer


def main(arguments: list[str] | None = None) -> None:
    """Run fine-tuning as the module's docstring says."""
    import torch
    from transformers import DataCollatorWithPadding, Trainer, set_seed

    from bleurt_repro.datasets_builders.rating_files import read_ratings
    from bleurt_repro.training.arguments import parse_config
    from bleurt_repro.training.export import prepare_scorer, save_scorer

    ratings, args = parse_config((RatingArguments, FinetuningArguments), arguments or sys.argv[1:])
    set_seed(args.seed)

    model, tokenizer = open_model(ratings.model)
    layout = Layout(max_length=min(ratings.max_length, model.config.max_position_embeddings))
    prepare_scorer(model, tokenizer, layout)
    data = {
        "train": encode_ratings(read_ratings(ratings.train_file), tokenizer, layout),
        "validation": encode_ratings(read_ratings(ratings.validation_file), tokenizer, layout),
    }

    trainer = Trainer(
        model=model,
        args=args,
        data_collator=DataCollatorWithPadding(tokenizer),
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        processing_class=tokenizer,
        compute_metrics=agreement,
    )
    started = time.monotonic()
    trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
    seconds = time.monotonic() - started

    if trainer.is_world_process_zero():
        save_scorer(model, tokenizer, Path(args.output_dir), getattr(torch, ratings.export_dtype))
        write_results(trainer, ratings, seconds)


def write_results(trainer: Any, ratings: RatingArguments, seconds: float) -> None:
    """Write results.json: what was trained, how, and how it did on validation."""
    import transformers

    from bleurt_repro import __version__
    from bleurt_repro.metric.signature import file_hash

    args, state = trainer.args, trainer.state
    results = {
        "model": ratings.model,
        "train": {"file": Path(ratings.train_file).name, "sha256": file_hash(Path(ratings.train_file)).hex()},
        "validation": {
            "file": Path(ratings.validation_file).name,
            "sha256": file_hash(Path(ratings.validation_file)).hex(),
        },
        "train_ratings": len(trainer.train_dataset),
        "validation_ratings": len(trainer.eval_dataset),
        "best_kendall_tau": state.best_metric,
        "best_step": state.best_global_step,
        "steps": state.global_step,
        "epochs": state.epoch,
        "history": [entry for entry in state.log_history if "eval_kendall_tau" in entry],
        "settings": {
            "learning_rate": args.learning_rate,
            "batch": args.train_batch_size * args.gradient_accumulation_steps * args.world_size,
            "lr_scheduler_type": str(args.lr_scheduler_type),
            "warmup_steps": args.warmup_steps,
            "bf16": args.bf16,
            "max_length": ratings.max_length,
            "seed": args.seed,
        },
        "seconds": round(seconds, 1),
        "examples_per_second": round(state.global_step * args.train_batch_size * args.world_size / seconds, 1),
        "versions": {"bleurt_repro": __version__, "transformers": transformers.__version__},
    }
    Path(args.output_dir, "results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
