r"""RoBLEURT's five tables as far as the data allow: sources, combination, encoders, pre-training, denoising.

    bleurt-repro experiment robleurt --config experiment_robleurt_mini --data ratings --test wmt17.jsonl \
        --encoder SRC --encoder-nosrc NOSRC --output OUT
    bleurt-repro experiment robleurt --data ratings --test wmt17.jsonl --encoder SRC --encoders large=LARGER --output OUT
    bleurt-repro experiment robleurt --config experiment_robleurt --data ratings --test wmt21.jsonl --folds 4 --seeds 1 2 3 4 --output OUT

DATA has the ratings to train and to validate on, with sources, as `bleurt-repro data wmt` or `data ratings` writes them. OUT
gets results.json and, drawn from it alone, tables.md and the report of all rows. Each model and its scores are a cell: a
killed run resumes. The paper measures daRR on WMT 2020; here the measures are those that the test ratings allow. Its values
are printed below each of our tables, from `published_robleurt.tsv` (daRR times 100, by table, model and language pair).

With `--folds 4` the validation ratings are divided as for the paper's submission to WMT 2021 (section 3.2): those with the
same source and reference stay together, the model of each seed validates on one fold, and the other folds train too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.metric.statistics import standardise
from bleurt_repro.training.denoise import METHODS, WHOLE, YEAR, default_share
from bleurt_repro.training.experiments.options import ModelOptions, command, read_options
from bleurt_repro.training.experiments.report import draw_averages, draw_comparisons, markdown, write_report
from bleurt_repro.training.experiments.report import draw_table as draw_rows
from bleurt_repro.training.metrics.cells import CELLS, Cells
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.results import Result

if TYPE_CHECKING:
    import pandas

    from bleurt_repro.training.experiments.trained_models import FineTuning
    from bleurt_repro.training.metrics.rows import Row, Texts
    from bleurt_repro.training.metrics.samples import Sample

SRC, NOSRC = "RoBLEURT-Src", "RoBLEURT-NoSrc"
LAYOUT_OF = {SRC: "robleurt-src", NOSRC: "robleurt-nosrc"}
BOTH = "RoBLEURT"
# Rows of the paper's table 5, by what is done with noisy ratings.
NOISE = {"mark": "full set", "remove": "noisy removed", "rescore": "noisy re-scored"}
TITLES = {
    "1": "Table 1: RoBLEURT and other metrics",
    "2": "Table 2: without sources, with sources, combined",
    "3": "Table 3: encoders",
    "4": "Table 4: without and with pre-training",
    "5": "Table 5: treatment of noisy ratings",
}
PUBLISHED_TABLE = Path(__file__).with_name("published_robleurt.tsv")
SOURCE = "Wan et al. (2021), https://aclanthology.org/2021.wmt-1.114"


@dataclass
class RobleurtOptions:
    """Which ratings and encoders, and how noisy ratings are treated."""

    output: str = field(metadata={"help": "Folder for results, tables and plots."})
    data: str = field(
        metadata={"help": "Folder with train and validation ratings, which have sources, and with test ratings."}
    )
    test: str | None = field(default=None, metadata={"help": "Test ratings, if they are not in that folder."})
    encoder_nosrc: str | None = field(
        default=None, metadata={"help": "Encoder of the models without sources; default: that of --encoder."}
    )
    pretrained_nosrc: str | None = field(
        default=None, metadata={"help": "That encoder after training on pseudo-labels; default: none."}
    )
    encoders: list[str] = field(
        default_factory=list, metadata={"help": "Further encoders with sources for table 3, as NAME=ENCODER."}
    )
    noise: str = field(
        default="rescore",
        metadata={"help": "Treatment of noisy ratings in tables 1 to 4: rescore, remove or mark (keep them)."},
    )
    noisy_share: float | None = field(
        default=None,
        metadata={
            "help": "Share of ratings that are noisy; default: 0.2, or the paper's 0.96 with --judges COMET=... BLEURT=..."
        },
    )
    noise_within: str = field(
        default=WHOLE, metadata={"help": "Set in which items are ranked: dataset, as in the paper, or year."}
    )
    judges: list[str] = field(
        default_factory=list,
        metadata={"help": "Further judges of noise: scores of the training ratings by other metrics, as NAME=FILE."},
    )
    noisy_years: list[int] = field(
        default_factory=list, metadata={"help": "Years in which to look for noise; default: all."}
    )
    tokens_src: int | None = field(
        default=None, metadata={"help": "Maximum number of tokens with sources; 192 in the paper."}
    )
    tokens_nosrc: int | None = field(
        default=None, metadata={"help": "Maximum number of tokens without sources; 128 in the paper."}
    )
    portions: int = field(
        default=2,
        metadata={"help": "Number of judges of noise with sources and without; each is trained without one portion."},
    )
    folds: int = field(
        default=0,
        metadata={"help": "Number of folds of the validation ratings, as described above; 4 in the paper, 0: none."},
    )
    min_difference: float = field(
        default=25.0,
        metadata={"help": "Smallest difference of raw scores, in points of 100, that makes a pair of daRR."},
    )

    def __post_init__(self) -> None:
        if self.noise not in METHODS:
            raise ValueError(f"noise must be one of {', '.join(METHODS)}, found {self.noise!r}")
        if self.portions < 2:
            raise ValueError(f"portions must be 2 or more, found {self.portions}")
        if self.folds < 0 or self.folds == 1:
            raise ValueError(f"folds must be 0 (none), or 2 or more, found {self.folds}")
        if self.noise_within not in (WHOLE, YEAR):
            raise ValueError(f"noise_within must be {WHOLE} or {YEAR}, found {self.noise_within!r}")

    @property
    def noise_settings(self) -> dict[str, Any]:
        """Share, years and set in which noise is looked for, as arguments of `denoise`."""
        names = [judge.partition("=")[0] for judge in self.judges]
        share = default_share(names) if self.noisy_share is None else self.noisy_share
        return {"share": share, "years": self.noisy_years, "within": self.noise_within}


def main(argv: Sequence[str]) -> Result:
    """Run the experiment with the options of a command line."""
    return run_robleurt(*read_options((RobleurtOptions, MetricOptions, ModelOptions), argv))


def run_robleurt(options: RobleurtOptions, metrics: MetricOptions, models: ModelOptions) -> Result:
    """Train and measure the rows of all tables, and write and return the results.

    Args:
        options: ratings, encoders, and treatment of noisy ratings.
        metrics: other metrics to measure.
        models: encoder with sources, and configuration of the fine-tuning.

    Raises:
        FileNotFoundError: if the data are missing.
        ValueError: if there is no encoder, or ratings have no sources.
    """
    from bleurt_repro.training.experiments.trained_models import FineTuning
    from bleurt_repro.training.metrics.measure import measure_rows
    from bleurt_repro.training.metrics.rows import signatures
    from bleurt_repro.training.metrics.samples import data_record

    if not models.encoder:
        raise ValueError("name an --encoder: RoBLEURT-Src is trained from it")
    files, tables = _read(options)
    cells = Cells(Path(options.output) / CELLS)
    training = FineTuning(Path(options.output), cells, models, metrics.scorer_options)
    run = _Run(options, models, training, tables, _joined(tables["test"], tables["validation"]))
    rows, members, sections = _rows(run, metrics, cells)
    result = Result(
        kind="robleurt",
        command=command("robleurt", (options, metrics, models)),
        seed=metrics.seed,
        signatures=signatures(rows),
        data={name: data_record(path, len(tables[name])) for name, path in files.items()},
        figures={
            "title": "RoBLEURT",
            "by": "lp",
            **measure_rows(rows, _samples(tables["test"], options.min_difference), metrics),
            "tables": sections,
            "denoising": _denoising(run),
            "uncertainty": _uncertainty(members, tables),
            "published_tables": read_published(),
            "published_source": SOURCE,
        },
    )
    texts = {"table.md": draw_rows(result), "comparisons.md": draw_comparisons(result)}
    write_report(
        options.output, result, {**texts, "tables.md": draw_table(result)}, {"robleurt": draw_averages(result)}
    )
    return result


def _read(options: RobleurtOptions) -> tuple[dict[str, Path], dict[str, pandas.DataFrame]]:
    """Read the three files of ratings.

    Raises:
        ValueError: if ratings have no sources.
    """
    from bleurt_repro.training.experiments.wmt import data_file
    from bleurt_repro.training.metrics.samples import read_ratings

    files = {name: data_file(options.data, name) for name in ("train", "validation")}
    files["test"] = Path(options.test) if options.test else data_file(options.data, "test")
    tables = {name: read_ratings(path, "lp") for name, path in files.items()}
    for name, table in tables.items():
        if missing := int(table["source"].isna().sum()):
            raise ValueError(f"{files[name]}: {missing} of {len(table)} ratings have no source, which {SRC} reads")
    return files, tables


@dataclass
class _Run:
    """Settings and data that all rows of a run share."""

    options: RobleurtOptions
    models: ModelOptions
    training: FineTuning
    tables: dict[str, pandas.DataFrame]
    texts: Texts  # of the test ratings, then of the validation ratings, on which combinations are tuned

    def start(self, setting: str, pretrained: bool = True) -> str:
        """Return what the models of a setting are fine-tuned from."""
        encoder, before = self.models.encoder, self.models.pretrained
        if setting == NOSRC:
            encoder, before = self.options.encoder_nosrc or encoder, self.options.pretrained_nosrc
        assert encoder is not None
        return before if pretrained and before else encoder

    def row(self, name: str, setting: str, start: str, noise: str) -> Row:
        """Train one model per seed on the ratings of one treatment of noise, and score with each."""
        notes = {"noise": NOISE[noise]}
        return self.training.row(name, start, partial(self.files, noise), self.texts, notes, self.inputs(setting))

    def inputs(self, setting: str) -> dict[str, Any]:
        """Return the settings of fine-tuning that decide what a model reads."""
        tokens = {SRC: self.options.tokens_src, NOSRC: self.options.tokens_nosrc}[setting]
        return {"layout": LAYOUT_OF[setting], **({"max_length": tokens} if tokens else {})}

    def files(self, noise: str, seed: int) -> tuple[Path, Path]:
        """Write the denoised ratings to train on, and those to validate on: with folds, one of them for each seed."""
        from bleurt_repro.datasets_builders.ratings.splits import segment_folds
        from bleurt_repro.training.denoise import denoise
        from bleurt_repro.training.experiments.trained_models import write_ratings
        from bleurt_repro.training.metrics.samples import rating_rows

        ratings, validation = rating_rows(self.tables["train"]), rating_rows(self.tables["validation"])
        denoised = denoise(ratings, self.judges, method=noise, **self.options.noise_settings).rows
        folder = Path(self.options.output) / "data"
        if not self.options.folds:
            train = write_ratings(folder / f"train-{noise}.jsonl", denoised)
            return train, write_ratings(folder / "validation.jsonl", validation)
        number = self.models.seeds.index(seed) % self.options.folds
        fold = set(segment_folds(validation, self.options.folds)[number])
        added = [row for i, row in enumerate(validation) if i not in fold]
        train = write_ratings(folder / f"train-{noise}-fold{number}.jsonl", [*denoised, *added])
        held_out = [row for i, row in enumerate(validation) if i in fold]
        return train, write_ratings(folder / f"validation-fold{number}.jsonl", held_out)

    @cached_property
    def judges(self) -> list[Any]:
        """Scores of the training ratings by other metrics, and by models that are trained without a portion of them."""
        from bleurt_repro.training.metrics.rows import read_score_file
        from bleurt_repro.training.metrics.samples import rating_texts

        texts = rating_texts(self.tables["train"])
        scores = [read_score_file(argument, texts).vectors[0] for argument in self.options.judges]
        return scores + [
            self._judge(setting, portion, texts)
            for setting in (SRC, NOSRC)
            for portion in range(self.options.portions)
        ]

    def _judge(self, setting: str, portion: int, texts: Texts) -> Any:
        """Return the scores of a model that is trained without one portion of the training ratings."""
        from bleurt_repro.training.experiments.trained_models import write_ratings
        from bleurt_repro.training.metrics.samples import rating_rows

        folder = Path(self.options.output) / "data"
        rows = rating_rows(self.tables["train"])
        numbers = {reference: i for i, reference in enumerate(dict.fromkeys(row["reference"] for row in rows))}
        training_rows = [row for row in rows if numbers[row["reference"]] % self.options.portions != portion]
        files = (
            write_ratings(folder / f"portion{portion}-of-{self.options.portions}.jsonl", training_rows),
            write_ratings(folder / "validation.jsonl", rating_rows(self.tables["validation"])),
        )
        training = replace(self.training, options=replace(self.models, seeds=[portion + 1]))
        name = f"judge {setting} {portion}"
        row = training.row(name, self.start(setting), lambda _: files, texts, settings=self.inputs(setting))
        return row.vectors[0]


def _rows(run: _Run, metrics: MetricOptions, cells: Any) -> tuple[list[Row], np.ndarray, dict[str, list[str]]]:
    """Train and score, and return the rows, the members of the combination, and the contents of the tables.

    Returns:
        rows on the test ratings; scores of all models of both settings on test and validation, shape (models, ratings); and
        the names of the rows of each table.
    """
    from bleurt_repro.training.metrics.rows import Row, score_metrics
    from bleurt_repro.training.metrics.samples import rating_texts

    noise, size = run.options.noise, len(run.tables["test"])
    # Table 2: both settings, and their combination.
    settings = {setting: run.row(setting, setting, run.start(setting), noise) for setting in (NOSRC, SRC)}
    validation = None if run.options.folds else run.tables["validation"]
    rows = {**settings, BOTH: _combine(list(settings.values()), len(run.tables["validation"]), validation)}
    sections = {"2": [NOSRC, SRC, BOTH], "3": [SRC], "4": [SRC], "5": []}
    # Table 3: other encoders.
    for argument in run.options.encoders:
        name, _, encoder = argument.partition("=")
        if not encoder:
            raise ValueError(f"an encoder is given as NAME=ENCODER, found {argument!r}")
        rows[f"{SRC}, {name}"] = run.row(f"{SRC}, {name}", SRC, encoder, noise)
        sections["3"].append(f"{SRC}, {name}")
    # Table 4: without pre-training on pseudo-labels.
    if run.models.pretrained:
        name = f"{SRC}, without pre-training"
        rows[name] = run.row(name, SRC, run.start(SRC, pretrained=False), noise)
        sections["4"].insert(0, name)
    # Table 5: the other treatments of noisy ratings.
    for method, title in NOISE.items():
        name = SRC if method == noise else f"{SRC}, {title}"
        if name not in rows:
            rows[name] = run.row(name, SRC, run.start(SRC), method)
        sections["5"].append(name)
    # Table 1: other metrics.
    metric_rows = score_metrics(rating_texts(run.tables["test"]), cells, metrics)
    sections["1"] = [*(row.name for row in metric_rows), BOTH]
    members = np.array([vector for row in settings.values() for vector in row.vectors])
    on_test = [
        Row(row.name, row.kind, [v[:size] for v in row.vectors], row.signature, row.notes) for row in rows.values()
    ]
    tables = {table: names for table, names in sorted(sections.items()) if len(names) > 1}
    return [*on_test, *metric_rows], members, tables


def _combine(rows: Sequence[Row], size: int, validation: pandas.DataFrame | None) -> Row:
    """Combine all models of both settings by a weighted mean of their standardised scores.

    Args:
        rows: rows whose vectors end with the scores of the validation ratings.
        size: number of validation ratings, on which scores are standardised.
        validation: ratings on which the weights are tuned; None for equal weights: with folds, most of the models were
            trained on any rating.
    """
    from bleurt_repro.training.combine import tune_weights
    from bleurt_repro.training.metrics.rows import Row

    scores = np.array([vector for row in rows for vector in row.vectors])
    vectors = standardise(scores, by=scores[:, -size:])
    weights = np.full(len(scores), 1 / len(scores))
    if validation is not None:
        weights = tune_weights(vectors[:, -size:], validation["score"].to_numpy(float))
    signature = " + ".join(f"{weight:.4f} x ({row.signature})" for row, weight in _weighted(rows, weights))
    return Row(BOTH, "model", [weights @ vectors], signature, {"weights": weights.tolist()})


def _weighted(rows: Sequence[Row], weights: np.ndarray) -> list[tuple[Row, float]]:
    owners = [row for row in rows for _ in row.vectors]
    return list(zip(owners, weights.tolist(), strict=True))


def _uncertainty(members: np.ndarray, tables: dict[str, pandas.DataFrame]) -> dict[str, Any]:
    """Return the correlation of the spread of the members with the error of their mean, on the test ratings."""
    from bleurt_repro.training.metrics.statistics import pearson_r, spearman_rho

    by = members[:, -len(tables["validation"]) :]
    scores = standardise(members, by)[:, : len(tables["test"])]
    spread = scores.std(axis=0)
    ratings = tables["test"]["score"].to_numpy(float)
    error = np.abs(standardise(scores.mean(axis=0)) - standardise(ratings))
    figures = {"pearson_r": pearson_r(spread, error), "spearman_rho": spearman_rho(spread, error)}
    return {"members": len(members), "mean_spread": float(spread.mean()), **figures}


def _denoising(run: _Run) -> dict[str, Any]:
    """Return how many ratings of each year are noisy, and by what settings."""
    from bleurt_repro.training.denoise import denoise
    from bleurt_repro.training.metrics.samples import rating_rows

    noise_settings = run.options.noise_settings
    denoised = denoise(rating_rows(run.tables["train"]), run.judges, method="mark", **noise_settings)
    settings = {name: noise_settings[name] for name in ("share", "within")}
    return {"judges": len(run.judges), **settings, "by_year": denoised.by_year}


def _joined(*tables: pandas.DataFrame) -> Texts:
    import pandas

    from bleurt_repro.training.metrics.samples import rating_texts

    return rating_texts(pandas.concat(tables, ignore_index=True))


def _samples(table: pandas.DataFrame, min_difference: float) -> list[Sample]:
    """Return samples of Kendall tau of all ratings and, if they have raw scores, of daRR."""
    from bleurt_repro.training.metrics.samples import rating_samples, raw_score_samples

    ranks = raw_score_samples(table, "lp", min_difference) if table["raw_score"].notna().all() else []
    return [*rating_samples(table, "lp", ("kendall_tau",)), *ranks]


def read_published() -> dict[str, dict[str, dict[str, float]]]:
    """Read the published values: daRR as a fraction of 1, by table, model and language pair."""
    from bleurt_repro.metric.files.records import read_records

    tables: dict[str, dict[str, dict[str, float]]] = {}
    for _, record in read_records(PUBLISHED_TABLE):
        row = tables.setdefault(str(record["table"]), {}).setdefault(record["model"], {})
        row[record["group"]] = round(float(record["value"]) / 100, 4)
    return tables


def draw_table(results: Mapping[str, Any]) -> str:
    """Return each of the paper's tables, ours above the published one, and the figures on noise and uncertainty.

    Args:
        results: results of the experiment; a table of ours with a single row is left out.
    """
    rows = {row["name"]: row for row in results["rows"]}
    sections = []
    for number, title in TITLES.items():
        names = results["tables"].get(number, [])
        published = results.get("published_tables", {}).get(number, {})
        if names or published:
            sections.append(f"## {title}\n")
        if names:
            sections.append(draw_rows({**results, "rows": [rows[name] for name in names], "published": []}))
        if published:
            cells = {
                model: {group: f"{100 * value:.1f}" for group, value in row.items()}
                for model, row in published.items()
            }
            sections += [f"**daRR** x 100 of WMT 2020, published: {results['published_source']}\n", markdown(cells)]
    noise, spread = results["denoising"], results["uncertainty"]
    sections.append(f"## Noise, by {noise['judges']} judges\n")
    sections += [
        f"- {year}: {counts['noisy']} of {counts['ratings']} ratings\n" for year, counts in noise["by_year"].items()
    ]
    sections.append(
        f"\n## Uncertainty\n\nThe spread of {spread['members']} members and the absolute error of their mean: "
        f"Pearson r {spread['pearson_r']:.3f}, Spearman rho {spread['spearman_rho']:.3f}.\n"
    )
    return "\n".join(sections)
