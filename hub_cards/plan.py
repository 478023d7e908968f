"""What would be published, checked before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bleurt_repro.hub_cards.card_checks import check_card
from bleurt_repro.hub_cards.checks import check_files, check_model
from bleurt_repro.hub_cards.contents import File, gather
from bleurt_repro.hub_cards.target import Target


def prepare(kind: str, folder: Path, files: Sequence[File] | None = None) -> tuple[list[File], list[str]]:
    """Choose what is published, and make sure that it is fit for it.

    Args:
        kind: "model", "dataset" or "space".
        folder: the folder.
        files: to take the place of the folder's files of the same path, or to be added to them.

    Returns:
        the files, and the names of what lies beside them.

    Raises:
        ValueError: naming everything that is wrong.
    """
    found, left_out = gather(kind, folder)
    chosen = {file.path: file for file in [*found, *(files or [])]}
    content = [chosen[path] for path in sorted(chosen)]
    problems = check_files(content, left_out) + (check_model(content) if kind == "model" else [])
    problems += check_card(kind, content)
    if problems:
        raise ValueError(f"{folder} is not fit to publish: {'; '.join(problems)}")
    return content, left_out


def describe_plan(target: Target, files: Sequence[File], left_out: Sequence[str]) -> str:
    """Say what publishing would do; nothing is asked of the Hub."""
    way = "propose in a pull request to" if target.create_pr else "commit to"
    lines = [f"would {way} {target.place}{' (private)' if target.private else ''}:"]
    lines += [f"  {file.path} ({shown_size(file.size)})" for file in files]
    lines.append(
        f"  {len(files)} files, {shown_size(sum(file.size for file in files))}; what is there already is not sent"
    )
    if left_out:
        lines.append(f"left out: {', '.join(left_out)}")
    return "\n".join(lines)


def shown_size(count: int) -> str:
    """Write a number of bytes for people."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
