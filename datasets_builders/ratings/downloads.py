"""Download the official sources of ratings: the addresses, checks, and downloads that resume after a stop.

A file is downloaded once, into the cache of `datasets`. A download that was cut continues where it stopped; a file
whose hash is known is compared with it; archives are unpacked beside themselves.
"""

from __future__ import annotations

import gzip
import shutil
import tarfile
import warnings
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from bleurt_repro.datasets_builders.ratings.wmt_sources import matches
from bleurt_repro.metric.files.writing import error_context
from bleurt_repro.metric.loading.checksums import file_hash
from bleurt_repro.metric.loading.hub import http_error, status, transport_errors
from bleurt_repro.metric.loading.quiet import first_line

if TYPE_CHECKING:
    from datasets import DownloadManager

ARCHIVES = (".tar.gz", ".tgz")
FOLDER = "bleurt_repro"  # in the cache folder for downloads


@dataclass(frozen=True)
class Source:
    """A file of an official source.

    Attributes:
        url: address of the file.
        path: path of the file in the folder of downloads; an archive is unpacked beside it.
        sha256: SHA-256 of the file, if known; files at a commit's address cannot change otherwise.
        nested: archives in the unpacked archive that are unpacked as well.
    """

    url: str
    path: str
    sha256: str | None = None
    nested: tuple[str, ...] = ()


# Addresses -----------------------------------------------------------------------------------------------------------
# Ratings of 2015 to 2020: https://www.statmt.org/wmt17/metrics-task.html and the pages of results of the other years.
_RATINGS = "https://www.scss.tcd.ie/~ygraham"
_GITHUB = "https://raw.githubusercontent.com"
WMT21 = f"{_GITHUB}/wmt-conference/wmt21-news-systems/f41750dadbf2ba6ab01ca5380347d253298a3427"
WMT22 = f"{_GITHUB}/wmt-conference/wmt22-news-systems/20240a2e96a50e823ea8cdf37fd8af52547146e3"
MLQE_PE = f"{_GITHUB}/sheffieldnlp/mlqe-pe/2a670a1140416cf80507b5a829659383c878feb8"
MQM = f"{_GITHUB}/google/wmt-mqm-human-evaluation/7fadea281aff8db61cc72fc3d469a4dca78b82a6"

WMT_ARCHIVES: dict[int, tuple[Source, ...]] = {
    2015: (Source(f"{_RATINGS}/DAseg-wmt-newstest2015.tar.gz", "wmt15/DAseg-wmt-newstest2015.tar.gz"),),
    2016: (Source(f"{_RATINGS}/DAseg-wmt-newstest2016.tar.gz", "wmt16/DAseg-wmt-newstest2016.tar.gz"),),
    2017: (
        Source(
            "http://ufallab.ms.mff.cuni.cz/~bojar/wmt17-metrics-task-package.tgz",
            "wmt17/wmt17-metrics-task-package.tgz",
            nested=("wmt17-metrics-task-no-hybrids.tgz",),
        ),
    ),
    2018: (
        Source(f"{_RATINGS}/newstest2018-humaneval.tar.gz", "wmt18/newstest2018-humaneval.tar.gz"),
        Source(
            "http://ufallab.ms.mff.cuni.cz/~bojar/wmt18/wmt18-metrics-task-nohybrids.tgz",
            "wmt18/wmt18-metrics-task-nohybrids.tgz",
        ),
    ),
    2019: (
        Source(f"{_RATINGS}/newstest2019-humaneval.tar.gz", "wmt19/newstest2019-humaneval.tar.gz"),
        Source(
            "http://ufallab.ms.mff.cuni.cz/~bojar/wmt19/wmt19-submitted-data-v3-txt-minimal.tgz",
            "wmt19/wmt19-submitted-data-v3-txt-minimal.tgz",
        ),
    ),
}
# Out of English, the ratings of 2017 are those of the News task; this copy of the official archive is the one known.
WMT17_RATINGS = f"{_GITHUB}/jjzha/translationese/a6fb39e5de39d84d11be078e8ee27f346118cc6f"
WMT17_FROM_ENGLISH = ("en-cs", "en-de", "en-fi", "en-lv", "en-ru", "en-tr", "en-zh")
# From 2021 on, a file of ratings and a file of texts per language pair. The ratings of 2022 call Livonian "lv".
WMT_PAIRS = {
    2021: ("cs-en", "de-en", "ha-en", "is-en", "ja-en", "ru-en", "zh-en"),
    2022: ("cs-en", "de-en", "ja-en", "liv-en", "ru-en", "uk-en", "zh-en"),
}
WMT_RATINGS = {
    2021: (WMT21, "humaneval/newstest2021-toen/ad-seg-scores-{lp}.csv", "xml/newstest2021.{lp}.all.xml"),
    2022: (WMT22, "humaneval/DA/newstest2022-toen/ad-seg-scores-{lp}.csv", "xml/wmttest2022.{lp}.all.xml"),
}
WEBNLG = Source(
    "https://gitlab.com/shimorina/webnlg-human-evaluation/-/archive/master/webnlg-human-evaluation-master.tar.gz",
    "webnlg/webnlg-human-evaluation-master.tar.gz",
)
# Hashes of files that were read: the other files of these repositories are fixed by the commit in their address.
SHA256 = {
    "wmt21/humaneval/newstest2021-toen/ad-seg-scores-is-en.csv": (
        "69c2427f6b5cc8944c61aa228b71ea0921c8aa76236d6f55e6d946a1959e813c"
    ),
    "wmt21/xml/newstest2021.is-en.all.xml": "5dfcc603822abeaf19cf54633d3ce4e9b30e76f0a03d5b485ffad2e1c2c37298",
    "wmt22/humaneval/DA/newstest2022-toen/ad-seg-scores-ru-en.csv": (
        "e2e792cbed0b8b0b3cb76d1aba7c2f1e69322eee92ab2363e1feaa30bc13eacd"
    ),
    "wmt22/xml/wmttest2022.ru-en.all.xml": "c628d6efdcb8f7d93b5c11b7b5fe26205b2bbe6f7222bb7d17b3272cfde81134",
}


def wmt_sources(years: Iterable[int], language_pairs: Sequence[str]) -> list[Source]:
    """Return the sources of the WMT ratings of some years.

    Args:
        years: years from 2015 to 2022; for 2020, which has no address that a program can read, it warns.
        language_pairs: patterns such as "de-en" or "*-en"; of 2021 and later, and of 2017 out of English, only their
            files are sources.
    """
    sources: list[Source] = []
    for year in years:
        sources += WMT_ARCHIVES.get(year, ())
        if year == 2020:
            warnings.warn(
                "the ratings of WMT 2020 are left out, since the outputs of its systems have no address that a program "
                "can read; to include them, unpack the archives of all years under one folder, and give it as data_dir",
                stacklevel=3,
            )
        for lp in WMT17_FROM_ENGLISH if year == 2017 else ():
            if matches(lp, language_pairs):
                name = f"newstest2017-humaneval/analysis/ad-seg-scores-{lp}.csv"
                sources.append(Source(f"{WMT17_RATINGS}/{name}", f"wmt17/{name}"))
        for lp in WMT_PAIRS.get(year, ()):
            if matches(lp, language_pairs):
                base, ratings, texts = WMT_RATINGS[year]
                for name in (ratings.format(lp="lv-en" if lp == "liv-en" else lp), texts.format(lp=lp)):
                    path = f"wmt{year % 100}/{name}"
                    sources.append(Source(f"{base}/{name}", path, SHA256.get(path)))
    return sources


def download(sources: Iterable[Source], dl_manager: DownloadManager | None = None) -> list[Path]:
    """Download sources that are not there yet, and unpack archives.

    Args:
        sources: files to download.
        dl_manager: download manager of a builder, whose cache folder is used; default: that of `datasets`.

    Returns:
        The folders that have the files, one per first folder in the paths of the sources, in order.

    Raises:
        FileNotFoundError: if a file cannot be downloaded; the message names its address.
        ValueError: if a file differs from its recorded hash, or is not an archive.
    """
    from datasets import DownloadManager, config

    manager = dl_manager or DownloadManager()
    root = Path(manager.download_config.cache_dir or config.DOWNLOADED_DATASETS_PATH) / FOLDER
    folders = {}
    for source in sources:
        path = _fetch(source, root / source.path, manager.download_config.force_download)
        manager.download(str(path))  # it records the size
        if path.name.endswith(ARCHIVES):
            folder = _unpack(path)
            for nested in source.nested:
                for archive in sorted(folder.rglob(nested)):
                    _unpack(archive)
        first = Path(source.path).parts[0]
        folders[first] = root / first
    return list(folders.values())


def _fetch(source: Source, path: Path, force: bool) -> Path:
    """Download a file, unless it is there, and check its hash."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock")):
        if path.is_file() and not force:
            return path
        partial = path.with_name(f"{path.name}.partial")
        with partial.open("wb" if force else "ab") as file:
            _transfer(source, file)
        if source.sha256 and (found_hash := file_hash(partial).hex()) != source.sha256:
            partial.unlink()
            raise ValueError(
                f"{source.url} has changed or was damaged on its way: expected the SHA-256 {source.sha256}, found "
                f"{found_hash}; try again, or give the folder of a good copy as data_dir"
            )
        partial.replace(path)
    return path


def _transfer(source: Source, file: BinaryIO) -> None:
    """Append what is missing of a source to an open file."""
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.file_download import http_get

    # Compressed on its way, a file could not be resumed at a byte of the original.
    failures: tuple[type[Exception], ...] = (HfHubHTTPError, OSError, *transport_errors())
    options: dict[str, Any] = {
        "headers": {"Accept-Encoding": "identity"},
        "displayed_filename": Path(source.path).name,
    }
    try:
        try:
            http_get(source.url, file, resume_size=file.tell(), **options)
        except HfHubHTTPError as error:
            if status(error) != 416:  # a range beyond the end: the file was complete, or has changed since
                raise
            file.seek(0)
            file.truncate()
            http_get(source.url, file, **options)
    except failures as error:
        answer = http_error(error)
        reason = f"the server answered {status(error)}" if answer else first_line(error) or type(error).__name__
        raise FileNotFoundError(
            f"{source.url} cannot be downloaded: {reason}; try again, which resumes the download, or download it "
            "elsewhere, unpack it, and give its folder as data_dir"
        ) from error


def _unpack(archive: Path) -> Path:
    """Unpack an archive beside itself, unless that was done, and return the folder."""
    folder = archive.with_name(f"{archive.name}.unpacked")
    if folder.is_dir():
        return folder
    unfinished = archive.with_name(f"{archive.name}.unpacking")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        with error_context(unfinished), tarfile.open(archive) as members:
            members.extractall(unfinished, filter="data")
    except (
        tarfile.TarError,
        EOFError,
        gzip.BadGzipFile,
        zlib.error,
    ) as error:  # a full disk is no fault of the archive
        archive.unlink()  # so that the next try downloads it again
        raise ValueError(f"{archive} cannot be unpacked ({first_line(error)}), and was removed: try again") from error
    unfinished.replace(folder)
    return folder
