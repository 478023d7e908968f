"""The Space: its card, the wheel that it carries, and that pip can install it."""

from __future__ import annotations

import csv
import hashlib
import io
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode

import pytest
from huggingface_hub import SpaceCard

from bleurt_repro.hub_cards.contents import Target
from bleurt_repro.hub_cards.space import draw_space_card, pack_wheel, space_files, space_folder, wheel_name


@pytest.fixture(scope="module")
def wheel():
    return pack_wheel()


def test_the_card_in_the_package_is_the_one_that_is_drawn():
    """`bleurt-repro card metric/bleurt_repro` draws it anew."""
    assert (space_folder() / "README.md").read_text(encoding="utf-8") == draw_space_card()


def test_the_card_has_the_figures_of_the_default_checkpoint():
    from huggingface_hub import ModelCard

    from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER

    card = draw_space_card()
    results = ModelCard((EMBEDDED_FOLDER / "bleurt-repro-mini" / "README.md").read_text()).data.eval_results
    assert results
    for result in results:
        (row,) = [line for line in card.splitlines() if line.startswith(f"| {result.dataset_config} |")]
        assert f" {result.metric_value:.3f} |" in row
    assert SpaceCard(card).data.app_file == "app.py"


def test_an_edited_card_is_kept(tmp_path):
    (tmp_path / "README.md").write_text("---\nsdk: gradio\n---\nMine.\n")
    files = space_files(Target("space", "org/metric"), tmp_path, "bleurt-repro[demo]")
    assert [file.path for file in files] == ["requirements.txt"]


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


def test_pip_installs_the_wheel_and_the_package_runs_from_it(wheel, tmp_path):
    (tmp_path / wheel_name()).write_bytes(wheel)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", "site"]
    subprocess.run([*pip, f"bleurt-repro[demo] @ file://{tmp_path / wheel_name()}"], cwd=tmp_path, check=True)
    code = (
        "import sys; sys.path.insert(0, 'site'); import bleurt_repro; from bleurt_repro.metric.layout import Layout; "
        "from importlib.metadata import distribution as d; print(bleurt_repro.__file__, d('bleurt-repro').entry_points)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.startswith(str(tmp_path / "site" / "bleurt_repro" / "__init__.py"))
    assert "bleurt_repro.cli:main" in run.stdout


def test_a_package_that_is_not_installed(monkeypatch):
    import importlib.metadata

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(ValueError, match="bleurt-repro is not installed: pip install it, or give --requirement"):
        pack_wheel()
