"""A headless Chromium for tests and screenshots of the demo; it can reach this machine only."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
SECONDS = 30


@contextlib.contextmanager
def chromium(folder: Path, width: int = 1280, height: int = 900) -> Iterator[Any]:
    """Start a browser with its profile and downloads in `folder`, and yield its Selenium driver."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(folder / "downloads")})
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        resize(driver, width, height)
        yield driver
    finally:
        driver.quit()


def resize(driver: Any, width: int, height: int) -> None:
    """Make the page exactly this large, which a window cannot where it is narrower than windows may be."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def open_page(driver: Any, url: str) -> None:
    """Open the demo and wait until it can be used."""
    driver.get(url)
    wait_for(driver, "#reference textarea")


def wait_for(driver: Any, selector: str, text: str = "", seconds: float = SECONDS) -> Any:
    """Return the first visible element of a selector that contains the text, once there is one."""
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    def first_visible(_: Any) -> Any:
        elements = driver.find_elements(By.CSS_SELECTOR, selector)
        return next((e for e in elements if e.is_displayed() and text in e.text), False)

    waiting = WebDriverWait(driver, seconds, ignored_exceptions=[StaleElementReferenceException])
    return waiting.until(first_visible, f"no {selector} with {text!r}")


def open_tab(driver: Any, name: str) -> None:
    """Click a tab by its name."""
    from selenium.webdriver.common.by import By

    tabs = driver.find_elements(By.CSS_SELECTOR, "button[role=tab]")
    tab = next(tab for tab in tabs if tab.is_displayed() and tab.text == name)
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", tab)
    tab.click()


def fill(driver: Any, name: str, text: str) -> None:
    """Type a text into a box in place of what is in it."""
    from selenium.webdriver.common.keys import Keys

    box = wait_for(driver, f"#{name} textarea")
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.DELETE)
    for i, line in enumerate(text.split("\n")):
        box.send_keys(*([Keys.SHIFT, Keys.ENTER, Keys.SHIFT] if i else []), line)


def paste(driver: Any, name: str, text: str) -> None:
    """Set the text of a box at once, as pasting does; ChromeDriver cannot type emoji."""
    box = wait_for(driver, f"#{name} textarea")
    driver.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))", box, text
    )


def upload(driver: Any, name: str, path: Path) -> None:
    """Upload a file at a box of the tab for two systems, once its accordion has opened."""
    from selenium.webdriver.support.ui import WebDriverWait

    selector = f"#{name}-file input[type=file]"  # never visible: the button over it is
    boxes = WebDriverWait(driver, SECONDS).until(
        lambda _: driver.find_elements("css selector", selector), f"no {selector}"
    )
    boxes[0].send_keys(str(path))


def hosts_asked(driver: Any) -> set[str]:
    """Return the hosts that the page has sent requests to."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return {host for host in (urlsplit(url).hostname for url in urls if url.startswith(("http", "ws"))) if host}
