"""The demo's page: three tabs and two functions for programs.

How the demo looks: the visitor's own fonts, two colours that mean something, and room to read.

The tab about the checkpoint: its signature and its card.

The demo's two functions for programs, `/score` and `/compare`: plain values in, plain values out.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

# Before Gradio is imported: it would report the start of every page.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr

from bleurt_repro.metric.demo.compare_tab import build_compare_tab, compare_two
from bleurt_repro.metric.demo.pair_tab import build_pair_tab, score_pair
from bleurt_repro.metric.demo.shared_scorer import SharedScorer
from bleurt_repro.metric.demo.visitor_input import WAITING, told_to_the_visitor
from bleurt_repro.metric.inputs import check_texts
from bleurt_repro.metric.scorer import DEFAULT_CHECKPOINT, BleurtScorer

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


FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
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


def card_text(folder: Path) -> str:
    """Give a checkpoint's card as Markdown for the page.

    Args:
        folder: the checkpoint's; its README.md is the card.

    Returns:
        the card without its metadata and first heading; images are left out, since they would be fetched from elsewhere.
    """
    path = folder / "README.md"
    if not path.is_file():
        return "This checkpoint has no card."
    text = FRONT_MATTER.sub("", path.read_text(encoding="utf-8", errors="replace"), count=1)
    return IMAGE.sub(r"\1", HEADING.sub("", text, count=1)).strip()


def build_about_tab(scorer: BleurtScorer) -> None:
    """Lay the tab out; call it inside a `gr.Tab`."""
    card = card_text(scorer.folder)
    gr.Textbox(
        scorer.signature,
        label=f"Signature of {scorer.checkpoint}",
        info="What the scores depend on; put it beside every number.",
        interactive=False,
        lines=2,
        buttons=["copy"],
        elem_id="signature",
    )
    gr.Markdown(card, elem_classes="card", elem_id="card")
    gr.Markdown(CALLS if "## Citation" in card else f"{CITATION}\n{CALLS}", elem_classes="card")


def build_api(shared: SharedScorer) -> None:
    """Add the two functions to the page that is being built; they wait in the same queues as its buttons."""

    def score(reference: str, candidate: str, source: str = "") -> dict[str, Any]:
        """Score a candidate against a reference (several: one a line).

        Returns score, percentile (null without calibration), sentbleu, chrf, truncated, signature, and the effect of
        each word of the candidate.
        """
        with told_to_the_visitor(TypeError):
            for name, text in {"reference": reference, "candidate": candidate, "source": source}.items():
                check_texts(name, [text])
            return asdict(score_pair(shared, reference, candidate, source))

    def compare(
        references: list[str], candidates_a: list[str], candidates_b: list[str], sources: list[str] | None = None
    ) -> dict[str, Any]:
        """Compare two systems: means with intervals, a paired test, and every segment, largest difference first."""
        with told_to_the_visitor(TypeError):
            candidates = (check_texts("candidates_a", candidates_a), check_texts("candidates_b", candidates_b))
            return compare_two(shared, references, candidates, sources).to_dict()

    gr.api(score, api_name="score", concurrency_id="score", concurrency_limit=1)
    gr.api(compare, api_name="compare", concurrency_id="compare", concurrency_limit=1)


TITLE = "BLEURT"
INTRODUCTION = """\
# BLEURT

How close does a text come to what it should say? A learned metric gives the rating that people would.
Higher is better; scores are not bounded to 0..1.
"""
# Seconds after which uploads and downloads are deleted, and between two looks for such files.
FILE_AGE = 3600


def build_page(checkpoint: str = DEFAULT_CHECKPOINT, device: str | None = None) -> gr.Blocks:
    """Load a checkpoint and build the page that shows it.

    Args:
        checkpoint: what to score with, as in `BleurtScorer`.
        device: likewise.

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
