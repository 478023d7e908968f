"""The texts of WMT: sources, references and outputs of systems, one segment a line, in the official archives."""

from __future__ import annotations

import re
from pathlib import Path

Files = dict[str, list[Path]]


def index_files(folder: str | Path) -> Files:
    """Give the paths of all files under a folder by file name, each list sorted."""
    files: Files = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            files.setdefault(path.name, []).append(path)
    return files


class Texts:
    """Sources, references and outputs of the systems, of one year and language pair.

    Args:
        files: as of `index_files`.
        year: of the test set.
        lp: the language pair, such as "de-en".

    Raises:
        FileNotFoundError: if the file of sources or of references is missing.
    """

    def __init__(self, files: Files, year: int, lp: str) -> None:
        self.year, self.lp = year, lp
        pair = lp.replace("-", "")
        source_language, target_language = lp.split("-")
        self.sources = read_lines(only_file(files, f"newstest{year}-{pair}-src.{source_language}"))
        self.references = read_lines(only_file(files, f"newstest{year}-{pair}-ref.{target_language}"))
        prefix, suffix = f"newstest{year}.", f".{lp}"
        names = [name for name in files if name.startswith(prefix) and name.endswith(suffix)]
        self.files = {self._key(name[len(prefix) : -len(suffix)]): files[name][0] for name in names}
        self.candidates: dict[str, list[str]] = {}

    def of(self, file: Path, number: int, system: str, segment_id: str) -> dict[str, str]:
        """Give the texts that a line of a file of ratings is about.

        Args:
            file: the file of ratings.
            number: its line, for errors.
            system: as the ratings name it; several joined by "+" gave the same output.
            segment_id: the line of the test set, from 1.

        Returns:
            source, reference and candidate.

        Raises:
            FileNotFoundError: if no file holds the output of the system.
            ValueError: if there is no such segment.
        """
        place = f"{file}, line {number}"
        columns = {"source": self.sources, "reference": self.references, "candidate": self._output(place, system)}
        if not segment_id.isdecimal() or not 1 <= int(segment_id) <= min(map(len, columns.values())):
            raise ValueError(f"{place}: no segment {segment_id} in the texts of {self.lp}, {self.year}")
        return {name: column[int(segment_id) - 1] for name, column in columns.items()}

    def _output(self, place: str, system: str) -> list[str]:
        # Systems whose outputs are the same were judged once: any of them gives the text.
        keys = [key for key in map(self._key, (system, *system.split("+"))) if key in self.files]
        if not keys:
            raise FileNotFoundError(
                f"{place}: no output of {system}; looked for newstest{self.year}.{system}.{self.lp}"
            )
        if keys[0] not in self.candidates:
            self.candidates[keys[0]] = read_lines(self.files[keys[0]])
        return self.candidates[keys[0]]

    def _key(self, system: str) -> str:
        """Spell a system as both ratings and file names do: they differ in dashes and in naming the pair (2019)."""
        return re.sub(r"[^a-z0-9.+]+", "-", system.lower()).replace(f".{self.lp}", "")


def only_file(files: Files, name: str) -> Path:
    """Give the first file of a name, or say that it is missing."""
    if name not in files:
        raise FileNotFoundError(f"no file {name} anywhere beside the ratings; unpack the archive of that year's texts")
    return files[name][0]


def read_lines(file: Path) -> list[str]:
    """Give the lines of a file without the blanks around them; a missing file or other text than UTF-8 is named."""
    if not file.is_file():
        raise FileNotFoundError(f"no file {file}")
    lines = file.read_bytes().removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{file}, line {number}: not UTF-8 ({error.reason})") from error
    return [line.decode("utf-8").strip() for line in lines]
