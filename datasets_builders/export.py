"""Write built ratings as files, one a split."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets import Features

FORMATS = ("jsonl", "parquet")


def write_splits(
    splits: Mapping[str, Sequence[dict[str, Any]]], features: Features, output: str | Path, format: str = "jsonl"
) -> dict[str, int]:
    """Write each split as `<output>/<split>.<format>`, atomically.

    Args:
        splits: rows by split.
        features: the columns, in order.
        output: the folder, made if need be.
        format: "jsonl" or "parquet".

    Returns:
        the number of records by split.

    Raises:
        ValueError: if the format is unknown.
    """
    if format not in FORMATS:
        raise ValueError(f"the format must be {' or '.join(FORMATS)}, found {format!r}")
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in splits.items():
        temporary = folder / f".{name}.{os.getpid()}"
        try:
            _write(rows, features, temporary, format)
            os.replace(temporary, folder / f"{name}.{format}")
        finally:
            temporary.unlink(missing_ok=True)
    return {name: len(rows) for name, rows in splits.items()}


def _write(rows: Sequence[dict[str, Any]], features: Features, path: Path, format: str) -> None:
    if format == "parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=features.arrow_schema), path)
        return
    with path.open("w", encoding="utf-8") as lines:
        for row in rows:
            lines.write(json.dumps({name: row[name] for name in features}, ensure_ascii=False) + "\n")


def export_wmt(
    config_name: str, data_dir: str, output: str | Path, format: str = "jsonl", **options: Any
) -> dict[str, int]:
    """Write the train, validation and test ratings of a WMT target year.

    Args:
        config_name: the year to test on, or "all".
        data_dir: where the ratings are; see `WmtRatings`.
        output: the folder to write.
        format: "jsonl" or "parquet".
        options: those of `WmtRatings`, such as language_pairs.

    Returns:
        the number of records by split.
    """
    from bleurt_repro.datasets_builders.wmt_ratings import RATING_FEATURES, WmtRatings

    builder = WmtRatings(config_name=config_name, data_dir=data_dir, **options)
    return write_splits(builder.splits(), RATING_FEATURES, output, format)
