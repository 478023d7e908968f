"""The command line's part on data: `bleurt-repro data ...`."""

from __future__ import annotations

from typing import Annotated

import typer

from bleurt_repro.cli_style import Address, Command, Engine, Group, Overwrite, Workers, chosen_engine, echo, examples

data_app = typer.Typer(cls=Group, help="Gather human ratings and synthetic pairs.", no_args_is_help=True)


@data_app.command(
    "wmt",
    cls=Command,
    epilog=examples(
        "bleurt-repro data wmt --config-name 2018 --data-dir ratings --output wmt18",
        "bleurt-repro data wmt --config-name 2017 --data-dir ratings --language-pairs de-en cs-en --output wmt17",
    ),
)
def data_wmt(
    config_name: Annotated[str, typer.Option(help="The year to test on (2017, 2018, 2019, ...), or 'all'.")],
    output: Annotated[str, typer.Option(help="Folder to write: train, validation and test.")],
    data_dir: Annotated[
        str | None, typer.Option(help="Folder of ratings, or of the official archives, unpacked.")
    ] = None,
    hub_dataset: Annotated[str | None, typer.Option(help="Instead: RicardoRei/wmt-da-human-evaluation.")] = None,
    hub_revision: Annotated[str | None, typer.Option(help="Its branch, tag or commit.")] = None,
    language_pairs: Annotated[list[str], typer.Option(help="Such as de-en or '*-en'; repeatable.")] = ["*-en"],  # noqa: B006
    validation_ratio: Annotated[
        float | None, typer.Option(help="Of the training years; default: the paper's.")
    ] = None,
    one_record_per_system: Annotated[bool, typer.Option(help="Train on a record for each of several systems.")] = True,
    average_duplicates: Annotated[bool, typer.Option(help="Train on one record for each candidate.")] = False,
    seed: Annotated[int, typer.Option(help="Of the validation split.")] = 0,
    format: Annotated[str, typer.Option(help="jsonl or parquet.")] = "jsonl",
    overwrite: Overwrite = False,
) -> None:
    """Write human ratings of translations, split by year as in the paper."""
    from bleurt_repro.datasets_builders.ratings.export import export_wmt

    counts = export_wmt(
        config_name,
        output,
        format,
        overwrite,
        data_dir=data_dir,
        hub_dataset=hub_dataset,
        hub_revision=hub_revision,
        language_pairs=tuple(language_pairs),
        validation_ratio=validation_ratio,
        one_record_per_system=one_record_per_system,
        average_duplicates=average_duplicates,
        seed=seed,
    )
    _print_counts(counts)


@data_app.command(
    "relative-ranks",
    cls=Command,
    epilog=examples(
        "bleurt-repro data relative-ranks --config-name 2018 --data-dir ratings --output ranks18",
        "bleurt-repro data relative-ranks --config-name 2018 --data-dir ratings --given --output ranks18",
    ),
)
def data_relative_ranks(
    config_name: Annotated[str, typer.Option(help="The year: 2018, 2019, ...")],
    output: Annotated[str, typer.Option(help="Folder to write: test.")],
    data_dir: Annotated[
        str | None, typer.Option(help="Folder of ratings, or of the official archives, unpacked.")
    ] = None,
    hub_dataset: Annotated[str | None, typer.Option(help="Instead: RicardoRei/wmt-da-human-evaluation.")] = None,
    hub_revision: Annotated[str | None, typer.Option(help="Its branch, tag or commit.")] = None,
    language_pairs: Annotated[list[str], typer.Option(help="Such as de-en or '*-en'; repeatable.")] = ["*-en"],  # noqa: B006
    min_difference: Annotated[float, typer.Option(help="Of the raw scores, in points of 100.")] = 25.0,
    given: Annotated[bool, typer.Option("--given", help="Read the pairs given, in place of making them.")] = False,
    format: Annotated[str, typer.Option(help="jsonl or parquet.")] = "jsonl",
    overwrite: Overwrite = False,
) -> None:
    """Write pairs of translations of which one was rated clearly better (daRR)."""
    from bleurt_repro.datasets_builders.ratings.export import export_relative_ranks

    counts = export_relative_ranks(
        config_name,
        output,
        format,
        overwrite,
        data_dir=data_dir,
        hub_dataset=hub_dataset,
        hub_revision=hub_revision,
        language_pairs=tuple(language_pairs),
        min_difference=min_difference,
        given=given,
    )
    _print_counts(counts)


@data_app.command(
    "webnlg",
    cls=Command,
    epilog=examples(
        "bleurt-repro data webnlg --data-dir webnlg --output webnlg-all",
        "bleurt-repro data webnlg --data-dir webnlg --config-name by_system --training-systems 3 --output by-system",
    ),
)
def data_webnlg(
    data_dir: Annotated[str, typer.Option(help="Folder of the WebNLG 2017 human evaluation.")],
    output: Annotated[str, typer.Option(help="Folder to write.")],
    config_name: Annotated[str, typer.Option(help="all, by_system or by_input.")] = "all",
    training_systems: Annotated[
        int | None, typer.Option(help="by_system: how many train; the paper: 0, 2, 3, 5.", show_default="5")
    ] = None,
    training_inputs: Annotated[
        int | None, typer.Option(help="by_input: how many train; the paper: 0, 38, 66, 122.", show_default="122")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the splits.")] = 0,
    format: Annotated[str, typer.Option(help="jsonl or parquet.")] = "jsonl",
    overwrite: Overwrite = False,
) -> None:
    """Write human ratings of data-to-text systems: fluency, grammar, semantics."""
    from bleurt_repro.datasets_builders.ratings.export import export_webnlg

    given = {"by_system": ("training_systems", training_systems), "by_input": ("training_inputs", training_inputs)}
    sizes = {name: size for name, size in given.values() if size is not None}
    for config, (name, size) in given.items():
        if size is not None and config != config_name:
            raise ValueError(
                f"{name} is a size of --config-name {config}, found {config_name}: name that, or leave it out"
            )
    _print_counts(export_webnlg(config_name, output, format, overwrite, data_dir=data_dir, seed=seed, **sizes))


@data_app.command(
    "ratings",
    cls=Command,
    epilog=examples(
        "bleurt-repro data ratings --input ratings.csv --output ratings",
        "bleurt-repro data ratings --input ratings.jsonl --output ratings --validation-ratio 0.2 --format parquet",
    ),
)
def data_ratings(
    input: Annotated[str, typer.Option(help="CSV, TSV, JSONL or Parquet with reference, candidate, score.")],
    output: Annotated[str, typer.Option(help="Folder to write: train and validation.")],
    validation_ratio: Annotated[float, typer.Option(help="Share to validate on.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
    format: Annotated[str, typer.Option(help="jsonl or parquet.")] = "jsonl",
    overwrite: Overwrite = False,
) -> None:
    """Check ratings of your own and split them with no segment on both sides."""
    from bleurt_repro.datasets_builders.ratings.export import export_ratings

    _print_counts(export_ratings(input, output, format, validation_ratio, seed, overwrite))


@data_app.command(
    "anchors",
    cls=Command,
    epilog=examples(
        "bleurt-repro data anchors --ratings train.jsonl --output with-anchors.jsonl",
        "bleurt-repro data anchors --ratings train.jsonl --output with-anchors.jsonl --share 0.1",
    ),
)
def data_anchors(
    ratings: Annotated[str, typer.Option(help="CSV, TSV, JSONL or Parquet with reference, candidate, score.")],
    output: Annotated[str, typer.Option(help="JSONL file to write: the ratings, then the anchors.")],
    share: Annotated[float, typer.Option(help="Anchors made, in parts of the number of ratings.")] = 0.3,
    seed: Annotated[int, typer.Option(help="Of what is taken and how it is damaged.")] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Add pairs whose rating is plain: identical, empty, unrelated, shuffled, cut, with an altered number or name."""
    from bleurt_repro.datasets_builders.contrasts.anchors import anchor_file

    _print_counts(anchor_file(ratings, output, share, seed, overwrite))


@data_app.command(
    "contrasts",
    cls=Command,
    epilog=examples(
        "bleurt-repro data contrasts --parallel de.tsv fr.tsv --output contrasts.jsonl",
        "bleurt-repro data contrasts --parallel de.tsv --pairs 1000 --ratings train.jsonl --output contrasts.jsonl",
    ),
)
def data_contrasts(
    parallel: Annotated[
        list[str], typer.Option(help="TSV of source, split, English sentence, translation; one option a language.")
    ],
    output: Annotated[str, typer.Option(help="JSONL file to write.")],
    pairs: Annotated[int, typer.Option(help="How many pairs to make.")] = 30_000,
    ratings: Annotated[str | None, typer.Option(help="Ratings whose best candidates are altered, too.")] = None,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 0,
    reordered: Annotated[float, typer.Option(help="Share of draws that put a sentence in another order.")] = 0.3,
    mirrored: Annotated[float, typer.Option(help="Share of altered texts that are shown as references, too.")] = 0.0,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="Beginning of the name of a source to pass over; repeatable.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Make pairs of the same meaning in other words, and near copies of another meaning, from parallel text."""
    from bleurt_repro.datasets_builders.contrasts.parallel_contrasts import contrast_file

    named = leave_out or ()
    _print_counts(contrast_file(parallel, output, pairs, ratings, seed, reordered, mirrored, named, overwrite))


@data_app.command(
    "roles",
    cls=Command,
    epilog=examples(
        "bleurt-repro data roles --output roles.jsonl",
        "bleurt-repro data roles --pairs 1000 --seed 1 --output roles.jsonl",
    ),
)
def data_roles(
    output: Annotated[str, typer.Option(help="JSONL file to write.")],
    pairs: Annotated[int, typer.Option(help="How many pairs to make.")] = 16_000,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Make English sentences with two roles, each with a paraphrase and a copy whose roles are exchanged."""
    from bleurt_repro.datasets_builders.contrasts import chosen_contrasts, write_contrasts
    from bleurt_repro.datasets_builders.contrasts.templates import make_role_pairs

    place = chosen_contrasts(output, overwrite=overwrite)
    _print_counts(write_contrasts(place, make_role_pairs(pairs, seed)))


@data_app.command(
    "opposites",
    cls=Command,
    epilog=examples(
        "bleurt-repro data opposites --output opposites.jsonl",
        "bleurt-repro data opposites --pairs 1000 --seed 1 --output opposites.jsonl",
    ),
)
def data_opposites(
    output: Annotated[str, typer.Option(help="JSONL file to write.")],
    pairs: Annotated[int, typer.Option(help="How many pairs to make.")] = 16_000,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Make English sentences, each with a paraphrase and a sentence that says the opposite."""
    from bleurt_repro.datasets_builders.contrasts import chosen_contrasts, write_contrasts
    from bleurt_repro.datasets_builders.contrasts.templates import make_opposite_pairs

    place = chosen_contrasts(output, overwrite=overwrite)
    _print_counts(write_contrasts(place, make_opposite_pairs(pairs, seed)))


@data_app.command(
    "paraphrases",
    cls=Command,
    epilog=examples(
        "bleurt-repro data paraphrases --output paraphrases.jsonl",
        "bleurt-repro data paraphrases --input mine.tsv --output paraphrases.jsonl",
    ),
)
def data_paraphrases(
    output: Annotated[str, typer.Option(help="JSONL file to write.")],
    input: Annotated[
        str | None,
        typer.Option(
            help="CSV, TSV, JSONL or Parquet with first, second, first_turned, second_turned; default: the library's own."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Make English sentences, each with a free paraphrase and with one whose meaning is turned, from a table of them."""
    from bleurt_repro.datasets_builders.contrasts.paraphrases import paraphrase_file

    _print_counts(paraphrase_file(output, input, overwrite))


@data_app.command(
    "near-copies",
    cls=Command,
    epilog=examples(
        "bleurt-repro data near-copies --ratings train.jsonl --output near-copies.jsonl",
        "bleurt-repro data near-copies --input text.tsv --column 3 --pairs 24000 --output near-copies.jsonl",
    ),
)
def data_near_copies(
    output: Annotated[str, typer.Option(help="JSONL file to write.")],
    input: Annotated[
        str | None, typer.Option(help="Text, TSV, CSV, JSONL or Parquet file, dataset folder or Hub id of sentences.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Column with the text: a name, or a number from 1.")] = None,
    ratings: Annotated[str | None, typer.Option(help="Ratings whose references are used, too.")] = None,
    pairs: Annotated[int, typer.Option(help="How many pairs to make.")] = 24_000,
    most_texts: Annotated[int, typer.Option(help="How many sentences of the input to read.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 0,
    turned: Annotated[
        float, typer.Option(help="Score of another meaning, in standard deviations of ratings (0: a system's output).")
    ] = -0.4,
    overwrite: Overwrite = False,
) -> None:
    """Make near copies of sentences: one thing changed, which turns the meaning, or keeps it."""
    from bleurt_repro.datasets_builders.contrasts.near_copies import near_copy_file

    _print_counts(near_copy_file(output, pairs, input, column, ratings, most_texts, seed, turned, overwrite))


def _print_counts(counts: dict[str, int]) -> None:
    for split, records in counts.items():
        echo(f"{split}: {records:,} records")


@data_app.command(
    "synthetic",
    cls=Command,
    epilog=examples(
        "bleurt-repro data synthetic --input text.txt --config small --output pairs",
        "bleurt-repro data synthetic --input text.txt --output pairs --num-shards 4 --shard-index 0",
    ),
)
def data_synthetic(
    output: Annotated[str, typer.Option(help="Folder to write to, or to resume.")],
    input: Annotated[
        str | None,
        typer.Option(help="Text, TSV, CSV, JSONL or Parquet file, dataset folder or Hub id; default: Wikipedia."),
    ] = None,
    config: Annotated[str, typer.Option(help="YAML file with the recipe, or 'paper' or 'small'.")] = "paper",
    num_shards: Annotated[int | None, typer.Option(help="Processes that share the work.")] = None,
    shard_index: Annotated[int | None, typer.Option(help="Which of them this is, from 0.")] = None,
    column: Annotated[str | None, typer.Option(help="Column with the text: a name, or a number from 1.")] = None,
    max_segments: Annotated[int | None, typer.Option(help="Stop after so many segments.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of all random choices.")] = None,
    masked_lm: Annotated[str | None, typer.Option(help="Model that fills masks.")] = None,
    translator: Annotated[str | None, typer.Option(help="One model of all directions, with >>fr<< prefixes.")] = None,
    bertscore_model: Annotated[str | None, typer.Option(help="Encoder of BERTscore.")] = None,
    entailment_model: Annotated[str | None, typer.Option(help="Three-label classifier.")] = None,
    beam_size: Annotated[int | None, typer.Option(help="Of mask filling.")] = None,
    masks_per_pass: Annotated[int | None, typer.Option(help="Masks filled between two runs of the model.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ...; default: the best there is.")] = None,
    progress: Annotated[bool | None, typer.Option(help="Progress bar; default: on a terminal.")] = None,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
) -> None:
    """Make pre-training pairs with all signals from plain text; models are folders or Hub ids."""
    from bleurt_repro.datasets_builders.synthetic.builder import read_info, report_text
    from bleurt_repro.datasets_builders.synthetic.config import read_config
    from bleurt_repro.datasets_builders.synthetic.make import make_synthetic_pairs

    recipe = read_config(config).with_options(
        column=column,
        max_segments=max_segments,
        seed=seed,
        masked_lm=masked_lm,
        translator=translator,
        bertscore_model=bertscore_model,
        entailment_model=entailment_model,
        beam_size=beam_size,
        masks_per_pass=masks_per_pass,
        device=device,
    )
    on_ray = chosen_engine(engine, address, workers)
    report = make_synthetic_pairs(input, output, recipe, num_shards, shard_index, progress, on_ray)
    if report is None:
        echo("This share is done; the last process to finish, or one more run of any, will sum up.")
    else:
        echo(report_text(read_info(output), report))


@data_app.command(
    "denoise",
    cls=Command,
    epilog=examples(
        "bleurt-repro data denoise --ratings train.jsonl --checkpoint run-1 run-2 --output denoised.jsonl",
        "bleurt-repro data denoise --ratings train.jsonl --checkpoint run-1 run-2 --method remove --output kept.jsonl",
    ),
)
def data_denoise(
    ratings: Annotated[str, typer.Option(help="CSV, TSV, JSONL or Parquet with reference, candidate, score, year.")],
    output: Annotated[str, typer.Option(help="JSONL file to write; a record of how is put beside it.")],
    checkpoint: Annotated[list[str] | None, typer.Option(help="Checkpoint that judges; repeatable.")] = None,
    scores: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: scores worked out elsewhere, one more judge; repeatable.")
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            help="Of the ratings that counts as noisy; default: 0.2, or 0.96 with scores of COMET and BLEURT."
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="rescore, remove, or mark alone.")] = "rescore",
    within: Annotated[str, typer.Option(help="Where ranks are counted, and the share: dataset or year.")] = "dataset",
    year: Annotated[list[int] | None, typer.Option(help="Where to look for noise; default: all. Repeatable.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ...; default: the best there is.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Find noisy ratings by how far several metrics disagree on their ranks; remove or re-score them (RoBLEURT)."""
    from bleurt_repro.training.denoise import denoise_file

    done = denoise_file(
        ratings,
        output,
        checkpoints=checkpoint or [],
        score_files=scores or [],
        share=share,
        method=method,
        years=year or [],
        within=within,
        device=device,
        overwrite=overwrite,
    )
    for name, counts in done.by_year.items():
        found = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
        echo(f"{name}: {found}")


@data_app.command(
    "pseudo-labels",
    cls=Command,
    epilog=examples(
        "bleurt-repro data pseudo-labels --input parallel.tsv --translator MODEL --teacher run-1 --output labelled",
        "bleurt-repro data pseudo-labels --input triples.jsonl --teacher run-1 run-2 --weight 2 1 --output labelled",
    ),
)
def data_pseudo_labels(
    input: Annotated[
        str, typer.Option(help="Parallel text: source, reference; with candidate, no translator needed.")
    ],
    output: Annotated[str, typer.Option(help="Folder to write to, or to resume.")],
    translator: Annotated[str | None, typer.Option(help="Sequence-to-sequence model that makes hypotheses.")] = None,
    prefix: Annotated[str, typer.Option(help="Put before each source, such as '>>en<< '.")] = "",
    teacher: Annotated[list[str] | None, typer.Option(help="Checkpoint that gives labels; repeatable.")] = None,
    scores: Annotated[
        list[str] | None, typer.Option(help="File of one score a triple, as of another metric; repeatable.")
    ] = None,
    weight: Annotated[
        list[float] | None, typer.Option(help="Of each teacher, then of each file of scores, in the mean; repeatable.")
    ] = None,
    dropping_rate: Annotated[float, typer.Option(help="Share of hypotheses that lose words.")] = 0.3,
    seed: Annotated[int, typer.Option(help="Of the dropping.")] = 0,
    lp: Annotated[str | None, typer.Option(help="Language pair to record, such as de-en.")] = None,
    max_records: Annotated[int | None, typer.Option(help="Stop after so many.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ...; default: the best there is.")] = None,
    dtype: Annotated[str, typer.Option(help="Arithmetic of the teachers: float32, bfloat16 or float16.")] = "float32",
    progress: Annotated[bool | None, typer.Option(help="Progress bars; default: on a terminal.")] = None,
) -> None:
    """Make pre-training ratings from parallel text: translations labelled by metrics (RoBLEURT)."""
    from bleurt_repro.datasets_builders.pseudo_labels import TRAIN, TRIPLES, PseudoLabelOptions, make_pseudo_labels

    options = PseudoLabelOptions(
        input=input,
        output=output,
        translator=translator,
        prefix=prefix,
        teachers=tuple(teacher or ()),
        score_files=tuple(scores or ()),
        weights=tuple(weight or ()),
        dropping_rate=dropping_rate,
        seed=seed,
        lp=lp,
        max_records=max_records,
        device=device,
        dtype=dtype,
    )
    info = make_pseudo_labels(options, progress)
    made = TRAIN if info["teachers"] else f"{TRIPLES} (no teacher named: score it elsewhere and give --scores)"
    echo(f"{info['triples']:,} triples, {info['with_dropped_words']:,} with words dropped: {made}")
    for name, cut in [
        ("the translator", info["truncated"]),
        *((t["name"], t.get("truncated")) for t in info["teachers"]),
    ]:
        if cut:
            echo(f"{name} did not read {cut:,} triples to their ends")
