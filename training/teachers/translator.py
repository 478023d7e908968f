"""Train a small translator between English and other languages, for back-translation (BLEURT, section 4.1).

    python -m bleurt_repro.training.teachers.translator --config teacher_translator \\
        --parallel-files fr=en-fr.tsv de=en-de.tsv --output OUT
    ... --resume                    continue after a kill, with the same options, or with more --max-steps
    ... --bf16                      on a machine that computes in bfloat16

It is one model for all directions, of the Marian architecture: `>>fr<< Hello.` asks for French, `>>en<< Bonjour.` for
English. The columns of the files are source, split, english, target; rows of the splits test and dev are not trained on.
OUT becomes a folder that `AutoModelForSeq2SeqLM` and `AutoTokenizer` open, with `results.json` beside the weights.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer, Trainer, set_seed

from bleurt_repro.datasets_builders.synthetic.raw_texts import read_rows
from bleurt_repro.datasets_builders.translator import Translator
from bleurt_repro.metric.loading.checksums import file_records
from bleurt_repro.training.arguments import parse_config, run_script
from bleurt_repro.training.run import check_output, last_checkpoint, train
from bleurt_repro.training.teachers.common import (
    TeacherArguments,
    parse_pairs,
    parse_weights,
    saved_model,
    write_results,
)
from bleurt_repro.training.teachers.translator_data import (
    BatchCollator,
    Batches,
    ParallelText,
    SentencePair,
    bilingual_vectors,
    encode_texts,
    make_examples,
    read_parallel_text,
    sampling_weights,
    tag,
    train_vocabulary,
)

LABEL_SMOOTHING = 0.1  # "Attention Is All You Need", section 5.4


@dataclass
class TranslatorArguments:
    """What is trained, on which text."""

    # Text
    parallel_files: list[str] = field(
        metadata={"help": "TSV files with the columns source, split, english, target, as LANGUAGE=FILE."}
    )
    source_weights: list[str] = field(
        default_factory=list, metadata={"help": "Weights of the pairs of a source, as SOURCE=WEIGHT; default: 1."}
    )
    word_weights: list[str] = field(
        default_factory=list,
        metadata={"help": "Weights of pairs with a word in their English sentence, as WORD=WEIGHT; default: 1."},
    )
    length_power: float = field(
        default=0.5, metadata={"help": "Pairs are drawn in proportion to this power of their number of words."}
    )
    joined_share: float = field(
        default=0.1,
        metadata={"help": "Number of examples that join 2 to 4 pairs, per pair; long sentences are rare otherwise."},
    )
    copied_file: str | None = field(
        default=None,
        metadata={
            "help": "English text to copy, which teaches its names (Currey et al., 2017, aclanthology.org/W17-4715)."
        },
    )
    copied_column: str | None = field(
        default=None, metadata={"help": "Column of the text to copy: a name, or a number from 1."}
    )
    copied_share: float = field(default=0.15, metadata={"help": "Share of copied text in all examples."})
    copied_texts: int = field(default=50_000, metadata={"help": "Maximum number of texts to copy, drawn at random."})
    # Model
    vocabulary_size: int = field(
        default=8_192, metadata={"help": "Number of tokens in the vocabulary, which all languages share."}
    )
    width: int = field(
        default=256, metadata={"help": "Size of the model's vectors; inner layers are four times wider."}
    )
    encoder_layers: int = field(default=3, metadata={"help": "Number of encoder layers."})
    decoder_layers: int = field(default=2, metadata={"help": "Number of decoder layers."})
    heads: int = field(default=4, metadata={"help": "Number of attention heads."})
    dropout: float = field(
        default=0.1, metadata={"help": "Dropout probability; 0 if no pair is seen more than a few times."}
    )
    bilingual_start: bool = field(
        default=True, metadata={"help": "Start from embeddings in which a word is close to its translations."}
    )
    # Batches
    batch_tokens: int = field(
        default=2_048, metadata={"help": "Maximum number of tokens per batch in one language, with padding."}
    )
    max_length: int = field(
        default=128, metadata={"help": "Maximum number of tokens per text; longer pairs are left out."}
    )


@dataclass
class TranslatorTrainingArguments(TeacherArguments):
    """The Trainer's arguments; an item of the data set is a whole batch of sentences."""

    learning_rate: float = 2e-3
    adam_beta2: float = 0.98
    max_steps: int = 20_000
    per_device_train_batch_size: int = 1
    save_steps: float = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, found {self.max_steps}: the translator trains by steps")


def build_model(arguments: TranslatorArguments, tokenizer: MarianTokenizer) -> MarianMTModel:
    """Make a model with random weights."""
    config = MarianConfig(
        vocab_size=tokenizer.vocab_size,
        d_model=arguments.width,
        encoder_layers=arguments.encoder_layers,
        decoder_layers=arguments.decoder_layers,
        encoder_ffn_dim=4 * arguments.width,
        decoder_ffn_dim=4 * arguments.width,
        encoder_attention_heads=arguments.heads,
        decoder_attention_heads=arguments.heads,
        dropout=arguments.dropout,
        activation_function="relu",
        init_std=arguments.width**-0.5,  # with scaled embeddings, the same order as the vectors of positions
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
        forced_eos_token_id=tokenizer.eos_token_id,
    )
    model = MarianMTModel(config)
    model.generation_config.bad_words_ids = [[tokenizer.pad_token_id]]
    return model


def start_bilingually(model: MarianMTModel, pairs: list[SentencePair], tokenizer: MarianTokenizer) -> None:
    """Set the embeddings to `bilingual_vectors`, with the standard deviation of random ones."""
    english = encode_texts([pair.english for pair in pairs], tokenizer)
    target = encode_texts([pair.target for pair in pairs], tokenizer)
    vectors = torch.from_numpy(bilingual_vectors(english, target, tokenizer.vocab_size, model.config.d_model))
    with torch.no_grad():
        model.model.shared.weight.copy_(vectors / vectors.std() * model.config.init_std)


def smoothed_loss(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
    """Return the label-smoothed cross-entropy, averaged over the tokens of all batches of a step."""
    loss = torch.nn.functional.cross_entropy(
        outputs.logits.flatten(0, 1).float(), labels.flatten(), label_smoothing=LABEL_SMOOTHING, reduction="sum"
    )
    return loss / ((labels >= 0).sum() if num_items_in_batch is None else num_items_in_batch)


def open_tokenizer(
    text: ParallelText,
    copied: list[str],
    languages: list[str],
    arguments: TranslatorArguments,
    checkpoint: Path | None,
    seed: int,
) -> MarianTokenizer:
    """Open the tokenizer of the run that is resumed, or train one on the text, in which each sentence counts once."""
    if checkpoint is not None:
        return MarianTokenizer.from_pretrained(checkpoint, local_files_only=True)
    texts = list(dict.fromkeys([text for pair in text.train for text in (pair.english, pair.target)] + copied))
    order = np.random.default_rng(seed).permutation(len(texts))
    with tempfile.TemporaryDirectory() as folder:
        return train_vocabulary((texts[i] for i in order), ["en", *languages], arguments.vocabulary_size, Path(folder))


def read_copied_texts(arguments: TranslatorArguments, seed: int) -> list[str]:
    """Read the English text to copy, if there is any."""
    if not arguments.copied_file:
        return []
    texts = [row.text.strip() for row in read_rows(arguments.copied_file, arguments.copied_column) if not row.fault]
    order = np.random.default_rng(seed).permutation(len(texts))
    return [texts[i] for i in order[: arguments.copied_texts] if texts[i]]


def weigh(pairs: list[SentencePair], arguments: TranslatorArguments) -> np.ndarray:
    """Return the sampling weight of each pair."""
    return sampling_weights(
        pairs,
        parse_weights(arguments.source_weights, "source_weights"),
        parse_weights(arguments.word_weights, "word_weights"),
        arguments.length_power,
    )


def measure(folder: Path, test: list[SentencePair]) -> dict[str, Any]:
    """Translate the test pairs greedily in both directions, as back-translation does.

    Returns:
        BLEU of sacreBLEU by direction and source of the pairs, its signature, and the speed.
    """
    from sacrebleu.metrics import BLEU

    translator, bleu = Translator(str(folder)), BLEU()
    figures: dict[str, Any] = {}
    seconds = sentences = 0.0
    for language in sorted({pair.language for pair in test}):
        pairs = [pair for pair in test if pair.language == language]
        english, foreign = [pair.english for pair in pairs], [pair.target for pair in pairs]
        for name, target, texts, references in (
            (f"en-{language}", language, english, foreign),
            (f"{language}-en", "en", foreign, english),
        ):
            started = time.monotonic()
            translations = translator.translate(texts, f"{tag(target)} ")
            seconds, sentences = seconds + time.monotonic() - started, sentences + len(set(texts))
            figures[name] = {}
            for source in sorted({pair.source for pair in pairs}):
                rows = [i for i, pair in enumerate(pairs) if pair.source == source]
                score = bleu.corpus_score([translations[i] for i in rows], [[references[i] for i in rows]]).score
                figures[name][source] = {"bleu": round(score, 2), "sentences": len(rows)}
    return {
        "bleu": figures,
        "signature": str(bleu.get_signature()),
        "greedy_sentences_per_second": round(sentences / seconds, 1),
    }


def main(argv: list[str] | None = None) -> None:
    """Train with the options of a command line."""
    arguments, args = parse_config(
        (TranslatorArguments, TranslatorTrainingArguments), sys.argv[1:] if argv is None else argv
    )
    check_output(args)
    set_seed(args.seed)
    folder, files = Path(args.output_dir), parse_pairs(arguments.parallel_files, "parallel_files")

    # The text, its vocabulary, and the examples.
    text = read_parallel_text(files)
    copied = read_copied_texts(arguments, args.seed)
    weights = weigh(text.train, arguments)
    checkpoint, _ = last_checkpoint(folder)
    tokenizer = open_tokenizer(text, copied, list(files), arguments, checkpoint, args.seed)
    examples = make_examples(
        text.train,
        weights,
        copied,
        tokenizer,
        joined_share=arguments.joined_share,
        copied_share=arguments.copied_share,
        max_length=arguments.max_length,
        seed=args.seed,
    )
    per_step = args.gradient_accumulation_steps * args.train_batch_size * args.world_size
    batches = Batches(examples, args.max_steps * per_step, arguments.batch_tokens, args.seed)
    # The model, training, and the result.
    model = build_model(arguments, tokenizer)
    if arguments.bilingual_start and checkpoint is None:
        start_bilingually(model, text.train, tokenizer)

    trainer = Trainer(
        model=model,
        args=args,
        data_collator=BatchCollator(tokenizer.pad_token_id, model.config.decoder_start_token_id),
        train_dataset=batches,
        processing_class=tokenizer,
        compute_loss_func=smoothed_loss,
    )
    seconds = train(trainer, args)

    if trainer.is_world_process_zero():
        with saved_model(trainer) as saved:
            data = {
                "files": file_records([*files.values(), *filter(None, [arguments.copied_file])]),
                "train_pairs": dict(Counter(f"{pair.language} {pair.source}" for pair in text.train)),
                "left_out": {**text.left_out, "too long": examples.too_long},
                "drawn": batches.counts,
            }
            write_results(
                saved,
                trainer,
                "translator",
                data,
                measure(saved, text.test),
                arguments,
                seconds,
                batches.counts.total(),
            )


if __name__ == "__main__":
    run_script(main)
