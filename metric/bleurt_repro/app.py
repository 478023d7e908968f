"""The demo Space: a pair's score and what each word does to it, two systems compared, and the checkpoint's card.

python app.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Beside this file is bleurt_repro.py, the module for `evaluate`. Python looks in this folder first, and would import that
# file instead of the package of the same name: so this folder is not looked in, here and in processes that start here.
HERE = Path(__file__).resolve().parent
sys.path[:] = [place for place in sys.path if Path(place).resolve() != HERE]
if "PYTHONPATH" in os.environ:
    places = os.environ["PYTHONPATH"].split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(place for place in places if Path(place).resolve() != HERE)

from bleurt_repro.metric.demo.page import build_page  # noqa: E402
from bleurt_repro.metric.demo.serve import serve  # noqa: E402

demo = build_page()

if __name__ == "__main__":
    serve(demo)
