"""Teachers of a few hundred weights, made on the spot: a masked LM, a translator with its tokenizer, a classifier."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

SENTENCES = [
    "The old bridge over the river was closed for repairs last winter.",
    "She plays the violin in a small orchestra and teaches children on Saturdays.",
    "Heavy rain delayed the train, so we walked to the station in the village.",
    "Nobody had expected the museum to open again before the end of spring.",
    "The recipe calls for two eggs, a cup of flour and a pinch of salt.",
    "He wrote a letter to his brother (born in 1950) but never sent it.",
    "Our neighbours painted their garden fence a bright shade of blue.",
    "A new road between both towns should be finished within three years.",
    "The committee rejected the plan because it was far too expensive.",
    "Wild geese fly south when the first frost covers the northern lakes.",
    "In the evening the harbour was full of fishing boats and noise.",
    "The teacher asked whether anyone had read the book over the holidays.",
]


def _bert_tokenizer(folder: Path):
    from transformers import BertTokenizer

    words = sorted(
        {word for text in SENTENCES for word in text.lower().translate(str.maketrans(",.()", "    ")).split()}
    )
    characters = [chr(code) for code in range(33, 127)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *characters, *(f"##{character}" for character in characters), *words, "##ing", "##ed", "##s"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(pieces)) + "\n")
    return BertTokenizer(str(folder / "vocab.txt"), do_lower_case=True, model_max_length=64)


def _bert_sizes(tokenizer) -> dict:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    return {"vocab_size": len(tokenizer), "max_position_embeddings": 64, "initializer_range": 0.3, **sizes}


def make_masked_lm(folder: Path) -> Path:
    """A BERT with a vocabulary head."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(1)
    tokenizer = _bert_tokenizer(folder)
    BertForMaskedLM(BertConfig(**_bert_sizes(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_classifier(folder: Path, labels=("contradiction", "entailment", "neutral")) -> Path:
    """A BERT with a pair-classification head."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(2)
    tokenizer = _bert_tokenizer(folder)
    names = dict(enumerate(labels))
    config = BertConfig(**_bert_sizes(tokenizer), id2label=names, label2id={name: i for i, name in names.items()})
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_translator(folder: Path) -> Path:
    """A Marian model that reads ">>fr<<", ">>de<<" and ">>en<<" before its source."""
    import sentencepiece
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "sentences.txt"
    text.write_text("\n".join(SENTENCES * 3))
    for name in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(folder / name), vocab_size=120, minloglevel=2, hard_vocab_limit=False
        )
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
        (folder / f"{name}.vocab").unlink()
    text.unlink()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    pieces = [processor.id_to_piece(i) for i in range(processor.get_piece_size())]
    pieces = [
        "</s>",
        "<unk>",
        *(p for p in pieces if p not in ("<s>", "</s>", "<unk>")),
        ">>fr<<",
        ">>de<<",
        ">>en<<",
        "<pad>",
    ]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    files = (str(folder / file) for file in ("source.spm", "target.spm", "vocab.json"))
    tokenizer = MarianTokenizer(*files, model_max_length=64)
    torch.manual_seed(5)
    config = MarianConfig(
        vocab_size=len(pieces),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=64,
        pad_token_id=len(pieces) - 1,
        decoder_start_token_id=len(pieces) - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
        scale_embedding=True,
        init_std=0.3,
    )
    model = MarianMTModel(config)
    # Random weights seldom end a sentence by themselves, and which pieces they like depends on the libraries' versions:
    # none of them may be blank.
    model.final_logits_bias[0, 0] = 2.0
    for i, piece in enumerate(pieces[1:], start=1):
        if piece.startswith(("<", ">>")) or piece == "\u2581":
            model.final_logits_bias[0, i] = -100.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Teachers:
    """Folders of the tiny models."""

    masked_lm: Path
    translator: Path
    classifier: Path

    def options(self) -> dict[str, str]:
        """The models as options of a recipe."""
        return {
            "masked_lm": str(self.masked_lm),
            "translator": str(self.translator),
            "bertscore_model": str(self.masked_lm),
            "entailment_model": str(self.classifier),
        }


def make_teachers(folder: Path) -> Teachers:
    """All of them, in sub-folders."""
    return Teachers(make_masked_lm(folder / "lm"), make_translator(folder / "mt"), make_classifier(folder / "nli"))
