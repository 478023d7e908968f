"""What a checkpoint reads and how: the `bleurt` entry of its config.json, and how many tokens a model has room for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CONFIG_KEY = "bleurt"
ROLES = ("source", "reference", "candidate")

# BLEURT, section 3.2: reference first, candidate second.
BLEURT_INPUTS = ("reference", "candidate")
# What a checkpoint may be trained to read, by the names that `bleurt-repro finetune --layout` takes.
LAYOUTS = {
    "bleurt": BLEURT_INPUTS,
    "robleurt-src": ("source", "candidate", "reference"),  # RoBLEURT, section 2.1.2: hypothesis before reference
    "robleurt-nosrc": ("candidate", "reference"),
    "reference-free": ("source", "candidate"),
}
# Encoders whose positions are numbered from the one after the padding token's id, as RoBERTa's in `transformers`.
POSITIONS_AFTER_PADDING = (
    "camembert",
    "data2vec-text",
    "mpnet",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
)
MPNET_PADDING = 1  # whatever the config's padding token is
# A tokenizer without a limit records a far larger number (VERY_LARGE_INTEGER in `transformers`).
NO_LIMIT = 1_000_000


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
        """How many special tokens there are around and between the segments."""
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
        positions = readable_positions(config) or NO_LIMIT
        try:
            layout = cls(
                inputs=tuple(recorded.get("inputs", BLEURT_INPUTS)),
                max_length=int(recorded.get("max_length", min(cls.max_length, positions))),
                separators=int(recorded.get("separators", 1)),
            )
            if layout.max_length > positions:
                raise ValueError(
                    f"a maximum length of {layout.max_length} is more than the model's {positions} positions"
                )
            return layout
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(
                f"the checkpoint's {CONFIG_KEY} entry must have inputs, a list of names, and max_length and separators, "
                f"whole numbers: {error}"
            ) from error

    def to_config(self) -> dict[str, Any]:
        """Return the entry to record in config.json."""
        return {"inputs": list(self.inputs), "max_length": self.max_length, "separators": self.separators}


def readable_positions(config: Any) -> int | None:
    """Return how many tokens a model has positions for; None if its `transformers` config sets no limit."""
    positions = getattr(config, "max_position_embeddings", None)
    family = getattr(config, "model_type", "")
    if positions and family in POSITIONS_AFTER_PADDING:
        return positions - 1 - (MPNET_PADDING if family == "mpnet" else config.pad_token_id)
    return positions


def readable_tokens(config: Any, tokenizer: Any) -> int:
    """Return how many tokens a model reads at most, special tokens included.

    Args:
        config: of a `transformers` model.
        tokenizer: its tokenizer, which may record a limit of its own.

    Returns:
        the smaller of the two limits; 512 where there is neither.
    """
    limits = [readable_positions(config), getattr(tokenizer, "model_max_length", None)]
    return min((limit for limit in limits if limit and limit < NO_LIMIT), default=Layout.max_length)


def separators_of(tokenizer: Any) -> int:
    """Count the separators that a tokenizer's family puts between two texts: 1 in BERT, 2 in RoBERTa and XLM-R."""
    between = tokenizer.num_special_tokens_to_add(pair=True) - tokenizer.num_special_tokens_to_add(pair=False)
    return 2 if between == 2 else 1


def input_faults(name: str, layout: Layout, *, sources: bool, references: bool) -> str | None:
    """Return what is wrong with the kinds of text given to a checkpoint, or None if nothing is.

    Args:
        name: of the checkpoint.
        layout: what it reads.
        sources, references: whether they are given.
    """
    given = {"source": sources, "reference": references}
    for role in given:
        if role in layout.inputs and not given[role]:
            return f"checkpoint {name} reads the {role} of each candidate: give {role}s=[...]"
    for role in given:
        if role not in layout.inputs and given[role]:
            return f"checkpoint {name} reads no {role}s: leave {role}s out"
    return None
