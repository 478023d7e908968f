"""Summarise a finished set of synthetic pairs: its record, its dataset card, and a report of counts, speed and
samples.

All are computed from the parts in the folder, whichever processes made them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.datasets_builders.fingerprints import configuration_name
from bleurt_repro.datasets_builders.synthetic.parts import DATA_FOLDER, INFO_FILE, PartFiles, to_json
from bleurt_repro.datasets_builders.synthetic.segments import Skipped, general_reason
from bleurt_repro.metric.files.tables import markdown_table
from bleurt_repro.metric.files.writing import atomic_folder, write_json_lines, write_text

if TYPE_CHECKING:
    from pyarrow import Table

PAPER = "https://aclanthology.org/2020.acl-main.704"
# Size categories of the Hub: https://huggingface.co/docs/hub/datasets-cards
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
IDENTICAL = "identical"  # group of the pairs whose candidate equals the reference


def summarise(
    folder: Path,
    recipe: dict[str, Any],
    signals: Sequence[dict[str, Any]],
    records: Sequence[dict[str, Any]],
    rows: int,
    skipped: Sequence[Skipped],
) -> dict[str, Any]:
    """Write the record, the report, the log of skipped rows and the card beside the parts.

    They replace those of a smaller set, together with its parts.

    Args:
        folder: the output folder, with all parts finished.
        recipe: result of `make.make_recipe`.
        signals: description of each signal.
        records: records of the parts, in order.
        rows: number of rows of the input that were read.
        skipped: rows of the input that gave no segment.

    Returns:
        The report.
    """
    with atomic_folder(folder, last=INFO_FILE) as unfinished:
        PartFiles(folder, recipe["fingerprint"]).gather(unfinished, records)
        return _write_summary(unfinished, recipe, signals, records, rows, skipped)


def _write_summary(
    folder: Path,
    recipe: dict[str, Any],
    signals: Sequence[dict[str, Any]],
    records: Sequence[dict[str, Any]],
    rows: int,
    skipped: Sequence[Skipped],
) -> dict[str, Any]:
    overall, by_group = _moments(folder, signals, len(records))
    left_out = [row.to_dict() for row in skipped] + [row for record in records for row in record["skipped"]]
    counts = {group: moments["count"] for group, moments in sorted(by_group.items())}
    # 1. The record: recipe, counts, moments by which training standardises the signals, and parts with their hashes.
    info = {
        **recipe,
        "pairs": sum(record["pairs"] for record in records),
        "segments": sum(record["segments"] for record in records),
        "input_rows": rows,
        "skipped": dict(Counter(general_reason(row["reason"]) for row in left_out).most_common()),
        "counts": counts,
        "signals": [
            {**signal, "mean": overall[signal["name"]].mean.tolist(), "std": overall[signal["name"]].std.tolist()}
            for signal in signals
        ],
        "parts": [
            {"file": _file_name(record["part"]), "sha256": record["sha256"], "pairs": record["pairs"]}
            for record in records
        ],
    }
    # 2. The report, for people.
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


def _file_name(number: int) -> str:
    return f"{DATA_FOLDER}/part-{number:05d}.parquet"


def _tables(folder: Path, count: int) -> Iterator[Table]:
    import pyarrow.parquet as pq

    for number in range(count):
        yield pq.read_table(folder / _file_name(number))


def signal_values(table: Table, name: str, size: int) -> np.ndarray:
    """Return the numbers of a signal, shape (pairs, size), float64."""
    return table[name].combine_chunks().flatten().to_numpy().reshape(-1, size).astype(np.float64)


def _moments(
    folder: Path, signals: Sequence[dict[str, Any]], part_count: int
) -> tuple[dict[str, Moments], dict[str, dict[str, Any]]]:
    """Return the moments of each signal over all pairs, and, for each group of pairs, its count and mean signals."""
    overall = {signal["name"]: Moments(signal["size"]) for signal in signals}
    grouped: dict[str, dict[str, Moments]] = {}
    counts: Counter[str] = Counter()
    for table in _tables(folder, part_count):
        rows_by_group = _rows_by_group(table)
        counts.update({group: len(rows) for group, rows in rows_by_group.items()})
        for signal in signals:
            name, size = signal["name"], signal["size"]
            numbers = signal_values(table, name, size)
            overall[name].add(numbers)
            for group, rows in rows_by_group.items():
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
    """Return the row indices of each group; identical pairs are in two groups."""
    groups: dict[str, list[int]] = {}
    columns = (table[name].to_pylist() for name in ("perturbation", "word_dropping", "reference", "candidate"))
    for i, (perturbation, dropping, reference, candidate) in enumerate(zip(*columns, strict=True)):
        groups.setdefault(group_name(perturbation, dropping), []).append(i)
        if reference == candidate:
            groups.setdefault(IDENTICAL, []).append(i)
    return groups


def _stages(records: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Add up the seconds and pairs of each stage over all parts, and so over all processes."""
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
    """Draw some rows at random, the same rows for the same data."""
    import pyarrow.parquet as pq

    total = sum(record["pairs"] for record in records)
    sample = np.sort(np.random.default_rng(seed).choice(total, size=min(SAMPLED_ROWS, total), replace=False))
    rows, start = [], 0
    for record in records:
        indices = [int(i) - start for i in sample if start <= i < start + record["pairs"]]
        if indices:
            rows += pq.read_table(folder / _file_name(record["part"])).take(indices).to_pylist()
        start += record["pairs"]
    return rows


class Moments:
    """Count, mean and standard deviation of columns of numbers that arrive in blocks.

    Args:
        size: number of columns.
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
        """Join at least one sample, each given by its count, means and standard deviations."""
        moments = cls(len(samples[0][1]))
        for count, mean, std in samples:
            moments._join(count, np.asarray(mean), np.asarray(std) ** 2 * count)
        return moments

    def _join(self, added: int, mean: np.ndarray, squares: np.ndarray) -> None:
        # Chan, Golub and LeVeque (1979) join the moments of two samples without loss of digits.
        count = self.count + added
        step = mean - self.mean
        self._squares += squares + step**2 * self.count * added / count
        self.mean = self.mean + step * added / count
        self.count = count

    @property
    def std(self) -> np.ndarray:
        """The population standard deviation of the rows, shape (size,)."""
        return np.sqrt(self._squares / max(self.count, 1))


def group_name(perturbation: str, word_dropping: bool) -> str:
    """Return the name of a pair's group in counts and tables."""
    return f"{perturbation}+word_dropping" if word_dropping else perturbation


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as a Markdown table, with at least three significant digits."""
    return markdown_table(header, [[_rounded(cell) for cell in row] for row in rows])


def _rounded(value: Any) -> Any:
    return f"{value:.{3 if abs(value) < 10 else 1}f}" if isinstance(value, float) else value


def means_table(signals: Sequence[dict[str, Any]], report: dict[str, Any]) -> str:
    """Return a Markdown table of the mean of each signal for each group of pairs.

    Args:
        signals: description of each signal.
        report: result of `summarise`.
    """
    groups = list(report["signal_means"])
    rows: list[list[Any]] = [["pairs", *(report["counts"][group] for group in groups)]]
    for signal in signals:
        for i, value in enumerate(signal["values"]):
            label = signal["name"] if signal["size"] == 1 else f"{signal['name']} {value}"
            rows.append([label, *(report["signal_means"][group][signal["name"]][i] for group in groups)])
    return _table(["mean of", *groups], rows)


def stages_table(report: dict[str, Any]) -> str:
    """Return a Markdown table of the speed of each stage, in seconds of all processes together."""
    rows = [
        [name, stage["pairs"], stage["seconds"], stage["pairs_per_second"]] for name, stage in report["stages"].items()
    ]
    return _table(["stage", "pairs", "seconds", "pairs per second"], rows)


def report_text(info: dict[str, Any], report: dict[str, Any]) -> str:
    """Return the report for a terminal: counts, speed, means and sampled rows."""
    skipped = ", ".join(f"{count} {reason}" for reason, count in report["skipped"].items()) or "none"
    rows = [
        f"[{group_name(row['perturbation'], row['word_dropping'])}]\n  {row['reference']}\n  {row['candidate']}"
        for row in report["sampled_rows"]
    ]
    truncated = ", ".join(f"{count} by {name}" for name, count in report["truncated"].items() if count) or "none"
    return "\n\n".join(
        [
            f"{report['pairs']} pairs from {report['segments']} segments; {report['input_rows']} rows read; "
            f"skipped: {skipped}",
            f"Texts truncated to a model's length: {truncated}",
            stages_table(report),
            means_table(info["signals"], report),
            "Sampled rows:\n" + "\n".join(rows),
        ]
    )


def card(info: dict[str, Any], report: dict[str, Any]) -> str:
    """Return the dataset card.

    Args:
        info: record of the data.
        report: result of `summarise`.
    """
    from huggingface_hub import DatasetCardData

    config = info["config"]
    name = configuration_name("pairs", (part_file["sha256"] for part_file in info["parts"]))
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
        [signal["name"], signal["loss"], value, mean, std]
        for signal in info["signals"]
        for value, mean, std in zip(signal["values"], signal["mean"], signal["std"], strict=True)
    ]
    counts = [[group, count] for group, count in info["counts"].items()]
    models = [
        [role, model["name"], model.get("revision", ""), model["sha256"]] for role, model in info["models"].items()
    ]
    return f"""---
{front.to_yaml()}
---

# Synthetic pairs for BLEURT pre-training

{info["pairs"]} pairs of a reference and a candidate made from it, with the pre-training signals of
[BLEURT]({PAPER}) (Sellam, Das and Parikh, 2020, section 4), made by `bleurt-repro data synthetic` from
{info["segments"]} segments of `{info["input"]["name"]}`.

## Columns

`segment_id`: number of the segment. `reference`: the segment. `candidate`: the perturbed segment; it may be empty.
`perturbation`: name of the perturbation. `word_dropping`: whether words were then dropped. Then one list of numbers
per signal. The numbers are as computed; standardise the regression signals by the means and standard deviations below,
which `dataset_info.json` has in full.

{_table(["signal", "loss", "number", "mean", "standard deviation"], signals)}

## Pairs

{_table(["made by", "pairs"], counts)}

`identical` counts the pairs whose candidate equals the reference. Means of the signals:

{means_table(info["signals"], report)}

## Made by

{_table(["model", "name", "revision", "content hash"], models)}

Seed {config["seed"]}; beam {config["beam_size"]}, up to {config["max_masks"]} masks, {config["masks_per_pass"]} filled
between two runs of the model; words dropped from {config["dropping_rate"]:.0%} of the pairs; back-translated through
{", ".join(config["pivots"]) or "no language"}; ROUGE of {config["rouge_implementation"]}. `recipe.json` has all
options. {sum(info["skipped"].values())} rows of the input or perturbations were left out; `skipped.jsonl` in the
folder where the pairs were made names them.

## Limits

Models make the candidates and compute the signals: a metric learns from them what these models know.
The licence and the content of the references are those of the input.

## Citation

Sellam, Das and Parikh (2020), BLEURT: Learning Robust Metrics for Text Generation, ACL. {PAPER}
"""
