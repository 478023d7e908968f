"""The card and the printed report."""

from __future__ import annotations

import yaml

from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.summary import card, report_text

INFO = {
    "pairs": 2,
    "segments": 1,
    "config": SyntheticConfig(license="cc-by-sa-4.0", seed=5).to_dict(),
    "input": {"name": "wiki.txt"},
    "models": {"masked language model": {"name": "lm", "sha256": "abc"}},
    "signals": [
        {
            "name": "rouge",
            "size": 2,
            "loss": "regression",
            "values": ["precision", "recall"],
            "mean": [0.5, 0.25],
            "std": [0.1, 0.2],
        }
    ],
    "counts": {"back_translation_fr": 2},
    "skipped": {"no words": 3},
    "parts": [{"file": "data/part-00000.parquet", "sha256": "ab" * 32, "pairs": 2}],
}
REPORT = {
    "pairs": 2,
    "segments": 1,
    "input_rows": 4,
    "skipped": {"no words": 3},
    "counts": {"back_translation_fr": 2},
    "stages": {"rouge": {"seconds": 0.5, "pairs": 2, "pairs_per_second": 4.0}},
    "truncated": {"entailment": 0, "translator mt": 2},
    "signal_means": {"back_translation_fr": {"rouge": [0.5, 0.25]}},
    "sampled_rows": [
        {"reference": "a", "candidate": "b", "perturbation": "back_translation_fr", "word_dropping": True}
    ],
}


def test_the_card_opens_the_data_and_says_what_it_is():
    text = card(INFO, REPORT)
    front = yaml.safe_load(text.split("---")[1])
    assert (
        front["configs"][0]["config_name"]
        != yaml.safe_load(card({**INFO, "parts": [{"sha256": "cd" * 32}]}, REPORT).split("---")[1])["configs"][0][
            "config_name"
        ]
    )
    assert [config["data_files"] for config in front["configs"]] == [[{"split": "train", "path": "data/*.parquet"}]]
    assert (front["license"], front["language"], front["size_categories"]) == ("cc-by-sa-4.0", "en", "n<1K")
    for phrase in (
        "2 pairs of a reference",
        "1 segments of `wiki.txt`",
        "| rouge    | regression | precision | 0.500  | 0.100                |",
        "| back_translation_fr | 2       |",
        "Seed 5; beam 8, up to 15 masks, 1 filled",
        "| masked language model | lm     |            | abc            |",
        "3 rows of the input or perturbations were left out",
    ):
        assert phrase in text


def test_the_report_shows_everything_in_plain_text():
    text = report_text(INFO, REPORT)
    for phrase in (
        "2 pairs from 1 segments; 4 rows read; skipped: 3 no words",
        "truncated to a model's length: 2 by translator mt",
        "| rouge   | 2       | 0.500     | 4.000              |",
        "| rouge precision | 0.500                 |",
        "[back_translation_fr+word_dropping]\n  a\n  b",
    ):
        assert phrase in text
