"""Train an entailment classifier, a signal of synthetic pairs (BLEURT, section 4.2).

    python -m bleurt_repro.training.teachers.entailment --config teacher_entailment --model ENCODER \\
        --pairs-file pairs.tsv --output OUT
    ... --resume                    continue after a kill, with the same options
    ... --bf16                      on a machine that computes in bfloat16

ENCODER is a folder or a Hub id. The columns of the file are source, split, label, premise, hypothesis; the labels are
entailment, neutral and contradiction. OUT becomes a folder that `AutoModelForSequenceClassification` opens, with
`results.json` beside the weights.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import (
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerBase,
    Trainer,
    set_seed,
)

from bleurt_repro.datasets_builders.open_models import find_model, quiet_transformers
from bleurt_repro.metric.files.records import read_table
from bleurt_repro.metric.loading.checksums import file_records
from bleurt_repro.training.arguments import parse_config, run_script
from bleurt_repro.training.run import check_output, train
from bleurt_repro.training.teachers.common import (
    TeacherArguments,
    open_tokenizer,
    parse_weights,
    saved_model,
    set_dropout,
    write_results,
)

COLUMNS = ("source", "split", "label", "premise", "hypothesis")
LABELS = ("entailment", "neutral", "contradiction")  # the order of MNLI
# Label of both neutral and contradiction in sources with two labels.
UNSURE_LABEL = "not_entailment"

Pair = dict[str, str]


@dataclass
class EntailmentArguments:
    """What is trained, on which pairs."""

    model: str = field(metadata={"help": "Encoder to start from: folder or Hub id."})
    pairs_file: str = field(metadata={"help": f"TSV file with the columns {', '.join(COLUMNS)}; gzipped or not."})
    held_out_source: str | None = field(
        default=None, metadata={"help": "Source from which pairs are held out; default: all sources."}
    )
    held_out_pairs: int = field(
        default=2_000, metadata={"help": "Minimum number of pairs that are held out, by premise."}
    )
    test_sources: list[str] = field(
        default_factory=list, metadata={"help": "Sources to measure on, which are not trained on."}
    )
    source_shares: list[str] = field(
        default_factory=list, metadata={"help": "Shares of the pairs of a source to use, as SOURCE=SHARE; default: 1."}
    )
    max_length: int = field(default=128, metadata={"help": "Maximum number of tokens per pair; the rest is cut off."})
    dropout: float | None = field(
        default=None, metadata={"help": "Dropout probability; default: the one that the model records."}
    )


@dataclass
class SplitPairs:
    """Pairs to train and to measure on; no premise of `train` is in another set.

    Attributes:
        train: pairs to train on.
        held_out: pairs to measure on, from the same source or sources.
        tests: pairs of the test sources, by source.
        left_out: number of pairs that were left out, by reason.
    """

    train: list[Pair]
    held_out: list[Pair]
    tests: dict[str, list[Pair]]
    left_out: Counter[str]


def split_pairs(pairs: list[Pair], arguments: EntailmentArguments, seed: int) -> SplitPairs:
    """Hold pairs out by premise, and choose the pairs to train on.

    Sources with two labels are left out completely: it is unknown which of their pairs without entailment contradict, and
    their pairs with entailment alone would teach that such text always entails.

    Raises:
        ValueError: if a label or source is unknown, or nothing remains to train on.
    """
    shares = parse_weights(arguments.source_shares, "source_shares")
    _check_names(pairs, arguments, shares)
    two_labels = {pair["source"] for pair in pairs if pair["label"] == UNSURE_LABEL}
    tests = {name: [pair for pair in pairs if pair["source"] == name] for name in arguments.test_sources}
    usable = [pair for pair in pairs if pair["source"] not in two_labels and pair["source"] not in tests]
    left_out = Counter({"two-label sources": sum(pair["source"] in two_labels for pair in pairs)})

    premises = _hold_out(usable, arguments, seed)
    measured = premises | {_key(pair["premise"]) for test in tests.values() for pair in test}
    random = np.random.default_rng(seed)
    held_out, chosen = [], []
    for pair in usable:
        may_be_held_out = arguments.held_out_source in (None, pair["source"])
        if may_be_held_out and _key(pair["premise"]) in premises:
            held_out.append(pair)
        elif _key(pair["premise"]) in measured:
            left_out["premise is measured on"] += 1
        elif random.random() >= shares.get(pair["source"], 1.0):
            left_out["beyond the source's share"] += 1
        else:
            chosen.append(pair)
    if not chosen:
        raise ValueError("nothing remains to train on: hold out fewer pairs, or raise --source-shares")
    return SplitPairs(chosen, held_out, tests, left_out)


def _check_names(pairs: list[Pair], arguments: EntailmentArguments, shares: dict[str, float]) -> None:
    for number, pair in enumerate(pairs, start=1):
        if pair["label"] not in (*LABELS, UNSURE_LABEL):
            raise ValueError(
                f"{arguments.pairs_file}, pair {number}: label {pair['label']!r}; expected {', '.join(LABELS)} or "
                f"{UNSURE_LABEL}"
            )
    sources = {pair["source"] for pair in pairs}
    unknown = {*shares, *arguments.test_sources, *filter(None, [arguments.held_out_source])} - sources
    if unknown:
        raise ValueError(
            f"no source {', '.join(sorted(unknown))} in {arguments.pairs_file}; it has {', '.join(sorted(sources))}"
        )
    for pair in pairs:
        if pair["label"] == UNSURE_LABEL and pair["source"] in {*arguments.test_sources, arguments.held_out_source}:
            raise ValueError(f"source {pair['source']} has two labels and cannot be measured on: choose another")


def _hold_out(pairs: list[Pair], arguments: EntailmentArguments, seed: int) -> set[str]:
    """Draw premises until they have at least `held_out_pairs` pairs of the held-out source."""
    counts = Counter(_key(pair["premise"]) for pair in pairs if arguments.held_out_source in (None, pair["source"]))
    premises = np.random.default_rng(seed).permutation(list(counts))
    totals = np.cumsum([counts[premise] for premise in premises])
    if not len(totals) or totals[-1] <= arguments.held_out_pairs:
        raise ValueError(
            f"{arguments.held_out_pairs} pairs are to be held out of {sum(counts.values())}, and some must remain: give "
            "more pairs, or a smaller --held-out-pairs"
        )
    return set(premises[: np.searchsorted(totals, arguments.held_out_pairs) + 1])


def _key(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return "".join(character for character in text.casefold() if character.isalnum())


def encode(pairs: list[Pair], tokenizer: PreTrainedTokenizerBase, max_length: int) -> tuple[Dataset, int]:
    """Tokenize pairs, premise first.

    Returns:
        data set with input_ids, token_type_ids, attention_mask, labels and length; and the number of pairs that were cut.
    """
    encoded = tokenizer([pair["premise"] for pair in pairs], [pair["hypothesis"] for pair in pairs], verbose=False)
    long = [i for i, ids in enumerate(encoded["input_ids"]) if len(ids) > max_length]
    columns: dict[str, list[Any]] = {name: list(rows) for name, rows in encoded.items()}
    for i in long:
        cut = tokenizer(pairs[i]["premise"], pairs[i]["hypothesis"], truncation="longest_first", max_length=max_length)
        for name, row in cut.items():
            columns[name][i] = row
    columns["labels"] = [LABELS.index(pair["label"]) for pair in pairs]
    columns["length"] = [len(ids) for ids in columns["input_ids"]]
    return Dataset.from_dict(columns), len(long)


class PairCollator(DataCollatorWithPadding):
    """Pads pairs, and leaves out the column by which they are grouped."""

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a batch with tensors of shape (pairs, tokens)."""
        return super().__call__([{k: v for k, v in pair.items() if k != "length"} for pair in features])


def quality(trainer: Trainer, pairs: Dataset) -> dict[str, Any]:
    """Return the accuracy in percent, on all pairs and on those of each label."""
    prediction = trainer.predict(pairs)
    predicted = np.asarray(prediction.predictions).argmax(axis=-1)
    labels = np.asarray(prediction.label_ids)
    figures: dict[str, Any] = {"accuracy": _percent(predicted == labels), "pairs": len(labels)}
    for i, label in enumerate(LABELS):
        mask = labels == i
        figures[label] = {"accuracy": _percent(predicted[mask] == i), "pairs": int(mask.sum())}
    return figures


def _percent(right: np.ndarray) -> float | None:
    return round(100 * float(right.mean()), 2) if len(right) else None


def main(argv: list[str] | None = None) -> None:
    """Train with the options of a command line."""
    arguments, args = parse_config((EntailmentArguments, TeacherArguments), sys.argv[1:] if argv is None else argv)
    check_output(args)
    set_seed(args.seed)

    # The pairs, as tokens.
    split = split_pairs(read_table(arguments.pairs_file, COLUMNS), arguments, args.seed)
    folder = find_model(arguments.model, "encoder")
    tokenizer = open_tokenizer(folder, arguments.max_length)
    data, cut = encode(split.train, tokenizer, arguments.max_length)
    measured = {"held_out": split.held_out, **split.tests}
    encoded = {name: encode(pairs, tokenizer, arguments.max_length)[0] for name, pairs in measured.items()}
    # The classifier.
    with quiet_transformers():
        model = AutoModelForSequenceClassification.from_pretrained(
            folder,
            num_labels=len(LABELS),
            id2label=dict(enumerate(LABELS)),
            label2id={label: i for i, label in enumerate(LABELS)},
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
    set_dropout(model, arguments.dropout)
    args.train_sampling_strategy = "group_by_length"

    # Training, and the result.
    trainer = Trainer(
        model=model,
        args=args,
        data_collator=PairCollator(tokenizer),
        train_dataset=data,
        eval_dataset=encoded["held_out"],
        processing_class=tokenizer,
    )
    seconds = train(trainer, args)
    figures = {name: quality(trainer, encoded[name]) for name in measured}

    if trainer.is_world_process_zero():
        with saved_model(trainer) as saved:
            data_record = {
                "files": file_records([arguments.pairs_file]),
                "train_pairs": dict(Counter(pair["source"] for pair in split.train)),
                "cut_to_max_length": cut,
                "left_out": split.left_out,
            }
            examples = trainer.state.global_step * args.train_batch_size * args.world_size
            write_results(saved, trainer, "entailment", data_record, figures, arguments, seconds, examples)


if __name__ == "__main__":
    run_script(main)
