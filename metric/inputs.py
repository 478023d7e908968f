"""What a scorer accepts: lists of strings of equal length, each fault named by its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def check_list(name: str, values: Any) -> list[Any]:
    """Give `values` as a list, or say what was expected.

    Args:
        name: the argument's name, for the message.
        values: any iterable that is neither text nor a mapping.

    Raises:
        TypeError: if it is something else; a bare string would be read letter by letter.
    """
    if isinstance(values, str | bytes):
        raise TypeError(
            f"{name} must be a list of strings, found a single {type(values).__name__}: write {name}=[...]"
        )
    if not isinstance(values, Iterable) or isinstance(values, Mapping):
        raise TypeError(f"{name} must be a list of strings, found {type(values).__name__}")
    return list(values)


def check_texts(name: str, values: Any) -> list[str]:
    """Give `values` as a list of strings.

    Raises:
        TypeError: naming the index of the first item that is no string.
    """
    texts = check_list(name, values)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{i}] must be a string, found {_described(text)}")
    return texts


def check_references(values: Any) -> list[list[str]]:
    """Give the references as one list a candidate.

    Args:
        values: one string a candidate, or one list of strings a candidate (any number each, at least one).

    Raises:
        TypeError: if an item is neither, or if both kinds are mixed.
        ValueError: if a candidate has no reference.
    """
    items = check_list("references", values)
    if not items or isinstance(items[0], str):
        return [[text] for text in check_texts("references", items)]
    several = []
    for i, item in enumerate(items):
        if isinstance(item, str):
            raise TypeError(
                f"references[{i}] is a string but references[0] is a list: give a list of references for every candidate"
            )
        if not isinstance(item, Iterable) or isinstance(item, bytes | Mapping):
            raise TypeError(f"references[{i}] must be a string or a list of strings, found {_described(item)}")
        several.append(check_texts(f"references[{i}]", item))
        if not several[-1]:
            raise ValueError(f"references[{i}] is empty: every candidate needs at least one reference")
    return several


def check_same_length(counts: dict[str, int]) -> None:
    """Refuse lists of different lengths, naming each with its length.

    Raises:
        ValueError: if they differ.
    """
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise ValueError(f"the lists must be equally long, found {found}")


def _described(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} ({str(value)[:40]!r})"
