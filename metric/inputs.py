"""Check texts that callers pass, and put them together as pairs; messages name the index of a faulty text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bleurt_repro.metric.layout import Layout, input_faults

Item = tuple[str, ...]


class Texts(list[str]):
    """Strings that `check_texts` has checked; they are not checked again by the next function that gets them."""


class Pairs(NamedTuple):
    """Pairs (or triples) of texts to score.

    Attributes:
        items: texts of each pair, in the layout's order.
        owners: for each pair the index of its candidate, ascending; a candidate has one pair per reference.
        blank: number of candidates without a reference that has text; of a checkpoint that reads sources alone, without a
            source that has text.
        inputs: names of the texts that were given, in the layout's order.
    """

    items: list[Item]
    owners: list[int]
    blank: int
    inputs: tuple[str, ...]


def check_pairs(name: str, layout: Layout, *, references: Any, candidates: Any, sources: Any) -> Pairs:
    """Check texts, and put them together as pairs (or triples).

    Args:
        name: name of the checkpoint, for messages.
        layout: texts that the checkpoint reads.
        references: one string per candidate, or one list of strings per candidate; None if the checkpoint reads none, or
            needs none. A blank reference (empty or white space) is left out if the candidate has another one.
        candidates: strings.
        sources: strings; None if the checkpoint reads none, or needs none.

    Raises:
        TypeError: if a list is a bare string or a table, or a text is not a string.
        ValueError: if lengths differ, a candidate has no reference, or the texts do not fit the checkpoint.
    """
    candidates = check_texts("candidates", candidates)
    if fault := input_faults(name, layout, sources=sources is not None, references=references is not None):
        raise ValueError(fault)
    counts = {"candidates": len(candidates)}
    # Texts that are not given are empty: the checkpoint does not read them, or was trained to do without.
    reference_lists, source_texts = [[""]] * len(candidates), [""] * len(candidates)
    if references is not None:
        reference_lists = [without_blanks(texts) for texts in check_references(references)]
        counts = {"references": len(reference_lists), **counts}
    if sources is not None:
        source_texts = check_texts("sources", sources)
        counts["sources"] = len(source_texts)
    check_same_length(counts)
    owners = [i for i, texts in enumerate(reference_lists) for _ in texts]
    columns = {
        "reference": [reference for texts in reference_lists for reference in texts],
        "candidate": [candidates[i] for i in owners],
        "source": [source_texts[i] for i in owners],
    }
    items = list(zip(*(columns[role] for role in layout.inputs), strict=True))
    blank = sum(map(is_blank, source_texts if references is None else (texts[0] for texts in reference_lists)))
    missing = {role for role, texts in (("source", sources), ("reference", references)) if texts is None}
    return Pairs(items, owners, blank, tuple(role for role in layout.inputs if role not in missing))


def is_blank(text: str) -> bool:
    """Return whether a text is empty or white space only."""
    return not text or text.isspace()


def without_blanks(references: list[str]) -> list[str]:
    """Return the references of one candidate without blank ones; if all are blank, the first."""
    if len(references) == 1:
        return references
    return [reference for reference in references if not is_blank(reference)] or references[:1]


def columns_of(rows: Iterable[Mapping[str, Any]], name: str, layout: Layout) -> dict[str, Any]:
    """Return the columns of rows that a checkpoint reads, as the keyword arguments of `BleurtScorer.score`.

    Args:
        rows: each with candidate and, if the checkpoint reads it, reference (or references, a list) and source; other
            fields are ignored. A field that is optional to the checkpoint is read if the first row has it.
        name: name of the checkpoint, for messages.
        layout: texts that the checkpoint reads.

    Raises:
        ValueError: naming the row that lacks a field.
    """
    columns: dict[str, list[Any]] = {f"{role}s": [] for role in layout.inputs}
    for number, row in enumerate(rows):
        for role in layout.inputs:
            references = row.get("references") if role == "reference" else None
            value = row.get(role) if references is None else references
            if value is None and number == 0 and role in layout.optional:
                del columns[f"{role}s"]
            if f"{role}s" not in columns:
                continue
            if value is None:
                raise ValueError(
                    f"row {number} has no {role!r}, which checkpoint {name} reads; found {', '.join(row) or 'nothing'}"
                )
            columns[f"{role}s"].append([value] if role == "reference" and references is None else value)
    return columns


def check_list(name: str, values: Any) -> list[Any]:
    """Return `values` as a list.

    Args:
        name: name of the argument, for the message.
        values: any ordered iterable that is neither text nor a table: a list, a column of a data set, an array, a
            generator.

    Raises:
        TypeError: if it is something else: iterating over a string gives letters, over a table the names of its columns,
            and a set has no order.
    """
    if isinstance(values, str | bytes):
        raise TypeError(
            f"{name} must be a list of strings, found a single {type(values).__name__}: write {name}=[...]"
        )
    type_name = type(values).__name__
    if hasattr(values, "columns") or hasattr(values, "column_names") or isinstance(values, Mapping):
        raise TypeError(
            f'{name} must be a list of strings, found {type_name}: pass one column, such as {name}=data["..."]'
        )
    if isinstance(values, set | frozenset):
        raise TypeError(f"{name} must be a list of strings, found {type_name}, which has no order: pass a list")
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of strings, found {type_name}")
    if hasattr(values, "to_pylist"):  # an array of pyarrow, whose items are not Python strings
        return values.to_pylist()
    items = list(values)
    return [item.as_py() for item in items] if items and hasattr(items[0], "as_py") else items


def check_texts(name: str, values: Any) -> list[str]:
    """Return `values` as a list of strings.

    Raises:
        TypeError: naming the index of the first item that is not a string.
    """
    if isinstance(values, Texts):
        return values
    texts = check_list(name, values)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{i}] must be a string, found {_describe(text)}")
    return Texts(texts)


def check_references(values: Any) -> list[list[str]]:
    """Return the references as one list per candidate.

    Args:
        values: one string per candidate, or one list of strings per candidate (any number, at least one).

    Raises:
        TypeError: if an item is neither, or if strings and lists are mixed.
        ValueError: if a candidate has no reference.
    """
    items = check_list("references", values)
    if not items or isinstance(items[0], str):
        return [[text] for text in check_texts("references", items)]
    lists: list[list[str]] = []
    for i, item in enumerate(items):
        if isinstance(item, str):
            raise TypeError(
                f"references[{i}] is a string but references[0] is a list: give a list of references for every candidate"
            )
        if not isinstance(item, Iterable) or isinstance(item, bytes | Mapping):
            raise TypeError(f"references[{i}] must be a string or a list of strings, found {_describe(item)}")
        lists.append(check_texts(f"references[{i}]", item))
        if not lists[-1]:
            raise ValueError(f"references[{i}] is empty: every candidate needs at least one reference")
    return lists


def check_same_length(counts: dict[str, int]) -> None:
    """Check that lists have the same length.

    Args:
        counts: length of each list, by its name.

    Raises:
        ValueError: if they differ.
    """
    if len(set(counts.values())) > 1:
        lengths = ", ".join(f"{count} {name}" for name, count in counts.items())
        raise ValueError(f"the lists must be equally long, found {lengths}")


def _describe(value: Any) -> str:
    return "None" if value is None else f"{type(value).__name__} ({str(value)[:40]!r})"
