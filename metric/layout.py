"""What a checkpoint reads and how: the `bleurt` entry of its config.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CONFIG_KEY = "bleurt"
ROLES = ("source", "reference", "candidate")

# BLEURT, section 3.2: reference first, candidate second.
BLEURT_INPUTS = ("reference", "candidate")


@dataclass(frozen=True)
class Layout:
    """The text segments a checkpoint reads, in order, and its length limit.

    Attributes:
        inputs: roles of the segments in the order they are fed, each of "source", "reference", "candidate".
        max_length: most tokens of a pair, special tokens included.
        separators: separator tokens between two segments: 1 in BERT, 2 in RoBERTa and XLM-R.
    """

    inputs: tuple[str, ...] = BLEURT_INPUTS
    max_length: int = 512
    separators: int = 1

    def __post_init__(self) -> None:
        if (
            len(set(self.inputs)) < len(self.inputs)
            or not set(self.inputs) <= set(ROLES)
            or "candidate" not in self.inputs
        ):
            raise ValueError(
                f"a layout's inputs must be different names of {ROLES} with 'candidate' among them, found {self.inputs}"
            )
        if self.separators not in (1, 2):
            raise ValueError(f"a layout has 1 or 2 separators between segments, found {self.separators}")
        if self.max_length < self.special_tokens + len(self.inputs):
            raise ValueError(f"a maximum length of {self.max_length} tokens leaves no room for text")

    @property
    def special_tokens(self) -> int:
        """How many special tokens stand around and between the segments."""
        return 2 + self.separators * (len(self.inputs) - 1)

    @property
    def reads_sources(self) -> bool:
        """Whether the checkpoint needs the source segment."""
        return "source" in self.inputs

    @property
    def reads_references(self) -> bool:
        """Whether the checkpoint needs the reference segment."""
        return "reference" in self.inputs

    @classmethod
    def from_config(cls, config: Any) -> Layout:
        """Read the layout that a `transformers` config records; without one, BLEURT's own at the model's full length."""
        recorded = getattr(config, CONFIG_KEY, None) or {}
        positions = getattr(config, "max_position_embeddings", None) or cls.max_length
        return cls(
            inputs=tuple(recorded.get("inputs", BLEURT_INPUTS)),
            max_length=int(recorded.get("max_length", min(cls.max_length, positions))),
            separators=int(recorded.get("separators", 1)),
        )

    def to_config(self) -> dict[str, Any]:
        """Give the entry to record in config.json."""
        return {"inputs": list(self.inputs), "max_length": self.max_length, "separators": self.separators}
