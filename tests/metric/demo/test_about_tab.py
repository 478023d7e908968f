"""The card as the page shows it."""

from __future__ import annotations

from bleurt_repro.metric.demo.page import card_text
from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER


def test_metadata_heading_and_images_are_left_out(tmp_path):
    (tmp_path / "README.md").write_text(
        "---\nlicense: mit\n---\n\n# name\n\nWhat it is. ![a plot](https://x.org/p.png)\n\n---\n# Not this\n"
    )
    assert card_text(tmp_path) == "What it is. a plot\n\n---\n# Not this"


def test_without_a_card(tmp_path):
    assert card_text(tmp_path) == "This checkpoint has no card."


def test_the_embedded_checkpoints_have_cards():
    for folder in EMBEDDED_FOLDER.iterdir():
        text = card_text(folder)
        assert "## Signature" in text and "model-index" not in text
