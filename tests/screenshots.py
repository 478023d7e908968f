"""Pictures of the demo, to look at and for the README.

    python -m tests.screenshots FOLDER

It starts the demo with the embedded checkpoint and writes its three tabs at desktop and phone width.
"""

from __future__ import annotations

import base64
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.browser import chromium, fill, hosts_asked, open_page, open_tab, resize, wait_for

WIDTHS = {"desktop": 1280, "phone": 390}


def main(folder: Path) -> None:
    """Take the pictures."""
    from bleurt_repro.metric.demo.page import build_page
    from bleurt_repro.metric.demo.serve import serve

    folder.mkdir(parents=True, exist_ok=True)
    page = build_page()
    url = serve(page, prevent_thread_lock=True, quiet=True)
    try:
        with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as driver:
            for name, width in WIDTHS.items():
                resize(driver, width, 900)
                open_page(driver, url)
                take_tabs(driver, folder, name, width)
            print("hosts asked:", *hosts_asked(driver))  # noqa: T201
    finally:
        page.close()


def take_tabs(driver: Any, folder: Path, name: str, width: int) -> None:
    """Use each tab as a visitor would, and take its picture."""
    fill(driver, "reference", "The minister welcomed the new law.")
    fill(driver, "candidate", "The minister rejected the new law.")
    wait_for(driver, "#score").click()
    wait_for(driver, "#pair-result .tile.main")
    take(driver, folder / f"pair-{name}.png", width)
    open_tab(driver, "Compare two systems")
    wait_for(driver, "#fill-example").click()
    time.sleep(1)
    wait_for(driver, "#compare").click()
    wait_for(driver, "#verdict .verdict", "ahead")
    wait_for(driver, "#segments td div")
    take(driver, folder / f"compare-{name}.png", width)
    open_tab(driver, "About")
    wait_for(driver, "#card", "Limits")
    take(driver, folder / f"about-{name}.png", width)


def take(driver: Any, path: Path, width: int) -> None:
    """Write a picture of the whole page, after its animations."""
    time.sleep(1.5)
    driver.execute_script("window.scrollTo(0, 0); document.activeElement.blur()")
    height = driver.execute_script("return document.documentElement.scrollHeight")
    resize(driver, width, height)
    time.sleep(0.5)
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    path.write_bytes(base64.b64decode(picture["data"]))
    resize(driver, width, 900)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
