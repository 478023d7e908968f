"""The demo's two functions for programs, `/score` and `/compare`: plain values in, plain values out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import gradio as gr

from bleurt_repro.metric.demo.compare_tab import compare_two
from bleurt_repro.metric.demo.inputs import told_to_the_visitor
from bleurt_repro.metric.demo.pair_tab import score_pair
from bleurt_repro.metric.demo.scoring import SharedScorer
from bleurt_repro.metric.texts import check_texts


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
