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


REFERENCE = "the cat sat on the mat"
# chrF++ ranks these from worst to best
CANDIDATES = ["stock prices fell", "a dog sat", "the cat sat", "the cat sat on the mat"]


def write_ratings(path, scores, pairs=("de-en",)):
    """Write ratings of the same four candidates for each language pair; return the path."""
    records = [
        {"lp": lp, "reference": REFERENCE, "candidate": candidate, "score": score}
        for lp in pairs
        for candidate, score in zip(CANDIDATES, scores, strict=True)
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    return str(path)


def rating(year=2016, segment=1, system="Rosy.1", lp="de-en", **more):
    """Return a record as `bleurt-repro data wmt` writes it."""
    base = {
        "year": year,
        "lp": lp,
        "segment_id": segment,
        "system": system,
        "source": f"Satz {segment} von {year}",
        "reference": f"Sentence {segment} of {year}",
        "candidate": f"Phrase {segment} by {system}",
        "score": 0.25 * segment,
        "raw_score": None,
        "n_annotations": None,
    }
    return {**base, **more}
