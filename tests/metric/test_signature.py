"""The signature: it changes with everything that changes a score, and with nothing else."""

from __future__ import annotations

import hashlib
import shutil

import pytest

from bleurt_repro import __version__
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.checksums import content_hash, file_hash
from bleurt_repro.metric.signature import signature


def test_signature():
    layout = Layout(inputs=("source", "candidate"), max_length=128)
    assert signature("org/name@v1", "0123456789ab", layout, "bfloat16", "mean") == (
        "checkpoint:org/name@v1|hash:0123456789ab|inputs:source+candidate|max_length:128|dtype:bfloat16|aggregate:mean"
        f"|version:{__version__}"
    )


def test_file_hash(tmp_path):
    (tmp_path / "big").write_bytes(b"abc" * 1_000_000)
    assert file_hash(tmp_path / "big") == hashlib.sha256(b"abc" * 1_000_000).digest()


@pytest.fixture
def copy(tiny_scorer, tmp_path):
    return shutil.copytree(tiny_scorer, tmp_path / "copy")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "vocab.txt"])
def test_the_hash_follows_what_scores_depend_on(copy, tiny_scorer, name):
    assert content_hash(copy) == content_hash(tiny_scorer)
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert content_hash(copy) != content_hash(tiny_scorer)


def test_a_card_or_a_subfolder_changes_nothing(copy, tiny_scorer):
    (copy / "README.md").write_text("# A card")
    (copy / "results.json").write_text("{}")
    (copy / "checkpoint-100").mkdir()
    assert content_hash(copy) == content_hash(tiny_scorer)
