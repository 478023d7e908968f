"""Text with its words marked, as HTML in which everything that a visitor wrote is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

from bleurt_repro.metric.compare.attribution import Effect, Span, words

# An effect of so much is shown in full colour: about a fifth of the distance between a good and a poor translation.
FULL_COLOUR = 0.3
# Smaller effects are left without a number: they say little, and the text stays readable.
LEAST_SHOWN = 0.005


def effects_html(candidate: str, effects: Sequence[Effect]) -> str:
    """Show a candidate with each word on a colour of its effect, the number below it.

    Args:
        candidate: the text.
        effects: of its words, in order.
    """
    parts, end = [], 0
    for effect in effects:
        parts += [escape(candidate[end : effect.start]), _word(effect)]
        end = effect.end
    return f'<p class="effects">{"".join(parts)}{escape(candidate[end:])}</p>'


def _word(effect: Effect) -> str:
    direction = "up" if effect.effect > 0 else "down"
    strength = min(1.0, abs(effect.effect) / FULL_COLOUR)
    number = signed(effect.effect) if abs(effect.effect) >= LEAST_SHOWN else "&nbsp;"
    return (
        f'<span class="word {direction}" style="--strength:{strength:.2f}">'
        f"{escape(effect.text)}<small>{number}</small></span>"
    )


def signed(value: float) -> str:
    """Write a number with its sign, a true minus, and two decimals."""
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")


def unsigned(value: float) -> str:
    """Write a number with a sign only where it is negative."""
    return signed(value).removeprefix("+")


def differences_html(references: Sequence[str], candidate: str) -> str:
    """Show a candidate with the words marked that the reference does not have at their place.

    Args:
        references: of the candidate; the one with most words in common counts.
        candidate: the text.
    """
    own = words(candidate)
    kept = max((_kept(reference, candidate, own) for reference in references), key=len)
    parts, end = [], 0
    for i, (start, stop) in enumerate(own):
        gap, word = escape(candidate[end:start]), escape(candidate[start:stop])
        parts.append(f"{gap}{word}" if i in kept else f"{gap}<mark>{word}</mark>")
        end = stop
    return "".join(parts).replace("</mark> <mark>", " ") + escape(candidate[end:])


def _kept(reference: str, candidate: str, own: Sequence[Span]) -> set[int]:
    """Which of the candidate's words the reference has in the same order."""
    theirs = [reference[start:end].casefold() for start, end in words(reference)]
    matcher = SequenceMatcher(None, theirs, [candidate[start:end].casefold() for start, end in own], autojunk=False)
    return {block.b + i for block in matcher.get_matching_blocks() for i in range(block.size)}
