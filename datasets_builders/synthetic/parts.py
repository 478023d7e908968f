"""The Parquet files of a set of synthetic pairs: written whole or not at all, and checked before they are used.

Each file, called a part, has the pairs of a fixed run of segments, whichever process makes it. So the bytes of a set
do not depend on how many processes made it, nor on how often they were stopped.
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
    """Return values as indented JSON."""
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def features(signals: Sequence[dict[str, Any]]) -> Features:
    """Return the columns of the data.

    Args:
        signals: description of each signal (`Signal.describe`).
    """
    from datasets import Features, List, Value

    columns: dict[str, Any] = {
        "segment_id": Value("int64"),
        "reference": Value("string"),
        "candidate": Value("string"),
        "perturbation": Value("string"),
        "word_dropping": Value("bool"),
    }
    return Features(columns | {signal["name"]: List(Value("float32"), length=signal["size"]) for signal in signals})


def to_table(units: Sequence[Unit], signals: Sequence[dict[str, Any]]) -> Table:
    """Return the pairs of units as one table.

    Args:
        units: units of segments, in order.
        signals: description of each signal.
    """
    import pyarrow as pa

    schema = features(signals).arrow_schema
    pairs = [pair for unit in units for pair in unit.pairs]
    columns = [
        pa.array([getattr(pair, name) for pair in pairs], schema.field(name).type) for name in Pair.__annotations__
    ]
    for signal in signals:
        name, size = signal["name"], signal["size"]
        blocks = [unit.signals[name] for unit in units if unit.pairs]
        numbers = np.concatenate([np.zeros((0, size)), *blocks]).astype(np.float32)
        lists = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), size)
        columns.append(lists.cast(schema.field(name).type))
    return pa.Table.from_arrays(columns, schema=schema)


class PartFiles:
    """The parts in an output folder, and their records.

    Args:
        folder: the output folder.
        fingerprint: hash of the recipe, the input and the models; parts made from others are not used.
    """

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.folder, self.fingerprint = folder, fingerprint

    def data_file(self, number: int) -> Path:
        """Return the path of a part."""
        return self.folder / DATA_FOLDER / f"part-{number:05d}.parquet"

    def waiting_file(self, number: int) -> Path:
        """Return the path of a part while a finished set is enlarged or repaired: the set stays whole meanwhile."""
        return self.folder / RECORD_FOLDER / f"part-{number:05d}.parquet"

    def record_file(self, number: int) -> Path:
        """Return the path of the record of a finished part, with its hash."""
        return self.folder / RECORD_FOLDER / f"part-{number:05d}.json"

    def prepare(self, recipe: dict[str, Any]) -> list[str]:
        """Start the output folder for a recipe, or check that it belongs to this recipe.

        Args:
            recipe: result of `make.make_recipe`.

        Returns:
            What differs from the environment of the first run; numbers may then differ in their last digits.

        Raises:
            ValueError: if the folder has other content.
        """
        path = self.folder / RECIPE_FILE
        if not path.is_file():
            if self.folder.is_file() or (self.folder.is_dir() and any(self._visible_files())):
                raise ValueError(f"output {self.folder} is not empty and has no {RECIPE_FILE}: choose a new folder")
            self.folder.mkdir(parents=True, exist_ok=True)
            write_text(path, to_json(recipe))
            return []
        first = json.loads(path.read_text(encoding="utf-8"))
        if first.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"output {self.folder} has pairs of another recipe ({', '.join(_differences(first, recipe))} differ): "
                "choose a new folder, or the recipe in its recipe.json"
            )
        before, now = first["environment"], recipe["environment"]
        return [f"{key} was {before.get(key)}, is {now[key]}" for key in now if before.get(key) != now[key]]

    def _visible_files(self) -> list[Path]:
        # Another process may be writing the recipe at this moment, under a hidden name.
        return [path for path in self.folder.iterdir() if not path.name.startswith(".")]

    def refuse_more_than(self, count: int) -> None:
        """Raise ValueError if the folder has more than `count` parts: their pairs would be read with the others."""
        surplus = [path.name for path in sorted((self.folder / DATA_FOLDER).glob("part-*.parquet"))[count:]]
        if surplus:
            raise ValueError(
                f"output {self.folder} has {len(surplus)} more parts ({surplus[0]} and later) than the input needs: a "
                "set only grows; give --max-segments as large as before, or choose a new folder"
            )

    def record(self, number: int, segments: int) -> dict[str, Any] | None:
        """Return the record of a finished part, or None if it is not finished or its file is not the recorded one.

        Args:
            number: number of the part.
            segments: number of its segments; the last part of a smaller set has fewer, and is made again.
        """
        path = self.record_file(number)
        if not path.is_file():
            return None
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            return None
        matches = record.get("fingerprint") == self.fingerprint and record.get("segments") == segments
        return record if matches and self._recorded_file(record, number) is not None else None

    def _recorded_file(self, record: dict[str, Any], number: int) -> Path | None:
        """Return the file whose hash is in a record."""
        files = [path for path in (self.waiting_file(number), self.data_file(number)) if path.is_file()]
        return next((path for path in files if file_hash(path).hex() == record.get("sha256")), None)

    def gather(self, folder: Path, records: Sequence[dict[str, Any]]) -> None:
        """Link finished parts and their records into another folder on the same disk.

        Args:
            folder: the other folder.
            records: records of all parts, in order.
        """
        target = PartFiles(folder, self.fingerprint)
        for name in (DATA_FOLDER, RECORD_FOLDER):
            (folder / name).mkdir()
        for number, record in enumerate(records):
            data = self._recorded_file(record, number)
            assert data is not None
            links = ((data, target.data_file(number)), (self.record_file(number), target.record_file(number)))
            for path, link in links:
                try:
                    os.link(path, link)
                except OSError:  # a file system without links
                    shutil.copy2(path, link)

    def write(self, number: int, table: Table, record: dict[str, Any]) -> None:
        """Write a part: first its data, then the record that makes it count as finished.

        Args:
            number: number of the part.
            table: pairs of the part.
            record: further values for its record.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = (self.waiting_file if (self.folder / INFO_FILE).is_file() else self.data_file)(number)
        for path in (file, self.record_file(number)):
            path.parent.mkdir(parents=True, exist_ok=True)
        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer, compression="zstd")
        write_bytes(file, buffer.getvalue().to_pybytes())
        facts = {
            "part": number,
            "fingerprint": self.fingerprint,
            "sha256": file_hash(file).hex(),
            "pairs": table.num_rows,
        }
        write_text(self.record_file(number), to_json(facts | record))


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the names of the options, input and models that differ between two recipes."""
    names = []
    for key in ("config", "input", "models"):
        old, new = before.get(key, {}), now.get(key, {})
        names += [f"{key}.{name}" for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    return names or ["their versions"]
