"""Convert official BLEURT checkpoints, and those of bleurt-pytorch, to folders that plain `transformers` opens.

bleurt-repro convert BLEURT-20.zip BLEURT-20-converted
bleurt-repro convert --check BLEURT-20

A zip is unpacked so that nothing lands outside the folder and nothing grows without bound. The new checkpoint's scores
are compared with published ones, if there are any.
"""

from __future__ import annotations

import errno
import math
import shutil
import struct
import tempfile
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bleurt_repro.metric.convert.official_checkpoint import SETTINGS, load_official
from bleurt_repro.metric.files.records import numbered_lines, open_input, parse_json
from bleurt_repro.metric.files.writing import durable_replace, error_context, temporary_folder
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.architecture import GELU_NAMES
from bleurt_repro.metric.loading.bleurt_pytorch import is_bleurt_pytorch, load_bleurt_pytorch
from bleurt_repro.metric.loading.checksums import write_checksums
from bleurt_repro.metric.loading.find import find_checkpoint, known_name
from bleurt_repro.metric.loading.hub import HUB_FILES
from bleurt_repro.metric.loading.limits import read_settings
from bleurt_repro.metric.loading.official_names import OFFICIAL_CHECKPOINTS
from bleurt_repro.metric.loading.open import load_checkpoint
from bleurt_repro.metric.loading.quiet import quiet_transformers
from bleurt_repro.metric.loading.save import record_for_other_tools

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from bleurt_repro.metric.forward.encoding import PairEncoder

SCORES = "scores.jsonl"
# Official scores that others have published, in a file per checkpoint; each line names its source.
PUBLISHED = Path(__file__).parent / "published"
# They were computed by TensorFlow on other machines.
PUBLISHED_DIFFERENCE = 1e-4
# What else is fetched of a Hub repository to convert: official checkpoints as they are, or their archive.
OFFICIAL_FILES = ["variables/variables.*", "saved_model.pb", "*.vocab", SCORES, "*.zip"]
KINDS = (
    f"expected an official BLEURT checkpoint (a folder or zip with {SETTINGS}, bert_config.json and variables/) "
    'or one in bleurt-pytorch\'s format (config.json with model_type "bleurt")'
)
# float32 arithmetic in another order moves an official score by about 2e-6; a wrong GELU moves it by 4e-4.
MAX_DIFFERENCE = 2e-5
FIELDS = '{"reference": text, "candidate": text, "score": number} and, if known, "input_ids", a list of numbers'
# Weights hardly compress; the official archives unpack to less than twice their size. A bomb is a thousandfold.
MOST_GROWTH = 20
SMALL = 16 << 20  # bytes; below this, growth does no harm
MOST_FILES = 1000
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What `zipfile` raises for files that are not sound zips.
DAMAGE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError,
    OverflowError, UnicodeError,
)  # fmt: skip
# What the system says of names that cannot be: too long, of odd characters, or of a file and a folder at once.
NAMES = (errno.EINVAL, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EILSEQ)


@dataclass(frozen=True)
class ScoredPair:
    """A published score: number of its line in the file, the pair, the score, and the token ids if recorded."""

    line: int
    reference: str
    candidate: str
    score: float
    input_ids: list[int] | None


@dataclass(frozen=True)
class Parity:
    """Result of comparing a checkpoint's scores with published ones.

    Attributes:
        pairs: number of scores compared.
        largest: largest difference.
        worst_line: line of the largest difference in the file of scores.
        with_ids: number of pairs with token ids in the file.
        same_ids: number of pairs whose token ids are identical.
    """

    pairs: int
    largest: float
    worst_line: int
    with_ids: int
    same_ids: int

    def __str__(self) -> str:
        ids = f", token ids identical in {self.same_ids} of {self.with_ids}" if self.with_ids else ""
        return f"{self.pairs} pairs, largest difference {self.largest:.1e}{ids}"


@dataclass(frozen=True)
class Conversion:
    """Result of a conversion.

    Attributes:
        folder: folder of the converted checkpoint.
        architecture: class of the model in `transformers`.
        max_length: most tokens of a pair that it reads.
        activation: name in `transformers` of the GELU that it computes.
        parity: comparison of its scores with published ones, if there were any.
    """

    folder: Path
    architecture: str
    max_length: int
    activation: str
    parity: Parity | None


def convert(
    source: str,
    destination: str,
    *,
    max_difference: float | None = None,
    scores: str | None = None,
    gelu: str = "auto",
) -> Conversion:
    """Convert a checkpoint; the destination appears when everything is checked, or not at all.

    Args:
        source: folder, zip, Hub id or official name.
        destination: folder to write; it must not exist, or be empty.
        max_difference: largest difference from the scores to allow; 2e-5 by default.
        scores: file of JSON lines with reference, candidate, score and, if recorded, input_ids, to compare with; by
            default scores.jsonl of the source, if it has one.
        gelu: "tanh", "erf", or "auto": what the official graph says (saved_model.pb), else the official code's tanh;
            see `load_bleurt_pytorch` for that format.

    Raises:
        ValueError: if the source is damaged or of another kind, the destination is taken, or scores or token ids
            differ.
    """
    if gelu not in ("auto", *GELU_NAMES):
        raise ValueError(f"gelu must be auto, {' or '.join(GELU_NAMES)}, found {gelu!r}")
    target = Path(destination).expanduser().absolute()
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ValueError(f"{destination} exists already: name another destination or remove it")
    beside = next(folder for folder in target.parents if folder.is_dir())
    with temporary_folder(beside / target.name) as workspace:
        folder = _folder(source, workspace)
        model, tokenizer = _load(source, folder, gelu)
        converted = workspace / "checkpoint"
        with error_context(target):
            _save(model, tokenizer, converted)
        parity = _check_scores(folder, converted, scores, max_difference)
        target.parent.mkdir(parents=True, exist_ok=True)
        durable_replace(converted, target)
    length = Layout.from_config(model.config).max_length
    return Conversion(target, type(model).__name__, length, model.config.hidden_act, parity)


def check_published(source: str) -> Parity:
    """Compare a checkpoint's scores with those in `PUBLISHED`; it is converted to a temporary folder if need be.

    Args:
        source: official name, or a folder, zip or Hub id whose last part is one, such as BLEURT-20.zip.

    Raises:
        ValueError: if there are no published scores of the name, the checkpoint cannot be found or converted, or a
            score differs by more than `PUBLISHED_DIFFERENCE`.
    """
    files = {file.stem.lower(): file for file in sorted(PUBLISHED.glob("*.jsonl"))}
    name = Path(source).name.partition("@")[0].lower().removesuffix(".zip")
    if name not in files:
        raise ValueError(
            f"there are no published scores of {source}: expected {' or '.join(file.stem for file in files.values())}, "
            "or a folder or zip of that name"
        )
    with tempfile.TemporaryDirectory() as workspace:
        folder = _folder(source, Path(workspace))
        if (folder / SETTINGS).is_file() or is_bleurt_pytorch(folder) or _official_length(source):
            model, tokenizer = _load(source, folder, "auto")
            folder = Path(workspace) / files[name].stem
            _save(model, tokenizer, folder)
        parity = measure_parity(str(folder), files[name])
    if parity.largest > PUBLISHED_DIFFERENCE:
        raise ValueError(
            f"the scores of {source} differ from published ones: {parity}; limit {PUBLISHED_DIFFERENCE:g}"
        )
    return parity


def _official_length(source: str) -> int | None:
    """Return the length that an official name stands for; its public copies may not record it."""
    official = None if Path(source).expanduser().exists() else OFFICIAL_CHECKPOINTS.get(known_name(source))
    return official.max_length if official else None


def _folder(source: str, workspace: Path) -> Path:
    """Return the folder of a checkpoint; a zip is unpacked into the workspace."""
    path = Path(source).expanduser()
    if not path.is_file():
        path = find_checkpoint(source, [*HUB_FILES, *OFFICIAL_FILES])
        zips = sorted(path.glob("*.zip"))
        if _is_checkpoint(path) or len(zips) != 1:
            return path
        path = zips[0]
    if path.suffix.lower() != ".zip" and not zipfile.is_zipfile(path):
        raise ValueError(f"{source} is a file but no zip: {KINDS}")
    unpacked = workspace / "unpacked"
    unpack_zip(path, unpacked)
    return next((folder for folder in (unpacked, *sorted(unpacked.glob("*"))) if _is_checkpoint(folder)), unpacked)


def _is_checkpoint(folder: Path) -> bool:
    return (folder / SETTINGS).is_file() or (folder / "config.json").is_file()


def _load(source: str, folder: Path, gelu: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load model and tokenizer from a folder in one of the two formats."""
    max_length = _official_length(source)
    try:
        if (folder / SETTINGS).is_file():
            return load_official(folder, gelu)
        if is_bleurt_pytorch(folder) or max_length:
            settings = read_settings(folder / "config.json")
            return load_bleurt_pytorch(folder, settings, max_length=max_length, gelu=gelu)
        if (folder / "config.json").is_file():
            raise ValueError(
                "it is in transformers' own format already: use it as the checkpoint, without converting it"
            )
        raise ValueError(KINDS)
    except ValueError as error:
        raise ValueError(f"{source} cannot be converted: {error}") from error


def _save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    with quiet_transformers():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    record_for_other_tools(folder)
    for file in folder.iterdir():  # the weights are written for the owner alone
        shutil.copymode(folder / "config.json", file)
    write_checksums(folder)


def _check_scores(folder: Path, converted: Path, scores: str | None, max_difference: float | None) -> Parity | None:
    """Open the new checkpoint and compare its scores with those of a file, if there is one."""
    file = Path(scores).expanduser() if scores else folder / SCORES
    if not scores and not file.is_file():
        if max_difference is not None:
            raise ValueError(f"nothing to compare with: the source has no {SCORES}; name a file with --scores")
        load_checkpoint(str(converted))
        return None
    parity = measure_parity(str(converted), file)
    limit = MAX_DIFFERENCE if max_difference is None else max_difference
    if parity.same_ids < parity.with_ids:
        raise ValueError(f"converted, but the token ids differ from those in {file}: {parity}")
    if parity.largest > limit:
        raise ValueError(
            f"converted, but the scores miss {file} (line {parity.worst_line}): {parity}; limit {limit:g}"
        )
    return parity


# --- zips from elsewhere --------------------------------------------------------------------------------------------


def unpack_zip(archive: Path, folder: Path) -> None:
    """Unpack the files of a zip into a new folder.

    `zipfile` itself takes drives, leading slashes and ".." out of names, writes a link as a plain file, and reads no
    more of a member than its declared size.

    Args:
        archive: file of the zip.
        folder: folder to unpack to; it must not exist.

    Raises:
        ValueError: if the zip is damaged or encrypted, holds a name twice, or would grow beyond reason. What was
            unpacked until then is left for the caller to remove.
    """
    try:
        with zipfile.ZipFile(archive) as zipped:
            _check_members(archive, zipped.infolist())
            for member in zipped.infolist():
                zipped.extract(member, folder)
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno not in NAMES:  # a fault of this machine, not of the zip
            raise
        raise ValueError(f"{archive} is no sound zip ({error}): download it again") from error


def _check_members(archive: Path, members: list[zipfile.ZipInfo]) -> None:
    size, unpacked = archive.stat().st_size, sum(member.file_size for member in members)
    if len(members) > MOST_FILES:
        raise ValueError(f"{archive} holds {len(members)} files; a checkpoint has fewer than {MOST_FILES}")
    if unpacked > max(SMALL, MOST_GROWTH * size):
        raise ValueError(f"{archive} would grow from {size} to {unpacked} bytes, which no checkpoint does")
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise ValueError(f"{archive} holds {next(name for name in names if names.count(name) > 1)!r} twice")
    if "" in names:
        raise ValueError(f"{archive} holds a file without a name")
    for member in members:
        if member.compress_type not in METHODS:
            raise ValueError(f"{archive} is packed in an unknown way (method {member.compress_type}): zip it again")


# --- published scores -----------------------------------------------------------------------------------------------


def measure_parity(checkpoint: str, scores: Path) -> Parity:
    """Score pairs on the CPU in float32, and compare the scores with published ones.

    Args:
        checkpoint: name, folder or Hub id, as for `BleurtScorer`.
        scores: file of JSON lines with reference, candidate, score and, if recorded, the model's input_ids.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file holds no scores, or naming the line that is malformed.
    """
    from bleurt_repro.metric.forward.encoding import PairEncoder
    from bleurt_repro.metric.scorer import BleurtScorer

    pairs = read_scored_pairs(scores)
    scorer = BleurtScorer(checkpoint, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that long pairs are cut is what is being compared, and no news
        computed = scorer.score(references=[p.reference for p in pairs], candidates=[p.candidate for p in pairs])
    differences = [_difference(score, pair.score) for score, pair in zip(computed, pairs, strict=True)]
    worst = max(range(len(pairs)), key=differences.__getitem__)
    encoder = PairEncoder(scorer.tokenizer, scorer.layout)
    same = [_ids(encoder, pair) == pair.input_ids for pair in pairs if pair.input_ids is not None]
    return Parity(len(pairs), differences[worst], pairs[worst].line, len(same), sum(same))


def read_scored_pairs(file: Path) -> list[ScoredPair]:
    """Read JSON lines of published scores; blank lines and other fields are ignored.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no scores, or naming the line that is malformed.
    """
    if not file.is_file():
        raise FileNotFoundError(f"no file of scores {file}")
    with open_input(file) as opened:
        lines = numbered_lines(opened, str(file))
        pairs = [_scored_pair(line, number, file) for number, line in lines if line.strip()]
    if not pairs:
        raise ValueError(f"{file} holds no scores: expected lines of {FIELDS}")
    return pairs


def _scored_pair(line: str, number: int, file: Path) -> ScoredPair:
    location = f"{file}, line {number}"
    record = parse_json(line, location, f"each line is {FIELDS}")
    try:
        pair = ScoredPair(number, record["reference"], record["candidate"], record["score"], record.get("input_ids"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{location}: not a scored pair ({error}); each line is {FIELDS}") from error
    texts = isinstance(pair.reference, str) and isinstance(pair.candidate, str)
    if not texts or isinstance(pair.score, bool) or not isinstance(pair.score, int | float):
        raise ValueError(f"{location}: not a scored pair; each line is {FIELDS}")
    return pair


def _difference(computed: float, published: float) -> float:
    difference = abs(computed - published)
    return difference if math.isfinite(difference) else math.inf


def _ids(encoder: PairEncoder, pair: ScoredPair) -> list[int]:
    tokens = encoder.tokenize([pair.reference, pair.candidate])
    return list(encoder.encode([tokens[pair.reference], tokens[pair.candidate]]).ids)
