"""Results files: the form of everything that experiments, training runs and benchmarks measure.

Every results.json is a JSON object. It holds its `kind`, the `command` that makes it, the `seed`, the `signatures` of the
scores in it, the `data` and the `versions` of packages, and beside them the figures of its kind. Tables, plots and cards are
drawn from these files and from nothing else.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = "results.json"
# Colours of plots: the palette of Okabe and Ito, which colour-blind readers can tell apart
# (https://jfly.uni-koeln.de/color/), with grey in place of its yellow, which is faint on a white page.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
PACKAGES = ("numpy", "scipy", "torch", "transformers", "tokenizers", "sacrebleu")  # their versions may change a figure


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of the packages that figures depend on."""
    from bleurt_repro import __version__

    by_package = {"bleurt_repro": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            by_package[name] = version(name)
        except PackageNotFoundError:  # an extra that is not installed was not used
            continue
    return by_package


@dataclass(frozen=True, eq=False)
class Result(Mapping[str, Any]):
    """The content of a results file; as a mapping, the JSON object of the file.

    Attributes:
        kind: name of an experiment ("agreement", "wmt", ...) or a benchmark, or "pretrain", "finetune", "average",
            "ensemble" or "teacher".
        command: command that makes the file, with paths without their folders; None if there is no command.
        figures: what was measured, by name; no name is that of another field.
        seed: seed of everything that is random; None where nothing is.
        signatures: signatures of the scores, by row or checkpoint.
        data: names, SHA-256 and sizes of the data.
        versions: versions of packages.
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
        if repeated := sorted(set(head) & set(self.figures)):
            raise ValueError(f"a figure must not be called {repeated[0]}: this is a field of every results file")
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
            path: path of the file, or an existing folder, in which the file is called `RESULTS`.

        Returns:
            path of the file.
        """
        from bleurt_repro.metric.files.writing import write_text

        file = Path(path) / RESULTS if Path(path).is_dir() else Path(path)
        write_text(file, json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n")
        return file

    @classmethod
    def read(cls, path: str | Path) -> Result:
        """Read a results file.

        Args:
            path: path of the file, or of a folder with a file `RESULTS`.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if it is not a JSON object of a results file.
        """
        file = Path(path) / RESULTS if Path(path).is_dir() else Path(path)
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file} is not a results file: {error}") from error
        if not isinstance(content, dict):
            raise ValueError(f"{file} is not a results file: expected a JSON object, found a {type(content).__name__}")
        try:
            return cls.from_json(content)
        except (TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"{file} is not a results file: it is damaged ({error})") from error

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Result:
        """Make a result from the JSON object of a file."""
        command, seed, data = (content.get(name) for name in ("command", "seed", "data"))
        signatures, package_versions = (content.get(name) or {} for name in ("signatures", "versions"))
        if not isinstance(signatures, Mapping) or not isinstance(package_versions, Mapping):
            raise TypeError("signatures and versions must be JSON objects")
        figures = {name: value for name, value in content.items() if name not in HEAD}
        return cls(str(content["kind"]), command, figures, seed, signatures, data, package_versions)


HEAD = ("kind", "command", "seed", "signatures", "data", "versions")
