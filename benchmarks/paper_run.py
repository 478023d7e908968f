"""Measure the stages of the paper's run at its models' sizes, and what they come to for its number of pairs and steps.

    python benchmarks/paper_run.py --input sentences.tsv.gz --column 3 --output docs/results/paper-run

The models have the shapes of the paper's recipe (`--config paper`: BERT-base, opus-mt, BERT-large; a BERT-large in the place
of RoBERTa-large) and random weights, which cost what trained ones cost; translations are held to the length of their
source, since random weights end no sentence. It makes the pairs of some segments, then takes some steps of pre-training at
both sizes, in bfloat16. Fine-tuning takes the same steps as pre-training. All of it runs in one thread and is counted in
seconds of processor time, so that other work on the machine does not count. It writes OUTPUT.json and OUTPUT.md, after each
stage anew, and takes about 10 minutes of one core and 10 GB of memory.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from machine import description, write_result
from transformers import TrainerCallback

UNITS = {
    "pairs_per_second": "pairs a second of processor time",
    "stages": "pairs a second of processor time of each stage, over the pairs that pass through it",
    "seconds_per_step": "seconds of processor time",
    "core_days": "days of one core like this one",
    "load": "processes that wanted to run, the mean of a minute, before the measurement",
}
# BLEURT, sections 4 and B.1
PAPER = {"pairs": 6_500_000, "batch": 32, "pre-training steps": 800_000, "fine-tuning steps": 40_000}
SHAPES = {
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "large": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
}
TRANSLATOR = {
    "d_model": 512,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
}
TRANSLATOR_WORDS = 59_514  # of opus-mt-en-fr
DAY = 86_400


class Steps(TrainerCallback):
    """Keeps the moments at which steps ended."""

    ends: ClassVar[list[float]] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Note the time."""
        self.ends.append(time.process_time())


def main() -> None:
    """Measure and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--input", required=True, help="sentences, as `bleurt-repro data synthetic --input` reads them"
    )
    parser.add_argument("--column", help="of the sentences")
    parser.add_argument("--segments", type=int, default=12)
    parser.add_argument("--sizes", nargs="*", default=list(SHAPES), help="of pre-training")
    parser.add_argument("--steps", type=int, default=2, help="of pre-training that count, after one that does not")
    parser.add_argument("--work", help="folder to keep models and pairs in; a second run takes what is there")
    parser.add_argument("--output", required=True, help="files to write, without .json and .md")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1", HF_HUB_OFFLINE="1")
    import torch

    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(options.work or made)
        models = {"base": bert(folder, "base", "BertForMaskedLM")}
        models["large"] = bert(folder, "large", "BertForSequenceClassification")
        results = {"load": load, "paper": PAPER, "making_pairs": make_pairs(folder, models, options), "training": {}}
        write(results, Path(options.output))
        for size in options.sizes:
            results["training"][size] = pretrain(folder, models[size], size, options.steps)
            write(results, Path(options.output))


def write(results: dict[str, Any], output: Path) -> None:
    """Write what has been measured so far."""
    results = {**results, "core_days": core_days(results["making_pairs"], results["training"])}
    results["machine"] = description(1, "cpu")
    results = write_result(output.with_suffix(".json"), "paper run", UNITS, results, seed=0)
    output.with_suffix(".md").write_text(text := table(results))
    print(text, flush=True)


def bert(folder: Path, size: str, kind: str) -> str:
    """Write a BERT of a size with random weights and the tokenizer of BERT's English lower-case models."""
    import transformers

    from bleurt_repro.metric.loading.find import find_checkpoint

    tokenizer = transformers.AutoTokenizer.from_pretrained(find_checkpoint("bleurt-repro-mini"))
    labels = {"id2label": {0: "contradiction", 1: "neutral", 2: "entailment"}} if "Classification" in kind else {}
    config = transformers.BertConfig(vocab_size=len(tokenizer), **SHAPES[size], **labels)
    place = folder / f"{kind}-{size}"
    if place.exists():
        return str(place)
    getattr(transformers, kind)(config).save_pretrained(place)
    tokenizer.save_pretrained(place)
    return str(place)


def translator(folder: Path, sentences: list[str]) -> str:
    """Write a translator of opus-mt's shape with random weights, and word pieces of the sentences."""
    import sentencepiece
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    place = folder / "translator"
    if place.exists():
        return str(place)
    place.mkdir()
    (place / "text").write_text("\n".join(sentences))
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(place / "text"), model_prefix=str(place / side), vocab_size=8000, minloglevel=2, hard_vocab_limit=False
        )  # fmt: skip
        (place / f"{side}.model").rename(place / f"{side}.spm")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(place / "source.spm"))
    known = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    words = ["</s>", "<unk>", *(word for word in known if word not in ("<s>", "</s>", "<unk>"))]
    words += [">>fr<<", ">>de<<", ">>en<<"]
    words += [f"<{i}>" for i in range(TRANSLATOR_WORDS - len(words) - 1)] + ["<pad>"]
    (place / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    heads = {"encoder_attention_heads": 8, "decoder_attention_heads": 8}
    special = {"pad_token_id": len(words) - 1, "decoder_start_token_id": len(words) - 1, "eos_token_id": 0}
    config = MarianConfig(
        vocab_size=len(words), **TRANSLATOR, **heads, **special, forced_eos_token_id=0, scale_embedding=True
    )
    model = MarianMTModel(config)
    for i, word in enumerate(words):
        if i < 2 or word.startswith(("<", ">>")):  # it writes words, and does not end before its limit
            model.final_logits_bias[0, i] = -100.0
    model.save_pretrained(place)
    files = (str(place / file) for file in ("source.spm", "target.spm", "vocab.json"))
    MarianTokenizer(*files, model_max_length=512).save_pretrained(place)
    return str(place)


def make_pairs(folder: Path, models: dict[str, str], options: argparse.Namespace) -> dict[str, Any]:
    """Make pairs by the paper's recipe; pairs a second of each stage and of all."""
    from bleurt_repro.datasets_builders import translator as translating
    from bleurt_repro.datasets_builders.synthetic import pair_maker
    from bleurt_repro.datasets_builders.synthetic.config import read_config
    from bleurt_repro.datasets_builders.synthetic.make import make_synthetic_pairs
    from bleurt_repro.datasets_builders.synthetic.segments import Segments

    translating.LENGTH_FACTOR, translating.LENGTH_SLACK = 1, 0
    recipe = read_config("paper").with_options(column=options.column, device="cpu", dtype="bfloat16")
    recipe = recipe.with_options(batch_tokens=4096, unit_segments=options.segments, segments_per_part=options.segments)
    sentences = [one.text for one in itertools.islice(Segments(options.input, recipe), 20_000)]
    recipe = recipe.with_options(
        max_segments=options.segments,
        masked_lm=models["base"],
        translator=translator(folder, sentences),
        bertscore_model=models["large"],
        entailment_model=models["large"],
    )
    pair_maker.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]  # the stages' clock
    report = make_synthetic_pairs(options.input, folder / "pairs", recipe)
    if report is None:
        raise SystemExit("the pairs were not finished")
    stages = report["stages"]
    return {
        "segments": report["segments"],
        "pairs": report["pairs"],
        "stages": {name: stage["pairs_per_second"] for name, stage in stages.items()},
        "pairs_per_second": report["pairs"] / sum(stage["seconds"] for stage in stages.values()),
    }


def pretrain(folder: Path, model: str, size: str, steps: int) -> dict[str, float]:
    """Take some steps of pre-training by the paper's settings; the first does not count."""
    from transformers import trainer

    from bleurt_repro.training.arguments import parse_config
    from bleurt_repro.training.pretrain import PairArguments, PretrainingArguments
    from bleurt_repro.training.pretrain import pretrain as train

    Steps.ends.clear()
    trainer.DEFAULT_CALLBACKS.append(Steps)
    pairs = [str(folder / f"pairs-{i}") for i in range(16)]  # copies of the few pairs, so that a step has its 32
    for copy in pairs:
        shutil.copytree(folder / "pairs", copy, dirs_exist_ok=True)
    words = ["--config", f"pretrain_{size}", "--model", model, "--pairs", *pairs, "--bf16"]
    few = {"max_steps": steps + 1, "eval_steps": steps + 1, "save_steps": steps + 1, "validation_segments": 1}
    quiet = {
        "save_only_model": "true",
        "per_device_eval_batch_size": 8,
        "use_cpu": "true",
        "disable_tqdm": "true",
        "overwrite": "true",
    }
    settings = {**few, **quiet, "output_dir": folder / size}
    words += [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    try:
        train(*parse_config((PairArguments, PretrainingArguments), words))
    finally:
        trainer.DEFAULT_CALLBACKS.remove(Steps)
    seconds = statistics.median(after - before for before, after in itertools.pairwise(Steps.ends))
    return {"seconds_per_step": seconds, "pairs_per_second": PAPER["batch"] / seconds}


def core_days(making: dict[str, Any], training: dict[str, Any]) -> dict[str, float]:
    """Return what the stages of the paper's run take of one core, in days."""
    days = {"making pairs": PAPER["pairs"] / making["pairs_per_second"] / DAY}
    for size, measured in training.items():
        for stage in ("pre-training", "fine-tuning"):
            days[f"{stage}, {size}"] = PAPER[f"{stage} steps"] * measured["seconds_per_step"] / DAY
    return days


def table(results: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    making, days = results["making_pairs"], results["core_days"]
    lines = [f"`{results['command']}`", "", f"Load before: {results['load']:.1f}.", ""]
    lines += ["| stage of making pairs | pairs a second |", "|---|---|"]
    lines += [f"| {name} | {rate:.2f} |" for name, rate in making["stages"].items()]
    lines += [f"| all | {making['pairs_per_second']:.3f} |", "", "| stage | days of one core |", "|---|---|"]
    lines += [f"| {name} | {count:,.0f} |" for name, count in days.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
