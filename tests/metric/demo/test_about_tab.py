"""The card as the page shows it: as HTML that runs nothing and fetches nothing."""

from __future__ import annotations

import re

import pytest

from bleurt_repro.metric.demo.page import card_html, card_text
from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER

HOSTILE = """\
# Card

![a plot](https://example.org/p.png) ![x](data:image/svg+xml;base64,AAAA) <img src="https://example.org/q.png" alt="q">

<form action="https://example.org/steal"><input name="token"><button>Log in</button></form>

<script>document.title = "owned"</script>
<style>body { display: none }</style>
<link rel="stylesheet" href="https://example.org/s.css">
<iframe src="https://example.org"></iframe><object data="x"></object><embed src="x"><svg onload="alert(1)"></svg>
<video src="https://example.org/v.mp4" autoplay></video>

<details open ontoggle="alert(1)"><summary>More</summary>

| a | b |
|---|--:|
| `<b>` | 2 |

</details>

<b style="background: url(https://example.org/t.png)" onclick="alert(1)">bold</b>
[good](https://example.org/good) [bad](javascript:alert(1)) <a href="javascript:alert(1)">worse</a>
"""


def test_metadata_and_heading_are_left_out(tmp_path):
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n\n# name\n\nWhat it is.\n\n---\n# Not this\n")
    assert card_text(tmp_path) == "What it is.\n\n---\n# Not this"


def test_without_a_card(tmp_path):
    assert card_text(tmp_path) == "This checkpoint has no card."


def test_nothing_of_a_card_runs_or_fetches():
    html = card_html(HOSTILE)
    tags = {tag.lower() for tag in re.findall(r"<\s*([a-zA-Z][\w-]*)", html)}
    assert tags <= {"h1", "p", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "code", "b", "a"}
    attributes = set(re.findall(r"<\w+[^>]*?\s([\w-]+)=", html))
    assert attributes <= {"href", "rel"}
    assert re.findall(r'href="(.*?)"', html) == ["https://example.org/good"]
    assert "owned" not in html and "display: none" not in html


@pytest.mark.parametrize(
    "html",
    [
        "<h1>Card</h1>",
        "a plot",
        "<summary>More</summary>",
        "<td><code>&lt;b&gt;</code></td>",
        "<b>bold</b>",
        'href="https://example.org/good"',
    ],
)
def test_the_text_of_a_card_stays(html):
    assert html in card_html(HOSTILE)


def test_the_embedded_checkpoints_have_cards():
    for folder in EMBEDDED_FOLDER.iterdir():
        text = card_text(folder)
        assert "bleurt" in text.lower() and "model-index" not in text
