"""Turn rows and samples into the figures of a results file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from bleurt_repro.training.agreement import CONFIDENCE
from bleurt_repro.training.experiments.measuring import AVERAGE, Figure, Sample, interval, measure, measure_average
from bleurt_repro.training.experiments.scoring import Row
from bleurt_repro.training.experiments.significance import BOOTSTRAP, WILLIAMS, compare_rows


def judge(rows: Sequence[Row], samples: Sequence[Sample], resamples: int, seed: int) -> dict[str, Any]:
    """Measure all rows on all samples, and compare every two rows.

    Args:
        rows: their names all different.
        samples: of one or more measures, each in the same groups or in some of them.
        resamples: bootstrap samples; 0 for no intervals.
        seed: of the bootstrap.

    Returns:
        "measures", "rows" and "comparisons", fit for JSON; and the settings of the bootstrap.

    Raises:
        ValueError: if two rows have one name, or ratings of a group do not vary.
    """
    names = [row.name for row in rows]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two rows are called {twice[0]}: give each checkpoint and file a name of its own")
    measures = list(dict.fromkeys(sample.measure for sample in samples))
    figures: dict[tuple[str, str, str], Figure | None] = {}
    steps = [(row, sample) for row in rows for sample in samples]
    for row, sample in tqdm(steps, desc="measure", unit="group", disable=None):
        figures[row.name, sample.measure, sample.group] = measure(row, sample, resamples, seed)
    for row in rows:
        for name in measures:
            found = [figures[row.name, name, sample.group] for sample in samples if sample.measure == name]
            figures[row.name, name, AVERAGE] = measure_average(found)
    return {
        "measures": measures,
        "resamples": resamples,
        "confidence": CONFIDENCE,
        "seed": seed,
        "rows": [_row(row, samples, measures, figures) for row in rows],
        "tests": {"bootstrap": BOOTSTRAP, "williams": WILLIAMS},
        "comparisons": compare_rows(rows, samples, figures, measures),
    }


def data_record(path: str | Path, records: int) -> dict[str, Any]:
    """Name a file of data by name, content and size."""
    from bleurt_repro.metric.signature import file_hash

    return {"file": Path(path).name, "sha256": file_hash(Path(path)).hex(), "records": records}


def _row(
    row: Row,
    samples: Sequence[Sample],
    measures: Sequence[str],
    figures: dict[tuple[str, str, str], Figure | None],
) -> dict[str, Any]:
    groups: dict[str, dict[str, Any]] = {}
    for sample in samples:
        if (figure := figures[row.name, sample.measure, sample.group]) is not None:
            groups.setdefault(sample.group, {})[sample.measure] = figure.to_json()
    averages = {name: figure for name in measures if (figure := figures[row.name, name, AVERAGE]) is not None}
    return {
        "name": row.name,
        "kind": row.kind,
        "signature": row.signature,
        "groups": groups,
        AVERAGE: {name: figure.value for name, figure in averages.items()},
        "average_intervals": {name: list(interval(figure.resampled)) for name, figure in averages.items()},
        **({"seeds": _seeds(averages)} if len(row.vectors) > 1 else {}),
        **row.notes,
    }


def _seeds(averages: dict[str, Figure]) -> dict[str, dict[str, Any]]:
    """Give each measure's average by seed, with the standard deviation over them."""
    return {
        name: {"values": list(figure.by_seed), "deviation": float(np.std(figure.by_seed, ddof=1))}
        for name, figure in averages.items()
    }
