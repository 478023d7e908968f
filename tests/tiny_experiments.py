"""Small ratings and settings on which the experiments run in seconds."""

from __future__ import annotations

import json
import random
from pathlib import Path

WORDS = "the cat sat on mat it rains dog".split()
FINETUNE = (
    "max_steps: 4\neval_steps: 2\nsave_steps: 2\nlogging_steps: 2\nlearning_rate: 1.0e-3\ndisable_tqdm: true\n"
    "max_length: 48\nper_device_train_batch_size: 16\n"
)


def write_config(folder: Path) -> str:
    """A configuration of fine-tuning that takes four steps."""
    (folder / "finetune.yaml").write_text(FINETUNE)
    return str(folder / "finetune.yaml")


def make_ratings(count: int, seed: int, year: int = 2017) -> list[dict]:
    """Ratings of two language pairs; two systems a segment, whose raw scores lie 25 points or more apart."""
    rng = random.Random(seed)
    records = []
    for i in range(count):
        reference = [*rng.sample(WORDS, 4), str(seed), str(i // 2)]
        kept = 4 if i % 2 else rng.randrange(3)
        candidate = reference[:kept] + ["fell"] * (4 - kept)
        records.append(
            {
                "year": year,
                "lp": ("cs-en", "de-en")[(i // 2) % 2],
                "segment_id": i // 2,
                "system": "ab"[i % 2],
                "source": f"{seed} {i // 2}",
                "reference": " ".join(reference),
                "candidate": " ".join(candidate),
                "score": kept + rng.random() / 10,
                "raw_score": 25.0 * kept,
            }
        )
    return records


def write_data(folder: Path, year: int = 2017) -> str:
    """A folder as `bleurt-repro data wmt` writes it."""
    folder.mkdir()
    for seed, (name, count) in enumerate((("train", 60), ("validation", 20), ("test", 40))):
        lines = map(json.dumps, make_ratings(count, seed, year))
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return str(folder)
