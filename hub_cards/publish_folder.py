"""Draw the card of whatever a folder holds.

Publish a folder as it lies: with the card that its new address asks for, and without the names of this machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bleurt_repro import __version__
from bleurt_repro.hub_cards.cards import draw_model_card, placeholder
from bleurt_repro.hub_cards.contents import CARD, File
from bleurt_repro.hub_cards.dataset_card import draw_dataset_card, draw_synthetic_card, is_stub, shorten_paths
from bleurt_repro.hub_cards.publish import Target, describe_plan, prepare, publish
from bleurt_repro.hub_cards.space import draw_space_card, space_files, space_folder

RESULTS = "results.json"


def publish_folder(
    target: Target, folder: str | Path | None = None, *, dry_run: bool = False, requirement: str | None = None
) -> str:
    """Check a folder and put it on the Hub.

    Args:
        target: where to.
        folder: a checkpoint, a dataset or a Space; without one, the Space that comes with the package.
        dry_run: only check it and say what would be done; nothing is asked of the Hub.
        requirement: of a Space, what to install the package by; by default a wheel in the Space itself.

    Returns:
        what was done, or would be, for a terminal.

    Raises:
        ValueError: if the folder is not fit to publish, or the Hub refuses.
        ConnectionError: if the Hub stays out of reach.
    """
    if folder is None and target.kind != "space":
        raise ValueError(f"name the folder of the {target.kind} to publish")
    place = Path(folder) if folder is not None else space_folder()
    if target.kind == "space":
        own = space_files(target, place, requirement)
    else:
        own = _model_card(target, place) if target.kind == "model" else _dataset_files(target, place)
    files, left_out = prepare(target.kind, place, own)
    if dry_run:
        return describe_plan(target, files, left_out)
    done = publish(target, files, f"Upload {place.resolve().name} with bleurt_repro {__version__}").describe()
    return f"{done}\nleft out: {', '.join(left_out)}" if left_out else done


def _model_card(target: Target, folder: Path) -> list[File]:
    """Draw the card if there is none, and put the new address into the one there is."""
    path = folder / CARD
    if path.is_file():
        text = path.read_text(encoding="utf-8")
    elif (folder / "config.json").is_file():
        results = folder / RESULTS
        text = draw_model_card(folder, training=[results] if results.is_file() else [])
    else:
        return []
    return [File(CARD, text.replace(placeholder(folder.resolve().name), target.repo_id).encode())]


def _dataset_files(target: Target, folder: Path) -> list[File]:
    from bleurt_repro.datasets_builders.synthetic.builder import is_finished

    path = folder / CARD
    if is_finished(folder):
        records = [File(file.name, _shorten(file)) for file in sorted(folder.glob("*.json"))]
        return [*records, File(CARD, draw_synthetic_card(folder, repo_id=target.repo_id).encode())]
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    if is_stub(text):
        text = draw_dataset_card(folder, repo_id=target.repo_id)
    return [File(CARD, text.replace(placeholder(folder.resolve().name), target.repo_id).encode())]


def _shorten(path: Path) -> bytes:
    """Give a record with local folders by their last name: the hashes beside them tell which models they were."""
    return (json.dumps(shorten_paths(json.loads(path.read_text(encoding="utf-8"))), indent=2) + "\n").encode()


def draw_card(
    folder: str | Path,
    *,
    training: Sequence[str | Path] = (),
    agreement: Sequence[str | Path] = (),
    repo_id: str | None = None,
    recipe: str | None = None,
    license: str | None = None,
    data_terms: str | None = None,
    domain: str | None = None,
    title: str | None = None,
) -> str:
    """Draw the card of a checkpoint, a dataset or a Space; the arguments are those of the card of its kind.

    Raises:
        FileNotFoundError: if there is no such folder.
        ValueError: if an argument has no place on this kind of card.
    """
    from bleurt_repro.datasets_builders.synthetic.builder import is_finished

    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: give a checkpoint, a dataset or a Space")
    terms = {"recipe": recipe, "license": license, "data_terms": data_terms}
    if (place / "config.json").is_file():
        _refuse("a checkpoint", title=title)
        return draw_model_card(place, training=training, agreement=agreement, repo_id=repo_id, domain=domain, **terms)
    rest = {"training": training, "agreement": agreement, "domain": domain}
    if (place / "app.py").is_file():
        _refuse("a Space", title=title, **rest, **terms)
        return draw_space_card(repo_id)
    if is_finished(place):
        _refuse("synthetic pairs", title=title, **rest, **terms)
        return draw_synthetic_card(place, repo_id=repo_id)
    _refuse("a dataset", **rest)
    return draw_dataset_card(place, repo_id=repo_id, title=title, **terms)


def _refuse(kind: str, **arguments: object) -> None:
    given = [name.replace("_", "-") for name, value in arguments.items() if value]
    if given:
        raise ValueError(f"the card of {kind} takes no --{', --'.join(given)}")
