"""Results that follow what the visitor does: marked when the text above them has changed, read aloud, errors in place."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr
from gradio.components import Component


def connect(
    name: str,
    triggers: Sequence[Callable[..., Any]],
    show: Callable[..., Any],
    inputs: Sequence[Component],
    outputs: Sequence[Component],
    progress_on: Component | None = None,
) -> None:
    """Connect inputs with a result that is marked as old as soon as they change; `head.html` has the functions.

    Args:
        name: of the tab: "score" or "compare". Calls of one name wait in one queue, those of programs among them.
        triggers: events that ask for a result, such as `button.click`.
        show: makes the outputs of the inputs.
        inputs, outputs: components.
        progress_on: the output on which progress is shown; all of them by default.
    """
    for trigger in triggers:
        trigger(
            show,
            list(inputs),
            list(outputs),
            js=f"(...inputs) => {{ bleurt.begins('{name}'); return inputs; }}",
            show_progress_on=progress_on,
            api_visibility="private",
            concurrency_id=name,
            concurrency_limit=1,
        ).then(None, js=f"() => bleurt.ends('{name}')", api_visibility="private")
    for component in inputs:
        component.change(None, js=f"() => bleurt.changes('{name}')", api_visibility="private")  # type: ignore[attr-defined]


def result_html(name: str, *parts: str) -> str:
    """Wrap a tab's result, so that it can be marked as old."""
    return f'<div class="result result-of-{name}">{"".join(parts)}</div>'


def error_html(error: Exception) -> str:
    """Return an input error as HTML, to stand where the result would."""
    return f'<p class="note error">{message_of(error)}</p>'


def message_of(error: Exception) -> str:
    """Return an error's text as a sentence, escaped: it may hold text of the visitor's."""
    message = str(error)
    if message.split(" ", 1)[0].isalpha():  # not the name of a file or of an argument
        message = message[:1].upper() + message[1:]
    return html.escape(message, quote=False)


def live_region(elem_id: str) -> gr.HTML:
    """Add a place, out of sight, whose text screen readers read aloud when it changes."""
    return gr.HTML(
        elem_id=elem_id,
        elem_classes="spoken",
        js_on_load='element.setAttribute("role", "status")',
        apply_default_css=False,
    )
