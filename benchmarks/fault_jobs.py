"""The jobs that `faults.py` kills: each is made small enough for a second or two, from the tests' models."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tests.conftest  # noqa: F401  # sets the libraries' environment: no network, caches of its own

Contents = dict[str, bytes]


@dataclass
class Job:
    """Something that takes long.

    Attributes:
        name: for the table.
        run: does it in a folder, or continues it there.
        contents: returns the finished files in a folder, those that must not depend on kills.
        note: what it does.
    """

    name: str
    run: Callable[[Path], Any]
    contents: Callable[[Path], Contents]
    note: str


def scoring(given: Path) -> Job:
    """`score --output`, in windows of 20 records."""
    from bleurt_repro.metric.bulk import scoring as bulk
    from tests.conftest import TINY_WORDS, make_tiny_scorer

    make_tiny_scorer(given / "scorer")
    draw = random.Random(1)
    lines = [
        {"reference": " ".join(draw.choices(TINY_WORDS, k=20)), "candidate": " ".join(draw.choices(TINY_WORDS, k=20))}
        for _ in range(400)
    ]
    (given / "pairs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    bulk.WINDOWS["cpu"] = 20
    options = {"checkpoint": str(given / "scorer"), "device": "cpu", "progress": False}

    def run(folder: Path) -> None:
        bulk.score_files(
            references=None,
            candidates=None,
            sources=None,
            pairs=str(given / "pairs.jsonl"),
            output=str(folder / "scores.txt"),
            as_json=False,
            aggregate="max",
            scorer_options=options,
        )

    return Job("scoring", run, lambda folder: files_in(folder, "*.txt"), "400 pairs in 20 windows")


def synthetic(given: Path) -> Job:
    """`data synthetic`: six segments, two a part."""
    from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
    from bleurt_repro.datasets_builders.synthetic.make import make_synthetic_pairs
    from tests.tiny_teachers import SENTENCES, make_teachers

    recipe = SyntheticConfig(device="cpu", beam_size=1, max_masks=2, unit_segments=2, segments_per_part=2)
    recipe = recipe.with_options(**make_teachers(given / "teachers").options())
    (given / "text.txt").write_text("\n".join(SENTENCES[:6]))

    def run(folder: Path) -> None:
        make_synthetic_pairs(str(given / "text.txt"), folder / "pairs", recipe, progress=False)

    def contents(folder: Path) -> Contents:
        return files_in(folder, "pairs/data/*.parquet", "pairs/dataset_info.json", "pairs/skipped.jsonl")

    return Job("synthetic", run, contents, "6 segments, 3 parts, every signal")


def training(given: Path) -> Job:
    """`finetune`: 18 steps, a checkpoint every 3."""
    from tests.conftest import TINY_WORDS, make_tiny_scorer
    from tests.tiny_training import finetune

    make_tiny_scorer(given / "start", spread=0.05)
    draw = random.Random(2)
    for name, count in (("train", 64), ("validation", 16)):
        rows = []
        for _ in range(count):
            words = draw.sample(TINY_WORDS, 4)
            kept = [word if draw.random() < 0.5 else "fell" for word in words]
            share = sum(a == b for a, b in zip(words, kept, strict=True)) / 4
            rows.append({"reference": " ".join(words), "candidate": " ".join(kept), "score": share})
        (given / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = {
        "--model": given / "start", "--train_file": given / "train.jsonl",
        "--validation_file": given / "validation.jsonl", "--max_steps": 18, "--eval_steps": 3, "--save_steps": 3,
        "--global_batch_size": 8, "--learning_rate": 1e-3, "--disable_tqdm": "true", "--resume": "true",
    }  # fmt: skip

    def run(folder: Path) -> None:
        finetune([str(word) for pair in {**words, "--output_dir": folder / "out"}.items() for word in pair])

    def contents(folder: Path) -> Contents:
        names = ("model.safetensors", "config.json", "tokenizer*.json", "checksums.json")
        return files_in(folder, *(f"out/{name}" for name in names))

    return Job("training", run, contents, "18 steps, a checkpoint every 3")


def publishing(given: Path) -> Job:
    """`publish model`, to a Hub that keeps running while the publishing process is killed."""
    import huggingface_hub.constants as constants

    from bleurt_repro.hub_cards.contents import Target
    from bleurt_repro.hub_cards.publish import publish_folder
    from tests.conftest import make_tiny_scorer
    from tests.loopback_hub import TOKEN, Store

    scorer = make_tiny_scorer(given / "scorer")
    head = "---\nlicense: mit\nlibrary_name: transformers\npipeline_tag: text-classification\n---\n\n"
    (scorer / "README.md").write_text(f"{head}# scorer\n")
    url = serve(given / "hub")
    constants.ENDPOINT, constants.HF_HUB_OFFLINE, constants.HF_HUB_DISABLE_XET = url, False, True
    os.environ.update(HF_TOKEN=TOKEN, NO_PROXY="127.0.0.1")

    def name(folder: Path) -> str:
        return f"org/{folder.name}"

    def run(folder: Path) -> None:
        publish_folder(Target("model", name(folder)), scorer)

    def contents(folder: Path) -> Contents:
        store = Store(given / "hub")
        if not store.exists("model", name(folder)):
            return {}
        files = store.files("model", name(folder), "main")[1]
        there = {path: store.content(entry.etag) for path, entry in files.items()}
        # Partially would be some files of the commit without the others, or the same commit twice.
        messages = store.messages("model", name(folder))
        if there:
            there["commits"] = str(messages).encode()
            there["files"] = str(sorted(files)).encode()
        return {path: content.replace(name(folder).encode(), b"org/scorer") for path, content in there.items()}

    return Job("publishing", run, contents, "6 files in one commit, over HTTP on this machine")


def serve(folder: Path) -> str:
    """Start the tests' Hub in a process of its own, which ends with this one; return its address."""
    from tests.loopback_hub import LoopbackHub

    reading, writing = os.pipe()
    parent = os.getpid()
    if os.fork() == 0:
        with LoopbackHub(folder) as hub:
            os.write(writing, hub.url.encode())
            os.close(writing)
            while os.getppid() == parent:
                time.sleep(0.5)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read().decode()


def conversion(given: Path) -> Job:
    """`convert` of a checkpoint in bleurt-pytorch's format."""
    from bleurt_repro.metric.convert.convert import convert
    from tests.metric.convert.test_bleurt_pytorch import make_port

    make_port(given / "port")

    def run(folder: Path) -> None:
        if not (folder / "converted").exists():  # it refuses to write over a finished one
            convert(str(given / "port"), str(folder / "converted"))

    return Job("conversion", run, lambda folder: files_in(folder, "converted/*"), "bleurt-pytorch's format, 2 layers")


JOBS: dict[str, Callable[[Path], Job]] = {
    "scoring": scoring,
    "synthetic": synthetic,
    "training": training,
    "publishing": publishing,
    "conversion": conversion,
}


def files_in(folder: Path, *patterns: str) -> Contents:
    """Read files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in patterns
        for path in sorted(folder.glob(pattern))
        if path.is_file()
    }
