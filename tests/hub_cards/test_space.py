"""The Space: its card, the wheel that it carries (`make smoke` installs it), and that it starts."""

from __future__ import annotations

import ast
import contextlib
import csv
import hashlib
import io
import os
import re
import runpy
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from huggingface_hub import SpaceCard

from bleurt_repro.hub_cards.cards import MEASURES_RECORDED
from bleurt_repro.hub_cards.contents import Target
from bleurt_repro.hub_cards.publish import prepare
from bleurt_repro.hub_cards.space import (
    SUBPACKAGES,
    draw_space_card,
    pack_wheel,
    space_files,
    space_folder,
)
from bleurt_repro.metric.loading import find as find_module
from bleurt_repro.training.results import Result
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def wheel():
    return pack_wheel()


@pytest.mark.long
def test_the_cards_in_the_package_are_those_that_the_recipe_draws(tmp_path):
    """`sh recipes/cards.sh` draws them anew from docs/results; no figure on them is written by hand."""
    for place in ("recipes/cards.sh", "docs/results", "metric/checkpoint", "metric/bleurt_repro"):
        copy = shutil.copytree if (ROOT / place).is_dir() else shutil.copy
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / place, tmp_path / place)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", str(tmp_path / "recipes" / "cards.sh")], env=environment, check=True)
    for card in ("metric/checkpoint/bleurt-repro-mini/README.md", "metric/bleurt_repro/README.md"):
        assert (tmp_path / card).read_text(encoding="utf-8") == (ROOT / card).read_text(encoding="utf-8")


def test_the_card_has_the_figures_of_the_results_file():
    """To three digits, each rounded once."""
    card = draw_space_card()
    results = Result.read(ROOT / "docs" / "results" / "wmt22.json")
    (row,) = [row for row in results["rows"] if row["name"] == "bleurt-repro-mini"]
    table = card.split(f"{results['title']}:\n\n")[1].split("\n\n")[0]
    measures = results["measures"][:MEASURES_RECORDED]
    for group, figures in row["groups"].items():
        (line,) = [line for line in table.splitlines() if line.startswith(f"| {group} |")]
        assert [cell.strip() for cell in line.split("|")[2:-1]] == [
            f"{figures[name]['value']:.3f}" for name in measures
        ]
    assert SpaceCard(card).data.app_file == "app.py"


def test_the_card_lists_every_input_and_output_of_the_module():
    module = ast.parse((space_folder() / "bleurt_repro.py").read_text(encoding="utf-8"))
    (compute,) = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name == "_compute"]
    (returned,) = [node.value for node in ast.walk(compute) if isinstance(node, ast.Return)]
    keys = [key.value for node in ast.walk(returned) if isinstance(node, ast.Dict) for key in node.keys if key]
    _, inputs, outputs = re.split("### Inputs|### Outputs", draw_space_card().split("### Agreement")[0])
    assert re.findall(r"^- \*\*(\w+)\*\*", inputs, re.MULTILINE) == [
        argument.arg for argument in compute.args.args[1:]
    ]
    assert set(re.findall(r"^- \*\*(\w+)\*\*", outputs, re.MULTILINE)) == set(keys)


def test_an_edited_card_is_kept(tmp_path):
    (tmp_path / "README.md").write_text("---\nsdk: gradio\n---\nMine.\n")
    files = space_files(Target("space", "org/metric"), tmp_path, "bleurt-repro[demo]")
    assert [file.path for file in files] == ["requirements.txt"]


def test_the_wheel_leaves_out_what_only_clones_have(wheel, monkeypatch):
    def checkpoints(packed: bytes) -> set[str]:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            return {name.split("/")[3] for name in archive.namelist() if "/checkpoint/" in name}

    assert checkpoints(wheel) == {"bleurt-repro-mini"}
    monkeypatch.setattr(find_module, "IN_CLONES", ("bleurt-repro-mini", *find_module.IN_CLONES))
    assert checkpoints(pack_wheel()) == set()


def test_the_wheel_is_the_same_each_time_and_records_its_files(wheel):
    assert pack_wheel() == wheel
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        names = archive.namelist()
        record = archive.read("bleurt_repro-0.1.0.dist-info/RECORD").decode()
        for name, digest, size in csv.reader(record.splitlines()):
            content = archive.read(name)
            if not name.endswith("RECORD"):
                assert digest == "sha256=" + urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                assert int(size) == len(content)
    assert len(record.splitlines()) == len(names) == len(set(names))
    for name in (
        "__init__.py", "py.typed", "metric/scorer.py", "metric/bleurt_repro/app.py", "metric/examples/references.txt",
        "metric/checkpoint/bleurt-repro-mini/model.safetensors", "training/configs/finetune_mini.yaml",
        "datasets_builders/signals/rouge.py", "hub_cards/templates/model_card.md",
    ):  # fmt: skip
        assert f"bleurt_repro/{name}" in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    """By git's list; the smoke test compares the files of an installed package with those of a built wheel."""
    listed = subprocess.run(["git", "ls-files", *SUBPACKAGES], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("needs a clone")
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        names = set(archive.namelist())
    tracked = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    tracked = [name for name in tracked if not set(find_module.IN_CLONES) & set(Path(name).parts)]
    assert [name for name in tracked if f"bleurt_repro/{name}" not in names] == []


def test_a_package_that_is_not_installed(monkeypatch):
    import importlib.metadata

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(ValueError, match="bleurt-repro is not installed: install it with pip, or give --requirement"):
        pack_wheel()


@pytest.fixture(scope="module")
def published_space(tmp_path_factory):
    """The Space's folder as it is on the Hub, but without the wheel: the package here is installed already."""
    files, _ = prepare("space", space_folder(), space_files(Target("space", "org/bleurt_repro"), space_folder(), "x"))
    folder = tmp_path_factory.mktemp("space")
    for file in files:
        (folder / file.path).write_bytes(file.read())
    assert {"app.py", "bleurt_repro.py", "README.md", "requirements.txt"} == {path.name for path in folder.iterdir()}
    return folder


def start(folder, home, python_path):
    """Start `python app.py` as a Space does; return the process and the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    environment |= {"HF_HOME": str(home), "NO_PROXY": "127.0.0.1"}
    environment.pop("PYTHONPATH", None)
    environment |= {"PYTHONPATH": str(folder)} if python_path else {}
    log = (home / "log.txt").open("w")
    command = [sys.executable, "app.py"]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT), port


def is_up(process, port):
    """Wait until the page answers, or its process has ended."""
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.2)
    return False


def test_the_app_builds_the_page_and_takes_its_folder_off_the_search_path(published_space, monkeypatch):
    """`bleurt_repro.py` in that folder is the module for `evaluate`, and would hide the package."""
    monkeypatch.syspath_prepend(str(published_space))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(published_space), "elsewhere"]))
    page = runpy.run_path(str(published_space / "app.py"))["demo"]
    assert page.title == "BLEURT"
    assert str(published_space) not in sys.path and os.environ["PYTHONPATH"] == "elsewhere"


@pytest.mark.long
@pytest.mark.parametrize("python_path", [False, True], ids=["plain", "with PYTHONPATH"])
def test_the_published_folder_starts_and_scores_over_http(published_space, tmp_path, python_path):
    from gradio_client import Client

    from bleurt_repro import BleurtScorer

    process, port = start(published_space, tmp_path, python_path)
    try:
        assert is_up(process, port), (tmp_path / "log.txt").read_text()
        client = Client(f"http://127.0.0.1:{port}", verbose=False)
        found = client.predict("The cat sat on the mat.", "A cat was sitting on the mat.", api_name="/score")
    finally:
        process.terminate()
        process.wait(20)
    pair = {"references": ["The cat sat on the mat."], "candidates": ["A cat was sitting on the mat."]}
    (expected,) = BleurtScorer().score(**pair)
    assert found["score"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.long
def test_without_the_guard_the_space_does_not_start(published_space, tmp_path):
    folder = shutil.copytree(published_space, tmp_path / "space")
    text = (folder / "app.py").read_text()
    guard = re.compile(r"^HERE = .*?(?=^from bleurt_repro)", re.MULTILINE | re.DOTALL)
    assert guard.search(text)
    (folder / "app.py").write_text(guard.sub("", text))
    process, port = start(folder, tmp_path, python_path=False)
    assert not is_up(process, port)
    assert "'bleurt_repro' is not a package" in (tmp_path / "log.txt").read_text()
