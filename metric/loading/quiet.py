"""Keep a library's own messages off the terminal, and shorten its errors: what matters is checked and reported here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hide the loading bars and reports of `transformers`."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def first_line(error: Exception) -> str:
    """Return the first line of an error's text, cut to what fits into a sentence."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
