"""What can go wrong between a client and the Hub, on demand."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field

KINDS = ("status", "slow", "cut", "lose", "corrupt", "page")


@dataclass
class Fault:
    """A fault that the next matching requests meet.

    Attributes:
        match: regular expression, searched for in "METHOD /path".
        kind: "status": answered with `status` at once; "slow": answered after `seconds`; "cut": the connection ends in
            the middle of the body, sent or received; "lose": the request is carried out and its answer lost;
            "corrupt": the body sent differs in one byte; "page": answered with an HTML page, as by a network's proxy.
        times: how many requests meet it.
        status: of the answer.
        headers: of that answer.
        seconds: of waiting.
        message: in the body of a "status" answer.
    """

    match: str
    kind: str = "status"
    times: int = 1
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    message: str = "as told"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"a fault is one of {KINDS}, found {self.kind!r}")


class Faults:
    """The faults still to come, shared by the server's threads."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> None:
        """Let the next matching requests meet a fault."""
        with self._lock:
            self._waiting.append(fault)

    def clear(self) -> None:
        """Forget those still to come."""
        with self._lock:
            self._waiting.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Return the fault that this request meets."""
        with self._lock:
            for fault in self._waiting:
                if re.search(fault.match, f"{method} {path}"):
                    fault.times -= 1
                    if fault.times <= 0:
                        self._waiting.remove(fault)
                    return fault
        return None
