"""What each address of the Hub answers."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote

from tests.loopback_hub.store import MAIN, Entry, NotThere, Store, is_large, pointer, resolve

PAGE = 1000


@dataclass
class Answer:
    """An answer: bytes, or what becomes JSON."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Request:
    """A request that a route may answer."""

    store: Store
    url: str
    cdn: str
    user: str | None
    query: dict[str, str]
    body: bytes
    range: str | None = None

    @property
    def json(self) -> Any:
        """What the body says."""
        return json.loads(self.body or b"{}")

    def check(self, repo_type: str, repo: str, write: bool = False) -> None:
        """Refuse who may not see or change a repository."""
        private = self.store.read(repo_type, repo)["private"]
        if self.user is None and private:
            raise NotThere("RepoNotFound")
        if self.user is None and write:
            raise NotThere("RepoNotFound")


def whoami(request: Request) -> Answer:
    """Name the token's owner."""
    if request.user is None:
        return Answer(401, {"error": "Invalid username or password."})
    return Answer(
        body={"type": "user", "name": request.user, "orgs": [{"name": "org"}], "auth": {"type": "access_token"}}
    )


def validate_card(request: Request) -> Answer:
    """Look for the metadata of a card."""
    if not request.json["content"].startswith("---\n"):
        return Answer(body={"errors": [], "warnings": [{"message": "empty or missing yaml metadata in repo card"}]})
    return Answer(body={"errors": [], "warnings": []})


def create_repository(request: Request) -> Answer:
    """Make a repository."""
    if request.user is None:
        return Answer(401, {"error": "Invalid username or password."})
    options = request.json
    repo_type = options.get("type") or "model"
    name = f"{options.get('organization') or request.user}/{options['name']}"
    url = f"{request.url}/{'' if repo_type == 'model' else repo_type + 's/'}{name}"
    with request.store.lock:
        if request.store.exists(repo_type, name):
            return Answer(409, {"error": "You already created this repo", "url": url})
        private = options.get("visibility") == "private" or bool(options.get("private"))
        request.store.create(repo_type, name, private, options.get("sdk"))
    return Answer(body={"url": url, "name": name, "id": name})


def preupload(request: Request, repo: str, revision: str, repo_type: str) -> Answer:
    """Answer how each file is to be sent, and what the repository has already."""
    request.check(repo_type, repo, write=True)
    _, present = request.store.files(repo_type, repo, revision)
    files = []
    for file in request.json["files"]:
        large = is_large(file["path"], file["size"], base64.b64decode(file["sample"]))
        there = present.get(file["path"])
        answer = {"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}
        files.append(answer | ({"oid": there.etag} if there else {}))
    return Answer(body={"files": files})


def large_batch(request: Request, repo: str, repo_type: str = "model") -> Answer:
    """Answer where large files go (https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md)."""
    request.check(repo_type, repo, write=True)
    objects = []
    for item in request.json["objects"]:
        answer = {"oid": item["oid"], "size": item["size"]}
        if not request.store.object(item["oid"]).is_file():
            answer["actions"] = {
                "upload": {"href": f"{request.url}/upload/{item['oid']}"},
                "verify": {"href": f"{request.url}/verify"},
            }
        objects.append(answer)
    return Answer(body={"transfer": "basic", "objects": objects})


def upload(request: Request, sha256: str) -> Answer:
    """Take a large file, if it is what its name says."""
    if hashlib.sha256(request.body).hexdigest() != sha256:
        return Answer(400, {"error": "the content differs from its hash"})
    request.store.keep(request.body, large=True)
    return Answer()


def verify(request: Request) -> Answer:
    """Confirm that a large file arrived whole."""
    path = request.store.object(request.json["oid"])
    whole = path.is_file() and path.stat().st_size == request.json["size"]
    return Answer(200 if whole else 404, {})


def commit(request: Request, repo: str, revision: str, repo_type: str) -> Answer:
    """Take a commit: lines of JSON, a header and then a file each."""
    request.check(repo_type, repo, write=True)
    lines = [json.loads(line) for line in request.body.splitlines() if line]
    header = next(line["value"] for line in lines if line["key"] == "header")
    changes: dict[str, Entry | None] = {}
    for line in lines:
        value = line["value"]
        if line["key"] == "file":
            changes[value["path"]] = request.store.keep(base64.b64decode(value["content"]))
        elif line["key"] == "lfsFile":
            if not request.store.object(value["oid"]).is_file():
                return Answer(400, {"error": f"LFS pointer pointed to a file that does not exist: {value['path']}"})
            changes[value["path"]] = pointer(value["oid"], value["size"])
        elif line["key"] == "deletedFile":
            changes[value["path"]] = None
    pull_request = request.query.get("create_pr") == "1"
    oid, number = request.store.commit(repo_type, repo, revision, header["summary"], changes, pull_request)
    base = f"{request.url}/{'' if repo_type == 'model' else repo_type + 's/'}{repo}"
    return Answer(
        body={
            "success": True,
            "commitOid": oid,
            "commitUrl": f"{base}/commit/{oid}",
            "pullRequestUrl": f"{base}/discussions/{number}" if number else None,
        }
    )


def create_branch(request: Request, repo: str, name: str, repo_type: str) -> Answer:
    """Make a branch of main, or of the starting point."""
    request.check(repo_type, repo, write=True)
    with request.store.lock:
        repository = request.store.read(repo_type, repo)
        if name in repository["refs"]:
            return Answer(409, {"error": "Reference already exists"})
        repository["refs"][name] = resolve(repository, request.json.get("startingPoint", MAIN))
        request.store.save(repo_type, repo, repository)
    return Answer(201, {})


def create_tag(request: Request, repo: str, revision: str, repo_type: str) -> Answer:
    """Make a tag."""
    request.check(repo_type, repo, write=True)
    with request.store.lock:
        repository = request.store.read(repo_type, repo)
        repository["tags"][request.json["tag"]] = resolve(repository, revision)
        request.store.save(repo_type, repo, repository)
    return Answer(201, {})


def refs(request: Request, repo: str, repo_type: str) -> Answer:
    """List branches, tags and, if asked for, pull requests."""
    request.check(repo_type, repo)
    repository = request.store.read(repo_type, repo)
    pulls = {name: oid for name, oid in repository["refs"].items() if name.startswith("refs/pr/")}
    branches = {name: oid for name, oid in repository["refs"].items() if name not in pulls}
    body = {
        "branches": [{"name": n, "ref": f"refs/heads/{n}", "targetCommit": oid} for n, oid in branches.items()],
        "tags": [{"name": n, "ref": f"refs/tags/{n}", "targetCommit": oid} for n, oid in repository["tags"].items()],
        "converts": [],
    }
    if request.query.get("include_prs"):
        body["pullRequests"] = [{"name": n, "ref": n, "targetCommit": oid} for n, oid in pulls.items()]
    return Answer(body=body)


def discussions(request: Request, repo: str, repo_type: str) -> Answer:
    """List pull requests; all are open."""
    request.check(repo_type, repo)
    entries = [
        {
            "title": title,
            "num": number,
            "author": {"name": "tester"},
            "createdAt": "2024-01-01T00:00:00.000Z",
            "status": "open",
            "repo": {"name": repo, "type": repo_type},
            "isPullRequest": True,
        }
        for number, title in enumerate(request.store.read(repo_type, repo)["pulls"], 1)
    ]
    return Answer(body={"count": len(entries), "start": 0, "discussions": entries})


def repository_info(request: Request, repo: str, repo_type: str, revision: str = MAIN) -> Answer:
    """Describe a repository at a revision."""
    request.check(repo_type, repo)
    oid, files = request.store.files(repo_type, repo, revision)
    repository = request.store.read(repo_type, repo)
    return Answer(
        body={
            "_id": "0" * 24,
            "id": repo,
            "author": repo.split("/")[0],
            "sha": oid,
            "private": repository["private"],
            "disabled": False,
            "gated": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "lastModified": "2024-01-01T00:00:00.000Z",
            "createdAt": "2024-01-01T00:00:00.000Z",
            "siblings": [{"rfilename": path} for path in sorted(files)],
            **({"sdk": repository["sdk"]} if repository["sdk"] else {}),
        }
    )


def tree(request: Request, repo: str, revision: str, repo_type: str, folder: str = "") -> Answer:
    """List files (and folders) by pages."""
    request.check(repo_type, repo)
    _, files = request.store.files(repo_type, repo, revision)
    root = f"{folder}/" if folder else ""
    inside = {path: entry for path, entry in sorted(files.items()) if path.startswith(root)}
    if folder and not inside:
        raise NotThere("EntryNotFound")
    deep = request.query.get("recursive", "").lower() in ("1", "true")
    items = [_file(path, entry) for path, entry in inside.items() if deep or "/" not in path[len(root) :]]
    parents = {path[: i + len(root)] for path in inside for i, c in enumerate(path[len(root) :]) if c == "/"}
    items += [
        {"type": "directory", "path": path, "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0}
        for path in sorted(parents)
        if deep or "/" not in path[len(root) :]
    ]
    start, limit = int(request.query.get("cursor", 0)), int(request.query.get("limit", PAGE))
    headers = {}
    if start + limit < len(items):
        address = (
            f"{request.url}/api/{repo_type}s/{repo}/tree/{quote(revision, safe='')}{'/' + folder if folder else ''}"
        )
        parameters = {**request.query, "cursor": start + limit}
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        headers["Link"] = f'<{address}?{query}>; rel="next"'
    return Answer(body=items[start : start + limit], headers=headers)


def paths_info(request: Request, repo: str, revision: str, repo_type: str) -> Answer:
    """Describe the files and folders asked for; those that are not there are left out."""
    request.check(repo_type, repo)
    _, files = request.store.files(repo_type, repo, revision)
    text = request.body.decode()
    paths = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text).get("paths", [])
    entries = [_file(path, files[path]) for path in paths if path in files]
    entries += [
        {"type": "directory", "path": path, "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0}
        for path in paths
        if path not in files and any(name.startswith(f"{path}/") for name in files)
    ]
    return Answer(body=entries)


def _file(path: str, entry: Entry) -> dict[str, Any]:
    large = {"oid": entry.sha256, "size": entry.size, "pointerSize": 134} if entry.sha256 else None
    return {"type": "file", "path": path, "size": entry.size, "oid": entry.blob, **({"lfs": large} if large else {})}


def download(request: Request, repo: str, revision: str, path: str, repo_type: str = "model") -> Answer:
    """Send a file, or redirect to where a large one is."""
    request.check(repo_type, repo)
    oid, files = request.store.files(repo_type, repo, revision)
    if path not in files:
        raise NotThere("EntryNotFound")
    entry = files[path]
    headers = {"X-Repo-Commit": oid, "ETag": f'"{entry.etag}"', "Accept-Ranges": "bytes"}
    if entry.sha256 is None:
        return _part(request, request.store.content(entry.blob), headers)
    headers |= {"X-Linked-Etag": f'"{entry.sha256}"', "X-Linked-Size": str(entry.size)}
    return Answer(302, b"", {**headers, "Location": f"{request.cdn}/cdn/{entry.sha256}"})


def download_large(request: Request, sha256: str) -> Answer:
    """Send a large file."""
    return _part(request, request.store.content(sha256), {"ETag": f'"{sha256}"', "Accept-Ranges": "bytes"})


def _part(request: Request, content: bytes, headers: dict[str, str]) -> Answer:
    """Send the part that the range asks for."""
    if not request.range:
        return Answer(200, content, headers)
    first, _, last = request.range.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(len(content) - int(last), 0)
    end = min(int(last) + 1, len(content)) if first and last else len(content)
    if start >= len(content):
        return Answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
    return Answer(206, content[start:end], {**headers, "Content-Range": f"bytes {start}-{end - 1}/{len(content)}"})
