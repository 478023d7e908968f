"""What visitors give, in text boxes or files: how it is read, and how much the demo accepts.

The limits keep one visitor from using up the demo's time and memory; the command line has none of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from bleurt_repro.metric.demo.live_results import message_of
from bleurt_repro.metric.files.texts import SUFFIXES, read_segments

CHARACTERS = 5_000  # per text
REFERENCES = 8  # per pair
SEGMENTS = 1_000  # per comparison
PAIRS = 4_000  # per comparison: segments x references x systems
FILE_MEGABYTES = 2
WAITING = 200  # requests in the queue; later ones are asked to come back

LIMITS = (
    f"At most {SEGMENTS:,} segments of {CHARACTERS:,} characters, and files of {FILE_MEGABYTES}\N{NO-BREAK SPACE}MB; "
    "`bleurt-repro compare` does the same without limits."
)
# What a segment is called on the page, by its role in `read_segments`.
ROLE_NAMES = {"references": "reference", "candidates": "candidate", "sources": "source"}
TOAST_SECONDS = 20


def lines_of(text: str | None) -> list[str]:
    """Split the text of a box into segments, one per line, without the empty lines at its end."""
    return (text or "").rstrip().split("\n") if (text or "").strip() else []


def segments_of(text: str | None, upload: str | None, role: str, label: str) -> list[Any]:
    """Read an uploaded file or, without one, the text box.

    Args:
        text: text of the box, one segment per line.
        upload: path of the uploaded file on the server, if there is one.
        role: role of the segments, as in `read_segments`.
        label: label of the box, for errors.

    Raises:
        ValueError: if both are empty or the file cannot be used.
    """
    if upload:
        return read_upload(upload, role)
    lines = lines_of(text)
    if not lines:
        raise ValueError(f"{label} is empty: type or paste one segment per line, or upload a file")
    return [line.removesuffix("\r") for line in lines]


def read_upload(path: str, role: str) -> list[Any]:
    """Read an uploaded file of segments.

    Args:
        path: path of the file on the server.
        role: role of the segments, as in `read_segments`.

    Raises:
        ValueError: if the file cannot be used; the message has the visitor's name for it, not the path.
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


def check_pair(references: Sequence[str], texts: Sequence[str]) -> None:
    """Check that a pair is within the limits.

    Raises:
        ValueError: if there are too many references or a text is too long.
    """
    if len(references) > REFERENCES:
        raise ValueError(f"expected at most {REFERENCES} references, found {len(references)}")
    _check_characters([*references, *texts])


def check_comparison(references: Sequence[Sequence[str]], systems: Mapping[str, Sequence[str]]) -> None:
    """Check that a comparison is within the limits.

    Raises:
        ValueError: if there are too many segments or pairs, or a text is too long.
    """
    longest = max([len(references), *map(len, systems.values())])
    if longest > SEGMENTS:
        raise ValueError(f"expected at most {SEGMENTS:,} segments, found {longest:,}. {LIMITS}")
    pair_count = sum(map(len, references)) * len(systems)
    if pair_count > PAIRS:
        raise ValueError(
            f"expected at most {PAIRS:,} pairs of candidate and reference, found {pair_count:,}. {LIMITS}"
        )
    _check_characters([text for texts in (*references, *systems.values()) for text in texts])


def _check_characters(texts: Sequence[str]) -> None:
    longest = max(map(len, texts), default=0)
    if longest > CHARACTERS:
        raise ValueError(f"expected texts of at most {CHARACTERS:,} characters, found one of {longest:,}")


@contextlib.contextmanager
def shown_to_programs() -> Iterator[None]:
    """Raise an input error as one that Gradio reports to the calling program; other errors stay internal."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise gr.Error(message_of(error), duration=TOAST_SECONDS, print_exception=False) from error
