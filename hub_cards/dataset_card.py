"""Draw the card of a dataset: ratings that `bleurt-repro data` wrote, or synthetic pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from bleurt_repro.hub_cards.cards import TEMPLATES, UNKNOWN, placeholder
from bleurt_repro.hub_cards.contents import CARD
from bleurt_repro.metric.files.writing import markdown_table

# What the columns of the ratings datasets mean; a column that is not here is shown by name and type alone.
MEANINGS = {
    "year": "of the evaluation",
    "lp": "language pair, source-target",
    "segment_id": "number of the source segment",
    "system": "that made the candidate",
    "source": "the text or data that the candidate was made from",
    "reference": "text that a person wrote",
    "candidate": "text that a system made",
    "candidate_better": "the one that people preferred",
    "candidate_worse": "the other one",
    "score": "rating, standardised",
    "raw_score": "rating, before standardisation",
    "n_annotations": "how many ratings the score is the mean of",
}
STUB_LINE = re.compile(r"- \w+: [\d,]+ records")


def is_stub(text: str) -> bool:
    """Check whether a card is what the builders write: metadata and the number of records, and no more."""
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
    """Draw the card of a folder of ratings, counted from its files.

    Args:
        folder: what `bleurt-repro data wmt`, `relative-ranks`, `webnlg` or `ratings` wrote.
        repo_id: where it will be published.
        title: what to call it; the folder's name by default.
        license: by the Hub's name for it.
        data_terms: on what terms the sources are published, a sentence.
        recipe: the command that made it, or where to find it.

    Raises:
        ValueError: if the folder has no card with the metadata of its files, as those commands write it.
    """
    from huggingface_hub import DatasetCard

    from bleurt_repro.datasets_builders.synthetic.summary import SIZES
    from bleurt_repro.metric.files.records import read_records
    from bleurt_repro.metric.loading.checksums import file_hash

    folder = Path(folder)
    path = folder / CARD
    data: Any = DatasetCard(path.read_text(encoding="utf-8")).data if path.is_file() else None
    if data is None or not data.get("configs"):
        raise ValueError(
            f"{folder} has no {CARD} that names its files: write the data with `bleurt-repro data ...`, or a card by hand"
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
        columns=markdown_table(["column", "type", "what it is"], _columns(data)),
        recipe=recipe and (f"`{recipe}`" if recipe.startswith("bleurt-repro ") else recipe),
        license=license,
        data_terms=data_terms,
    )
    return card.content + "\n"


def draw_synthetic_card(folder: str | Path, *, repo_id: str | None = None) -> str:
    """Draw the card of a finished set of synthetic pairs: that of `bleurt-repro data synthetic`, and how to open it.

    Args:
        folder: the finished set.
        repo_id: where it will be published.
    """
    import json

    from bleurt_repro.datasets_builders.synthetic.builder import check_parts
    from bleurt_repro.datasets_builders.synthetic.summary import card

    folder = Path(folder)
    info = shorten_paths(check_parts(folder))
    text = card(info, json.loads((folder / "report.json").read_text(encoding="utf-8")))
    address = repo_id or placeholder(folder.resolve().name)
    code = f'from datasets import load_dataset\n\nload_dataset("{address}", split="train")'
    return text.replace("## Columns", f"## Open it\n\n```python\n{code}\n```\n\n## Columns", 1)


def shorten_paths(value: Any) -> Any:
    """Replace every absolute path in a JSON value by its last name, so that no folder of this machine is published."""
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
    return ", ".join(f"{value} ({count:,})" for value, count in sorted(counts.items())) or "none named"


def _columns(data: Any) -> Iterable[list[str]]:
    info = data.get("dataset_info") or {}
    for feature in (info[0] if isinstance(info, list) else info).get("features", []):
        kind = feature.get("dtype") or next((str(value) for key, value in feature.items() if key != "name"), "")
        yield [f"`{feature['name']}`", str(kind), MEANINGS.get(feature["name"], "")]
