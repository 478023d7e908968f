"""The tab about the checkpoint: its signature and its card."""

from __future__ import annotations

import re
from pathlib import Path

import gradio as gr

from bleurt_repro.metric.scorer import BleurtScorer

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
