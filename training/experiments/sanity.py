"""Ask metrics what every reader knows: which of two candidates has the error, and what belongs at the extremes.

    bleurt-repro experiment sanity --checkpoint bleurt-repro-mini --baselines sentbleu chrf++ --output OUT
    bleurt-repro experiment sanity --checkpoint ORG/NAME --references ratings.jsonl --output OUT

The extremes are candidates whose rank is known: the reference itself, damaged copies of it, unrelated and empty text. The
identical candidate must score above every other one of its reference; the empty one at the very bottom of all scores; one that
belongs to another reference close to the bottom.

OUT gets results.json (shares, intervals, signatures, fingerprints of the data), failures.tsv (every pair judged
wrongly), and, drawn from results.json alone, table.md, sanity.png and sanity.svg.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.metric.statistics import CONFIDENCE, share_with_interval
from bleurt_repro.training.experiments.baselines import Score, find_baseline, judged_metrics
from bleurt_repro.training.experiments.minimal_pairs import (
    COLUMNS,
    OVERALL,
    TABLES,
    MinimalPair,
    count_by_type,
    prefer,
    read_minimal_pairs,
    score_function,
)
from bleurt_repro.training.experiments.options import CACHE_HELP, command, read_options
from bleurt_repro.training.experiments.report import MARKERS, add_legend, draw_frame, write_report
from bleurt_repro.training.results import COLOURS, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What a metric is expected to reach, as shares of pairs: in all pairs together, and in each type.
EXPECTED_OVERALL = 0.85
EXPECTED_OF_TYPE = 0.70
FAILURE_COLUMNS = ("metric", "table", *COLUMNS, "score_better", "score_worse")
MOST_REFERENCES = 1000
IDENTICAL, RATED, DROPPED, SHUFFLED, UNRELATED, EMPTY = KINDS = (
    "identical",
    "rated",
    "word_dropped",
    "shuffled",
    "unrelated",
    "empty",
)
QUESTIONS = {
    "minimal_pairs": "against itself with an error in it",
    "near_copies": "against the reference with an error in it, which shares more words with it",
    "swapped_roles": "against itself with two participants exchanged",
    "free_paraphrases": "against itself with its meaning changed",
}


@dataclass
class SanityOptions:
    """What is judged, and on what."""

    output: str = field(metadata={"help": "Folder to write results, table, plot and failures to."})
    checkpoint: list[str] = field(
        default_factory=list, metadata={"help": "Checkpoints to judge; none that reads sources."}
    )
    baselines: list[str] = field(default_factory=list, metadata={"help": "sentbleu, chrf++, bertscore:ENCODER, ..."})
    pairs: str | None = field(
        default=None, metadata={"help": "Table of type, reference, better, worse; the project's own by default."}
    )
    references: str | None = field(
        default=None, metadata={"help": "Ratings, or one reference a line: check the extremes, too."}
    )
    most_references: int = field(default=MOST_REFERENCES, metadata={"help": "How many references to sample."})
    seed: int = field(default=0, metadata={"help": "Of the sample and the candidates made for it."})
    cache: str | None = field(default=None, metadata={"help": CACHE_HELP})

    def __post_init__(self) -> None:
        if self.most_references < 1:
            raise ValueError(f"the sample of references must be of at least 1, found {self.most_references}")


def main(words: Sequence[str]) -> Result:
    """Run the experiment as the module's docstring says."""
    return run_sanity(*read_options((SanityOptions,), words))


def run_sanity(options: SanityOptions, scorer_options: Mapping[str, Any] | None = None) -> Result:
    """Judge every metric, and write and return the results.

    Args:
        options: what is judged, and on what.
        scorer_options: further arguments of `BleurtScorer`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if nothing is to be judged, two metrics have one name, a baseline is unknown, or a file is malformed.
    """
    if not options.checkpoint and not options.baselines:
        raise ValueError("nothing to judge: name at least one checkpoint or baseline")
    for name in options.baselines:
        find_baseline(name)
    metrics = judged_metrics(options.checkpoint, options.baselines)
    files = {Path(options.pairs).stem: Path(options.pairs)} if options.pairs else TABLES
    tables = {name: read_minimal_pairs(path) for name, path in files.items()}
    extremes = None
    if options.references:
        extremes = make_extremes(read_references(options.references), options.most_references, options.seed)
    rows, failures = [], []
    for kind, name, shown in metrics:
        row, judged = _judge(kind, name, shown, tables, extremes, {**(scorer_options or {}), "cache": options.cache})
        rows.append(row)
        failures += [{"metric": row["name"], **pair} for pair in judged if not pair["right"]]
    result = Result(
        kind="sanity",
        command=command("sanity", (options,)),
        seed=options.seed if options.references else None,
        signatures={row["name"]: row["signature"] for row in rows},
        data=_data(files, tables),
        figures={
            "confidence": CONFIDENCE,
            **_references(options),
            "expected": {OVERALL: EXPECTED_OVERALL, "type": EXPECTED_OF_TYPE},
            "rows": rows,
        },
    )
    texts = {"failures.tsv": _draw_failures(failures), "table.md": draw_table(result)}
    write_report(options.output, result, texts, {"sanity": draw_plot(result)})
    return result


def _judge(
    kind: str,
    name: str,
    shown: str,
    tables: dict[str, list[MinimalPair]],
    extremes: Extremes | None,
    options: dict[str, Any],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    score = score_function(kind, name, options)
    row: dict[str, Any] = {"name": shown, "kind": kind, "signature": "", "tables": {}}
    all_judged = []
    for table, pairs in tables.items():
        judged, row["signature"] = prefer(pairs, score)
        shares = count_by_type(judged)
        row["tables"][table] = {"shares": shares, "below": below_expected(shares)}
        all_judged += [{"table": table, **pair} for pair in judged]
    if extremes:
        row["extremes"] = measure_extremes(extremes, score)
    return row, all_judged


def below_expected(shares: dict[str, dict[str, Any]]) -> list[str]:
    """Return the types, `OVERALL` among them, whose share is below the expected one; a metric with none passes.

    Args:
        shares: of `count_by_type`.
    """
    return [
        name
        for name, figure in shares.items()
        if figure["share"] < (EXPECTED_OVERALL if name == OVERALL else EXPECTED_OF_TYPE)
    ]


def _data(files: dict[str, Path], tables: dict[str, list[MinimalPair]]) -> dict[str, Any]:
    from bleurt_repro.training.results import fingerprint

    return {name: {**fingerprint([path])[0], "pairs": len(tables[name])} for name, path in files.items()}


def _references(options: SanityOptions) -> dict[str, Any]:
    from bleurt_repro.training.results import fingerprint

    if options.references is None:
        return {}
    return {"references": {**fingerprint([options.references])[0], "seed": options.seed}}


def _draw_failures(failures: list[dict[str, Any]]) -> str:
    """Draw a table of the pairs judged wrongly, with `FAILURE_COLUMNS`, as tab-separated text."""
    from bleurt_repro.metric.files.writing import plain_cell

    def cell(value: Any) -> str:
        # a tab or line break within a text would break the table
        return str(value) if isinstance(value, float) else str(plain_cell(" ".join(str(value).split())))

    lines = [[cell(failure[name]) for name in FAILURE_COLUMNS] for failure in failures]
    return "".join("\t".join(line) + "\n" for line in [list(FAILURE_COLUMNS), *lines])


def draw_table(results: Mapping[str, Any]) -> str:
    """Draw the Markdown tables of a results file: shares in percent with intervals, a column a metric."""
    rows = results["rows"]
    expected = {name: f"{100 * share:.0f} %" for name, share in _expected(results).items()}
    parts = [
        "Pairs in which the better candidate scores higher, in percent [95 % interval]; a tie counts as wrong. "
        f"Expected: {expected[OVERALL]} overall and {expected['type']} of each type.\n"
    ]
    for table in results["data"]:
        parts += _table_parts(table, rows)
    if "extremes" in rows[0]:
        parts += _extremes_parts(results)
    parts.append("Signatures:\n" + "".join(f"- {row['name']}: `{row['signature']}`\n" for row in rows))
    return "\n".join(parts)


def _expected(results: Mapping[str, Any]) -> dict[str, float]:
    return results["expected"] if "expected" in results else results["bars"]  # as version 0.1 called it


def _table_parts(table: str, rows: list[dict[str, Any]]) -> list[str]:
    import pandas

    shares = {row["name"]: row["tables"][table]["shares"] for row in rows}
    columns = {name: {kind: _share(figure) for kind, figure in found.items()} for name, found in shares.items()}
    counts = {kind: str(figure["n"]) for kind, figure in next(iter(shares.values())).items()}
    drawn = pandas.DataFrame({"pairs": counts, **columns}).rename(index=_words)
    return [
        f"**{_title(table)}**\n",
        draw_frame(drawn),
        "".join(_verdict(row["name"], row["tables"][table]) for row in rows),
    ]


def draw_plot(results: Mapping[str, Any]) -> Figure:
    """Draw the shares with intervals: a panel a table, a row a type, a mark a metric, and expected shares as lines."""
    from matplotlib.figure import Figure

    rows, tables = results["rows"], list(results["data"])
    kinds = [list(rows[0]["tables"][table]["shares"]) for table in tables]
    height = 1.4 + 0.42 * max(map(len, kinds))
    figure = Figure(figsize=(2.5 + 4.5 * len(tables), height), layout="constrained")
    panels = figure.subplots(1, len(tables), squeeze=False)[0]
    for table, axes in zip(tables, panels, strict=True):
        _draw_panel(axes, results, table)
    add_legend(figure, 3)
    return figure


def _draw_panel(axes: Axes, results: Mapping[str, Any], table: str) -> None:
    rows = results["rows"]
    counts = rows[0]["tables"][table]["shares"]
    for i, row in enumerate(rows):
        shift = 0.6 * ((i + 0.5) / len(rows) - 0.5)
        shares = list(row["tables"][table]["shares"].values())
        _draw_metric(axes, row["name"], shares, [place + shift for place in range(len(counts))], i)
    for name, line, title in (("type", ":", "each type"), (OVERALL, "--", "overall")):
        share = 100 * _expected(results)[name]
        axes.axvline(share, linestyle=line, color="#444444", linewidth=1, label=f"expected {title}, {share:.0f} %")
    axes.set_yticks(range(len(counts)), [f"{_words(name)} ({figure['n']})" for name, figure in counts.items()])
    axes.invert_yaxis()
    axes.set(xlim=(-2, 102), xlabel="better candidate higher, % (95 % interval)")
    axes.set_title(textwrap.fill(_title(table), 46), fontsize=9)
    axes.grid(axis="x", alpha=0.3)


def _draw_metric(axes: Axes, name: str, figures: list[dict[str, Any]], places: list[float], i: int) -> None:
    shares = [100 * figure["share"] for figure in figures]
    ends = [
        [max(100 * (figure["share"] - figure["low"]), 0) for figure in figures],
        [max(100 * (figure["high"] - figure["share"]), 0) for figure in figures],
    ]
    axes.errorbar(
        shares,
        places,
        xerr=ends,
        fmt=MARKERS[i % len(MARKERS)],
        color=COLOURS[i % len(COLOURS)],
        markersize=5,
        linewidth=1,
        capsize=2,
        label=name,
    )


def _extremes_parts(results: Mapping[str, Any]) -> list[str]:
    import pandas

    columns: dict[str, dict[str, str]] = {}
    for row in results["rows"]:
        found = row["extremes"]
        cells = {"identical above all others": _share(found["identical_first"])}
        cells |= {f"identical above {_words(kind)}": _share(figure) for kind, figure in found["against"].items()}
        for kind in (EMPTY, UNRELATED):
            cells[f"{kind}: percentile among all, mean (highest)"] = _percentile(found[kind]["all"])
            cells[f"{kind}: percentile among rated, mean (highest)"] = _percentile(found[kind][RATED])
            cells[f"{kind}: in the lowest percent of all"] = f"{100 * found[kind]['all']['in_lowest_percent']:.1f}"
        columns[row["name"]] = cells
    first = results["rows"][0]["extremes"]
    skipped = "".join(f"; {count} left out: {_words(reason)}" for reason, count in first["skipped"].items())
    made = ", ".join(f"{count} {_words(kind)}" for kind, count in first["candidates"].items())
    return [
        f"Extremes, on {first['references']} references of {results['references']['file']}: {made}{skipped}. "
        "Shares of references, and percentiles of scores, in percent; ties count against the metric.\n",
        draw_frame(pandas.DataFrame(columns)),
    ]


def _verdict(name: str, found: dict[str, Any]) -> str:
    below = ", ".join(f"{_words(kind)} {100 * found['shares'][kind]['share']:.0f}" for kind in found["below"])
    return f"- {name}: {'below in ' + below if below else 'reaches all'}\n"


def _title(table: str) -> str:
    name = _words(table).capitalize()
    return f"{name}: the better candidate {QUESTIONS[table]}" if table in QUESTIONS else name


def _share(figure: dict[str, Any]) -> str:
    return f"{100 * figure['share']:.1f} [{100 * figure['low']:.1f}, {100 * figure['high']:.1f}]"


def _percentile(figure: dict[str, float] | None) -> str:
    return "-" if figure is None else f"{figure['mean']:.2f} ({figure['highest']:.2f})"


def _words(name: str) -> str:
    return name.replace("_", " ")


# --- the extremes --------------------------------------------------------------------------------------------------


@dataclass
class Extremes:
    """Candidates whose rank is known, for a sample of references.

    Attributes:
        references: one an entry.
        candidates: one an entry.
        kinds: of `KINDS`, one an entry.
        owners: which reference of the sample the entry belongs to, counted from 0.
        skipped: how many candidates could not be made, by reason.
    """

    references: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)

    def add(self, owner: int, reference: str, kind: str, candidate: str) -> None:
        """Add an entry, unless it is a copy of the reference that is to be no copy: then count it."""
        if kind != IDENTICAL and candidate.split() == reference.split():
            reason = f"{kind} equal to the reference"
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
            return
        self.references.append(reference)
        self.candidates.append(candidate)
        self.kinds.append(kind)
        self.owners.append(owner)


def read_references(path: str | Path) -> dict[str, list[str]]:
    """Read references, each with the candidates it has in the file.

    Args:
        path: ratings with the columns reference and, if any, candidate; any other extension is text of one reference
            a line.

    Returns:
        by reference, in order of appearance, its distinct candidates.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if there are fewer than two references, or, naming file and line, one is blank.
    """
    from bleurt_repro.metric.files.records import file_form, read_lines, read_records

    if file_form(path):
        rows = [(place, record.get("reference"), record.get("candidate")) for place, record in read_records(path)]
    else:
        rows = [(f"line {number}", line, None) for number, line in enumerate(read_lines(str(path)), start=1)]
    found: dict[str, dict[str, None]] = {}
    for place, reference, candidate in rows:
        if not isinstance(reference, str) or not reference.strip():
            raise ValueError(f"{path}, {place}: no reference; each record or line needs one")
        candidates = found.setdefault(reference, {})
        if candidate is not None:
            candidates[candidate] = None
    if len(found) < 2:
        raise ValueError(
            f"{path}: expected at least two different references, found {len(found)}; the unrelated candidates need them"
        )
    return {reference: list(candidates) for reference, candidates in found.items()}


def make_extremes(references: dict[str, list[str]], most: int = MOST_REFERENCES, seed: int = 0) -> Extremes:
    """Make the candidates for a random sample of references.

    Args:
        references: of `read_references`.
        most: the size of the sample; all references, if there are no more.
        seed: decides the sample, the dropped words, the orders, and whose reference is the unrelated one.
    """
    random = np.random.default_rng(seed)
    texts = list(references)
    chosen = np.sort(random.permutation(len(texts))[:most])
    made = Extremes()
    for owner, place in enumerate(chosen):
        reference = texts[place]
        made.add(owner, reference, IDENTICAL, reference)
        for candidate in references[reference]:
            if candidate.strip():  # an empty one is added below
                made.add(owner, reference, RATED, candidate)
        other = texts[(place + random.integers(1, len(texts))) % len(texts)]
        made.add(owner, reference, DROPPED, _drop_some(reference, random))
        made.add(owner, reference, SHUFFLED, _shuffle(reference, random))
        made.add(owner, reference, UNRELATED, other)
        made.add(owner, reference, EMPTY, "")
    return made


def measure_extremes(made: Extremes, score: Score) -> dict[str, Any]:
    """Run the three checks.

    Args:
        made: of `make_extremes`.
        score: returns one score a (reference, candidate).

    Returns:
        `identical_first`: the share of references whose identical candidate scores above every other one, with its
        Wilson interval, and `against`, the same against each kind alone (a tie counts as not above);
        `empty` and `unrelated`: the mean and the highest percentile of such candidates, 0 to 100, and the share of
        them in the lowest percent.
    """
    scores = np.array(score(made.references, made.candidates).scores)
    kinds, owners = np.array(made.kinds), np.array(made.owners)
    own = scores[kinds == IDENTICAL]  # by owner, since each has exactly one
    return {
        "references": len(own),
        "candidates": {kind: int((kinds == kind).sum()) for kind in KINDS},
        "skipped": made.skipped,
        "identical_first": _first(own, scores, owners, kinds != IDENTICAL),
        "against": {kind: _first(own, scores, owners, kinds == kind) for kind in KINDS[1:] if (kinds == kind).any()},
        EMPTY: _percentiles(scores, kinds, EMPTY),
        UNRELATED: _percentiles(scores, kinds, UNRELATED),
    }


def _first(own: np.ndarray, scores: np.ndarray, owners: np.ndarray, members: np.ndarray) -> dict[str, Any]:
    """Count the references whose own score is above those of the members, among references that have any."""
    best = np.full(len(own), -np.inf)
    np.maximum.at(best, owners[members], scores[members])
    compared = np.isin(np.arange(len(own)), owners[members])
    return share_with_interval(int((own > best)[compared].sum()), int(compared.sum()))


def _percentiles(scores: np.ndarray, kinds: np.ndarray, kind: str) -> dict[str, Any]:
    """Compute the percentiles of a kind's scores, in percent of scores that are no higher: ties count against it.

    `all` is among the scores of all other kinds; `rated` among those of rated candidates alone, None without any.
    """
    among = {"all": scores[kinds != kind], RATED: scores[kinds == RATED]}
    return {name: _place(scores[kinds == kind], np.sort(others)) for name, others in among.items()}


def _place(scores: np.ndarray, others: np.ndarray) -> dict[str, float] | None:
    if not len(others) or not len(scores):
        return None
    places = 100 * np.searchsorted(others, scores, side="right") / len(others)
    return {
        "mean": float(places.mean()),
        "highest": float(places.max()),
        "in_lowest_percent": float((places <= 1).mean()),
    }


def _drop_some(text: str, random: np.random.Generator) -> str:
    """Drop at least one word and keep at least one; a single word stays, and so counts as skipped."""
    words = text.split()
    dropped = random.integers(1, len(words)) if len(words) > 1 else 0
    return " ".join(words[i] for i in np.sort(random.permutation(len(words))[dropped:]))


def _shuffle(text: str, random: np.random.Generator) -> str:
    words = text.split()
    return " ".join(words[i] for i in random.permutation(len(words)))
