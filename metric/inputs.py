"""From what callers pass to checked pairs: lists of strings of equal length, each fault named by its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bleurt_repro.metric.layout import Layout, input_faults

Item = tuple[str, ...]


class Texts(list[str]):
    """Strings that `check_texts` has looked at: handed on from one layer to the next, they are not looked at again."""


def check_pairs(
    name: str, layout: Layout, *, references: Any, candidates: Any, sources: Any
) -> tuple[list[Item], list[int]]:
    """Check what is to be scored and put it together as pairs (or triples).

    Args:
        name: of the checkpoint, for messages.
        layout: what the checkpoint reads.
        references: one string a candidate, or one list of strings a candidate; None where it reads none.
        candidates: strings.
        sources: strings; None where it reads none.

    Returns:
        the texts of every pair in the layout's order, and for each the index of its candidate.

    Raises:
        TypeError: if a list is a bare string or a table, or an item is no string.
        ValueError: if lengths differ, a candidate has no reference, or the kinds of text do not fit the checkpoint.
    """
    candidates = check_texts("candidates", candidates)
    if fault := input_faults(name, layout, sources=sources is not None, references=references is not None):
        raise ValueError(fault)
    counts = {"candidates": len(candidates)}
    several, source_texts = [[""]] * len(candidates), candidates  # what is not read is never looked at
    if references is not None:
        several = check_references(references)
        counts = {"references": len(several), **counts}
    if sources is not None:
        source_texts = check_texts("sources", sources)
        counts["sources"] = len(source_texts)
    check_same_length(counts)
    items, owners = [], []
    for i, (candidate, source) in enumerate(zip(candidates, source_texts, strict=True)):
        for reference in several[i]:
            texts = {"reference": reference, "candidate": candidate, "source": source}
            items.append(tuple(texts[role] for role in layout.inputs))
            owners.append(i)
    return items, owners


def columns_of(rows: Iterable[Mapping[str, Any]], name: str, layout: Layout) -> dict[str, Any]:
    """Return the columns of rows that a checkpoint reads, as the keyword arguments of `BleurtScorer.score`.

    Args:
        rows: with candidate and, where the checkpoint reads it, reference (or references, a list) and source; other
            fields are ignored.
        name: of the checkpoint, for messages.
        layout: what it reads.

    Raises:
        ValueError: naming the row that lacks a field.
    """
    columns: dict[str, list[Any]] = {f"{role}s": [] for role in layout.inputs}
    for number, row in enumerate(rows):
        for role in layout.inputs:
            several = row.get("references") if role == "reference" else None
            value = row.get(role) if several is None else several
            if value is None:
                raise ValueError(
                    f"row {number} has no {role!r}, which checkpoint {name} reads; found {', '.join(row) or 'nothing'}"
                )
            columns[f"{role}s"].append([value] if role == "reference" and several is None else value)
    return columns


def check_list(name: str, values: Any) -> list[Any]:
    """Return `values` as a list, or raise an error that names what was expected.

    Args:
        name: the argument's name, for the message.
        values: any ordered iterable that is neither text nor a table: a list, a column of a data set, an array, a
            generator.

    Raises:
        TypeError: if it is something else: a bare string would be read letter by letter, a table by its columns'
            names, and a set in any order.
    """
    if isinstance(values, str | bytes):
        raise TypeError(
            f"{name} must be a list of strings, found a single {type(values).__name__}: write {name}=[...]"
        )
    kind = type(values).__name__
    if hasattr(values, "columns") or hasattr(values, "column_names") or isinstance(values, Mapping):
        raise TypeError(f'{name} must be a list of strings, found {kind}: pass one column, such as {name}=data["..."]')
    if isinstance(values, set | frozenset):
        raise TypeError(f"{name} must be a list of strings, found {kind}, which has no order: pass a list")
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of strings, found {kind}")
    if hasattr(values, "to_pylist"):  # pyarrow's arrays, whose own items are no Python strings
        return values.to_pylist()
    items = list(values)
    return [item.as_py() for item in items] if items and hasattr(items[0], "as_py") else items


def check_texts(name: str, values: Any) -> list[str]:
    """Return `values` as a list of strings.

    Raises:
        TypeError: naming the index of the first item that is no string.
    """
    if isinstance(values, Texts):
        return values
    texts = check_list(name, values)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{i}] must be a string, found {_described(text)}")
    return Texts(texts)


def check_references(values: Any) -> list[list[str]]:
    """Return the references as one list a candidate.

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
