"""The dataset card and the printed report of a set of synthetic pairs, made from its record and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bleurt_repro.datasets_builders.fingerprints import configuration_name

PAPER = "https://aclanthology.org/2020.acl-main.704"
# The Hub's classes of size: https://huggingface.co/docs/hub/datasets-cards
SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay out rows as a Markdown table, aligned so that it reads as plain text too.

    Args:
        header: names of the columns.
        rows: cells; numbers are written with three significant digits or more.
    """
    cells = [[str(name) for name in header], *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def means_table(signals: Sequence[dict[str, Any]], report: dict[str, Any]) -> str:
    """Show the mean of each signal for each kind of pairs.

    Args:
        signals: the description of each signal.
        report: as `synthetic_summary.summarise` gives it.
    """
    groups = list(report["signal_means"])
    rows: list[list[Any]] = [["pairs", *(report["counts"][group] for group in groups)]]
    for item in signals:
        for i, value in enumerate(item["values"]):
            label = item["name"] if item["size"] == 1 else f"{item['name']} {value}"
            rows.append([label, *(report["signal_means"][group][item["name"]][i] for group in groups)])
    return markdown_table(["mean of", *groups], rows)


def stages_table(report: dict[str, Any]) -> str:
    """Show how fast each stage was, in seconds of all processes together."""
    rows = [
        [stage, item["pairs"], item["seconds"], item["pairs_per_second"]] for stage, item in report["stages"].items()
    ]
    return markdown_table(["stage", "pairs", "seconds", "pairs per second"], rows)


def report_text(info: dict[str, Any], report: dict[str, Any]) -> str:
    """Give the report for a terminal: counts, speed, means and sampled rows."""
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

{markdown_table(["signal", "loss", "number", "mean", "standard deviation"], signals)}

## Pairs

{markdown_table(["made by", "pairs"], counts)}

`identical` counts pairs of any kind whose candidate equals the reference. Means of the signals:

{means_table(info["signals"], report)}

## Made by

{markdown_table(["model", "name", "revision", "content hash"], models)}

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
