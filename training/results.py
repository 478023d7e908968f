"""Results files: one form for what experiments, training runs and benchmarks measure.

Every results.json is one JSON object. It names its `kind`, the `command` that makes it, the `seed`, the `signatures` of
the scores in it, the `data` it was made on and the `versions` it was made with; beside them stand the figures of its
kind. Tables, plots and cards are drawn from these files and from nothing else.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = "results.json"
# Of plots. Okabe and Ito's palette, which colour-blind readers can tell apart: https://jfly.uni-koeln.de/color/
# Grey stands for its yellow, which is faint on a white page.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
# Packages whose version may change a figure.
PACKAGES = ("numpy", "scipy", "torch", "transformers", "tokenizers", "sacrebleu")
# Recorded beside the options of a training run, but not options: they follow from the machine.
FROM_THE_MACHINE = ("world_size", "gradient_accumulation_steps")


def versions() -> dict[str, str]:
    """Return the versions that figures depend on, of Python, of this package and of those it computes with."""
    from bleurt_repro import __version__

    found = {"bleurt_repro": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # an extra that is not installed was not used
            continue
    return found


def fingerprint(paths: Sequence[str | Path]) -> list[dict[str, str]]:
    """Return the name of each file and the SHA-256 of its bytes.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    from bleurt_repro.metric.loading.checksums import file_hash

    if missing := [path for path in paths if not Path(path).is_file()]:
        raise FileNotFoundError(f"no file {missing[0]}")

    return [{"file": Path(path).name, "sha256": file_hash(Path(path)).hex()} for path in paths]


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings fit for JSON, with files by name and without their folders."""
    values = {name: getattr(value, "value", value) for name, value in settings.items()}  # of an enumeration
    return {name: Path(value).name if isinstance(value, str) else value for name, value in values.items()}


def repeating_command(program: str, settings: Mapping[str, Any]) -> str:
    """Return the command that repeats a training run, with files and folders by name.

    Args:
        program: what is run, such as "bleurt-repro finetune".
        settings: the run's, by name; None and empty lists are left out.
    """
    words = [program]
    for name, value in settings.items():
        if name not in FROM_THE_MACHINE and value is not None and value != []:
            shown = " ".join(map(str, value)) if isinstance(value, list) else str(value)
            option = f"--{name.replace('_', '-')}"
            words.append(f"{option} {shown.lower() if isinstance(value, bool) else shown}")
    return " ".join([*words, "--output-dir OUT"])


@dataclass(frozen=True, eq=False)
class Result(Mapping[str, Any]):
    """What one results file holds; as a mapping, the JSON object of the file.

    Attributes:
        kind: what was run: an experiment's name ("agreement", "wmt", ...), "pretrain", "finetune", "average",
            "ensemble", "teacher", or a benchmark's name.
        command: the command that makes the file, with files and folders by name; None if there is no command.
        figures: what this kind measured, by name; none is called as one of the other fields.
        seed: of what is drawn at random; None where nothing is.
        signatures: of the scores, by row or checkpoint.
        data: what was measured or trained on: names, SHA-256 and sizes.
        versions: of the packages.
    """

    kind: str
    command: str | None
    figures: Mapping[str, Any]
    seed: int | None = None
    signatures: Mapping[str, str] = field(default_factory=dict)
    data: Any = None
    versions: Mapping[str, str] = field(default_factory=versions)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of the file."""
        head = {name: getattr(self, name) for name in HEAD}
        if twice := sorted(set(head) & set(self.figures)):
            raise ValueError(f"a figure must not be called {twice[0]}: this is a field of every results file")
        return {**head, **self.figures}

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name) if name in HEAD else self.figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*HEAD, *self.figures])

    def __len__(self) -> int:
        return len(HEAD) + len(self.figures)

    def write(self, path: str | Path) -> Path:
        """Write the file.

        Args:
            path: a file, or an existing folder, which gets a `RESULTS`.

        Returns:
            the file.
        """
        from bleurt_repro.metric.files.writing import write_text

        file = Path(path) / RESULTS if Path(path).is_dir() else Path(path)
        write_text(file, json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n")
        return file

    @classmethod
    def read(cls, path: str | Path) -> Result:
        """Read a results file.

        Args:
            path: a file, or a folder with a `RESULTS`.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if it is not a JSON object of a results file.
        """
        file = Path(path) / RESULTS if Path(path).is_dir() else Path(path)
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file} is no results file: {error}") from error
        if not isinstance(found, dict):
            raise ValueError(f"{file} is no results file: expected a JSON object, found a {type(found).__name__}")
        try:
            return cls.from_json(found)
        except (TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"{file} is no results file: it is damaged ({error})") from error

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Result:
        """Make a result of the JSON object of a file."""
        kind = found["kind"]
        command, seed, data = (found.get(name) for name in ("command", "seed", "data"))
        signatures, known_versions = (found.get(name) or {} for name in ("signatures", "versions"))
        if not isinstance(signatures, Mapping) or not isinstance(known_versions, Mapping):
            raise TypeError("signatures and versions must be JSON objects")
        figures = {name: value for name, value in found.items() if name not in HEAD}
        return cls(str(kind), command, figures, seed, signatures, data, known_versions)


HEAD = ("kind", "command", "seed", "signatures", "data", "versions")
