"""Checkpoints as BLEURT's authors publish them, with a few random weights, and their rules written out plainly.

The rules here are the yardstick: they are the documented ones in the plainest form, and share no code with the package.
"""

from __future__ import annotations

import json
import math
import unicodedata
from pathlib import Path

import numpy as np

WORDS = "the cat sat on mat rain dog good bye hello there ing ed able un believ run walk".split()
LETTERS = "abcdefghijklmnopqrstuvwxyzäéñøßσςωж"
OTHERS = "猫日本語がな한글🙂€"
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "initializer_range": 0.02,
}
SENTENCES = [
    "The kettle sang on the stove while snow fell over the quiet yard.",
    "Two farmers argued about the price of apples at the Saturday market.",
    "Der Zug nach Köln fährt um halb sieben von Gleis drei ab.",
    "Les élèves ont planté un vieux chêne derrière l'école du village.",
    "Кошка спит на тёплой печке, а за окном идёт снег.",
    "猫は窓のそばで静かに眠っています。",
    "Prices rose by 3.5% in 2019 (and 4% in 2020), said the clerk.",
    "SEPARATE the MASKS: CLS and SEP are only letters here.",
    "Nobody answered the door, so they left the parcel [under the bench].",
    "El río cruza la ciudad y llega al mar después de cien kilómetros.",
]


def make_vocabulary() -> list[str]:
    """A WordPiece vocabulary with letters of several scripts, every ASCII sign and a few words."""
    signs = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    letters = [*dict.fromkeys([*signs, *LETTERS, *OTHERS])]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return [*dict.fromkeys([*special, *letters, *(f"##{c}" for c in letters), *WORDS, *(f"##{w}" for w in WORDS)])]


def make_sentencepiece(folder: Path) -> Path:
    """A SentencePiece model with control symbols, as the BLEURT-20 family has it."""
    import sentencepiece

    folder.mkdir(parents=True, exist_ok=True)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_prefix=str(folder / "sent_piece"),
        vocab_size=300,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        pad_piece="<pad>",
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        minloglevel=2,
    )
    return folder / "sent_piece.model"


def make_variables(
    vocabulary: int, embedding: int | None = None, seed: int = 0, sizes: dict = SIZES
) -> dict[str, np.ndarray]:
    """Random variables under the names and in the shapes of the official graph; `embedding` makes it a RemBERT."""
    random = np.random.default_rng(seed)
    width, inner = sizes["hidden_size"], sizes["intermediate_size"]
    variables = {"global_step": np.int64(7)}
    # wider layers get smaller weights, so that their sums stay of one size, as trained ones do
    scale = 0.3 * math.sqrt(SIZES["hidden_size"] / width)

    def dense(name, inputs, outputs):
        variables[f"{name}/kernel"] = random.normal(0, scale, (inputs, outputs))
        variables[f"{name}/bias"] = random.normal(0, 0.3, outputs)

    def norm(name, size):
        variables[f"{name}/LayerNorm/gamma"] = random.normal(1, 0.3, size)
        variables[f"{name}/LayerNorm/beta"] = random.normal(0, 0.3, size)

    narrow = embedding or width
    rows = {"word": vocabulary, "position": sizes["max_position_embeddings"], "token_type": sizes["type_vocab_size"]}
    for kind, count in rows.items():
        variables[f"bert/embeddings/{kind}_embeddings"] = random.normal(0, 0.5, (count, narrow))
    norm("bert/embeddings", narrow)
    if embedding:
        dense("bert/encoder/embedding_hidden_mapping_in", embedding, width)
    for i in range(sizes["num_hidden_layers"]):
        layer = f"bert/encoder/layer_{i}"
        for part in ("query", "key", "value"):
            dense(f"{layer}/attention/self/{part}", width, width)
        dense(f"{layer}/attention/output/dense", width, width)
        norm(f"{layer}/attention/output", width)
        dense(f"{layer}/intermediate/dense", width, inner)
        dense(f"{layer}/output/dense", inner, width)
        norm(f"{layer}/output", width)
    dense("bert/pooler/dense", width, width)
    dense("dense", width, 1)
    return {name: value if name == "global_step" else value.astype(np.float32) for name, value in variables.items()}


def write_variables(folder: Path, variables: dict[str, np.ndarray]) -> None:
    """Write variables as TensorFlow's SavedModel does."""
    import tensorflow as tf

    (folder / "variables").mkdir(parents=True, exist_ok=True)
    tf.raw_ops.SaveV2(
        prefix=str(folder / "variables" / "variables"),
        tensor_names=list(variables),
        shape_and_slices=[""] * len(variables),
        tensors=[tf.constant(value) for value in variables.values()],
    )


def write_graph(folder: Path, operations: list[str]) -> None:
    """Write a saved_model.pb that lists operations."""
    from tensorflow.core.protobuf import saved_model_pb2

    graph = saved_model_pb2.SavedModel()
    for i, operation in enumerate(operations):
        graph.meta_graphs.add().graph_def.node.add(name=f"node{i}", op=operation)
    (folder / "saved_model.pb").write_bytes(graph.SerializeToString())


def make_official_bert(folder: Path, max_length: int = 48, lower_case: bool = True) -> dict[str, np.ndarray]:
    """Write an official English checkpoint; give its variables."""
    vocabulary = make_vocabulary()
    variables = make_variables(len(vocabulary))
    write_variables(folder, variables)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    (folder / "bert_config.json").write_text(json.dumps({**SIZES, "vocab_size": len(vocabulary)}))
    settings = {"vocab_file": "vocab.txt", "do_lower_case": lower_case, "max_seq_length": max_length}
    (folder / "bleurt_config.json").write_text(
        json.dumps({"name": "tiny", "bert_config_file": "bert_config.json", **settings})
    )
    return variables


def make_official_rembert(
    folder: Path, max_length: int = 48, seed: int = 0, sizes: dict = SIZES, embedding: int = 8
) -> dict[str, np.ndarray]:
    """Write an official checkpoint of the BLEURT-20 kind; return its variables."""
    pieces = make_sentencepiece(folder).with_suffix(".vocab").read_text(encoding="utf-8").count("\n")
    variables = make_variables(pieces, embedding, seed, sizes)
    write_variables(folder, variables)
    # the output embedding of RemBERT's own training is named in the settings, and no part of BLEURT's graph
    settings = {**sizes, "vocab_size": pieces, "embedding_size": embedding, "output_embedding_size": 2 * embedding}
    (folder / "bert_config.json").write_text(json.dumps(settings))
    settings = {"vocab_file": None, "do_lower_case": None, "sp_model": "sent_piece", "max_seq_length": max_length}
    (folder / "bleurt_config.json").write_text(
        json.dumps({"name": "tiny20", "bert_config_file": "bert_config.json", "dynamic_seq_length": True, **settings})
    )
    return variables


def official_score(
    variables: dict[str, np.ndarray], ids: list[int], segments: list[int], gelu: str, sizes: dict = SIZES
) -> float:
    """The official graph for one input, in double precision."""
    v = {name: value.astype(np.float64) for name, value in variables.items()}
    heads, size = sizes["num_attention_heads"], sizes["hidden_size"] // sizes["num_attention_heads"]

    def dense(x, name):
        return x @ v[f"{name}/kernel"] + v[f"{name}/bias"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * v[f"{name}/LayerNorm/gamma"] + v[f"{name}/LayerNorm/beta"]

    def activate(x):
        if gelu == "erf":
            return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
        return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2

    x = v["bert/embeddings/word_embeddings"][list(ids)] + v["bert/embeddings/token_type_embeddings"][list(segments)]
    x = norm(x + v["bert/embeddings/position_embeddings"][: len(ids)], "bert/embeddings")
    if "bert/encoder/embedding_hidden_mapping_in/kernel" in v:
        x = dense(x, "bert/encoder/embedding_hidden_mapping_in")
    for i in range(sizes["num_hidden_layers"]):
        layer = f"bert/encoder/layer_{i}"
        # (heads, tokens, size)
        query, key, value = (
            dense(x, f"{layer}/attention/self/{part}").reshape(len(ids), heads, size).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        weights = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(size))
        mixed = (weights / weights.sum(-1, keepdims=True)) @ value
        mixed = mixed.transpose(1, 0, 2).reshape(len(ids), heads * size)
        x = norm(x + dense(mixed, f"{layer}/attention/output/dense"), f"{layer}/attention/output")
        inner = activate(dense(x, f"{layer}/intermediate/dense"))
        x = norm(x + dense(inner, f"{layer}/output/dense"), f"{layer}/output")
    return float(dense(np.tanh(dense(x[0], "bert/pooler/dense")), "dense")[0])


PAIRS = [
    ("the cat sat on the mat", "a dog ran"),
    ("it rains", "it rains"),
    ("", ""),
    ("The [SEP] cat. " * 9, "hello, there! " * 12),
    ("猫 é 🙂 ΚΟΣΜΟΣ", "believable \x00walking"),
]


def expected_scores(
    scorer, variables: dict[str, np.ndarray], gelu: str, pairs: list = PAIRS, sizes: dict = SIZES
) -> list[float]:
    """The official graph's scores of pairs that a scorer has encoded."""
    from bleurt_repro.metric.forward.encoding import PairEncoder

    encoder = PairEncoder(scorer.tokenizer, scorer.layout)
    tokens = encoder.tokenize(text for pair in pairs for text in pair)
    encoded = [encoder.encode([tokens[text] for text in pair]) for pair in pairs]
    return [official_score(variables, pair.ids, pair.segments, gelu, sizes) for pair in encoded]


def own_scores(folder: Path) -> tuple:
    """A scorer and its scores of the pairs, of which one is longer than it reads."""
    import pytest

    from bleurt_repro import BleurtScorer

    scorer = BleurtScorer(str(folder))
    with pytest.warns(UserWarning, match="longer than the 48 tokens"):
        return scorer, scorer.score(references=[r for r, _ in PAIRS], candidates=[c for _, c in PAIRS])


def refused(source: Path, folder: Path, message: str, **options) -> None:
    """Converting the source fails with the message, and leaves the folder as it was."""
    import pytest

    from bleurt_repro.metric.convert.convert import convert

    before = sorted(folder.rglob("*"))
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        convert(str(source), str(folder / "new" / "out"), **options)
    assert sorted(folder.rglob("*")) == before


def cut(file: Path, keep: int) -> None:
    """Keep the first bytes of a file."""
    file.write_bytes(file.read_bytes()[:keep])


def official_truncation(reference: list, candidate: list, room: int) -> tuple[list, list]:
    """The last token of the longer goes, of the candidate if equal, until both fit."""
    reference, candidate = list(reference), list(candidate)
    while len(reference) + len(candidate) > room:
        (reference if len(reference) > len(candidate) else candidate).pop()
    return reference, candidate


IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def official_wordpiece(text: str, vocabulary: dict[str, int], lower_case: bool = True) -> list[int]:
    """BERT's tokenization as documented: clean, set ideographs apart, fold, set punctuation apart, longest piece first."""
    cleaned = ""
    for character in text:
        category = unicodedata.category(character)
        if character in "\t\n\r" or category == "Zs":
            cleaned += " "
        elif category in ("Cc", "Cf") or character == "\ufffd":
            continue
        elif any(first <= ord(character) <= last for first, last in IDEOGRAPHS):
            cleaned += f" {character} "
        else:
            cleaned += character
    ids = []
    for word in cleaned.split():
        if lower_case:
            decomposed = unicodedata.normalize("NFD", word.lower())
            word = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
        apart = "".join(f" {c} " if _is_punctuation(c) else c for c in word)
        for part in apart.split():
            ids += _longest_pieces(part, vocabulary)
    return ids


def _is_punctuation(character: str) -> bool:
    signs = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return signs or unicodedata.category(character).startswith("P")


def _longest_pieces(word: str, vocabulary: dict[str, int]) -> list[int]:
    unknown = [vocabulary["[UNK]"]]
    if len(word) > 200:
        return unknown
    ids, start = [], 0
    while start < len(word):
        ends = (end for end in range(len(word), start, -1) if _piece(word, start, end) in vocabulary)
        end = next(ends, None)
        if end is None:
            return unknown
        ids.append(vocabulary[_piece(word, start, end)])
        start = end
    return ids


def _piece(word: str, start: int, end: int) -> str:
    return ("##" if start else "") + word[start:end]
