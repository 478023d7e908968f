"""The Parquet files of a set of synthetic pairs: written whole or not at all, checked before they are trusted.

A part holds the pairs of a fixed run of segments, whoever makes it: so a set's bytes do not depend on how many processes
made it, nor on how often they were stopped.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.datasets_builders.synthetic.pair_maker import Pair, Unit
from bleurt_repro.metric.files.writing import write_bytes, write_text
from bleurt_repro.metric.loading.checksums import file_hash

if TYPE_CHECKING:
    from datasets import Features
    from pyarrow import Table

DATA_FOLDER = "data"
RECORD_FOLDER = "parts"
RECIPE_FILE = "recipe.json"
# The record of a finished set.
INFO_FILE = "dataset_info.json"


def to_json(values: Any) -> str:
    """Write values as JSON for people and programs to read."""
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def features(signals: Sequence[dict[str, Any]]) -> Features:
    """Return the columns of the data.

    Args:
        signals: the description of each signal (`Signal.describe`).
    """
    from datasets import Features, List, Value

    columns: dict[str, Any] = {
        "segment_id": Value("int64"),
        "reference": Value("string"),
        "candidate": Value("string"),
        "perturbation": Value("string"),
        "word_dropping": Value("bool"),
    }
    return Features(columns | {item["name"]: List(Value("float32"), length=item["size"]) for item in signals})


def to_table(units: Sequence[Unit], signals: Sequence[dict[str, Any]]) -> Table:
    """Collect the pairs of some units in one table.

    Args:
        units: in order.
        signals: the description of each signal.
    """
    import pyarrow as pa

    schema = features(signals).arrow_schema
    pairs = [pair for unit in units for pair in unit.pairs]
    columns = [
        pa.array([getattr(pair, name) for pair in pairs], schema.field(name).type) for name in Pair.__annotations__
    ]
    for item in signals:
        blocks = [unit.signals[item["name"]] for unit in units if unit.pairs]
        numbers = np.concatenate([np.zeros((0, item["size"])), *blocks]).astype(np.float32)
        columns.append(
            pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), item["size"]).cast(
                schema.field(item["name"]).type
            )
        )
    return pa.Table.from_arrays(columns, schema=schema)


class Parts:
    """The parts in an output folder.

    Args:
        folder: the output folder.
        fingerprint: of the recipe, input and models; a part made from others does not count.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder, self.fingerprint = folder, fingerprint

    def data_file(self, part: int) -> Path:
        """Name a part's Parquet file."""
        return self.folder / DATA_FOLDER / f"part-{part:05d}.parquet"

    def waiting_file(self, part: int) -> Path:
        """Name a part's Parquet file while a finished set is made larger, or repaired: the set stays whole meanwhile."""
        return self.folder / RECORD_FOLDER / f"part-{part:05d}.parquet"

    def record_file(self, part: int) -> Path:
        """Name the file that records that a part is done, with its hash."""
        return self.folder / RECORD_FOLDER / f"part-{part:05d}.json"

    def prepare(self, recipe: dict[str, Any]) -> list[str]:
        """Claim the folder for a recipe, or check that it is this recipe's.

        Args:
            recipe: "fingerprint" and what it was made of, and "environment".

        Returns:
            what differs in the environment from that of the first run; results may then differ in their last digits.

        Raises:
            ValueError: if the folder holds something else.
        """
        path = self.folder / RECIPE_FILE
        if not path.is_file():
            if self.folder.is_file() or (self.folder.is_dir() and any(self._foreign())):
                raise ValueError(f"output {self.folder} is not empty and has no {RECIPE_FILE}: choose a new folder")
            self.folder.mkdir(parents=True, exist_ok=True)
            write_text(path, to_json(recipe))
            return []
        known = json.loads(path.read_text(encoding="utf-8"))
        if known.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"output {self.folder} holds pairs of another recipe ({', '.join(_differences(known, recipe))} differ): "
                "choose a new folder, or the recipe in its recipe.json"
            )
        before, now = known["environment"], recipe["environment"]
        return [f"{key} was {before.get(key)}, is {now[key]}" for key in now if before.get(key) != now[key]]

    def _foreign(self) -> list[Path]:
        # Another process may be writing the recipe at this moment.
        return [path for path in self.folder.iterdir() if not path.name.startswith(".")]

    def refuse_more_than(self, count: int) -> None:
        """Refuse a folder that holds parts beyond the input's: their pairs would be read with the others.

        Raises:
            ValueError: if there are any.
        """
        surplus = [path.name for path in sorted((self.folder / DATA_FOLDER).glob("part-*.parquet"))[count:]]
        if surplus:
            raise ValueError(
                f"output {self.folder} holds {len(surplus)} parts more ({surplus[0]} and later): a set only grows; give "
                "--max-segments as large as before, or choose a new folder"
            )

    def record(self, part: int, segments: int) -> dict[str, Any] | None:
        """Return the record of a part that is done.

        Args:
            part: its number.
            segments: how many it must hold; the last part of a smaller set holds fewer and is made again.

        Returns:
            None if it is not done, or its file is not the one recorded.
        """
        path = self.record_file(part)
        if not path.is_file():
            return None
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            return None
        made = record.get("fingerprint") == self.fingerprint and record.get("segments") == segments
        return record if made and self._file(record, part) is not None else None

    def _file(self, record: dict[str, Any], part: int) -> Path | None:
        """Return the file that a record is of."""
        files = [path for path in (self.waiting_file(part), self.data_file(part)) if path.is_file()]
        return next((path for path in files if file_hash(path).hex() == record.get("sha256")), None)

    def gather(self, folder: Path, records: Sequence[dict[str, Any]]) -> None:
        """Link the files of finished parts, and their records, into another folder of the same disk.

        Args:
            folder: the folder.
            records: of all parts, in order.
        """
        other = Parts(folder, self.fingerprint)
        for name in (DATA_FOLDER, RECORD_FOLDER):
            (folder / name).mkdir()
        for part, record in enumerate(records):
            made = self._file(record, part)
            assert made is not None
            for path, link in ((made, other.data_file(part)), (self.record_file(part), other.record_file(part))):
                try:
                    os.link(path, link)
                except OSError:  # a file system without links
                    shutil.copy2(path, link)

    def write(self, part: int, table: Table, record: dict[str, Any]) -> None:
        """Write a part: first its data, then the record by which it counts as done.

        Args:
            part: its number.
            table: its pairs.
            record: what else to keep of it.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = (self.waiting_file if (self.folder / INFO_FILE).is_file() else self.data_file)(part)
        for path in (file, self.record_file(part)):
            path.parent.mkdir(parents=True, exist_ok=True)
        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer, compression="zstd")
        write_bytes(file, buffer.getvalue().to_pybytes())
        facts = {
            "part": part,
            "fingerprint": self.fingerprint,
            "sha256": file_hash(file).hex(),
            "pairs": table.num_rows,
        }
        write_text(self.record_file(part), to_json(facts | record))


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Name what differs between two recipes, one level down."""
    names = []
    for key in ("config", "input", "models"):
        old, new = before.get(key, {}), now.get(key, {})
        names += [f"{key}.{name}" for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    return names or ["their versions"]
