"""Read checkpoints made with bleurt-pytorch (https://github.com/lucadiliello/bleurt-pytorch), `model_type: "bleurt"`.

They hold the official weights under other names, with a tokenizer class that no longer loads. They are read into
memory directly: renaming costs nothing, so a converted copy on disk would only take the space twice and could become
outdated.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.architecture import (
    GELU_APPROXIMATIONS,
    GELU_NAMES,
    is_rembert,
    scorer_config,
    scorer_model,
)
from bleurt_repro.metric.loading.limits import read_settings
from bleurt_repro.metric.loading.official_names import OFFICIAL_CHECKPOINTS
from bleurt_repro.metric.loading.official_tokenizer import (
    read_vocabulary,
    sentencepiece_tokenizer,
    wordpiece_tokenizer,
)
from bleurt_repro.metric.loading.quiet import first_line

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MODEL_TYPE = "bleurt"
SENTENCEPIECE_FILES = ("spm.model", "sent_piece.model", "sentencepiece.model")
PREFIXES = ("bleurt.", "bert.", "rembert.")
BUFFERS = (".position_ids", ".token_type_ids")  # counters that older versions stored among the weights
SAFE_REVISION = "on the Hub, the revision refs/pr/1 often holds safetensors: org/name@refs/pr/1"


def is_bleurt_pytorch(folder: Path) -> bool:
    """Return whether a folder holds a checkpoint in bleurt-pytorch's format."""
    try:
        return read_settings(folder / "config.json").get("model_type") == MODEL_TYPE
    except ValueError:
        return False


def load_bleurt_pytorch(
    folder: Path,
    settings: Mapping[str, Any],
    max_length: int | None = None,
    gelu: str = "auto",
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a checkpoint in bleurt-pytorch's format as a scorer with the official tokenizer.

    Args:
        folder: folder with safetensors and vocab.txt or spm.model.
        settings: content of config.json.
        max_length: most tokens of a pair; by default what the config or the name recorded in it says.
        gelu: "tanh", "erf", or "auto": the official tanh form for English checkpoints, which the format records
            wrongly, and what the config says for the BLEURT-20 family.

    Returns:
        the model, a `BertForSequenceClassification` or `RemBertForSequenceClassification` in float32 and
        evaluation mode whose config records the layout, and its tokenizer.

    Raises:
        ValueError: if a file is missing or damaged, or weights are missing, unknown or of another shape.
    """
    layout = Layout(max_length=max_length or _max_length(settings))
    activation = _activation(settings, gelu)
    weights = read_weights(folder, "rembert." if is_rembert(settings) else "bert.")
    tokenizer = _tokenizer(folder, settings, layout.max_length)
    config = scorer_config(settings, layout, activation)
    if len(tokenizer) > config.vocab_size:
        raise ValueError(f"its tokenizer has {len(tokenizer)} tokens but the model has {config.vocab_size}")
    return scorer_model(config, weights), tokenizer


def _max_length(settings: Mapping[str, Any]) -> int:
    """Return the most tokens of a pair: as recorded, or of the official name, since the format does not record it."""
    recorded = settings.get("max_seq_length")
    official = OFFICIAL_CHECKPOINTS.get(str(settings.get("_name_or_path")).rsplit("/", 1)[-1])
    length = recorded or (official.max_length if official else settings.get("max_position_embeddings", 512))
    if isinstance(length, bool) or not isinstance(length, int):
        raise ValueError(f"its settings need max_seq_length, a whole number; found {length!r}")
    return length


def _activation(settings: Mapping[str, Any], gelu: str) -> str:
    """Return the name in `transformers` of the GELU to compute."""
    recorded = settings.get("hidden_act", "gelu")
    if gelu != "auto":
        return GELU_NAMES[gelu]
    if not isinstance(recorded, str):
        raise ValueError(f"its settings need hidden_act, a name; found {recorded!r}")
    if GELU_APPROXIMATIONS.get(recorded) == "tanh" or (recorded == "gelu" and not is_rembert(settings)):
        return GELU_NAMES["tanh"]
    return recorded


def read_weights(folder: Path, prefix: str) -> dict[str, torch.Tensor]:
    """Read the weights of all safetensors files of a folder, by their names in `transformers`.

    Args:
        folder: the checkpoint.
        prefix: what the names of the encoder's weights begin with in `transformers`, "bert." or "rembert.".

    Raises:
        ValueError: if there are none, or a file is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ValueError(f"no weights in safetensors, and pickles are never opened ({SAFE_REVISION})")
    weights: dict[str, torch.Tensor] = {}
    for file in files:
        try:
            weights.update(load_file(file))
        except (OSError, SafetensorError) as error:
            raise ValueError(f"{file} cannot be read ({first_line(error)}): download it again") from error
    return {_renamed(name, prefix): weight for name, weight in weights.items() if not name.endswith(BUFFERS)}


def _renamed(name: str, prefix: str) -> str:
    for old_prefix in PREFIXES:
        if name.startswith(old_prefix):
            name = prefix + name.removeprefix(old_prefix)
            break
    return name.replace(".embedding_projection.", ".embedding_hidden_mapping_in.")


def _tokenizer(folder: Path, settings: Mapping[str, Any], max_length: int) -> PreTrainedTokenizerBase:
    for name in SENTENCEPIECE_FILES:
        if (folder / name).is_file():
            return sentencepiece_tokenizer(folder / name, max_length)
    # English checkpoints lower-case unless the files record otherwise.
    file = folder / "tokenizer_config.json"
    recorded = read_settings(file) if file.is_file() else {}
    lower_case = bool(recorded.get("do_lower_case", settings.get("do_lower_case", True)))
    return wordpiece_tokenizer(read_vocabulary(folder / "vocab.txt"), lower_case, max_length)
