"""Write ratings as a folder with one file per split, which `datasets.load_dataset` opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.datasets_builders.fingerprints import configuration_name
from bleurt_repro.metric.files.writing import (
    atomic_folder,
    refuse_inputs,
    was_interrupted,
    write_json_lines,
    write_text,
)
from bleurt_repro.metric.loading.checksums import file_hash

if TYPE_CHECKING:
    from datasets import Features

    from bleurt_repro.datasets_builders.ratings.builder import RatingsBuilder

FORMATS = ("jsonl", "parquet")
SPLITS = ("train", "validation", "test")
CARD = "README.md"
# Text in the card of every export, by which a folder of an earlier run is recognised.
OUR_CARD = "config_name: ratings-"

Row = Mapping[str, Any]


def export_builder(
    builder_class: type[RatingsBuilder],
    config_name: str,
    output: str | Path,
    format: str = "jsonl",
    overwrite: bool = False,
    **options: Any,
) -> dict[str, int]:
    """Write the splits of a builder of ratings.

    Args:
        builder_class: builder, such as `WmtRatings`.
        config_name: configuration of the builder, such as "2018".
        output: folder to write.
        format: "jsonl" or "parquet".
        overwrite: whether to replace files that no export wrote.
        options: options of the builder, such as data_dir or seed.

    Returns:
        The number of records by split.

    Raises:
        ValueError: if the output is the folder that is read, and as in `write_splits`.
    """
    _refuse_sources(output, format, options.get("data_dir"))
    builder = builder_class(config_name, **options)
    return write_splits(builder.splits(), builder.info.features, output, format, overwrite)


def export_ratings(
    path: str | Path,
    output: str | Path,
    format: str = "jsonl",
    validation_ratio: float = 0.1,
    seed: int = 0,
    overwrite: bool = False,
) -> dict[str, int]:
    """Check a file of ratings and write it as train and validation sets that share no source and no reference.

    Args:
        path: CSV, TSV, JSON lines or Parquet file; see `rating_files.rating_records`.
        output: folder to write.
        format: "jsonl" or "parquet".
        validation_ratio: share of the records to validate on; with 0 there is no validation set.
        seed: seed of the split.
        overwrite: whether to replace files that no export wrote.

    Returns:
        The number of records by split.

    Raises:
        ValueError: if the file is malformed, or would be replaced itself, and as in `write_splits`.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records, ratings_features
    from bleurt_repro.datasets_builders.ratings.splits import split_without_overlap

    _refuse_sources(output, format, path)
    ratings = rating_records(path)
    indices_by_split = zip(SPLITS, split_without_overlap(ratings, validation_ratio, seed), strict=False)
    splits = {name: [ratings[i] for i in indices] for name, indices in indices_by_split if indices}
    return write_splits(splits, ratings_features(ratings), output, format, overwrite)


def write_splits(
    splits: Mapping[str, Sequence[Row]],
    features: Features,
    output: str | Path,
    format: str = "jsonl",
    overwrite: bool = False,
) -> dict[str, int]:
    """Write each split as `<output>/<split>.<format>`, and a README.md from which `load_dataset` reads their types.

    Args:
        splits: rows by split.
        features: columns, in order.
        output: folder to write.
        format: "jsonl" or "parquet".
        overwrite: whether to replace files that no export wrote.

    Returns:
        The number of records by split.

    Raises:
        ValueError: if the format is unknown, or the folder has splits that would not be replaced, or files that would
            be replaced and that no export wrote.
    """
    if format not in FORMATS:
        raise ValueError(f"the format must be {' or '.join(FORMATS)}, found {format!r}")
    folder = Path(output)
    names = {split: f"{split}.{format}" for split in splits}
    not_written = {f"{split}.{form}" for split in SPLITS for form in FORMATS} - set(names.values())
    if stale := sorted(name for name in not_written if (folder / name).exists()):
        raise ValueError(f"{folder} has {', '.join(stale)} of another set: write to another folder, or remove them")
    if not overwrite:
        _refuse_foreign(folder, [CARD, *names.values()])
    counts = {split: len(rows) for split, rows in splits.items()}
    with atomic_folder(folder, last=CARD) as unfinished:
        for split, rows in splits.items():
            if format == "parquet":
                _write_parquet(unfinished / names[split], rows, features)
            else:
                write_json_lines(unfinished / names[split], ({name: row[name] for name in features} for row in rows))
        name = configuration_name("ratings", (file_hash(unfinished / file).hex() for file in names.values()))
        write_text(unfinished / CARD, _card(name, names, counts, features))
    return counts


def _refuse_sources(output: str | Path, format: str, source: str | Path | None) -> None:
    """Raise ValueError if the output is what is read."""
    for path in (Path(output), *(Path(output) / f"{name}.{format}" for name in SPLITS)):
        refuse_inputs(path, [None if source is None else str(source)])


def _refuse_foreign(folder: Path, names: Sequence[str]) -> None:
    """Raise ValueError if files would be replaced whose card no export wrote."""
    card = folder / CARD
    ours = card.is_file() and OUR_CARD in card.read_text(encoding="utf-8", errors="replace")
    ours = ours or was_interrupted(folder)
    existing = [name for name in names if (folder / name).exists()]
    if existing and not ours:
        raise ValueError(
            f"the output {folder} has {', '.join(existing)} that bleurt-repro did not write: name another folder, "
            "or add --overwrite"
        )


def _write_parquet(path: Path, rows: Sequence[Row], features: Features) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=features.arrow_schema), path)


def _card(name: str, names: Mapping[str, str], counts: Mapping[str, int], features: Features) -> str:
    """Return the card with the types of the columns, which JSON lines do not have."""
    from datasets import DatasetInfo
    from datasets.info import DatasetInfosDict
    from huggingface_hub import DatasetCardData

    data_files = [{"split": split, "path": file} for split, file in names.items()]
    data = DatasetCardData(configs=[{"config_name": name, "data_files": data_files}])
    DatasetInfosDict({name: DatasetInfo(features=features, config_name=name)}).to_dataset_card_data(data)
    lines = [f"- {split}: {count:,} records" for split, count in counts.items()]
    return "\n".join(["---", data.to_yaml(), "---", "", *lines, ""])
