"""Compare systems whose outputs are in files: what `bleurt-repro compare` does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bleurt_repro.metric.compare.compare import Comparison, compare
from bleurt_repro.metric.compare.report import FORMS, OUR_COMPARISON
from bleurt_repro.metric.files.texts import read_segments
from bleurt_repro.metric.files.writing import validate_output, write_text
from bleurt_repro.metric.inputs import check_same_length
from bleurt_repro.metric.options import ScoreOptions
from bleurt_repro.metric.statistics import CONFIDENCE, RESAMPLES


def compare_files(
    options: ScoreOptions,
    *,
    references: Sequence[str],
    candidates: Sequence[str],
    sources: str | None,
    outputs: Sequence[str],
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    overwrite: bool = False,
) -> Comparison:
    """Read the texts of systems, compare them, and write the comparison.

    Args:
        options: how to score.
        references: one or more files; each holds one reference per segment.
        candidates: one file per system, at least two; the name of a file is the name of its system.
        sources: file of sources, for a checkpoint that reads them.
        outputs: files to write: `.json` holds all results, `.csv` one row per segment, `.md` and `.tex` tables.
        resamples: number of bootstrap resamples.
        confidence: confidence level of the intervals.
        seed: seed of the resampling.
        overwrite: whether to replace outputs that bleurt-repro did not write.

    Raises:
        ValueError: if the input is incomplete or malformed, naming file and line, or if an output is an input or another
            program's file.
    """
    # Check the options and outputs before anything is read.
    if [*references, *candidates, sources].count("-") > 1:
        raise ValueError("only one file can be standard input ('-')")
    for path in outputs:
        if Path(path).suffix.lower() not in FORMS:
            raise ValueError(f"the output must be a .json, .csv, .md or .tex file, found {path}")
    inputs = (*references, *candidates, sources)
    paths = [validate_output(path, inputs, OUR_COMPARISON, overwrite) for path in outputs]
    # Read all texts, and check them before the checkpoint is loaded.
    names = system_names(candidates)
    systems = {name: read_segments(path, "candidates") for name, path in zip(names, candidates, strict=True)}
    reference_columns = {path: read_segments(path, "references") for path in references}
    source_texts = None if sources is None else read_segments(sources, "sources")
    columns = [*reference_columns.items(), *zip(candidates, systems.values(), strict=True)]
    columns += [] if sources is None or source_texts is None else [(sources, source_texts)]
    check_same_length({f"segments in {path}": len(texts) for path, texts in columns})

    from bleurt_repro.metric.scorer import BleurtScorer  # loads torch

    scorer = BleurtScorer.from_options(options)
    scorer.check_options(options)
    comparison = compare(
        scorer,
        combine_references(reference_columns.values()),
        systems,
        source_texts,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
        aggregate=options.aggregate,
    )
    # Make all contents before the first file is written.
    contents = [FORMS[Path(path).suffix.lower()](comparison) for path in outputs]
    for output, content in zip(paths, contents, strict=True):
        write_text(output, content)
    return comparison


def system_names(paths: Sequence[str]) -> list[str]:
    """Return a name for each system: its file's name without extension or, if two have the same name, its path.

    Raises:
        ValueError: if two paths are the same.
    """
    stems = [Path(path).stem if path != "-" else "standard input" for path in paths]
    names = [stem if stems.count(stem) == 1 else path for stem, path in zip(stems, paths, strict=True)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected a different file for each system, found {twice} twice")
    return names


def combine_references(columns: Iterable[Sequence[str | list[str]]]) -> list[list[str]]:
    """Return one list of references per segment, from files with one reference, or a list of them, per segment."""
    lists = [[[text] if isinstance(text, str) else text for text in column] for column in columns]
    return [[text for texts in row for text in texts] for row in zip(*lists, strict=True)]
