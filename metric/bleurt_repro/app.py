"""The demo Space: type a reference and a candidate, see the score.

pip install bleurt-repro[demo]
python app.py
"""

from __future__ import annotations

from functools import lru_cache

import gradio as gr

from bleurt_repro import BleurtScorer

EXAMPLES = [
    ["The cat sat on the mat.", "A cat was sitting on the mat."],
    ["The committee approved the new budget after a long debate.", "The committee rejected the new budget."],
    ["She walked home in the rain.", "She walked home in the rain.\nIn the rain, she went home on foot."],
]
ABOUT = """\
# BLEURT
A learned metric of generated text. One candidate a line; each is scored against the reference or, with several lines of
references, against the best of them. Scores are on the scale of standardised human ratings, not bounded to 0..1.
"""


@lru_cache(maxsize=1)
def _scorer() -> BleurtScorer:
    return BleurtScorer(progress=False)


def score(references: str, candidates: str) -> tuple[list[list[object]], str]:
    """Score each line of candidates against the lines of references.

    Args:
        references: one reference a line.
        candidates: one candidate a line.

    Returns:
        rows of candidate and score, and a note with the signature.
    """
    wanted = references.strip().splitlines()
    texts = candidates.strip().splitlines()
    if not wanted or not texts:
        raise gr.Error("Give at least one reference and one candidate.")
    result = _scorer().compute(references=[wanted] * len(texts), candidates=texts)
    note = f"Signature: `{result.signature}`"
    if result.truncated:
        note += f"\n\n{result.truncated} pairs were longer than the checkpoint reads: their ends were not scored."
    return [[text, round(value, 3)] for text, value in zip(texts, result.scores, strict=True)], note


with gr.Blocks(title="BLEURT") as demo:
    gr.Markdown(ABOUT)
    with gr.Row():
        reference_box = gr.Textbox(label="Reference (several: one a line)", lines=3)
        candidate_box = gr.Textbox(label="Candidates, one a line", lines=3)
    button = gr.Button("Score", variant="primary")
    table = gr.Dataframe(headers=["candidate", "score"], label="Scores", interactive=False, wrap=True)
    signature_note = gr.Markdown()
    gr.Examples(EXAMPLES, [reference_box, candidate_box])
    button.click(score, [reference_box, candidate_box], [table, signature_note], api_name="score")

if __name__ == "__main__":
    demo.launch()
