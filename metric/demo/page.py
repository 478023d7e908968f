"""The demo's page: three tabs and two functions for programs."""

from __future__ import annotations

import os

# Before Gradio is imported: it would report the start of every page.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr

from bleurt_repro.metric.demo.about_tab import build_about_tab
from bleurt_repro.metric.demo.api import build_api
from bleurt_repro.metric.demo.compare_tab import build_compare_tab
from bleurt_repro.metric.demo.limits import WAITING
from bleurt_repro.metric.demo.pair_tab import build_pair_tab
from bleurt_repro.metric.demo.scoring import SharedScorer
from bleurt_repro.metric.scorer import DEFAULT_CHECKPOINT

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
