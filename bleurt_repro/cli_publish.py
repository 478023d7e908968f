"""The command line's part on the Hub: `publish` and `card`."""

from __future__ import annotations

from typing import Annotated

import typer

publish_app = typer.Typer(help="Put a checkpoint, a dataset or the Space on the Hub.", no_args_is_help=True)

RepoId = Annotated[str, typer.Option("--repo-id", help="Where to: ORG/NAME; created if it does not exist.")]
Private = Annotated[bool, typer.Option("--private", help="Make it a private repository.")]
Revision = Annotated[str | None, typer.Option(help="Branch; created if it does not exist. Default: main.")]
CreatePr = Annotated[bool, typer.Option("--create-pr", help="Propose it in a pull request.")]
SOURCE_HELP = "What pip fetches the package by, git+https://...; default: BLEURT_REPRO_SOURCE."
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check, and list what would be published; nothing is sent.")]


@publish_app.command("model")
def publish_model(
    path: Annotated[str, typer.Argument(help="Folder of the checkpoint.")],
    repo_id: RepoId,
    private: Private = False,
    revision: Revision = None,
    create_pr: CreatePr = False,
    dry_run: DryRun = False,
    source: Annotated[str | None, typer.Option(help=SOURCE_HELP)] = None,
) -> None:
    """Publish a checkpoint with its card."""
    _publish("model", path, repo_id, private, revision, create_pr, dry_run, source=source)


@publish_app.command("dataset")
def publish_dataset(
    path: Annotated[str, typer.Argument(help="Folder that `bleurt-repro data ...` wrote.")],
    repo_id: RepoId,
    private: Private = False,
    revision: Revision = None,
    create_pr: CreatePr = False,
    dry_run: DryRun = False,
) -> None:
    """Publish ratings or synthetic pairs with their card."""
    _publish("dataset", path, repo_id, private, revision, create_pr, dry_run)


@publish_app.command("space")
def publish_space(
    repo_id: RepoId,
    path: Annotated[str | None, typer.Argument(help="Folder; default: the Space in the package.")] = None,
    requirement: Annotated[
        str | None, typer.Option(help="What the Space installs the package by; default: a wheel that it carries.")
    ] = None,
    private: Private = False,
    revision: Revision = None,
    create_pr: CreatePr = False,
    dry_run: DryRun = False,
) -> None:
    """Publish the metric and its demo as a Space."""
    _publish("space", path, repo_id, private, revision, create_pr, dry_run, requirement)


def _publish(
    kind: str,
    path: str | None,
    repo_id: str,
    private: bool,
    revision: str | None,
    create_pr: bool,
    dry_run: bool,
    requirement: str | None = None,
    source: str | None = None,
) -> None:
    from bleurt_repro.hub_cards.contents import Target
    from bleurt_repro.hub_cards.publish import publish_folder

    target = Target(kind, repo_id, private=private, revision=revision, create_pr=create_pr)
    typer.echo(publish_folder(target, path, dry_run=dry_run, requirement=requirement, source=source))


def card(
    folder: Annotated[str, typer.Argument(help="Checkpoint, dataset or Space; its README.md is written.")],
    training: Annotated[list[str] | None, typer.Option(help="results.json of a training run; repeatable.")] = None,
    results: Annotated[
        list[str] | None,
        typer.Option("--results", "--agreement", help="results.json of agreement, sanity or webnlg; repeatable."),
    ] = None,
    repo_id: Annotated[str | None, typer.Option(help="Where it will be published, org/name.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Where to find the commands that make it.")] = None,
    license: Annotated[str | None, typer.Option(help="By the Hub's name for it, such as apache-2.0.")] = None,
    data_terms: Annotated[str | None, typer.Option(help="A sentence on the terms of the data.")] = None,
    domain: Annotated[str | None, typer.Option(help="A sentence on what texts a checkpoint is for.")] = None,
    base_model: Annotated[str | None, typer.Option(help="Hub id of the encoder that training started from.")] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Hub id of training data; repeatable.")] = None,
    source: Annotated[str | None, typer.Option(help=SOURCE_HELP)] = None,
    title: Annotated[str | None, typer.Option(help="What to call a dataset.")] = None,
) -> None:
    """Draw a card from results files, or from a dataset's own files."""
    from pathlib import Path

    from bleurt_repro.hub_cards.publish import draw_card
    from bleurt_repro.metric.files.writing import write_text

    text = draw_card(
        folder,
        training=training or [],
        results=results or [],
        repo_id=repo_id,
        recipe=recipe,
        license=license,
        data_terms=data_terms,
        domain=domain,
        base_model=base_model,
        datasets=dataset or [],
        source=source,
        title=title,
    )
    write_text(Path(folder) / "README.md", text)
