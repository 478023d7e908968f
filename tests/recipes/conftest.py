"""The recipes import a file that they share: as scripts they find it beside them, in tests by this path."""

from __future__ import annotations

import sys

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "recipes"))
