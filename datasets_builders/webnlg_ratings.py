"""WebNLG 2017 ratings of fluency, grammar and semantics, split by system and by input (BLEURT, section 5.3).

The builder gives one row an input and system: 223 x 9 = 2,007; `webnlg_splits` says how that becomes the records of
the paper, and where its count differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets

from bleurt_repro.datasets_builders.fingerprints import fingerprint
from bleurt_repro.datasets_builders.webnlg_sources import ASPECTS, Row, read_webnlg, webnlg_files
from bleurt_repro.datasets_builders.webnlg_splits import (
    PAPER_INPUTS,
    PAPER_SYSTEMS,
    VALIDATION_RATIO,
    split_by_input,
    split_by_system,
)

WEBNLG_FEATURES = datasets.Features(
    {
        "segment_id": datasets.Value("int64"),  # the input's line in the test set of the challenge, from 1
        "system": datasets.Value("string"),
        "source": datasets.Value("string"),  # the RDF triples: subject | predicate | object, joined by <br>
        "references": datasets.List(
            datasets.Value("string")
        ),  # 1 to 3, lower-cased and tokenised as the candidates are
        "references_text": datasets.List(datasets.Value("string")),  # as written, where the source has them
        "candidate": datasets.Value("string"),
        **{aspect: datasets.Value("float64") for aspect in ASPECTS},  # mean of the judges, 1 to 3
        "missing_output": datasets.Value("bool"),
        "category": datasets.Value("string"),
        "seen": datasets.Value("bool"),
        "triples": datasets.Value("int32"),
    }
)


@dataclass
class WebNlgConfig(datasets.BuilderConfig):
    """How the ratings are split; see `split_by_system` and `split_by_input`."""

    training_systems: int = PAPER_SYSTEMS[-1]
    training_inputs: int = PAPER_INPUTS[-1]
    validation_ratio: float = VALIDATION_RATIO
    seed: int = 0
    drop_missing_outputs: bool = False
    fingerprint: str = ""


class WebNlgRatings(datasets.GeneratorBasedBuilder):
    """Ratings of nine data-to-text systems over 223 inputs.

    Args:
        config_name: "all" (one split, test), "by_system" or "by_input" (train, validation, test).
        data_dir: the official package, or records; see `webnlg_sources.read_webnlg`.
        options: fields of `WebNlgConfig`, and arguments of `datasets.DatasetBuilder` such as cache_dir.

    Example:
        >>> WebNlgRatings("by_input", data_dir="webnlg", training_inputs=38).splits()["train"]  # doctest: +SKIP
    """

    VERSION = datasets.Version("1.0.0")
    BUILDER_CONFIG_CLASS = WebNlgConfig
    BUILDER_CONFIGS = [WebNlgConfig(name=name) for name in ("all", "by_system", "by_input")]
    DEFAULT_CONFIG_NAME = "all"

    def __init__(self, config_name: str | None = None, *, data_dir: str | Path | None = None, **options: Any) -> None:
        if data_dir is None:
            raise ValueError("needs data_dir, the folder of WebNLG ratings; found none")
        options["fingerprint"] = fingerprint(webnlg_files(data_dir))
        super().__init__(config_name=config_name, data_dir=str(data_dir), **options)

    def _info(self) -> datasets.DatasetInfo:
        homepage = "https://gitlab.com/shimorina/webnlg-human-evaluation"
        return datasets.DatasetInfo(features=WEBNLG_FEATURES, homepage=homepage)

    def splits(self) -> dict[str, list[Row]]:
        """Make the rows of each split, without writing anything."""
        config = self.config
        rows = [
            row for row in read_webnlg(config.data_dir) if not (config.drop_missing_outputs and row["missing_output"])
        ]
        if config.name == "by_system":
            return split_by_system(rows, config.training_systems, config.validation_ratio, config.seed)
        if config.name == "by_input":
            return split_by_input(rows, config.training_inputs, config.validation_ratio, config.seed)
        return {"test": rows}

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        self._rows = self.splits()
        return [datasets.SplitGenerator(name=name, gen_kwargs={"split": name}) for name in self._rows]

    def _generate_examples(self, split: str) -> Iterator[tuple[int, Row]]:
        yield from enumerate(self._rows[split])
