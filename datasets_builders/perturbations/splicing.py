"""Put filled tokens back into their text, so that what was not masked stays as it was written, letter for letter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby


def splice(
    text: str,
    spans: Sequence[tuple[int, int]],
    ids: Sequence[int],
    changed: Sequence[int],
    decode: Callable[[list[int]], str],
) -> str:
    """Replace the text of some tokens by what now stands in their place.

    Args:
        text: the original text.
        spans: first and last-plus-one character of each token in it.
        ids: the token ids, the new ones in place.
        changed: positions of the tokens to replace, ascending.
        decode: turns token ids into text, special tokens included.

    Returns:
        the new text; it begins with a capital if the original did.
    """
    parts, cursor = [], 0
    # Positions that follow one another have the same difference to their rank.
    for _, group in groupby(enumerate(changed), key=lambda pair: pair[1] - pair[0]):
        run = [position for _, position in group]
        start, end = spans[run[0]][0], spans[run[-1]][1]
        piece, glued = _decode_after(ids, run, decode)
        if start == 0 and text[:1].isupper():  # models of lower-cased text forget it
            piece = piece[:1].upper() + piece[1:]
        parts.append(_join(text[cursor:start], piece, glued))
        if piece[-1:].isalnum() and text[end : end + 1].isalnum():
            parts.append(" ")
        cursor = end
    return "".join([*parts, text[cursor:]])


def _decode_after(ids: Sequence[int], run: list[int], decode: Callable[[list[int]], str]) -> tuple[str, bool]:
    """Decode a run of tokens as it reads after the token before it.

    Returns:
        the text, and whether it is attached to that token (a word piece, a full stop).
    """
    filled = [ids[position] for position in run]
    if run[0] > 0:
        anchor = ids[run[0] - 1]
        alone, together = decode([anchor]), decode([anchor, *filled])
        if together.startswith(alone):
            rest = together[len(alone) :]
            return rest.strip(), not rest[:1].isspace()
    return decode(filled).strip(), False


def _join(before: str, piece: str, glued: bool) -> str:
    """Put a piece after the text before it, with a blank where the piece or the original asks for one."""
    if glued:
        return before.rstrip() + piece
    needs_blank = before[-1:].isalnum() and piece[:1].isalnum()
    return f"{before} {piece}" if needs_blank else before + piece
