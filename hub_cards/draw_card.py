"""Draw the card of whatever a folder holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bleurt_repro.hub_cards.cards import draw_model_card
from bleurt_repro.hub_cards.dataset_card import draw_dataset_card, draw_synthetic_card
from bleurt_repro.hub_cards.space import draw_space_card


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
    from bleurt_repro.datasets_builders.synthetic_pairs import is_finished

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
