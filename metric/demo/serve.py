"""Start the demo, on a Space, in a test, or for `bleurt-repro demo`, behind a gate.

The gate refuses, unread, requests that are too large, and too many of them from one address.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.demo.visitor_input import POSTS_A_MINUTE, REQUEST_MEGABYTES
from bleurt_repro.metric.install import install_hint

if TYPE_CHECKING:
    from gradio import Blocks

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

MINUTE = 60.0  # seconds
# Addresses remembered at most; the one that has been silent longest is forgotten first.
ADDRESSES = 10_000
TOO_LARGE = f"a request may have at most {REQUEST_MEGABYTES} MB: score files with `bleurt-repro compare` instead"
TOO_MANY = f"at most {POSTS_A_MINUTE} requests a minute: wait a minute, or score files with `bleurt-repro compare`"


class Gate:
    """An ASGI application around another one (https://asgi.readthedocs.io/en/latest/specs/www.html).

    Reading the page is free; requests that ask for work or bring data (POST) are counted by address, and their bodies
    are measured as they come in, whatever size they declare.

    Args:
        app: the application within.
        clock: returns the time in seconds.
    """

    def __init__(self, app: App, clock: Callable[[], float] = time.monotonic) -> None:
        self._app, self._clock = app, clock
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 413 or 429."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
        elif not self._admits(_address(scope)):
            await _refuse(send, 429, TOO_MANY)
        elif _declared(scope) > REQUEST_MEGABYTES << 20:
            await _refuse(send, 413, TOO_LARGE)
        else:
            await self._measured(scope, receive, send)

    def _admits(self, address: str) -> bool:
        now, times = self._clock(), self._seen.setdefault(address, deque())
        self._seen.move_to_end(address)
        if len(self._seen) > ADDRESSES:
            self._seen.popitem(last=False)
        while times and times[0] <= now - MINUTE:
            times.popleft()
        if len(times) >= POSTS_A_MINUTE:
            return False
        times.append(now)
        return True

    async def _measured(self, scope: Message, receive: Receive, send: Send) -> None:
        left, begun = REQUEST_MEGABYTES << 20, False

        async def measuring() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            return message if left >= 0 else {"type": "http.disconnect"}

        async def watching(message: Message) -> None:
            nonlocal begun
            if left >= 0 or begun:  # what the application makes of a request cut short is of no interest
                begun = True
                await send(message)

        try:
            await self._app(scope, measuring, watching)
        except Exception:
            if left >= 0 or begun:
                raise
        if left < 0 and not begun:
            await _refuse(send, 413, TOO_LARGE)


def _address(scope: Message) -> str:
    """Return the visitor's address: behind a proxy, as on a Space, the first that the proxy names."""
    forwarded = dict(scope["headers"]).get(b"x-forwarded-for", b"").decode("latin-1").split(",")[0].strip()
    return forwarded or (scope.get("client") or ("unknown",))[0]


def _declared(scope: Message) -> int:
    length = dict(scope["headers"]).get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


async def _refuse(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    if status == 429:
        headers.append((b"retry-after", b"60"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


def serve(page: Blocks, **options: Any) -> str:
    """Start a page with the demo's looks and limits.

    Args:
        page: what `build_page` made.
        options: more of `gradio.Blocks.launch`'s, such as `server_port` or `prevent_thread_lock`.

    Returns:
        its address, once it is up (and, without `prevent_thread_lock`, over).
    """
    from starlette.middleware import Middleware

    from bleurt_repro.metric.demo.page import HEAD, STYLE, theme
    from bleurt_repro.metric.demo.visitor_input import FILE_MEGABYTES

    _, address, _ = page.launch(
        theme=theme(),
        css_paths=STYLE,
        head_paths=HEAD,
        app_kwargs={"middleware": [Middleware(Gate)]},
        max_file_size=f"{FILE_MEGABYTES}mb",
        footer_links=["api", "settings"],
        ssr_mode=False,
        **options,
    )
    return address


def run_demo(checkpoint: str, *, port: int | None = None, device: str | None = None, share: bool = False) -> None:
    """Start the demo and keep it up until it is interrupted.

    Args:
        checkpoint, device: as in `BleurtScorer`.
        port: of this machine; the first free one from 7860 by default.
        share: whether to make a public link through Gradio's servers.

    Raises:
        ValueError: if Gradio is not installed or the checkpoint cannot be loaded.
        OSError: if the port is taken.
    """
    try:
        from bleurt_repro.metric.demo.page import build_page
    except ModuleNotFoundError as error:
        raise ValueError(f"the demo needs {error.name}: {install_hint('demo')}") from error
    serve(build_page(checkpoint, device), server_port=port, share=share)
