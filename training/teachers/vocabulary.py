"""A vocabulary for a translator: SentencePiece pieces shared by all languages, and a tag for each target language.

The tags, such as `>>fr<<`, and the files are those of the Marian models on the Hub
(https://huggingface.co/docs/transformers/model_doc/marian#multilingual-models).
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from transformers import MarianTokenizer

EOS, UNKNOWN, PAD = "</s>", "<unk>", "<pad>"
SPM_FILES = ("source.spm", "target.spm")


def tag(language: str) -> str:
    """Give the token that asks for a translation into a language."""
    return f">>{language}<<"


def train_vocabulary(texts: Iterable[str], languages: Sequence[str], size: int, folder: Path) -> MarianTokenizer:
    """Make a tokenizer from text, and save it.

    Characters that are not in the vocabulary are written as bytes, so that any text can be copied.

    Args:
        texts: of all languages.
        languages: that translations may be asked in.
        size: tokens of the vocabulary; fewer if the text has no more pieces.
        folder: where the tokenizer's files go.

    Raises:
        ValueError: if the text is too small for a vocabulary, or `size` too small for the text's characters.
    """
    import sentencepiece

    model = io.BytesIO()
    tags = [tag(language) for language in languages]
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            vocab_size=size - len(tags) - 1,
            hard_vocab_limit=False,
            byte_fallback=True,
            eos_id=0,
            unk_id=1,
            bos_id=-1,
            pad_id=-1,
            unk_piece=UNKNOWN,
            eos_piece=EOS,
            character_coverage=0.9998,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise ValueError(f"no vocabulary of {size} tokens can be made from the text: {error}") from error
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    names = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    folder.mkdir(parents=True, exist_ok=True)
    for name in SPM_FILES:
        (folder / name).write_bytes(model.getvalue())
    vocabulary = {name: i for i, name in enumerate([*names, *tags, PAD])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False, indent=1), encoding="utf-8")
    source, target, vocab = (str(folder / name) for name in (*SPM_FILES, "vocab.json"))
    tokenizer = MarianTokenizer(source, target, vocab, source_lang="en", model_max_length=512)
    tokenizer.save_pretrained(folder)
    return tokenizer


def encode_texts(texts: Sequence[str], tokenizer: MarianTokenizer) -> list[Any]:
    """Give each text's ids, without tag and end of sentence, much faster than the tokenizer does.

    In the vocabulary that `train_vocabulary` makes, a piece's id is SentencePiece's own.
    """
    import numpy as np

    encoded = tokenizer.spm_source.encode(list(texts), num_threads=-1)
    return [np.asarray(ids, dtype=np.int32) for ids in encoded]
