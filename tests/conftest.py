"""Shared fixtures: a tiny scorer made on the spot, the shared data where it is, and no network anywhere."""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import hypothesis
import pytest

# Tiny models gain nothing from several threads, and lose much where other work keeps the cores busy.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Before any Hugging Face library is imported: nothing here may reach out, or touch the user's caches.
CACHES = tempfile.mkdtemp(prefix="bleurt-repro-tests-")
atexit.register(shutil.rmtree, CACHES, ignore_errors=True)
os.environ.update(
    HF_HOME=CACHES,
    HF_HUB_OFFLINE="1",
    HF_EVALUATE_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    TQDM_DISABLE="1",
)

# TensorFlow before triton, a part of torch for CUDA, ends in a segmentation fault; the other order does not.
with contextlib.suppress(ImportError):
    import triton  # noqa: F401

# after the environment is set: the fixtures of the Hub that answers on this machine
from tests.loopback_hub.fixture import hub, waits, xet  # noqa: E402, F401

# A busy machine is slow, which is no fault of the code.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

ROOT = Path(__file__).resolve().parents[1]
# the folder of the `evaluate` module
SPACE = ROOT / "metric" / "bleurt_repro"
SHARED_DATA = ROOT.parent / "shared" / "data"
SHARED_FIXTURES = ROOT.parent / "shared" / "fixtures"


def pytest_collection_finish() -> None:
    """Exempt what was imported from garbage collections, which the Trainer runs in full after each training."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real ratings and text beside the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"needs the real data in {SHARED_DATA}, which is not part of a clone")
    return SHARED_DATA


@pytest.fixture(scope="session")
def shared_fixtures() -> Path:
    """The folder of scores of the official implementation beside the repository."""
    if not SHARED_FIXTURES.is_dir():
        pytest.skip(f"needs the official scores in {SHARED_FIXTURES}, which are not part of a clone")
    return SHARED_FIXTURES


TINY_WORDS = "the a cat sat on mat it rains dog not good bye hi there stock prices fell".split()


def make_tiny_tokenizer(folder: Path):
    """A lower-casing WordPiece tokenizer of letters, digits, punctuation and a few words."""
    from transformers import BertTokenizer

    characters = [chr(code) for code in range(33, 127)]
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *characters,
        *(f"##{c}" for c in characters),
        *TINY_WORDS,
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(vocabulary)) + "\n")
    return BertTokenizer(str(folder / "vocab.txt"), do_lower_case=True)


def make_tiny_scorer(
    folder: Path,
    *,
    max_length: int = 64,
    inputs=("reference", "candidate"),
    optional=(),
    labels: int = 1,
    spread: float = 0.3,
    dropout: float = 0.1,
    width: int = 32,
) -> Path:
    """A scorer of two narrow layers with random weights, by default so wide that its scores differ."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from bleurt_repro.metric.layout import Layout
    from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer

    torch.manual_seed(0)
    tokenizer = make_tiny_tokenizer(folder)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        num_labels=labels,
        initializer_range=spread,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    model = BertForSequenceClassification(config)
    prepare_scorer(model, tokenizer, Layout(inputs=inputs, max_length=max_length, optional=optional))
    save_scorer(model, tokenizer, folder)
    return folder


@pytest.fixture(scope="session")
def tiny_scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny scorer; read it, do not change it."""
    return make_tiny_scorer(tmp_path_factory.mktemp("checkpoints") / "tiny")


@pytest.fixture(scope="session")
def tiny_source_scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny scorer that reads source, candidate and reference."""
    return make_tiny_scorer(
        tmp_path_factory.mktemp("checkpoints") / "tiny-source", inputs=("source", "candidate", "reference")
    )


@pytest.fixture(scope="session")
def tiny_teachers(tmp_path_factory: pytest.TempPathFactory):
    """Tiny models that make and judge pairs; read them, do not change them."""
    from tests.tiny_teachers import make_teachers

    return make_teachers(tmp_path_factory.mktemp("teachers"))


@pytest.fixture(scope="session")
def official_english(tmp_path_factory: pytest.TempPathFactory):
    """An official English checkpoint of a few random weights, and its variables; read it, do not change it."""
    pytest.importorskip("tensorflow", reason="writing an official checkpoint takes TensorFlow")
    from tests.official_checkpoints import make_official_bert

    folder = tmp_path_factory.mktemp("official") / "english"
    return folder, make_official_bert(folder)


@pytest.fixture(scope="session")
def official_multilingual(tmp_path_factory: pytest.TempPathFactory):
    """An official checkpoint of the BLEURT-20 kind likewise."""
    pytest.importorskip("tensorflow", reason="writing an official checkpoint takes TensorFlow")
    from tests.official_checkpoints import make_official_rembert

    folder = tmp_path_factory.mktemp("official") / "multilingual"
    return folder, make_official_rembert(folder)


@pytest.fixture
def ratings(tmp_path):
    """Ratings that follow from the text: the share of the reference's words that the candidate has."""
    rng = random.Random(0)
    words = "the cat sat on mat it rains dog".split()
    for name, count in (("train", 256), ("validation", 64)):
        records = []
        for _ in range(count):
            reference = rng.sample(words, 4)
            candidate = [word if rng.random() < 0.5 else "fell" for word in reference]
            score = sum(a == b for a, b in zip(reference, candidate, strict=True)) / 4
            records.append({"reference": " ".join(reference), "candidate": " ".join(candidate), "score": score})
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    return {
        "--train_file": str(tmp_path / "train.jsonl"),
        "--validation_file": str(tmp_path / "validation.jsonl"),
        "--output_dir": str(tmp_path / "out"),
    }


@pytest.fixture(scope="session")
def pairs(tmp_path_factory, tiny_teachers):
    """A folder of synthetic pairs made by tiny models; read it, do not change it."""
    from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
    from bleurt_repro.datasets_builders.synthetic.make import make_synthetic_pairs
    from tests.tiny_teachers import SENTENCES

    place = tmp_path_factory.mktemp("set")
    (place / "in.txt").write_text("\n".join(SENTENCES[:8]))
    config = SyntheticConfig(device="cpu", beam_size=1, max_masks=3, unit_segments=4, segments_per_part=8)
    make_synthetic_pairs(str(place / "in.txt"), place / "pairs", config.with_options(**tiny_teachers.options()))
    return place / "pairs"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, whose size the test sets."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("a small file system can be mounted by root only")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
