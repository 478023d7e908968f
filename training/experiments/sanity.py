"""Ask metrics what every reader knows: which of two candidates has the error, and what lies at the extremes.

    bleurt-repro experiment sanity --checkpoint bleurt-repro-mini --baselines sentbleu --baselines chrf++ --output OUT
    bleurt-repro experiment sanity --checkpoint ORG/NAME --references ratings.jsonl --output OUT

OUT gets results.json (shares, intervals, signatures, fingerprints of the data), failures.tsv (every pair judged
wrongly), and, drawn from results.json alone, table.md, sanity.png and sanity.svg.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bleurt_repro.training.experiments.baselines import find_baseline, shown_name
from bleurt_repro.training.experiments.extremes import (
    MOST_REFERENCES,
    Extremes,
    make_extremes,
    measure_extremes,
    read_references,
)
from bleurt_repro.training.experiments.minimal_pairs import (
    OVERALL,
    TABLES,
    MinimalPair,
    count_by_type,
    prefer,
    read_minimal_pairs,
    score_function,
)
from bleurt_repro.training.experiments.options import shorten
from bleurt_repro.training.experiments.sanity_report import write_report

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
    from bleurt_repro.metric.signature import file_hash

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
