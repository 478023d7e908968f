"""Repositories in a folder: commits of files, branches, tags and pull requests; large files by their SHA-256."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# What the Hub's own .gitattributes sends to large-file storage.
LARGE_SUFFIXES = (".safetensors", ".parquet", ".bin", ".model", ".whl", ".zip", ".png", ".arrow")
LARGE_SIZE = 10 * 2**20
MAIN = "main"


class NotThere(Exception):
    """What the Hub answers 404 to; `code` is its X-Error-Code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Entry:
    """A file of a commit: its size, its git blob id, and its SHA-256 if it lies in large-file storage."""

    size: int
    blob: str
    sha256: str | None = None

    @property
    def etag(self) -> str:
        """What the file is known by."""
        return self.sha256 or self.blob


def git_blob(content: bytes) -> str:
    """Return the id that git gives to a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_large(path: str, size: int, sample: bytes) -> bool:
    """Return whether a file goes to large-file storage."""
    return path.endswith(LARGE_SUFFIXES) or size > LARGE_SIZE or b"\0" in sample


class Store:
    """All repositories, each a JSON file, and the contents by their hash.

    Args:
        folder: where they lie; what is there already is opened.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        (folder / "objects").mkdir(parents=True, exist_ok=True)

    def _path(self, repo_type: str, name: str) -> Path:
        return self.folder / repo_type / f"{name}.json"

    def exists(self, repo_type: str, name: str) -> bool:
        """Return whether there is such a repository."""
        return self._path(repo_type, name).is_file()

    def create(self, repo_type: str, name: str, private: bool, sdk: str | None = None) -> None:
        """Make an empty repository with a main branch."""
        repository: dict[str, Any] = {
            "private": private,
            "sdk": sdk,
            "commits": {},
            "refs": {},
            "tags": {},
            "pulls": [],
        }
        repository["refs"][MAIN] = _commit(repository, None, "initial commit", {})
        self.save(repo_type, name, repository)

    def read(self, repo_type: str, name: str) -> dict[str, Any]:
        """Read a repository."""
        if not self.exists(repo_type, name):
            raise NotThere("RepoNotFound")
        return json.loads(self._path(repo_type, name).read_text())

    def save(self, repo_type: str, name: str, repository: dict[str, Any]) -> None:
        """Keep a repository."""
        path = self._path(repo_type, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(repository))

    def commit(
        self,
        repo_type: str,
        name: str,
        revision: str,
        message: str,
        changes: dict[str, Entry | None],
        pull_request: bool = False,
    ) -> tuple[str, int | None]:
        """Add a commit of added (or, with None, deleted) files; return its id and the pull request's number."""
        with self.lock:
            repository = self.read(repo_type, name)
            parent = resolve(repository, revision)
            files = {path: Entry(**entry) for path, entry in repository["commits"][parent]["files"].items()}
            for path, entry in changes.items():
                if entry:
                    files[path] = entry
                elif files.pop(path, None) is None:
                    raise NotThere("EntryNotFound")
            number = len(repository["pulls"]) + 1 if pull_request else None
            ref = f"refs/pr/{number}" if number else revision
            repository["refs"][ref] = _commit(repository, parent, message, files)
            if number:
                repository["pulls"].append(message)
            self.save(repo_type, name, repository)
            return repository["refs"][ref], number

    def files(self, repo_type: str, name: str, revision: str) -> tuple[str, dict[str, Entry]]:
        """Return a revision's commit and files."""
        repository = self.read(repo_type, name)
        commit = resolve(repository, revision)
        return commit, {path: Entry(**entry) for path, entry in repository["commits"][commit]["files"].items()}

    def messages(self, repo_type: str, name: str, revision: str = MAIN) -> list[str]:
        """Return the messages of a branch's commits, the first one first."""
        repository = self.read(repo_type, name)
        commit: str | None = resolve(repository, revision)
        messages = []
        while commit:
            messages.append(repository["commits"][commit]["message"])
            commit = repository["commits"][commit]["parent"]
        return messages[::-1]

    def content(self, etag: str) -> bytes:
        """Return a content by its hash."""
        return self.object(etag).read_bytes()

    def object(self, etag: str) -> Path:
        """Return the place of a content."""
        return self.folder / "objects" / etag

    def keep(self, content: bytes, large: bool = False) -> Entry:
        """Keep a content."""
        if not large:
            blob = git_blob(content)
            self.object(blob).write_bytes(content)
            return Entry(len(content), blob)
        sha256 = hashlib.sha256(content).hexdigest()
        self.object(sha256).write_bytes(content)
        return pointer(sha256, len(content))


def pointer(sha256: str, size: int) -> Entry:
    """Return the entry of a file in large-file storage."""
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
    return Entry(size, git_blob(text.encode()), sha256)


def resolve(repository: dict[str, Any], revision: str) -> str:
    """Find the commit of a branch, tag, pull request or commit id."""
    for names in (repository["refs"], repository["tags"]):
        if revision in names:
            return names[revision]
    if revision in repository["commits"]:
        return revision
    raise NotThere("RevisionNotFound")


def _commit(repository: dict[str, Any], parent: str | None, message: str, files: dict[str, Entry]) -> str:
    commit = {"parent": parent, "message": message, "files": {path: asdict(entry) for path, entry in files.items()}}
    oid = hashlib.sha1(json.dumps([commit, len(repository["commits"])]).encode()).hexdigest()
    repository["commits"][oid] = commit
    return oid
