"""Open a set of synthetic pairs that `bleurt-repro data synthetic` has made (BLEURT, section 4)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets

from bleurt_repro.datasets_builders.make_synthetic_pairs import make_synthetic_pairs
from bleurt_repro.datasets_builders.parts import features
from bleurt_repro.datasets_builders.synthetic_card import report_text
from bleurt_repro.datasets_builders.synthetic_config import read_config
from bleurt_repro.datasets_builders.synthetic_summary import INFO_FILE
from bleurt_repro.metric.signature import file_hash

__all__ = ["SyntheticPairs", "check_parts", "is_finished", "read_info", "report_text"]


def is_finished(folder: str | Path) -> bool:
    """Tell whether a folder holds a finished set."""
    path = Path(folder) / INFO_FILE
    return path.is_file() and "parts" in json.loads(path.read_text(encoding="utf-8"))


def read_info(folder: str | Path) -> dict[str, Any]:
    """Read the record of a finished set.

    Args:
        folder: its folder.

    Returns:
        the recipe, and "signals": for each, in order, name, size, loss, group, values, and mean and std (lists of
        `size` numbers) by which training standardises it; "counts" by kind of pair; "parts" with their hashes.

    Raises:
        FileNotFoundError: if the folder holds no finished set.
    """
    path = Path(folder) / INFO_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no {INFO_FILE}: it is no finished set of synthetic pairs; make one, or finish it, with "
            "`bleurt-repro data synthetic --output`"
        )
    return json.loads(path.read_text(encoding="utf-8"))


def check_parts(folder: str | Path) -> dict[str, Any]:
    """Make sure that every part lies in the folder as it was made.

    Returns:
        the record, as `read_info`.

    Raises:
        ValueError: naming the first part that is missing or changed.
    """
    info = read_info(folder)
    for part in info["parts"]:
        path = Path(folder) / part["file"]
        if not path.is_file() or file_hash(path).hex() != part["sha256"]:
            state = "changed" if path.is_file() else "missing"
            raise ValueError(f"{path} is {state}: run `bleurt-repro data synthetic` with the same options to mend it")
    return info


@dataclass
class SyntheticPairsConfig(datasets.BuilderConfig):
    """Where the pairs are; see `SyntheticPairs`."""

    # Of the finished data: without it, the cache of `datasets` would give back old rows.
    fingerprint: str = ""


class SyntheticPairs(datasets.GeneratorBasedBuilder):
    """The pairs of a folder as a `datasets` builder, checked against their record.

    `datasets.load_dataset(folder)` opens the same rows without the check.

    Args:
        data_dir: the folder of a finished set, or to be made.
        source: to make it first, if it is not finished: the text, as `make_synthetic_pairs` takes it.
        recipe: to make it first: a YAML file or the name of a ready recipe.
        options: arguments of `datasets.DatasetBuilder`, such as cache_dir.

    Example:
        >>> builder = SyntheticPairs(data_dir="pairs")  # doctest: +SKIP
        >>> builder.download_and_prepare()  # doctest: +SKIP
        >>> builder.as_dataset(split="train")  # doctest: +SKIP
    """

    VERSION = datasets.Version("1.0.0")
    BUILDER_CONFIG_CLASS = SyntheticPairsConfig

    def __init__(
        self, *, data_dir: str | Path, source: str | None = None, recipe: str | Path | None = None, **options: Any
    ) -> None:
        if source is not None or recipe is not None:
            make_synthetic_pairs(source, data_dir, read_config(recipe or "paper"))
        self.record = check_parts(data_dir)
        options["fingerprint"] = hashlib.sha256(json.dumps(self.record["parts"]).encode()).hexdigest()[:16]
        super().__init__(data_dir=str(data_dir), **options)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            features=features(self.record["signals"]), license=self.record["config"]["license"]
        )

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        files = [str(Path(self.config.data_dir) / part["file"]) for part in self.record["parts"]]
        return [datasets.SplitGenerator(name=datasets.Split.TRAIN, gen_kwargs={"files": files})]

    def _generate_examples(self, files: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        import pyarrow.parquet as pq

        for number, file in enumerate(files):
            for row, record in enumerate(pq.read_table(file).to_pylist()):
                yield f"{number}-{row}", record
