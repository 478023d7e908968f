"""What the builders of WMT ratings share: where they read, and a cache that follows the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets

from bleurt_repro.datasets_builders.wmt_sources import TO_ENGLISH, source_fingerprint

Row = dict[str, Any]


@dataclass
class WmtConfig(datasets.BuilderConfig):
    """Where ratings come from; see `wmt_sources.read_wmt`."""

    hub_dataset: str | None = None
    hub_revision: str | None = None
    language_pairs: Sequence[str] = TO_ENGLISH
    # Of data and code: without it, the cache of `datasets` would give back old rows.
    fingerprint: str = ""

    def source(self) -> dict[str, Any]:
        """Give the arguments of `read_wmt`."""
        return {
            "data_dir": self.data_dir,
            "hub_dataset": self.hub_dataset,
            "hub_revision": self.hub_revision,
            "language_pairs": self.language_pairs,
        }


class WmtBuilder(datasets.GeneratorBasedBuilder):
    """A builder whose rows are few enough to be made at once; subclasses say which, in `splits`.

    Args:
        config_name: the year to test on, such as "2017".
        data_dir: a file of ratings, a folder of such files, or a folder with the official archives, unpacked.
        hub_dataset: instead, the dataset on the Hub.
        hub_revision: its branch, tag or commit.
        options: fields of the configuration, and arguments of `datasets.DatasetBuilder` such as cache_dir.
    """

    def __init__(
        self,
        config_name: str | None = None,
        *,
        data_dir: str | Path | None = None,
        hub_dataset: str | None = None,
        hub_revision: str | None = None,
        **options: Any,
    ) -> None:
        source: dict[str, Any] = {"hub_dataset": hub_dataset, "hub_revision": hub_revision}
        if isinstance(options.get("language_pairs"), str):
            options["language_pairs"] = (options["language_pairs"],)
        options["fingerprint"] = source_fingerprint(data_dir, **source)
        folder = None if data_dir is None else str(data_dir)
        super().__init__(config_name=config_name, data_dir=folder, **source, **options)

    def splits(self) -> Mapping[str, Sequence[Row]]:
        """Make the rows of each split, without writing anything."""
        raise NotImplementedError

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        self._rows = self.splits()
        return [datasets.SplitGenerator(name=name, gen_kwargs={"split": name}) for name in self._rows]

    def _generate_examples(self, split: str) -> Iterator[tuple[int, Row]]:
        yield from enumerate(self._rows[split])
