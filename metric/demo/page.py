"""The demo's page: three tabs, and two functions for programs."""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

# Before Gradio is imported: it would report the start of every page.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr
import nh3
from markdown_it import MarkdownIt

from bleurt_repro.metric.demo.compare_tab import build_compare_tab, compare_two
from bleurt_repro.metric.demo.pair_tab import build_pair_tab, score_pair
from bleurt_repro.metric.demo.shared_scorer import SharedScorer
from bleurt_repro.metric.demo.visitor_input import WAITING, shown_to_programs
from bleurt_repro.metric.inputs import check_texts
from bleurt_repro.metric.scorer import DEFAULT_CHECKPOINT, BleurtScorer

# The fonts of the visitor's system: nothing is fetched from elsewhere.
FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
MONOSPACE = ("ui-monospace", "Consolas", "monospace")
STYLE = Path(__file__).with_name("style.css")
HEAD = Path(__file__).with_name("head.html")

TITLE = "BLEURT"
INTRODUCTION = """\
# BLEURT

Scores how well a candidate text says what a reference text says, as people would rate it. Higher is better; scores are
not bounded to 0..1.
"""
# Seconds after which uploads and downloads are deleted, and between two looks for such files.
FILE_AGE = 3600


def build_page(checkpoint: str = DEFAULT_CHECKPOINT, device: str | None = None) -> gr.Blocks:
    """Load a checkpoint and build the page that shows it.

    Args:
        checkpoint, device: as in `BleurtScorer`.

    Returns:
        the page; `serve.serve` starts it.

    Raises:
        ValueError: if the checkpoint cannot be loaded.
    """
    shared = SharedScorer(checkpoint, device)
    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(FILE_AGE, FILE_AGE)) as page:
        gr.Markdown(INTRODUCTION)
        with gr.Tabs(overflow_behavior="wrap"):
            with gr.Tab("One pair"):
                build_pair_tab(shared)
            with gr.Tab("Compare two systems"):
                build_compare_tab(shared)
            with gr.Tab("About"):
                build_about_tab(shared.scorer)
        build_api(shared)
    return page.queue(max_size=WAITING)


def theme() -> gr.themes.Base:
    """Return the theme: Gradio's own, in quiet colours and with the visitor's fonts."""
    base = gr.themes.Default(primary_hue="blue", neutral_hue="slate", font=FONTS, font_mono=MONOSPACE)
    return base.set(  # notes are dark enough to read (WCAG 2, contrast 4.5)
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
    )


# The tab about the checkpoint.

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
HEADING = re.compile(r"^# .*\n", re.MULTILINE)
CITATION = """\
## How to cite

Give the signature beside every score, and cite:

```bibtex
@inproceedings{sellam-etal-2020-bleurt,
    title = {{BLEURT}: Learning Robust Metrics for Text Generation},
    author = {Sellam, Thibault and Das, Dipanjan and Parikh, Ankur},
    booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics},
    year = {2020},
    pages = {7881--7892},
    url = {https://aclanthology.org/2020.acl-main.704},
}
```
"""
CALLS = """\
## From a program

```python
from gradio_client import Client

client = Client("http://127.0.0.1:7860")  # or this page's address
client.predict("The cat sat on the mat.", "A cat was sitting on the mat.", api_name="/score")
client.predict(["One reference."], ["One of A."], ["One of B."], api_name="/compare")
```
"""


# HTML of a card that is shown; all else is removed: images, forms, scripts, styles, what runs or fetches anything.
TAGS = nh3.ALLOWED_TAGS - {"img", "map", "area", "center", "figure"}
ATTRIBUTES = {"a": {"href"}, "th": {"colspan", "rowspan", "scope"}, "td": {"colspan", "rowspan"}, "ol": {"start"}}


def build_about_tab(scorer: BleurtScorer) -> None:
    """Build the tab; call it inside a `gr.Tab`."""
    card = card_text(scorer.folder)
    gr.Textbox(
        scorer.signature,
        label=f"Signature of {scorer.checkpoint}",
        info="What the scores depend on; report it with every number.",
        interactive=False,
        lines=2,
        buttons=["copy"],
        elem_id="signature",
    )
    gr.HTML(card_html(card), elem_classes="card", elem_id="card")
    gr.Markdown(CALLS if "## Citation" in card else f"{CITATION}\n{CALLS}", elem_classes="card")


def card_text(folder: Path) -> str:
    """Read a checkpoint's card.

    Args:
        folder: the checkpoint's; its README.md is the card.

    Returns:
        the card as Markdown, without its metadata and first heading.
    """
    path = folder / "README.md"
    if not path.is_file():
        return "This checkpoint has no card."
    text = FRONT_MATTER.sub("", path.read_text(encoding="utf-8", errors="replace"), count=1)
    return HEADING.sub("", text, count=1).strip()


def card_html(markdown: str) -> str:
    """Render a card, which may come from anyone, as HTML that runs nothing and fetches nothing.

    Args:
        markdown: the card; it may hold HTML, as cards on the Hub do.

    Returns:
        HTML of text, tables and links; of images, the description only.
    """
    renderer = MarkdownIt("commonmark").enable("table")
    renderer.add_render_rule("image", lambda _, tokens, i, *__: escape(tokens[i].content))
    return nh3.clean(renderer.render(markdown), tags=TAGS, attributes=ATTRIBUTES, url_schemes={"http", "https"})


# The functions for programs: plain values in, plain values out.


def build_api(shared: SharedScorer) -> None:
    """Add `/score` and `/compare` to the page that is being built; they wait in the same queues as its buttons."""

    def score(reference: str, candidate: str, source: str = "") -> dict[str, Any]:
        """Score a candidate against a reference (several: one a line).

        Returns score, percentile (null without calibration), sentbleu, chrf, truncated, signature, and the effect of
        each stretch of the candidate that differs from the reference.
        """
        with shown_to_programs():
            for name, text in {"reference": reference, "candidate": candidate, "source": source}.items():
                check_texts(name, [text])
            return asdict(score_pair(shared, reference, candidate, source))

    def compare(
        references: list[str], candidates_a: list[str], candidates_b: list[str], sources: list[str] | None = None
    ) -> dict[str, Any]:
        """Compare two systems: means with intervals, a paired test, and every segment, largest difference first."""
        with shown_to_programs():
            candidates = (check_texts("candidates_a", candidates_a), check_texts("candidates_b", candidates_b))
            return compare_two(shared, references, candidates, sources).to_dict()

    gr.api(score, api_name="score", concurrency_id="score", concurrency_limit=1)
    gr.api(compare, api_name="compare", concurrency_id="compare", concurrency_limit=1)
