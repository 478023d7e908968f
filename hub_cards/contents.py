"""What is published, and where: a fixed set of kinds of files, and nothing that merely lies beside them."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

KINDS = ("model", "dataset", "space")
MAIN = "main"
CARD = "README.md"
LICENCES = ("LICENSE*", "LICENCE*")
# Patterns of paths in the folder, by kind of repository. The records of a training run stay, its result is published.
PUBLISHED = {
    "model": (CARD, "*.json", "*.safetensors", "vocab.txt", "merges.txt", "*.model", "curves.png", *LICENCES),
    "dataset": (CARD, "*.json", "*.jsonl", "*.parquet", "*.csv", "*.tsv", "data/*.parquet", *LICENCES),
    "space": (CARD, "*.py", "*.txt", "*.css", "*.whl", *LICENCES),
}
# Rows that synthetic pairs were not made of, and the settings that a run began with: of no use elsewhere.
NOT_PUBLISHED = ("skipped.jsonl", "run.json")
# Files of an earlier version that a loader would read together with this one: deleted when the folder lacks them.
REPLACED = ("*.safetensors", "*.safetensors.index.json", "*.jsonl", "*.parquet", "*.csv", "*.tsv", "*.whl")


@dataclass(frozen=True)
class Target:
    """Where something is published.

    Attributes:
        kind: "model", "dataset" or "space".
        repo_id: "org/name".
        private: whether the repository is a private one.
        revision: the branch; created if it does not exist.
        create_pr: propose the commit in a pull request to main.
    """

    kind: str
    repo_id: str
    private: bool = False
    revision: str | None = None
    create_pr: bool = False

    def __post_init__(self) -> None:
        from huggingface_hub.errors import HFValidationError
        from huggingface_hub.utils import validate_repo_id

        if self.kind not in KINDS:
            raise ValueError(f"what is published is one of {', '.join(KINDS)}, found {self.kind!r}")
        try:
            validate_repo_id(self.repo_id)
        except HFValidationError as error:
            raise ValueError(f"--repo-id must be ORG/NAME, found {self.repo_id!r}") from error
        if "/" not in self.repo_id:
            raise ValueError(f"--repo-id must be ORG/NAME, found {self.repo_id!r}")
        if self.create_pr and self.revision not in (None, MAIN):
            raise ValueError(f"--create-pr proposes a change of main: leave --revision {self.revision} out")

    @property
    def place(self) -> str:
        """Kind, name and branch, as messages name them."""
        return f"{self.kind} {self.repo_id}" + (f"@{self.revision}" if self.revision else "")


@dataclass(frozen=True)
class File:
    """A file to publish.

    Attributes:
        path: in the repository.
        content: the file on disk, or its bytes where they differ from what is on disk.
    """

    path: str
    content: Path | bytes

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def start(self, count: int) -> bytes:
        """Read the first bytes."""
        if isinstance(self.content, bytes):
            return self.content[:count]
        with self.content.open("rb") as file:
            return file.read(count)

    def read(self) -> bytes:
        """Read the whole content."""
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()


def gather(kind: str, folder: Path) -> tuple[list[File], list[str]]:
    """Sort a folder into what is published and what is left out.

    Args:
        kind: "model", "dataset" or "space".
        folder: the folder.

    Returns:
        the files to publish, by path; and the paths left out, those of a subfolder under its name alone.

    Raises:
        FileNotFoundError: if there is no such folder.
        ValueError: if it holds nothing to publish.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: give the folder of the {kind} to publish")
    names = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    files = [File(name, path) for name, path in names.items() if _is_published(kind, name)]
    if not any(file.path != CARD for file in files):
        raise ValueError(f"{folder} holds nothing of a {kind}: expected {', '.join(PUBLISHED[kind])}")
    published = {file.path for file in files}
    left_out = {_shown(name) for name in names if name not in published and "__pycache__" not in name}
    return files, sorted(left_out)


def _is_published(kind: str, name: str) -> bool:
    hidden = any(part.startswith(".") for part in name.split("/"))
    return not (hidden or name in NOT_PUBLISHED) and any(
        fnmatch(name, pattern) and name.count("/") == pattern.count("/") for pattern in PUBLISHED[kind]
    )


def _shown(name: str) -> str:
    folder, slash, _ = name.partition("/")
    return folder + slash if slash else name
