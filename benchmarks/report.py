"""Draw the table and the plot of `scoring.py` from its figures."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

OURS = "ours, exact"
HEAD = (
    "way",
    "how",
    "setting",
    "pairs/s",
    "exact over it",
    "it over exact",
    "share of matrix rate",
    "padded/real tokens",
    "largest difference",
    "GPU idle",
    "memory, MB",
)


def table(results: dict[str, Any]) -> str:
    """Return the figures as Markdown: one table, in which each peer says how it ran."""
    machine, model, versions = results["machine"], results["model"], results["versions"]
    rate = results["matrix_rate"]
    lines = [
        f"`{results['command']}`",
        "",
        f"{_model(results)}, {model['layers']} layers of {model['width']}; {machine['gpu'] or machine['processor']}"
        f" ({machine['instructions']}), {machine['threads']} thread(s); torch {versions['torch']}, transformers"
        f" {versions['transformers']}{_bert_score(versions)}; {results['tokens_per_pair']:.1f} tokens a pair; medians of"
        f" {len(results['ways'][0]['seconds'])} interleaved rounds; ratios are medians of the rounds' ratios;"
        f" matrix products {rate['median'] / 1e9:.0f} GFLOP/s"
        f" ({rate['smallest'] / 1e9:.0f} to {rate['largest'] / 1e9:.0f}).",
        "",
        "Run: the software itself. Simulated: its batches and padding, with our weights, on the `transformers` model. Random"
        " weights: its batches and padding, on a model of its architecture and size.",
        "",
        f"| {' | '.join(HEAD)} |",
        f"|{'---|' * len(HEAD)}",
    ]
    return "\n".join(lines + [_row(way, results) for way in results["ways"]]) + "\n"


def _model(results: dict[str, Any]) -> str:
    return "Random weights" if results["settings"]["size"] else str(results["settings"]["checkpoint"])


def _bert_score(versions: dict[str, str]) -> str:
    return f", bert-score {versions['bert-score']}" if "bert-score" in versions else ""


def ratio(results: dict[str, Any], over: dict[str, Any]) -> float | None:
    """Return how many times as fast as `over` the exact scorer is: the median over rounds."""
    exact = next((way for way in results["ways"] if way["name"] == OURS), None)
    if exact is None:
        return None
    pairs = zip(exact["seconds"], over["seconds"], strict=True)
    return statistics.median(b / a for a, b in pairs) * exact["pairs"] / over["pairs"]


def plot(results: dict[str, Any], file: Path) -> None:
    """Draw pairs per second."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4))
    names = [way["name"] + (", its size" if way["how"] == "random weights" else "") for way in results["ways"]]
    bars = axes.barh(
        names,
        [way["pairs_per_second"] for way in results["ways"]],
        color=["#2a7f62" if name.startswith("ours") else "#9aa5b1" for name in names],
    )
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel(
        f"pairs per second, {results['machine']['gpu'] or str(results['machine']['threads']) + ' thread(s)'}"
    )
    axes.set_title(f"{_model(results)}, {results['model']['layers']} layers of {results['model']['width']}")
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    pyplot.close(figure)


def _row(way: dict[str, Any], results: dict[str, Any]) -> str:
    times = ratio(results, way)
    difference, memory = way["largest_difference"], results["memory_mb"].get(way["name"])
    comparable = difference is not None or way["name"] == OURS
    cells = [
        way["name"],
        way["how"],
        way["setting"],
        f"{way['pairs_per_second']:.1f}",
        "" if times is None else f"{times:.2f}",
        "" if times is None else f"{1 / times:.2f}",
        f"{way['share_of_matrix_rate']:.0%}" if comparable else "",
        f"{way['padded_over_real_tokens']:.2f}" if comparable else "",
        "" if difference is None else f"{difference:.1e}",
        "" if way.get("idle_share") is None else f"{way['idle_share']:.0%}",
        "" if memory is None else f"{memory['scoring']:.0f}",
    ]
    return f"| {' | '.join(cells)} |"
