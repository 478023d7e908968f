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
from gradio.blocks import BlockFunction
from markdown_it import MarkdownIt

from bleurt_repro.metric.demo.compare_tab import build_compare_tab, compare_two
from bleurt_repro.metric.demo.pair_tab import build_pair_tab, score_pair
from bleurt_repro.metric.demo.shared_scorer import SharedScorer
from bleurt_repro.metric.demo.visitor_input import WAITING, shown_to_programs
from bleurt_repro.metric.inputs import check_texts
from bleurt_repro.metric.layout import ROLES
from bleurt_repro.metric.options import DEFAULT_CHECKPOINT
from bleurt_repro.metric.scorer import BleurtScorer

# The fonts of the visitor's system: nothing is fetched from elsewhere.
FONTS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif")
MONOSPACE = ("ui-monospace", "Consolas", "monospace")
STYLE = Path(__file__).with_name("style.css")
HEAD = Path(__file__).with_name("head.html")

TITLE = "BLEURT"
INTRODUCTION = """\
# BLEURT

Scores how well a candidate text conveys the meaning of a reference. Higher is better; scores may be below 0 or above 1.
"""
# Seconds after which uploads and downloads are deleted, and between two searches for such files.
FILE_AGE = 3600


class Page(gr.Blocks):
    """Gradio's page, except that a call with too few values is an error of one line instead of a logged traceback."""

    def validate_inputs(self, block_fn: BlockFunction, inputs: list[Any]) -> None:
        """Raise an error if there are fewer values than inputs."""
        if len(inputs) < len(block_fn.inputs):
            raise gr.Error(
                f"expected {len(block_fn.inputs)} values, found {len(inputs)}: see /?view=api",
                print_exception=False,
            )


def build_page(checkpoint: str = DEFAULT_CHECKPOINT, device: str | None = None) -> gr.Blocks:
    """Load a checkpoint and build the page that scores with it.

    Args:
        checkpoint, device: checkpoint and device, as in `BleurtScorer`.

    Returns:
        The page; `serve.serve` starts it.

    Raises:
        ValueError: if the checkpoint cannot be loaded.
    """
    shared = SharedScorer(checkpoint, device)
    with Page(title=TITLE, analytics_enabled=False, delete_cache=(FILE_AGE, FILE_AGE)) as page:
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
    """Return Gradio's default theme in quiet colours and with the visitor's fonts."""
    base = gr.themes.Default(primary_hue="blue", neutral_hue="slate", font=FONTS, font_mono=MONOSPACE)
    return base.set(  # notes and buttons have the contrast of 4.5 that WCAG 2 asks for
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_600",
        button_primary_background_fill_hover_dark="*primary_700",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
    )


# The tab about the checkpoint.

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
HEADING = re.compile(r"^# .*\n", re.MULTILINE)
LINKS = """\
[BLEURT, the paper](https://aclanthology.org/2020.acl-main.704) \N{MIDDLE DOT}
[RoBLEURT, the paper](https://aclanthology.org/2021.wmt-1.114) \N{MIDDLE DOT}
[sacreBLEU, for BLEU and chrF++](https://github.com/mjpost/sacrebleu) \N{MIDDLE DOT}
[API of this page](?view=api)
"""
CITATION = """\
#### How to cite

Give the signature beside every score, and cite:

```bibtex
@inproceedings{sellam-etal-2020-bleurt,
  title = {{BLEURT}: Learning Robust Metrics for
           Text Generation},
  author = {Sellam, Thibault and Das, Dipanjan
            and Parikh, Ankur},
  booktitle = {Proceedings of ACL},
  year = {2020},
  pages = {7881--7892},
  url = {https://aclanthology.org/2020.acl-main.704},
}
```
"""
CALLS = """\
#### From a program

```python
from gradio_client import Client

# or this page's address
client = Client("http://127.0.0.1:7860")
client.predict(
    "The cat sat on the mat.",
    "A cat was sitting on the mat.",
    api_name="/score",
)
client.predict(
    ["One reference."], ["One of A."], ["One of B."],
    api_name="/compare",
)
```
"""


# Elements of a card's HTML that are shown. All others are removed: images, forms, scripts, styles, whatever runs or
# fetches anything.
TAGS = nh3.ALLOWED_TAGS - {"img", "map", "area", "center", "figure"}
ATTRIBUTES = {"a": {"href"}, "th": {"colspan", "rowspan", "scope"}, "td": {"colspan", "rowspan"}, "ol": {"start"}}


def build_about_tab(scorer: BleurtScorer) -> None:
    """Build the tab; call it inside a `gr.Tab`."""
    roles = " and a ".join(sorted(scorer.layout.inputs, key=ROLES.index))
    gr.HTML(
        f"<p><b>{escape(scorer.checkpoint)}</b> is a neural network that reads a {roles}, at most "
        f"{scorer.layout.max_length} tokens in all, and predicts how people would rate the candidate. Scores of different "
        "checkpoints are not comparable.</p>",
    )
    gr.Textbox(
        scorer.signature,
        label="Signature",
        info="What the scores depend on; report it with every number.",
        interactive=False,
        lines=1,
        buttons=["copy"],
        elem_id="signature",
    )
    gr.Markdown(LINKS, elem_classes="card")
    with gr.Accordion("Model card", open=False, elem_id="card-accordion"):
        gr.HTML(card_html(card_text(scorer.folder)), elem_classes="card", elem_id="card")
    with gr.Row():
        for text in (CALLS, CITATION):
            with gr.Column(min_width=320):
                gr.Markdown(text, elem_classes="card")


def card_text(folder: Path) -> str:
    """Read the card of a checkpoint.

    Args:
        folder: folder of the checkpoint; its README.md is the card.

    Returns:
        The card as Markdown, without its metadata and first heading.
    """
    path = folder / "README.md"
    if not path.is_file():
        return "This checkpoint has no card."
    text = FRONT_MATTER.sub("", path.read_text(encoding="utf-8", errors="replace"), count=1)
    return HEADING.sub("", text, count=1).strip()


def card_html(markdown: str) -> str:
    """Render a card, which may come from anyone, as HTML that runs nothing and fetches nothing.

    Args:
        markdown: the card; it may contain HTML, as cards on the Hub do.

    Returns:
        HTML of text, tables and links; of images, the description only.
    """
    renderer = MarkdownIt("commonmark").enable("table")
    renderer.add_render_rule("image", lambda _, tokens, i, *__: escape(tokens[i].content))
    return nh3.clean(renderer.render(markdown), tags=TAGS, attributes=ATTRIBUTES, url_schemes={"http", "https"})


# The functions for programs: plain values in, plain values out.


def build_api(shared: SharedScorer) -> None:
    """Add `/score` and `/compare` to the page that is being built; they wait in the same queues as its buttons."""

    def score(reference: str | list[str], candidate: str, source: str = "") -> dict[str, Any]:
        """Score a candidate against a reference, or against a list of several.

        Returns score, percentile (null without calibration, or for text that the checkpoint does not read), sentence
        BLEU with its parts, chrF++, signatures, warnings, and the effect of each difference from the reference.
        """
        with shown_to_programs():
            references = [reference] if isinstance(reference, str) else reference
            for name, texts in {"reference": references, "candidate": [candidate], "source": [source]}.items():
                check_texts(name, texts)
            return asdict(score_pair(shared, references, candidate, source))

    def compare(
        references: list[str], candidates_a: list[str], candidates_b: list[str], sources: list[str] | None = None
    ) -> dict[str, Any]:
        """Compare two systems: means with intervals, a paired test, and every segment, largest difference first."""
        with shown_to_programs():
            systems = {"A": check_texts("candidates_a", candidates_a), "B": check_texts("candidates_b", candidates_b)}
            return compare_two(shared, references, systems, sources).to_dict()

    gr.api(score, api_name="score", concurrency_id="score", concurrency_limit=1)
    gr.api(compare, api_name="compare", concurrency_id="compare", concurrency_limit=1)
