"""Find and open the models that make perturbations and signals: a local folder, or a Hub id with an optional
@revision.

Only safetensors weights are opened, and no code of a model is run.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.loading.checksums import HASH_DIGITS, FileHashes
from bleurt_repro.metric.loading.hub import ANY_HUB_ID, converted_revision, download
from bleurt_repro.metric.loading.quiet import first_line, quiet_transformers

if TYPE_CHECKING:
    import torch

# Files that decide a model's output, and so are downloaded and hashed: configuration, weights, tokenizer.
MODEL_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.spm")
# Files that training leaves beside a model, and that do not change its output.
RECORDS = ("results.json", "all_results.json", "train_results.json", "eval_results.json", "trainer_state.json")
NEEDS = "give a folder as save_pretrained() writes it, or a Hub id such as org/name or org/name@revision"


def find_model(name: str, role: str, hashes: FileHashes | None = None) -> Path:
    """Return the folder of a model, which is downloaded if the name is a Hub id.

    Args:
        name: local folder, or "org/name" with an optional "@revision".
        role: role of the model, for messages: "masked language model", "translator en-fr", ...
        hashes: cache of hashes, which the hashes of downloaded files are added to.

    Raises:
        FileNotFoundError: if there is no such folder, and no such repository or no connection.
        ValueError: if the Hub refuses, a file is damaged, or the model has no configuration or no safetensors weights.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _download(name, role, hashes)
    if not (folder / "config.json").is_file():
        raise ValueError(f"{role} {name} has no config.json: {NEEDS}")
    if not any(folder.glob("*.safetensors")):
        raise ValueError(f"{role} {name} has no *.safetensors weights, the only format that is opened: {NEEDS}")
    return folder


def _download(name: str, role: str, hashes: FileHashes | None) -> Path:
    # A path with a leading dot or slash, or of several levels, is meant to be a folder.
    if not ANY_HUB_ID.fullmatch(name) or name.startswith("."):
        raise FileNotFoundError(f"{role}: there is no folder {name}: {NEEDS}")
    folder = download(name, MODEL_FILES, role, hashes)
    if "@" not in name and not any(folder.glob("*.safetensors")) and (converted := converted_revision(name, role)):
        return download(f"{name}@{converted}", MODEL_FILES, role, hashes)
    return folder


def identify(name: str, folder: Path, hashes: FileHashes | None = None) -> dict[str, str]:
    """Return what identifies a model, for the record beside the data.

    Args:
        name: name of the model, as the user gave it.
        folder: folder of its files.
        hashes: cache of hashes of its files.

    Returns:
        "name", "sha256" (12 digits, over configuration, weights and tokenizer) and, for a Hub model, "revision".
    """
    digest, hashes = hashlib.sha256(), hashes or FileHashes()
    for path in sorted({path for pattern in MODEL_FILES for path in folder.glob(pattern)}):
        if path.name in RECORDS:
            continue
        digest.update(path.name.encode())
        digest.update(bytes.fromhex(hashes.sha256(path)))
    identity = {"name": name, "sha256": digest.hexdigest()[:HASH_DIGITS]}
    if folder.parent.name == "snapshots":  # the Hub's cache: .../snapshots/<commit>/
        identity["revision"] = folder.name
    return identity


def load_model(
    auto_class: Any, name: str, role: str, device: torch.device | str = "cpu"
) -> tuple[Any, Any, dict[str, str]]:
    """Open a model in float32 and evaluation mode, and its tokenizer.

    Args:
        auto_class: Auto class of `transformers`.
        name: as in `find_model`.
        role: as in `find_model`.
        device: device of the model.

    Returns:
        The model, its tokenizer, and its identity as in `identify`.

    Raises:
        FileNotFoundError: as in `find_model`.
        ValueError: if the folder has no such model.
    """
    import torch

    hashes = FileHashes()
    folder = find_model(name, role, hashes)
    try:
        with quiet_transformers():
            model, report = auto_class.from_pretrained(
                folder,
                dtype=torch.float32,
                trust_remote_code=False,
                use_safetensors=True,
                local_files_only=True,
                output_loading_info=True,
            )
            tokenizer = load_tokenizer(folder)
    except Exception as error:  # damaged files make the readers raise almost anything
        raise ValueError(f"{role} {name} cannot be opened ({first_line(error)}): {NEEDS}") from error
    missing = sorted(str(key) for key in report["missing_keys"])
    if missing:
        raise ValueError(f"{role} {name} was not trained for this task: it lacks weights ({', '.join(missing[:3])})")
    return model.eval().to(device), tokenizer, identify(name, folder, hashes)


def load_tokenizer(folder: Path) -> Any:
    """Open the tokenizer of a model's folder."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)


def default_device() -> str:
    """Return the best device available; under a launcher, the GPU of this process."""
    import os

    import torch

    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"
