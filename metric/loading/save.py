"""Write a scorer: a folder that plain `transformers` opens and that records what BLEURT needs beyond it."""

from __future__ import annotations

import json
import shutil
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.files.writing import atomic_folder, write_text
from bleurt_repro.metric.layout import CONFIG_KEY, Layout
from bleurt_repro.metric.loading.checksums import FOR_OTHER_TOOLS, WEIGHT_FILES, write_checksums
from bleurt_repro.metric.loading.quiet import quiet_transformers

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Settings of truncation and padding that some encoders' tokenizers carry along; a scorer truncates and pads itself.
TRUNCATION_SETTINGS = (
    "max_length",
    "stride",
    "truncation_side",
    "truncation_strategy",
    "padding_side",
    "pad_to_multiple_of",
)
LARGEST_FILE = "50GB"  # the default of `transformers`
# Numbers of float8 (e4m3) have 3 bits after the first: rounding changes most matrices by 2.7 % (root mean square), and
# one of many numbers below 2^-9 by more than this.
FLOAT8_CHANGE = 0.035
# Weights that rounding changes by less were in float8 before and trained since (others change by 2.4 to 2.8 %). The
# nearest number is the one they came from in most cases, so it would undo that training.
FLOAT8_TRAINED = 0.018


def prepare_scorer(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, layout: Layout) -> None:
    """Record the layout in the model's config, and remove truncation and padding from the tokenizer.

    Args:
        model: sequence classifier with one label.
        tokenizer: tokenizer of the model; text that looks like a special token will be read as text.
        layout: what the checkpoint reads.
    """
    setattr(model.config, CONFIG_KEY, layout.to_config())
    model.config.problem_type = "regression"
    tokenizer.model_max_length = layout.max_length
    tokenizer.split_special_tokens = True
    tokenizer.init_kwargs["split_special_tokens"] = True  # only this way is it saved
    for name in TRUNCATION_SETTINGS:
        tokenizer.init_kwargs.pop(name, None)
    if tokenizer.is_fast:
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()


def save_scorer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    dtype: torch.dtype | None = None,
    max_shard_size: str | None = None,
) -> None:
    """Save model and tokenizer, each file whole or not at all.

    The config.json of an old scorer in the folder is removed first and the new one is written last: a folder that was
    interrupted in between is refused.

    Args:
        model: as `prepare_scorer` left it.
        tokenizer: as `prepare_scorer` left it.
        folder: folder to write to; made if it does not exist.
        dtype: type of the stored weights, such as torch.float16 for half the size; the model's type by default. With
            torch.float8_e4m3fn only the matrices that `rounded_to_float8` rounds are stored so, and the rest in
            float32.
        max_shard_size: size of a file of weights, such as "45MB"; one file by default.

    Raises:
        ValueError: if the weights cannot be stored in float8, or the size cannot be read.
    """
    stored = _in_type(model, dtype)
    with atomic_folder(folder, "config.json", WEIGHT_FILES) as unfinished, quiet_transformers():
        stored.save_pretrained(unfinished, max_shard_size=max_shard_size or LARGEST_FILE)
        tokenizer.save_pretrained(unfinished)
        record_for_other_tools(unfinished)
        write_checksums(unfinished)
        for file in unfinished.iterdir():  # `safetensors` writes files that only their owner can read
            shutil.copymode(unfinished / "config.json", file)


def _in_type(model: PreTrainedModel, dtype: torch.dtype | None) -> PreTrainedModel:
    import torch

    if dtype == torch.float8_e4m3fn:
        return rounded_to_float8(model)
    return model if dtype is None else deepcopy(model).to(dtype)  # type: ignore[arg-type]


def rounded_to_float8(model: PreTrainedModel) -> PreTrainedModel:
    """Round a model's matrices to float8 (e4m3), a quarter of float32's size; `transformers` opens them as float32.

    Biases and normalisations stay in float32, and the few matrices that would change by more than `FLOAT8_CHANGE` are
    rounded to bfloat16, which changes them by 0.2 % at most. Each other number becomes the nearest one of float8. In a matrix that was trained from float8 it becomes one of the two
    nearest, at random, the nearer the likelier, so that its expected value is kept
    (https://proceedings.mlr.press/v37/gupta15.html). The random numbers are the same every time.

    Args:
        model: model to round; it is left as it is.

    Returns:
        a copy to be saved, which computes nothing itself.

    Raises:
        ValueError: if most of the weights would change by more.
    """
    import torch

    rounded = deepcopy(model).float()
    matrices = [weight for weight in rounded.parameters() if weight.dim() == 2]
    random = torch.Generator().manual_seed(0)
    numbers = stored = 0
    for weight in matrices:
        # How far rounding would move the matrix, as a share of its norm, decides how it is stored.
        nearest = weight.data.to(torch.float8_e4m3fn)
        change = (nearest.float() - weight.data).norm()
        is_in_range = weight.data.abs().max() <= torch.finfo(nearest.dtype).max
        numbers += weight.numel()
        if is_in_range and change <= FLOAT8_CHANGE * weight.data.norm():
            was_trained = 0 < change <= FLOAT8_TRAINED * weight.data.norm()
            weight.data = _one_of_the_two_nearest(weight.data, random) if was_trained else nearest
            stored += weight.numel()
        else:
            weight.data = weight.data.bfloat16()
    if 2 * stored < numbers:
        raise ValueError(
            f"float8 would change most of the weights by more than {FLOAT8_CHANGE:.1%}, since they are smaller or larger "
            "than its numbers (0.002 to 448): store them in float16"
        )
    return rounded


def _one_of_the_two_nearest(weights: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Round each weight down or up to float8, up with the probability that keeps its expected value."""
    import torch

    # The distance of neighbours: an eighth of the power of two below a number, 2^-9 among the smallest.
    distance = torch.exp2(torch.frexp(weights.abs().clamp_min(2**-6)).exponent - 4.0)
    below = (weights / distance).floor()
    is_above = torch.rand(weights.shape, generator=random).to(weights.device) < weights / distance - below
    rounded = (below + is_above) * distance
    return torch.where(weights == 0, weights, rounded).to(
        torch.float8_e4m3fn
    )  # so that -0 stays what it is, to the bit


def record_for_other_tools(folder: Path) -> None:
    """Record in a checkpoint's config.json what makes other tools compute the same scores.

    `transformers` computes in the type recorded there, which float16 makes slow and inexact on CPUs, and
    sentence-transformers and vLLM put a sigmoid on the scores unless told not to.

    Args:
        folder: folder of the checkpoint.
    """
    write_config(folder, json.loads((folder / "config.json").read_text(encoding="utf-8")))


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Write a checkpoint's config.json, with what `record_for_other_tools` records."""
    # A model of several labels is no scorer: its labels are written as they are, and it is refused when it is opened.
    has_one_label = len(config.get("id2label") or "1") == 1
    recorded = {name: value for name, value in FOR_OTHER_TOOLS.items() if has_one_label or "label" not in name}
    write_text(folder / "config.json", json.dumps({**config, **recorded}, indent=2, sort_keys=True) + "\n")
