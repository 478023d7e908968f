"""Time fine-tuning, and what padding and arithmetic cost it.

    python benchmarks/training.py --ratings train.jsonl --output training

Each way takes the same steps on the same ratings with the Trainer, ways in turn, and counts the seconds inside steps:
data loading, forward, backward and optimiser. It writes training.json and training.md.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from machine import description, matrix_rate, write_result
from transformers import TrainerCallback

LENGTH, SDPA = {"train_sampling_strategy": "group_by_length"}, {"attention": "sdpa"}
WAYS: dict[str, dict[str, Any]] = {
    "random order, float32": {"train_sampling_strategy": "random", "bf16": False, **SDPA},
    "by length, float32": {**LENGTH, "bf16": False, **SDPA},
    "random order, bfloat16": {"train_sampling_strategy": "random", "bf16": True, **SDPA},
    "by length, bfloat16": {**LENGTH, "bf16": True, **SDPA},
    "by length, bfloat16, eager attention": {**LENGTH, "bf16": True},  # as `finetune` and `pretrain` train on a CPU
}


UNITS = {
    "pairs_per_second": "pairs per second, of the median round",
    "padded_over_real": "tokens",
    "operations_per_second": "operations of real tokens per second",
    "matrix_rate": "operations per second",
}


class Steps(TrainerCallback):
    """Keeps the moment at which each step ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Note the time."""
        self.ends.append(time.perf_counter())


def main() -> None:
    """Measure and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", required=True, help="ratings to train on")
    parser.add_argument("--model", default="bleurt-repro-mini", help="what is trained")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=16, help="counted steps of each way in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", required=True, help="files to write, without .json and .md")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    setting = prepare(options)
    rounds = [
        {name: measure(setting, way, options.steps) for name, way in WAYS.items()} for _ in range(options.rounds)
    ]
    config = setting["model"].config
    results = {
        "machine": description(options.threads, "cpu"),
        "settings": {**vars(options), "ratings": Path(options.ratings).name, "output": None},
        "matrix_rate": {
            name: matrix_rate(config.hidden_size, config.intermediate_size, "cpu", dtype)
            for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16))
        },
        "ways": {name: summary([measured[name] for measured in rounds], config) for name in WAYS},
    }
    output = Path(options.output)
    results = write_result(output.with_suffix(".json"), "training speed", UNITS, results, seed=1)
    output.with_suffix(".md").write_text(text := table(results))
    print(text)


def prepare(options: argparse.Namespace) -> dict[str, Any]:
    """Open the model, and encode the ratings once, as fine-tuning does."""
    from bleurt_repro.datasets_builders.ratings.training_ratings import read_training_ratings
    from bleurt_repro.metric.loading.checksums import file_records
    from bleurt_repro.metric.loading.find import find_checkpoint
    from bleurt_repro.metric.loading.open import open_trainable
    from bleurt_repro.metric.loading.save import prepare_scorer
    from bleurt_repro.training.collator import PairCollator, encode_texts
    from bleurt_repro.training.finetune import training_layout

    model, tokenizer = open_trainable(find_checkpoint(options.model))
    layout = training_layout(model, tokenizer, options.max_length)
    prepare_scorer(model, tokenizer, layout)
    texts = read_training_ratings(
        options.ratings, None, layout, hashes=[file_records([options.ratings])[0]["sha256"]], seed=1
    ).sides["train"]
    return {
        "model": model,
        "data": encode_texts(texts, tokenizer, layout, keep=["score"]),
        "collator": PairCollator(tokenizer, {"score": "labels"}, segments=True),
    }


def measure(setting: dict[str, Any], way: dict[str, Any], steps: int) -> dict[str, float]:
    """Take some steps in one way; two steps before them do not count."""
    from bleurt_repro.training.finetune import FinetuningArguments
    from bleurt_repro.training.trainer import ScorerTrainer, choose_attention

    options = {name: value for name, value in way.items() if name != "attention"}
    clock, seen = Steps(), Seen(setting["collator"])
    with tempfile.TemporaryDirectory() as folder:
        fixed = {"eval_strategy": "no", "save_strategy": "no", "load_best_model_at_end": False, "disable_tqdm": True}
        args = FinetuningArguments(
            output_dir=folder, max_steps=steps + 2, seed=1, logging_steps=1000, **fixed, **options
        )
        trainer = ScorerTrainer(
            model=copy.deepcopy(setting["model"]),
            args=args,
            data_collator=seen,
            train_dataset=setting["data"],
            callbacks=[clock],
        )
        if "attention" in way:
            choose_attention(trainer.model, way["attention"])
        trainer.train()
    counted = slice(2, steps + 2)
    real, padded = (sum(column[counted]) for column in zip(*seen.tokens, strict=False))
    return {"seconds": clock.ends[-1] - clock.ends[1], "pairs": 32 * steps, "tokens": real, "padded": padded}


class Seen:
    """Counts the tokens, real and padded, of each batch that it collates."""

    def __init__(self, collator: Any) -> None:
        self.collator, self.tokens = collator, []

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Collate."""
        batch: dict[str, Any] = self.collator(rows)
        self.tokens.append((int(batch["attention_mask"].sum()), batch["input_ids"].numel()))
        return batch


def summary(rounds: list[dict[str, float]], config: Any) -> dict[str, float]:
    """Sum up a way's rounds: medians, and the operations of real tokens, three passes' worth of the forward's products."""
    token = config.num_hidden_layers * (8 * config.hidden_size**2 + 4 * config.hidden_size * config.intermediate_size)
    return {
        "pairs_per_second": statistics.median(times["pairs"] / times["seconds"] for times in rounds),
        "padded_over_real": statistics.median(times["padded"] / times["tokens"] for times in rounds),
        "operations_per_second": statistics.median(3 * token * times["tokens"] / times["seconds"] for times in rounds),
    }


def table(results: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    ways, rates, machine = results["ways"], results["matrix_rate"], results["machine"]
    first = next(iter(ways.values()))["pairs_per_second"]
    lines = [
        f"`{results['command']}`",
        "",
        f"{machine['processor']} ({machine['instructions']}), {machine['threads']} thread(s), torch {results['versions']['torch']}; "
        f"matrix products {rates['float32'] / 1e9:.0f} GFLOP/s in float32, {rates['bfloat16'] / 1e9:.0f} in bfloat16.",
        "",
        "| way | pairs/s | over the first | padded/real tokens | share of the matrix rate |",
        "|---|---|---|---|---|",
    ]
    for name, way in ways.items():
        share = way["operations_per_second"] / rates["bfloat16" if WAYS[name]["bf16"] else "float32"]
        lines.append(
            f"| {name} | {way['pairs_per_second']:.1f} | {way['pairs_per_second'] / first:.2f} | "
            f"{way['padded_over_real']:.2f} | {share:.0%} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
