"""Tiny random RoBERTa, XLM-R and MPNet with tokenizers built on the spot, as their families build an input."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import TINY_WORDS

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 66,
    "type_vocab_size": 1,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "initializer_range": 0.3,
}
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
TEXT = ["the cat sat on the mat", "it rains", "der Hund, bye!", "stock prices fell", "Es regnet nicht", "good"]


def roberta_tokenizer():
    """A byte-level tokenizer of RoBERTa's kind: 64 tokens at most."""
    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator([*TEXT, *TINY_WORDS], vocab_size=320, special_tokens=[*SPECIAL, "<mask>"])
    return _with_template(trained._tokenizer)


def xlm_roberta_tokenizer():
    """A unigram tokenizer of XLM-R's kind, of the two languages' characters and a few words."""
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers
    from tokenizers.models import Unigram

    characters = sorted({character for text in TEXT for character in text} | set("abcdefghijklmnopqrstuvwxyz.,!?"))
    pieces = [(token, 0.0) for token in SPECIAL] + [("\N{LOWER ONE EIGHTH BLOCK}", -4.0)]
    pieces += [("\N{LOWER ONE EIGHTH BLOCK}" + word, -6.0) for word in TINY_WORDS]
    pieces += [(character, -8.0) for character in characters if character != " "] + [("<mask>", 0.0)]
    tokenizer = Tokenizer(Unigram(pieces, unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _with_template(tokenizer)


def mpnet_tokenizer():
    """A lower-casing WordPiece tokenizer of MPNet's kind: 64 tokens at most."""
    from transformers import MPNetTokenizer

    characters = [chr(code) for code in range(33, 127)]
    pieces = [*SPECIAL, *characters, *(f"##{character}" for character in characters), *TINY_WORDS, "[UNK]", "<mask>"]
    return MPNetTokenizer({piece: i for i, piece in enumerate(dict.fromkeys(pieces))}, model_max_length=64)


def _with_template(tokenizer):
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=64,
    )


def make_tiny_encoder(folder: Path, family: str) -> Path:
    """Save a random sequence classifier of a family, "roberta", "xlm-roberta" or "mpnet", that records no layout."""
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    torch.manual_seed(0)
    make = {"roberta": roberta_tokenizer, "xlm-roberta": xlm_roberta_tokenizer, "mpnet": mpnet_tokenizer}
    tokenizer = make[family]()
    config = AutoConfig.for_model(family, vocab_size=len(tokenizer), num_labels=1, **SIZES)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
