"""Ratings by professional translators of MLQE-PE as a `datasets` builder, with the splits of the release.

Translators rated the output of one system per language pair from 0 to 100, with the source in sight, and others
corrected it (Fomicheva et al., 2022, https://aclanthology.org/2022.lrec-1.530). The reference is this post-edit of the
very candidate, so it is not independent: where nothing was corrected, both say the same. The release has the post-edits
tokenised (`word .`), and they stay so, since no rule restores all of them.

The data are those of https://github.com/sheffieldnlp/mlqe-pe.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets

from bleurt_repro.datasets_builders.fingerprints import fingerprint
from bleurt_repro.datasets_builders.ratings.builder import RatingsBuilder, Row
from bleurt_repro.datasets_builders.ratings.downloads import MLQE_PE, Source
from bleurt_repro.datasets_builders.ratings.rating_files import Rating, check_rating, ratings_features
from bleurt_repro.datasets_builders.ratings.wmt_archives import index_files, read_lines
from bleurt_repro.metric.files.records import text_lines

YEAR = 2020
SYSTEM = "mlqe-nmt"  # the release does not name the systems
LANGUAGE_PAIRS = ("et-en", "ne-en", "ro-en", "ru-en", "si-en", "en-de", "en-zh")
# Folder of each split in the release, and the beginning of its file names.
SPLITS = {"train": ("train", "train"), "validation": ("dev", "dev"), "test": ("test", "test20")}
COLUMNS = ("original", "translation", "scores", "mean", "z_mean")
CITATION = """\
@inproceedings{fomicheva-etal-2022-mlqe, title = "{MLQE-PE}: A Multilingual Quality Estimation and Post-Editing
  Dataset", author = "Fomicheva, Marina and Sun, Shuo and Fonseca, Erick and Zerva, Chrysoula and Blain, Fr{\\'e}d{\\'e}ric
  and Chaudhary, Vishrav and Guzm{\\'a}n, Francisco and Lopatina, Nina and Specia, Lucia and Martins, Andr{\\'e} F. T.",
  booktitle = "Proceedings of LREC 2022", year = "2022", url = "https://aclanthology.org/2022.lrec-1.530"
}
"""


def mlqe_sources(lp: str) -> list[Source]:
    """Return the archives of a language pair: ratings and post-edits of each split."""
    paths = [
        f"{task}/{folder}/{lp}-{folder}.tar.gz"
        for folder, _ in SPLITS.values()
        for task in ("direct-assessments", "post-editing")
    ]
    return [Source(f"{MLQE_PE}/data/{path}", f"mlqe-pe/{path}") for path in paths]


@dataclass
class MlqePeConfig(datasets.BuilderConfig):
    """Options of `MlqePe`."""

    version: datasets.Version = datasets.Version("1.1.0")
    # Hash of data and code: without it, the cache of `datasets` would return old rows.
    fingerprint: str = ""


class MlqePe(RatingsBuilder):
    """Ratings by professional translators, 7,000 for training, 1,000 for validation and 1,000 for testing per pair.

    Args:
        config_name: one of `LANGUAGE_PAIRS`.
        data_dir: folder with the unpacked archives of `mlqe_sources`; default: they are downloaded.
        options: arguments of `datasets.DatasetBuilder`, such as cache_dir.

    Example:
        >>> MlqePe("ro-en").splits()["train"]  # doctest: +SKIP
    """

    DATASET_NAME = "mlqe_pe"
    VERSION = datasets.Version("1.1.0")
    BUILDER_CONFIG_CLASS = MlqePeConfig
    BUILDER_CONFIGS = [MlqePeConfig(name=lp) for lp in LANGUAGE_PAIRS]

    def __init__(self, config_name: str | None = None, *, data_dir: str | Path | None = None, **options: Any) -> None:
        names = ("*.df.short.tsv*", "*.pe*")
        files = [] if data_dir is None else sorted(path for name in names for path in Path(data_dir).rglob(name))
        super().__init__(config_name, data_dir=data_dir, fingerprint=fingerprint(files), **options)

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="Ratings of machine translation by professional translators, with post-edits (MLQE-PE).",
            features=ratings_features(),
            homepage="https://github.com/sheffieldnlp/mlqe-pe",
            license="cc0-1.0",
            citation=CITATION,
        )

    def splits(self) -> dict[str, list[Row]]:
        """Return the rows of each split, without writing anything but downloads."""
        lp, data_dir = self.config.name, self.config.data_dir
        folders = self.download(mlqe_sources(lp)) if data_dir is None else [Path(data_dir)]
        return {split: list(read_mlqe(folders, lp, prefix)) for split, (_, prefix) in SPLITS.items()}


def read_mlqe(folders: list[Path], lp: str, prefix: str) -> Iterator[Rating]:
    """Yield the ratings of a language pair and a split.

    Args:
        folders: folders with the unpacked archives.
        lp: language pair.
        prefix: beginning of the file names of the split: "train", "dev" or "test20".

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a line is malformed, or there is not one post-edit for each; the message names file and line.
    """
    file = _find(folders, f"{prefix}.{lp.replace('-', '')}.df.short.tsv", lp)
    post_edits = read_lines(_find(folders, f"{prefix}.pe", lp))
    header, *lines = (line.split("\t") for line in text_lines(file))
    if missing := [name for name in COLUMNS if name not in header]:
        raise ValueError(f"{file}: no column {', '.join(missing)}; found {', '.join(header)}")
    if len(lines) != len(post_edits):
        raise ValueError(f"{file} has {len(lines)} ratings, but there are {len(post_edits)} post-edits")
    for number, (fields, post_edit) in enumerate(zip(lines, post_edits, strict=True), start=1):
        record = dict(zip(header, fields, strict=False))
        try:
            if len(fields) != len(header):
                raise ValueError(f"expected {len(header)} columns, found {len(fields)}")
            yield check_rating(
                {
                    "year": YEAR,
                    "lp": lp,
                    "segment_id": number,
                    "system": SYSTEM,
                    "source": record["original"],
                    "reference": post_edit,
                    "candidate": record["translation"],
                    "score": record["z_mean"],
                    "raw_score": record["mean"],
                    "n_annotations": len(json.loads(record["scores"])),
                }
            )
        except ValueError as error:
            raise ValueError(f"{file}, line {number + 1}: {error}") from error


def _find(folders: list[Path], name: str, lp: str) -> Path:
    """Return the file in a folder of the language pair: the post-edits of all pairs have the same names."""
    for path in index_files(folders).get(name, []):
        if any(folder.startswith(lp) for folder in path.parts):
            return path
    raise FileNotFoundError(f"no file {name} in a folder {lp}* under {', '.join(map(str, folders))}")
