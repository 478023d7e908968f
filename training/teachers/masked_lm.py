"""Train a masked language model that fills masks for synthetic pairs (BLEURT, sections 4.1 and A.1).

    python -m bleurt_repro.training.teachers.masked_lm --config teacher_masked_lm --model ENCODER \\
        --train-file sentences.txt --output OUT
    ... --resume                    continue after a kill, with the same options
    ... --bf16                      on a machine that computes in bfloat16

ENCODER is a folder or a Hub id: an encoder without a vocabulary head, such as a sentence encoder, or a masked language
model to train further. Words are masked as in mask filling. OUT becomes a folder that `AutoModelForMaskedLM`
opens, with `results.json` beside the weights.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import AutoModelForMaskedLM, PreTrainedModel, PreTrainedTokenizerBase, Trainer, set_seed

from bleurt_repro.datasets_builders.open_models import find_model, quiet_transformers
from bleurt_repro.datasets_builders.perturbations.mask_filling import MAX_MASKS, STRATEGIES
from bleurt_repro.datasets_builders.synthetic.raw_texts import read_rows
from bleurt_repro.metric.loading.checksums import file_records
from bleurt_repro.training.arguments import parse_config, run_script
from bleurt_repro.training.run import check_output, train
from bleurt_repro.training.teachers.common import (
    TeacherArguments,
    open_tokenizer,
    saved_model,
    set_dropout,
    write_results,
)

NO_WORD, NO_LABEL = -1, -100


@dataclass
class MaskedLMArguments:
    """What is trained, on which text."""

    model: str = field(metadata={"help": "Encoder or masked language model to start from: folder or Hub id."})
    train_file: str = field(
        metadata={"help": "Text with one segment per line, or TSV, CSV, JSONL or Parquet; gzipped or not."}
    )
    text_column: str | None = field(default=None, metadata={"help": "Column of the text: a name, or a number from 1."})
    max_texts: int | None = field(
        default=None, metadata={"help": "Maximum number of texts to train on, drawn at random."}
    )
    held_out_texts: int = field(default=1_000, metadata={"help": "Number of texts that are held out to measure on."})
    max_length: int = field(default=128, metadata={"help": "Maximum number of tokens per text; the rest is cut off."})
    max_masks: int = field(default=MAX_MASKS, metadata={"help": "Maximum number of masks per text."})
    dropout: float | None = field(
        default=None, metadata={"help": "Dropout probability; default: the one that the model records."}
    )


class WordMasker:
    """Collates texts into a batch, and masks whole words of them, scattered or contiguous with equal probability.

    Args:
        tokenizer: fast tokenizer.
        max_masks: maximum number of masks per text.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, max_masks: int = MAX_MASKS) -> None:
        self.tokenizer, self.max_masks = tokenizer, max_masks

    def __call__(self, texts: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Mask the texts that have no masks yet, and pad; returns input_ids, attention_mask, labels, (texts, tokens)."""
        # The Trainer's checkpoints restore the generator of torch.
        random = np.random.default_rng(int(torch.randint(2**62, ())))
        strategies = list(STRATEGIES)
        texts = [
            text if "labels" in text else self.mask(text, strategies[random.integers(len(strategies))], random)
            for text in texts
        ]
        batch = self.tokenizer.pad({"input_ids": [text["input_ids"] for text in texts]}, return_tensors="pt")
        labels = torch.full_like(batch["input_ids"], NO_LABEL)
        for row, text in enumerate(texts):
            labels[row, : len(text["labels"])] = torch.tensor(text["labels"])
        return {**batch, "labels": labels}

    def mask(self, text: dict[str, Any], strategy: str, random: np.random.Generator) -> dict[str, list[int]]:
        """Mask words of one text.

        Args:
            text: input_ids, and word: the number of the word of each token, or -1 for none.
            strategy: strategy of mask filling.
            random: generator that decides which words are masked.

        Returns:
            input_ids with masks, and labels: the masked tokens, or -100 where there is no mask.
        """
        word_numbers = np.asarray(text["word"])
        numbers, sizes = np.unique(word_numbers[word_numbers != NO_WORD], return_counts=True)
        chosen = STRATEGIES[strategy](sizes.tolist(), self.max_masks, random)
        masked = np.isin(word_numbers, numbers[chosen])
        ids = np.asarray(text["input_ids"])
        return {
            "input_ids": np.where(masked, self.tokenizer.mask_token_id, ids).tolist(),
            "labels": np.where(masked, ids, NO_LABEL).tolist(),
        }


class MaskedLMTrainer(Trainer):
    """Computes the vocabulary head at the masks only, since it costs as much as a small encoder."""

    loss_is_scaled_for_ga = False

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Return the mean cross-entropy at the masks of a batch."""
        labels = inputs.pop("labels")
        logits = logits_at(model, inputs, labels != NO_LABEL)
        loss = torch.nn.functional.cross_entropy(logits.float(), labels[labels != NO_LABEL])
        return (loss, {"logits": logits}) if return_outputs else loss


def logits_at(model: Any, inputs: dict[str, torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
    """Compute the logits of a masked language model at some positions.

    Args:
        model: the model, or the module that a launcher has wrapped it in.
        inputs: inputs of the model.
        mask: positions to compute, shape (texts, tokens).

    Returns:
        logits, shape (positions, vocabulary).
    """

    def select(module: Any, arguments: Any, output: Any) -> Any:
        output.last_hidden_state = output.last_hidden_state[mask][None]
        return output

    handle = getattr(model, "module", model).base_model.register_forward_hook(select)
    try:
        return model(**inputs).logits[0]
    finally:
        handle.remove()


def read_texts(arguments: MaskedLMArguments, seed: int) -> tuple[list[str], list[str], dict[str, int]]:
    """Read the texts, and hold some out.

    Returns:
        texts to train on, held-out texts (none of them is trained on), and the number of texts that were left out by reason.

    Raises:
        ValueError: if there are too few texts to hold some out.
    """
    rows = list(read_rows(arguments.train_file, arguments.text_column))
    texts = list(dict.fromkeys(row.text.strip() for row in rows if not row.fault and row.text.strip()))
    left_out = {"unreadable": sum(bool(row.fault) for row in rows)}
    left_out["blank or repeated"] = len(rows) - left_out["unreadable"] - len(texts)
    if len(texts) <= arguments.held_out_texts:
        raise ValueError(
            f"{arguments.train_file} has {len(texts)} different texts, and {arguments.held_out_texts} are to be held "
            "out: give more text or a smaller --held-out-texts"
        )
    order = np.random.default_rng(seed).permutation(len(texts))
    held_out = [texts[i] for i in order[: arguments.held_out_texts]]
    chosen = order[arguments.held_out_texts :][: arguments.max_texts]
    left_out["beyond max_texts"] = len(texts) - len(held_out) - len(chosen)
    return [texts[i] for i in chosen], held_out, left_out


def encode(texts: list[str], tokenizer: PreTrainedTokenizerBase, max_length: int) -> Dataset:
    """Tokenize texts: input_ids, word (number of each token's word, -1 for special tokens), length, and cut (a boolean)."""

    def cut(row: list[int]) -> list[int]:
        return row if len(row) <= max_length else row[: max_length - 1] + row[-1:]  # the last token ends the text

    def encode_batch(batch: dict[str, list[str]]) -> dict[str, list[Any]]:
        encoded = tokenizer(batch["text"], verbose=False)
        word_numbers = [
            [NO_WORD if number is None else number for number in encoded.word_ids(i)]
            for i in range(len(batch["text"]))
        ]
        return {
            "input_ids": [cut(ids) for ids in encoded["input_ids"]],
            "word": [cut(row) for row in word_numbers],
            "length": [min(len(row), max_length) for row in word_numbers],
            "cut": [len(row) > max_length for row in word_numbers],
        }

    return Dataset.from_dict({"text": texts}).map(
        encode_batch, batched=True, remove_columns=["text"], keep_in_memory=True, desc="tokenize"
    )


def open_masked_lm(name: str, tokenizer: PreTrainedTokenizerBase, texts: Dataset) -> PreTrainedModel:
    """Open a masked language model; an encoder without a vocabulary head gets a new one.

    The output layer of the new head is the input embeddings, and its bias the log-frequencies of the tokens in the texts.
    """
    with quiet_transformers():
        model, report = AutoModelForMaskedLM.from_pretrained(
            find_model(name, "encoder"),
            dtype=torch.float32,
            tie_word_embeddings=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    head = model.get_output_embeddings()
    if report["missing_keys"] and head.bias is not None:
        counts = np.bincount(np.concatenate(texts["input_ids"]), minlength=len(head.bias)) + 1.0
        counts[tokenizer.all_special_ids] = 1.0
        with torch.no_grad():
            head.bias.copy_(torch.from_numpy(np.log(counts / counts.sum())))
    return model


def masked_accuracy(model: PreTrainedModel, texts: Dataset, masker: WordMasker, seed: int, batch_size: int) -> Any:
    """Compute the share of masked tokens that the model predicts, all masks of a text at once.

    Returns:
        "accuracy" in percent and number of "masks", for each strategy.
    """
    from tqdm.auto import tqdm

    model.eval()
    figures = {}
    for strategy in STRATEGIES:
        random = np.random.default_rng(seed)
        masked = [masker.mask(text, strategy, random) for text in texts]
        masked = sorted((text for text in masked if max(text["labels"]) >= 0), key=lambda text: len(text["labels"]))
        right = total = 0
        for start in tqdm(range(0, len(masked), batch_size), desc=strategy):
            batch = {key: value.to(model.device) for key, value in masker(masked[start : start + batch_size]).items()}
            labels = batch.pop("labels")
            with torch.inference_mode():
                predicted = logits_at(model, batch, labels != NO_LABEL).argmax(dim=-1)
            right += int((predicted == labels[labels != NO_LABEL]).sum())
            total += len(predicted)
        figures[strategy] = {"accuracy": round(100 * right / total, 2), "masks": total}
    return figures


def main(argv: list[str] | None = None) -> None:
    """Train with the options of a command line."""
    arguments, args = parse_config((MaskedLMArguments, TeacherArguments), sys.argv[1:] if argv is None else argv)
    check_output(args)
    set_seed(args.seed)

    texts, held_out_texts, left_out = read_texts(arguments, args.seed)
    tokenizer = open_tokenizer(find_model(arguments.model, "encoder"), arguments.max_length)
    if not tokenizer.is_fast or tokenizer.mask_token_id is None:
        raise ValueError(
            f"{arguments.model} needs a fast tokenizer with a mask token to become a masked language model"
        )
    data, held_out = (encode(side, tokenizer, arguments.max_length) for side in (texts, held_out_texts))
    model = open_masked_lm(arguments.model, tokenizer, data)
    set_dropout(model, arguments.dropout)
    masker = WordMasker(tokenizer, arguments.max_masks)
    args.train_sampling_strategy = "group_by_length"

    trainer = MaskedLMTrainer(
        model=model, args=args, data_collator=masker, train_dataset=data, processing_class=tokenizer
    )
    seconds = train(trainer, args)

    if trainer.is_world_process_zero():
        with saved_model(trainer) as saved:
            figures = masked_accuracy(model, held_out, masker, args.seed, args.per_device_eval_batch_size)
            data_record = {
                "files": file_records([arguments.train_file]),
                "train_texts": len(data),
                "held_out_texts": len(held_out),
                "cut_to_max_length": sum(data["cut"]),
                "left_out": left_out,
            }
            examples = trainer.state.global_step * args.train_batch_size * args.world_size
            write_results(
                saved, trainer, "masked_lm", data_record, {"masked_accuracy": figures}, arguments, seconds, examples
            )


if __name__ == "__main__":
    run_script(main)
