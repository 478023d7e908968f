r"""Quality drift (BLEURT, section 5.2, figures 1 and 2): train on worse translations, test on better ones.

    bleurt-repro experiment drift --config experiment_drift_mini --data ratings/2017 --encoder ENCODER \
        --pretrained PRETRAINED --output OUT
    bleurt-repro experiment drift --data ratings/2017 --baselines sentbleu --checkpoint ORG/NAME --output OUT

DATA is what `bleurt-repro data wmt` wrote for 2017: train, validation and test. OUT gets results.json and, drawn from it
alone, table.md, figure1 (densities of the ratings) and figure2 (agreement against test skew, one line for each training
skew), each as PNG and SVG. Scores are kept in OUT/cells: a killed run resumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.training.experiments.options import ModelOptions, command, read_options
from bleurt_repro.training.experiments.report import (
    draw_frame,
    error_bars,
    overlap_section,
    percent,
    style,
    write_report,
)
from bleurt_repro.training.metrics.cells import CELLS, Cells
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.results import Result

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bleurt_repro.training.metrics.rows import Row, Texts

# BLEURT, section 5.2 and B.3.
ALPHAS = (0.0, 0.5, 1.0, 1.5, 3.0)
BINS = 10
DENSITY_BINS = 30
UNTRAINED = "metrics that are not trained"  # title of figure 2 without models
GREYS = ("#000000", "#666666", "#999999", "#BBBBBB")


@dataclass
class DriftOptions:
    """Which ratings, and how they are skewed."""

    output: str = field(metadata={"help": "Folder for results, tables and plots."})
    data: str = field(
        metadata={"help": "Folder that `bleurt-repro data wmt` wrote, with train, validation and test ratings."}
    )
    train_alphas: list[float] = field(
        default_factory=lambda: [*ALPHAS], metadata={"help": "Skews alpha of the training ratings."}
    )
    test_alphas: list[float] = field(
        default_factory=lambda: [*ALPHAS], metadata={"help": "Skews alpha of the test ratings."}
    )


def main(argv: Sequence[str]) -> Result:
    """Run the experiment with the options of a command line."""
    return run_drift(*read_options((DriftOptions, MetricOptions, ModelOptions), argv))


def run_drift(options: DriftOptions, metrics: MetricOptions, models: ModelOptions) -> Result:
    """Train and measure at every skew, and write and return the results.

    Args:
        options: ratings, and their skews.
        metrics: metrics to measure.
        models: models to train.

    Raises:
        FileNotFoundError: if the data are missing.
        ValueError: if there is no metric and no model, or ratings do not vary.
    """
    from bleurt_repro.training.experiments.wmt import data_file
    from bleurt_repro.training.metrics.rows import signatures
    from bleurt_repro.training.metrics.samples import data_record, rating_texts, read_ratings

    tables = {name: read_ratings(data_file(options.data, name), "lp") for name in ("train", "validation", "test")}
    rows = _rows(rating_texts(tables["test"]), tables, options, metrics, models)
    result = Result(
        kind="drift",
        command=command("drift", (options, metrics, models)),
        seed=metrics.seed,
        signatures=signatures(rows),
        data={name: data_record(data_file(options.data, name), len(tables[name])) for name in ("train", "test")},
        figures={
            "title": "Quality drift",
            "by": "lp",
            "resamples": metrics.resamples,
            "resample": metrics.resample,
            "train_alphas": options.train_alphas,
            "test_alphas": options.test_alphas,
            "densities": _densities(tables, options, metrics.seed),
            "by_test_alpha": [_measure_at(alpha, tables["test"], rows, metrics) for alpha in options.test_alphas],
        },
    )
    plots = {"figure1": draw_densities(result), "figure2": draw_lines(result)}
    write_report(options.output, result, {"table.md": draw_table(result)}, plots)
    return result


def bins_by_rank(scores: Sequence[float] | NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bin of each rating, from 1 for the worst tenth to 10 for the best; equal ratings count in their order."""
    order = np.argsort(np.asarray(scores, dtype=float), kind="stable")
    bins = np.empty(len(order), dtype=np.int64)
    bins[order] = np.arange(len(order)) * BINS // len(order) + 1
    return bins


def keep(scores: Sequence[float] | NDArray[np.float64], alpha: float, seed: int, best: bool = False) -> NDArray[Any]:
    """Draw ratings with probability 1 / B^alpha, where B is their bin from the worst, or 1 / (11 - B)^alpha.

    Args:
        scores: ratings.
        alpha: skew; 0 keeps all ratings.
        seed: seed of the draw; with the same seed, a larger skew keeps a subset of what a smaller one keeps.
        best: whether the best ratings are the most likely ones, as in testing; in training the worst are.

    Returns:
        ascending indices of the ratings that are kept.
    """
    bins = bins_by_rank(scores)
    random = np.random.default_rng(seed).random(len(bins))
    return np.flatnonzero(random < ((BINS + 1 - bins) if best else bins) ** -float(alpha))


def _rows(
    texts: Texts,
    tables: dict[str, pandas.DataFrame],
    options: DriftOptions,
    metrics: MetricOptions,
    models: ModelOptions,
) -> list[Row]:
    from bleurt_repro.training.experiments.trained_models import FineTuning, starts
    from bleurt_repro.training.metrics.rows import score_metrics

    if not (metrics.names_any or starts(models)):
        raise ValueError("nothing to measure: name an encoder to train, a checkpoint or a baseline")
    cells = Cells(Path(options.output) / CELLS)
    training = FineTuning(Path(options.output), cells, models, metrics.scorer_options)
    rows = [
        training.row(
            f"{name}, train {alpha:g}",
            start,
            partial(_skewed_files, Path(options.output) / "data", tables, alpha),
            texts,
            {"model": name, "train_alpha": alpha},
        )
        for name, start in starts(models)
        for alpha in options.train_alphas
    ]
    return [*rows, *score_metrics(texts, cells, metrics)]


def _skewed_files(folder: Path, tables: dict[str, pandas.DataFrame], alpha: float, seed: int) -> tuple[Path, Path]:
    """Write skewed ratings to train and to validate on; their bins are those of both together."""
    from bleurt_repro.training.experiments.trained_models import write_ratings

    size = len(tables["train"])
    scores = np.concatenate([tables["train"]["score"], tables["validation"]["score"]])
    indices = keep(scores, alpha, seed)
    sides = {"train": indices[indices < size], "validation": indices[indices >= size] - size}
    columns = ["lp", "source", "reference", "candidate", "score"]
    paths = []
    for name, side in sides.items():
        skewed = tables[name].iloc[side][columns]
        records = skewed.astype(object).where(skewed.notna(), None).to_dict("records")
        paths.append(write_ratings(folder / f"{name}-{alpha:g}-seed{seed}.jsonl", records))
    return paths[0], paths[1]


def _measure_at(alpha: float, table: pandas.DataFrame, rows: Sequence[Row], metrics: MetricOptions) -> dict[str, Any]:
    """Measure all rows on the test ratings of one skew."""
    from bleurt_repro.training.metrics.measure import measure_rows
    from bleurt_repro.training.metrics.samples import Sample, segment_numbers

    indices = keep(table["score"].to_numpy(), alpha, metrics.seed, best=True)
    groups = table.iloc[indices].groupby("lp").indices
    scores, segments = table["score"].to_numpy(float), segment_numbers(table)
    samples = [
        Sample("kendall_tau", str(lp), indices[i], scores[indices[i]], segments=segments[indices[i]])
        for lp, i in sorted(groups.items())
    ]
    return {"alpha": alpha, "records": len(indices), **measure_rows(rows, samples, metrics)}


def _densities(tables: dict[str, pandas.DataFrame], options: DriftOptions, seed: int) -> dict[str, Any]:
    """Compute the share of ratings that each skew keeps, and their density (figure 1)."""
    sides = {
        "train": np.concatenate([tables["train"]["score"], tables["validation"]["score"]]).astype(float),
        "test": tables["test"]["score"].to_numpy(float),
    }
    all_scores = np.concatenate(list(sides.values()))
    edges = np.linspace(all_scores.min(), all_scores.max(), DENSITY_BINS + 1)
    densities: dict[str, Any] = {"edges": edges.tolist()}
    for side, scores in sides.items():
        densities[side] = []
        for alpha in options.train_alphas if side == "train" else options.test_alphas:
            indices = keep(scores, alpha, seed, best=side == "test")
            density = np.histogram(scores[indices], edges, density=True)[0].tolist()
            densities[side].append({"alpha": alpha, "records": len(indices), "of": len(scores), "density": density})
    return densities


def draw_table(results: Mapping[str, Any]) -> str:
    """Return Kendall tau times 100 by test skew, one row per metric, and the share of ratings that each skew keeps."""
    import pandas

    columns = {
        f"test {skew['alpha']:g} (n = {skew['records']})": {
            row["name"]: percent(row["average"]["kendall_tau"], *row["average_intervals"]["kendall_tau"])
            for row in skew["rows"]
        }
        for skew in results["by_test_alpha"]
    }
    densities = results["densities"]
    alphas = [
        f"alpha {alpha:g}"
        for alpha in sorted({skew["alpha"] for side in ("train", "test") for skew in densities[side]})
    ]
    shares = {}
    for side in ("train", "test"):
        shares[f"{side} ratings kept"] = {
            f"alpha {skew['alpha']:g}": f"{skew['records']} of {skew['of']} ({percent(skew['records'] / skew['of'])} %)"
            for skew in densities[side]
        }
    return "\n".join(
        [
            "**Kendall tau** x 100 [95 % interval], average over language pairs, by skew of the test ratings\n",
            draw_frame(pandas.DataFrame(columns)),
            draw_frame(pandas.DataFrame(shares, index=alphas)),
            *overlap_section(results["by_test_alpha"][0]["rows"]),
        ]
    )


def draw_densities(results: Mapping[str, Any]) -> Figure:
    """Draw the densities of training and of test ratings for each skew (BLEURT, figure 1)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    first = None
    edges = results["densities"]["edges"]
    for number, (side, title) in enumerate((("train", "training"), ("test", "test")), start=1):
        first = axes = figure.add_subplot(1, 2, number, sharey=first)
        for i, skew in enumerate(results["densities"][side]):
            look = style(i)
            label = f"alpha {skew['alpha']:g}, n = {skew['records']}"
            axes.stairs(
                skew["density"], edges, color=look["color"], linestyle=look["linestyle"], linewidth=1.4, label=label
            )
        axes.set(title=f"{title} ratings", xlabel="human rating (standard deviations)", ylabel="density")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return figure


def draw_lines(results: Mapping[str, Any]) -> Figure:
    """Draw agreement against test skew: one panel per model, one line per training skew (BLEURT, figure 2)."""
    from matplotlib.figure import Figure

    rows = results["by_test_alpha"][0]["rows"]
    models = list(dict.fromkeys(row["model"] for row in rows if "model" in row)) or [UNTRAINED]
    figure = Figure(figsize=(max(4.6 * len(models), 6), 4.6), layout="constrained")
    first = None
    for number, model in enumerate(models, start=1):
        first = axes = figure.add_subplot(1, len(models), number, sharey=first)
        trained = [row for row in rows if row.get("model") == model]
        untrained = [row for row in rows if "model" not in row]
        for i, row in enumerate(trained):
            _draw_line(axes, results, row["name"], f"trained with skew {row['train_alpha']:g}", i, {})
        for i, row in enumerate(untrained):
            _draw_line(
                axes, results, row["name"], row["name"], i, {"color": GREYS[i % len(GREYS)], "marker": "x+1|"[i % 4]}
            )
        axes.set(title=model, xlabel="skew of the test ratings (alpha)", ylabel="Kendall tau x 100 (95 % interval)")
        axes.grid(alpha=0.3)
    # The legend is below the panels, which have the same lines: inside it would hide some of them.
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _draw_line(axes: Axes, results: Mapping[str, Any], name: str, label: str, i: int, look: dict[str, Any]) -> None:
    rows = [row for skew in results["by_test_alpha"] for row in skew["rows"] if row["name"] == name]
    values = [row["average"]["kendall_tau"] for row in rows]
    ends = [row["average_intervals"]["kendall_tau"] for row in rows]
    # Lines are shifted a little, so that intervals do not hide each other.
    x = [skew["alpha"] + 0.025 * i for skew in results["by_test_alpha"]]
    bars = error_bars(values, ends, 100)
    axes.errorbar(x, [100 * value for value in values], yerr=bars, label=label, **{**style(i), **look})
