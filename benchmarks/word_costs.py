"""Does the word-by-word view find the error? One known error a pair, alone and among harmless differences.

    python benchmarks/word_costs.py --sentences sentences.tsv.gz --parallel en-de.tsv.gz --output docs/results/word-costs.json

Errors are made by the alterations of `datasets_builders/contrasts/alterations.py`, the same number of each kind:

- `one error`: the reference is a sentence (the last column of `--sentences`), the candidate the same with one error;
- `error in a paraphrase`: the reference is a sentence, the candidate another of the same meaning (two English sentences
  with one translation in common, from the last two columns of `--parallel`) with one error; they differ in at least
  three stretches, so that most of the differences are harmless.

A method finds the error if the lowest of its effects lies on the words that were altered or, for words left out, touches
their place. `erasure` is the score minus the score without a word; for words left out, the words beside their place count.
`chance` is the share of differing stretches that lie on the error: what choosing one of them at random would find.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bleurt_repro import BleurtScorer
from bleurt_repro.datasets_builders.contrasts.alterations import (
    change_name,
    change_negation,
    change_number,
    change_tense,
    leave_out,
    names_in,
    put_in,
    swap_roles,
)
from bleurt_repro.datasets_builders.contrasts.parallel_contrasts import same_meaning
from bleurt_repro.metric.compare.attribution import Span, attribute, differences, words

KINDS = ("number", "name", "negation", "tense", "roles", "addition", "omission")
WORDS = range(6, 31)  # of a sentence
READ = 50_000  # sentences of a file
HARMLESS = 2  # differences at least between the texts of a paraphrase
NAMES = 300  # to choose wrong names from


@dataclass(frozen=True)
class Case:
    """A pair whose error is known.

    Attributes:
        kind: of the error.
        reference, candidate: the texts.
        places: of the error in the candidate; empty ones where words were left out.
    """

    kind: str
    reference: str
    candidate: str
    places: list[Span]


Place = tuple[Span, float]
Method = Callable[[BleurtScorer, Case], list[Place]]


def main() -> None:
    """Make the pairs, run the methods, and write one JSON file."""
    options = parse()
    random = np.random.default_rng(options.seed)
    sentences = [text for text in last_columns(options.sentences, 1) if len(text[0].split()) in WORDS]
    parallel = [(english, other) for english, other in last_columns(options.parallel, 2)]
    alike = [pair for pair in same_meaning(parallel) if all(len(text.split()) in WORDS for text in pair)]
    alike = [pair for pair in alike if len(differences(*pair)) >= HARMLESS]
    names = sorted({name for (text,) in sentences[: READ // 50] for name in names_in(text)})[:NAMES]
    sets = {
        "one error": make_cases([(text, text) for (text,) in sentences], names, options.each, random),
        "error in a paraphrase": make_cases(alike, names, options.each, random),
    }
    scorer = BleurtScorer(options.checkpoint, progress=False)
    results = {
        "benchmark": "word costs",
        "command": f"python benchmarks/word_costs.py {' '.join(sys.argv[1:])}",
        "seed": options.seed,
        "signature": scorer.signature,
        "data": {Path(path).name: sha256(path) for path in (options.sentences, options.parallel)},
        "sets": {
            name: {
                "pairs": len(cases),
                "differing_stretches_a_pair": rounded(statistics.mean(len(stretches(case)) for case in cases)),
                "found_percent": {
                    "chance": rounded(100 * statistics.mean(map(by_chance, cases))),
                    "erasure": found(scorer, cases, erasure),
                    "replacement": found(scorer, cases, replacement),
                },
            }
            for name, cases in sets.items()
        },
    }
    text = json.dumps(results, indent=1)
    Path(options.output).write_text(f"{text}\n", encoding="utf-8")
    print(text)  # noqa: T201


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sentences", required=True, help="English sentences: the last column of a TSV file (.gz)")
    parser.add_argument("--parallel", required=True, help="English and another language: the last two columns (.gz)")
    parser.add_argument("--output", required=True, help="JSON file to write")
    parser.add_argument("--each", type=int, default=20, help="pairs of each kind of error (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of sentences and errors (default: 0)")
    parser.add_argument("--checkpoint", default="bleurt-repro-mini", help="what to score with (default: %(default)s)")
    return parser.parse_args()


def last_columns(path: str, count: int) -> Iterator[list[str]]:
    """Read the last columns of a TSV file, from its beginning."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line, _ in zip(lines, range(READ * count * 2), strict=False):
            yield line.rstrip("\n").split("\t")[-count:]


def make_cases(
    pairs: Sequence[tuple[str, str]], names: Sequence[str], each: int, random: np.random.Generator
) -> list[Case]:
    """Alter the second text of pairs, until there are `each` of every kind."""
    made: dict[str, list[Case]] = defaultdict(list)
    order = random.permutation(len(pairs))
    for i, place in enumerate(order):
        if all(len(made[kind]) == each for kind in KINDS):
            break
        reference, text = pairs[place]
        altered = alterations(text, pairs[order[i - 1]][1], names, random)
        missing = [kind for kind in KINDS if len(made[kind]) < each and altered[kind] not in (None, text)]
        if missing:
            kind = min(missing, key=lambda kind: len(made[kind]))
            candidate = str(altered[kind])
            made[kind].append(
                Case(kind, reference, candidate, [found.candidate for found in differences(text, candidate)])
            )
    return [case for kind in KINDS for case in made[kind] if case.places]


def alterations(text: str, other: str, names: Sequence[str], random: np.random.Generator) -> dict[str, str | None]:
    """Alter a text in each way that it can be."""
    return {
        "number": change_number(text, random),
        "name": change_name(text, names, random),
        "negation": change_negation(text, random),
        "tense": change_tense(text, random),
        "roles": swap_roles(text, set(names), random),
        "addition": put_in(text, other, random),
        "omission": leave_out(text, random),
    }


def replacement(scorer: BleurtScorer, case: Case) -> list[Place]:
    """The library's method."""
    effects = attribute(scorer, case.reference, case.candidate)
    return [(Span(effect.start, effect.end), effect.effect) for effect in effects]


def erasure(scorer: BleurtScorer, case: Case) -> list[Place]:
    """Leave one word out (https://arxiv.org/abs/1612.08220)."""
    spans = words(case.candidate)
    texts = [case.candidate, *(case.candidate[: span.start].rstrip() + case.candidate[span.end :] for span in spans)]
    whole, *rest = scorer.score(references=[case.reference] * len(texts), candidates=texts)
    return [(span, whole - score) for span, score in zip(spans, rest, strict=True)]


def found(scorer: BleurtScorer, cases: Sequence[Case], method: Method) -> dict[str, float]:
    """Compute in how many pairs, in percent, the lowest effect lies on the error: by kind and in all."""
    hits: dict[str, list[bool]] = {"all": []}
    for case in cases:
        places = method(scorer, case)
        lowest = min(places, key=lambda place: place[1])[0] if places else None
        hit = lowest is not None and on_error(lowest, case)
        hits.setdefault(case.kind, []).append(hit)
        hits["all"].append(hit)
    return {kind: rounded(100 * statistics.mean(own)) for kind, own in hits.items()}


def by_chance(case: Case) -> float:
    """Return the share of the differing stretches that lie on the error."""
    return statistics.mean(on_error(stretch, case) for stretch in stretches(case)) if stretches(case) else 0.0


def stretches(case: Case) -> list[Span]:
    """Return the places where a candidate differs from its reference."""
    return [difference.candidate for difference in differences(case.reference, case.candidate)]


def on_error(span: Span, case: Case) -> bool:
    """Return whether a place overlaps the error or, where words were left out, touches their place."""
    return any(
        span.start < place.end and place.start < span.end
        if place.start < place.end
        else span.start - 1 <= place.start <= span.end
        for place in case.places
    )


def sha256(path: str) -> str:
    """Hash a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def rounded(value: float) -> float:
    """Round a figure for the file."""
    return round(float(value), 1)


if __name__ == "__main__":
    main()
