r"""RoBLEURT's five tables as far as the data allow: sources, combination, encoders, pre-training, denoising.

    bleurt-repro experiment robleurt --config experiment_robleurt_mini --data ratings --test wmt17.jsonl \
        --encoder SRC --encoder-nosrc NOSRC --output OUT
    bleurt-repro experiment robleurt --data ratings --test wmt17.jsonl --encoder SRC --encoders large=LARGER --output OUT

DATA has the ratings to train and to validate on, with sources, as `bleurt-repro data wmt` or `data ratings` writes them.
OUT gets results.json and, drawn from it alone, tables.md and the report of all rows. Each model and its scores are a
cell: a killed run resumes. The paper measures daRR on WMT 2020; here it is whatever the test ratings allow.
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
from bleurt_repro.training.experiments.report import draw_averages, draw_comparisons, write_report
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
    "1": "Table 1: beside other metrics",
    "2": "Table 2: without sources, with sources, combined",
    "3": "Table 3: encoders",
    "4": "Table 4: without and with pre-training",
    "5": "Table 5: what is done with noisy ratings",
}


@dataclass
class RobleurtOptions:
    """Which ratings and encoders, and what is done with noisy ratings."""

    output: str = field(metadata={"help": "Folder to write."})
    data: str = field(metadata={"help": "Folder with train and validation ratings, with sources, and test."})
    test: str | None = field(default=None, metadata={"help": "Test ratings, if they are elsewhere."})
    encoder_nosrc: str | None = field(default=None, metadata={"help": "Encoder without sources; default: encoder."})
    pretrained_nosrc: str | None = field(
        default=None, metadata={"help": "It, trained on pseudo-labels; default: none."}
    )
    encoders: list[str] = field(
        default_factory=list, metadata={"help": "NAME=ENCODER: others to compare with, with sources (table 3)."}
    )
    noise: str = field(
        default="rescore",
        metadata={"help": "What all other tables' models do with noisy ratings: rescore, remove, mark."},
    )
    noisy_share: float | None = field(
        default=None,
        metadata={"help": "Of the ratings; default: 0.2, or the paper's 0.96 with --judges COMET=... and BLEURT=..."},
    )
    noise_within: str = field(
        default=WHOLE, metadata={"help": "Where ranks are counted: dataset, as in the paper, or year."}
    )
    judges: list[str] = field(
        default_factory=list,
        metadata={"help": "NAME=FILE: scores of the training ratings by other metrics, which judge noise, too."},
    )
    noisy_years: list[int] = field(default_factory=list, metadata={"help": "Where to look for noise; default: all."})
    tokens_src: int | None = field(default=None, metadata={"help": "Most tokens with sources; the paper: 192."})
    tokens_nosrc: int | None = field(default=None, metadata={"help": "Most tokens without sources; the paper: 128."})
    portions: int = field(
        default=2, metadata={"help": "Judges of noise in each setting, each without one such portion of the ratings."}
    )
    min_difference: float = field(default=25.0, metadata={"help": "Of raw scores that make a pair of daRR."})

    def __post_init__(self) -> None:
        if self.noise not in METHODS:
            raise ValueError(f"noise must be one of {', '.join(METHODS)}, found {self.noise!r}")
        if self.portions < 2:
            raise ValueError(f"portions must be 2 or more, found {self.portions}")
        if self.noise_within not in (WHOLE, YEAR):
            raise ValueError(f"noise_within must be {WHOLE} or {YEAR}, found {self.noise_within!r}")

    @property
    def noise_settings(self) -> dict[str, Any]:
        """Where noise is looked for, as arguments of `denoise`."""
        names = [item.partition("=")[0] for item in self.judges]
        share = default_share(names) if self.noisy_share is None else self.noisy_share
        return {"share": share, "years": self.noisy_years, "within": self.noise_within}


def main(words: Sequence[str]) -> Result:
    """Run the experiment as the module's docstring says."""
    return run_robleurt(*read_options((RobleurtOptions, MetricOptions, ModelOptions), words))


def run_robleurt(options: RobleurtOptions, metrics: MetricOptions, models: ModelOptions) -> Result:
    """Train and measure the rows of all tables, and write and return the results.

    Args:
        options: which ratings and encoders, and what is done with noisy ratings.
        metrics: which other metrics are measured.
        models: the encoder with sources, and how models are fine-tuned.

    Raises:
        FileNotFoundError: if the data are not there.
        ValueError: if no encoder is named, or ratings have no sources.
    """
    from bleurt_repro.training.experiments.trained_models import FineTuning
    from bleurt_repro.training.metrics.measure import measure_rows
    from bleurt_repro.training.metrics.rows import signatures
    from bleurt_repro.training.metrics.samples import data_record

    if not models.encoder:
        raise ValueError("name an --encoder: what RoBLEURT-Src is trained from")
    files, tables = _read(options)
    cells = Cells(Path(options.output) / CELLS)
    training = FineTuning(Path(options.output), cells, models, metrics.scorer_options)
    work = _Run(options, models, training, tables, _joined(tables["test"], tables["validation"]))
    rows, members, sections = _rows(work, metrics, cells)
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
            "denoising": _denoising(work),
            "uncertainty": _uncertainty(members, tables),
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
    """What all rows of one run share."""

    options: RobleurtOptions
    models: ModelOptions
    training: FineTuning
    tables: dict[str, pandas.DataFrame]
    texts: Texts  # of the test ratings, then of the validation ratings, on which combinations are tuned

    def start(self, setting: str, pretrained: bool = True) -> str:
        encoder, before = self.models.encoder, self.models.pretrained
        if setting == NOSRC:
            encoder, before = self.options.encoder_nosrc or encoder, self.options.pretrained_nosrc
        assert encoder is not None
        return before if pretrained and before else encoder

    def row(self, name: str, setting: str, start: str, noise: str) -> Row:
        """Train one model a seed on ratings of one kind, and score with each."""
        data = partial(self.files, noise)
        return self.training.row(
            name, start, lambda _: data(), self.texts, {"noise": NOISE[noise]}, self.reading(setting)
        )

    def reading(self, setting: str) -> dict[str, Any]:
        """Return the settings of fine-tuning that say what is read."""
        tokens = {SRC: self.options.tokens_src, NOSRC: self.options.tokens_nosrc}[setting]
        return {"layout": LAYOUT_OF[setting], **({"max_length": tokens} if tokens else {})}

    def files(self, noise: str) -> tuple[Path, Path]:
        """Write the training ratings as denoised, and those to validate on."""
        from bleurt_repro.training.denoise import denoise
        from bleurt_repro.training.experiments.trained_models import write_ratings

        rows = _records(self.tables["train"])
        done = denoise(rows, self.judges, method=noise, **self.options.noise_settings)
        folder = Path(self.options.output) / "data"
        train = write_ratings(folder / f"train-{noise}.jsonl", done.rows)
        return train, write_ratings(folder / "validation.jsonl", _records(self.tables["validation"]))

    @cached_property
    def judges(self) -> list[Any]:
        """Scores of the training ratings by other metrics, and by models each trained without a portion of them."""
        from bleurt_repro.training.metrics.rows import read_score_file
        from bleurt_repro.training.metrics.samples import rating_texts

        texts = rating_texts(self.tables["train"])
        others = [read_score_file(item, texts).vectors[0] for item in self.options.judges]
        return others + [
            self._judge(setting, portion, texts)
            for setting in (SRC, NOSRC)
            for portion in range(self.options.portions)
        ]

    def _judge(self, setting: str, portion: int, texts: Texts) -> Any:
        from bleurt_repro.training.experiments.trained_models import write_ratings

        folder = Path(self.options.output) / "data"
        rows = _records(self.tables["train"])
        places = {reference: i for i, reference in enumerate(dict.fromkeys(row["reference"] for row in rows))}
        kept = [row for row in rows if places[row["reference"]] % self.options.portions != portion]
        files = (
            write_ratings(folder / f"portion{portion}-of-{self.options.portions}.jsonl", kept),
            write_ratings(folder / "validation.jsonl", _records(self.tables["validation"])),
        )
        training = replace(self.training, options=replace(self.models, seeds=[portion + 1]))
        name, more = f"judge {setting} {portion}", self.reading(setting)
        return training.row(name, self.start(setting), lambda _: files, texts, more=more).vectors[0]


def _rows(work: _Run, metrics: MetricOptions, cells: Any) -> tuple[list[Row], np.ndarray, dict[str, list[str]]]:
    """Return the rows on the test ratings, all members' scores on test and validation, and which rows each table has."""
    from bleurt_repro.training.metrics.rows import Row, score_metrics
    from bleurt_repro.training.metrics.samples import rating_texts

    noise, size = work.options.noise, len(work.tables["test"])
    own = {setting: work.row(setting, setting, work.start(setting), noise) for setting in (NOSRC, SRC)}
    rows = {**own, BOTH: _combined(list(own.values()), work.tables["validation"])}
    sections = {"2": [NOSRC, SRC, BOTH], "3": [SRC], "4": [SRC], "5": []}
    for item in work.options.encoders:
        name, _, encoder = item.partition("=")
        if not encoder:
            raise ValueError(f"an encoder is named as NAME=ENCODER, found {item!r}")
        rows[f"{SRC}, {name}"] = work.row(f"{SRC}, {name}", SRC, encoder, noise)
        sections["3"].append(f"{SRC}, {name}")
    if work.models.pretrained:
        name = f"{SRC}, without pre-training"
        rows[name] = work.row(name, SRC, work.start(SRC, pretrained=False), noise)
        sections["4"].insert(0, name)
    for method, shown in NOISE.items():
        name = SRC if method == noise else f"{SRC}, {shown}"
        if name not in rows:
            rows[name] = work.row(name, SRC, work.start(SRC), method)
        sections["5"].append(name)
    others = score_metrics(rating_texts(work.tables["test"]), cells, metrics)
    sections["1"] = [*(row.name for row in others), BOTH]
    members = np.array([vector for row in own.values() for vector in row.vectors])
    trimmed = [
        Row(row.name, row.kind, [v[:size] for v in row.vectors], row.signature, row.notes) for row in rows.values()
    ]
    kept = {table: names for table, names in sorted(sections.items()) if len(names) > 1}
    return [*trimmed, *others], members, kept


def _combined(rows: Sequence[Row], validation: pandas.DataFrame) -> Row:
    """Combine all models of both settings, weighted on the validation ratings, which stand last in each vector."""
    from bleurt_repro.training.combine import tune_weights
    from bleurt_repro.training.metrics.rows import Row

    scores = np.array([vector for row in rows for vector in row.vectors])
    vectors = standardise(scores, by=scores[:, -len(validation) :])
    weights = tune_weights(vectors[:, -len(validation) :], validation["score"].to_numpy(float))
    signature = " + ".join(f"{weight:.4f} x ({row.signature})" for row, weight in _weighted(rows, weights))
    return Row(BOTH, "model", [weights @ vectors], signature, {"weights": weights.tolist()})


def _weighted(rows: Sequence[Row], weights: np.ndarray) -> list[tuple[Row, float]]:
    owners = [row for row in rows for _ in row.vectors]
    return list(zip(owners, weights.tolist(), strict=True))


def _uncertainty(members: np.ndarray, tables: dict[str, pandas.DataFrame]) -> dict[str, Any]:
    """Correlate the members' spread with the error of their mean on the test ratings."""
    from bleurt_repro.training.metrics.statistics import pearson_r, spearman_rho

    by = members[:, -len(tables["validation"]) :]
    scores = standardise(members, by)[:, : len(tables["test"])]
    spread = scores.std(axis=0)
    ratings = tables["test"]["score"].to_numpy(float)
    error = np.abs(standardise(scores.mean(axis=0)) - standardise(ratings))
    figures = {"pearson_r": pearson_r(spread, error), "spearman_rho": spearman_rho(spread, error)}
    return {"members": len(members), "mean_spread": float(spread.mean()), **figures}


def _denoising(work: _Run) -> dict[str, Any]:
    from bleurt_repro.training.denoise import denoise

    rows = _records(work.tables["train"])
    options = work.options
    done = denoise(rows, work.judges, method="mark", **options.noise_settings)
    settings = {name: options.noise_settings[name] for name in ("share", "within")}
    return {"judges": len(work.judges), **settings, "by_year": done.by_year}


def _joined(*tables: pandas.DataFrame) -> Texts:
    import pandas

    from bleurt_repro.training.metrics.samples import rating_texts

    return rating_texts(pandas.concat(tables, ignore_index=True))


def _records(table: pandas.DataFrame) -> list[dict[str, Any]]:
    columns = ["year", "lp", "segment_id", "system", "source", "reference", "candidate", "score"]
    chosen = table[columns]
    records = chosen.astype(object).where(chosen.notna(), None).to_dict("records")
    return [{**record, "year": None if record["year"] is None else int(record["year"])} for record in records]


def _samples(table: pandas.DataFrame, min_difference: float) -> list[Sample]:
    """Kendall tau of all ratings and, where raw scores lie far enough apart, daRR."""
    from bleurt_repro.training.metrics.samples import rating_samples, raw_score_samples

    ranks = raw_score_samples(table, "lp", min_difference) if table["raw_score"].notna().all() else []
    return [*rating_samples(table, "lp", ("kendall_tau",)), *ranks]


def draw_table(results: Mapping[str, Any]) -> str:
    """Draw each of the paper's tables that has two rows or more, and the figures beside them.

    Args:
        results: of the experiment.
    """
    rows = {row["name"]: row for row in results["rows"]}
    parts = []
    for number, names in results["tables"].items():
        own = {**results, "rows": [rows[name] for name in names], "published": []}
        parts += [f"## {TITLES[number]}\n", draw_rows(own)]
    noise, spread = results["denoising"], results["uncertainty"]
    parts.append(f"## Noise, by {noise['judges']} judges\n")
    parts += [
        f"- {year}: {found['noisy']} of {found['ratings']} ratings\n" for year, found in noise["by_year"].items()
    ]
    parts.append(
        f"\n## Uncertainty\n\nThe spread of {spread['members']} members and the absolute error of their mean: "
        f"Pearson r {spread['pearson_r']:.3f}, Spearman rho {spread['spearman_rho']:.3f}.\n"
    )
    return "\n".join(parts)
