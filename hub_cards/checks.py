"""Checks before anything is published: weights open, the card has its metadata, and no file holds a pickle, a secret
or a path of this machine. They need no connection to the Hub, which checks the remaining metadata itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bleurt_repro.hub_cards.contents import CARD, File

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".npy", ".npz", ".msgpack", ".h5")
# The first bytes of a pickle of protocol 2 to 5: https://docs.python.org/3/library/pickle.html
PICKLE_STARTS = tuple(b"\x80" + bytes([protocol]) for protocol in (2, 3, 4, 5))
SECRETS = {
    "a Hugging Face token": rb"\b(?:hf|api_org)_[A-Za-z0-9]{30,}",
    "a GitHub token": rb"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{50,})",
    "an API key": rb"\bsk-[A-Za-z0-9_-]{32,}",
    "an access key": rb"\bAKIA[0-9A-Z]{16}\b",
    "a private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY-----",
}
# Tokens of the Hub in text of others: also short ones and temporary ones.
HUB_TOKEN = re.compile(r"\b(?:hf|api_org)_(?:jwt_[\w.-]+|[A-Za-z0-9]{10,}[\w.-]*)")
# A path of two or more levels below a folder that usually holds the files of a person or a machine.
ROOTS = "home|Users|root|mnt|media|tmp|var|opt|srv|scratch|workspace|work|data|content|kaggle|gpfs|lustre|nfs|private"
MACHINE_PATH = re.compile(rf"(?<![\w.:/~<>*%$-])/(?:{ROOTS})/[\w.-]+|\b[A-Za-z]:\\\\?(?:Users|Windows)\\".encode())
TEXTS = (".json", ".md", ".txt", ".py", ".yaml", ".yml", ".toml", ".cfg", ".css")
# Checked for secrets and not for paths, since their entries come from data.
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt")
DATA = (".jsonl", ".csv", ".tsv")


def check_files(files: Sequence[File], left_out: Sequence[str] = ()) -> list[str]:
    """Check files for what should not be published.

    Args:
        files: files to publish.
        left_out: names of the files beside them. A pickle among them is an error as well, since its author would
            expect it to be published.

    Returns:
        One sentence per problem.
    """
    problems = [
        f"{name} is a pickle by its name, and only safetensors are published: move it away"
        for name in left_out
        if name.endswith(PICKLES)
    ]
    for file in files:
        for check in (_check_link, _check_pickle, _check_weights, _check_json, _check_secrets, _check_paths):
            problems += check(file)
    return problems


def check_model(files: Sequence[File]) -> list[str]:
    """Check that a checkpoint has a configuration, weights and a tokenizer; return one sentence per problem."""
    by_path = {file.path: file for file in files}
    problems = []
    if "config.json" not in by_path:
        problems.append("there is no config.json")
    elif "model_type" not in _json_object(by_path["config.json"]):
        problems.append("config.json names no model_type")
    if not any(path.endswith(".safetensors") for path in by_path):
        problems.append("there are no weights in safetensors")
    if not any(path.startswith(("tokenizer", "vocab")) or path.endswith(".model") for path in by_path):
        problems.append("there is no tokenizer")
    return problems


def _json_object(file: File) -> dict[str, object]:
    try:
        content = json.loads(file.read())
    except ValueError:
        return {"model_type": None}  # `_check_json` reports it
    return content if isinstance(content, dict) else {}


def _check_link(file: File) -> Iterator[str]:
    # A link in a folder that somebody else made may lead to any file of this machine.
    if isinstance(file.content, Path) and file.content.is_symlink():
        yield f"{file.path} is a link, and its target may be private: replace it by the file itself"


def _check_pickle(file: File) -> Iterator[str]:
    if file.path.endswith(PICKLES) or file.start(2) in PICKLE_STARTS:
        yield f"{file.path} is a pickle, and only safetensors are published"


def _check_weights(file: File) -> Iterator[str]:
    if not file.path.endswith(".safetensors") or not isinstance(file.content, Path):
        return
    from safetensors import safe_open

    try:
        with safe_open(file.content, "pt") as weights:
            for name in weights.keys():  # noqa: SIM118 - no mapping
                tensor = weights.get_tensor(name).float()  # torch has no isfinite for float8
                if not tensor.isfinite().all():
                    yield f"{file.path} has NaN or infinite values in {name}"
    except Exception as error:  # a damaged file makes the reader raise many types
        yield f"{file.path} cannot be opened ({str(error).splitlines()[0]})"


def _check_json(file: File) -> Iterator[str]:
    if file.path.endswith(".json"):
        try:
            json.loads(file.read())
        except ValueError as error:
            yield f"{file.path} is not JSON ({error})"


def _check_secrets(file: File) -> Iterator[str]:
    if not file.path.endswith(TEXTS + DATA) and "." in Path(file.path).name:
        return
    patterns = {secret: re.compile(pattern) for secret, pattern in SECRETS.items()}
    if token := _user_token():
        patterns = {"your own token": re.compile(re.escape(token)), **patterns}
    for secret, pattern in patterns.items():
        yield from _find_line(file, pattern, f"holds {secret}")


def mask_secrets(text: str) -> str:
    """Return a text of others, such as an answer of the Hub, without tokens, keys and control characters."""
    if token := _user_token():
        text = text.replace(token.decode(), "***")
    text = HUB_TOKEN.sub("***", text)
    for pattern in SECRETS.values():
        text = re.sub(pattern.decode(), "***", text)
    return "".join(character if character.isprintable() or character in "\n\t" else " " for character in text)


def _user_token() -> bytes | None:
    from huggingface_hub import get_token

    token = get_token()
    return token.encode() if token else None


def _check_paths(file: File) -> Iterator[str]:
    if not file.path.endswith(TEXTS) or file.path in VOCABULARIES:
        return
    user_folders = [re.escape(str(path).encode()) for path in (Path.home(), Path.cwd()) if len(path.parts) > 2]
    pattern = re.compile(b"|".join([MACHINE_PATH.pattern, *user_folders]))
    yield from _find_line(file, pattern, "names a path of this machine", show=True)
    if file.path.endswith(".json"):
        absolute = re.compile(rb'"/[\w.-]+/[\w./-]+"')
        yield from _find_line(file, absolute, "names an absolute path", show=True)


def _find_line(file: File, pattern: re.Pattern[bytes], problem: str, show: bool = False) -> Iterator[str]:
    """Report the first line that matches, with the match if `show` is set; a secret must not be repeated."""
    for number, line in enumerate(file.read().splitlines(), 1):
        if match := pattern.search(line):
            excerpt = f" ({match.group().decode(errors='replace')})" if show else ""
            yield f"{file.path}, line {number} {problem}{excerpt}"
            return


def check_card(repo_type: str, files: Sequence[File]) -> list[str]:
    """Check the metadata of the card.

    Args:
        repo_type: "model", "dataset" or "space".
        files: files to publish, including the card.

    Returns:
        One sentence per problem.
    """
    from huggingface_hub import DatasetCard, ModelCard, SpaceCard

    text = next((file.read().decode(errors="replace") for file in files if file.path == CARD), None)
    if text is None:
        return [f"there is no card: `bleurt-repro card FOLDER` writes {CARD}"]
    if not text.startswith("---\n"):
        return [f"{CARD} has no metadata: it must begin with a block of YAML between lines of ---"]
    card_class: Any = {"model": ModelCard, "dataset": DatasetCard, "space": SpaceCard}[repo_type]
    try:
        data = card_class(text, ignore_metadata_errors=False).data
    except Exception as error:  # of the YAML parser or of huggingface_hub
        return [f"the metadata of {CARD} cannot be read ({' '.join(str(error).split())})"]
    checks = {"model": _check_model, "dataset": _check_dataset, "space": _check_space}
    return [f"{CARD}: {problem}" for problem in checks[repo_type](data, [file.path for file in files])]


def _check_model(data: Any, names: Sequence[str]) -> Iterator[str]:
    for name in ("license", "library_name", "pipeline_tag"):
        if not data.get(name):
            yield f"the metadata have no {name}"
    for result in data.get("eval_results") or []:
        if not isinstance(result.metric_value, int | float):
            name = f"{result.metric_type} on {result.dataset_name}"
            yield f"the value of {name} must be a number, found {result.metric_value!r}"


def _check_dataset(data: Any, names: Sequence[str]) -> Iterator[str]:
    if not data.get("license"):
        yield "the metadata have no license"
    for config in data.get("configs") or []:
        sources = config.get("data_files") or []
        for source in [sources] if isinstance(sources, str) else sources:
            paths = source if isinstance(source, str) else source.get("path", "")
            for pattern in [paths] if isinstance(paths, str) else paths:
                if not any(fnmatch(name, pattern) for name in names):
                    yield f"configuration {config.get('config_name')} names {pattern}, which does not exist"


def _check_space(data: Any, names: Sequence[str]) -> Iterator[str]:
    from huggingface_hub.constants import SPACES_SDK_TYPES

    if data.get("sdk") not in SPACES_SDK_TYPES:
        yield f"sdk must be one of {', '.join(SPACES_SDK_TYPES)}, found {data.get('sdk')!r}"
    if data.get("app_file") and data.app_file not in names:
        yield f"app_file {data.app_file} does not exist"
