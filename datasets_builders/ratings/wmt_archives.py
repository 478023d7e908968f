"""Read WMT ratings and their texts in the layout of the official archives, unpacked anywhere under some folders.

| years | ratings | texts |
|---|---|---|
| 2015, 2016 | `(DAseg.)newstest2016.human.cs-en` | `...source.cs-en`, `...reference.cs-en`, `...mt-system.cs-en` beside it |
| 2017 | `DA-seglevel.csv` | `newstest2017-csen-src.cs`, `newstest2017-csen-ref.en`, `newstest2017.<system>.cs-en` |
| 2017, out of English | `newstest2017-humaneval/**/ad-seg-scores-en-cs.csv` | as above |
| 2018 to 2020 | `newstest2018-humaneval/**/ad-seg-scores-cs-en.csv` | as in 2017, of that year |
| 2021, 2022 | `newstest2021-toen/ad-seg-scores-cs-en.csv` | `newstest2021.cs-en.all.xml`, `wmttest2022.cs-en.all.xml` |

`downloads` has the addresses of the archives and repositories.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from bleurt_repro.datasets_builders.ratings.rating_files import Rating, check_rating
from bleurt_repro.datasets_builders.ratings.wmt_xml import XmlTexts
from bleurt_repro.metric.files.records import text_lines

Files = dict[str, list[Path]]  # the paths of all files of some folders by file name, without .gz

logger = logging.getLogger(__name__)

LAYOUT = (
    "(DAseg.)newstest2015.human.LP, DA-seglevel.csv, newstest2018-humaneval/**/ad-seg-scores-LP.csv, "
    "newstest2021-toen/ad-seg-scores-LP.csv"
)
DASEG = re.compile(r"(?:DAseg\.)?newstest(201[56])\.human\.([a-z]{2}-[a-z]{2})")
DA_SEGLEVEL = "DA-seglevel.csv"
RR_SEGLEVEL = "RR-seglevel.csv"  # pairs of systems, which `relative_ranks` reads
AD_SEG_SCORES = re.compile(r"ad-seg-scores-([a-z]{2}-[a-z]{2})\.csv")
HUMANEVAL = re.compile(r"newstest(\d{4})-(?:humaneval|toen)")
# Up to 2017 the Metrics task collected separate ratings, 15 per segment; `ad-seg-scores` has those of the News task,
# which are read of 2017 only out of English, where the Metrics task rated two pairs.
FIRST_AD_SEG_SCORES = 2018
FIRST_FROM_ENGLISH = 2017
FIRST_XML = 2021
# Of the two files for zh-en in 2019, the one that the paper's authors read in their own import.
PREFERRED = "turkle-sntlevel"
# References rated as if they were translations, and the second half of a system name that has a "+" (2019).
NO_SYSTEMS = ("HUMAN", "RBMT.6722")
RENAMED = {"UAlacant_-_NM": "UAlacant_-_NMT+RBMT.6722"}
# The ratings of 2022 call Livonian lv, which is Latvian.
RENAMED_PAIRS = {(2022, "lv-en"): "liv-en"}
NO_REFERENCE = "NO REFERENCE AVAILABLE"


def rating_archives(files: Files) -> list[Path]:
    """Return the official files of ratings among `files`, oldest first."""
    return [*_daseg_files(files).values(), *files.get(DA_SEGLEVEL, [])[:1], *_ad_seg_scores_files(files).values()]


def read_archives(
    folders: str | Path | Iterable[str | Path], select: Callable[[str], bool] = lambda lp: True
) -> list[Rating]:
    """Read all official ratings under some folders.

    Segments whose reference is missing are left out, with a warning that counts them.

    Args:
        folders: folders where the archives are unpacked.
        select: function that returns whether to read a language pair; the texts of the others are not needed.

    Raises:
        FileNotFoundError: if the texts of a file of ratings are missing.
        ValueError: if a record is malformed; the message names file and line.
    """
    files = index_files(folders)
    texts = cache(lambda year, lp: Texts(files, year, lp))
    ratings: list[Rating] = []
    for (year, lp), file in _daseg_files(files).items():
        if select(lp):
            ratings.extend(_read_daseg(file, year, lp))
    ad_seg_scores = _ad_seg_scores_files(files)
    from_english = {lp for year, lp in ad_seg_scores if year == FIRST_FROM_ENGLISH}
    for file in files.get(DA_SEGLEVEL, [])[:1]:
        ratings.extend(_read_da_seglevel(file, lambda lp: select(lp) and lp not in from_english, texts))
    for (year, lp), file in ad_seg_scores.items():
        if not select(lp):
            continue
        if year >= FIRST_XML:
            ratings.extend(_read_news_systems(file, XmlTexts(files, year, lp)))
        else:
            ratings.extend(_read_ad_seg_scores(file, texts(year, lp)))
    complete = [rating for rating in ratings if rating["reference"] != NO_REFERENCE]
    if len(complete) < len(ratings):
        warnings.warn(f"left out {len(ratings) - len(complete)} ratings without a reference", stacklevel=2)
    return complete


def _daseg_files(files: Files) -> dict[tuple[int, str], Path]:
    """Return the file of ratings of each year and language pair."""
    matches = {match: paths[0] for name, paths in files.items() if (match := DASEG.fullmatch(name))}
    return dict(sorted(((int(match[1]), match[2]), path) for match, path in matches.items()))


def _read_daseg(file: Path, year: int, lp: str) -> Iterator[Rating]:
    """Read four parallel files: source, reference, output of one of the systems, standardised score."""
    names = ("source", "reference", "mt-system", "human")
    columns = [read_lines(file.with_name(file.name.replace(".human.", f".{name}."))) for name in names]
    if len(set(map(len, columns))) > 1:
        counts = ", ".join(f"{name} {len(column)}" for name, column in zip(names, columns, strict=True))
        raise ValueError(f"{file}: the four files of a language pair must be equally long, found {counts} lines")
    for number, (source, reference, candidate, score) in enumerate(zip(*columns, strict=True), start=1):
        texts = {"source": source, "reference": reference, "candidate": candidate}
        yield _rating(file, number, {"year": year, "lp": lp, "segment_id": number, "score": score, **texts})


def _read_da_seglevel(
    file: Path, select: Callable[[str], bool], texts: Callable[[int, str], Texts]
) -> Iterator[Rating]:
    """Read lines of pair, test set, system or several joined by "+", segment (from 1), standardised score."""
    for number, (lp, test_set, system, segment_id, score) in _fields(file):
        if not select(lp):
            continue
        record = {"lp": lp, "system": system, "segment_id": segment_id, "score": score}
        if not re.fullmatch(r"newstest\d{4}", test_set):
            raise ValueError(f"{file}, line {number}: expected newstestYEAR, found {test_set}")
        year = int(test_set[-4:])
        segment = texts(year, lp).segment(file, number, system, segment_id)
        yield _rating(file, number, {"year": year, **record, **segment})


def _ad_seg_scores_files(files: Files) -> dict[tuple[int, str], Path]:
    """Return the file of ratings of each year and language pair."""
    candidates: dict[tuple[int, str], list[Path]] = {}
    for name, paths in files.items():
        if match := AD_SEG_SCORES.fullmatch(name):
            for path in paths:
                year = next((int(digits) for folder in path.parts for digits in HUMANEVAL.findall(folder)), 0)
                if year >= (FIRST_FROM_ENGLISH if match[1].startswith("en-") else FIRST_AD_SEG_SCORES):
                    lp = RENAMED_PAIRS.get((year, match[1]), match[1])
                    candidates.setdefault((year, lp), []).append(path)
    for (year, lp), paths in candidates.items():
        preferred = [path for path in paths if any(PREFERRED in folder for folder in path.parts)]
        if len(paths) > 1 and len(preferred) != 1:
            raise ValueError(f"two files of ratings of {lp}, {year}: {', '.join(map(str, paths))}; remove one")
        candidates[year, lp] = preferred or paths
    return {key: paths[0] for key, paths in sorted(candidates.items())}


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
        yield _rating(file, number, {**record, **texts.segment(file, number, system, segment_id)})
    _log_left_out(file, left_out)


def _read_news_systems(file: Path, texts: XmlTexts) -> Iterator[Rating]:
    """Read lines of system and its number, segment (see `XmlTexts`), raw score, standardised score, annotations."""
    left_out: Counter[str] = Counter()
    for number, (numbered_system, segment_number, raw_score, score, n_annotations) in _fields(file):
        system = re.sub(r"\.\d+$", "", numbered_system)
        if system in NO_SYSTEMS:
            left_out[system] += 1
            continue
        try:
            segment = texts.segment(system, segment_number)
        except ValueError as error:
            raise ValueError(f"{file}, line {number}: {error}") from error
        record = {"year": texts.year, "lp": texts.lp, "raw_score": raw_score, "score": score}
        yield _rating(file, number, {**record, "n_annotations": n_annotations, **segment})
    _log_left_out(file, left_out)


def _log_left_out(file: Path, left_out: Counter[str]) -> None:
    for system, count in left_out.items():
        logger.info("%s: left out %d ratings of %s, which is not a system", file, count, system)


def _rating(file: Path, number: int, record: Rating) -> Rating:
    record = {**record, "reference": record["reference"] or NO_REFERENCE}
    try:
        rating = check_rating(record, ("year", "lp", "segment_id", "reference", "candidate", "score"))
    except ValueError as error:
        raise ValueError(f"{file}, line {number}: {error}") from error
    return {**rating, "segment_id": int(rating["segment_id"])}


def _fields(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and five fields of each line of a table with blanks between its columns and a header."""
    for number, line in enumerate(read_lines(file)[1:], start=2):
        fields = line.split()
        if len(fields) != 5:
            raise ValueError(f"{file}, line {number}: expected 5 fields, found {len(fields)}")
        yield number, fields


def index_files(folders: str | Path | Iterable[str | Path]) -> Files:
    """Return the paths of all files under some folders by file name without .gz, each list sorted by path."""
    files: Files = {}
    for folder in [folders] if isinstance(folders, (str, Path)) else folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                files.setdefault(path.name.removesuffix(".gz"), []).append(path)
    return files


class Texts:
    """Sources, references and outputs of the systems, of a year up to 2020 and a language pair.

    Args:
        files: result of `index_files`.
        year: year of the test set.
        lp: language pair, such as "de-en".

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

    def segment(self, file: Path, number: int, system: str, segment_id: str) -> dict[str, str]:
        """Return the texts of one rating.

        Args:
            file: file of the ratings, for messages.
            number: line in that file, for messages.
            system: name in the ratings; systems joined by "+" had the same output.
            segment_id: line of the test set, from 1.

        Returns:
            Source, reference and candidate.

        Raises:
            FileNotFoundError: if there is no file with the output of the system.
            ValueError: if there is no such segment.
        """
        location = f"{file}, line {number}"
        columns = {"source": self.sources, "reference": self.references, "candidate": self._output(location, system)}
        if not segment_id.isdecimal() or not 1 <= int(segment_id) <= min(map(len, columns.values())):
            raise ValueError(f"{location}: no segment {segment_id} in the texts of {self.lp}, {self.year}")
        return {name: column[int(segment_id) - 1] for name, column in columns.items()}

    def _output(self, location: str, system: str) -> list[str]:
        # Systems whose outputs are the same were rated once: any of them has the text.
        keys = [key for key in map(self._key, (system, *system.split("+"))) if key in self.files]
        if not keys:
            raise FileNotFoundError(
                f"{location}: no output of {system}; looked for newstest{self.year}.{system}.{self.lp}"
            )
        if keys[0] not in self.candidates:
            self.candidates[keys[0]] = read_lines(self.files[keys[0]])
        return self.candidates[keys[0]]

    def _key(self, system: str) -> str:
        """Return a spelling that ratings and file names share: they differ in dashes and in naming the pair (2019)."""
        return re.sub(r"[^a-z0-9.+]+", "-", system.lower()).replace(f".{self.lp}", "")


def only_file(files: Files, name: str) -> Path:
    """Return the first file of a name, or raise FileNotFoundError."""
    if name not in files:
        raise FileNotFoundError(f"no file {name} anywhere beside the ratings; unpack the archive of that year's texts")
    return files[name][0]


def read_lines(file: Path) -> list[str]:
    """Return the lines of a file without the blanks around them."""
    return [line.strip() for line in text_lines(file)]
