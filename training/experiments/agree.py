"""Does a metric agree with your people? One page of text on a file of ratings: what `bleurt-repro agree` prints.

It measures what `experiment agreement` measures, beside sentence BLEU and chrF++, and says how many ratings an answer
takes. Nothing is written.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.statistics import CONFIDENCE

if TYPE_CHECKING:
    import pandas

# Sentence BLEU and chrF++ of sacreBLEU; the second is what a metric has to be better than.
BASELINES, RIVAL, RIVAL_NAME = ["bleu", "chrf++"], "chrf++", "chrF++"
LABELS = {"bleu": "sentence BLEU", "chrf++": "chrF++"}
MEASURES = {"kendall_tau": "Kendall tau", "pearson_r": "Pearson r"}
# Ratings of few segments give no answer, whatever their number: those of one segment are not independent.
FEWEST_SEGMENTS = 30
# Probability with which the number of ratings that is recommended shows a difference.
POWER = 0.8
# The smallest set of ratings on which fine-tuning was measured: the outputs for 38 inputs of WebNLG 2017
# (docs/reproduction/figure-3.md).
TUNED_RATINGS, TUNED_SEGMENTS = 311, 38
FINETUNING = (
    f"on WebNLG 2017, {TUNED_RATINGS} ratings of {TUNED_SEGMENTS} segments raised the lead over chrF++ in Kendall "
    "tau (x 100) from 2.2 to 5.1 in fluency, from 1.8 to 3.7 in grammar and from 1.2 to 6.5 in semantics"
)


def agree(ratings: str, checkpoint: str, scorer_options: Mapping[str, Any] | None = None) -> str:
    """Measure a checkpoint on a file of ratings, and return what it means as plain text.

    Args:
        ratings: file with the columns reference, candidate and score, and perhaps lp, source and system.
        checkpoint: name, folder or Hub id.
        scorer_options: further arguments of `BleurtScorer`.

    Raises:
        ValueError: if the file is malformed, or the ratings or scores of a language pair do not vary.
    """
    from bleurt_repro.training.metrics.cells import Cells
    from bleurt_repro.training.metrics.measure import measure_rows
    from bleurt_repro.training.metrics.options import MetricOptions
    from bleurt_repro.training.metrics.rows import score_metrics
    from bleurt_repro.training.metrics.samples import LANGUAGE_PAIR, rating_samples, rating_texts, read_ratings

    table = read_ratings(ratings, LANGUAGE_PAIR)
    samples = rating_samples(table, LANGUAGE_PAIR, list(MEASURES))
    metrics = MetricOptions(checkpoint=[checkpoint], baselines=BASELINES)
    with tempfile.TemporaryDirectory() as folder:
        rows = score_metrics(rating_texts(table), Cells(folder), metrics, scorer_options)
    return agreement_text(table, measure_rows(rows, samples, metrics))


def agreement_text(table: pandas.DataFrame, figures: Mapping[str, Any]) -> str:
    """Return the page on ratings and the figures of a checkpoint and the baselines.

    Args:
        table: ratings, as `read_ratings` returns them.
        figures: what `measure_rows` returns, the checkpoint's row first.
    """
    from tabulate import tabulate

    from bleurt_repro.training.metrics.samples import LANGUAGE_PAIR, segment_numbers

    segments, systems = len(set(segment_numbers(table).tolist())), table["system"].dropna().nunique()
    groups = table[LANGUAGE_PAIR].nunique()
    counts = f"{len(table):,} ratings of {segments:,} segments"
    counts += f" and {systems} systems" if systems else ", systems not named"
    counts += f", {groups} language pairs, averaged" if groups > 1 else ""
    head = ["x 100", *MEASURES.values()]
    cells = [
        [LABELS.get(row["name"], row["name"]), *(_cell(row, name) for name in MEASURES)] for row in figures["rows"]
    ]
    lines = [counts, "", str(tabulate(cells, head, disable_numparse=True)), f"[{CONFIDENCE:.0%} intervals]", ""]
    if segments < FEWEST_SEGMENTS:
        lines.append(f"No verdict: {segments} segments are too few, at least {FEWEST_SEGMENTS} are needed. Rate more.")
        return "\n".join(lines)
    checkpoint = figures["rows"][0]
    lines.append(_verdict(checkpoint["name"], figures["comparisons"], len(table)))
    enough = len(table) >= TUNED_RATINGS and segments >= TUNED_SEGMENTS
    verdict = "worth trying" if enough else "not measured on fewer ratings or segments than these"
    lines.append(f"Fine-tuning is {verdict}: {FINETUNING}.")
    if (checkpoint.get("training_references") or {}).get("seen"):
        lines.append("The checkpoint was fine-tuned on references of these ratings, so its figures are too high.")
    lines.append(checkpoint["signature"])
    return "\n".join(lines)


def _cell(row: Mapping[str, Any], measure: str) -> str:
    low, high = row["average_intervals"][measure]
    ends = "" if low is None else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * row['average'][measure]:.1f}{ends}"


def _verdict(name: str, comparisons: Sequence[Mapping[str, Any]], ratings: int) -> str:
    """Return whether the checkpoint and chrF++ differ in Kendall tau, and how many ratings would show the difference."""
    test = next(
        test
        for test in comparisons
        if test["measure"] == "kendall_tau" and {test["first"], test["second"]} == {name, RIVAL}
    )
    difference, low, high = test["difference"], test["low"], test["high"]
    is_ahead = test["first"] == name
    leader, other = (name, RIVAL_NAME) if is_ahead else (RIVAL_NAME, name)
    if low is None or difference <= 0:
        return f"{name} and {RIVAL_NAME} agree equally with your people."
    lead = f"{100 * difference:.1f} in Kendall tau x 100 (interval of the lead: {100 * low:.1f} to {100 * high:.1f})"
    if low > 0:
        return f"{leader} agrees more with your people than {other}, by {lead}."
    return (
        f"Not clear yet: {leader} agrees more with your people than {other}, by {lead}. If the difference is this large, about "
        f"{needed_ratings(ratings, difference, low, high):,} ratings are needed to show it ({POWER:.0%} probability)."
    )


def needed_ratings(ratings: int, difference: float, low: float, high: float) -> int:
    """Return how many ratings show a difference with probability `POWER`, to two digits.

    The standard error, taken from the interval, falls with the root of the number of ratings. A difference is shown if
    its interval is above 0.

    Args:
        ratings: number of ratings that were measured.
        difference: observed difference, above 0.
        low, high: its interval.
    """
    half = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    error = (high - low) / 2 / half
    number = ratings * ((half + NormalDist().inv_cdf(POWER)) * error / difference) ** 2
    digits = max(0, math.floor(math.log10(max(number, 1))) - 1)
    return math.ceil(number / 10**digits) * 10**digits
