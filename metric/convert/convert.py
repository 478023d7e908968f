"""Convert official BLEURT checkpoints, and those of bleurt-pytorch, to folders that plain `transformers` opens.

bleurt-repro convert BLEURT-20.zip BLEURT-20-converted --scores published.jsonl --max-difference 1e-4
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bleurt_repro.metric.convert.architecture import GELUS
from bleurt_repro.metric.convert.bleurt_pytorch import is_bleurt_pytorch, load_bleurt_pytorch
from bleurt_repro.metric.convert.official_checkpoint import SETTINGS, load_official
from bleurt_repro.metric.convert.parity import MAX_DIFFERENCE, Parity, measure_parity
from bleurt_repro.metric.files.archives import unpack_zip
from bleurt_repro.metric.files.writing import naming_what_fails, put
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.checksums import write_checksums
from bleurt_repro.metric.loading.find import find_checkpoint, load_checkpoint
from bleurt_repro.metric.loading.hub import HUB_FILES
from bleurt_repro.metric.loading.official_names import OFFICIAL_CHECKPOINTS
from bleurt_repro.metric.loading.quiet import quiet_transformers
from bleurt_repro.metric.loading.save import record_for_other_tools

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SCORES = "scores.jsonl"
# What else is fetched of a Hub repository to convert: official checkpoints as they are, or their archive.
OFFICIAL_FILES = ["variables/variables.*", "saved_model.pb", "*.vocab", SCORES, "*.zip"]
KINDS = (
    f"expected an official BLEURT checkpoint (a folder or zip with {SETTINGS}, bert_config.json and variables/) "
    'or one in bleurt-pytorch\'s format (config.json with model_type "bleurt")'
)


@dataclass(frozen=True)
class Conversion:
    """What was converted.

    Attributes:
        folder: the converted checkpoint.
        architecture: its class in `transformers`.
        max_length: most tokens of a pair it reads.
        activation: the GELU it computes, by its name in `transformers`.
        parity: how far its scores are from those it was compared with, if there were any.
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
        source: a folder, a zip, a Hub id or an official name.
        destination: the folder to write; it must not exist, or be empty.
        max_difference: largest difference allowed from the scores; 2e-5 by default.
        scores: JSON lines of reference, candidate, score and, if known, input_ids, to compare with; by default
            scores.jsonl of the source, if it has one.
        gelu: "tanh", "erf", or "auto": what the official graph says (saved_model.pb), else the official code's tanh;
            see `load_bleurt_pytorch` for that format.

    Raises:
        ValueError: if the source is damaged or of another kind, the destination is taken, or scores or token ids
            differ.
    """
    if gelu not in ("auto", *GELUS):
        raise ValueError(f"gelu must be auto, {' or '.join(GELUS)}, found {gelu!r}")
    target = Path(destination).expanduser().absolute()
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ValueError(f"{destination} exists already: name another destination or remove it")
    beside = next(folder for folder in target.parents if folder.is_dir())
    workspace = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=beside))
    try:
        folder = _folder(source, workspace)
        try:
            model, tokenizer = _load(folder, gelu, _official_length(source))
        except ValueError as error:
            raise ValueError(f"{source} cannot be converted: {error}") from error
        with naming_what_fails(target):
            made = _save(model, tokenizer, workspace / "checkpoint")
        parity = _check_scores(folder, made, scores, max_difference)
        target.parent.mkdir(parents=True, exist_ok=True)
        put(made, target)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)
    length = Layout.from_config(model.config).max_length
    return Conversion(target, type(model).__name__, length, model.config.hidden_act, parity)


def _official_length(source: str) -> int | None:
    """Return the length that an official name stands for; its public copies may not record it."""
    if Path(source).expanduser().exists() or source not in OFFICIAL_CHECKPOINTS:
        return None
    return OFFICIAL_CHECKPOINTS[source].max_length


def _folder(source: str, workspace: Path) -> Path:
    """Find the folder that holds the checkpoint, unpacking a zip into the workspace."""
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


def _load(folder: Path, gelu: str, max_length: int | None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if (folder / SETTINGS).is_file():
        return load_official(folder, gelu)
    if is_bleurt_pytorch(folder) or max_length:
        return load_bleurt_pytorch(folder, max_length=max_length, gelu=gelu)
    if (folder / "config.json").is_file():
        raise ValueError("it is in transformers' own format already: use it as the checkpoint, without converting it")
    raise ValueError(KINDS)


def _save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> Path:
    with quiet_transformers():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    record_for_other_tools(folder)
    for file in folder.iterdir():  # the weights are written for the owner alone
        shutil.copymode(folder / "config.json", file)
    write_checksums(folder)
    return folder


def _check_scores(folder: Path, made: Path, scores: str | None, max_difference: float | None) -> Parity | None:
    """Open the new checkpoint and compare its scores, if there are any to compare with."""
    file = Path(scores).expanduser() if scores else folder / SCORES
    if not scores and not file.is_file():
        if max_difference is not None:
            raise ValueError(f"nothing to compare with: the source has no {SCORES}; name a file with --scores")
        load_checkpoint(str(made))
        return None
    parity = measure_parity(str(made), file)
    limit = MAX_DIFFERENCE if max_difference is None else max_difference
    if parity.same_ids < parity.with_ids:
        raise ValueError(f"converted, but the token ids differ from those in {file}: {parity}")
    if parity.largest > limit:
        raise ValueError(
            f"converted, but the scores miss {file} (line {parity.worst_line}): {parity}; limit {limit:g}"
        )
    return parity
