"""Real ratings, read once for all test files that need them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from bleurt_repro.datasets_builders.ratings.rating_files import Rating
from bleurt_repro.datasets_builders.ratings.wmt_sources import read_wmt


@cache
def wmt_ratings(folder: Path) -> tuple[Rating, ...]:
    return tuple(read_wmt(folder))


def segments(rows) -> set[str]:
    """All sources and references, as the split compares them."""
    texts = {text for row in rows for text in (row["source"], row["reference"])}
    return {" ".join(text.casefold().split()) for text in texts if text}
