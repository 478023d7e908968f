"""The texts that a checkpoint reads, in order, and its maximum length: the `bleurt` entry of its config.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CONFIG_KEY = "bleurt"
ROLES = ("source", "reference", "candidate")

# BLEURT, section 3.2: reference first, candidate second.
BLEURT_INPUTS = ("reference", "candidate")
# Layouts to train a checkpoint for, by the names that `bleurt-repro finetune --layout` takes.
LAYOUTS = {
    "bleurt": BLEURT_INPUTS,
    "robleurt-src": ("source", "candidate", "reference"),  # RoBLEURT, section 2.1.2: hypothesis before reference
    "robleurt-nosrc": ("candidate", "reference"),
    "reference-free": ("source", "candidate"),
    "unified": ("source", "candidate", "reference"),
}
# Texts that callers may leave out: one model for reference, source, or both, as in UniTE
# (https://aclanthology.org/2022.acl-long.558).
OPTIONAL = {"unified": ("source", "reference")}
# Model types whose first position is the one after the padding token's id, as in RoBERTa of `transformers`.
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
MPNET_PADDING = 1  # whatever the padding token of the config is
# A tokenizer without a limit stores a far larger number (VERY_LARGE_INTEGER in `transformers`).
NO_LIMIT = 1_000_000


@dataclass(frozen=True)
class Layout:
    """The texts that a checkpoint reads, in order, and its maximum length.

    Attributes:
        inputs: names of the texts in the order that the model reads them: "source", "reference", "candidate".
        max_length: most tokens of a pair, special tokens included.
        separators: number of separator tokens between two texts: 1 in BERT, 2 in RoBERTa and XLM-R.
        optional: those of the inputs that a caller may leave out; the model then reads an empty text in their place.
    """

    inputs: tuple[str, ...] = BLEURT_INPUTS
    max_length: int = 512
    separators: int = 1
    optional: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (
            len(set(self.inputs)) < len(self.inputs)
            or not set(self.inputs) <= set(ROLES)
            or "candidate" not in self.inputs
        ):
            raise ValueError(
                f"a layout's inputs must be different names of {ROLES} with 'candidate' among them, found {self.inputs}"
            )
        if self.optional and (len(self.inputs) < len(ROLES) or not set(self.optional) <= {"source", "reference"}):
            raise ValueError(
                "source and reference can be optional where a layout has both, found the inputs "
                f"{self.inputs} and the optional {self.optional}"
            )
        if self.separators not in (1, 2):
            raise ValueError(f"a layout has 1 or 2 separators between segments, found {self.separators}")
        if self.max_length < self.special_tokens + len(self.inputs):
            raise ValueError(f"a maximum length of {self.max_length} tokens leaves no room for text")

    @property
    def special_tokens(self) -> int:
        """Number of special tokens around and between the texts."""
        return 2 + self.separators * (len(self.inputs) - 1)

    @property
    def reads_sources(self) -> bool:
        """Whether the checkpoint reads the source."""
        return "source" in self.inputs

    @property
    def reads_references(self) -> bool:
        """Whether the checkpoint reads the reference."""
        return "reference" in self.inputs

    @property
    def required(self) -> tuple[str, ...]:
        """The texts that a caller must give."""
        return tuple(role for role in self.inputs if role not in self.optional)

    @classmethod
    def from_config(cls, config: Any) -> Layout:
        """Read the layout from a `transformers` config; by default BLEURT's, with the model's maximum length."""
        recorded = getattr(config, CONFIG_KEY, None) or {}
        positions = readable_positions(config) or NO_LIMIT
        try:
            layout = cls(
                inputs=tuple(recorded.get("inputs", BLEURT_INPUTS)),
                max_length=int(recorded.get("max_length", min(cls.max_length, positions))),
                separators=int(recorded.get("separators", 1)),
                optional=tuple(recorded.get("optional", ())),
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
        """Return the layout as an entry of config.json."""
        entry = {"inputs": list(self.inputs), "max_length": self.max_length, "separators": self.separators}
        return {**entry, "optional": list(self.optional)} if self.optional else entry


def readable_positions(config: Any) -> int | None:
    """Return the number of tokens that a model has positions for; None if its `transformers` config sets no limit."""
    positions = getattr(config, "max_position_embeddings", None)
    family = getattr(config, "model_type", "")
    if positions and family in POSITIONS_AFTER_PADDING:
        return positions - 1 - (MPNET_PADDING if family == "mpnet" else config.pad_token_id)
    return positions


def readable_tokens(config: Any, tokenizer: Any) -> int:
    """Return the maximum length of a model in tokens, special tokens included.

    Args:
        config: config of a `transformers` model.
        tokenizer: tokenizer of the model, which may have a smaller limit.

    Returns:
        the smaller of the two limits; 512 without any.
    """
    limits = [readable_positions(config), getattr(tokenizer, "model_max_length", None)]
    return min((limit for limit in limits if limit and limit < NO_LIMIT), default=Layout.max_length)


def separators_of(tokenizer: Any) -> int:
    """Return the number of separators that a tokenizer puts between two texts: 1 in BERT, 2 in RoBERTa and XLM-R."""
    between = tokenizer.num_special_tokens_to_add(pair=True) - tokenizer.num_special_tokens_to_add(pair=False)
    return 2 if between == 2 else 1


def input_faults(name: str, layout: Layout, *, sources: bool, references: bool) -> str | None:
    """Return a message if sources or references do not fit a checkpoint; None if they do.

    Args:
        name: name of the checkpoint.
        layout: layout of the checkpoint.
        sources, references: whether the caller has them.
    """
    present = {"source": sources, "reference": references}
    if not any(present.values()) and layout.optional:
        return f"checkpoint {name} reads a reference, a source, or both: give references=[...] or sources=[...]"
    for role in present:
        if role in layout.required and not present[role]:
            return f"checkpoint {name} reads the {role} of each candidate: give {role}s=[...]"
    for role in present:
        if role not in layout.inputs and present[role]:
            return f"checkpoint {name} reads no {role}s: leave {role}s out"
    return None
