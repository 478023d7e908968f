"""Limits on what the files of a checkpoint may describe, checked before they take any memory.

Checkpoints come from elsewhere. One line of config.json can describe a model of any size, and one line of
tokenizer.json a normalizer that makes a gigabyte of a sentence.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bleurt_repro.metric.loading.quiet import first_line

LARGEST_SETTINGS_FILE = 1 << 20  # bytes; a scorer's config.json has a few thousand
LARGEST_SETTING = 10_000_000  # above the whole numbers of real settings, unless the model itself has more weights
MOST_LAYERS = 1_000  # ALBERT's layers share their weights, so that the stored weights do not limit their number
# A model may have more numbers than its file: an embedding that several modules share is stored once and built for
# each (three times in T5), and masks are built but not stored.
BUILT_PER_STORED = 4
SPARE_NUMBERS = 1 << 24
# Modules, weights and buffers that are built for each stored tensor: about 2 in BERT.
BUILT_PER_TENSOR = 8
SPARE_TENSORS = 200
# Characters that a tokenizer may make of one before it looks for tokens. Unicode's normal forms make up to 18.
MOST_GROWTH = 512


class StoredSize(NamedTuple):
    """The size of a checkpoint's weights: the number of tensors, and of the numbers in all of them."""

    tensors: int
    numbers: int


def read_settings(file: Path) -> dict[str, Any]:
    """Read a JSON file of settings, such as config.json.

    Raises:
        ValueError: if the file is missing, damaged or larger than `LARGEST_SETTINGS_FILE`.
    """
    try:
        if (size := file.stat().st_size) > LARGEST_SETTINGS_FILE:
            raise ValueError(f"it has {size} bytes, expected at most {LARGEST_SETTINGS_FILE}")
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{file.name} cannot be read ({first_line(error)})") from error
    if not isinstance(settings, dict):
        raise ValueError(f"{file.name} holds {type(settings).__name__}, expected settings by name")
    return settings


def checked_size(folder: Path, settings: Mapping[str, Any]) -> StoredSize:
    """Read the size of the weights, and check that the settings of config.json can be those of such a scorer.

    Raises:
        ValueError: if a file is damaged, or naming the setting that cannot be.
    """
    stored = stored_size(folder)
    check_settings(settings, stored)
    return stored


def stored_size(folder: Path) -> StoredSize:
    """Count the tensors and numbers of a folder's safetensors files by their headers.

    Raises:
        ValueError: if a file is damaged.
    """
    from safetensors import SafetensorError, safe_open

    tensors = numbers = 0
    for file in folder.glob("*.safetensors"):
        try:
            with safe_open(file, framework="pt") as weights:
                for name in weights.keys():  # noqa: SIM118  # it is no dict
                    tensors, numbers = tensors + 1, numbers + math.prod(weights.get_slice(name).get_shape())
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{file.name} cannot be read ({first_line(error)})") from error
    return StoredSize(tensors, numbers)


def check_settings(settings: Mapping[str, Any], stored: StoredSize) -> None:
    """Check the number of labels in config.json, of layers, and that no number is larger than any real setting.

    Args:
        settings: content of config.json.
        stored: size of the weights.

    Raises:
        ValueError: naming the setting.
    """
    labels, names = settings.get("num_labels", 1), settings.get("id2label")
    if labels == 1 and isinstance(names, dict) and names:
        labels = len(names)
    if labels != 1:
        raise ValueError(f"config.json has {labels} labels; a scorer has one")
    layers = settings.get("num_hidden_layers", 1)
    if isinstance(layers, bool) or not isinstance(layers, int) or not 1 <= layers <= MOST_LAYERS:
        raise ValueError(
            f"config.json sets num_hidden_layers to {str(layers)[:20]}, expected a whole number from 1 to "
            f"{MOST_LAYERS}"
        )
    most = max(LARGEST_SETTING, stored.numbers)
    for name, value in settings.items():
        if (largest := max(_whole_numbers(value), default=0)) > most:
            raise ValueError(f"config.json sets {name} to {str(largest)[:20]}, expected at most {most}")


def _whole_numbers(value: Any) -> Iterator[int]:
    """Yield all whole numbers of a JSON value."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _whole_numbers(member)


@contextmanager
def size_limit(stored: StoredSize) -> Iterator[None]:
    """Refuse to build, on the meta device, a much larger model than the stored one.

    Each module, weight and buffer is counted when it becomes part of a model, so that it does not matter which setting
    makes the model large.

    Args:
        stored: size of the weights that the model is for.

    Raises:
        ValueError: from within the code that builds the model.
    """
    from torch import Tensor
    from torch.nn.modules import module as registration

    most_tensors = BUILT_PER_TENSOR * (stored.tensors + SPARE_TENSORS)
    most_numbers = BUILT_PER_STORED * stored.numbers + SPARE_NUMBERS
    thread = threading.get_ident()  # the hooks see what other threads build, too
    tensors = numbers = 0

    def count(_module: Any, _name: str, registered: Any) -> None:
        nonlocal tensors, numbers
        # The same names get their weights later, on another device.
        if threading.get_ident() != thread or (isinstance(registered, Tensor) and not registered.is_meta):
            return
        tensors += 1
        numbers += registered.numel() if isinstance(registered, Tensor) else 0
        if tensors > most_tensors or numbers > most_numbers:
            raise ValueError(
                f"config.json describes a larger model than the {stored.numbers} weights in {stored.tensors} tensors "
                "that are stored"
            )

    with ExitStack() as stack:
        for register in (
            registration.register_module_module_registration_hook,
            registration.register_module_parameter_registration_hook,
            registration.register_module_buffer_registration_hook,
        ):
            stack.callback(register(count).remove)
        yield


def check_normalizer(file: Path) -> None:
    """Check how much a tokenizer.json can make of a text before tokenising, and that its character map is whole.

    Args:
        file: tokenizer.json.

    Raises:
        ValueError: if the file is damaged, one character can become more than `MOST_GROWTH`, or the map leads out of
            itself (the library would end the process).
    """
    try:
        steps = _normalizers(json.loads(file.read_text(encoding="utf-8")).get("normalizer"))
        growth = math.prod(_growth(step) for step in steps)
    except (OSError, AttributeError, KeyError, TypeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"{file.name} cannot be read ({first_line(error)})") from error
    if growth > MOST_GROWTH:
        raise ValueError(f"its normalizer makes up to {growth:.0f} characters of one, expected at most {MOST_GROWTH}")


def _normalizers(normalizer: Any) -> list[dict[str, Any]]:
    """List the steps of a normalizer in their order, those of sequences within it included."""
    if normalizer is None:
        return []
    if normalizer["type"] == "Sequence":
        return [step for member in normalizer["normalizers"] for step in _normalizers(member)]
    return [normalizer]


def _growth(step: Mapping[str, Any]) -> float:
    """Return how many characters a step of a normalizer makes of one at most; Unicode's own forms count as one."""
    if step["type"] == "Replace":
        # A regular expression may match between any two characters, where there is nothing to replace.
        is_string = "String" in step["pattern"]
        return max(1, len(step["content"]) / len(step["pattern"]["String"])) if is_string else 1 + len(step["content"])
    if step["type"] == "Prepend":
        return 1 + len(step["prepend"])
    if step["type"] == "ByteLevel":
        return 2
    if step["type"] == "Precompiled":
        return longest_mapping(step["precompiled_charsmap"])
    return 1


def longest_mapping(charsmap: str) -> int:
    """Return the most bytes that SentencePiece's character map makes of a sequence of characters.

    The map is a trie in an array, followed by the texts that its leaves point to (a double-array trie as Darts builds
    it: https://github.com/google/sentencepiece/blob/master/src/normalizer.cc).

    Args:
        charsmap: in base64, as tokenizer.json has it.

    Raises:
        ValueError: if the map is cut, or leads out of its arrays.
    """
    damaged = "the character map of its normalizer is damaged (precompiled_charsmap)"
    try:
        content = base64.b64decode(charsmap, validate=True)
    except binascii.Error as error:
        raise ValueError(damaged) from error
    size = int.from_bytes(content[:4], "little")
    texts = content[4 + size :]
    if size < 4 or size % 4 or len(content) < 4 + size:
        raise ValueError(damaged)
    units = np.frombuffer(content, "<u4", size // 4, offset=4).astype(np.int64)
    # Walk the trie from its root, all nodes of one depth at once. The children of a node are the 256 units of a block,
    # each at the node's base with the bits of its byte flipped.
    starts, seen = [], np.zeros(len(units), bool)
    bases = np.array([_offsets(units[:1])[0]])
    while len(bases):
        if (bases | 0xFF).max() >= len(units):
            raise ValueError(damaged)
        children = (bases[:, None] ^ np.arange(1, 256)).ravel()
        labels = np.tile(np.arange(1, 256), len(bases))
        children = np.unique(children[units[children] & 0x800000FF == labels])
        children = children[~seen[children]]
        seen[children] = True
        bases = children ^ _offsets(units[children])
        leaves = bases[units[children] >> 8 & 1 == 1]
        if len(leaves) and leaves.max() >= len(units):
            raise ValueError(damaged)
        starts.append(units[leaves] & 0x7FFFFFFF)
    begin = np.concatenate(starts)
    ends = np.append(np.flatnonzero(np.frombuffer(texts, np.uint8) == 0), len(texts))
    try:
        texts.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(damaged) from error
    # A text begins at a character, not within one, whose other bytes are 10xxxxxx.
    if len(begin) and (begin.max() >= len(texts) or (np.frombuffer(texts, np.uint8)[begin] & 0xC0 == 0x80).any()):
        raise ValueError(damaged)
    return int((ends[np.searchsorted(ends, begin)] - begin).max(initial=1))


def _offsets(units: Any) -> Any:
    """Return the distances that units of a double-array trie lead to."""
    return (units >> 10) << ((units & 1 << 9) >> 6)
