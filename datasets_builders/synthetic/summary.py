"""Sum up a finished set of synthetic pairs: its record, a report of counts, speed and sampled rows, and its dataset card.

All is computed from the parts in the folder, whoever made them; report and card from the record and nothing else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.datasets_builders.fingerprints import configuration_name
from bleurt_repro.datasets_builders.synthetic.parts import DATA_FOLDER, INFO_FILE, Parts, to_json
from bleurt_repro.datasets_builders.synthetic.segments import Skipped, general_reason
from bleurt_repro.metric.files.tables import markdown_table
from bleurt_repro.metric.files.writing import atomic_folder, write_json_lines, write_text

if TYPE_CHECKING:
    from pyarrow import Table

PAPER = "https://aclanthology.org/2020.acl-main.704"
# The Hub's classes of size: https://huggingface.co/docs/hub/datasets-cards
SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)

REPORT_FILE = "report.json"
SKIPPED_FILE = "skipped.jsonl"
SAMPLED_ROWS = 10
IDENTICAL = "identical"  # a row of the report: pairs whose candidate equals the reference


def summarise(
    folder: Path,
    recipe: dict[str, Any],
    signals: Sequence[dict[str, Any]],
    records: Sequence[dict[str, Any]],
    rows: int,
    skipped: Sequence[Skipped],
) -> dict[str, Any]:
    """Write the record, the report, the log of skipped rows and the card beside the parts.

    They take the place of those of a smaller set together, and so do its parts.

    Args:
        folder: the output folder, all of its parts done.
        recipe: what the pairs were made of.
        signals: the description of each signal.
        records: of the parts, in order.
        rows: of the input that were read.
        skipped: rows of the input that gave no segment.

    Returns:
        the report.
    """
    with atomic_folder(folder, last=INFO_FILE) as unfinished:
        Parts(folder, recipe["fingerprint"]).gather(unfinished, records)
        return _write_summary(unfinished, recipe, signals, records, rows, skipped)


def _write_summary(
    folder: Path,
    recipe: dict[str, Any],
    signals: Sequence[dict[str, Any]],
    records: Sequence[dict[str, Any]],
    rows: int,
    skipped: Sequence[Skipped],
) -> dict[str, Any]:
    statistics, by_group = _moments(folder, signals, len(records))
    left_out = [*(item.to_dict() for item in skipped), *(item for record in records for item in record["skipped"])]
    counts = {group: moments["count"] for group, moments in sorted(by_group.items())}
    info = {
        **recipe,
        "pairs": sum(record["pairs"] for record in records),
        "segments": sum(record["segments"] for record in records),
        "input_rows": rows,
        "skipped": dict(Counter(general_reason(item["reason"]) for item in left_out).most_common()),
        "counts": counts,
        "signals": [
            {**item, "mean": statistics[item["name"]].mean.tolist(), "std": statistics[item["name"]].std.tolist()}
            for item in signals
        ],
        "parts": [
            {"file": _file_name(record["part"]), "sha256": record["sha256"], "pairs": record["pairs"]}
            for record in records
        ],
    }
    report = {
        "pairs": info["pairs"],
        "segments": info["segments"],
        "input_rows": rows,
        "skipped": info["skipped"],
        "counts": counts,
        "stages": _stages(records),
        "truncated": dict(sum((Counter(record["truncated"]) for record in records), Counter())),
        "signal_means": {group: moments["means"] for group, moments in sorted(by_group.items())},
        "sampled_rows": _sample(folder, records, recipe["config"]["seed"]),
    }
    write_json_lines(folder / SKIPPED_FILE, left_out)
    write_text(folder / REPORT_FILE, to_json(report))
    write_text(folder / "README.md", card(info, report))
    write_text(folder / INFO_FILE, to_json(info))
    return report


def _file_name(part: int) -> str:
    return f"{DATA_FOLDER}/part-{part:05d}.parquet"


def _tables(folder: Path, parts: int) -> Iterator[Table]:
    import pyarrow.parquet as pq

    for part in range(parts):
        yield pq.read_table(folder / _file_name(part))


def numbers_of(table: Table, name: str, size: int) -> np.ndarray:
    """Return a signal's numbers, shape (pairs, size), float64."""
    return table[name].combine_chunks().flatten().to_numpy().reshape(-1, size).astype(np.float64)


def _moments(
    folder: Path, signals: Sequence[dict[str, Any]], parts: int
) -> tuple[dict[str, Moments], dict[str, dict[str, Any]]]:
    """Compute each signal's moments over all pairs, and count and means over each kind of pairs."""
    overall = {item["name"]: Moments(item["size"]) for item in signals}
    grouped: dict[str, dict[str, Moments]] = {}
    counts: Counter[str] = Counter()
    for table in _tables(folder, parts):
        rows_of = _rows_by_group(table)
        counts.update({group: len(rows) for group, rows in rows_of.items()})
        for item in signals:
            name, size = item["name"], item["size"]
            numbers = numbers_of(table, name, size)
            overall[name].add(numbers)
            for group, rows in rows_of.items():
                grouped.setdefault(group, {}).setdefault(name, Moments(size)).add(numbers[rows])
    by_group = {
        group: {
            "count": count,
            "means": {name: moments.mean.tolist() for name, moments in grouped.get(group, {}).items()},
        }
        for group, count in counts.items()
    }
    return overall, by_group


def _rows_by_group(table: Table) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    columns = (table[name].to_pylist() for name in ("perturbation", "word_dropping", "reference", "candidate"))
    for i, (perturbation, dropping, reference, candidate) in enumerate(zip(*columns, strict=True)):
        groups.setdefault(group_of(perturbation, dropping), []).append(i)
        if reference == candidate:
            groups.setdefault(IDENTICAL, []).append(i)
    return groups


def _stages(records: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Add up seconds and pairs of each stage over the parts and the processes that made them."""
    seconds: defaultdict[str, float] = defaultdict(float)
    pairs: Counter[str] = Counter()
    for record in records:
        for stage, (part_seconds, part_pairs) in record["stages"].items():
            seconds[stage] += part_seconds
            pairs[stage] += part_pairs
    return {
        stage: {
            "seconds": round(seconds[stage], 3),
            "pairs": pairs[stage],
            "pairs_per_second": round(pairs[stage] / seconds[stage], 2) if seconds[stage] else 0.0,
        }
        for stage in seconds
    }


def _sample(folder: Path, records: Sequence[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Pick some rows at random, the same for the same data."""
    import pyarrow.parquet as pq

    total = sum(record["pairs"] for record in records)
    wanted = np.sort(np.random.default_rng(seed).choice(total, size=min(SAMPLED_ROWS, total), replace=False))
    rows, start = [], 0
    for record in records:
        here = [int(i) - start for i in wanted if start <= i < start + record["pairs"]]
        if here:
            rows += pq.read_table(folder / _file_name(record["part"])).take(here).to_pylist()
        start += record["pairs"]
    return rows


class Moments:
    """Count, mean and standard deviation of columns of numbers that arrive in blocks.

    Args:
        size: how many columns.
    """

    def __init__(self, size: int) -> None:
        self.count = 0
        self.mean = np.zeros(size)
        self._squares = np.zeros(size)

    def add(self, block: np.ndarray) -> None:
        """Add rows, shape (n, size)."""
        if len(block):
            mean = block.mean(axis=0)
            self._join(len(block), mean, ((block - mean) ** 2).sum(axis=0))

    @classmethod
    def joined(cls, samples: Sequence[tuple[int, Sequence[float], Sequence[float]]]) -> Moments:
        """Join samples of which count, means and standard deviations are known; at least one."""
        moments = cls(len(samples[0][1]))
        for count, mean, std in samples:
            moments._join(count, np.asarray(mean), np.asarray(std) ** 2 * count)
        return moments

    def _join(self, added: int, mean: np.ndarray, squares: np.ndarray) -> None:
        # Chan, Golub and LeVeque (1979): joins the moments of two samples without loss of digits.
        count = self.count + added
        step = mean - self.mean
        self._squares += squares + step**2 * self.count * added / count
        self.mean = self.mean + step * added / count
        self.count = count

    @property
    def std(self) -> np.ndarray:
        """The standard deviation of the rows as a population, shape (size,)."""
        return np.sqrt(self._squares / max(self.count, 1))


def group_of(perturbation: str, word_dropping: bool) -> str:
    """Name the kind of a pair in counts and tables."""
    return f"{perturbation}+word_dropping" if word_dropping else perturbation


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay out rows as a Markdown table, numbers with three significant digits or more."""
    return markdown_table(header, [[_rounded(cell) for cell in row] for row in rows])


def _rounded(value: Any) -> Any:
    return f"{value:.{3 if abs(value) < 10 else 1}f}" if isinstance(value, float) else value


def means_table(signals: Sequence[dict[str, Any]], report: dict[str, Any]) -> str:
    """Show the mean of each signal for each kind of pairs.

    Args:
        signals: the description of each signal.
        report: as `summarise` returns it.
    """
    groups = list(report["signal_means"])
    rows: list[list[Any]] = [["pairs", *(report["counts"][group] for group in groups)]]
    for item in signals:
        for i, value in enumerate(item["values"]):
            label = item["name"] if item["size"] == 1 else f"{item['name']} {value}"
            rows.append([label, *(report["signal_means"][group][item["name"]][i] for group in groups)])
    return _table(["mean of", *groups], rows)


def stages_table(report: dict[str, Any]) -> str:
    """Show how fast each stage was, in seconds of all processes together."""
    rows = [
        [stage, item["pairs"], item["seconds"], item["pairs_per_second"]] for stage, item in report["stages"].items()
    ]
    return _table(["stage", "pairs", "seconds", "pairs per second"], rows)


def report_text(info: dict[str, Any], report: dict[str, Any]) -> str:
    """Return the report for a terminal: counts, speed, means and sampled rows."""
    skipped = ", ".join(f"{count} {reason}" for reason, count in report["skipped"].items()) or "none"
    rows = [
        f"[{row['perturbation']}{' + word dropping' if row['word_dropping'] else ''}]\n  {row['reference']}\n  {row['candidate']}"
        for row in report["sampled_rows"]
    ]
    cut = ", ".join(f"{count} by {name}" for name, count in report["truncated"].items() if count) or "none"
    return "\n\n".join(
        [
            f"{report['pairs']} pairs of {report['segments']} segments; {report['input_rows']} rows read; skipped: {skipped}",
            f"Texts cut to a model's length: {cut}",
            stages_table(report),
            means_table(info["signals"], report),
            "Sampled rows:\n" + "\n".join(rows),
        ]
    )


def card(info: dict[str, Any], report: dict[str, Any]) -> str:
    """Write the dataset card.

    Args:
        info: the record of the data.
        report: the report on it.
    """
    from huggingface_hub import DatasetCardData

    config = info["config"]
    name = configuration_name("pairs", (part["sha256"] for part in info["parts"]))
    front = DatasetCardData(
        language=config["language"],
        license=config["license"],
        pretty_name="Synthetic pairs for BLEURT pre-training",
        size_categories=next((name for limit, name in SIZES if info["pairs"] < limit), "10M<n<100M"),
        task_categories=["text-classification"],
        tags=["bleurt", "evaluation", "synthetic"],
        configs=[{"config_name": name, "data_files": [{"split": "train", "path": "data/*.parquet"}]}],
    )
    signals = [
        [item["name"], item["loss"], value, mean, std]
        for item in info["signals"]
        for value, mean, std in zip(item["values"], item["mean"], item["std"], strict=True)
    ]
    counts = [[group, count] for group, count in info["counts"].items()]
    models = [[role, item["name"], item.get("revision", ""), item["sha256"]] for role, item in info["models"].items()]
    return f"""---
{front.to_yaml()}
---

# Synthetic pairs for BLEURT pre-training

{info["pairs"]} pairs of a reference and a candidate made from it, with the pre-training signals of
[BLEURT]({PAPER}) (Sellam, Das and Parikh, 2020, section 4), made by `bleurt-repro data synthetic` from
{info["segments"]} segments of `{info["input"]["name"]}`.

## Columns

`segment_id`: the segment's number. `reference`: the segment. `candidate`: what was made of it; it may be empty.
`perturbation`: how. `word_dropping`: whether words were then dropped. Then one list of numbers a signal. The numbers
are as computed; standardise the regression signals by the means and deviations below, which `dataset_info.json` holds
in full.

{_table(["signal", "loss", "number", "mean", "standard deviation"], signals)}

## Pairs

{_table(["made by", "pairs"], counts)}

`identical` counts pairs of any kind whose candidate equals the reference. Means of the signals:

{means_table(info["signals"], report)}

## Made by

{_table(["model", "name", "revision", "content hash"], models)}

Seed {config["seed"]}; beam {config["beam_size"]}, up to {config["max_masks"]} masks, {config["masks_per_pass"]} filled
between two runs of the model; words dropped from {config["dropping_rate"]:.0%} of the pairs. `recipe.json` holds all
options. {sum(info["skipped"].values())} rows of the input or perturbations were left out; `skipped.jsonl`
in the folder where the pairs were made names them.

## Limits

The candidates are made by models and the signals are those models' opinions: they teach a metric what the models know.
The licence and the content of the references are those of the input.

## Citation

Sellam, Das and Parikh (2020), BLEURT: Learning Robust Metrics for Text Generation, ACL. {PAPER}
"""
