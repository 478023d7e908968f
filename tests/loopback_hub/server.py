"""The Hub's HTTP interface, as far as the clients use it; nothing beyond the standard library.

Paths and fields are those that `huggingface_hub` asks for and reads: https://github.com/huggingface/huggingface_hub.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback_hub import api, xet
from tests.loopback_hub.faults import Fault, Faults
from tests.loopback_hub.store import NotThere, Store

TOKEN = "hf_" + "loopbackLOOPBACKloopbackLOOPBACK00"
USER = "tester"
ANY_TYPE = r"(?P<repo_type>model|dataset|space)s"
REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
PREFIX = r"(?:(?P<repo_type>dataset|space)s/)?"
ROUTES: list[tuple[str, str, Callable[..., Any]]] = [
    ("GET", "/api/whoami-v2", api.whoami),
    ("POST", "/api/validate-yaml", api.validate_card),
    ("POST", "/api/repos/create", api.create_repository),
    ("POST", rf"/api/{ANY_TYPE}/{REPO}/preupload/(?P<revision>.+)", api.preupload),
    ("POST", rf"/api/{ANY_TYPE}/{REPO}/commit/(?P<revision>.+)", api.commit),
    ("POST", rf"/api/{ANY_TYPE}/{REPO}/branch/(?P<name>.+)", api.create_branch),
    ("POST", rf"/api/{ANY_TYPE}/{REPO}/tag/(?P<revision>.+)", api.create_tag),
    ("POST", rf"/api/{ANY_TYPE}/{REPO}/paths-info/(?P<revision>.+)", api.paths_info),
    ("GET", rf"/api/{ANY_TYPE}/{REPO}/refs", api.refs),
    ("GET", rf"/api/{ANY_TYPE}/{REPO}/discussions", api.discussions),
    ("GET", rf"/api/{ANY_TYPE}/{REPO}/tree/(?P<revision>[^/]+)(?:/(?P<folder>.*))?", api.tree),
    ("GET", rf"/api/{ANY_TYPE}/{REPO}(?:/revision/(?P<revision>.+))?", api.repository_info),
    ("POST", rf"/{PREFIX}{REPO}\.git/info/lfs/objects/batch", api.large_batch),
    ("GET", rf"/api/{ANY_TYPE}/{REPO}/xet-write-token/(?P<revision>.+)", xet.token),
    ("POST", "/v1/xorbs/default/(?P<name>[0-9a-f]{64})", xet.xorb),
    ("POST", "/v1/shards", xet.shard),
    ("PUT", "/upload/(?P<sha256>[0-9a-f]{64})", api.upload),
    ("POST", "/verify", api.verify),
    ("GET", "/cdn/(?P<sha256>[0-9a-f]{64})", api.download_large),
    ("GET", rf"/{PREFIX}{REPO}/(?:resolve|raw)/(?P<revision>[^/]+)/(?P<path>.+)", api.download),
]


class Handler(BaseHTTPRequestHandler):
    """Answers one client's requests; the faults stand before the routes."""

    protocol_version = "HTTP/1.1"
    hub: LoopbackHub

    def handle_request(self) -> None:
        """Find the route, and answer."""
        url = urlsplit(self.path)
        self.hub.requests.append((self.command, self.path))
        fault = self.hub.faults.take(self.command, self.path)
        body = b"".join(self._body(fault))
        if fault and fault.kind == "cut" and self.command in ("PUT", "POST"):
            return self._hang_up()
        if fault and fault.kind == "slow":
            threading.Event().wait(fault.seconds)
        if fault and fault.kind == "page":
            return self._send(api.Answer(200, b"<!doctype html><p>Log in", headers={"Content-Type": "text/html"}))
        if fault and fault.kind == "status":
            return self._send(api.Answer(fault.status, {"error": fault.message}, headers=fault.headers))
        answer = self._answer(url.path, {name: values[-1] for name, values in parse_qs(url.query).items()}, body)
        if fault and fault.kind == "lose":
            return self._hang_up()
        self._send(answer, fault)

    do_GET = do_HEAD = do_POST = do_PUT = handle_request

    def _answer(self, path: str, query: dict[str, str], body: bytes) -> api.Answer:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ") or None
        if token not in (None, xet.TOKEN if path.startswith(("/v1/", "/v2/")) else TOKEN):
            message = "Invalid credentials in Authorization header"
            return api.Answer(401, {"error": message}, headers={"X-Error-Message": message})
        method = "GET" if self.command == "HEAD" else self.command
        for verb, pattern, function in ROUTES:
            if verb == method and (match := re.fullmatch(pattern, path)):
                arguments = {name: unquote(value) for name, value in match.groupdict().items() if value is not None}
                request = api.Request(self.hub.store, self.hub.url, self.hub.cdn, USER if token else None, query, body)
                request.range = self.headers.get("Range")
                try:
                    return function(request, **arguments)
                except NotThere as error:
                    return api.Answer(404, {"error": error.code}, headers={"X-Error-Code": error.code})
        return api.Answer(404, {"error": f"no route for {method} {path}"})

    def _body(self, fault: Fault | None) -> Iterator[bytes]:
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            size = int(self.headers.get("Content-Length") or 0)
            yield self.rfile.read(size // 2 if fault and fault.kind == "cut" else size)

    def _send(self, answer: api.Answer, fault: Fault | None = None) -> None:
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        if fault and fault.kind == "corrupt":
            middle = len(body) // 2
            body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if fault and fault.kind == "cut" else body)
            if fault and fault.kind == "cut":
                self.wfile.flush()
                self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.close()

    def log_message(self, *_: Any) -> None:
        """Print nothing: tests read `requests`."""


class LoopbackHub:
    """The server, from `with` to its end.

    Args:
        folder: where repositories are kept; give it again to open them again.

    Attributes:
        url: for HF_ENDPOINT.
        cdn: where large files come from.
        store: the repositories.
        faults: what the next requests will meet.
        requests: method and path of each request so far.
    """

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.faults = Faults()
        self.requests: list[tuple[str, str]] = []
        handler = type("BoundHandler", (Handler,), {"hub": self})
        # Large files come from another origin, as on the real Hub: the client follows such redirects differently.
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), handler) for _ in range(2)]
        self.url, self.cdn = (f"http://127.0.0.1:{server.server_port}" for server in self._servers)

    def __enter__(self) -> LoopbackHub:
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def stop(self) -> None:
        """Answer no more."""
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def environment(self, home: Path, token: str | None = TOKEN, use_xet: bool = False) -> dict[str, str]:
        """Return the variables by which a process uses this Hub and nothing else."""
        variables = {"HF_ENDPOINT": self.url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "" if use_xet else "1"}
        variables |= xet.VARIABLES
        variables |= {"HF_HUB_OFFLINE": "0", "HF_EVALUATE_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0"}
        variables |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_UPDATE_DOWNLOAD_COUNTS": "0", "NO_PROXY": "127.0.0.1"}
        return variables | ({"HF_TOKEN": token} if token else {})


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        threading.Event().wait(0.02)
    return condition()
