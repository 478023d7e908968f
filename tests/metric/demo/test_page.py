"""The running demo, through its own client and through a real browser."""

from __future__ import annotations

import csv
import http.client
import importlib.util
import io
import json
import os
import time
from pathlib import Path

import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.demo.page import build_page
from bleurt_repro.metric.demo.pair_tab import EXAMPLES
from bleurt_repro.metric.demo.serve import serve
from bleurt_repro.metric.demo.visitor_input import REFERENCES as MOST_REFERENCES
from bleurt_repro.metric.demo.visitor_input import SEGMENTS
from tests.browser import (
    CHROMIUM,
    DRIVER,
    chromium,
    fill,
    hosts_asked,
    open_page,
    open_tab,
    paste,
    resize,
    upload,
    wait_for,
)
from tests.three_systems import REFERENCES, SYSTEMS

MISCHIEF = "<img src=x onerror=document.title='owned'> {{7*7}} ${7*7} **cat**"


@pytest.fixture(scope="module")
def url(tiny_scorer, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("gradio")))
        page = build_page(str(tiny_scorer), "cpu")
        yield serve(page, prevent_thread_lock=True, quiet=True)
        page.close()


@pytest.fixture(scope="module")
def client(url):
    from gradio_client import Client

    return Client(url, verbose=False)


@pytest.fixture(scope="module")
def scorer(tiny_scorer):
    return BleurtScorer(str(tiny_scorer), device="cpu", progress=False)


def test_the_functions_have_names(client):
    assert set(client.view_api(return_format="dict", print_info=False)["named_endpoints"]) == {"/score", "/compare"}


def test_score(client, scorer):
    result = client.predict(["the cat sat", "a cat"], "the dog sat", api_name="/score")
    [expected] = scorer.score(references=[["the cat sat", "a cat"]], candidates=["the dog sat"])
    assert result["score"] == pytest.approx(expected, abs=1e-6)
    assert [(effect["text"], effect["reference"]) for effect in result["effects"]] == [("dog", "cat")]
    assert (result["truncated"], result["signature"]) == (False, scorer.signature)
    assert {"sentence_bleu", "precisions", "brevity_penalty", "chrf_plus_plus", "percentile"} <= set(result)


def test_a_reference_of_two_lines_is_one_reference(client, scorer):
    result = client.predict("the cat sat\na cat", "the dog sat", api_name="/score")
    [expected] = scorer.score(references=["the cat sat\na cat"], candidates=["the dog sat"])
    assert result["score"] == pytest.approx(expected, abs=1e-6)
    assert result["references"] == ["the cat sat\na cat"]


def test_compare(client, scorer):
    result = client.predict(REFERENCES, SYSTEMS["good"], SYSTEMS["bad"], api_name="/compare")
    for system, name in zip(result["systems"], ("good", "bad"), strict=True):
        expected = scorer.compute(references=REFERENCES, candidates=SYSTEMS[name]).mean_score
        assert system["mean"] == pytest.approx(expected, abs=1e-6)
    assert 0 < result["tests"][0]["p_value"] <= 1


@pytest.mark.parametrize(
    ("arguments", "function", "message"),
    [
        (("", "c"), "/score", "Give a reference and a candidate"),
        (("r", 3), "/score", "candidate\\[0\\] must be a string"),
        ((["r", None], "c"), "/score", "reference\\[1\\] must be a string"),
        (("<b>" * 2000, "c"), "/score", "at most 5,000 characters"),
        ((["r"], ["a"], []), "/compare", "1 references, 1 candidates of A, 0 candidates of B"),
        ((["<r>", None], ["a", "b"], ["a", "b"]), "/compare", "references\\[1\\] must be a string"),
        ((["r"] * (SEGMENTS + 1), ["a"], ["b"]), "/compare", "at most 1,000 segments, found 1,001"),
    ],
)
def test_an_error_is_reported(client, arguments, function, message):
    from gradio_client.exceptions import AppError

    with pytest.raises(AppError, match=message):
        client.predict(*arguments, api_name=function)


def post(url: str, path: str, body: dict) -> tuple[int, str]:
    connection = http.client.HTTPConnection(url.removeprefix("http://").rstrip("/"), timeout=30)
    connection.request("POST", f"/gradio_api/{path}", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("call/unknown", {"data": ["r", "c", ""]}, 404, "no such function, expected /score or /compare"),
        ("run/unknown", {"data": ["r", "c", ""]}, 404, "no such function, expected /score or /compare"),
        ("call/v2/unknown", {"candidate": "c"}, 404, "no such function, expected /score or /compare"),
        ("queue/join", {"data": [], "fn_index": 999, "session_hash": "x"}, 404, "no such function"),
        ("call/v2/score", {"candidate": "c"}, 422, "required argument: reference"),
        ("call/v2/score", {"reference": "r", "candidate": "c", "x": 1}, 422, "`x` is not a valid"),
        ("run/score", {"data": ["r"]}, 500, "expected 3 values, found 1"),
        ("run/compare", {"data": []}, 500, "expected 4 values, found 0"),
    ],
)
def test_a_wrong_call_is_answered_in_one_line_and_logs_nothing(url, capfd, caplog, path, body, status, message):
    capfd.readouterr()
    answer = post(url, path, body)
    assert (answer[0], message in answer[1], answer[1].count("\n")) == (status, True, 0)
    logged = capfd.readouterr()
    assert "Traceback" not in logged.out + logged.err + caplog.text


def test_a_missing_value_in_the_queue_logs_nothing(url, capfd, caplog):
    capfd.readouterr()
    status, answer = post(url, "call/score", {"data": ["r"]})
    assert status == 200
    connection = http.client.HTTPConnection(url.removeprefix("http://").rstrip("/"), timeout=30)
    connection.request("GET", f"/gradio_api/call/score/{json.loads(answer)['event_id']}")
    assert "expected 3 values, found 1" in connection.getresponse().read().decode()
    logged = capfd.readouterr()
    assert "Traceback" not in logged.out + logged.err + caplog.text


@pytest.mark.parametrize(("size", "status"), [((2 << 20) - 1000, 200), ((2 << 20) + 1000, 413)])
def test_a_file_that_is_too_large_is_refused(url, size, status):
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
    connection = http.client.HTTPConnection(url.removeprefix("http://").rstrip("/"), timeout=30)
    connection.request(
        "POST",
        "/gradio_api/upload",
        head + bytes(size) + b"\r\n--x--\r\n",
        {"Content-Type": "multipart/form-data; boundary=x"},
    )
    assert connection.getresponse().status == status


@pytest.fixture(scope="module")
def browser(url, tmp_path_factory):
    pytest.importorskip("selenium", reason='a real browser is driven by Selenium: pip install "bleurt-repro[browser]"')
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs Chromium and ChromeDriver (Debian: chromium, chromium-driver)")
    folder = tmp_path_factory.mktemp("browser")
    with chromium(folder) as driver:
        driver.folder = folder
        yield driver


@pytest.fixture
def page(browser, url):
    open_page(browser, url)
    return browser


def is_visible(driver, selector: str) -> bool:
    return any(element.is_displayed() for element in driver.find_elements("css selector", selector))


def new_result(driver, text: str = ""):
    """Return the score on the page once it is that of the inputs."""
    wait_for(driver, "#pair-result .result:not(.stale) .effects", text)
    return wait_for(driver, "#pair-result .result:not(.stale) .tile.main b")


def test_the_page_opens_with_an_example_and_its_result(page, scorer):
    first = next(iter(EXAMPLES.values()))
    boxes = [wait_for(page, f"#{name} textarea").get_property("value") for name in ("reference", "candidate")]
    assert boxes == [first.references[0], first.candidate]
    [expected] = scorer.score(references=[boxes[0]], candidates=[boxes[1]])
    assert wait_for(page, "#pair-result .tile.main b").text.replace("\u2212", "-") == f"{expected:.2f}"
    time.sleep(0.5)
    assert not page.find_elements("css selector", "#pair-result .stale")


@pytest.mark.long
def test_a_button_adds_a_reference(page, scorer):
    fill(page, "reference", "it rains")
    fill(page, "candidate", "the dog sat")
    assert not is_visible(page, "#reference-2")
    wait_for(page, "#add-reference").click()
    wait_for(page, "#reference-2 textarea")
    fill(page, "reference-2", "the cat sat\n\nthe dog sat")
    wait_for(page, "#score").click()
    score = new_result(page).text
    [expected] = scorer.score(references=[["it rains", "the cat sat\n\nthe dog sat"]], candidates=["the dog sat"])
    assert score.replace("\u2212", "-") == f"{expected:.2f}"
    for number in range(3, MOST_REFERENCES + 1):
        wait_for(page, "#add-reference").click()
        wait_for(page, f"#reference-{number} textarea")
    time.sleep(0.5)
    assert not is_visible(page, "#add-reference")


@pytest.mark.long
def test_examples_fill_the_boxes_and_are_scored(page):
    wait_for(page, ".examples button", "Two references").click()
    new_result(page, "households")
    references = EXAMPLES["Two references"].references
    assert wait_for(page, "#reference-2 textarea").get_property("value") == references[1]
    wait_for(page, ".examples button", "Wrong word").click()
    new_result(page, "purple")
    time.sleep(0.5)
    assert not is_visible(page, "#reference-2")
    assert not page.find_elements("css selector", "#pair-result .stale")


def test_type_and_score_with_the_keyboard_alone(page, scorer):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    wait_for(page, "#reference textarea").click()
    keys = ActionChains(page)
    for text, tabs in (
        ("the cat sat", 2),
        ("the dog sat", 1),
    ):  # the button that adds a reference is between the boxes
        keys.key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).send_keys(text, *[Keys.TAB] * tabs)
    keys.send_keys(Keys.ENTER).perform()
    score = new_result(page, "dog").text
    [expected] = scorer.score(references=["the cat sat"], candidates=["the dog sat"])
    assert score.replace("\u2212", "-") == f"{expected:.2f}"
    marked = [word.text.split("\n")[0] for word in page.find_elements("css selector", "#pair-result .word")]
    assert marked == ["dog"]
    assert wait_for(page, "#reference").find_element("css selector", "textarea").get_attribute("dir") == "auto"


@pytest.mark.long
def test_the_other_shortcut_that_the_page_names(page):
    from selenium.webdriver.common.keys import Keys

    fill(page, "reference", "the cat sat")
    fill(page, "candidate", "the dog sat")
    assert "Shift + Enter" in wait_for(page, "#candidate").text
    wait_for(page, "#candidate textarea").send_keys(Keys.SHIFT, Keys.ENTER)
    new_result(page, "dog")
    status = page.find_element("css selector", "#pair-status [role=status]")
    assert status.get_attribute("textContent").strip().startswith("BLEURT score")


@pytest.mark.long
def test_a_result_older_than_the_text_is_marked(page):
    from selenium.webdriver.common.keys import Keys

    box = wait_for(page, "#candidate textarea")
    box.send_keys(Keys.END, "x")
    wait_for(page, "#pair-result .stale")
    box.send_keys(Keys.BACKSPACE)  # the text that was scored, again
    new_result(page)
    box.send_keys(" down")
    wait_for(page, "#pair-result .stale")
    wait_for(page, "#score").click()
    new_result(page, "down")
    time.sleep(0.5)
    assert not page.find_elements("css selector", "#pair-result .stale")


@pytest.mark.long
def test_an_error_stands_where_the_result_was(page):
    fill(page, "candidate", "")
    wait_for(page, "#score").click()
    wait_for(page, "#pair-result .error", "Give a reference and a candidate")
    assert not page.find_elements("css selector", "#pair-result .tile")
    open_tab(page, "Compare two systems")
    wait_for(page, "#compare").click()
    wait_for(page, "#verdict .error", "Reference is empty")
    assert not page.find_elements("css selector", ".toast-body")


@pytest.mark.long
def test_text_is_never_run(page):
    fill(page, "reference", "the cat")
    fill(page, "candidate", MISCHIEF)
    wait_for(page, "#score").click()
    new_result(page, "onerror")
    text = wait_for(page, "#pair-result .effects").text
    assert all(piece in text for piece in ("<", "onerror=document.title='owned", "{", "7*7", "$"))
    assert not page.find_elements("css selector", "#pair-result img")
    open_tab(page, "Compare two systems")
    for name in ("compare-reference", "system-a", "system-b"):
        fill(page, name, MISCHIEF)
    wait_for(page, "#compare").click()
    assert MISCHIEF in wait_for(page, "#segments td:last-child", "onerror").text
    assert not page.find_elements("css selector", "#segments img")
    assert page.title == "BLEURT"


@pytest.mark.long
def test_places_for_files_have_names_of_their_own(page):
    open_tab(page, "Compare two systems")
    wait_for(page, "#files button").click()
    for name, label in {"compare-reference": "Reference", "system-a": "System A", "system-b": "System B"}.items():
        wait_for(page, f"#{name}-file button[aria-label^='{label} ']")


def test_upload_compare_sort_and_download(page, scorer, tmp_path):
    (tmp_path / "refs.txt").write_text("\n".join(REFERENCES))
    (tmp_path / "big.csv").write_text("candidate\n" + "\n".join(SYSTEMS["good"]) + "\n")
    (tmp_path / "small.jsonl").write_text("\n".join(json.dumps({"candidate": text}) for text in SYSTEMS["middle"]))
    open_tab(page, "Compare two systems")
    wait_for(page, "#files button").click()
    for name, file in {"compare-reference": "refs.txt", "system-a": "big.csv", "system-b": "small.jsonl"}.items():
        upload(page, name, tmp_path / file)
        wait_for(page, f"#{name}", file)
    wait_for(page, "#compare").click()
    wait_for(page, "#verdict .verdict", "too few to test")
    systems = [cell.text for cell in page.find_elements("css selector", "#verdict tbody th")]
    assert systems == ["big", "small"]
    assert [cell.text for cell in page.find_elements("css selector", "#segments th")][2:4] == ["big", "small"]
    captions = [caption.text for caption in page.find_elements("css selector", "#plots figcaption")]
    assert all("big" in caption and "small" in caption for caption in captions) and len(captions) == 2
    described = [
        plot.get_attribute("aria-label") for plot in page.find_elements("css selector", "#plots svg[role=img]")
    ]
    assert [text.split(" ")[0] for text in described] == ["Histogram", "Differences"]
    assert sorted(numbers(page, 0)) == [1, 2, 3]
    for column, order in ((1, "descending"), (1, "ascending"), (0, "descending")):
        page.find_elements("css selector", "#segments th button")[column].click()
        values = numbers(page, column)
        assert values == sorted(values, reverse=order == "descending")
    downloads = page.folder / "downloads"
    for suffix in ("csv", "json"):
        wait_for(page, f"#download-{suffix}").click()
    table = downloaded(downloads, "bleurt-comparison.csv").read_bytes()
    assert table.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(table.decode("utf-8-sig"), newline="")))
    assert {row["big"] for row in rows} == set(SYSTEMS["good"])
    assert {row["signature"] for row in rows} == {scorer.signature}
    for row in rows:
        assert float(row["big - small"]) == pytest.approx(float(row["score of big"]) - float(row["score of small"]))
    written = json.loads(downloaded(downloads, "bleurt-comparison.json").read_text())
    assert [segment["number"] for segment in written["segments"]] == [int(row["segment"]) for row in rows]


def numbers(driver, column: int) -> list[float]:
    cells = driver.find_elements("css selector", f"#segments tbody td:nth-child({column + 1})")
    return [float(cell.get_attribute("data-value")) for cell in cells]


def downloaded(folder: Path, name: str) -> Path:
    for _ in range(100):
        if (folder / name).is_file():
            return folder / name
        time.sleep(0.1)
    raise AssertionError(f"no {name} in {os.listdir(folder) if folder.is_dir() else 'no folder'}")


@pytest.mark.long
def test_the_example_of_two_systems_is_compared_at_once(page):
    open_tab(page, "Compare two systems")
    wait_for(page, "#fill-example").click()
    wait_for(page, "#verdict .verdict")
    time.sleep(0.5)
    assert not page.find_elements("css selector", "#verdict .stale")


@pytest.mark.long
def test_twenty_rows_per_page(page):
    open_tab(page, "Compare two systems")
    for name, word in {"compare-reference": "cat", "system-a": "cat", "system-b": "dog"}.items():
        paste(page, name, "\n".join(f"the {word} {i}" for i in range(25)))
    wait_for(page, "#compare").click()
    wait_for(page, "#segments nav button", "21\u201325")
    rows = page.find_elements("css selector", "#segments tbody tr")
    assert sum(row.is_displayed() for row in rows) == 20
    wait_for(page, "#segments nav button", "21\u201325").click()
    assert [row.is_displayed() for row in rows] == [False] * 20 + [True] * 5


def test_an_accessibility_checker_finds_nothing_serious(page):
    axe = axe_source()
    if axe is None:
        pytest.skip("needs axe-core: npm install axe-core, and its axe.min.js in AXE_CORE")
    problems = []
    for theme in ("light", "dark"):
        page.get(f"{page.current_url.split('?')[0]}?__theme={theme}")
        wait_for(page, "#reference textarea")
        wait_for(page, "#add-reference").click()
        wait_for(page, "#reference-2 textarea")
        problems += violations(page, axe, f"pair, {theme}")
        wait_for(page, "#candidate textarea").send_keys("!")
        wait_for(page, "#pair-result .stale")
        problems += violations(page, axe, f"old result, {theme}")
        open_tab(page, "Compare two systems")
        wait_for(page, "#compare").click()
        wait_for(page, "#verdict .error")
        problems += violations(page, axe, f"error, {theme}")
        wait_for(page, "#files button").click()
        wait_for(page, "#fill-example").click()
        wait_for(page, "#verdict .verdict")
        time.sleep(1)
        problems += violations(page, axe, f"comparison, {theme}")
        open_tab(page, "About")
        wait_for(page, "#card-accordion button").click()
        wait_for(page, "#card")
        problems += violations(page, axe, f"about, {theme}")
    assert problems == []


def axe_source() -> str | None:
    """Return axe-core (https://github.com/dequelabs/axe-core) from the file that AXE_CORE names, or from Selenium's package."""
    path = os.environ.get("AXE_CORE")
    if path and Path(path).is_file():
        return Path(path).read_text(encoding="utf-8")
    package = importlib.util.find_spec("axe_selenium_python")
    file = Path(package.origin).parent / "node_modules/axe-core/axe.min.js" if package and package.origin else None
    return file.read_text(encoding="utf-8") if file and file.is_file() else None


def violations(driver, axe: str, where: str) -> list[str]:
    """Return what axe-core calls serious or critical, with the element."""
    driver.execute_script(axe)
    result = driver.execute_async_script("const done = arguments[arguments.length - 1]; axe.run().then(done)")
    return [
        f"{where}: {violation['id']}: {node['html'][:150]} {node.get('failureSummary', '')}"
        for violation in result["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


@pytest.mark.long
def test_a_bad_file_is_reported(page, tmp_path):
    (tmp_path / "<b>bad.csv").write_text("wrong <i>\nx\n")
    open_tab(page, "Compare two systems")
    wait_for(page, "#files button").click()
    upload(page, "system-a", tmp_path / "<b>bad.csv")
    message = wait_for(page, "#verdict .error", "expected a header").text
    assert "'candidate' or 'text', found 'wrong <i>'" in message
    assert "/" not in message.split("line 1")[0]
    status = page.find_element("css selector", "#compare-status [role=status]")
    assert message in status.get_attribute("textContent")  # escaped here, too


@pytest.mark.long
def test_the_places_for_files_are_folded(page):
    try:
        resize(page, 390, 900)
        open_tab(page, "Compare two systems")
        wait_for(page, "#compare")
        assert not is_visible(page, ".segments-file")
        wait_for(page, "#files button").click()
        wait_for(page, ".segments-file")
    finally:
        resize(page, 1280, 900)


@pytest.mark.long
def test_about_is_one_screen_with_links(page):
    open_tab(page, "About")
    wait_for(page, "#signature textarea")
    assert page.execute_script("return document.documentElement.scrollHeight") <= 900
    assert not is_visible(page, "#card")
    links = [
        link.get_attribute("href") for link in page.find_elements("css selector", ".card a") if link.is_displayed()
    ]
    assert "https://aclanthology.org/2020.acl-main.704" in links and any(link.endswith("view=api") for link in links)


@pytest.mark.long
def test_nothing_is_wider_than_a_phone(page):
    try:
        resize(page, 390, 900)
        for name in ("One pair", "Compare two systems", "About"):
            open_tab(page, name)
            time.sleep(0.5)
            assert page.execute_script("return document.documentElement.scrollWidth") == 390, name
    finally:
        resize(page, 1280, 900)


def test_the_page_asks_this_machine_only(browser):
    assert hosts_asked(browser) == {"127.0.0.1"}
