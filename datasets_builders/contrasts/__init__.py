"""Synthetic contrast data: pairs whose order is known by construction, because one candidate was changed on purpose.

People's ratings seldom show a metric a fluent sentence with one wrong word beside a good one that shares few words with
the reference. Synthetic contrast data does: a sentence and another of the same meaning, against a near copy of the sentence
that means something else. Six makers, each a command of `bleurt-repro data`:

| file | command | makes |
|---|---|---|
| `anchors` | `data anchors` | ratings with the extremes added: identical, empty, unrelated, damaged |
| `parallel_contrasts` | `data contrasts` | paraphrases from parallel text, against altered near copies |
| `templates` | `data roles` | template sentences whose two participants are exchanged |
| `templates` | `data opposites` | template sentences turned into their opposites |
| `paraphrases` | `data paraphrases` | sentences in two wordings, each with the other as it is and turned |
| `near_copies` | `data near-copies` | sentences with one thing changed, most of another meaning |

`alterations` holds the rules that change one thing in a sentence. What the makers share stands here: a row is a dict with
the columns of ratings (reference, candidate, score) and, as "system", what kind of pair it is; the same seed makes the same
rows. Scores of `parallel_contrasts`, `templates`, `paraphrases` and `near_copies` are in standard deviations of ratings: add their files to
standardised ratings. Anchors take quantiles of the ratings that they join, so they fit any scale.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Random = np.random.Generator
Contrast = dict[str, Any]

# How the last line of a file of contrasts or anchors looks.
OURS = re.compile(rb'\{.*"system": "(contrast|anchor): ')

# A copy, another wording of the same meaning, and a sentence of another subject.
COPY, SAME, UNRELATED = 1.0, 0.8, -1.4
# What an alteration takes away from the score of the unaltered text: absolute low scores, where people's ratings of
# candidates with one error are about average, took nine points of tau from a model trained on both.
CHANGED, PARTLY = 1.0, 0.7
# Of an altered text of several sentences, the other sentences still hold: so much of the loss remains.
JOINED_WEIGHT = 0.75
# Candidates that people rated among the best 30 % count as good translations.
GOOD_QUANTILE = 0.7


def contrast(reference: str, candidate: str, score: float, kind: str) -> Contrast:
    """Make a row of synthetic contrast data.

    Args:
        reference: the text to compare with.
        candidate: the text to score.
        score: in standard deviations of ratings.
        kind: what was done to the candidate, such as "number"; it becomes the system "contrast: number".
    """
    return {"reference": reference, "candidate": candidate, "score": round(score, 4), "system": f"contrast: {kind}"}


def chosen_contrasts(output: str | Path, inputs: Iterable[str | Path | None] = (), overwrite: bool = False) -> Path:
    """Check the file to write rows to, and return it.

    Args:
        output: file to write.
        inputs: files that are read.
        overwrite: replace a file that holds no contrasts, too.

    Raises:
        ValueError: if the output is one of the inputs, a folder, or a file that no run of the library wrote.
    """
    from bleurt_repro.metric.files.writing import chosen_output

    read = [None if path is None else str(path) for path in inputs]
    return chosen_output(str(output), read, OURS, overwrite, last_line=True)


def write_contrasts(
    output: str | Path, made: Sequence[Contrast], ratings: Iterable[dict[str, Any]] = ()
) -> dict[str, int]:
    """Write rows as JSON lines, after the ratings that they join, if any.

    Args:
        output: file to write.
        made: rows of synthetic contrast data.
        ratings: rows to write before them.

    Returns:
        how many rows of each kind there are, and, under "ratings", how many ratings.
    """
    from bleurt_repro.metric.files.writing import write_json_lines

    before = list(ratings)
    write_json_lines(Path(output), [*before, *made])
    return {**({"ratings": len(before)} if before else {}), **Counter(str(row["system"]) for row in made)}


def rated_well(ratings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the ratings whose score is at or above the quantile `GOOD_QUANTILE`."""
    good = np.quantile([row["score"] for row in ratings], GOOD_QUANTILE)
    return [row for row in ratings if row["score"] >= good]


def draw(of: Sequence[Any], random: Random) -> Any:
    """Draw one of some things, all equally likely."""
    return of[int(random.integers(len(of)))]
