"""Open a checkpoint: from its name to a model and tokenizer that were checked.

A checkpoint is a folder that plain `transformers` opens: a one-label sequence classifier in safetensors and a
tokenizer; or an ensemble of such folders. Nothing is unpickled and no code of a checkpoint is run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.bleurt_pytorch import MODEL_TYPE, SAFE_REVISION, load_bleurt_pytorch
from bleurt_repro.metric.loading.checksums import SCORING_FILES, FileHashes, checked_content, content_hash
from bleurt_repro.metric.loading.ensemble import Ensemble, Member, common_layout, is_ensemble, read_ensemble
from bleurt_repro.metric.loading.find import NEEDS, Location, find_checkpoint, locate_checkpoint
from bleurt_repro.metric.loading.light import LightScorer, open_light
from bleurt_repro.metric.loading.limits import check_normalizer, checked_size, read_settings, size_limit, stored_size
from bleurt_repro.metric.loading.quiet import first_line, one_line_errors, quiet_transformers
from bleurt_repro.metric.loading.torch_defaults import torch_defaults

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

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
# By these a config leads `transformers` to other files of weights, or to code of the Hub ("org/kernels").
OUTSIDE_SETTINGS = ("transformers_weights", "attn_implementation", "_attn_implementation", "experts_implementation")
HARMLESS = ("eager", "sdpa", "flash_attention_2", "flex_attention")
# Texts that a tokenizer must be able to read: printable characters, characters that it may not know, and long words.
TRIAL_TEXTS = (
    "".join(map(chr, range(32, 127))),
    "\u00e9 \u4e2d \U0001f408 \u0378 \U0010fffd \u200b",
    "a" * 60 + "!",
    "a " * 60,
)
MOST_TOKENS = 4  # for each byte of a text; a model of single bytes has one


@dataclass(frozen=True)
class Checkpoint:
    """An opened model.

    Attributes:
        name: the embedded name, the Hub id, or the folder's name.
        folder: files of the checkpoint.
        layout: what it reads.
        content: content hash.
        config: settings of config.json.
        dtype: arithmetic of the model.
        light: model and tokenizer without `transformers`, if it was opened so.
        loaded: model and tokenizer of `transformers`, if it was opened with them.
    """

    name: str
    folder: Path
    layout: Layout
    content: str
    config: Any
    dtype: torch.dtype
    light: LightScorer | None = None
    loaded: tuple[PreTrainedModel, PreTrainedTokenizerBase] | None = None

    @property
    def is_light(self) -> bool:
        """Whether `transformers` has not been needed so far."""
        return self.light is not None and "_loaded" not in vars(self)

    @cached_property
    def _loaded(self) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        if self.loaded is not None:
            return self.loaded
        if content_hash(self.folder) != self.content:
            raise ValueError(f"checkpoint {self.folder} is not what it was when it was opened: open it again")
        with torch_defaults(), size_limit(stored_size(self.folder)), quiet_transformers():
            model = _load_model(self.name, self.folder, self.dtype).eval()
            return model, _load_tokenizer(self.name, self.folder)

    @property
    def model(self) -> PreTrainedModel:
        """The `transformers` sequence classifier, in evaluation mode."""
        return self._loaded[0]

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The `transformers` tokenizer."""
        return self._loaded[1]


@dataclass(frozen=True)
class Opened:
    """What `BleurtScorer` scores with: one model, or the models of an ensemble.

    Attributes:
        name, folder, layout, content: those of the `Checkpoint`, or of the ensemble itself.
        models: at least one.
        ensemble: how the models' scores are combined; None for a single model.
    """

    name: str
    folder: Path
    layout: Layout
    content: str
    models: tuple[Checkpoint, ...]
    ensemble: Ensemble | None = None


def open_checkpoint(name: str, dtype: torch.dtype | None = None, light: bool = False) -> Opened:
    """Open a checkpoint or the members of an ensemble; each file is read once to be hashed.

    Args:
        name: name, folder or Hub id, as for `find_checkpoint`.
        dtype: arithmetic of the models; float32 by default, whatever the weights were stored in.
        light: open without `transformers` what can be opened so; for scoring on a CPU.

    Raises:
        ValueError: if the folder is no scorer and no ensemble, saying what is wrong and what is needed.
    """
    hashes = FileHashes()
    location = locate_checkpoint(name, hashes)
    folder, ensemble, members = location.folder, None, [location]
    if is_ensemble(folder):
        ensemble = read_ensemble(folder)
        members = [_member_location(folder, member, hashes) for member in ensemble.members]
    models = tuple(_open_single(member, dtype, hashes, light) for member in members)
    if ensemble is None:
        return Opened(location.name, folder, models[0].layout, models[0].content, models)
    addresses = [member.address for member in ensemble.members]
    layouts = dict(zip(addresses, (model.layout for model in models), strict=True))
    layout = common_layout(layouts, ensemble.mixed_layouts)
    return Opened(location.name, folder, layout, content_hash(folder, hashes), models, ensemble)


def load_checkpoint(name: str, dtype: torch.dtype | None = None) -> Checkpoint:
    """Load the `transformers` model and tokenizer of a single checkpoint, and check that it can score.

    Args:
        name: name, folder or Hub id, as for `find_checkpoint`.
        dtype: arithmetic of the model; float32 by default, whatever the weights were stored in.

    Raises:
        ValueError: if the folder is no scorer, saying what is wrong and what is needed.
    """
    hashes = FileHashes()
    location = locate_checkpoint(name, hashes)
    if is_ensemble(location.folder):
        raise ValueError(f"checkpoint {name} is an ensemble, which can score but is no model: give one of its members")
    return _open_single(location, dtype, hashes)


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


def _member_location(folder: Path, member: Member, hashes: FileHashes) -> Location:
    """Find an ensemble's member: beside ensemble.json, embedded, or on the Hub.

    Raises:
        ValueError: if it is not there, is an ensemble itself, or is not the checkpoint that the ensemble was made of.
    """
    local = folder / member.checkpoint
    try:
        path = local if local.is_dir() else find_checkpoint(member.address, hashes=hashes)
    except ValueError as error:
        raise ValueError(f"ensemble {folder} lacks its member {member.address}: {error}") from error
    if is_ensemble(path):
        raise ValueError(
            f"member {member.address} of ensemble {folder} is an ensemble: members are single checkpoints"
        )
    if (content := content_hash(path, hashes)) != member.hash:
        raise ValueError(
            f"member {member.address} of ensemble {folder} has hash {content}, but the ensemble was made of "
            f"{member.hash}: put that back, or make the ensemble again"
        )
    return Location.of_folder(path)


def _open_single(location: Location, dtype: torch.dtype | None, hashes: FileHashes, light: bool = False) -> Checkpoint:
    """Open a checkpoint that is no ensemble, and check that it can score.

    The steps: the files, the settings and their sizes are checked before anything is built; the model and tokenizer are
    opened; the tokenizer is tried; the files are compared with their recorded hashes.
    """
    import torch

    name, folder, dtype = location.argument, location.folder, dtype or torch.float32
    _check_files(name, folder)
    fault = f"checkpoint {name} cannot be opened"
    with one_line_errors(fault, NEEDS):
        settings = read_settings(folder / "config.json")
    _check_references(name, folder, settings)  # before the files that it refuses are opened
    with one_line_errors(fault, NEEDS):
        stored = checked_size(folder, settings)
    loaded: Any = None
    model: Any
    tokenizer: Any
    with torch_defaults(), size_limit(stored):
        opened = open_light(folder, settings) if light and location.official is None else None
        if opened is not None:
            model, config, tokenizer = opened.model.to(dtype), opened.config, opened.tokenizer
        else:
            model, tokenizer = loaded = _load(location, settings, dtype)
            config = model.config
        _check_weights(name, model)
    _try_tokenizer(name, tokenizer, config)
    try:
        content = checked_content(folder, hashes)
        layout = Layout.from_config(config)
    except ValueError as error:
        raise ValueError(f"checkpoint {name}: {error}") from error
    return Checkpoint(location.name, folder, layout, content, config, dtype, opened, loaded)


def _check_files(name: str, folder: Path) -> None:
    """Check that a folder has the files of a checkpoint, before any is opened.

    Raises:
        ValueError: naming the file that is missing or is no plain file.
    """
    if not (folder / "config.json").is_file():
        if (folder / "bleurt_config.json").is_file():
            raise ValueError(
                f"checkpoint {name} is an official TensorFlow checkpoint: convert it once, with "
                f"`bleurt-repro convert {name} {name}-converted`, and give the folder {name}-converted"
            )
        raise ValueError(f"checkpoint {name} has no config.json: {NEEDS}")
    for path in {path for pattern in SCORING_FILES for path in folder.glob(pattern)}:
        if not path.is_file() and not path.is_dir():  # a pipe would be waited for, a broken link cannot be read
            raise ValueError(f"checkpoint {name}: {path.name} is no plain file: {NEEDS}")
    if not any(path.is_file() for path in folder.glob("*.safetensors")):
        pickles = [path.name for path in (*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.ckpt"))]
        fault = f"only {pickles[0]}, a pickle, which is never opened" if pickles else "no weights in safetensors"
        raise ValueError(f"checkpoint {name} has {fault} ({SAFE_REVISION}): {NEEDS}")
    if not any((folder / file).is_file() for file in TOKENIZER_FILES):
        raise ValueError(f"checkpoint {name} has no tokenizer: {NEEDS}")


def _check_references(name: str, folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse settings and files that make `transformers` read weights or code outside the content hash."""
    if "model_type" not in settings:
        raise ValueError(f"checkpoint {name}: config.json names no model_type: {NEEDS}")
    for index in folder.glob("*.safetensors.index.json"):
        try:
            files = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"checkpoint {name}: {index.name} cannot be read ({first_line(error)})") from error
        present = {path.name for path in folder.glob("*.safetensors")}
        for file in files:
            if file not in present:
                raise ValueError(
                    f"checkpoint {name}: {index.name} names {str(file)[:80]!r}: expected only safetensors files in the folder "
                    "itself, which the hash in the signature covers"
                )
    if (folder / "adapter_config.json").exists():
        raise ValueError(
            f"checkpoint {name} has an adapter (adapter_config.json): merge it into the model and save that"
        )
    outside = [key for key in OUTSIDE_SETTINGS if settings.get(key) not in (None, *HARMLESS)]
    if outside:
        raise ValueError(
            f"checkpoint {name}: config.json sets {outside[0]} to {str(settings[outside[0]])[:60]!r}, which can name files or "
            "code elsewhere: remove it"
        )


def _load(
    location: Location, settings: Mapping[str, Any], dtype: torch.dtype
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load model and tokenizer as `transformers` has them, the model in evaluation mode."""
    name, folder, official = location.argument, location.folder, location.official
    if official is None and settings["model_type"] != MODEL_TYPE:
        with quiet_transformers():
            return _load_model(name, folder, dtype).eval(), _load_tokenizer(name, folder)
    with one_line_errors(f"checkpoint {name} cannot be opened"):
        model, tokenizer = load_bleurt_pytorch(folder, settings, official.max_length if official else None)
    return model.to(dtype), tokenizer  # type: ignore[arg-type]  # its decorator hides the signature


def _load_model(name: str, folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    from transformers import AutoModelForSequenceClassification

    with one_line_errors(f"checkpoint {name} cannot be opened", NEEDS):
        model, report = AutoModelForSequenceClassification.from_pretrained(
            folder,
            dtype=dtype,
            trust_remote_code=False,
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
        )
    if model.config.num_labels != 1:
        raise ValueError(f"checkpoint {name} has {model.config.num_labels} labels; a scorer has one: {NEEDS}")
    lacking = sorted(report["missing_keys"]) + sorted(str(key) for key in report.get("mismatched_keys", ()))
    if lacking:
        raise ValueError(
            f"checkpoint {name} lacks weights of a scorer ({', '.join(lacking[:3])}): fine-tune it first, or check the file"
        )
    return model


def _check_weights(name: str, model: nn.Module) -> None:
    """Check that all weights are finite numbers, in the arithmetic of the model."""
    for weight_name, weight in model.state_dict().items():
        if not weight.isfinite().all():
            raise ValueError(f"checkpoint {name} has NaN or infinite weights in {weight_name}: it cannot score")


def _load_tokenizer(name: str, folder: Path) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    with one_line_errors(f"checkpoint {name}: its tokenizer cannot be opened", NEEDS):
        if (folder / "tokenizer.json").is_file():
            check_normalizer(folder / "tokenizer.json")
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)


def _try_tokenizer(name: str, tokenizer: Any, config: Any) -> None:
    """Check that a tokenizer reads odd texts, and that the model has an embedding for each of its tokens.

    Raises:
        ValueError: if not; naming the checkpoint.
    """
    with one_line_errors(f"checkpoint {name}: its tokenizer cannot read a text", NEEDS):
        tokens = tokenizer(list(TRIAL_TEXTS), add_special_tokens=False, verbose=False)["input_ids"]
        largest = max(tokenizer.get_vocab().values(), default=0)
    if any(len(ids) > MOST_TOKENS * len(text.encode()) for ids, text in zip(tokens, TRIAL_TEXTS, strict=True)):
        raise ValueError(f"checkpoint {name}: its tokenizer makes more than {MOST_TOKENS} tokens of a byte: {NEEDS}")
    if largest >= (size := getattr(config, "vocab_size", largest + 1)):
        raise ValueError(
            f"checkpoint {name}: its tokenizer has a token with id {largest}, but the model has {size} embeddings: {NEEDS}"
        )
