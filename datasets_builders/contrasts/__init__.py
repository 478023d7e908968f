"""Synthetic contrast data: pairs whose order is known by construction, because one candidate was changed on purpose.

Human ratings seldom show a metric a fluent sentence with one wrong word beside a good one that shares few words with
the reference. Synthetic contrast data does: a sentence and a paraphrase of it, against a near copy of the sentence
that means something else. Each maker is a command of `bleurt-repro data`:

| file | command | makes |
|---|---|---|
| `anchors` | `data anchors` | ratings with extreme candidates added: identical, empty, unrelated, damaged |
| `parallel_contrasts` | `data contrasts` | paraphrases from parallel text, against altered near copies |
| `templates` | `data roles` | template sentences whose two participants are exchanged |
| `templates` | `data opposites` | template sentences turned into their opposites |
| `paraphrases` | `data paraphrases` | sentences in two wordings, each with the other wording as it is and with its meaning changed |
| `near_copies` | `data near-copies` | sentences with one change, most of which change the meaning |

`alterations` has the rules that change one thing in a sentence, `degenerate` the texts that no system should be
rewarded for. This module has what the makers share. A row is a dict with the columns of ratings (reference, candidate,
score) and a "system" that names the kind of pair. The same seed makes the same rows. The scores of all makers but
`anchors` are in standard deviations of ratings: add their files to standardised ratings. Anchors take quantiles of the
ratings that they are added to, so they fit any scale.
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

# The last line of a file of contrasts or anchors, by which an output of an earlier run is recognised.
OURS = re.compile(rb'\{.*"system": "(contrast|anchor): ')

# Scores of a copy, of a paraphrase, and of a sentence about something else.
COPY, SAME, UNRELATED = 1.0, 0.8, -1.4
# Alterations lower the score of the unaltered text by this much. Absolute low scores cost a model nine points of tau,
# since people rate candidates with one error about average.
CHANGED, PARTLY = 1.0, 0.7
# In a text of several sentences of which one is altered, the others still hold: this share of the loss remains.
JOINED_WEIGHT = 0.75
# Candidates that people rated among the best 30 % count as good translations.
GOOD_QUANTILE = 0.7


def contrast(reference: str, candidate: str, score: float, alteration: str) -> Contrast:
    """Make a row of synthetic contrast data.

    Args:
        reference: the text to compare with.
        candidate: the text to score.
        score: the rating, in standard deviations of ratings.
        alteration: what was done to the candidate, such as "number"; it becomes the system "contrast: number".
    """
    return {
        "reference": reference,
        "candidate": candidate,
        "score": round(score, 4),
        "system": f"contrast: {alteration}",
    }


def chosen_contrasts(output: str | Path, inputs: Iterable[str | Path | None] = (), overwrite: bool = False) -> Path:
    """Check the file to write rows to, and return its path.

    Args:
        output: file to write.
        inputs: files that are read.
        overwrite: whether to replace a file that does not hold contrasts.

    Raises:
        ValueError: if the output is one of the inputs, a folder, or a file that no run of the library wrote.
    """
    from bleurt_repro.metric.files.writing import validate_output

    paths = [None if path is None else str(path) for path in inputs]
    return validate_output(str(output), paths, OURS, overwrite, last_line=True)


def write_contrasts(
    output: str | Path, contrasts: Sequence[Contrast], ratings: Iterable[dict[str, Any]] = ()
) -> dict[str, int]:
    """Write rows as JSON lines, after the ratings that they are added to, if any.

    Args:
        output: file to write.
        contrasts: rows of synthetic contrast data.
        ratings: rows to write before them.

    Returns:
        The number of rows by system, and, under "ratings", the number of ratings.
    """
    from bleurt_repro.metric.files.writing import write_json_lines

    ratings = list(ratings)
    write_json_lines(Path(output), [*ratings, *contrasts])
    return {**({"ratings": len(ratings)} if ratings else {}), **Counter(str(row["system"]) for row in contrasts)}


def rated_well(ratings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the ratings whose score is at or above the quantile `GOOD_QUANTILE`."""
    good = np.quantile([row["score"] for row in ratings], GOOD_QUANTILE)
    return [row for row in ratings if row["score"] >= good]


def draw(options: Sequence[Any], random: Random) -> Any:
    """Draw one of several options, all equally likely."""
    return options[int(random.integers(len(options)))]
