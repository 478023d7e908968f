"""Measure how far a checkpoint's scores are from scores that were published for it."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bleurt_repro.metric.files.records import numbered_lines, open_input, parse_json

if TYPE_CHECKING:
    from bleurt_repro.metric.forward.encoding import PairEncoder

# float32 arithmetic in another order moves an official score by about 2e-6; a wrong GELU moves it by 4e-4.
MAX_DIFFERENCE = 2e-5
FIELDS = '{"reference": text, "candidate": text, "score": number} and, if known, "input_ids", a list of numbers'


@dataclass(frozen=True)
class ScoredPair:
    """A published score: its line in the file, the pair, the score, and the token ids if they are known."""

    line: int
    reference: str
    candidate: str
    score: float
    input_ids: list[int] | None


@dataclass(frozen=True)
class Parity:
    """What a comparison found.

    Attributes:
        pairs: how many scores were compared.
        largest: the largest difference.
        worst_line: where in the file of scores it is.
        with_ids: how many of the pairs came with token ids.
        same_ids: in how many of those the token ids are identical.
    """

    pairs: int
    largest: float
    worst_line: int
    with_ids: int
    same_ids: int

    def __str__(self) -> str:
        ids = f", token ids identical in {self.same_ids} of {self.with_ids}" if self.with_ids else ""
        return f"{self.pairs} pairs, largest difference {self.largest:.1e}{ids}"


def measure_parity(checkpoint: str, scores: Path) -> Parity:
    """Score pairs on the CPU in float32 and compare with the scores given.

    Args:
        checkpoint: as for `BleurtScorer`.
        scores: JSON lines of reference, candidate, score and, if known, the model's input_ids.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file holds no scores, or naming the line that is malformed.
    """
    from bleurt_repro.metric.forward.encoding import PairEncoder
    from bleurt_repro.metric.scorer import BleurtScorer

    pairs = read_scored_pairs(scores)
    scorer = BleurtScorer(checkpoint, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that long pairs are cut is what is being compared, and no news
        found = scorer.score(references=[p.reference for p in pairs], candidates=[p.candidate for p in pairs])
    differences = [_difference(score, pair.score) for score, pair in zip(found, pairs, strict=True)]
    worst = max(range(len(pairs)), key=differences.__getitem__)
    encoder = PairEncoder(scorer.tokenizer, scorer.layout)
    same = [_ids(encoder, pair) == pair.input_ids for pair in pairs if pair.input_ids is not None]
    return Parity(len(pairs), differences[worst], pairs[worst].line, len(same), sum(same))


def read_scored_pairs(file: Path) -> list[ScoredPair]:
    """Read JSON lines of published scores; blank lines and other fields are left alone.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no scores, or naming the line that is malformed.
    """
    if not file.is_file():
        raise FileNotFoundError(f"no file of scores {file}")
    with open_input(file) as opened:
        lines = numbered_lines(opened, str(file))
        pairs = [_scored_pair(line, number, file) for number, line in lines if line.strip()]
    if not pairs:
        raise ValueError(f"{file} holds no scores: expected lines of {FIELDS}")
    return pairs


def _scored_pair(line: str, number: int, file: Path) -> ScoredPair:
    place = f"{file}, line {number}"
    record = parse_json(line, place, f"each line is {FIELDS}")
    try:
        pair = ScoredPair(number, record["reference"], record["candidate"], record["score"], record.get("input_ids"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{place}: not a scored pair ({error}); each line is {FIELDS}") from error
    texts = isinstance(pair.reference, str) and isinstance(pair.candidate, str)
    if not texts or isinstance(pair.score, bool) or not isinstance(pair.score, int | float):
        raise ValueError(f"{place}: not a scored pair; each line is {FIELDS}")
    return pair


def _difference(found: float, published: float) -> float:
    difference = abs(found - published)
    return difference if math.isfinite(difference) else math.inf


def _ids(encoder: PairEncoder, pair: ScoredPair) -> list[int]:
    tokens = encoder.tokenize([pair.reference, pair.candidate])
    return encoder.encode([tokens[pair.reference], tokens[pair.candidate]]).ids
