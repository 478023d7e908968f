"""Start the demo: for `bleurt-repro demo`, on a Space, or in a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.install import require_extra

if TYPE_CHECKING:
    from fastapi import Request
    from fastapi.responses import JSONResponse
    from gradio import Blocks


# The parts of Gradio's addresses by which functions are called.
CALLS = ("/call/", "/run/", "/api/", "/queue/join")


async def _wrong_call(request: Request, error: Exception) -> JSONResponse:
    """Answer a wrong call in one line; Gradio alone would answer 500 and log a traceback.

    Gradio raises TypeError if an argument is missing or unknown, and FnIndexInferError or KeyError for names and numbers
    of functions that it does not know.
    """
    from fastapi.responses import JSONResponse

    if not any(call in request.url.path for call in CALLS):
        raise error
    if isinstance(error, TypeError):
        return JSONResponse({"detail": str(error)}, status_code=422)
    message = f"{request.url.path}: no such function, expected /score or /compare: see /?view=api"
    return JSONResponse({"detail": message}, status_code=404)


def serve(page: Blocks, **options: Any) -> str:
    """Start a page with the demo's looks and limits.

    Args:
        page: page to start, as `build_page` returns it.
        options: further options of `gradio.Blocks.launch`, such as `server_port` or `prevent_thread_lock`.

    Returns:
        Address of the page, once it is up (and, without `prevent_thread_lock`, once it has been stopped).
    """
    from gradio.route_utils import FnIndexInferError

    from bleurt_repro.metric.demo.page import HEAD, STYLE, theme
    from bleurt_repro.metric.demo.visitor_input import FILE_MEGABYTES

    handlers = dict.fromkeys((FnIndexInferError, KeyError, TypeError), _wrong_call)
    _, address, _ = page.launch(
        theme=theme(),
        css_paths=STYLE,
        head_paths=HEAD,
        app_kwargs={"exception_handlers": handlers},
        max_file_size=f"{FILE_MEGABYTES}mb",
        footer_links=["api", "settings"],
        ssr_mode=False,
        **options,
    )
    return address


def run_demo(checkpoint: str, *, port: int | None = None, device: str | None = None, share: bool = False) -> None:
    """Start the demo and keep it up until it is interrupted.

    Args:
        checkpoint, device: checkpoint and device, as in `BleurtScorer`.
        port: port on this machine; by default the first free one from 7860.
        share: whether to make a public link through Gradio's servers.

    Raises:
        ValueError: if the extra `demo` is not installed or the checkpoint cannot be loaded.
        OSError: if the port is taken.
    """
    require_extra("demo", "the demo")
    from bleurt_repro.metric.demo.page import build_page

    serve(build_page(checkpoint, device), server_port=port, share=share)
