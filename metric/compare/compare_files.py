"""Compare the files of systems: what `bleurt-repro compare` does between reading its input and writing its output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bleurt_repro.metric.compare.compare import Comparison, compare
from bleurt_repro.metric.compare.report import FORMS, OUR_COMPARISON
from bleurt_repro.metric.files.texts import read_segments
from bleurt_repro.metric.files.writing import validate_output, write_text
from bleurt_repro.metric.inputs import check_same_length
from bleurt_repro.metric.statistics import CONFIDENCE, RESAMPLES


def compare_files(
    *,
    references: Sequence[str],
    candidates: Sequence[str],
    sources: str | None,
    outputs: Sequence[str],
    scorer_options: dict[str, Any],
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    aggregate: str = "max",
    overwrite: bool = False,
) -> Comparison:
    """Read the texts of several systems, compare them, and write the comparison.

    Args:
        references: one file or more; with several, each holds one more reference a segment.
        candidates: one file a system, two or more; a system is called by its file's name.
        sources: a file, for a checkpoint that reads sources.
        outputs: files to write: `.json` holds everything, `.csv` a row a segment, `.md` and `.tex` tables of the figures.
        scorer_options: arguments of `BleurtScorer`.
        resamples, confidence, seed: of the bootstrap.
        aggregate: with several references, as in `BleurtScorer.score`.
        overwrite: replace outputs that no run of the library wrote.

    Raises:
        ValueError: if the input is incomplete or malformed, naming file and line, or an output is an input or holds
            something else.
    """
    if [*references, *candidates, sources].count("-") > 1:
        raise ValueError("only one file can be standard input ('-')")
    for path in outputs:
        if Path(path).suffix.lower() not in FORMS:
            raise ValueError(f"the output must be a .json, .csv, .md or .tex file, found {path}")
    inputs = (*references, *candidates, sources)
    paths = [validate_output(path, inputs, OUR_COMPARISON, overwrite) for path in outputs]
    names = system_names(candidates)
    systems = {name: read_segments(path, "candidates") for name, path in zip(names, candidates, strict=True)}
    texts = {path: read_segments(path, "references") for path in references}
    given = None if sources is None else read_segments(sources, "sources")
    check_same_length(
        {f"segments in {path}": len(own) for path, own in texts.items()}
        | {f"segments in {path}": len(own) for path, own in zip(candidates, systems.values(), strict=True)}
        | ({} if sources is None or given is None else {f"segments in {sources}": len(given)})
    )
    from bleurt_repro.metric.scorer import BleurtScorer  # after the input is known to be good: it loads torch

    scorer = BleurtScorer(**scorer_options)
    scorer.check_options(aggregate, False)
    comparison = compare(
        scorer,
        joined(texts.values()),
        systems,
        given,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
        aggregate=aggregate,
    )
    texts = [FORMS[Path(path).suffix.lower()](comparison) for path in outputs]
    for path, text in zip(paths, texts, strict=True):
        write_text(path, text)
    return comparison


def system_names(paths: Sequence[str]) -> list[str]:
    """Name each system by its file's name without the ending or, where two would be called the same, by its path.

    Raises:
        ValueError: if a path is given twice.
    """
    stems = [Path(path).stem if path != "-" else "standard input" for path in paths]
    names = [stem if stems.count(stem) == 1 else path for stem, path in zip(stems, paths, strict=True)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"each system needs a file of its own, found {twice} twice")
    return names


def joined(files: Any) -> list[list[str]]:
    """Put the references of several files together: one list a segment."""
    columns = [[[text] if isinstance(text, str) else text for text in own] for own in files]
    return [[text for several in row for text in several] for row in zip(*columns, strict=True)]
