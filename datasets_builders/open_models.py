"""Find and open the models that make perturbations and signals: a local folder, or a Hub id with an optional @revision.

Only safetensors weights are opened, and no code of a model is run.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.loading.hub import check_hashes
from bleurt_repro.metric.loading.quiet import first_line, quiet_transformers
from bleurt_repro.metric.signature import HASH_DIGITS, file_hash

if TYPE_CHECKING:
    import torch

HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")
# What decides a model's output, and so what is fetched and hashed: configuration, weights, tokenizer.
MODEL_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.spm")
# What training leaves beside a model, and what does not change what the model computes.
RECORDS = ("results.json", "all_results.json", "train_results.json", "eval_results.json", "trainer_state.json")
# The Hub's converter offers safetensors weights of older repositories in a pull request by this author and title:
# https://huggingface.co/spaces/safetensors/convert
CONVERTER, CONVERSION_TITLE = "SFconvertbot", "Adding `safetensors` variant of this model"
NEEDS = "give a folder as save_pretrained() writes it, or a Hub id such as org/name or org/name@revision"


def find_model(name: str, role: str) -> Path:
    """Find a model's folder, fetching it from the Hub if it is named by a Hub id.

    Args:
        name: a local folder, or "org/name" with an optional "@revision".
        role: what the model is for, for the messages: "masked language model", "translator en-fr", ...

    Raises:
        FileNotFoundError: if there is neither such a folder nor such a repository within reach.
        ValueError: if what is found has no configuration or no safetensors weights.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _download(name, role)
    if not (folder / "config.json").is_file():
        raise ValueError(f"{role} {name} has no config.json: {NEEDS}")
    if not any(folder.glob("*.safetensors")):
        raise ValueError(f"{role} {name} has no *.safetensors weights, the only kind that is opened: {NEEDS}")
    return folder


def _download(name: str, role: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    repo_id, _, revision = name.partition("@")
    # A path with a leading dot or slash, or of several levels, was meant for a folder.
    if not HUB_ID.fullmatch(name) or name.startswith("."):
        raise FileNotFoundError(f"{role}: there is no folder {name}: {NEEDS}")
    try:
        folder = Path(snapshot_download(repo_id, revision=revision or None, allow_patterns=list(MODEL_FILES)))
        if not revision and not any(folder.glob("*.safetensors")) and (converted := _converted_revision(repo_id)):
            folder = Path(snapshot_download(repo_id, revision=converted, allow_patterns=list(MODEL_FILES)))
    except RepositoryNotFoundError as error:
        raise FileNotFoundError(f"{role}: no folder {name} here and no such repository on the Hub: {NEEDS}") from error
    except LocalEntryNotFoundError as error:
        raise FileNotFoundError(
            f"{role}: {name} is neither a folder here nor in the cache, and the Hub cannot be reached: {NEEDS}"
        ) from error
    except (HfHubHTTPError, ConnectionError) as error:
        raise FileNotFoundError(f"{role}: the Hub did not give {name} ({error}): {NEEDS}") from error
    check_hashes(folder, repo_id)
    return folder


def _converted_revision(repo_id: str) -> str | None:
    """Name the revision where the Hub's own converter has put safetensors weights, if it has."""
    from huggingface_hub import HfApi

    for discussion in HfApi().get_repo_discussions(repo_id, author=CONVERTER, discussion_type="pull_request"):
        if discussion.title == CONVERSION_TITLE:
            return f"refs/pr/{discussion.num}"
    return None


def identify(name: str, folder: Path) -> dict[str, str]:
    """Say exactly which model this is, for the record beside the data.

    Args:
        name: what it was asked for by.
        folder: where its files lie.

    Returns:
        "name", "sha256" (the first 12 digits, over configuration, weights and tokenizer) and, of a Hub model, "revision".
    """
    digest = hashlib.sha256()
    for path in sorted({path for pattern in MODEL_FILES for path in folder.glob(pattern)}):
        if path.name in RECORDS:
            continue
        digest.update(path.name.encode())
        digest.update(file_hash(path))
    identity = {"name": name, "sha256": digest.hexdigest()[:HASH_DIGITS]}
    if folder.parent.name == "snapshots":  # the Hub's cache: .../snapshots/<commit>/
        identity["revision"] = folder.name
    return identity


def load_model(auto_class: Any, name: str, role: str, device: torch.device | str = "cpu") -> tuple[Any, Any]:
    """Open a model in float32 and evaluation mode, and its tokenizer.

    Args:
        auto_class: an Auto class of `transformers`.
        name: as for `find_model`.
        role: as for `find_model`.
        device: where the model goes.

    Returns:
        the model and its tokenizer.

    Raises:
        FileNotFoundError: as `find_model`.
        ValueError: if the folder holds no such model.
    """
    import torch

    folder = find_model(name, role)
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
    except Exception as error:  # whatever a damaged folder makes the reader raise, the user needs one sentence
        raise ValueError(f"{role} {name} cannot be opened ({first_line(error)}): {NEEDS}") from error
    lacking = sorted(str(key) for key in report["missing_keys"])
    if lacking:
        raise ValueError(f"{role} {name} is not trained for that: it lacks weights ({', '.join(lacking[:3])})")
    return model.eval().to(device), tokenizer


def load_tokenizer(folder: Path) -> Any:
    """Open the tokenizer of a model's folder."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)


def default_device() -> str:
    """Name the best device there is; under a launcher, the process's own GPU."""
    import os

    import torch

    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"
