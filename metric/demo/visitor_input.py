"""What visitors give, text boxes or files, and what they are told when it cannot be used.

What the demo takes at most, so that one visitor cannot keep it from the others.
"""

from __future__ import annotations

import contextlib
import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from bleurt_repro.metric.files.reading import SUFFIXES, read_segments

CHARACTERS = 5_000  # of one text
REFERENCES = 8  # of one pair
SEGMENTS = 1_000  # of a comparison
PAIRS = 4_000  # of a comparison: segments x references x systems
FILE_MEGABYTES = 2
REQUEST_MEGABYTES = 16  # of one request in all; what the limits above admit is far less in any language
POSTS_A_MINUTE = 600  # of one address: ten a second, far beyond what a person does
WAITING = 200  # requests in the queue; later ones are told to come back

IN_WORDS = (
    f"At most {SEGMENTS:,} segments of {CHARACTERS:,} characters, and files of {FILE_MEGABYTES} MB. "
    "For more, `bleurt-repro compare` does the same without limits."
)


def check_pair(references: Sequence[str], texts: Sequence[str]) -> None:
    """Refuse a pair that is too long.

    Raises:
        ValueError: saying what is too long, and how long it may be.
    """
    if len(references) > REFERENCES:
        raise ValueError(f"expected at most {REFERENCES} references, one a line, found {len(references)}")
    _check_characters([*references, *texts])


def check_comparison(references: Sequence[Sequence[str]], systems: Mapping[str, Sequence[str]]) -> None:
    """Refuse a comparison that is too long; raises as `check_pair` does."""
    longest = max([len(references), *map(len, systems.values())])
    if longest > SEGMENTS:
        raise ValueError(f"expected at most {SEGMENTS:,} segments, found {longest:,}. {IN_WORDS}")
    pairs = sum(map(len, references)) * len(systems)
    if pairs > PAIRS:
        raise ValueError(f"expected at most {PAIRS:,} pairs of candidate and reference, found {pairs:,}. {IN_WORDS}")
    _check_characters(
        [*(text for several in references for text in several), *(t for s in systems.values() for t in s)]
    )


def _check_characters(texts: Sequence[str]) -> None:
    longest = max(map(len, texts), default=0)
    if longest > CHARACTERS:
        raise ValueError(f"expected texts of at most {CHARACTERS:,} characters, found one of {longest:,}")


SECONDS_SHOWN = 20
# What a text box is called on the page, by its role in `read_segments`.
ROLE_NAMES = {"references": "reference", "candidates": "candidate", "sources": "source"}


@contextlib.contextmanager
def told_to_the_visitor(*also: type[Exception]) -> Iterator[None]:
    """Show an input error on the page; its text may hold the visitor's own, so that it is escaped.

    Args:
        also: what counts as an input error beside ValueError.
    """
    input_errors: tuple[type[Exception], ...] = (ValueError, *also)
    try:
        yield
    except input_errors as error:
        message = str(error)
        if message.split(" ", 1)[0].isalpha():  # not the name of a file or of an argument
            message = message[:1].upper() + message[1:]
        raise gr.Error(html.escape(message, quote=False), duration=SECONDS_SHOWN, print_exception=False) from error


def lines_of(text: str | None) -> list[str]:
    """Split a box into segments, one a line; empty lines at its end are none."""
    return (text or "").rstrip().split("\n") if (text or "").strip() else []


def read_upload(path: str, role: str) -> list[Any]:
    """Read an uploaded file of segments.

    Args:
        path: where the server put it.
        role: as in `read_segments`.

    Raises:
        ValueError: naming the file as the visitor does, if it cannot be used.
    """
    name = Path(path).name
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ValueError(f"{name}: expected a file ending in {', '.join(SUFFIXES)}")
    try:
        segments = read_segments(path, role)
    except ValueError as error:
        raise ValueError(str(error).replace(path, name)) from error
    if not segments:
        raise ValueError(f"{name}: expected at least one {ROLE_NAMES[role]}, found none")
    if len(segments) > SEGMENTS:
        raise ValueError(f"{name}: expected at most {SEGMENTS:,} segments, found {len(segments):,}")
    return segments


def segments_of(text: str | None, upload: str | None, role: str, label: str) -> list[Any]:
    """Take a file where one was uploaded, and the text box otherwise.

    Raises:
        ValueError: if both are empty or the file cannot be used.
    """
    if upload:
        return read_upload(upload, role)
    lines = lines_of(text)
    if not lines:
        raise ValueError(f"{label} is empty: type or paste one segment a line, or upload a file")
    return [line.removesuffix("\r") for line in lines]
