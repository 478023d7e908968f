"""Install wheel, clone and sdist, use each as a new user would, and run README's commands: `make smoke`.

One environment is used for all. The requirements of the package, and no others, are linked into it from the environment
that runs this program, and pip checks that nothing is missing. The clone is made without symbolic links, as on Windows,
and the commands run inside it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from bleurt_repro.hub_cards.space import wheel_name
from bleurt_repro.metric.loading.find import IN_CLONES
from tests.pages import README, ROOT, run_page

EXAMPLES = ROOT / "metric" / "examples"
TEXTS = ["--references", str(EXAMPLES / "references.txt"), "--candidates", str(EXAMPLES / "candidates.txt")]
FOLDERS = ("metric", "datasets_builders", "training", "hub_cards")
# Scores differ by less than 1e-6 between the oldest and the newest libraries; the rest allows for other processors.
TOLERANCE = 1e-4
LOCATION = "import bleurt_repro.metric as metric; print(metric.__path__[0])"
# Modules of other extras than `train`: each module of the package either imports or needs one of these.
OTHER_EXTRAS = ("gradio", "tensorflow", "onnx", "onnxscript", "onnxruntime")
IMPORT_ALL = """
import bleurt_repro, importlib, pkgutil, sys
for module in pkgutil.walk_packages(bleurt_repro.__path__, "bleurt_repro."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name not in sys.argv[1:]:
            raise SystemExit(f"{module.name}: {error}")
"""
PACK = """
from bleurt_repro.hub_cards.space import pack_wheel, wheel_name
open(wheel_name(), "wb").write(pack_wheel())
"""
# Commands that need an extra which a plain installation lacks, and the extra.
NEED_EXTRAS = {
    "finetune --model bleurt-repro-mini --train-file none.csv --output out": "train",
    "pretrain --model bleurt-repro-mini --pairs none --max-steps 2 --output out": "train",
    "experiment agreement --ratings none.csv --checkpoint bleurt-repro-mini --output out": "train",
    "experiment wmt --data none --checkpoint bleurt-repro-mini --output out": "train",
    "ensemble bleurt-repro-mini bleurt-repro-mini --validation none.csv --output out": "train",
    "calibrate out --ratings none.csv": "train",
    "data synthetic --input none.txt --config small --output out": "data",
    "demo": "demo",
}


class Trial:
    """One environment with one distribution in it, used from a folder."""

    def __init__(self, environment: Path, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.bin = environment / ("Scripts" if os.name == "nt" else "bin")
        self.folder = folder
        inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        caches = {"HF_HOME": str(environment / "hub"), "BLEURT_REPRO_CACHE": str(environment / "cache")}
        self.settings = {**inherited, **caches, "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}

    def install(self, *packages: str) -> None:
        command = [self.bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(command, check=True, cwd=self.folder)

    def link_requirements(self, extra: str = "") -> None:
        """Link what the package requires, with an extra, from the environment that runs this program."""
        packages = self.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
        source = Path(sysconfig.get_path("purelib"))
        for name in requirements("bleurt-repro", extra) - {"bleurt-repro"}:
            folders = {file.parts[0] for file in distribution(name).files or ()} - {"..", "__pycache__"}
            for folder in folders:
                if not (Path(packages) / folder).exists():
                    (Path(packages) / folder).symlink_to(source / folder)

    def run(self, *command: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; fail if its exit code is not `code`, or if it shows a traceback."""
        result = subprocess.run(
            [self.bin / command[0], *command[1:]], cwd=self.folder, env=self.settings, capture_output=True, text=True
        )
        if result.returncode != code or "Traceback" in result.stderr:
            raise SystemExit(f"{command}: exit code {result.returncode}, not {code}\n{result.stdout}{result.stderr}")
        return result

    def check_location(self, version: str) -> None:
        """Check that the package is the installed one."""
        location = self.run("python", "-c", LOCATION).stdout.strip()
        assert "site-packages" in location, location
        assert self.run("python", "-m", "bleurt_repro", "--version").stdout.strip() == f"bleurt-repro {version}"

    def check_scores(self, expected: list[float]) -> None:
        """Compare the scores of the examples with those of the repository."""
        self.run("bleurt-repro", "score", *TEXTS, "--output", "scores.txt")
        scores = read_scores(self.folder / "scores.txt")
        assert len(scores) == len(expected), f"{len(scores)} scores, {len(expected)} expected"
        difference = max(abs(a - b) for a, b in zip(scores, expected, strict=True))
        assert difference < TOLERANCE, f"scores differ from the repository's by {difference}"

    def run_readme(self) -> None:
        """Run the commands of README, and compare their output with what it shows."""
        home = self.folder.parent / "home"
        home.mkdir(exist_ok=True)
        run_page(README, self.folder, self.bin / "python", home)

    def pack(self) -> Path:
        """Return the wheel that the package packs of itself for a Space."""
        self.run("python", "-c", PACK)
        return self.folder / wheel_name()


def requirements(name: str, extra: str = "", known: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the names of a distribution and of all that it requires with an extra."""
    known |= {name}
    for requirement in map(Requirement, distribution(name).requires or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            for each in ("", *requirement.extras):
                if requirement.name not in known or each:
                    known |= requirements(requirement.name, each, known)
    return known


def read_scores(path: str | Path) -> list[float]:
    """Read a file with one score per line."""
    return [float(line) for line in Path(path).read_text().splitlines()]


def repository_scores(folder: Path) -> list[float]:
    """Score the examples with the code of the repository."""
    program = Path(sys.executable).with_name("bleurt-repro")
    subprocess.run([program, "score", *TEXTS, "--output", str(folder / "expected.txt")], check=True)
    return read_scores(folder / "expected.txt")


def wheel_contents(wheel: Path) -> dict[str, int]:
    """Return the files of a wheel with their checksums, without the metadata."""
    with zipfile.ZipFile(wheel) as archive:
        files = [entry for entry in archive.infolist() if ".dist-info/" not in entry.filename]
        names = [entry.filename for entry in files]
        assert len(names) == len(set(names)), "a file is in the wheel twice"
        return {entry.filename: entry.CRC for entry in files}


def check_files(wheel: Path, sdist: Path) -> None:
    """Check that wheel and sdist have each file of the package once, without the checkpoints of clones."""
    command = ["git", "ls-files", "src/bleurt_repro", *FOLDERS]
    tracked = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    tracked = [name for name in tracked if (ROOT / name).is_file() and not set(IN_CLONES) & set(Path(name).parts)]
    expected = {f"bleurt_repro/{name.removeprefix('src/bleurt_repro/')}" for name in tracked}
    missing = expected - set(wheel_contents(wheel))
    assert not missing, f"not in the wheel: {sorted(missing)}"
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    missing = set(tracked) - set(names)
    assert not missing, f"not in the sdist: {sorted(missing)}"
    doubled = [name for name in names if name.startswith(tuple(f"src/bleurt_repro/{folder}/" for folder in FOLDERS))]
    assert not doubled, f"in the sdist twice, through the links in src/bleurt_repro: {doubled}"


def check_same_files(packed: Path, wheel: Path) -> None:
    """Fail if two wheels differ in their files."""
    contents, expected = wheel_contents(packed), wheel_contents(wheel)
    different = sorted({name for name, _ in set(contents.items()) ^ set(expected.items())})
    assert contents == expected, f"in one wheel and not in the other, or different: {different}"


def check_without_extras(trial: Trial) -> None:
    """Check that comparison and help need no extra, and that others name theirs in one line before they write."""
    trial.run("bleurt-repro", "compare", *TEXTS, "--candidates", TEXTS[1], "--output", "compared.json")
    assert len(json.loads((trial.folder / "compared.json").read_text())["systems"]) == 2
    assert "--train-file" in trial.run("bleurt-repro", "finetune", "--help").stdout
    for command, extra in NEED_EXTRAS.items():
        message = trial.run("bleurt-repro", *command.split(), code=2).stderr
        assert len(message.splitlines()) == 1 and f".[{extra}]'" in message, f"{command}: {message}"
        assert not (trial.folder / "out").exists(), command


def check_training(trial: Trial) -> None:
    """Check that all modules import with the extra for training, and that a wrong setting is named in one line."""
    trial.run("python", "-c", IMPORT_ALL, *OTHER_EXTRAS)
    (trial.folder / "wrong.yaml").write_text("learning_rat: 1e-4\n")
    options = "--config wrong.yaml --model bleurt-repro-mini --train_file none.csv --output_dir out".split()
    message = trial.run("bleurt-repro", "finetune", *options, code=2).stderr
    assert "learning_rat" in message and not (trial.folder / "out").exists(), message


def clone_without_links(folder: Path) -> Path:
    """Clone the repository as on Windows, where links become files with the path of their target."""
    options = ["--quiet", "--depth", "1", "-c", "core.symlinks=false"]
    subprocess.run(["git", "clone", *options, ROOT.as_uri(), str(folder)], check=True)
    assert (folder / "src" / "bleurt_repro" / "metric").is_file()
    return folder


def main() -> None:
    """Try the wheel, then in the same environment a clone without links, and the sdist with the extra for training."""
    with tempfile.TemporaryDirectory(prefix="bleurt-repro-smoke-") as name:
        folder = Path(name)
        subprocess.run(
            [sys.executable, "-m", "build", "--quiet", "--outdir", str(folder / "dist"), str(ROOT)], check=True
        )
        (wheel,), (sdist,) = (list((folder / "dist").glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
        check_files(wheel, sdist)
        expected, version = repository_scores(folder), wheel.name.split("-")[1]
        venv.create(folder / "environment", with_pip=True)

        # the wheel; then the one that it packs of itself, in another folder that has only the example files
        shutil.copytree(EXAMPLES, folder / "elsewhere" / "metric" / "examples")
        trial = Trial(folder / "environment", folder / "elsewhere")
        trial.link_requirements()
        trial.install("--no-index", str(wheel))
        check_without_extras(trial)
        packed = trial.pack()
        check_same_files(packed, wheel)
        trial.install("--force-reinstall", "--no-deps", str(packed))
        trial.check_location(version)
        trial.check_scores(expected)
        trial.run_readme()
        print(f"{wheel.name}: passed")

        # a clone without links, installed plainly and in place
        inside = Trial(folder / "environment", clone_without_links(folder / "clone"))
        inside.install("--force-reinstall", "--no-deps", ".")
        inside.check_location(version)
        inside.run_readme()
        packed = inside.pack().rename(folder / "plain.whl")
        inside.install("--force-reinstall", "--no-deps", "--editable", ".")
        check_same_files(inside.pack(), packed)
        print("clone without links: passed")

        trial.link_requirements("train")
        trial.install("--force-reinstall", "--no-deps", str(sdist))
        trial.install("--no-index", "bleurt-repro[train]")
        trial.check_location(version)
        trial.check_scores(expected)
        check_training(trial)
        print(f"{sdist.name}: passed")


if __name__ == "__main__":
    main()
