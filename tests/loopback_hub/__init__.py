"""A Hub on this machine for tests: what the real clients need of huggingface.co, over HTTP on 127.0.0.1."""

from __future__ import annotations

from tests.loopback_hub.faults import Fault
from tests.loopback_hub.server import TOKEN, LoopbackHub
from tests.loopback_hub.store import Store

__all__ = ["TOKEN", "Fault", "LoopbackHub", "Store"]
