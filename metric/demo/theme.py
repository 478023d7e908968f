"""How the demo looks: the visitor's own fonts, two colours that mean something, and room to read."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

# The fonts of the visitor's system: nothing is fetched from elsewhere.
FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
MONOSPACE = ("ui-monospace", "Consolas", "monospace")

# The frame around the page, which Gradio keeps out of reach of `css`.
FRAME = """<style>
.gradio-container { max-width: 1080px !important; width: 100%; margin: 0 auto !important; }
.gradio-container .main, .gradio-container .contain { min-width: 0; max-width: 100%; }
@media (max-width: 520px) { .gradio-container .main.app { padding: 12px !important; } }
</style>"""

STYLE = Path(__file__).with_name("style.css")


def theme() -> gr.themes.Base:
    """Give the theme: Gradio's own, in quiet colours and with the visitor's fonts."""
    base = gr.themes.Default(primary_hue="blue", neutral_hue="slate", font=FONTS, font_mono=MONOSPACE)
    return base.set(  # notes are dark enough to read (WCAG 2, contrast 4.5)
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
    )
