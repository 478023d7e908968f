"""Measure how well metrics agree with people, on any file of ratings or of relative ranks.

    bleurt-repro experiment agreement --ratings wmt18.jsonl --baselines sentbleu --baselines chrf++ --output OUT
    bleurt-repro experiment agreement --relative-ranks ranks.jsonl --checkpoint ORG/NAME --output OUT

OUT gets results.json (figures, intervals, seed, signatures, fingerprint of the data) and table.md, drawn from it alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.training.agreement import RESAMPLES, with_interval
from bleurt_repro.training.experiments.baselines import BASELINES, Scored

if TYPE_CHECKING:
    import pandas

RATING_MEASURES = ("kendall_tau", "pearson_r")
RANK_MEASURES = ("darr",)
RANK_COLUMNS = ("reference", "candidate_better", "candidate_worse")
HEADINGS = {"kendall_tau": "Kendall tau", "pearson_r": "Pearson r", "spearman_rho": "Spearman rho", "darr": "daRR"}
AVERAGE = "average"


def run(
    *,
    output: str | Path,
    ratings: str | None = None,
    relative_ranks: str | None = None,
    checkpoints: Sequence[str] = (),
    baselines: Sequence[str] = (),
    by: str = "lp",
    resamples: int = RESAMPLES,
    seed: int = 0,
    title: str | None = None,
    scorer_options: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Score the file with every metric, and write and return the results.

    Args:
        output: the folder to write to.
        ratings: a file with reference, candidate and score (columns of the ratings datasets).
        relative_ranks: a file with reference, candidate_better and candidate_worse instead.
        checkpoints: as `BleurtScorer` takes them.
        baselines: keys of `BASELINES`.
        by: the column whose values are measured apart and then averaged; without it all records are one group.
        resamples: bootstrap samples of each interval; 0 for none.
        seed: of the bootstrap.
        title: what to call the data in tables and cards; the file's name by default.
        scorer_options: further arguments of `BleurtScorer`.

    Raises:
        ValueError: if nothing is to be compared, a baseline is unknown, or the ratings of a group do not vary.
    """
    if (ratings is None) == (relative_ranks is None):
        raise ValueError("give either a file of ratings or a file of relative ranks")
    if not checkpoints and not baselines:
        raise ValueError("nothing to measure: name at least one checkpoint or baseline")
    if unknown := sorted(set(baselines) - set(BASELINES)):
        raise ValueError(f"unknown baselines {', '.join(unknown)}: known are {', '.join(BASELINES)}")
    path = str(ratings or relative_ranks)
    table = _read(path, ranks=ratings is None, by=by)
    groups = {str(name): list(indices) for name, indices in table.groupby(by, sort=True).indices.items()}
    metrics: list[tuple[str, str]] = [("checkpoint", name) for name in checkpoints]
    metrics += [("baseline", name) for name in baselines]
    rows = []
    for kind, name in metrics:
        first, second, signature = _samples(table, kind, name, scorer_options or {})
        figures = {
            group: {
                measure: with_interval(measure, first[members], second[members], resamples=resamples, seed=seed)
                for measure in (RATING_MEASURES if ratings else RANK_MEASURES)
            }
            for group, members in groups.items()
        }
        rows.append(
            {"name": name, "kind": kind, "signature": signature, "groups": figures, AVERAGE: _average(figures)}
        )
    results = {
        "experiment": "agreement",
        "title": title or Path(path).name,
        "command": _command(path, ratings is None, checkpoints, baselines, by, resamples, seed),
        **_provenance(path, table, by, resamples, seed),
        "rows": rows,
    }
    _write(Path(output), results)
    return results


def draw_table(results: dict[str, Any]) -> str:
    """Draw the Markdown table of a results file: measures times 100, with 95 % intervals, a row a metric."""
    import pandas

    parts = []
    for measure in results["measures"]:
        rows = {}
        for row in results["rows"]:
            cells = {group: _cell(figures[measure]) for group, figures in row["groups"].items()}
            rows[row["name"]] = {**cells, AVERAGE: f"{100 * row[AVERAGE][measure]:.1f}"}
        counts = [figures[measure]["n"] for figures in results["rows"][0]["groups"].values()]
        parts.append(f"**{HEADINGS[measure]}** x 100, by {results['by']} (n = {', '.join(map(str, counts))})\n")
        parts.append(pandas.DataFrame.from_dict(rows, orient="index").to_markdown(disable_numparse=True) + "\n")
    parts.append("Signatures:\n" + "".join(f"- {row['name']}: `{row['signature']}`\n" for row in results["rows"]))
    return "\n".join(parts)


def _read(path: str, ranks: bool, by: str) -> pandas.DataFrame:
    import pandas

    from bleurt_repro.datasets_builders.rating_files import rating_records
    from bleurt_repro.datasets_builders.record_files import read_records

    if not ranks:
        table = pandas.DataFrame(rating_records(path))
        required: tuple[str, ...] = ("reference", "candidate", "score")
    else:
        table = pandas.DataFrame(record for _, record in read_records(path))
        required = RANK_COLUMNS
    if lacking := [name for name in required if name not in table]:
        raise ValueError(f"{path} has no column {', '.join(lacking)}; found {', '.join(map(str, table.columns))}")
    if by not in table or table[by].isna().all():
        table[by] = "all"
    return table


def _samples(table: pandas.DataFrame, kind: str, name: str, options: dict[str, Any]) -> tuple[Any, Any, str]:
    """Give the two samples that a measure compares: scores and ratings, or scores of better and of worse."""
    import numpy as np

    if "score" in table and "candidate" in table:
        scored = _score(kind, name, table["reference"].tolist(), table["candidate"].tolist(), table, options)
        return np.array(scored.scores), table["score"].to_numpy(float), scored.signature
    references = table["reference"].tolist()
    candidates = table["candidate_better"].tolist() + table["candidate_worse"].tolist()
    scored = _score(kind, name, references * 2, candidates, table, options)
    return np.array(scored.scores[: len(table)]), np.array(scored.scores[len(table) :]), scored.signature


def _score(
    kind: str,
    name: str,
    references: list[str],
    candidates: list[str],
    table: pandas.DataFrame,
    options: dict[str, Any],
) -> Scored:
    if kind == "baseline":
        return BASELINES[name](references, candidates)
    from bleurt_repro.metric.scorer import BleurtScorer

    scorer = BleurtScorer(name, **options)
    repeats = len(candidates) // len(table)
    sources = table["source"].tolist() * repeats if scorer.layout.reads_sources else None
    result = scorer.compute(references=references, candidates=candidates, sources=sources)
    return Scored(result.scores, result.signature)


def _average(figures: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Average each measure over the groups, each group counting once, as the shared tasks do."""
    measures = next(iter(figures.values()))
    return {measure: sum(group[measure]["value"] for group in figures.values()) / len(figures) for measure in measures}


def _provenance(path: str, table: pandas.DataFrame, by: str, resamples: int, seed: int) -> dict[str, Any]:
    from bleurt_repro import __version__
    from bleurt_repro.metric.signature import file_hash

    return {
        "data": {"file": Path(path).name, "sha256": file_hash(Path(path)).hex(), "records": len(table)},
        "measures": list(RATING_MEASURES if "score" in table and "candidate" in table else RANK_MEASURES),
        "by": by,
        "resamples": resamples,
        "confidence": 0.95,
        "seed": seed,
        "version": __version__,
    }


def _command(
    path: str, ranks: bool, checkpoints: Sequence[str], baselines: Sequence[str], by: str, resamples: int, seed: int
) -> str:
    """Write the command that makes these results, with files and folders by name."""
    words = ["bleurt-repro experiment agreement", f"--{'relative-ranks' if ranks else 'ratings'} {Path(path).name}"]
    words += [f"--checkpoint {name if not Path(name).is_dir() else Path(name).resolve().name}" for name in checkpoints]
    words += [f"--baselines {name}" for name in baselines]
    return " ".join([*words, f"--by {by} --resamples {resamples} --seed {seed} --output OUT"])


def _cell(figure: dict[str, Any]) -> str:
    value = f"{100 * figure['value']:.1f}"
    return value if figure["low"] is None else f"{value} [{100 * figure['low']:.1f}, {100 * figure['high']:.1f}]"


def _write(folder: Path, results: dict[str, Any]) -> None:
    from bleurt_repro.metric.atomic import write_text

    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "results.json", json.dumps(results, indent=2) + "\n")
    write_text(folder / "table.md", draw_table(results))
