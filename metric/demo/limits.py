"""What the demo takes at most, so that one visitor cannot keep it from the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
