"""Read WMT ratings and their texts in the layout of the official archives, unpacked anywhere under one folder.

| years | ratings | texts |
|---|---|---|
| 2015, 2016 | `(DAseg.)newstest2016.human.cs-en` | `...source.cs-en`, `...reference.cs-en`, `...mt-system.cs-en` beside it |
| 2017 | `DA-seglevel.csv` | `newstest2017-csen-src.cs`, `newstest2017-csen-ref.en`, `newstest2017.<system>.cs-en` |
| 2018 on | `newstest2018-humaneval/**/ad-seg-scores-cs-en.csv` | the same, of that year |

The archives: DAseg-wmt-newstest2015.tar.gz, DAseg-wmt-newstest2016.tar.gz, wmt17-metrics-task-package.tgz (with the
wmt17-metrics-task-no-hybrids.tgz in it), newstest2018-humaneval.tar.gz and wmt18-metrics-task-nohybrids.tgz,
newstest2019-humaneval.tar.gz and wmt19-submitted-data-v3-txt-minimal.tgz (https://www.statmt.org/wmt19/metrics-task.html).
"""

from __future__ import annotations

import logging
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from bleurt_repro.datasets_builders.ratings.rating_files import Rating, check_rating
from bleurt_repro.metric.files.records import text_lines

Files = dict[str, list[Path]]  # the paths of all files of a folder by file name

logger = logging.getLogger(__name__)

LAYOUT = "(DAseg.)newstest2015.human.LP, DA-seglevel.csv, newstest2018-humaneval/**/ad-seg-scores-LP.csv"
DASEG = re.compile(r"(?:DAseg\.)?newstest(201[56])\.human\.([a-z]{2}-[a-z]{2})")
DA_SEGLEVEL = "DA-seglevel.csv"
RR_SEGLEVEL = "RR-seglevel.csv"  # pairs, which `wmt_relative_ranks` reads
AD_SEG_SCORES = re.compile(r"ad-seg-scores-([a-z]{2}-[a-z]{2})\.csv")
HUMANEVAL = re.compile(r"newstest(\d{4})-humaneval")
# Up to 2017 the Metrics task had judgements of its own, 15 a segment; `ad-seg-scores` holds those of the systems' ranking.
FIRST_AD_SEG_SCORES = 2018
# Of the two files for zh-en in 2019, the one that the paper's authors read in their own import.
PREFERRED = "turkle-sntlevel"
# References rated as if they were translations, and the second half of a system name that holds a "+" (2019).
NO_SYSTEMS = ("HUMAN", "RBMT.6722")
RENAMED = {"UAlacant_-_NM": "UAlacant_-_NMT+RBMT.6722"}
NO_REFERENCE = "NO REFERENCE AVAILABLE"


def rating_archives(files: Files) -> list[Path]:
    """Return the files among `files` that hold official ratings, oldest first."""
    return [*_daseg_files(files), *files.get(DA_SEGLEVEL, [])[:1], *_ad_seg_scores_files(files).values()]


def read_archives(folder: str | Path, wanted: Callable[[str], bool] = lambda lp: True) -> list[Rating]:
    """Read all the official ratings under a folder.

    Segments whose reference is missing are left out, with a warning that counts them.

    Args:
        folder: where the archives are unpacked.
        wanted: returns whether to read a language pair; the texts of the others need not be there.

    Raises:
        FileNotFoundError: if there are ratings, but not their texts.
        ValueError: naming file and line of a malformed record.
    """
    files = index_files(folder)
    ratings = [rating for file in _daseg_files(files) if wanted(file.name[-5:]) for rating in _read_daseg(file)]
    texts = cache(lambda year, lp: Texts(files, year, lp))
    for file in files.get(DA_SEGLEVEL, [])[:1]:
        ratings.extend(_read_da_seglevel(file, wanted, texts))
    for (year, lp), file in _ad_seg_scores_files(files).items():
        if wanted(lp):
            ratings.extend(_read_ad_seg_scores(file, texts(year, lp)))
    kept = [rating for rating in ratings if rating["reference"] != NO_REFERENCE]
    if len(kept) < len(ratings):
        warnings.warn(f"{folder}: left out {len(ratings) - len(kept)} ratings without a reference", stacklevel=2)
    return kept


def _daseg_files(files: Files) -> list[Path]:
    found = {match.groups(): paths[0] for name, paths in files.items() if (match := DASEG.fullmatch(name))}
    return [path for _, path in sorted(found.items())]


def _read_daseg(file: Path) -> Iterator[Rating]:
    year, lp = DASEG.fullmatch(file.name).groups()  # type: ignore[union-attr]
    parts = ("source", "reference", "mt-system", "human")
    columns = [read_lines(file.with_name(file.name.replace(".human.", f".{part}."))) for part in parts]
    if len(set(map(len, columns))) > 1:
        found = ", ".join(f"{part} {len(column)}" for part, column in zip(parts, columns, strict=True))
        raise ValueError(f"{file}: the four files of a language pair must be equally long, found {found} lines")
    for number, (source, reference, candidate, score) in enumerate(zip(*columns, strict=True), start=1):
        texts = {"source": source, "reference": reference, "candidate": candidate}
        yield _rating(file, number, {"year": year, "lp": lp, "segment_id": number, "score": score, **texts})


def _read_da_seglevel(
    file: Path, wanted: Callable[[str], bool], texts: Callable[[int, str], Texts]
) -> Iterator[Rating]:
    """Read lines of pair, test set, system or several joined by "+", segment (from 1), standardised score."""
    for number, (lp, test_set, system, segment_id, score) in _fields(file):
        if not wanted(lp):
            continue
        record = {"lp": lp, "system": system, "segment_id": segment_id, "score": score}
        if not re.fullmatch(r"newstest\d{4}", test_set):
            raise ValueError(f"{file}, line {number}: expected newstestYEAR, found {test_set}")
        year = int(test_set[-4:])
        yield _rating(file, number, {"year": year, **record, **texts(year, lp).of(file, number, system, segment_id)})


def _ad_seg_scores_files(files: Files) -> dict[tuple[int, str], Path]:
    found: dict[tuple[int, str], list[Path]] = {}
    for name, paths in files.items():
        if match := AD_SEG_SCORES.fullmatch(name):
            for path in paths:
                year = next((int(y) for part in path.parts for y in HUMANEVAL.findall(part)), 0)
                if year >= FIRST_AD_SEG_SCORES:
                    found.setdefault((year, match[1]), []).append(path)
    for key, paths in found.items():
        preferred = [path for path in paths if any(PREFERRED in part for part in path.parts)]
        if len(paths) > 1 and len(preferred) != 1:
            raise ValueError(f"two files of ratings of {key[1]}, {key[0]}: {', '.join(map(str, paths))}; remove one")
        found[key] = preferred or paths
    return {key: paths[0] for key, paths in sorted(found.items())}


def _read_ad_seg_scores(file: Path, texts: Texts) -> Iterator[Rating]:
    """Read lines of system, segment (from 1), raw score, standardised score, number of annotations."""
    left_out: Counter[str] = Counter()
    for number, (system, segment_id, raw_score, score, n_annotations) in _fields(file):
        system = RENAMED.get(system, system).removesuffix(f".{texts.lp}")
        if system in NO_SYSTEMS:
            left_out[system] += 1
            continue
        record = {"year": texts.year, "lp": texts.lp, "system": system, "segment_id": segment_id, "score": score}
        record |= {"raw_score": raw_score, "n_annotations": n_annotations}
        yield _rating(file, number, {**record, **texts.of(file, number, system, segment_id)})
    for system, count in left_out.items():
        logger.info("%s: left out %d ratings of %s, which is no system", file, count, system)


def _rating(file: Path, number: int, record: Rating) -> Rating:
    record = {**record, "reference": record["reference"] or NO_REFERENCE}
    try:
        rating = check_rating(record, ("year", "lp", "segment_id", "reference", "candidate", "score"))
    except ValueError as error:
        raise ValueError(f"{file}, line {number}: {error}") from error
    return {**rating, "segment_id": int(rating["segment_id"])}


def _fields(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, five fields) of a table with blanks between its columns and a first line of names."""
    for number, line in enumerate(read_lines(file)[1:], start=2):
        fields = line.split()
        if len(fields) != 5:
            raise ValueError(f"{file}, line {number}: expected 5 fields, found {len(fields)}")
        yield number, fields


def index_files(folder: str | Path) -> Files:
    """Return the paths of all files under a folder by file name, each list sorted."""
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
        """Return the texts that a line of a file of ratings is about.

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
        # Systems whose outputs are the same were judged once: any of them has the text.
        keys = [key for key in map(self._key, (system, *system.split("+"))) if key in self.files]
        if not keys:
            raise FileNotFoundError(
                f"{place}: no output of {system}; looked for newstest{self.year}.{system}.{self.lp}"
            )
        if keys[0] not in self.candidates:
            self.candidates[keys[0]] = read_lines(self.files[keys[0]])
        return self.candidates[keys[0]]

    def _key(self, system: str) -> str:
        """Return a spelling of a system that ratings and file names share: they differ in dashes and in naming the pair (2019)."""
        return re.sub(r"[^a-z0-9.+]+", "-", system.lower()).replace(f".{self.lp}", "")


def only_file(files: Files, name: str) -> Path:
    """Return the first file of a name; FileNotFoundError names one that is missing."""
    if name not in files:
        raise FileNotFoundError(f"no file {name} anywhere beside the ratings; unpack the archive of that year's texts")
    return files[name][0]


def read_lines(file: Path) -> list[str]:
    """Read the lines of a file without the blanks around them."""
    return [line.strip() for line in text_lines(file)]
