"""Take screenshots of the demo in every state, to look at, and the one of the documentation.

    python -m tests.screenshots FOLDER [--only NAME] [--url URL]

It starts the demo with the embedded checkpoint, unless it is given the address of one that runs, and shows each tab in
light and dark mode and at the width of a phone: as it opens, scored, changed since, with an error, right to left, with
emoji, with files, and with 60 segments. docs/images/demo.png is `pair-light.png`.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bleurt_repro.metric.demo.compare_tab import EXAMPLE
from tests.browser import chromium, fill, hosts_asked, open_page, open_tab, paste, resize, upload, wait_for

DESKTOP, PHONE = 1280, 390
LOOKS = {"light": ("light", DESKTOP), "dark": ("dark", DESKTOP), "phone": ("light", PHONE)}
COMPARE = "Compare two systems"
FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"


def main() -> None:
    """Take the screenshots."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="folder to write them to")
    parser.add_argument("--only", default="", help="part of the names of those to take (default: all)")
    parser.add_argument("--url", help="address of a running demo (default: start one)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    server = contextlib.nullcontext(options.url) if options.url else running_demo()
    with server as url, tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as driver:
        for look, (theme, width) in LOOKS.items():
            for state, show in STATES.items():
                name = f"{state}-{look}.png"
                if options.only in name:
                    resize(driver, width, 900)
                    open_page(driver, f"{url}?__theme={theme}")
                    show(driver)
                    take(driver, options.folder / name, width)
        print("hosts asked:", *hosts_asked(driver))  # noqa: T201


@contextlib.contextmanager
def running_demo() -> Iterator[str]:
    """Start the demo and yield its address."""
    from bleurt_repro.metric.demo.page import build_page
    from bleurt_repro.metric.demo.serve import serve

    page = build_page()
    try:
        yield serve(page, prevent_thread_lock=True, quiet=True)
    finally:
        page.close()


def score(driver: Any, reference: str, candidate: str) -> None:
    """Score a pair and wait for the result."""
    paste(driver, "reference", reference)
    paste(driver, "candidate", candidate)
    wait_for(driver, "#pair-result .stale")
    wait_for(driver, "#score").click()
    wait_for(driver, "#pair-result .result:not(.stale) .tile.main")


def compare(driver: Any, references: str, first: str, second: str) -> None:
    """Compare two systems and wait for the result."""
    open_tab(driver, COMPARE)
    for name, text in {"compare-reference": references, "system-a": first, "system-b": second}.items():
        paste(driver, name, text)
    wait_for(driver, "#compare").click()
    wait_for(driver, "#verdict .verdict")
    wait_for(driver, "#segments td div")


def pair(driver: Any) -> None:
    """The page as it opens: an opposite meaning and a missing word."""
    wait_for(driver, "#pair-result .tile.main")


def pair_references(driver: Any) -> None:
    """The example with two references, and a box for a third."""
    wait_for(driver, ".examples button", "Two references").click()
    wait_for(driver, "#reference-2")
    wait_for(driver, "#add-reference").click()
    wait_for(driver, "#reference-3")
    wait_for(driver, "#pair-result .effects", "households")


def pair_changed(driver: Any) -> None:
    """A result that is older than the text."""
    fill(driver, "candidate", "The minister praised the law.")
    wait_for(driver, "#pair-result .stale")


def pair_error(driver: Any) -> None:
    """An error in place of the result."""
    fill(driver, "candidate", "")
    wait_for(driver, "#score").click()
    wait_for(driver, "#pair-result .error")


def pair_right_to_left(driver: Any) -> None:
    """Hebrew, which the checkpoint does not know."""
    score(driver, "הרכבת לחוף התעכבה בגלל שלג כבד.", "הרכבת התעכבה בגלל שלג סגול.")


def pair_emoji(driver: Any) -> None:
    """Emoji of several code points."""
    score(
        driver,
        f"Dinner with my family {FAMILY} tonight!",
        "Dinner with my family \U0001f468\u200d\U0001f466 \U0001f44d\U0001f3fd today!",
    )


def compare_empty(driver: Any) -> None:
    """The tab as it opens."""
    open_tab(driver, COMPARE)
    wait_for(driver, "#compare")


def compare_example(driver: Any) -> None:
    """The example."""
    open_tab(driver, COMPARE)
    wait_for(driver, "#fill-example").click()
    wait_for(driver, "#verdict .verdict")


def compare_files(driver: Any) -> None:
    """Three files, whose names are those of the systems."""
    open_tab(driver, COMPARE)
    texts = {
        "references.txt": "compare-reference",
        "transformer-big.ensemble.txt": "system-a",
        "baseline.txt": "system-b",
    }
    with tempfile.TemporaryDirectory() as folder:
        wait_for(driver, "#files button").click()
        for (name, box), text in zip(texts.items(), EXAMPLE, strict=True):
            path = Path(folder, name)
            path.write_text(text, encoding="utf-8")
            upload(driver, box, path)
            wait_for(driver, f"#{box}", name)
        wait_for(driver, "#compare").click()
        wait_for(driver, "#verdict .verdict")


def compare_error(driver: Any) -> None:
    """Systems of different lengths."""
    open_tab(driver, COMPARE)
    for name, text in {"compare-reference": "a\nb", "system-a": "a\nb", "system-b": "a"}.items():
        paste(driver, name, text)
    wait_for(driver, "#compare").click()
    wait_for(driver, "#verdict .error")


def compare_right_to_left(driver: Any) -> None:
    """Two segments in Hebrew, and emoji."""
    reference = "הרכבת לחוף התעכבה בגלל שלג כבד.\nLunch with everyone \U0001f44d\U0001f3fd"
    compare(driver, reference, reference, "הרכבת התעכבה בגלל שלג.\nLunch with \U0001f44d\U0001f3ff")


def compare_one(driver: Any) -> None:
    """One segment."""
    compare(driver, "The ferry leaves at noon.", "The ferry departs at noon.", "Ferry go.")


def compare_60(driver: Any) -> None:
    """Sixty segments on three pages."""
    dates = [f"{town} in {month}" for town in ("Oslo", "Lima", "Rome", "Cairo", "Delhi") for month in
              ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")]  # fmt: skip
    compare(
        driver,
        "\n".join(f"The orchestra gave a concert near {date}." for date in dates),
        "\n".join(f"The orchestra played{' a concert' if i % 3 else ''} near {date}." for i, date in enumerate(dates)),
        "\n".join(f"The orchestra gave {'a' if i % 2 else 'no'} concert near {date}." for i, date in enumerate(dates)),
    )


def about(driver: Any) -> None:
    """The checkpoint in one screen."""
    open_tab(driver, "About")
    wait_for(driver, "#signature")


def about_card(driver: Any) -> None:
    """The card, unfolded."""
    about(driver)
    wait_for(driver, "#card-accordion button").click()
    wait_for(driver, "#card")


STATES: dict[str, Callable[[Any], None]] = {
    "pair": pair,
    "pair-references": pair_references,
    "pair-changed": pair_changed,
    "pair-error": pair_error,
    "pair-right-to-left": pair_right_to_left,
    "pair-emoji": pair_emoji,
    "compare-empty": compare_empty,
    "compare": compare_example,
    "compare-files": compare_files,
    "compare-error": compare_error,
    "compare-right-to-left": compare_right_to_left,
    "compare-one": compare_one,
    "compare-60": compare_60,
    "about": about,
    "about-card": about_card,
}


def take(driver: Any, path: Path, width: int) -> None:
    """Write a screenshot of the whole page, after its animations."""
    time.sleep(1.5)
    driver.execute_script("window.scrollTo(0, 0); document.activeElement.blur()")
    height = driver.execute_script("return document.documentElement.scrollHeight")
    resize(driver, width, height)
    time.sleep(0.5)
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    path.write_bytes(base64.b64decode(picture["data"]))
    resize(driver, width, 900)


if __name__ == "__main__":
    main()
