"""Checkpoints in bleurt-pytorch's format, of a few random weights, and the Hub client's cache that they are laid into."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from huggingface_hub import constants
from safetensors.torch import save_file

from tests.official_checkpoints import SIZES, make_sentencepiece, make_variables, make_vocabulary


def port_name(name):
    """Name a variable as bleurt-pytorch's own conversion does."""
    name = name.replace("bert/", "bleurt/", 1).replace("/layer_", "/layer/").replace("/", ".")
    name = name.replace("embedding_hidden_mapping_in", "embedding_projection")
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    name = name.replace("kernel", "weight").replace("_embeddings", "_embeddings.weight")
    return f"classifier.{name.removeprefix('dense.')}" if name.startswith("dense.") else name


def make_port(folder, embedding=None, **settings):
    """Write such a checkpoint; give the variables it was made from."""
    folder.mkdir(parents=True)
    if embedding:
        model = make_sentencepiece(folder)
        size = model.with_suffix(".vocab").read_text(encoding="utf-8").count("\n")
        model.rename(folder / "spm.model")
        tokenizer = {"tokenizer_class": "BleurtSPTokenizer", "do_lower_case": False}
    else:
        vocabulary = make_vocabulary()
        size = len(vocabulary)
        (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
        tokenizer = {"tokenizer_class": "BleurtTokenizer", "do_lower_case": True}
    variables = make_variables(size, embedding)
    weights = {
        port_name(name): torch.from_numpy(value.T.copy() if name.endswith("/kernel") else value)
        for name, value in variables.items()
        if name != "global_step"
    }
    weights["bleurt.embeddings.position_ids"] = torch.arange(64).unsqueeze(0)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = {"model_type": "bleurt", "architectures": ["BleurtForSequenceClassification"], **SIZES}
    config |= {"vocab_size": size, "embedding_size": embedding, "layer_norm_eps": 1e-12, "classifier_dropout": None}
    (folder / "config.json").write_text(json.dumps(config | settings))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    return variables


def edit_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def put_into_cache(folder, hub_id):
    """Lay a folder into the Hub client's cache, as if it had been fetched."""
    repository, _, revision = hub_id.partition("@")
    cached = Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}"
    commit = revision if len(revision) == 40 else "0123456789abcdef0123456789abcdef01234567"
    if commit != revision:
        reference = cached / "refs" / (revision or "main")
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(commit)
    return shutil.copytree(folder, cached / "snapshots" / commit)
