"""What is published and where: a fixed set of file patterns for each type of repository."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

REPO_TYPES = ("model", "dataset", "space")
MAIN = "main"
CARD = "README.md"
LICENCES = ("LICENSE*", "LICENCE*")
# Patterns of paths in the folder by type of repository. A training run's checkpoints stay, its result is published.
PUBLISHED = {
    "model": (CARD, "*.json", "*.safetensors", "vocab.txt", "merges.txt", "*.model", "curves.png", *LICENCES),
    "dataset": (CARD, "*.json", "*.jsonl", "*.parquet", "*.csv", "*.tsv", "data/*.parquet", *LICENCES),
    "space": (CARD, "*.py", "*.txt", "*.css", "*.whl", *LICENCES),
}
# Texts that gave no synthetic pairs, and the settings that a training run began with: of no use to others.
NOT_PUBLISHED = ("skipped.jsonl", "run.json")
# A loader would read such files of an earlier version together with the new ones: deleted if the folder lacks them.
REPLACED = ("*.safetensors", "*.safetensors.index.json", "*.jsonl", "*.parquet", "*.csv", "*.tsv", "*.whl")


@dataclass(frozen=True)
class Target:
    """Where something is published.

    Attributes:
        repo_type: "model", "dataset" or "space".
        repo_id: "org/name".
        private: whether the repository is private.
        revision: branch; created if it does not exist.
        create_pr: whether to open a pull request to main instead of committing.
    """

    repo_type: str
    repo_id: str
    private: bool = False
    revision: str | None = None
    create_pr: bool = False

    def __post_init__(self) -> None:
        from huggingface_hub.errors import HFValidationError
        from huggingface_hub.utils import validate_repo_id

        if self.repo_type not in REPO_TYPES:
            raise ValueError(f"the repository type must be one of {', '.join(REPO_TYPES)}, found {self.repo_type!r}")
        try:
            validate_repo_id(self.repo_id)
        except HFValidationError as error:
            raise ValueError(f"--repo-id must be ORG/NAME, found {self.repo_id!r}") from error
        if "/" not in self.repo_id:
            raise ValueError(f"--repo-id must be ORG/NAME, found {self.repo_id!r}")
        if self.create_pr and self.revision not in (None, MAIN):
            raise ValueError(f"--create-pr opens a pull request to main: leave out --revision {self.revision}")

    @property
    def description(self) -> str:
        """Type, id and branch of the repository, for messages."""
        return f"{self.repo_type} {self.repo_id}" + (f"@{self.revision}" if self.revision else "")


@dataclass(frozen=True)
class File:
    """A file to publish.

    Attributes:
        path: path in the repository.
        content: path of the file on disk, or its bytes if they differ from what is on disk.
    """

    path: str
    content: Path | bytes

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def start(self, count: int) -> bytes:
        """Read the first `count` bytes."""
        if isinstance(self.content, bytes):
            return self.content[:count]
        with self.content.open("rb") as file:
            return file.read(count)

    def read(self) -> bytes:
        """Read the whole content."""
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()


def read_card(folder: Path) -> str | None:
    """Read the card of a folder; None if it has none.

    Raises:
        ValueError: if the card is not UTF-8.
    """
    path = folder / CARD
    if not path.is_file():
        return None
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 (byte {error.start}): save it as UTF-8") from error


def gather(repo_type: str, folder: Path) -> tuple[list[File], list[str]]:
    """Return the files of a folder that are published, and the names of those that are not.

    Args:
        repo_type: "model", "dataset" or "space".
        folder: folder to publish.

    Returns:
        Files to publish, sorted by path; and the paths left out, of which those in a subfolder are named by the
        subfolder.

    Raises:
        FileNotFoundError: if there is no such folder.
        ValueError: if it holds nothing to publish.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: give the folder of the {repo_type} to publish")
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    files = [File(name, path) for name, path in paths.items() if _is_published(repo_type, name)]
    if not any(file.path != CARD for file in files):
        raise ValueError(f"{folder} holds no files of a {repo_type}: expected {', '.join(PUBLISHED[repo_type])}")
    published = {file.path for file in files}
    left_out = {_top_level(name) for name in paths if name not in published and "__pycache__" not in name}
    return files, sorted(left_out)


def _is_published(repo_type: str, name: str) -> bool:
    hidden = any(folder.startswith(".") for folder in name.split("/"))
    return not (hidden or name in NOT_PUBLISHED) and any(
        fnmatch(name, pattern) and name.count("/") == pattern.count("/") for pattern in PUBLISHED[repo_type]
    )


def _top_level(name: str) -> str:
    folder, slash, _ = name.partition("/")
    return folder + slash if slash else name
