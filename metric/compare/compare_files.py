"""Compare systems whose outputs are in files: what `bleurt-repro compare` does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bleurt_repro.metric.compare.compare import compare
from bleurt_repro.metric.compare.report import FORMS, OUR_COMPARISON, comparison_csv, comparison_text, groups_csv
from bleurt_repro.metric.compare.segments import MOST_GROUPS, by_group, length_groups, lowest
from bleurt_repro.metric.files.records import file_form, open_input, parse_records
from bleurt_repro.metric.files.texts import read_segments
from bleurt_repro.metric.files.writing import validate_output, write_text
from bleurt_repro.metric.inputs import check_same_length
from bleurt_repro.metric.options import ScoreOptions
from bleurt_repro.metric.statistics import CONFIDENCE, RESAMPLES

# What `--format` takes.
FORMATS = ("text", "markdown", "latex", "csv")
# The group of `--by` that is not a column.
LENGTH = "length"
# Segments where systems differ most that are shown without a request for others.
DISAGREEMENTS = 5


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
    output_format: str = "text",
    disagreements: int | None = None,
    worst: int | None = None,
    system: str | None = None,
    by: str | None = None,
) -> str:
    """Read the texts of systems, compare them, and write the comparison.

    Args:
        options: how to score.
        references: one or more files; each holds one reference per segment.
        candidates: one file per system; the name of a file is the name of its system.
        sources: file of sources, for a checkpoint that reads them.
        outputs: files to write: `.json` holds all results, `.csv` one row per segment, `.md` and `.tex` tables.
        resamples: number of bootstrap resamples.
        confidence: confidence level of the intervals.
        seed: seed of the resampling.
        overwrite: whether to replace outputs that bleurt-repro did not write.
        output_format: format to return: "text"; "markdown" or "latex", the table of the systems; or "csv", the same table, or
            the groups or the segments that are asked for.
        disagreements: number of segments to return where systems differ most; by default 5 in a text without `worst` and `by`.
        worst: number of segments to return instead: those with the lowest scores of `system`.
        system: name of that system; it may be left out if there is one.
        by: "length", or a column of the references' file: return mean scores per group of segments.

    Returns:
        the comparison in that format.

    Raises:
        ValueError: if the input is incomplete or malformed, naming file and line, if an output is an input or another
            program's file, or if the options do not fit together.
    """
    # Check the options and outputs before anything is read.
    if [*references, *candidates, sources].count("-") > 1:
        raise ValueError("only one file can be standard input ('-')")
    names = system_names(candidates)
    system = _check_report(output_format, disagreements, worst, system, by, names)
    for path in outputs:
        if Path(path).suffix.lower() not in FORMS:
            raise ValueError(f"the output must be a .json, .csv, .md or .tex file, found {path}")
    inputs = (*references, *candidates, sources)
    paths = [validate_output(path, inputs, OUR_COMPARISON, overwrite) for path in outputs]
    # Read all texts, and check them before the checkpoint is loaded.
    systems = {name: read_segments(path, "candidates") for name, path in zip(names, candidates, strict=True)}
    reference_columns = {path: read_segments(path, "references") for path in references}
    source_texts = None if sources is None else read_segments(sources, "sources")
    columns = [*reference_columns.items(), *zip(candidates, systems.values(), strict=True)]
    columns += [] if sources is None or source_texts is None else [(sources, source_texts)]
    check_same_length({f"segments in {path}": len(texts) for path, texts in columns})
    values = None if by is None or by == LENGTH else read_groups(references[0], by)

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

    # Return what was asked for.
    if output_format == "markdown":
        return comparison.to_markdown()
    if output_format == "latex":
        return comparison.to_latex()
    groups = [] if by is None else by_group(comparison, values or length_groups(comparison))
    if worst is not None:
        segments = lowest(comparison, system, worst)
    elif disagreements is not None:
        segments = comparison.segments[:disagreements]
    else:
        segments = comparison.segments[: DISAGREEMENTS if by is None and len(names) > 1 else 0]
    if output_format == "text":
        title = "" if worst is None else f"lowest scores of {system}:"
        return comparison_text(comparison, segments, groups, by or "", title)
    if by is not None:
        return groups_csv(groups, by, names)
    if worst is None and disagreements is None:
        return comparison.table.to_csv()
    return comparison_csv(comparison, segments)


def _check_report(
    output_format: str,
    disagreements: int | None,
    worst: int | None,
    system: str | None,
    by: str | None,
    names: Sequence[str],
) -> str:
    """Check the options of a report, and return the system whose worst segments it shows.

    Raises:
        ValueError: if they do not fit together.
    """
    if output_format not in FORMATS:
        raise ValueError(f"--format must be one of {', '.join(FORMATS)}, found {output_format!r}")
    if worst is not None and disagreements is not None:
        raise ValueError("give either --worst or --disagreements, not both")
    lists_segments = worst is not None or disagreements is not None
    if output_format in ("markdown", "latex") and (lists_segments or by is not None):
        raise ValueError("--worst, --disagreements and --by need --format text or csv")
    if output_format == "csv" and lists_segments and by is not None:
        raise ValueError("--format csv prints one table: give either --by, or --worst or --disagreements")
    if disagreements is not None and len(names) < 2:
        raise ValueError("--disagreements needs two systems or more: give --worst for the lowest scores of one")
    if (worst is None and system is not None) or (system is None and worst is not None and len(names) > 1):
        raise ValueError("--worst and --system belong together: give a number of segments and the name of a system")
    if system is not None and system not in names:
        raise ValueError(f"--system must be one of {', '.join(names)}, found {system!r}")
    return names[0] if system is None else system


def read_groups(path: str, column: str) -> list[str]:
    """Read a column of the references' file, one value per segment.

    Args:
        path: table (CSV, TSV, Parquet) or JSON lines.
        column: name of the column or field.

    Raises:
        ValueError: if the file has no columns, lacks this one, or the column has too many values to be one of groups.
    """
    if not file_form(path):
        raise ValueError(
            f"--by {column} reads a column of the references: expected a table or JSON lines, found {path}"
        )
    values = []
    with open_input(path) as file:
        for location, record in parse_records(file, path, quoted_tsv=True):
            if column not in record:
                raise ValueError(
                    f"{path}, {location}: expected a column {column!r} for --by, found {', '.join(record)}"
                )
            values.append("" if record[column] is None else str(record[column]))
    if len(set(values)) > MOST_GROUPS:
        raise ValueError(
            f"--by {column} has {len(set(values)):,} values, expected at most {MOST_GROUPS}: choose another"
        )
    return values


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
