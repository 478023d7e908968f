"""The commands that prepare data: `bleurt-repro data ...`."""

from __future__ import annotations

from typing import Annotated

import typer

from bleurt_repro.cli_style import (
    Address,
    Command,
    Device,
    Engine,
    Group,
    Overwrite,
    Progress,
    Workers,
    echo,
    examples,
    make_engine,
)
from bleurt_repro.metric.install import require_extra

data_app = typer.Typer(cls=Group, help="Prepare human ratings and synthetic pairs.", no_args_is_help=True)

# The default of options that override a setting of the recipe.
OF_RECIPE = "set by the recipe"
# Options that several commands share.
RATING_COLUMNS = "CSV, TSV, JSONL or Parquet file of ratings with the columns reference, candidate and score."
DataFolder = Annotated[
    str | None,
    typer.Option(
        help="Folder with rating files or the unpacked official archives.",
        show_default="download the official sources",
    ),
]
HubDataset = Annotated[
    str | None, typer.Option(help="Hub dataset to read instead of a folder: RicardoRei/wmt-da-human-evaluation.")
]
HubRevision = Annotated[str | None, typer.Option(help="Branch, tag or commit of the Hub dataset.")]
LanguagePairs = Annotated[list[str], typer.Option(help="One or more language pairs, such as de-en or '*-en'.")]
Format = Annotated[str, typer.Option(help="Format of the files: jsonl or parquet.")]
ResumableFolder = Annotated[str, typer.Option("--output", "-o", help="Folder to write; an unfinished one is resumed.")]
JsonlOutput = Annotated[str, typer.Option("--output", "-o", help="JSONL file to write.")]
PairCount = Annotated[int, typer.Option(help="Number of pairs to make.")]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.")]
SplitSeed = Annotated[int, typer.Option(help="Seed of the split.")]
TextColumn = Annotated[
    str | None, typer.Option(help="Column that holds the text: a name, or a number counted from 1.")
]


@data_app.command(
    "wmt",
    cls=Command,
    epilog=examples(
        "bleurt-repro data wmt --config-name 2018 --output wmt18",
        "bleurt-repro data wmt --config-name 2017 --data-dir ratings --language-pairs de-en cs-en --output wmt17",
    ),
)
def data_wmt(
    config_name: Annotated[
        str,
        typer.Option(
            help="Year to test on (2017, 2018, 2019, ...), 'all' to train on every year, or '2022-by-document' to divide 2022."
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder to write: the splits train, validation and test.")
    ],
    data_dir: DataFolder = None,
    hub_dataset: HubDataset = None,
    hub_revision: HubRevision = None,
    language_pairs: LanguagePairs = ["*-en"],  # noqa: B006
    validation_ratio: Annotated[
        float | None,
        typer.Option(help="Share of the training years to validate on.", show_default="the paper's for that year"),
    ] = None,
    one_record_per_system: Annotated[
        bool, typer.Option(help="Write a training record for each system if several had the same output.")
    ] = True,
    average_duplicates: Annotated[
        bool, typer.Option(help="Average the ratings of identical candidates into one training record.")
    ] = False,
    seed: SplitSeed = 0,
    format: Format = "jsonl",
    overwrite: Overwrite = False,
) -> None:
    """Write WMT human ratings of translations, split by year as in the paper."""
    from bleurt_repro.datasets_builders.ratings.export import export_builder
    from bleurt_repro.datasets_builders.ratings.wmt import WmtRatings

    counts = export_builder(
        WmtRatings,
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
    config_name: Annotated[str, typer.Option(help="Year of the evaluation: 2018, 2019, ...")],
    output: Annotated[str, typer.Option("--output", "-o", help="Folder to write: the split test.")],
    data_dir: DataFolder = None,
    hub_dataset: HubDataset = None,
    hub_revision: HubRevision = None,
    language_pairs: LanguagePairs = ["*-en"],  # noqa: B006
    min_difference: Annotated[
        float, typer.Option(help="Smallest difference of two raw scores (0 to 100) that makes a pair.")
    ] = 25.0,
    given: Annotated[
        bool, typer.Option("--given", help="Read the official daRR pairs instead of making pairs from ratings.")
    ] = False,
    format: Format = "jsonl",
    overwrite: Overwrite = False,
) -> None:
    """Write pairs of translations, one rated clearly better than the other (daRR)."""
    from bleurt_repro.datasets_builders.ratings.export import export_builder
    from bleurt_repro.datasets_builders.ratings.relative_ranks import WmtRelativeRanks

    counts = export_builder(
        WmtRelativeRanks,
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
    output: Annotated[str, typer.Option("--output", "-o", help="Folder to write: the splits of the configuration.")],
    data_dir: Annotated[
        str | None,
        typer.Option(
            help="Folder with the WebNLG 2017 human evaluation.", show_default="download the official package"
        ),
    ] = None,
    config_name: Annotated[str, typer.Option(help="How to split: all (one test set), by_system or by_input.")] = "all",
    training_systems: Annotated[
        int | None,
        typer.Option(
            help="Number of systems to train on; 0, 2, 3 or 5 in the paper.", show_default="5 with by_system"
        ),
    ] = None,
    training_inputs: Annotated[
        int | None,
        typer.Option(
            help="Number of inputs to train on; 0, 38, 66 or 122 in the paper.", show_default="122 with by_input"
        ),
    ] = None,
    seed: SplitSeed = 0,
    format: Format = "jsonl",
    overwrite: Overwrite = False,
) -> None:
    """Write WebNLG human ratings of data-to-text systems: fluency, grammar and semantics."""
    from bleurt_repro.datasets_builders.ratings.export import export_builder
    from bleurt_repro.datasets_builders.ratings.webnlg import WebNlgRatings

    sizes_by_config = {
        "by_system": ("training_systems", training_systems),
        "by_input": ("training_inputs", training_inputs),
    }
    sizes = {name: size for name, size in sizes_by_config.values() if size is not None}
    for config, (name, size) in sizes_by_config.items():
        if size is not None and config != config_name:
            raise ValueError(
                f"{name} needs --config-name {config}, found {config_name}: change one of them, or leave {name} out"
            )
    options = {"data_dir": data_dir, "seed": seed, **sizes}
    _print_counts(export_builder(WebNlgRatings, config_name, output, format, overwrite, **options))


@data_app.command(
    "mqm",
    cls=Command,
    epilog=examples(
        "bleurt-repro data mqm --config-name zh-en --output mqm-zh-en",
        "bleurt-repro data mqm --config-name ted-en-de --data-dir repositories --output mqm-ted-en-de",
    ),
)
def data_mqm(
    config_name: Annotated[
        str,
        typer.Option(
            help="Set: zh-en or en-de (news of 2021); with marked errors 2020-zh-en, 2020-en-de, ted-zh-en, ted-en-de, "
            "2022-zh-en or 2022-en-de."
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="Folder to write: the splits validation and test.")],
    data_dir: Annotated[
        str | None,
        typer.Option(
            help="Folder with the official files, or a file of the ratings.",
            show_default="download the official files",
        ),
    ] = None,
    format: Format = "jsonl",
    overwrite: Overwrite = False,
) -> None:
    """Write expert ratings (MQM) of translations from WMT 2020 to 2022."""
    from bleurt_repro.datasets_builders.ratings.export import export_builder
    from bleurt_repro.datasets_builders.ratings.mqm import MqmRatings

    _print_counts(export_builder(MqmRatings, config_name, output, format, overwrite, data_dir=data_dir))


@data_app.command(
    "mlqe",
    cls=Command,
    epilog=examples(
        "bleurt-repro data mlqe --config-name ro-en --output mlqe-ro-en",
        "bleurt-repro data mlqe --config-name en-de --data-dir mlqe-pe/data --output mlqe-en-de",
    ),
)
def data_mlqe(
    config_name: Annotated[
        str, typer.Option(help="Language pair: et-en, ne-en, ro-en, ru-en, si-en, en-de or en-zh.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Folder to write: the splits train, validation and test.")
    ],
    data_dir: Annotated[
        str | None,
        typer.Option(help="Folder with the unpacked archives.", show_default="download the official archives"),
    ] = None,
    format: Format = "jsonl",
    overwrite: Overwrite = False,
) -> None:
    """Write ratings of translations by professional translators, with post-edits (MLQE-PE)."""
    from bleurt_repro.datasets_builders.ratings.export import export_builder
    from bleurt_repro.datasets_builders.ratings.mlqe import MlqePe

    _print_counts(export_builder(MlqePe, config_name, output, format, overwrite, data_dir=data_dir))


@data_app.command(
    "ratings",
    cls=Command,
    epilog=examples(
        "bleurt-repro data ratings --input ratings.csv --output ratings",
        "bleurt-repro data ratings --input ratings.jsonl --output ratings --validation-ratio 0.2 --format parquet",
    ),
)
def data_ratings(
    input: Annotated[str, typer.Option(help=RATING_COLUMNS)],
    output: Annotated[str, typer.Option("--output", "-o", help="Folder to write: the splits train and validation.")],
    validation_ratio: Annotated[float, typer.Option(help="Share of the ratings to validate on.")] = 0.1,
    seed: SplitSeed = 0,
    format: Format = "jsonl",
    overwrite: Overwrite = False,
) -> None:
    """Check your own ratings and split them so that no segment is in both splits."""
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
    ratings: Annotated[str, typer.Option(help=RATING_COLUMNS)],
    output: Annotated[
        str, typer.Option("--output", "-o", help="JSONL file to write: the ratings, followed by the anchors.")
    ],
    share: Annotated[float, typer.Option(help="Number of anchors as a share of the number of ratings.")] = 0.3,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Add anchors: pairs with an obvious rating, such as identical, empty, shuffled or unrelated texts."""
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
        list[str],
        typer.Option(help="One or more TSV files, one per language: source, split, English sentence and translation."),
    ],
    output: JsonlOutput,
    pairs: PairCount = 30_000,
    ratings: Annotated[
        str | None, typer.Option(help="File of ratings whose best candidates are altered as well.")
    ] = None,
    seed: Seed = 0,
    reordered: Annotated[float, typer.Option(help="Share of pairs whose sentence is reordered by rule.")] = 0.3,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="One or more prefixes of the names of sources to leave out.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Make contrasts from parallel text: paraphrases, and altered copies with another meaning."""
    from bleurt_repro.datasets_builders.contrasts.parallel_contrasts import contrast_file

    skipped = leave_out or ()
    _print_counts(contrast_file(parallel, output, pairs, ratings, seed, reordered, skipped, overwrite))


@data_app.command(
    "roles",
    cls=Command,
    epilog=examples(
        "bleurt-repro data roles --output roles.jsonl",
        "bleurt-repro data roles --pairs 1000 --seed 1 --output roles.jsonl",
    ),
)
def data_roles(
    output: JsonlOutput,
    pairs: PairCount = 16_000,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Make English sentences with two participants, each with a paraphrase and a copy that exchanges the two."""
    from bleurt_repro.datasets_builders.contrasts import chosen_contrasts, write_contrasts
    from bleurt_repro.datasets_builders.contrasts.templates import make_role_pairs

    path = chosen_contrasts(output, overwrite=overwrite)
    _print_counts(write_contrasts(path, make_role_pairs(pairs, seed)))


@data_app.command(
    "opposites",
    cls=Command,
    epilog=examples(
        "bleurt-repro data opposites --output opposites.jsonl",
        "bleurt-repro data opposites --pairs 1000 --seed 1 --output opposites.jsonl",
    ),
)
def data_opposites(
    output: JsonlOutput,
    pairs: PairCount = 16_000,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Make English sentences, each with a paraphrase and a sentence of the opposite meaning."""
    from bleurt_repro.datasets_builders.contrasts import chosen_contrasts, write_contrasts
    from bleurt_repro.datasets_builders.contrasts.templates import make_opposite_pairs

    path = chosen_contrasts(output, overwrite=overwrite)
    _print_counts(write_contrasts(path, make_opposite_pairs(pairs, seed)))


@data_app.command(
    "paraphrases",
    cls=Command,
    epilog=examples(
        "bleurt-repro data paraphrases --output paraphrases.jsonl",
        "bleurt-repro data paraphrases --input mine.tsv --output paraphrases.jsonl",
    ),
)
def data_paraphrases(
    output: JsonlOutput,
    input: Annotated[
        str | None,
        typer.Option(
            help="CSV, TSV, JSONL or Parquet file with the columns first, second, first_turned and second_turned: two "
            "paraphrases, and both with a changed meaning.",
            show_default="the file in the package",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Make English sentences, each with a free paraphrase and with one whose meaning is changed, from a table."""
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
    output: JsonlOutput,
    input: Annotated[
        str | None,
        typer.Option(help="Sentences: a text, TSV, CSV, JSONL or Parquet file, a dataset folder or a Hub dataset."),
    ] = None,
    column: TextColumn = None,
    ratings: Annotated[str | None, typer.Option(help="File of ratings whose references are used as well.")] = None,
    pairs: PairCount = 24_000,
    most_texts: Annotated[int, typer.Option(help="Largest number of sentences to read from the input.")] = 50_000,
    seed: Seed = 0,
    turned: Annotated[
        float,
        typer.Option(
            help="Score of copies with a changed meaning, in standard deviations; 0 is an average translation."
        ),
    ] = -0.4,
    overwrite: Overwrite = False,
) -> None:
    """Make near copies: sentences with one change that either keeps the meaning or changes it."""
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
    output: ResumableFolder,
    input: Annotated[
        str | None,
        typer.Option(
            help="Texts: a text, TSV, CSV, JSONL or Parquet file, a dataset folder or a Hub dataset.",
            show_default="wikimedia/wikipedia",
        ),
    ] = None,
    config: Annotated[
        str, typer.Option(help="YAML file with the recipe, or a recipe in the package: paper or small.")
    ] = "paper",
    num_shards: Annotated[
        str | None,
        typer.Option(help="Number of processes that share the work; auto: torchrun's processes.", show_default="1"),
    ] = None,
    shard_index: Annotated[
        int | None, typer.Option(help="Index of this process, counted from 0.", show_default="0")
    ] = None,
    column: TextColumn = None,
    max_segments: Annotated[
        int | None, typer.Option(help="Largest number of segments to use.", show_default=OF_RECIPE)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all random choices.", show_default=OF_RECIPE)] = None,
    masked_lm: Annotated[
        str | None, typer.Option(help="Masked language model that fills masks.", show_default=OF_RECIPE)
    ] = None,
    translator: Annotated[
        str | None,
        typer.Option(
            help="One translation model for all directions, told the language by prefixes such as >>fr<<.",
            show_default=OF_RECIPE,
        ),
    ] = None,
    pivots: Annotated[
        list[str] | None,
        typer.Option(
            help="One or more languages that candidates are back-translated through, such as de.",
            show_default=OF_RECIPE,
        ),
    ] = None,
    likelihood_pivots: Annotated[
        list[str] | None,
        typer.Option(help="One or more languages of the back-translation likelihood.", show_default=OF_RECIPE),
    ] = None,
    bertscore_model: Annotated[str | None, typer.Option(help="Encoder of BERTScore.", show_default=OF_RECIPE)] = None,
    entailment_model: Annotated[
        str | None, typer.Option(help="Entailment classifier with three labels.", show_default=OF_RECIPE)
    ] = None,
    beam_size: Annotated[int | None, typer.Option(help="Beam size of mask filling.", show_default=OF_RECIPE)] = None,
    masks_per_pass: Annotated[
        int | None, typer.Option(help="Masks filled per forward pass of the masked model.", show_default=OF_RECIPE)
    ] = None,
    device: Device = None,
    progress: Progress = None,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
) -> None:
    """Make synthetic pre-training pairs with their signals from plain text; models are folders or Hub ids."""
    require_extra("data", "data synthetic")
    from bleurt_repro.datasets_builders.synthetic.builder import read_info, report_text
    from bleurt_repro.datasets_builders.synthetic.config import read_config
    from bleurt_repro.datasets_builders.synthetic.make import make_synthetic_pairs

    recipe = read_config(config).with_options(
        column=column,
        max_segments=max_segments,
        seed=seed,
        masked_lm=masked_lm,
        translator=translator,
        pivots=tuple(pivots) if pivots else None,
        likelihood_pivots=tuple(likelihood_pivots) if likelihood_pivots else None,
        bertscore_model=bertscore_model,
        entailment_model=entailment_model,
        beam_size=beam_size,
        masks_per_pass=masks_per_pass,
        device=device,
    )
    ray = make_engine(engine, address, workers)
    report = make_synthetic_pairs(input, output, recipe, num_shards, shard_index, progress, ray)
    if report is None:
        echo("This shard is finished. The last shard to finish, or a repeated run of any shard, writes the summary.")
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
    ratings: Annotated[
        str,
        typer.Option(
            help="CSV, TSV, JSONL or Parquet file of ratings with the columns reference, candidate, score and year."
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="JSONL file to write; a JSON record of the run is written beside it.")
    ],
    checkpoint: Annotated[
        list[str] | None, typer.Option(help="One or more checkpoints whose scores rank the ratings.")
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(help="One or more NAME=FILE: scores of another metric, one per rating, that rank them as well."),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            help="Share of the ratings to treat as noisy.", show_default="0.2, or 0.96 with scores of COMET and BLEURT"
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="What to do with noisy ratings: rescore, remove or mark.")] = "rescore",
    within: Annotated[
        str,
        typer.Option(help="Ratings that are ranked against each other, and that the share counts: dataset or year."),
    ] = "dataset",
    year: Annotated[
        list[int] | None, typer.Option(help="One or more years in which to look for noise.", show_default="all years")
    ] = None,
    device: Device = None,
    overwrite: Overwrite = False,
) -> None:
    """Find noisy ratings, whose ranks differ most between metrics, and rescore or remove them (RoBLEURT)."""
    require_extra("train", "data denoise")
    from bleurt_repro.training.denoise import denoise_file

    denoised = denoise_file(
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
    for name, counts in denoised.by_year.items():
        echo(f"{name}: {', '.join(f'{count:,} {label}' for label, count in counts.items())}")


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
        str,
        typer.Option(
            help="Parallel text with the columns source and reference; a column candidate replaces the translator."
        ),
    ],
    output: ResumableFolder,
    translator: Annotated[
        str | None, typer.Option(help="Translation model that makes the candidates: folder or Hub id.")
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="Text that the translator reads before each source, such as '>>en<< '.")
    ] = "",
    teacher: Annotated[
        list[str] | None, typer.Option(help="One or more checkpoints whose scores become labels.")
    ] = None,
    scores: Annotated[
        list[str] | None, typer.Option(help="One or more files of scores of another metric, one score per line.")
    ] = None,
    weight: Annotated[
        list[float] | None,
        typer.Option(
            help="Weights of the teachers, then of the files of scores, in the mean.", show_default="equal weights"
        ),
    ] = None,
    dropping_rate: Annotated[float, typer.Option(help="Share of candidates that lose words.")] = 0.3,
    seed: Annotated[int, typer.Option(help="Seed of the word dropping.")] = 0,
    lp: Annotated[str | None, typer.Option(help="Language pair to record, such as de-en.")] = None,
    max_records: Annotated[
        int | None, typer.Option(help="Largest number of records to make.", show_default="all")
    ] = None,
    device: Device = None,
    dtype: Annotated[str, typer.Option(help="Precision of the teachers: float32, bfloat16 or float16.")] = "float32",
    progress: Progress = None,
) -> None:
    """Make pseudo-labelled ratings from parallel text: machine translations scored by metrics (RoBLEURT)."""
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
    file = (
        TRAIN
        if info["teachers"]
        else f"{TRIPLES} (without --teacher: score it with another metric, then add --scores)"
    )
    echo(f"{info['triples']:,} triples, {info['with_dropped_words']:,} with words dropped: {file}")
    for name, cut in [
        ("the translator", info["truncated"]),
        *((t["name"], t.get("truncated")) for t in info["teachers"]),
    ]:
        if cut:
            echo(f"{cut:,} triples were longer than {name} reads, and were truncated")
