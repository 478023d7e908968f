"""What the experiments `sanity` and `adversarial` share: the metrics under test, their candidates, and the failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bleurt_repro.training.metrics.baselines import Score, Scored, find_baseline, table_name
from bleurt_repro.training.metrics.options import check_different, shorten


class TestedMetric(NamedTuple):
    """A metric under test.

    Attributes:
        kind: "checkpoint" or "baseline".
        name: name as `BleurtScorer` or `find_baseline` takes it.
        label: name in tables.
    """

    kind: str
    name: str
    label: str

    def open(self, scorer_options: dict[str, Any]) -> Score:
        """Return the function that scores references and candidates; a checkpoint is opened once.

        Args:
            scorer_options: further arguments of `BleurtScorer`.

        Raises:
            ValueError: if a checkpoint needs sources, which these experiments do not have.
        """
        if self.kind == "baseline":
            return find_baseline(self.name)
        from bleurt_repro.metric.scorer import BleurtScorer

        scorer = BleurtScorer(self.name, **scorer_options)
        if "source" in scorer.layout.required:
            raise ValueError(
                f"checkpoint {self.name} reads sources, but this experiment has none: name one that does not"
            )

        def score(references: Sequence[str], candidates: Sequence[str]) -> Scored:
            result = scorer.compute(references=list(references), candidates=list(candidates))
            return Scored(result.scores, result.signature)

        return score


def tested_metrics(checkpoints: Sequence[str], baselines: Sequence[str]) -> list[TestedMetric]:
    """Return the metrics under test, checkpoints first.

    Raises:
        ValueError: if there is none, a baseline is unknown, or two have the same name in tables.
    """
    if not checkpoints and not baselines:
        raise ValueError("nothing to test: name at least one checkpoint or baseline")
    for name in baselines:
        find_baseline(name)
    metrics = [TestedMetric("checkpoint", name, shorten(name)) for name in checkpoints]
    metrics += [TestedMetric("baseline", name, table_name(name)) for name in baselines]
    check_different([metric.label for metric in metrics])
    return metrics


@dataclass
class Candidates:
    """Candidates of several categories, as columns of equal length.

    Attributes:
        references: reference of each candidate.
        candidates: the candidates.
        categories: category of each candidate.
        skipped: number of candidates that could not be made, by reason.
    """

    references: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)

    def add(self, reference: str, category: str, candidate: str) -> None:
        """Add a candidate."""
        self.references.append(reference)
        self.candidates.append(candidate)
        self.categories.append(category)

    def add_changed(self, reference: str, category: str, candidate: str) -> None:
        """Add a candidate; if it is the same as the reference but for white space, count it as skipped."""
        if candidate.split() == reference.split():
            reason = f"{category} equal to the reference"
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
        else:
            self.add(reference, category, candidate)


def failures_table(columns: Sequence[str], failures: Sequence[Mapping[str, Any]]) -> str:
    """Return failures as tab-separated text with a header.

    Args:
        columns: names of the columns.
        failures: one mapping per row; tabs and line breaks within its texts become spaces.
    """
    from bleurt_repro.metric.files.tables import plain_cell

    def cell(value: Any) -> str:
        return str(value) if isinstance(value, float) else str(plain_cell(" ".join(str(value).split())))

    lines = [list(columns), *([cell(failure[name]) for name in columns] for failure in failures)]
    return "".join("\t".join(line) + "\n" for line in lines)
