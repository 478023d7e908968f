"""Open what training starts from: an encoder or a scorer by plain `transformers`, and the layout to train it with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bleurt_repro.metric.layout import CONFIG_KEY, LAYOUTS, Layout, readable_positions, separators_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def open_trainable(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Open a checkpoint in float32 as a scorer to train; it gets a new head if it has none with one label.

    Args:
        folder: folder of an encoder or a scorer.

    Returns:
        model and tokenizer.
    """
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder,
        num_labels=1,
        problem_type="regression",
        dtype="float32",
        trust_remote_code=False,
        use_safetensors=True,
        ignore_mismatched_sizes=True,  # an entailment classifier's encoder is a good start (RoBLEURT, section 2.1)
    )
    return model, tokenizer


def training_layout(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_length: int | None = None, name: str | None = None
) -> Layout:
    """Return the layout to train with: the one that the checkpoint records, or the named one.

    Args:
        model: model to train.
        tokenizer: tokenizer of the model; its family decides how many separators stand between two texts.
        max_length: maximum number of tokens; by default what the model was made for, or 512.
        name: one of `LAYOUTS`; by default the recorded layout, or BLEURT's.

    Raises:
        ValueError: if the model reads fewer tokens, or records a layout other than the named one.
    """
    layout, is_recorded = Layout.from_config(model.config), hasattr(model.config, CONFIG_KEY)
    if is_recorded and name and LAYOUTS[name] != layout.inputs:
        raise ValueError(
            f"the model was made to read {', '.join(layout.inputs)}, but layout {name} is {', '.join(LAYOUTS[name])}: "
            "leave layout out, or begin with a bare encoder"
        )
    if not is_recorded:
        layout = replace(layout, inputs=LAYOUTS[name or "bleurt"], separators=separators_of(tokenizer))
    longest = readable_positions(model.config) or layout.max_length  # a scorer may be trained to read more than it did
    if max_length is not None and max_length > longest:
        raise ValueError(f"max_length {max_length} is more than the {longest} tokens that this model reads")
    return replace(layout, max_length=max_length or layout.max_length)
