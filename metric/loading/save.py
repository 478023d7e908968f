"""Write a scorer: a folder that plain `transformers` opens and that records what BLEURT needs beyond it.

    python -m bleurt_repro.metric.loading.save FOLDER

records in the config.json of a checkpoint made before what other tools read there; its scores and its hash stay.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.files.writing import durable_replace, error_context, write_text
from bleurt_repro.metric.layout import CONFIG_KEY, Layout
from bleurt_repro.metric.loading.checksums import (
    CHECKSUMS_FILE,
    FOR_OTHER_TOOLS,
    WEIGHT_FILES,
    scoring_files,
    write_checksums,
)
from bleurt_repro.metric.loading.quiet import quiet_transformers

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# The folder, inside the one to fill, where files are written before they go to their places.
UNFINISHED = ".unfinished-"
# Cutting and padding that some encoders' tokenizers carry along; a scorer does both itself.
TOKENIZER_HABITS = (
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
    """Record the layout with the model, and free the tokenizer of cutting and padding of its own.

    Args:
        model: a sequence classifier with one label.
        tokenizer: its tokenizer; text that looks like a special token will be read as text.
        layout: what the checkpoint reads.
    """
    setattr(model.config, CONFIG_KEY, layout.to_config())
    model.config.problem_type = "regression"
    tokenizer.model_max_length = layout.max_length
    tokenizer.split_special_tokens = True
    tokenizer.init_kwargs["split_special_tokens"] = True  # only this way is it saved
    for name in TOKENIZER_HABITS:
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

    The hashes go to their place first and the weights last: a folder that is stopped at half of a new scorer over an old
    one is refused, whichever half it is.

    Args:
        model: as `prepare_scorer` left it.
        tokenizer: likewise.
        folder: where to; made if need be.
        dtype: of the stored weights, such as torch.float16 for half the size; the model's own by default. With
            torch.float8_e4m3fn only what `rounded_to_float8` rounds is stored so, and the rest in float32.
        max_shard_size: of a file of weights, such as "45MB"; one file by default.

    Raises:
        ValueError: if the weights cannot be stored in float8, or the size is none.
    """
    stored = _in_type(model, dtype)
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob(f"{UNFINISHED}*"):  # of a process that was killed here
        shutil.rmtree(leftover, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=folder))
    try:
        with error_context(folder), quiet_transformers():
            stored.save_pretrained(unfinished, max_shard_size=max_shard_size or LARGEST_FILE)
            tokenizer.save_pretrained(unfinished)
            record_for_other_tools(unfinished)
        write_checksums(folder, scoring_files(unfinished))
        for file in {file for pattern in WEIGHT_FILES for file in folder.glob(pattern)}:
            if not (unfinished / file.name).exists():  # one file would be read before shards, or be left with them
                file.unlink()
        for file in sorted(unfinished.iterdir(), key=lambda file: (file.suffix == ".safetensors", file.name)):
            shutil.copymode(folder / CHECKSUMS_FILE, file)  # the weights are written for the owner alone
            durable_replace(file, folder / file.name)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _in_type(model: PreTrainedModel, dtype: torch.dtype | None) -> PreTrainedModel:
    import torch

    if dtype == torch.float8_e4m3fn:
        return rounded_to_float8(model)
    return model if dtype is None else deepcopy(model).to(dtype)  # type: ignore[arg-type]


def rounded_to_float8(model: PreTrainedModel) -> PreTrainedModel:
    """Round a model's matrices to float8 (e4m3), a quarter of float32's size; `transformers` opens them as float32.

    Biases, normalisations and the few matrices that would change by more than `FLOAT8_CHANGE` stay in float32. Each number becomes
    the nearest one of float8, but in a matrix that was trained from float8 one of the two nearest, at random, the nearer the
    likelier: so its expected value is kept (https://proceedings.mlr.press/v37/gupta15.html). The draws are the same every time.

    Args:
        model: any; it is left as it is.

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
        small = weight.data.to(torch.float8_e4m3fn)
        change = (small.float() - weight.data).norm()
        is_in_range = weight.data.abs().max() <= torch.finfo(small.dtype).max
        numbers += weight.numel()
        if is_in_range and change <= FLOAT8_CHANGE * weight.data.norm():
            trained = 0 < change <= FLOAT8_TRAINED * weight.data.norm()
            weight.data = _one_of_the_two_nearest(weight.data, random) if trained else small
            stored += weight.numel()
    if 2 * stored < numbers:
        raise ValueError(
            f"float8 would change most of the weights by more than {FLOAT8_CHANGE:.1%}, since they are smaller or larger than "
            "its numbers (0.002 to 448): store them in float16"
        )
    return rounded


def _one_of_the_two_nearest(weights: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    import torch

    # The distance of neighbours: an eighth of the power of two below a number, 2^-9 among the smallest.
    distance = torch.exp2(torch.frexp(weights.abs().clamp_min(2**-6)).exponent - 4.0)
    below = (weights / distance).floor()
    above = torch.rand(weights.shape, generator=random).to(weights.device) < weights / distance - below
    drawn = (below + above) * distance
    return torch.where(weights == 0, weights, drawn).to(torch.float8_e4m3fn)  # so that -0 stays what it is, to the bit


def record_for_other_tools(folder: Path) -> None:
    """Record in a checkpoint's config.json what makes other tools compute the same scores.

    `transformers` computes in the type recorded there, which float16 makes slow and inexact on CPUs, and
    sentence-transformers and vLLM put a sigmoid on the scores unless told not to.

    Args:
        folder: a checkpoint's.
    """
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    write_config(folder, config)


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Write a checkpoint's config.json, with what `record_for_other_tools` records."""
    several = (
        len(config.get("id2label") or "1") > 1
    )  # no scorer: it is written as it is, and refused when it is opened
    config = {
        **config,
        **{name: value for name, value in FOR_OTHER_TOOLS.items() if not (several and "label" in name)},
    }
    write_text(folder / "config.json", json.dumps(config, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    record_for_other_tools(Path(sys.argv[1]))
