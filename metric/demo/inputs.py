"""What visitors give, text boxes or files, and what they are told when it cannot be used."""

from __future__ import annotations

import contextlib
import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from bleurt_repro.metric.demo.limits import SEGMENTS
from bleurt_repro.metric.segment_files import SUFFIXES, read_segments

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
