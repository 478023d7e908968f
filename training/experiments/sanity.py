"""The sanity experiment: minimal pairs, in which one candidate is right by construction, and candidates at the extremes.

    bleurt-repro experiment sanity --checkpoint bleurt-repro-mini --baselines sentbleu chrf++ --output OUT
    bleurt-repro experiment sanity --checkpoint ORG/NAME --references ratings.jsonl --output OUT

`minimal_pairs.py` describes the pairs, `extremes.py` the extremes: the reference itself, changed copies of it, unrelated and
empty text.

OUT gets results.json (shares, intervals, signatures, fingerprints of the data), failures.tsv (every pair judged wrongly),
and, drawn from results.json alone, table.md, sanity.png and sanity.svg.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.loading.checksums import file_records
from bleurt_repro.metric.statistics import CONFIDENCE
from bleurt_repro.training.experiments.extremes import (
    EMPTY,
    MOST_REFERENCES,
    RATED,
    UNRELATED,
    make_extremes,
    measure_extremes,
    read_references,
)
from bleurt_repro.training.experiments.minimal_pairs import (
    COLUMNS,
    OVERALL,
    TABLES,
    MinimalPair,
    count_by_type,
    count_low_copies,
    judge_pairs,
    read_minimal_pairs,
)
from bleurt_repro.training.experiments.options import command, read_options
from bleurt_repro.training.experiments.report import MARKERS, add_legend, draw_frame, write_report
from bleurt_repro.training.experiments.stress import Candidates, TestedMetric, failures_table, tested_metrics
from bleurt_repro.training.metrics.options import CACHE_HELP, DTYPE_HELP
from bleurt_repro.training.results import COLOURS, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Shares of pairs that a metric is expected to reach: over all pairs, and in each type.
EXPECTED_OVERALL = 0.85
EXPECTED_OF_TYPE = 0.70
FAILURE_COLUMNS = ("metric", "table", *COLUMNS, "score_better", "score_worse")
QUESTIONS = {
    "minimal_pairs": "against itself with an error in it",
    "near_copies": "against the reference with an error in it, which shares more words with it",
    "swapped_roles": "against itself with two participants exchanged",
    "free_paraphrases": "against itself with its meaning changed",
}


@dataclass
class SanityOptions:
    """What is tested, and on what."""

    output: str = field(metadata={"help": "Folder for results, table, plot and failures."})
    checkpoint: list[str] = field(
        default_factory=list, metadata={"help": "Checkpoints to test; checkpoints that read sources are refused."}
    )
    baselines: list[str] = field(
        default_factory=list, metadata={"help": "Baselines to test: sentbleu, chrf++, bertscore:ENCODER, ..."}
    )
    pairs: str | None = field(
        default=None,
        metadata={"help": "Table of type, reference, better and worse; default: the four tables of the package."},
    )
    references: str | None = field(
        default=None, metadata={"help": "Ratings, or text with one reference per line, to test the extremes on."}
    )
    most_references: int = field(
        default=MOST_REFERENCES, metadata={"help": "Maximum number of references, drawn at random."}
    )
    seed: int = field(default=0, metadata={"help": "Seed of the sample of references and of their candidates."})
    dtype: str = field(default="float32", metadata={"help": DTYPE_HELP})
    cache: str | None = field(default=None, metadata={"help": CACHE_HELP})

    def __post_init__(self) -> None:
        if self.most_references < 1:
            raise ValueError(f"most_references must be at least 1, found {self.most_references}")


def main(argv: Sequence[str]) -> Result:
    """Run the experiment with the options of a command line."""
    return run_sanity(*read_options((SanityOptions,), argv))


def run_sanity(options: SanityOptions, scorer_options: Mapping[str, Any] | None = None) -> Result:
    """Test every metric, and write and return the results.

    Args:
        options: what is tested, and on what.
        scorer_options: further arguments of `BleurtScorer`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if there is no metric, two have the same name, a baseline is unknown, or a file is malformed.
    """
    metrics = tested_metrics(options.checkpoint, options.baselines)
    scorer_options = {"dtype": options.dtype, "cache": options.cache, **(scorer_options or {})}
    files = {Path(options.pairs).stem: Path(options.pairs)} if options.pairs else TABLES
    tables = {name: read_minimal_pairs(path) for name, path in files.items()}
    extremes, references = None, {}
    if options.references:
        extremes = make_extremes(read_references(options.references), options.most_references, options.seed)
        references = {"references": {**file_records([options.references])[0], "seed": options.seed}}
    rows, failures = [], []
    for metric in metrics:
        row, judged = _test_metric(metric, tables, extremes, scorer_options)
        rows.append(row)
        failures += [{"metric": metric.label, **pair} for pair in judged if not pair["right"]]
    result = Result(
        kind="sanity",
        command=command("sanity", (options,)),
        seed=options.seed if options.references else None,
        signatures={row["name"]: row["signature"] for row in rows},
        data={name: {**file_records([path])[0], "pairs": len(tables[name])} for name, path in files.items()},
        figures={
            "confidence": CONFIDENCE,
            **references,
            "expected": {OVERALL: EXPECTED_OVERALL, "type": EXPECTED_OF_TYPE},
            "rows": rows,
        },
    )
    texts = {"failures.tsv": failures_table(FAILURE_COLUMNS, failures), "table.md": draw_table(result)}
    write_report(options.output, result, texts, {"sanity": draw_plot(result)})
    return result


def _test_metric(
    metric: TestedMetric, tables: dict[str, list[MinimalPair]], extremes: Candidates | None, options: dict[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the results of a metric, and all pairs as it judged them."""
    score = metric.open(options)
    row: dict[str, Any] = {"name": metric.label, "kind": metric.kind, "signature": "", "tables": {}}
    all_judged = []
    for table, pairs in tables.items():
        judged, row["signature"] = judge_pairs(pairs, score)
        shares = count_by_type(judged)
        row["tables"][table] = {
            "shares": shares,
            "below": below_expected(shares),
            "low_copies": count_low_copies(judged),
        }
        all_judged += [{"table": table, **pair} for pair in judged]
    if extremes:
        row["extremes"] = measure_extremes(extremes, score)
    return row, all_judged


def below_expected(shares: dict[str, dict[str, Any]]) -> list[str]:
    """Return the types, and `OVERALL`, whose share is lower than expected.

    Args:
        shares: shares by type, as `count_by_type` returns them.
    """
    return [
        name
        for name, figure in shares.items()
        if figure["share"] < (EXPECTED_OVERALL if name == OVERALL else EXPECTED_OF_TYPE)
    ]


def draw_table(results: Mapping[str, Any]) -> str:
    """Return the Markdown tables of results: shares in percent with intervals, one column per metric."""
    rows = results["rows"]
    expected = {name: f"{100 * share:.0f} %" for name, share in results["expected"].items()}
    sections = [
        "Pairs in which the better candidate scores higher, in percent [95 % interval]; a tie counts as wrong. "
        f"Expected: {expected[OVERALL]} overall and {expected['type']} of each type.\n"
    ]
    for table in results["data"]:
        sections += _pair_sections(table, rows)
    if "extremes" in rows[0]:
        sections += _extremes_sections(results)
    sections.append("Signatures:\n" + "".join(f"- {row['name']}: `{row['signature']}`\n" for row in rows))
    return "\n".join(sections)


def _pair_sections(table: str, rows: list[dict[str, Any]]) -> list[str]:
    import pandas

    shares_by_row = {row["name"]: row["tables"][table]["shares"] for row in rows}
    columns = {
        name: {type_name: _percent(figure) for type_name, figure in shares.items()}
        for name, shares in shares_by_row.items()
    }
    counts = {type_name: str(figure["n"]) for type_name, figure in next(iter(shares_by_row.values())).items()}
    frame = pandas.DataFrame({"pairs": counts, **columns}).rename(index=_with_spaces)
    return [
        f"**{_title(table)}**\n",
        draw_frame(frame),
        "".join(_verdict(row["name"], row["tables"][table]) for row in rows),
    ]


def _extremes_sections(results: Mapping[str, Any]) -> list[str]:
    import pandas

    columns: dict[str, dict[str, str]] = {}
    for row in results["rows"]:
        extremes = row["extremes"]
        cells = {"identical above all others": _percent(extremes["identical_first"])}
        cells |= {
            f"identical above {_with_spaces(category)}": _percent(figure)
            for category, figure in extremes["against"].items()
        }
        for category in (EMPTY, UNRELATED):
            figures = extremes[category]
            cells[f"{category}: percentile among all, mean (highest)"] = _percentile(figures["all"])
            cells[f"{category}: percentile among rated, mean (highest)"] = _percentile(figures[RATED])
            cells[f"{category}: in the lowest percent of all"] = f"{100 * figures['all']['in_lowest_percent']:.1f}"
        columns[row["name"]] = cells
    first = results["rows"][0]["extremes"]
    skipped = "".join(f"; {count} left out: {_with_spaces(reason)}" for reason, count in first["skipped"].items())
    counts = ", ".join(f"{count} {_with_spaces(category)}" for category, count in first["candidates"].items())
    return [
        f"Extremes, on {first['references']} references of {results['references']['file']}: {counts}{skipped}. "
        "Shares of references, and percentiles of scores, in percent; ties count against the metric.\n",
        draw_frame(pandas.DataFrame(columns)),
    ]


def draw_plot(results: Mapping[str, Any]) -> Figure:
    """Draw the shares with intervals: one panel per table, one line per type, one mark per metric."""
    from matplotlib.figure import Figure

    rows, tables = results["rows"], list(results["data"])
    most_types = max(len(rows[0]["tables"][table]["shares"]) for table in tables)
    figure = Figure(figsize=(2.5 + 4.5 * len(tables), 1.4 + 0.42 * most_types), layout="constrained")
    panels = figure.subplots(1, len(tables), squeeze=False)[0]
    for table, axes in zip(tables, panels, strict=True):
        _draw_panel(axes, results, table)
    add_legend(figure, 3)
    return figure


def _draw_panel(axes: Axes, results: Mapping[str, Any], table: str) -> None:
    rows = results["rows"]
    counts = rows[0]["tables"][table]["shares"]
    for i, row in enumerate(rows):
        shift = 0.6 * ((i + 0.5) / len(rows) - 0.5)
        shares = list(row["tables"][table]["shares"].values())
        _draw_metric(axes, row["name"], shares, [line + shift for line in range(len(counts))], i)
    for name, line_style, label in (("type", ":", "each type"), (OVERALL, "--", "overall")):
        share = 100 * results["expected"][name]
        axes.axvline(
            share, linestyle=line_style, color="#444444", linewidth=1, label=f"expected {label}, {share:.0f} %"
        )
    axes.set_yticks(range(len(counts)), [f"{_with_spaces(name)} ({figure['n']})" for name, figure in counts.items()])
    axes.invert_yaxis()
    axes.set(xlim=(-2, 102), xlabel="better candidate higher, % (95 % interval)")
    axes.set_title(textwrap.fill(_title(table), 46), fontsize=9)
    axes.grid(axis="x", alpha=0.3)


def _draw_metric(axes: Axes, name: str, figures: list[dict[str, Any]], y: list[float], i: int) -> None:
    shares = [100 * figure["share"] for figure in figures]
    lengths = [
        [max(100 * (figure["share"] - figure["low"]), 0) for figure in figures],
        [max(100 * (figure["high"] - figure["share"]), 0) for figure in figures],
    ]
    axes.errorbar(
        shares,
        y,
        xerr=lengths,
        fmt=MARKERS[i % len(MARKERS)],
        color=COLOURS[i % len(COLOURS)],
        markersize=5,
        linewidth=1,
        capsize=2,
        label=name,
    )


def _verdict(metric: str, table: dict[str, Any]) -> str:
    below = ", ".join(f"{_with_spaces(name)} {100 * table['shares'][name]['share']:.0f}" for name in table["below"])
    copies = table.get("low_copies")  # not in results of earlier versions
    low = f"; a copy of the reference scores lower than a candidate in {_percent(copies)}" if copies else ""
    return f"- {metric}: {'below in ' + below if below else 'reaches all'}{low}\n"


def _title(table: str) -> str:
    name = _with_spaces(table).capitalize()
    return f"{name}: the better candidate {QUESTIONS[table]}" if table in QUESTIONS else name


def _percent(figure: dict[str, Any]) -> str:
    return f"{100 * figure['share']:.1f} [{100 * figure['low']:.1f}, {100 * figure['high']:.1f}]"


def _percentile(figure: dict[str, float] | None) -> str:
    return "-" if figure is None else f"{figure['mean']:.2f} ({figure['highest']:.2f})"


def _with_spaces(name: str) -> str:
    return name.replace("_", " ")
