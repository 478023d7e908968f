"""Ask metrics what every reader knows: which of two candidates has the error, and what lies at the extremes.

    bleurt-repro experiment sanity --checkpoint bleurt-repro-mini --baselines sentbleu --baselines chrf++ --output OUT
    bleurt-repro experiment sanity --checkpoint ORG/NAME --references ratings.jsonl --output OUT

OUT gets results.json (shares, intervals, signatures, fingerprints of the data), failures.tsv (every pair judged
wrongly), and, drawn from results.json alone, table.md, sanity.png and sanity.svg.

Write the sanity experiment's results, and draw its table and plot from them.
"""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bleurt_repro.training.experiments.baselines import find_baseline, shown_name
from bleurt_repro.training.experiments.extremes import (
    EMPTY,
    MOST_REFERENCES,
    RATED,
    UNRELATED,
    Extremes,
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
    prefer,
    read_minimal_pairs,
    score_function,
)
from bleurt_repro.training.experiments.options import shorten
from bleurt_repro.training.results import COLOURS

FAILURE_COLUMNS = ("metric", "table", *COLUMNS, "score_better", "score_worse")
MARKERS = "osD^vPX*"
QUESTIONS = {
    "minimal_pairs": "against itself with an error in it",
    "near_copies": "against the reference with an error in it, whose words are nearer",
    "who_did_what": "against itself with two participants changed round",
    "free_paraphrases": "against itself with its meaning turned",
}


def write_report(folder: Path, results: dict[str, Any], failures: list[dict[str, Any]]) -> None:
    """Write results.json, failures.tsv, table.md, sanity.png and sanity.svg.

    Args:
        folder: where; made if need be.
        results: of the experiment.
        failures: one dict a pair judged wrongly, with `FAILURE_COLUMNS`.
    """
    from bleurt_repro.metric.files.writing import plain_cell, write_bytes, write_text

    folder.mkdir(parents=True, exist_ok=True)
    # a tab or line break within a text would break the table
    lines = [[str(plain_cell(" ".join(str(failure[name]).split()))) for name in FAILURE_COLUMNS] for failure in failures]
    lines.insert(0, list(FAILURE_COLUMNS))
    write_text(folder / "failures.tsv", "".join("\t".join(line) + "\n" for line in lines))
    write_text(folder / "results.json", json.dumps(results, indent=2) + "\n")
    write_text(folder / "table.md", draw_table(results))
    for form in ("png", "svg"):
        write_bytes(folder / f"sanity.{form}", draw_plot(results, form))


def draw_table(results: dict[str, Any]) -> str:
    """Draw the Markdown tables of a results file: shares in percent with intervals, a column a metric."""

    rows = results["rows"]
    bars = {name: f"{100 * bar:.0f} %" for name, bar in results["bars"].items()}
    parts = [
        "Pairs in which the better candidate scores higher, in percent [95 % interval]; a tie counts as wrong. "
        f"Bars: {bars[OVERALL]} overall and {bars['type']} of each type.\n"
    ]
    for table in results["data"]:
        parts += _table_parts(table, rows)
    if "extremes" in rows[0]:
        parts += _extremes_parts(results)
    parts.append("Signatures:\n" + "".join(f"- {row['name']}: `{row['signature']}`\n" for row in rows))
    return "\n".join(parts)


def _table_parts(table: str, rows: list[dict[str, Any]]) -> list[str]:
    import pandas

    shares = {row["name"]: row["tables"][table]["shares"] for row in rows}
    columns = {name: {kind: _share(figure) for kind, figure in found.items()} for name, found in shares.items()}
    counts = {kind: str(figure["n"]) for kind, figure in next(iter(shares.values())).items()}
    drawn = pandas.DataFrame({"pairs": counts, **columns}).rename(index=_words)
    return [
        f"**{_title(table)}**\n",
        drawn.to_markdown(disable_numparse=True) + "\n",
        "".join(_verdict(row["name"], row["tables"][table]) for row in rows),
    ]


def draw_plot(results: dict[str, Any], form: str) -> bytes:
    """Draw the shares with their intervals: a panel a table, a row a type, a mark a metric, and the two bars as lines.

    Args:
        results: of the experiment.
        form: "png" or "svg".
    """
    import matplotlib
    from matplotlib.figure import Figure

    rows, tables = results["rows"], list(results["data"])
    kinds = [list(rows[0]["tables"][table]["shares"]) for table in tables]
    height = 1.4 + 0.42 * max(map(len, kinds))
    figure = Figure(figsize=(2.5 + 4.5 * len(tables), height), layout="constrained")
    panels = figure.subplots(1, len(tables), squeeze=False)[0]
    for table, names, axes in zip(tables, kinds, panels, strict=True):
        counts = rows[0]["tables"][table]["shares"]
        for i, row in enumerate(rows):
            shift = 0.6 * ((i + 0.5) / len(rows) - 0.5)
            shares = list(row["tables"][table]["shares"].values())
            _draw_metric(axes, row["name"], shares, [place + shift for place in range(len(names))], i)
        for bar, style, title in (("type", ":", "each type"), (OVERALL, "--", "overall")):
            share = 100 * results["bars"][bar]
            axes.axvline(share, linestyle=style, color="#444444", linewidth=1, label=f"bar {title}, {share:.0f} %")
        axes.set_yticks(range(len(names)), [f"{_words(n)} ({counts[n]['n']})" for n in names])
        axes.invert_yaxis()
        axes.set(xlim=(-2, 102), xlabel="better candidate higher, % (95 % interval)")
        axes.set_title(textwrap.fill(_title(table), 46), fontsize=9)
        axes.grid(axis="x", alpha=0.3)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9
    )
    stream = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "sanity"}):  # the same results give the same file
        figure.savefig(stream, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
    return stream.getvalue()


def _draw_metric(axes: Any, name: str, figures: list[dict[str, Any]], places: list[float], i: int) -> None:
    shares = [100 * figure["share"] for figure in figures]
    ends = [
        [max(100 * (figure["share"] - figure["low"]), 0) for figure in figures],
        [max(100 * (figure["high"] - figure["share"]), 0) for figure in figures],
    ]
    axes.errorbar(
        shares,
        places,
        xerr=ends,
        fmt=MARKERS[i % len(MARKERS)],
        color=COLOURS[i % len(COLOURS)],
        markersize=5,
        linewidth=1,
        capsize=2,
        label=name,
    )


def _extremes_parts(results: dict[str, Any]) -> list[str]:
    import pandas

    columns: dict[str, dict[str, str]] = {}
    for row in results["rows"]:
        found = row["extremes"]
        cells = {"identical above all others": _share(found["identical_first"])}
        cells |= {f"identical above {_words(kind)}": _share(figure) for kind, figure in found["against"].items()}
        for kind in (EMPTY, UNRELATED):
            cells[f"{kind}: percentile among all, mean (highest)"] = _percentile(found[kind]["all"])
            cells[f"{kind}: percentile among rated, mean (highest)"] = _percentile(found[kind][RATED])
            cells[f"{kind}: in the lowest percent of all"] = f"{100 * found[kind]['all']['in_lowest_percent']:.1f}"
        columns[row["name"]] = cells
    first = results["rows"][0]["extremes"]
    skipped = "".join(f"; {count} left out: {_words(reason)}" for reason, count in first["skipped"].items())
    made = ", ".join(f"{count} {_words(kind)}" for kind, count in first["candidates"].items())
    return [
        f"Extremes, on {first['references']} references of {results['references']['file']}: {made}{skipped}. "
        "Shares of references, and percentiles of scores, in percent; ties count against the metric.\n",
        pandas.DataFrame(columns).to_markdown(disable_numparse=True) + "\n",
    ]


def _verdict(name: str, found: dict[str, Any]) -> str:
    below = ", ".join(f"{_words(kind)} {100 * found['shares'][kind]['share']:.0f}" for kind in found["below"])
    return f"- {name}: {'below in ' + below if below else 'reaches all'}\n"


def _title(table: str) -> str:
    name = _words(table).capitalize()
    return f"{name}: the better candidate {QUESTIONS[table]}" if table in QUESTIONS else name


def _share(figure: dict[str, Any]) -> str:
    return f"{100 * figure['share']:.1f} [{100 * figure['low']:.1f}, {100 * figure['high']:.1f}]"


def _percentile(figure: dict[str, float] | None) -> str:
    return "-" if figure is None else f"{figure['mean']:.2f} ({figure['highest']:.2f})"


def _words(name: str) -> str:
    return name.replace("_", " ")


# What a metric is expected to reach, as shares of pairs: in all pairs together, and in each type.
OVERALL_BAR = 0.85
TYPE_BAR = 0.70


def run(
    *,
    output: str | Path,
    checkpoints: Sequence[str] = (),
    baselines: Sequence[str] = (),
    pairs: str | Path | None = None,
    references: str | None = None,
    most_references: int = MOST_REFERENCES,
    seed: int = 0,
    scorer_options: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Judge every metric, and write and return the results.

    Args:
        output: the folder to write to.
        checkpoints: as `BleurtScorer` takes them; none that reads sources.
        baselines: as `find_baseline` takes them.
        pairs: a table of pairs; by default the project's own, `TABLES`.
        references: ratings, or text of one reference a line, for the checks at the extremes; without it they are not
            made.
        most_references: how many references to sample for them.
        seed: of that sample and of the candidates made for it.
        scorer_options: further arguments of `BleurtScorer`.

    Returns:
        what results.json holds.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if nothing is to be judged, a baseline is unknown, or a file is malformed.
    """
    if not checkpoints and not baselines:
        raise ValueError("nothing to judge: name at least one checkpoint or baseline")
    for name in baselines:
        find_baseline(name)
    if most_references < 1:
        raise ValueError(f"the sample of references must be of at least 1, found {most_references}")
    files = {Path(pairs).stem: Path(pairs)} if pairs else TABLES
    tables = {name: read_minimal_pairs(path) for name, path in files.items()}
    extremes = make_extremes(read_references(references), most_references, seed) if references else None
    metrics = [("checkpoint", name) for name in checkpoints] + [("baseline", name) for name in baselines]
    rows, failures = [], []
    for kind, name in metrics:
        row, judged = _judge(kind, name, tables, extremes, scorer_options or {})
        rows.append(row)
        failures += [{"metric": row["name"], **pair} for pair in judged if not pair["right"]]
    results = {
        "experiment": "sanity",
        "command": _command(checkpoints, baselines, pairs, references, most_references, seed),
        **_provenance(files, tables, references, seed),
        "bars": {OVERALL: OVERALL_BAR, "type": TYPE_BAR},
        "rows": rows,
    }
    write_report(Path(output), results, failures)
    return results


def _judge(
    kind: str,
    name: str,
    tables: dict[str, list[MinimalPair]],
    extremes: Extremes | None,
    options: dict[str, Any],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    score = score_function(kind, name, options)
    shown = shown_name(name) if kind == "baseline" else shorten(name)
    row: dict[str, Any] = {"name": shown, "kind": kind, "signature": "", "tables": {}}
    all_judged = []
    for table, pairs in tables.items():
        judged, row["signature"] = prefer(pairs, score)
        shares = count_by_type(judged)
        row["tables"][table] = {"shares": shares, "below": below_bars(shares)}
        all_judged += [{"table": table, **pair} for pair in judged]
    if extremes:
        row["extremes"] = measure_extremes(extremes, score)
    return row, all_judged


def below_bars(shares: dict[str, dict[str, Any]]) -> list[str]:
    """Name the types, `OVERALL` among them, whose share is below its bar; a metric with none passes.

    Args:
        shares: of `count_by_type`.
    """
    return [
        name for name, figure in shares.items() if figure["share"] < (OVERALL_BAR if name == OVERALL else TYPE_BAR)
    ]


def _provenance(
    files: dict[str, Path], tables: dict[str, list[MinimalPair]], references: str | None, seed: int
) -> dict[str, Any]:
    from bleurt_repro import __version__
    from bleurt_repro.metric.loading.checksums import file_hash

    known: dict[str, Any] = {
        "data": {
            name: {"file": path.name, "sha256": file_hash(path).hex(), "pairs": len(tables[name])}
            for name, path in files.items()
        },
        "confidence": 0.95,
        "version": __version__,
    }
    if references:
        path = Path(references)
        known["references"] = {"file": path.name, "sha256": file_hash(path).hex(), "seed": seed}
    return known


def _command(
    checkpoints: Sequence[str],
    baselines: Sequence[str],
    pairs: str | Path | None,
    references: str | None,
    most_references: int,
    seed: int,
) -> str:
    """Write the command that makes these results, with files and folders by name."""
    words = ["bleurt-repro experiment sanity"]
    words += [f"--checkpoint {shorten(name)}" for name in checkpoints]
    words += [f"--baselines {shorten(name)}" for name in baselines]
    words += [f"--pairs {Path(pairs).name}"] if pairs else []
    if references:
        words.append(f"--references {Path(references).name} --most-references {most_references} --seed {seed}")
    return " ".join([*words, "--output OUT"])
