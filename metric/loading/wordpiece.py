"""Tokenise by a WordPiece vocabulary with `tokenizers` alone: importing `transformers` takes longer than scoring.

Only a tokenizer.json that `transformers` would read as a plain BERT or MPNet tokenizer is accepted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# The special tokens and the classes of the tokenizers of a model.
SPECIAL = {
    "bert": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "mpnet": {"pad": "<pad>", "unk": "[UNK]", "cls": "<s>", "sep": "</s>", "mask": "<mask>"},
}
CLASSES = {"bert": ("BertTokenizer", "BertTokenizerFast"), "mpnet": ("MPNetTokenizer", "MPNetTokenizerFast")}
# Files beside tokenizer.json that add to it or replace it.
OTHER_TOKENIZER_FILES = ("added_tokens.json", "special_tokens_map.json", "tokenizer.model")


class WordPieceTokenizer:
    """Offers what `PairEncoder` needs of a `transformers` tokenizer, with the special tokens of a model.

    Args:
        file: tokenizer.json.
        model_type: "bert" or "mpnet".
    """

    def __init__(self, file: Path, model_type: str) -> None:
        from tokenizers import Tokenizer

        self.backend_tokenizer = Tokenizer.from_file(str(file))
        self.backend_tokenizer.no_truncation()
        self.backend_tokenizer.no_padding()
        self.backend_tokenizer.encode_special_tokens = True  # "[SEP]" within a text is text
        ids = {name: self.backend_tokenizer.token_to_id(token) for name, token in SPECIAL[model_type].items()}
        self.cls_token_id, self.sep_token_id, self.unk_token_id = ids["cls"], ids["sep"], ids["unk"]
        self.pad_token_id = ids["pad"]

    def __call__(self, texts: Sequence[str], **_: Any) -> dict[str, list[list[int]]]:
        """Return the token ids of texts, without special tokens."""
        encodings = self.backend_tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return {"input_ids": [encoding.ids for encoding in encodings]}

    def get_vocab(self) -> dict[str, int]:
        """Return all tokens with their ids."""
        return dict(self.backend_tokenizer.get_vocab(with_added_tokens=True))


def open_wordpiece(folder: Path, model_type: str) -> WordPieceTokenizer | None:
    """Open the tokenizer of a folder, or return None if `transformers` must open it."""
    try:
        is_plain = _has_plain_wordpiece(folder, model_type)
        return WordPieceTokenizer(folder / "tokenizer.json", model_type) if is_plain else None
    except Exception:  # whatever `tokenizers` raises for a damaged vocabulary, `transformers` will name it
        return None


def _has_plain_wordpiece(folder: Path, model_type: str) -> bool:
    """Return whether `transformers` would read the folder's files as the tokenizer that tokenizer.json describes."""
    if any((folder / name).exists() for name in OTHER_TOKENIZER_FILES):
        return False
    special = SPECIAL[model_type]
    # MPNet's vocabulary may have fairseq's token for unknown words, too, which its tokenizer never makes.
    unused = {"<unk>"} if model_type == "mpnet" else set()
    try:
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        # `transformers` makes the normalizer of these settings, whatever tokenizer.json says.
        normalizer = {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
            "strip_accents": settings.get("strip_accents"),
            "lowercase": settings.get("do_lower_case", True),
        }
        model = tokenizer["model"]
        wordpiece = [
            model[name] for name in ("type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word")
        ]
        added = {
            token["content"]
            for token in tokenizer["added_tokens"]
            if token["special"] and (token["content"] in unused or not token["normalized"])
        }
        return (
            settings["tokenizer_class"] in CLASSES[model_type]
            and all(settings.get(f"{name}_token") == token for name, token in special.items())
            and not any(settings.get(name) for name in ("added_tokens_decoder", "extra_special_tokens", "auto_map"))
            and tokenizer["normalizer"] == normalizer
            and tokenizer["pre_tokenizer"] == {"type": "BertPreTokenizer"}
            and wordpiece == ["WordPiece", special["unk"], "##", 100]
            and added - unused == set(special.values())
            and len(tokenizer["added_tokens"]) == len(added)
            and added <= model["vocab"].keys()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
