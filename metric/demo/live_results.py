"""Results that follow what the visitor does: marked when the inputs have changed, read aloud, errors in their place."""

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
    """Connect inputs with a result that is marked as outdated while they differ from those it was computed from.

    The functions of `bleurt` in JavaScript are in `head.html`.

    Args:
        name: name of the tab, "score" or "compare". Calls of one name wait in one queue, including those of programs.
        triggers: events that ask for a result, such as `button.click`.
        show: function that computes the outputs from the inputs.
        inputs, outputs: components of the page.
        progress_on: output on which progress is shown; by default all of them.
    """
    components = list(inputs)
    for trigger in triggers:
        trigger(
            show,
            components,
            list(outputs),
            js=f"(...inputs) => {{ bleurt.begins('{name}', inputs); return inputs; }}",
            show_progress_on=progress_on,
            api_visibility="private",
            concurrency_id=name,
            concurrency_limit=1,
        ).then(None, components, js=f"(...inputs) => bleurt.ends('{name}', inputs)", api_visibility="private")
    # Without triggers: when the page has loaded, and on every change of an input.
    gr.on(None, None, components, js=f"(...inputs) => bleurt.check('{name}', inputs)", api_visibility="private")


def result_html(name: str, *blocks: str) -> str:
    """Return a tab's result in a frame by which it can be marked as outdated."""
    return f'<div class="result result-of-{name}">{"".join(blocks)}</div>'


def error_html(error: Exception) -> str:
    """Return an input error as HTML to show in place of the result."""
    return f'<p class="note error">{message_of(error)}</p>'


def message_of(error: Exception) -> str:
    """Return an error's text as a sentence, escaped because it may quote what the visitor wrote."""
    message = str(error)
    if message.split(" ", 1)[0].isalpha():  # not the name of a file or of an argument
        message = message[:1].upper() + message[1:]
    return html.escape(message, quote=False)


def live_region(elem_id: str) -> gr.HTML:
    """Add an element, out of sight, whose text screen readers read aloud when it changes."""
    return gr.HTML(
        elem_id=elem_id,
        elem_classes="spoken",
        js_on_load='element.setAttribute("role", "status")',
        apply_default_css=False,
    )
