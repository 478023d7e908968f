"""Text with its words marked, as HTML in which everything that a visitor wrote is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from bleurt_repro.metric.compare.attribution import Effect, differences, nearest

# Share of the scale's range that is shown in full colour: one wrong word that turns the meaning.
FULL_COLOUR = 0.5
# Smaller effects are left without a number: they mean little, and the text stays readable.
LEAST_SHOWN = 0.005


def signed(value: float) -> str:
    """Write a number with its sign, a true minus, and two decimals."""
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")


def unsigned(value: float) -> str:
    """Write a number with a sign only where it is negative."""
    return signed(value).removeprefix("+")


def effects_html(candidate: str, effects: Sequence[Effect], score_range: float) -> str:
    """Show a candidate with the words that differ from the reference on a colour of their cost, the number below.

    Args:
        candidate: the text.
        effects: of its words, in order; those without words are shown as what is missing.
        score_range: distance of a perfect text's score from an unrelated one's, by which the colours are scaled.
    """
    full = FULL_COLOUR * score_range
    shown = _with_rest(candidate, ((effect.start, effect.end, _effect(effect, full)) for effect in effects))
    return f'<p class="effects" dir="auto">{"".join(shown)}</p>'


def _effect(effect: Effect, full: float) -> str:
    direction = "up" if effect.effect > 0 else "down"
    strength = min(1.0, abs(effect.effect) / full) if full > 0 else 1.0
    number = signed(effect.effect) if abs(effect.effect) >= LEAST_SHOWN else "&nbsp;"
    words = f"<bdi>{escape(effect.text)}</bdi>" if effect.text else f"<del><bdi>{escape(effect.reference)}</bdi></del>"
    kind = f"word {direction}" if effect.text else f"word {direction} missing"
    title = f' title="reference: {escape(effect.reference)}"' if effect.text and effect.reference else ""
    return f'<span class="{kind}" style="--strength:{strength:.2f}"{title}>{words}<small dir="ltr">{number}</small></span>'


def differences_html(references: Sequence[str], candidate: str) -> str:
    """Show a candidate with the words marked that the reference does not have, and those that are missing.

    Args:
        references: of the candidate; the one with most words in common counts.
        candidate: the text.
    """
    reference = nearest(references, candidate)
    marks = (
        (
            *own,
            _marked(candidate[slice(*own)]) if own.start < own.end else _missing(reference[slice(*place)], own.start),
        )
        for own, place in differences(reference, candidate)
    )
    return "".join(_with_rest(candidate, marks))


def _marked(words: str) -> str:
    return f"<mark>{escape(words)}</mark>"


def _missing(words: str, place: int) -> str:
    return f" <del>{escape(words)}</del>" if place else f"<del>{escape(words)}</del> "


def _with_rest(text: str, parts: Iterable[tuple[int, int, str]]) -> Iterator[str]:
    """Put marked parts where they belong in a text, and escape the rest."""
    end = 0
    for start, stop, shown in parts:
        yield escape(text[end:start])
        yield shown
        end = stop
    yield escape(text[end:])
