"""Texts with marked differences, numbers and signatures as HTML, in which everything that a visitor wrote is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from bleurt_repro.metric.compare.attribution import Effect, differences, nearest

# Share of the scale's range that is shown in full colour, about the effect of one word that reverses the meaning.
FULL_COLOUR = 0.5
# Smaller effects get no number, which keeps the text readable.
LEAST_SHOWN = 0.005


def signed(value: float) -> str:
    """Return a number with its sign, a true minus, and two decimals."""
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")


def unsigned(value: float) -> str:
    """Return a number with two decimals, and with a sign only if it is negative."""
    return signed(value).removeprefix("+")


def bleu_details(precisions: Sequence[float], brevity_penalty: float) -> str:
    """Return the parts of a BLEU score as HTML: n-gram precisions, 0 to 100, and the brevity penalty."""
    grams = " / ".join(f"{precision:.1f}" for precision in precisions)
    return f"<small>unsmoothed n-gram precision<br>{grams}<br>brevity penalty {brevity_penalty:.2f}</small>"


def signatures_html(signatures: Mapping[str, str]) -> str:
    """Return the signatures of scores by metric, one per line."""
    lines = "<br>".join(escape(f"{name}: {signature}") for name, signature in signatures.items())
    return f'<p class="note signature">{lines}</p>'


def effects_html(candidate: str, effects: Sequence[Effect], score_range: float) -> str:
    """Return a candidate with its differences from the reference coloured by their effect, and the effect below each.

    Args:
        candidate: text of the candidate.
        effects: effects of its differences, in order; words that are missing stand where they would be.
        score_range: distance between the scores of a perfect and an unrelated text, which scales the colours.
    """
    full_colour = FULL_COLOUR * score_range
    marks = ((effect.start, effect.end, _effect_html(effect, full_colour)) for effect in effects)
    return f'<p class="effects" dir="auto">{"".join(_with_marks(candidate, marks))}</p>'


def _effect_html(effect: Effect, full_colour: float) -> str:
    direction = "up" if effect.effect > 0 else "down"
    strength = min(1.0, abs(effect.effect) / full_colour) if full_colour > 0 else 1.0
    number = signed(effect.effect) if abs(effect.effect) >= LEAST_SHOWN else "&nbsp;"
    text = f"<bdi>{escape(effect.text)}</bdi>" if effect.text else f"<del><bdi>{escape(effect.reference)}</bdi></del>"
    classes = f"word {direction}" if effect.text else f"word {direction} missing"
    title = f' title="reference: {escape(effect.reference)}"' if effect.text and effect.reference else ""
    return f'<span class="{classes}" style="--strength:{strength:.2f}"{title}>{text}<small dir="ltr">{number}</small></span>'


def differences_html(references: Sequence[str], candidate: str) -> str:
    """Return a candidate in which words that the reference lacks are marked, and words that are missing inserted.

    Args:
        references: references of the candidate; it is compared with the one that it shares most words with.
        candidate: text of the candidate.
    """
    reference = nearest(references, candidate)
    marks = (
        (
            *span,
            _added(candidate[slice(*span)]) if span.start < span.end else _missing(reference[slice(*gap)], span.start),
        )
        for span, gap in differences(reference, candidate)
    )
    return "".join(_with_marks(candidate, marks))


def _added(text: str) -> str:
    return f"<mark>{escape(text)}</mark>"


def _missing(text: str, position: int) -> str:
    return f" <del>{escape(text)}</del>" if position else f"<del>{escape(text)}</del> "


def _with_marks(text: str, marks: Iterable[tuple[int, int, str]]) -> Iterator[str]:
    """Yield a text in pieces, with marks (start, end, HTML) in place of what they cover and the rest escaped."""
    end = 0
    for start, stop, mark in marks:
        yield escape(text[end:start])
        yield mark
        end = stop
    yield escape(text[end:])
