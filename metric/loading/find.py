"""Open a checkpoint by one argument: an embedded or official name, a local folder, or a Hub id (org/name@revision).

A checkpoint is a folder that plain `transformers` opens: a one-label sequence classifier in safetensors and a
tokenizer. Nothing is unpickled and no code of a checkpoint is run.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bleurt_repro.metric.convert.bleurt_pytorch import SAFE_REVISION, is_bleurt_pytorch, load_bleurt_pytorch
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.checksums import check_sums
from bleurt_repro.metric.loading.ensemble import is_ensemble
from bleurt_repro.metric.loading.hub import HUB_FILES, HUB_ID, download
from bleurt_repro.metric.loading.official_names import OFFICIAL_CHECKPOINTS
from bleurt_repro.metric.loading.quiet import first_line, quiet_transformers

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EMBEDDED_FOLDER = Path(__file__).parents[1] / "checkpoint"
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "sentencepiece.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
    "spm.model",
)
NEEDS = (
    "a checkpoint is a folder with config.json (one label), model.safetensors and a tokenizer, "
    "as save_pretrained() writes them"
)


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint.

    Attributes:
        name: what to call it: the embedded name, the Hub id, or the folder's own name.
        folder: where its files lie.
        model: the `transformers` sequence classifier, in evaluation mode.
        tokenizer: its tokenizer.
        layout: what it reads.
    """

    name: str
    folder: Path
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    layout: Layout


def embedded_names() -> list[str]:
    """List the checkpoints that the package carries."""
    return sorted(folder.name for folder in EMBEDDED_FOLDER.glob("*") if (folder / "config.json").is_file())


def find_checkpoint(name: str, files: Sequence[str] = HUB_FILES) -> Path:
    """Find a checkpoint's folder, fetching it from the Hub if it is named by a Hub id or an official name.

    Args:
        name: an embedded name, a local folder, an official name, or "org/name" with an optional "@revision".
        files: patterns of what to fetch from the Hub.

    Raises:
        TypeError: if the name is no string or path.
        ValueError: if there is no such checkpoint, or the Hub has none by that name or cannot be reached.
    """
    if not isinstance(name, str | Path):
        raise TypeError(f"checkpoint must be a name or a path, found {type(name).__name__}")
    folder = Path(name).expanduser()
    if name in embedded_names():
        if folder.is_dir() and not folder.samefile(EMBEDDED_FOLDER / name):
            _warn_of_namesake(name, folder.resolve())
        return EMBEDDED_FOLDER / name
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise ValueError(f"checkpoint {name} is a file: {NEEDS}")
    if name in OFFICIAL_CHECKPOINTS:
        return _official(str(name), files)
    # A relative path of one level and a Hub id look alike: the folder, if it exists, was taken above.
    if isinstance(name, str) and HUB_ID.fullmatch(name) and not name.startswith("."):
        return download(name, files)
    raise ValueError(
        f"unknown checkpoint {str(name)!r}: known names are {', '.join((*embedded_names(), *OFFICIAL_CHECKPOINTS))}; "
        "a local folder or a Hub id such as org/name or org/name@revision will do too"
    )


@cache  # opening a checkpoint asks for its folder more than once
def _warn_of_namesake(name: str, folder: Path) -> None:
    warnings.warn(f"checkpoint {name} is the embedded one, not {folder}: for that give ./{name}", stacklevel=3)


def _official(name: str, files: Sequence[str]) -> Path:
    """Fetch an official checkpoint's public copy, or say how to come by the official archive."""
    official = OFFICIAL_CHECKPOINTS[name]
    if official.hub is None:
        raise ValueError(f"checkpoint {name} has no safe copy on the Hub: {official.how_to_get}")
    try:
        return download(official.hub, files)
    except ValueError as error:
        raise ValueError(f"checkpoint {name}: {error}; otherwise {official.how_to_get}") from error


def load_checkpoint(name: str, dtype: torch.dtype | None = None) -> Checkpoint:
    """Load a checkpoint's model and tokenizer, and make sure that it can score.

    Args:
        name: as for `find_checkpoint`.
        dtype: arithmetic of the model; float32 by default, whatever the weights were stored in.

    Raises:
        ValueError: if the folder is no scorer, saying what is wrong and what is needed.
    """
    folder = find_checkpoint(name)
    _check_files(name, folder)
    model, tokenizer = _open(name, folder, dtype)
    if len(tokenizer) > model.config.vocab_size:
        raise ValueError(
            f"checkpoint {name}: the tokenizer knows {len(tokenizer)} tokens but the model has {model.config.vocab_size}"
        )
    try:
        check_sums(folder)
    except ValueError as error:
        raise ValueError(f"checkpoint {name}: {error}") from error
    # Of a local folder only its name: where it lies says nothing about its scores, and its hash says all.
    shown = folder.resolve().name if Path(name).expanduser().is_dir() else str(name)
    return Checkpoint(shown, folder, model.eval(), tokenizer, Layout.from_config(model.config))


def _open(name: str, folder: Path, dtype: torch.dtype | None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    import torch

    official = None if Path(name).expanduser().is_dir() else OFFICIAL_CHECKPOINTS.get(name)
    if official is None and not is_bleurt_pytorch(folder):
        return _load_model(name, folder, dtype or torch.float32), _load_tokenizer(name, folder)
    try:
        return load_bleurt_pytorch(folder, dtype, official.max_length if official else None)
    except ValueError as error:
        raise ValueError(f"checkpoint {name} cannot be opened: {error}") from error


def _check_files(name: str, folder: Path) -> None:
    """Refuse early, from what lies in the folder, with the reason."""
    if is_ensemble(folder):
        raise ValueError(f"checkpoint {name} is an ensemble, which can score but is no model: give one of its members")
    if (folder / "bleurt_config.json").is_file() and not (folder / "config.json").is_file():
        raise ValueError(
            f"checkpoint {name} is an official TensorFlow checkpoint: convert it once, with "
            f"`bleurt-repro convert {name} {name}-converted`, and give the folder {name}-converted"
        )
    if not (folder / "config.json").is_file():
        raise ValueError(f"checkpoint {name} has no config.json: {NEEDS}")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"checkpoint {name}: config.json cannot be read ({error})") from error
    if not isinstance(config, dict) or "model_type" not in config:
        raise ValueError(f"checkpoint {name}: config.json names no model_type: {NEEDS}")
    if not any(folder.glob("*.safetensors")):
        pickled = [path.name for path in (*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.ckpt"))]
        found = f"only {pickled[0]}, a pickle, which is never opened" if pickled else "no weights in safetensors"
        if is_bleurt_pytorch(folder):
            found += f" ({SAFE_REVISION})"
        raise ValueError(f"checkpoint {name} has {found}: {NEEDS}")
    if not any((folder / file).is_file() for file in TOKENIZER_FILES):
        raise ValueError(f"checkpoint {name} has no tokenizer: {NEEDS}")


def _load_model(name: str, folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    from transformers import AutoModelForSequenceClassification

    try:
        with quiet_transformers():
            model, report = AutoModelForSequenceClassification.from_pretrained(
                folder,
                dtype=dtype,
                trust_remote_code=False,
                use_safetensors=True,
                local_files_only=True,
                output_loading_info=True,
            )
    except Exception as error:  # whatever a damaged file makes the reader raise, the user needs one sentence
        raise ValueError(f"checkpoint {name} cannot be opened ({first_line(error)}): {NEEDS}") from error
    if model.config.num_labels != 1:
        raise ValueError(f"checkpoint {name} has {model.config.num_labels} labels; a scorer has one: {NEEDS}")
    lacking = sorted(report["missing_keys"]) + sorted(str(key) for key in report.get("mismatched_keys", ()))
    if lacking:
        raise ValueError(
            f"checkpoint {name} lacks weights of a scorer ({', '.join(lacking[:3])}): fine-tune it first, or check the file"
        )
    for weight_name, weight in model.state_dict().items():
        if not weight.isfinite().all():
            raise ValueError(f"checkpoint {name} has NaN or infinite weights in {weight_name}: it cannot score")
    return model


def _load_tokenizer(name: str, folder: Path) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    try:
        with quiet_transformers():
            return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:
        raise ValueError(
            f"checkpoint {name}: its tokenizer cannot be opened ({first_line(error)}): {NEEDS}"
        ) from error
