"""The demo Space: a pair's score and what each word does to it, two systems compared, and the checkpoint's card.

pip install bleurt-repro[demo]
python app.py
"""

from __future__ import annotations

from bleurt_repro.metric.demo.page import build_page
from bleurt_repro.metric.demo.serve import serve

demo = build_page()

if __name__ == "__main__":
    serve(demo)
