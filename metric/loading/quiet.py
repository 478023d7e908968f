"""Keep a library's own messages off the terminal, and turn its errors into one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hide the progress bars and reports of `transformers`."""
    from transformers.utils import logging

    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()


@contextlib.contextmanager
def one_line_errors(fault: str, advice: str = "") -> Iterator[None]:
    """Turn whatever a library raises for a file from elsewhere into one line.

    Args:
        fault: what failed, such as "checkpoint my-scorer cannot be opened".
        advice: what the user can do.

    Raises:
        ValueError: for any error but a lack of memory.
    """
    try:
        yield
    except BaseException as error:
        # A panic of the libraries written in Rust, such as `tokenizers`, is no Exception.
        is_fault = isinstance(error, Exception) or type(error).__name__ == "PanicException"
        if not is_fault or isinstance(error, MemoryError):
            raise
        raise ValueError(f"{fault} ({first_line(error)}){advice and f': {advice}'}") from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, cut to what fits into a sentence."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
