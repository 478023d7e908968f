"""Copies, empty candidates and copies without a word that a checkpoint gets wrong, and some that it gets right.

    python recipes/hard_extremes.py --checkpoint bleurt-repro-base --ratings ratings.jsonl --held-out held_out.jsonl \
        --parallel en-de.tsv.gz --leave-out multi30k --output extremes.jsonl

A checkpoint may score nearly all copies high and nearly all empty candidates low, and miss some kinds of text. It scores both of texts of
many kinds: references of ratings, references put together, pieces of them, references whose end stands twice, sentences and short sentences
of parallel text. With --outputs, empty candidates get systems' outputs as references, too, and texts that are cut off: some are hardly
sentences; and copies get references with one of their outputs after them, which say the same twice. With --left-out, references without one
of their words, which may pass for copies, get no more than a score of their own. A pair that it misses gets the score that it should have,
and stands twice where it is far off; of the others a sample is taken, with the scores that they have unless they are empty. So are
references with another one as candidate, which would follow the empty candidates down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from learning_pairs import write_pairs

from bleurt_repro.datasets_builders.contrasts.parallel_contrasts import read_sentences
from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
from bleurt_repro.datasets_builders.synthetic.segments import split_sentences
from bleurt_repro.metric.scorer import BleurtScorer

COPY, EMPTY, UNRELATED = "anchor: identical", "anchor: empty", "anchor: unrelated"
LEFT_OUT = "contrast: word left out"
LEAST_LEFT = 11  # words beside the one that is left out
MOST_WORDS = 6  # of a short sentence
MOST_TOGETHER = 3  # references that are put together
MOST_OF_A_PIECE, MOST_TWICE = 8, 5  # words of a piece of a reference, and of an end that stands twice


def main(
    checkpoint: Annotated[str, typer.Option(help="That scores them: folder, embedded name or Hub id.")],
    ratings: Annotated[Path, typer.Option(help="Ratings whose references are taken.")],
    parallel: Annotated[
        list[Path], typer.Option(help="Parallel text: source, split, English, other language; repeatable.")
    ],
    output: Annotated[Path, typer.Option(help="JSONL file to write.")],
    held_out: Annotated[
        list[Path] | None, typer.Option(help="Ratings whose references are left out; repeatable.")
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="Beginnings of the names of sources that are left out; repeatable.")
    ] = None,
    outputs: Annotated[
        Path | None, typer.Option(help="Ratings or outputs; candidates of references not held out are texts, too.")
    ] = None,
    number: Annotated[int, typer.Option(help="Texts of each kind, at most.")] = 6_000,
    empty_score: Annotated[float, typer.Option(help="Of an empty candidate.")] = -2.6,
    copy_score: Annotated[float, typer.Option(help="Of a copy.")] = 1.9,
    left_out: Annotated[int, typer.Option(help="References that a word is left out of.")] = 0,
    left_out_score: Annotated[float, typer.Option(help="Of one without a word, at most.")] = 1.2,
    missed_by: Annotated[float, typer.Option(help="How far off a missed pair is, at least.")] = 0.35,
    others: Annotated[int, typer.Option(help="Of each end, pairs that are not missed, at most.")] = 800,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
) -> None:
    """Draw the texts, score their pairs, and write missed ones and a sample of the others."""
    random = np.random.default_rng(seed)
    held = {row["reference"] for path in held_out or () for row in rating_records(path)}
    references = sorted({row["reference"] for row in rating_records(ratings)} - held)
    sentences = sorted(
        {english for path in parallel for english, _ in read_sentences(path, "", leave_out or ())} - held
    )
    short = [text for text in sentences if len(text.split()) <= MOST_WORDS]
    several = [text for text in references if len(split_sentences(text)) > 1]
    together = [
        " ".join(_some(references, int(random.integers(2, MOST_TOGETHER + 1)), random)) for _ in range(number // 2)
    ]
    odd = [
        *(_piece(text.split(), random) for text in _some(references, number // 12, random)),
        *(_with_end_twice(text.split(), random) for text in _some(references, number // 12, random)),
    ]
    kinds = {
        EMPTY: [
            *_some(references, 2 * number, random),
            *_some(short, number, random),
            *_some([text for text in short if text.endswith("?")], number // 3, random),
            *_some(sentences, number // 3, random),
            *_some(together, number // 3, random),
            *odd,
            *(_unusual(references, _outputs(outputs, held), number, random) if outputs else ()),
        ],
        COPY: [
            *together,
            *_some(several, number, random),
            *_some(references, number // 4, random),
            *_some(sentences, number // 3, random),
            *odd,
            *(_said_twice(outputs, held, number // 6, random) if outputs else ()),
        ],
        LEFT_OUT: _some([text for text in references if len(text.split()) > LEAST_LEFT], left_out, random),
    }
    scorer = BleurtScorer(checkpoint, dtype="bfloat16")
    rows: list[dict[str, Any]] = []
    made: dict[str, Callable[[str], str]] = {
        EMPTY: lambda text: "",
        COPY: lambda text: text,
        LEFT_OUT: lambda text: _without_a_word(text.split(), random),
    }
    for kind, score in ((EMPTY, empty_score), (COPY, copy_score), (LEFT_OUT, left_out_score)):
        texts = [text for text in dict.fromkeys(kinds[kind]) if text not in held]  # a piece may be one
        if not texts:
            continue
        candidates = [made[kind](text) for text in texts]
        own = np.array(scorer.score(references=texts, candidates=candidates))
        off = (own - score) * (-1 if kind == COPY else 1)
        missed, far = off > missed_by, off > 2 * missed_by
        chosen = [
            *np.flatnonzero(missed),
            *np.flatnonzero(far),
            *_some(np.flatnonzero(~missed).tolist(), others, random),
        ]
        rows += [
            {
                "reference": texts[i],
                "candidate": candidates[i],
                "score": score if missed[i] or kind == EMPTY else float(own[i]),
                "system": kind,
            }
            for i in chosen
        ]
        typer.echo(f"{kind}: {missed.sum():,} of {len(texts):,} missed")
    drawn = _some(references, min(others, len(references)) // 2 * 2, random)
    pairs = {"references": drawn[::2], "candidates": drawn[1::2]}
    rows += [
        {"reference": reference, "candidate": candidate, "score": score, "system": UNRELATED}
        for reference, candidate, score in zip(*pairs.values(), scorer.score(**pairs), strict=True)
    ]
    write_pairs(output, (rows[i] for i in random.permutation(len(rows))))


def _some(items: Sequence[Any], number: int, random: np.random.Generator) -> list[Any]:
    return [items[i] for i in random.permutation(len(items))[:number]]


def _rows(path: Path, held: set[str]) -> list[dict[str, Any]]:
    return [row for row in rating_records(path, required=("reference", "candidate")) if row["reference"] not in held]


def _outputs(path: Path, held: set[str]) -> list[str]:
    return sorted({row["candidate"] for row in _rows(path, held)} - held)


def _said_twice(path: Path, held: set[str], number: int, random: np.random.Generator) -> list[str]:
    return [f"{row['reference']} {row['candidate']}" for row in _some(_rows(path, held), number, random)]


def _unusual(references: list[str], outputs: list[str], number: int, random: np.random.Generator) -> list[str]:
    """Return outputs, and texts that end where no sentence does: outputs, references, a reference with the beginning of an output."""
    begun = [_beginning(text.split(), random) for text in _some(outputs, number // 2, random)]
    return [
        *_some(outputs, 2 * number, random),
        *begun,
        *(" ".join(texts) for texts in zip(_some(references, number // 2, random), begun, strict=False)),
        *(_beginning(text.split(), random) for text in _some(references, number // 2, random)),
    ]


def _beginning(words: list[str], random: np.random.Generator) -> str:
    return " ".join(words[: int(random.integers(1, max(2, len(words))))])


def _piece(words: list[str], random: np.random.Generator) -> str:
    length = int(random.integers(1, MOST_OF_A_PIECE + 1))
    start = int(random.integers(max(1, len(words) - length + 1)))
    return " ".join(words[start : start + length])


def _without_a_word(words: list[str], random: np.random.Generator) -> str:
    place = int(random.integers(len(words)))
    return " ".join(words[:place] + words[place + 1 :])


def _with_end_twice(words: list[str], random: np.random.Generator) -> str:
    return " ".join([*words, *words[-int(random.integers(1, MOST_TWICE + 1)) :]])


if __name__ == "__main__":
    typer.run(main)
