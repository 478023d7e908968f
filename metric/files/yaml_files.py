"""Read YAML that people write settings in: plain values without aliases, not deeply nested."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml import Event, Node

# Lists within lists; settings have two. The time that PyYAML takes grows with the square of the depth.
DEEPEST = 20


def read_plain_yaml(path: Path) -> tuple[Node | None, Any]:
    """Read a YAML file.

    Args:
        path: the file, UTF-8.

    Returns:
        the nodes, which know their lines, and the values; None and None for an empty file.

    Raises:
        ValueError: naming the file, if it is no YAML, is nested too deeply (`DEEPEST`), or has aliases ("*name"): no settings need
            them, and a few lines of them stand for gigabytes.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        _check_events(yaml.parse(text, Loader=yaml.SafeLoader))
        return yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    # Some values that look like numbers or dates and are none make PyYAML raise these errors of Python's own.
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not YAML: {' '.join(str(error).split())}") from error


def _check_events(events: Iterable[Event]) -> None:
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"line {event.start_mark.line + 1} has an alias (*{event.anchor}): write values out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ValueError(f"line {event.start_mark.line + 1} is nested more than {DEEPEST} deep")
