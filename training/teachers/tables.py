"""Read tables of text: tab-separated, with or without a header, gzipped or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path


def read_table(path: str | Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Read a TSV file.

    Args:
        path: the file; it may end in .gz.
        columns: the columns' names, in order. A first line of exactly these names is a header.

    Returns:
        a dict for each line, of stripped texts.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and line, if a line has other than so many columns, or is not UTF-8; or if there is none.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no file {path}: expected a TSV file with the columns {', '.join(columns)}")
    rows = []
    for number, line in _lines(Path(path)):
        cells = [cell.strip() for cell in line.rstrip("\r\n").split("\t")]
        if number == 1 and cells == list(columns):
            continue
        if len(cells) != len(columns):
            raise ValueError(
                f"{path}, line {number}: expected {len(columns)} columns ({', '.join(columns)}), found {len(cells)}: "
                "part them by tabs, and leave none out"
            )
        rows.append(dict(zip(columns, cells, strict=True)))
    if not rows:
        raise ValueError(f"{path} is empty: expected lines of {', '.join(columns)}, parted by tabs")
    return rows


def parse_pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """Read `NAME=VALUE` words, such as the weights of sources.

    Raises:
        ValueError: if a word is not of that form, or a name stands twice.
    """
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals or not value:
            raise ValueError(f"--{option} {word}: expected NAME=VALUE")
        if name in pairs:
            raise ValueError(f"--{option} names {name} twice")
        pairs[name] = value
    return pairs


def parse_weights(words: Sequence[str], option: str) -> dict[str, float]:
    """Read `NAME=NUMBER` words; no number is negative.

    Raises:
        ValueError: as `parse_pairs`, and for a value that is no such number.
    """
    weights = {}
    for name, value in parse_pairs(words, option).items():
        try:
            weights[name] = float(value)
        except ValueError:
            raise ValueError(f"--{option} {name}={value}: expected a number") from None
        if not 0 <= weights[name] < float("inf"):
            raise ValueError(f"--{option} {name}={value}: expected a number that is not negative")
    return weights


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: not UTF-8 (byte {error.start + 1})") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no complete gzip file ({error})") from error
