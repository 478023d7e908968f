"""Build the wheel and the sdist, and try each in an environment without the repository: `make smoke`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

from bleurt_repro.metric.loading.open import IN_CLONES

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "metric" / "examples"
TEXTS = ["--references", str(EXAMPLES / "references.txt"), "--candidates", str(EXAMPLES / "candidates.txt")]
# Scores differ by less than 1e-6 between the oldest and the newest libraries; this leaves room for other processors.
TOLERANCE = 1e-4
EVALUATE = """
import evaluate, json, sys
texts = [open(path, encoding="utf-8").read().splitlines() for path in sys.argv[1:]]
print(json.dumps(evaluate.load("bleurt_repro").compute(references=texts[0], predictions=texts[1])["scores"]))
"""
WHERE = "import bleurt_repro.metric as metric; print(metric.__path__[0])"
# What is not of the extra for training; each module either imports or asks for one of these.
OF_OTHER_EXTRAS = ("gradio", "tensorflow", "onnx", "onnxscript", "onnxruntime")
IMPORT_ALL = """
import bleurt_repro, importlib, pkgutil, sys
for module in pkgutil.walk_packages(bleurt_repro.__path__, "bleurt_repro."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as fault:
        if fault.name not in sys.argv[1:]:
            raise SystemExit(f"{module.name}: {fault}")
"""
FOLDERS = ("metric", "datasets_builders", "training", "hub_cards")
PACK = "from bleurt_repro.hub_cards.space import pack_wheel; open('own.whl', 'wb').write(pack_wheel())"


class Trial:
    """One environment with one distribution in it, used from a folder that is not the repository."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self.bin = environment / ("Scripts" if os.name == "nt" else "bin")
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        caches = {"HF_HOME": str(folder / "hub"), "BLEURT_REPRO_CACHE": str(folder / "cache")}
        self.settings = {**kept, **caches, "HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}

    def install(self, *packages: str) -> None:
        options = ["--quiet", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt")]
        subprocess.run([self.bin / "python", "-m", "pip", "install", *options, *packages], check=True)

    def run(self, *command: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; any other exit code than `code` is a failure."""
        result = subprocess.run(
            [self.bin / command[0], *command[1:]], cwd=self.folder, env=self.settings, capture_output=True, text=True
        )
        if result.returncode != code or "Traceback" in result.stderr:
            raise SystemExit(f"{command}: exit code {result.returncode}, not {code}\n{result.stdout}{result.stderr}")
        return result

    def check(self, expected: list[float], version: str) -> None:
        """Try what a user tries first, and compare the scores with the repository's own."""
        where = self.run("python", "-c", WHERE).stdout.strip()
        assert "site-packages" in where and not where.startswith(str(ROOT / "metric")), where
        assert self.run("bleurt-repro", "--version").stdout.strip() == f"bleurt-repro {version}"
        assert "compare" in self.run("bleurt-repro", "--help").stdout
        self.run("bleurt-repro", "score", *TEXTS, "--output", "scores.txt")
        same(read_scores(self.folder / "scores.txt"), expected, "score")
        self.run("bleurt-repro", "register")
        through = self.run("python", "-c", EVALUATE, TEXTS[1], TEXTS[3]).stdout
        same(json.loads(through), expected, "evaluate.load")
        self.run("bleurt-repro", "compare", *TEXTS, "--candidates", TEXTS[1], "--output", "compared.json")
        assert len(json.loads((self.folder / "compared.json").read_text())["systems"]) == 2
        said = self.run("bleurt-repro", "score", "--references", "none.txt", *TEXTS[2:], code=2).stderr
        assert "none.txt" in said and len(said.splitlines()) == 1, said


def same(scores: list[float], expected: list[float], way: str) -> None:
    """Fail where two lists of scores differ."""
    assert len(scores) == len(expected), f"{way}: {len(scores)} scores, {len(expected)} expected"
    worst = max(abs(a - b) for a, b in zip(scores, expected, strict=True))
    assert worst < TOLERANCE, f"{way}: scores differ from the repository's by {worst}"


def read_scores(path: Path) -> list[float]:
    """Read a file of a score a line."""
    return [float(line) for line in path.read_text().splitlines()]


def own_scores(folder: Path) -> list[float]:
    """Score the examples with the code of the repository."""
    program = Path(sys.executable).with_name("bleurt-repro")
    subprocess.run([program, "score", *TEXTS, "--output", str(folder / "own.txt")], check=True)
    return read_scores(folder / "own.txt")


def check_files(wheel: Path) -> None:
    """Every file of the package's folders that is under version control is in the wheel, but for checkpoints of clones only."""
    tracked = subprocess.run(
        ["git", "ls-files", *FOLDERS], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    expected = {f"bleurt_repro/{name}" for name in tracked.splitlines() if not set(IN_CLONES) & set(Path(name).parts)}
    missing = expected - set(zipfile.ZipFile(wheel).namelist())
    assert not missing, f"not in the wheel: {sorted(missing)}"


def check_own_wheel(trial: Trial, wheel: Path) -> None:
    """The wheel that an installed package packs of itself for a Space has the files of the one that was built."""
    trial.run("python", "-c", PACK)
    built, own = (_contents(path) for path in (wheel, trial.folder / "own.whl"))
    assert own == built, (
        f"in one wheel and not in the other, or different: {sorted(set(built.items()) ^ set(own.items()))}"
    )


def _contents(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        files = [entry for entry in archive.infolist() if ".dist-info/" not in entry.filename]
        return {entry.filename: entry.CRC for entry in files}


def check_training(trial: Trial) -> None:
    """With the extra for training its modules import, and a wrong setting is named in one line."""
    trial.run("python", "-c", IMPORT_ALL, *OF_OTHER_EXTRAS)
    (trial.folder / "wrong.yaml").write_text("learning_rat: 1e-4\n")
    given = "--config wrong.yaml --model bleurt-repro-mini --train_file none.csv --output_dir out".split()
    said = trial.run("bleurt-repro", "finetune", *given, code=2).stderr
    assert "learning_rat" in said and not (trial.folder / "out").exists(), said


def main() -> None:
    """Build both, try the wheel alone, then the sdist in its place with the extra for training."""
    with tempfile.TemporaryDirectory(prefix="bleurt-repro-smoke-") as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT)], check=True)
        (wheel,), (sdist,) = (list((folder / "dist").glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
        check_files(wheel)
        expected, version = own_scores(folder), wheel.name.split("-")[1]
        (folder / "away").mkdir()
        venv.create(folder / "environment", with_pip=True)
        trial = Trial(folder / "environment", folder / "away")
        trial.install(str(wheel))
        trial.check(expected, version)
        check_own_wheel(trial, wheel)
        print(f"{wheel.name}: passed")
        trial.install("--force-reinstall", "--no-deps", str(sdist))
        trial.install(f"{sdist}[train]")
        trial.check(expected, version)
        check_training(trial)
        print(f"{sdist.name}: passed")


if __name__ == "__main__":
    main()
