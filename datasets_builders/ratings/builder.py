"""The base of the builders of ratings: rows that are few enough to be made at once, from local files or from downloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import datasets

from bleurt_repro.datasets_builders.ratings.downloads import Source, download

Row = dict[str, Any]


class RatingsBuilder(datasets.GeneratorBasedBuilder):
    """A `datasets` builder whose rows a subclass makes in `splits`.

    Args:
        config_name: name of the configuration.
        data_dir: file or folder to read; default: the official sources are downloaded.
        options: fields of the configuration, and arguments of `datasets.DatasetBuilder` such as cache_dir.
    """

    # Name of the cache folder and of Parquet files; `datasets` would take the name of the Python file.
    DATASET_NAME: ClassVar[str]

    def __init__(self, config_name: str | None = None, *, data_dir: str | Path | None = None, **options: Any) -> None:
        options.setdefault("dataset_name", self.DATASET_NAME)
        self._dl_manager: datasets.DownloadManager | None = None
        folder = None if data_dir is None else str(data_dir)
        super().__init__(config_name=config_name, data_dir=folder, **options)
        self.name = self.info.builder_name = self.DATASET_NAME

    def splits(self) -> Mapping[str, Sequence[Row]]:
        """Return the rows of each split, without writing anything but downloads."""
        raise NotImplementedError

    def download(self, sources: Iterable[Source]) -> list[Path]:
        """Download sources into the cache of the builder, and return their folders, as `downloads.download` does."""
        downloads = datasets.DownloadConfig(cache_dir=self._cache_downloaded_dir)
        return download(sources, self._dl_manager or datasets.DownloadManager(download_config=downloads))

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        self._dl_manager = dl_manager
        self._rows = self.splits()
        return [datasets.SplitGenerator(name=name, gen_kwargs={"split": name}) for name in self._rows]

    def _generate_examples(self, split: str) -> Iterator[tuple[int, Row]]:
        yield from enumerate(self._rows[split])
