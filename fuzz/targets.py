"""One target for each reader of files: bytes in, no unexpected exception out.

A target writes the bytes to a file as a user would have it, and reads it. ValueError, TypeError and OSError that name the file
are expected, since the command line prints them in one line; any other exception is a finding.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

EXPECTED_ERRORS = (ValueError, TypeError, OSError)
KNOWN_SETTINGS = ("seed", "model", "learning_rate", "output_dir", "optim_args")


@contextlib.contextmanager
def clear_errors(*names: str) -> Iterator[None]:
    """Ignore expected errors that name one of the files.

    Raises:
        AssertionError: if an expected error names none of them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except EXPECTED_ERRORS as error:
            if not any(name in str(error) for name in names):
                raise AssertionError(f"{type(error).__name__} names none of {names}: {error}") from error


@contextlib.contextmanager
def folder_with(**files: bytes) -> Iterator[Path]:
    """Make a temporary folder of files; "__" in a name stands for the dot."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        for file, content in files.items():
            (Path(name) / file.replace("__", ".")).write_bytes(content)
        yield Path(name)


def fuzz_pairs(data: bytes) -> None:
    """Read text to score: JSON lines of pairs, or segments in any format; the first byte selects the format."""
    from bleurt_repro.metric.files.texts import COLUMNS, SUFFIXES, PairStream, read_segments

    form, content = data[:1] or b"\0", data[1:]
    name = f"text{(*SUFFIXES, '.pairs')[form[0] % (len(SUFFIXES) + 1)]}"
    with folder_with(**{name.replace(".", "__"): content}) as folder, clear_errors(name):
        path = str(folder / name)
        if name.endswith(".pairs"):
            with PairStream(pairs=path) as stream:
                list(stream.windows(0, stream.survey().records, 3))
        else:
            read_segments(path, list(COLUMNS)[form[0] // 16 % 3])


def fuzz_ratings(data: bytes) -> None:
    """Read human ratings or raw texts in any format; the first byte selects the format."""
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records, ratings_features
    from bleurt_repro.datasets_builders.synthetic.raw_texts import read_rows

    forms = (".csv", ".tsv", ".jsonl", ".csv.gz", ".jsonl.gz", ".parquet")
    form, content = data[:1] or b"\0", data[1:]
    name = f"ratings{forms[form[0] % len(forms)]}"
    with folder_with(**{name.replace(".", "__"): content}) as folder, clear_errors(name):
        if form[0] >= 128:
            list(read_rows(str(folder / name)))
            return
        import pyarrow

        ratings = rating_records(folder / name)
        pyarrow.Table.from_pylist(ratings, schema=ratings_features(ratings).arrow_schema)


def fuzz_configs(data: bytes) -> None:
    """Read the YAML of training or of synthetic pairs, or an ensemble's JSON; the first byte selects which."""
    from bleurt_repro.datasets_builders.synthetic.config import read_config
    from bleurt_repro.metric.loading.ensemble import read_ensemble
    from bleurt_repro.training.arguments import read_yaml

    form, content = data[:1] or b"\0", data[1:]
    with folder_with(config__yaml=content, ensemble__json=content) as folder:
        with clear_errors("config.yaml", "ensemble.json"):
            if form[0] % 3 == 0:
                for value in read_yaml(folder / "config.yaml", KNOWN_SETTINGS).values():
                    str(value)
            elif form[0] % 3 == 1:
                read_config(folder / "config.yaml").to_dict()
            else:
                read_ensemble(folder)


def fuzz_archives(data: bytes) -> None:
    """Unpack a zip, as of an official checkpoint: no file outside the folder, and none much larger than the zip."""
    from bleurt_repro.metric.convert.convert import MOST_GROWTH, SMALL, unpack_zip

    with folder_with(archive__zip=data) as folder:
        with clear_errors("archive.zip"):
            unpack_zip(folder / "archive.zip", folder / "inside")
        assert {path.name for path in folder.iterdir()} <= {"archive.zip", "inside"}
        files = [path for path in (folder / "inside").rglob("*") if path.is_file() or path.is_symlink()]
        assert not any(path.is_symlink() for path in files)
        assert sum(path.stat().st_size for path in files) <= max(SMALL, MOST_GROWTH * len(data))


def fuzz_settings(data: bytes) -> None:
    """Read bleurt_config.json and bert_config.json of an official checkpoint, or config.json of a bleurt-pytorch one."""
    from types import SimpleNamespace

    from bleurt_repro.metric.calibration import Calibration
    from bleurt_repro.metric.convert.official_checkpoint import load_official
    from bleurt_repro.metric.layout import Layout
    from bleurt_repro.metric.loading.bleurt_pytorch import load_bleurt_pytorch
    from bleurt_repro.metric.loading.limits import read_settings

    form, content = data[:1] or b"\0", data[1:]
    first, _, second = content.partition(b"\n--\n")
    vocabulary = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n"
    files = {
        "bleurt_config__json": first,
        "bert_config__json": second,
        "config__json": first,
        "vocab__txt": vocabulary,
    }
    with folder_with(**files) as folder, clear_errors(""):
        if form[0] % 3 == 0:
            load_official(folder)
        elif form[0] % 3 == 1:
            load_bleurt_pytorch(folder, read_settings(folder / "config.json"))
        else:
            config = SimpleNamespace(bleurt=read_settings(folder / "config.json"), max_position_embeddings=512)
            Layout.from_config(config)
            Calibration.from_config(config)


def fuzz_weights(data: bytes) -> None:
    """Read a safetensors file as the weights of a checkpoint, and check it as before publishing."""
    from bleurt_repro.hub_cards.checks import check_files
    from bleurt_repro.hub_cards.contents import File
    from bleurt_repro.metric.loading.bleurt_pytorch import read_weights

    with folder_with(model__safetensors=data) as folder:
        with clear_errors("model.safetensors"):
            read_weights(folder, "bert.")
        check_files([File("model.safetensors", folder / "model.safetensors")])


def fuzz_uploads(data: bytes) -> None:
    """Read a file that is uploaded to the demo, and show it with all of its text escaped."""
    from bleurt_repro.metric.demo.highlight import differences_html
    from bleurt_repro.metric.demo.visitor_input import read_upload
    from bleurt_repro.metric.files.tables import FORMULA_STARTS, csv_text
    from bleurt_repro.metric.files.texts import COLUMNS, SUFFIXES

    form, content = data[:1] or b"\0", data[1:]
    name = f"upload{SUFFIXES[form[0] % len(SUFFIXES)]}"
    with folder_with(**{name.replace(".", "__"): content}) as folder:
        texts: list[str] = []
        with clear_errors(name):
            segments = read_upload(str(folder / name), list(COLUMNS)[form[0] // 16 % 3])
            texts = [text for item in segments[:20] for text in ([item] if isinstance(item, str) else item)]
        for text in texts:
            html = differences_html([texts[0]], text)
            visible = re.sub(r" <del>.*?</del>|<del>.*?</del> ", "", html, flags=re.DOTALL)
            assert unescape(visible.replace("<mark>", "").replace("</mark>", "")) == text
            assert not csv_text(["text"], [[text]]).split("\r\n", 1)[1].startswith(FORMULA_STARTS)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "pairs": fuzz_pairs,
    "ratings": fuzz_ratings,
    "configs": fuzz_configs,
    "archives": fuzz_archives,
    "settings": fuzz_settings,
    "weights": fuzz_weights,
    "uploads": fuzz_uploads,
}


def seeds(target: str, folder: Path) -> None:
    """Copy the stored cases of a target, good and bad, into a folder to start from."""
    stored = Path(__file__).resolve().parents[1] / "tests" / "fuzz_corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(stored.glob("*")):
        shutil.copy(path, folder)
