"""Open a checkpoint by one argument: an embedded or official name, a local folder, or a Hub id (org/name@revision).

A checkpoint is a folder that plain `transformers` opens: a one-label sequence classifier in safetensors and a
tokenizer; or an ensemble of such folders. Nothing is unpickled and no code of a checkpoint is run.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.bleurt_pytorch import MODEL_TYPE, SAFE_REVISION, load_bleurt_pytorch
from bleurt_repro.metric.loading.checksums import FileHashes, checked_content, content_hash
from bleurt_repro.metric.loading.ensemble import Ensemble, Member, common_layout, is_ensemble, read_ensemble
from bleurt_repro.metric.loading.hub import HUB_FILES, HUB_ID, download
from bleurt_repro.metric.loading.light import LightScorer, open_light
from bleurt_repro.metric.loading.official_names import OFFICIAL_CHECKPOINTS, OfficialCheckpoint
from bleurt_repro.metric.loading.quiet import first_line, quiet_transformers

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

EMBEDDED_FOLDER = Path(__file__).parents[1] / "checkpoint"
# Checkpoints that are too large for a wheel: of the folders there, only a clone of the repository has these.
IN_CLONES = ("bleurt-repro-base",)
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
# Far above all encoders there are: settings come from elsewhere, and one line describes a model that fills any memory.
LARGEST_SIZES = {
    "num_hidden_layers": 1_000,
    "num_layers": 1_000,
    "n_layers": 1_000,
    "n_layer": 1_000,
    "num_attention_heads": 10_000,
    "hidden_size": 1_000_000,
    "intermediate_size": 1_000_000,
    "vocab_size": 10_000_000,
    "max_position_embeddings": 1_000_000,
}
# By these a config leads `transformers` to other files of weights, or to code of the Hub ("org/kernels").
OUTSIDE_SETTINGS = ("transformers_weights", "attn_implementation", "_attn_implementation", "experts_implementation")
HARMLESS = ("eager", "sdpa", "flash_attention_2", "flex_attention")
NEEDS = (
    "a checkpoint is a folder with config.json (one label), model.safetensors and a tokenizer, "
    "as save_pretrained() writes them"
)


@dataclass(frozen=True)
class Checkpoint:
    """An opened model.

    Attributes:
        name: what to call it: the embedded name, the Hub id, or the folder's own name.
        folder: its files.
        layout: what it reads.
        content: its content hash.
        config: the settings of config.json.
        dtype: its arithmetic.
        light: what scores without `transformers`, if it was opened so.
        loaded: the `transformers` model and tokenizer, if it was opened with them.
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
        with quiet_transformers():
            model = _load_model(self.name, self.folder, self.dtype).eval()
            return model, _load_tokenizer(self.name, self.folder)

    @property
    def model(self) -> PreTrainedModel:
        """The `transformers` sequence classifier, in evaluation mode."""
        return self._loaded[0]

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Its tokenizer."""
        return self._loaded[1]


@dataclass(frozen=True)
class Opened:
    """What `BleurtScorer` scores with: one model, or several that are an ensemble.

    Attributes:
        name, folder, layout, content: as of a `Checkpoint`; of an ensemble, its own.
        models: at least one.
        ensemble: how the models' scores are put together; None of a single model.
    """

    name: str
    folder: Path
    layout: Layout
    content: str
    models: tuple[Checkpoint, ...]
    ensemble: Ensemble | None = None


def embedded_names() -> list[str]:
    """List the checkpoints that are here: in an installed package, or in a clone."""
    return sorted(folder.name for folder in EMBEDDED_FOLDER.glob("*") if (folder / "config.json").is_file())


def known_names() -> list[str]:
    """List all checkpoints that go by a name: those that are here, those of clones, and the official ones."""
    return list(dict.fromkeys((*embedded_names(), *IN_CLONES, *OFFICIAL_CHECKPOINTS)))


def known_name(name: str) -> str:
    """Return the known name that differs from `name` in upper and lower case only, else `name`."""
    known = {known.lower(): known for known in known_names()}
    return name if Path(name).expanduser().exists() else known.get(name.lower(), name)


def find_checkpoint(name: str, files: Sequence[str] = HUB_FILES, hashes: FileHashes | None = None) -> Path:
    """Find a checkpoint's folder, fetching it from the Hub if it is named by a Hub id or an official name.

    Args:
        name: an embedded name, a local folder, an official name, or "org/name" with an optional "@revision".
        files: patterns of what to fetch from the Hub.
        hashes: takes up the hashes of what is fetched, which is checked by them.

    Raises:
        TypeError: if the name is no string or path.
        ValueError: if there is no such checkpoint, or the Hub has none by that name or cannot be reached.
    """
    if not isinstance(name, str | Path):
        raise TypeError(f"checkpoint must be a name or a path, found {type(name).__name__}")
    name = known_name(name) if isinstance(name, str) else name
    folder = Path(name).expanduser()
    if name in embedded_names():
        if folder.is_dir() and not folder.samefile(EMBEDDED_FOLDER / name):
            _warn_of_namesake(name, folder.resolve())
        return EMBEDDED_FOLDER / name
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise ValueError(f"checkpoint {name} is a file: {NEEDS}")
    if name in IN_CLONES:
        raise ValueError(
            f"checkpoint {name} is too large for the installed package: give the path of "
            f"metric/checkpoint/{name} in a clone of the repository, or the Hub id (org/name) of a published copy"
        )
    if name in OFFICIAL_CHECKPOINTS:
        return _official(str(name), files, hashes)
    # A relative path of one level and a Hub id look alike: the folder, if it exists, was taken above.
    if isinstance(name, str) and HUB_ID.fullmatch(name) and not name.startswith("."):
        return download(name, files, hashes=hashes)
    raise ValueError(
        f"unknown checkpoint {str(name)!r}: known names are {', '.join(known_names())}; "
        "a local folder or a Hub id such as org/name or org/name@revision is valid too"
    )


@cache  # a checkpoint's folder may be looked for more than once
def _warn_of_namesake(name: str, folder: Path) -> None:
    warnings.warn(f"checkpoint {name} is the embedded one, not {folder}: for that give ./{name}", stacklevel=3)


def _official(name: str, files: Sequence[str], hashes: FileHashes | None) -> Path:
    """Fetch an official checkpoint's public copy, or tell the user how to obtain the official archive."""
    official = OFFICIAL_CHECKPOINTS[name]
    if official.hub is None:
        raise ValueError(f"checkpoint {name} has no safe copy on the Hub: {official.how_to_get}")
    try:
        return download(official.hub, files, hashes=hashes)
    except ValueError as error:
        raise ValueError(f"checkpoint {name}: {error}; otherwise {official.how_to_get}") from error


def open_checkpoint(name: str, dtype: torch.dtype | None = None, light: bool = False) -> Opened:
    """Open a checkpoint or the members of an ensemble; each file is read once to be hashed.

    Args:
        name: as for `find_checkpoint`.
        dtype: arithmetic of the models; float32 by default, whatever the weights were stored in.
        light: open without `transformers` what can be opened so; for scoring on a CPU.

    Raises:
        ValueError: if the folder is no scorer and no ensemble, saying what is wrong and what is needed.
    """
    hashes = FileHashes()
    folder = find_checkpoint(name, hashes=hashes)
    if not is_ensemble(folder):
        model = _load(name, folder, dtype, hashes, light)
        return Opened(model.name, folder, model.layout, model.content, (model,))
    ensemble = read_ensemble(folder)
    folders = [_member_folder(folder, member, hashes) for member in ensemble.members]
    models = tuple(_load(str(found), found, dtype, hashes, light) for found in folders)
    names = (member.address for member in ensemble.members)
    layouts = dict(zip(names, (model.layout for model in models), strict=True))
    layout = common_layout(layouts, ensemble.mixed_layouts)
    return Opened(_shown(name, folder), folder, layout, content_hash(folder, hashes), models, ensemble)


def _member_folder(folder: Path, member: Member, hashes: FileHashes) -> Path:
    """Find a member's folder: beside ensemble.json, embedded, or on the Hub.

    Raises:
        ValueError: if it is not there, is an ensemble itself, or is not the checkpoint that the ensemble was made of.
    """
    local = folder / member.checkpoint
    try:
        found = local if local.is_dir() else find_checkpoint(member.address, hashes=hashes)
    except ValueError as error:
        raise ValueError(f"ensemble {folder} lacks its member {member.address}: {error}") from error
    if is_ensemble(found):
        raise ValueError(
            f"member {member.address} of ensemble {folder} is an ensemble: members are single checkpoints"
        )
    if (content := content_hash(found, hashes)) != member.hash:
        raise ValueError(
            f"member {member.address} of ensemble {folder} has hash {content}, but the ensemble was made of "
            f"{member.hash}: put that back, or make the ensemble again"
        )
    return found


def load_checkpoint(name: str, dtype: torch.dtype | None = None) -> Checkpoint:
    """Load a single checkpoint's model and tokenizer, and make sure that it can score.

    Args:
        name: as for `find_checkpoint`.
        dtype: arithmetic of the model; float32 by default, whatever the weights were stored in.

    Raises:
        ValueError: if the folder is no scorer, saying what is wrong and what is needed.
    """
    hashes = FileHashes()
    folder = find_checkpoint(name, hashes=hashes)
    if is_ensemble(folder):
        raise ValueError(f"checkpoint {name} is an ensemble, which can score but is no model: give one of its members")
    return _load(name, folder, dtype, hashes)


def _load(name: str, folder: Path, dtype: torch.dtype | None, hashes: FileHashes, light: bool = False) -> Checkpoint:
    import torch

    settings = _read_config(name, folder)
    _check_files(name, folder, settings)
    dtype = dtype or torch.float32
    found = open_light(folder, settings, dtype) if light and _official_of(name) is None else None
    loaded = None
    if found is not None:
        config, known = found.config, len(found.tokenizer.get_vocab())
    else:
        loaded = _open(name, folder, settings, dtype)
        config, known = loaded[0].eval().config, len(loaded[1])
    if known > config.vocab_size:
        raise ValueError(
            f"checkpoint {name}: the tokenizer knows {known} tokens but the model has {config.vocab_size}"
        )
    try:
        content = checked_content(folder, hashes)
    except ValueError as error:
        raise ValueError(f"checkpoint {name}: {error}") from error
    try:
        layout = Layout.from_config(config)
    except ValueError as error:
        raise ValueError(f"checkpoint {name}: {error}") from error
    return Checkpoint(_shown(name, folder), folder, layout, content, config, dtype, found, loaded)


def _shown(name: str, folder: Path) -> str:
    """Return what to call a checkpoint; of a local folder only its name, for its hash says all that matters."""
    return folder.resolve().name if Path(name).expanduser().is_dir() else known_name(str(name))


def _read_config(name: str, folder: Path) -> dict[str, Any]:
    if (folder / "bleurt_config.json").is_file() and not (folder / "config.json").is_file():
        raise ValueError(
            f"checkpoint {name} is an official TensorFlow checkpoint: convert it once, with "
            f"`bleurt-repro convert {name} {name}-converted`, and give the folder {name}-converted"
        )
    if not (folder / "config.json").is_file():
        raise ValueError(f"checkpoint {name} has no config.json: {NEEDS}")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"checkpoint {name}: config.json cannot be read ({error})") from error
    if not isinstance(config, dict) or "model_type" not in config:
        raise ValueError(f"checkpoint {name}: config.json names no model_type: {NEEDS}")
    return config


def _check_files(name: str, folder: Path, config: dict[str, Any]) -> None:
    """Refuse early, by the files of the folder, with the reason."""
    if not any(folder.glob("*.safetensors")):
        pickled = [path.name for path in (*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.ckpt"))]
        found = f"only {pickled[0]}, a pickle, which is never opened" if pickled else "no weights in safetensors"
        if config["model_type"] == MODEL_TYPE:
            found += f" ({SAFE_REVISION})"
        raise ValueError(f"checkpoint {name} has {found}: {NEEDS}")
    if not any((folder / file).is_file() for file in TOKENIZER_FILES):
        raise ValueError(f"checkpoint {name} has no tokenizer: {NEEDS}")
    _check_weight_files(name, folder, config)
    _check_sizes(name, folder, config)


def _check_weight_files(name: str, folder: Path, config: dict[str, Any]) -> None:
    """Refuse what would make `transformers` read weights or code that the content hash does not cover."""
    for index in folder.glob("*.safetensors.index.json"):
        try:
            files = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"checkpoint {name}: {index.name} cannot be read ({first_line(error)})") from error
        for file in files:
            if file not in {path.name for path in folder.glob("*.safetensors")}:
                raise ValueError(
                    f"checkpoint {name}: {index.name} names {str(file)[:80]!r}: expected only safetensors files in the folder "
                    "itself, which the hash in the signature covers"
                )
    if (folder / "adapter_config.json").exists():
        raise ValueError(
            f"checkpoint {name} has an adapter (adapter_config.json): merge it into the model and save that"
        )
    outside = [key for key in OUTSIDE_SETTINGS if config.get(key) not in (None, *HARMLESS)]
    if outside:
        raise ValueError(
            f"checkpoint {name}: config.json sets {outside[0]} to {str(config[outside[0]])[:60]!r}, which can name files or "
            "code elsewhere: remove it"
        )


def _check_sizes(name: str, folder: Path, config: dict[str, Any]) -> None:
    """Refuse a config.json that describes another model than the weights before one of that size is built."""
    for key, most in LARGEST_SIZES.items():
        size = config.get(key)
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= most):
            raise ValueError(
                f"checkpoint {name}: config.json sets {key} to {str(size)[:20]}, expected a whole number from 1 to {most}"
            )
    if (labels := config.get("num_labels", 1)) != 1:
        raise ValueError(f"checkpoint {name} has {labels} labels; a scorer has one: {NEEDS}")
    tensors, numbers = _stored_sizes(folder)
    # null stands for a missing entry; what needs it names it when the model is built
    known = {key: config.get(key) or 1 for key in LARGEST_SIZES}
    layers, hidden = known["num_hidden_layers"], known["hidden_size"]
    widest = max(known["vocab_size"], hidden * max(hidden, known["intermediate_size"]))
    # ALBERT's layers share their weights.
    if numbers and (widest > numbers or (layers > tensors and config["model_type"] != "albert")):
        raise ValueError(
            f"checkpoint {name}: config.json describes a larger model ({layers} layers of width {hidden}) than the "
            f"{numbers} weights it has: {NEEDS}"
        )


def _stored_sizes(folder: Path) -> tuple[int, int]:
    """Count the tensors of the safetensors files and the numbers in them; 0 where a file cannot be read, which is reported
    when it is opened."""
    from safetensors import SafetensorError, safe_open

    tensors = numbers = 0
    for path in folder.glob("*.safetensors"):
        try:
            with safe_open(path, framework="pt") as weights:
                for key in weights.keys():  # noqa: SIM118  # it is no dict
                    tensors, numbers = tensors + 1, numbers + math.prod(weights.get_slice(key).get_shape())
        except (SafetensorError, OSError):
            return 0, 0
    return tensors, numbers


def _open(
    name: str, folder: Path, config: dict[str, Any], dtype: torch.dtype
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    official = _official_of(name)
    if official is None and config["model_type"] != MODEL_TYPE:
        with quiet_transformers():
            return _load_model(name, folder, dtype), _load_tokenizer(name, folder)
    try:
        return load_bleurt_pytorch(folder, dtype, official.max_length if official else None)
    except ValueError as error:
        raise ValueError(f"checkpoint {name} cannot be opened: {error}") from error


def _official_of(name: str) -> OfficialCheckpoint | None:
    """Return what is known of a checkpoint by an official name, which a folder of that name is not."""
    return None if Path(name).expanduser().is_dir() else OFFICIAL_CHECKPOINTS.get(known_name(str(name)))


def _load_model(name: str, folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    from transformers import AutoModelForSequenceClassification

    try:
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
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except Exception as error:
        raise ValueError(
            f"checkpoint {name}: its tokenizer cannot be opened ({first_line(error)}): {NEEDS}"
        ) from error
