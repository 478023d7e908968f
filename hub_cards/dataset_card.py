"""Draw the card of a dataset written by `bleurt-repro data`: ratings or synthetic pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from bleurt_repro.hub_cards.cards import TEMPLATES, UNKNOWN, placeholder
from bleurt_repro.hub_cards.contents import CARD, read_card
from bleurt_repro.metric.files.tables import markdown_table

# Descriptions of the columns of ratings; other columns are shown with name and type only.
DESCRIPTIONS = {
    "year": "year of the evaluation",
    "lp": "language pair, source-target",
    "segment_id": "number of the source segment",
    "system": "system that made the candidate",
    "source": "text or data that the candidate was made from",
    "reference": "text written by a person",
    "candidate": "text made by a system",
    "candidate_better": "text that people preferred",
    "candidate_worse": "text that people did not prefer",
    "score": "rating, standardised",
    "raw_score": "rating before standardisation",
    "n_annotations": "number of ratings that the score is the mean of",
}
STUB_LINE = re.compile(r"- \w+: [\d,]+ records")


def is_stub(text: str) -> bool:
    """Return whether a card is the one that `bleurt-repro data` writes: metadata and numbers of records only."""
    body = re.sub(r"\A---\n.*?\n---\n", "", text, count=1, flags=re.DOTALL)
    return all(STUB_LINE.fullmatch(line) for line in body.split("\n") if line)


def draw_dataset_card(
    folder: str | Path,
    *,
    repo_id: str | None = None,
    title: str | None = None,
    license: str | None = None,
    data_terms: str | None = None,
    recipe: str | None = None,
) -> str:
    """Draw the card of a folder of ratings; its numbers are counted from the files.

    Args:
        folder: folder written by `bleurt-repro data wmt`, `relative-ranks`, `webnlg` or `ratings`.
        repo_id: repository where it will be published.
        title: title; the folder's name by default.
        license: licence by the Hub's name for it.
        data_terms: sentence on the terms of use of the sources.
        recipe: command that made the data, or where to find it.

    Returns:
        Markdown with metadata.

    Raises:
        ValueError: if the folder has no card that lists its files, as those commands write it.
    """
    from huggingface_hub import DatasetCard

    from bleurt_repro.datasets_builders.synthetic.summary import SIZES
    from bleurt_repro.metric.files.records import read_records
    from bleurt_repro.metric.loading.checksums import file_hash

    folder = Path(folder)
    stub = read_card(folder)
    data: Any = DatasetCard(stub).data if stub is not None else None
    if data is None or not data.get("configs"):
        raise ValueError(
            f"{folder} has no {CARD} that lists its files: write the data with `bleurt-repro data ...`, or write a "
            "card by hand"
        )
    name = folder.resolve().name
    files = {source["split"]: source["path"] for source in data.configs[0]["data_files"]}
    rows, total = [], 0
    for split, file in files.items():
        records = [record for _, record in read_records(folder / file)]
        total += len(records)
        rows.append([split, len(records), _values(records, "year"), _values(records, "lp")])
    data.license = license or UNKNOWN
    data.pretty_name = title or name
    data.size_categories = [next((size for limit, size in SIZES if total < limit), "10M<n<100M")]
    data.task_categories = ["text-classification"]
    data.tags = ["evaluation", "bleurt"]
    card = DatasetCard.from_template(
        data,
        template_path=str(TEMPLATES / "ratings_card.md"),
        title=title or name,
        address=repo_id or placeholder(name),
        counts=markdown_table(["split", "records", "years", "language pairs"], rows),
        files={file: file_hash(folder / file).hex() for file in files.values()},
        columns=markdown_table(["column", "type", "description"], _columns(data)),
        recipe=recipe and (f"`{recipe}`" if recipe.startswith("bleurt-repro ") else recipe),
        license=license,
        data_terms=data_terms,
    )
    return card.content + "\n"


def draw_synthetic_card(folder: str | Path, *, repo_id: str | None = None) -> str:
    """Draw the card of synthetic pairs: the card of `bleurt-repro data synthetic`, with the code that loads them.

    Args:
        folder: folder with all pairs.
        repo_id: repository where it will be published.
    """
    import json

    from bleurt_repro.datasets_builders.synthetic.builder import check_parts
    from bleurt_repro.datasets_builders.synthetic.summary import card

    folder = Path(folder)
    info = shorten_paths(check_parts(folder))
    text = card(info, json.loads((folder / "report.json").read_text(encoding="utf-8")))
    address = repo_id or placeholder(folder.resolve().name)
    code = f'from datasets import load_dataset\n\nload_dataset("{address}", split="train")'
    return text.replace("## Columns", f"## Usage\n\n```python\n{code}\n```\n\n## Columns", 1)


def shorten_paths(value: Any) -> Any:
    """Return a JSON value with each absolute path shortened to its last part, so that no local folder is published."""
    if isinstance(value, dict):
        return {key: shorten_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shorten_paths(item) for item in value]
    if isinstance(value, str) and "\n" not in value:
        if value.startswith(("/", "~/")):
            return PurePosixPath(value).name
        if PureWindowsPath(value).is_absolute():
            return PureWindowsPath(value).name
    return value


def _values(records: Iterable[dict[str, Any]], column: str) -> str:
    counts = Counter(str(record[column]) for record in records if record.get(column) is not None)
    return ", ".join(f"{value} ({count:,})" for value, count in sorted(counts.items())) or "not stated"


def _columns(data: Any) -> Iterable[list[str]]:
    info = data.get("dataset_info") or {}
    for feature in (info[0] if isinstance(info, list) else info).get("features", []):
        dtype = feature.get("dtype") or next((str(value) for key, value in feature.items() if key != "name"), "")
        yield [f"`{feature['name']}`", str(dtype), DESCRIPTIONS.get(feature["name"], "")]
