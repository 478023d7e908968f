"""Fill a card's template."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from huggingface_hub import CardData

TEMPLATES = Path(__file__).parent / "templates"


def draw(template: str, data: CardData, **values: Any) -> str:
    """Draw a card.

    Args:
        template: its file's name.
        data: the metadata that stand above it.
        values: what the template asks for.

    Raises:
        ValueError: if jinja2, which the cards need, is not installed.
    """
    try:
        import jinja2
    except ImportError as error:
        raise ValueError("cards need jinja2: pip install 'bleurt-repro[train]'") from error
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)  # noqa: S701 - Markdown
    return environment.from_string(text).render(card_data=data.to_yaml(), **values)
