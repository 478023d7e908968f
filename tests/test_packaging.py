"""What the package holds, and the versions that it works with."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

# Extras that `make test-oldest` does not install: tools for those who write the code, and tools of others in the documentation.
TOOLS = {
    "ruff",
    "mypy",
    "pre-commit",
    "build",
    "coverage",
    "mkdocs-material",
    "polars",
    "lm-eval",
    "inspect-ai",
    "torchmetrics",
    "trl",
    "ipython",
}


def name_and_version(line: str, sign: str) -> tuple[str, tuple[int, ...]] | None:
    """Read `name==1.2` or `name>=1.2,<2`; trailing zeros say nothing."""
    match = re.match(rf"([A-Za-z0-9_-]+){sign}([0-9.]+)", line)
    if not match:
        return None
    numbers = [int(number) for number in match[2].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return match[1].lower().replace("_", "-"), tuple(numbers)


def test_of_the_checkpoints_the_package_carries_mini_alone(tmp_path, monkeypatch):
    from setuptools import Distribution

    for name in ("bleurt-repro-mini", "bleurt-repro-base"):
        (tmp_path / "checkpoint" / name).mkdir(parents=True)
        (tmp_path / "checkpoint" / name / "model.safetensors").touch()
    monkeypatch.chdir(ROOT)
    distribution = Distribution()
    distribution.parse_config_files([str(ROOT / "setup.cfg")])
    build = distribution.get_command_obj("build_py")
    build.ensure_finalized()
    build.manifest_files = {}  # what a source distribution lists besides: nothing
    files = [Path(file) for file in build.find_data_files("bleurt_repro.metric", str(tmp_path))]
    assert files == [tmp_path / "checkpoint" / "bleurt-repro-mini" / "model.safetensors"]


def test_every_folder_of_code_is_in_the_package():
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    packages = settings["options"]["packages"].split()
    roots = dict(line.split(" = ") for line in settings["options"]["package_dir"].strip().splitlines())
    folders = set()
    for package, root in roots.items():
        for file in (ROOT / root).rglob("__init__.py"):  # rglob does not follow the links in src/bleurt_repro
            names = file.parent.relative_to(ROOT / root).parts
            folders.add(".".join([package, *names]))
    assert sorted(packages) == sorted(folders), "list every folder with an __init__.py in setup.cfg"


@pytest.fixture(scope="module")
def bounds() -> dict[str, tuple[int, ...]]:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = settings["options"]["install_requires"].splitlines()
    for extra in settings["options.extras_require"].values():
        lines += extra.splitlines()
    return dict(filter(None, (name_and_version(line, ">=") for line in lines)))


@pytest.fixture(scope="module")
def oldest() -> dict[str, tuple[int, ...]]:
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    return dict(filter(None, (name_and_version(line, "==") for line in lines)))


def test_the_oldest_versions_are_the_bounds(bounds, oldest):
    assert len(bounds) > 25, "setup.cfg was not read"
    assert {name: version for name, version in bounds.items() if name not in TOOLS} == {
        name: version for name, version in oldest.items() if name in bounds
    }


def test_what_is_constrained_besides_comes_with_a_bound(bounds, oldest):
    assert oldest.keys() - bounds.keys() == {"typer-slim"}, "typer-slim is typer's twin, of the same version"
    assert oldest["typer-slim"] == oldest["typer"]


def test_the_pinned_versions_are_admitted(bounds):
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(filter(None, (name_and_version(line, "==") for line in lines)))
    assert len(pinned) > 25, "constraints.txt was not read"
    too_old = {name for name, version in pinned.items() if version < bounds.get(name, ())}
    assert too_old == set()
