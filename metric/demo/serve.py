"""Start the demo: on a Space, in a test, or for `bleurt-repro demo`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradio import Blocks


def serve(page: Blocks, **options: Any) -> str:
    """Start a page with the demo's looks and limits.

    Args:
        page: what `build_page` made.
        options: more of `gradio.Blocks.launch`'s, such as `server_port` or `prevent_thread_lock`.

    Returns:
        its address, once it is up (and, without `prevent_thread_lock`, over).
    """
    from starlette.middleware import Middleware

    from bleurt_repro.metric.demo.gate import Gate
    from bleurt_repro.metric.demo.limits import FILE_MEGABYTES
    from bleurt_repro.metric.demo.theme import FRAME, STYLE, theme

    warnings.filterwarnings("ignore", message=r".* pairs were longer than")  # the page says it to whom it concerns
    _, address, _ = page.launch(
        theme=theme(),
        css_paths=STYLE,
        head=FRAME,
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
        raise ValueError(f'the demo needs {error.name}: pip install "bleurt-repro[demo]"') from error
    serve(build_page(checkpoint, device), server_port=port, share=share)
