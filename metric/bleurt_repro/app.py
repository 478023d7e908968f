"""The demo as a Space: score a pair, compare two systems, read about the checkpoint.

python app.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Beside this file is bleurt_repro.py, the module for `evaluate`. Python searches this folder first and would import that
# file instead of the package of the same name. So the folder is taken off the search path, here and for child processes.
HERE = Path(__file__).resolve().parent
sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != HERE]
if "PYTHONPATH" in os.environ:
    folders = os.environ["PYTHONPATH"].split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(folder for folder in folders if Path(folder).resolve() != HERE)

from bleurt_repro.metric.demo.page import build_page  # noqa: E402
from bleurt_repro.metric.demo.serve import serve  # noqa: E402

demo = build_page()

if __name__ == "__main__":
    serve(demo)
