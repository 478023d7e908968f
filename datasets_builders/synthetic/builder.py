"""Open sets of synthetic pairs that `bleurt-repro data synthetic` has made (BLEURT, section 4)."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets

from bleurt_repro.datasets_builders import CITATION
from bleurt_repro.datasets_builders.synthetic.config import read_config
from bleurt_repro.datasets_builders.synthetic.make import make_synthetic_pairs
from bleurt_repro.datasets_builders.synthetic.parts import features
from bleurt_repro.datasets_builders.synthetic.summary import INFO_FILE, PAPER, Moments, report_text
from bleurt_repro.metric.loading.checksums import file_hash

VERSION = datasets.Version("1.1.0")

__all__ = ["SyntheticPairs", "check_parts", "is_finished", "join_sets", "read_info", "report_text"]


def is_finished(folder: str | Path) -> bool:
    """Return whether a folder has a finished set."""
    path = Path(folder) / INFO_FILE
    return path.is_file() and "parts" in json.loads(path.read_text(encoding="utf-8"))


def read_info(folder: str | Path) -> dict[str, Any]:
    """Read the record of a finished set.

    Args:
        folder: folder of the set.

    Returns:
        The recipe; "signals": for each, in order, name, size, loss, group, values, and mean and std (lists of `size`
        numbers) by which training standardises it; "counts" by group of pairs; "parts" with their hashes.

    Raises:
        FileNotFoundError: if the folder has no finished set.
    """
    path = Path(folder) / INFO_FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no {INFO_FILE}, so it is not a finished set of synthetic pairs: make or finish it with "
            "`bleurt-repro data synthetic --output`"
        )
    return json.loads(path.read_text(encoding="utf-8"))


def check_parts(folder: str | Path) -> dict[str, Any]:
    """Check that every part is in the folder, unchanged.

    Returns:
        The record, as in `read_info`.

    Raises:
        ValueError: if a part is missing or changed; the message names the first.
    """
    info = read_info(folder)
    for part_file in info["parts"]:
        path = Path(folder) / part_file["file"]
        if not path.is_file() or file_hash(path).hex() != part_file["sha256"]:
            state = "changed" if path.is_file() else "missing"
            raise ValueError(
                f"{path} is {state}: run `bleurt-repro data synthetic` with the same options to repair it"
            )
    return info


def join_sets(folders: Sequence[str | Path]) -> dict[str, Any]:
    """Join the records of finished sets, such as sets of different texts that were made on different machines.

    Args:
        folders: folders of the sets, each as in `check_parts`.

    Returns: "pairs", the number of all pairs; "signals", as in `read_info`, with the mean and standard deviation of
        all pairs; "parts" with the full path of each file.

    Raises:
        FileNotFoundError: if a folder has no finished set.
        ValueError: if a folder is given twice, a part is missing or changed, or the sets have different signals.
    """
    paths = [Path(folder).resolve() for folder in folders]
    if len(set(paths)) < len(paths):
        raise ValueError(f"a set of pairs is given twice: {', '.join(map(str, folders))}")
    records = [check_parts(folder) for folder in folders]
    first = records[0]
    for folder, record in zip(folders, records, strict=True):
        if _signal_sizes(record) != _signal_sizes(first):
            raise ValueError(
                f"{folder} has the signals {', '.join(_signal_sizes(record))}, but {folders[0]} has "
                f"{', '.join(_signal_sizes(first))} (name and size): only sets of the same signals can be joined"
            )
        if roles := [role for role, model in record["models"].items() if model != first["models"].get(role)]:
            warnings.warn(
                f"{folder} and {folders[0]} were made by different models ({', '.join(roles)}): training treats their "
                "signals as the same",
                stacklevel=2,
            )
    signals = []
    for same_signal in zip(*(record["signals"] for record in records), strict=True):
        samples = [(record["pairs"], s["mean"], s["std"]) for record, s in zip(records, same_signal, strict=True)]
        moments = Moments.joined(samples)
        signals.append({**same_signal[0], "mean": moments.mean.tolist(), "std": moments.std.tolist()})
    part_files = [
        {**part_file, "file": str(path / part_file["file"])}
        for path, record in zip(paths, records, strict=True)
        for part_file in record["parts"]
    ]
    return {"pairs": sum(record["pairs"] for record in records), "signals": signals, "parts": part_files}


def _signal_sizes(record: dict[str, Any]) -> list[str]:
    return [f"{signal['name']} ({signal['size']})" for signal in record["signals"]]


@dataclass
class SyntheticPairsConfig(datasets.BuilderConfig):
    """Options of `SyntheticPairs`."""

    version: datasets.Version = VERSION
    # Hash of the finished data: without it, the cache of `datasets` would return old rows.
    fingerprint: str = ""


class SyntheticPairs(datasets.GeneratorBasedBuilder):
    """The pairs of a folder as a `datasets` builder, checked against their record.

    `datasets.load_dataset(folder)` opens the same rows without the check.

    Args:
        data_dir: folder of a finished set, or of a set to make.
        source: text to make the set from, as in `make_synthetic_pairs`, if it is not finished.
        recipe: recipe to make the set by: a YAML file, or the name of a recipe in the package.
        options: arguments of `datasets.DatasetBuilder`, such as cache_dir.

    Example:
        >>> builder = SyntheticPairs(data_dir="pairs")  # doctest: +SKIP
        >>> builder.download_and_prepare()  # doctest: +SKIP
        >>> builder.as_dataset(split="train")  # doctest: +SKIP
    """

    # Name of the cache folder and of Parquet files; `datasets` would take the name of the Python file.
    DATASET_NAME = "synthetic_pairs"
    VERSION = VERSION
    BUILDER_CONFIG_CLASS = SyntheticPairsConfig

    def __init__(
        self, *, data_dir: str | Path, source: str | None = None, recipe: str | Path | None = None, **options: Any
    ) -> None:
        if source is not None or recipe is not None:
            make_synthetic_pairs(source, data_dir, read_config(recipe or "paper"))
        self.record = check_parts(data_dir)
        options["fingerprint"] = hashlib.sha256(json.dumps(self.record["parts"]).encode()).hexdigest()[:16]
        options.setdefault("dataset_name", self.DATASET_NAME)
        super().__init__(data_dir=str(data_dir), **options)
        self.name = self.info.builder_name = self.DATASET_NAME

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Synthetic pairs of reference and candidate with the pre-training signals of BLEURT.",
            features=features(self.record["signals"]),
            homepage=PAPER,
            license=self.record["config"]["license"],
            citation=CITATION,
        )

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        files = [str(Path(self.config.data_dir) / part_file["file"]) for part_file in self.record["parts"]]
        return [datasets.SplitGenerator(name=datasets.Split.TRAIN, gen_kwargs={"files": files})]

    def _generate_examples(self, files: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        import pyarrow.parquet as pq

        for number, file in enumerate(files):
            for row, record in enumerate(pq.read_table(file).to_pylist()):
                yield f"{number}-{row}", record
