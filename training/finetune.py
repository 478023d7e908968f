"""Fine-tune a scorer on human ratings (BLEURT, sections 3 and B.1).

    bleurt-repro finetune --model MODEL --train-file train.jsonl --validation-file validation.jsonl --output OUT
    bleurt-repro finetune --config finetune_mini --model MODEL --train-file ratings.csv --output OUT [--resume]
    torchrun --nproc-per-node 8 -m bleurt_repro.training.finetune --config finetune_large ...

MODEL is a bare encoder, a pre-trained BLEURT, a converted official checkpoint or any scorer: a folder, a Hub id or an
embedded name. OUT becomes a checkpoint that `BleurtScorer(OUT)` opens, with results.json and curves.png beside it.

From Python:

    ratings = RatingArguments(model="encoder", train_file="ratings.csv")
    result = finetune(ratings, FinetuningArguments(output_dir="out", max_steps=1000))
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from bleurt_repro.metric.layout import CONFIG_KEY, LAYOUTS, Layout, readable_positions, separators_of
from bleurt_repro.training.arguments import run_as_command
from bleurt_repro.training.run import RunArguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np
    from datasets import Dataset
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import EvalPrediction, PreTrainedModel, PreTrainedTokenizerBase
    from transformers.modeling_outputs import SequenceClassifierOutput

    from bleurt_repro.training.results import Result

    RelativeRanks = tuple[NDArray[np.intp], NDArray[np.intp]]  # places of better and of worse candidates

# Ratings beyond these are far from standardised: 760 of 1 to 3 points took a trained scorer from tau 49 to 29, the same
# ones standardised to 53 (docs/reproduction.md, figure 3).
FARTHEST_MEAN, LEAST_DEVIATION, LARGEST_DEVIATION = 1.0, 0.1, 3.0
# Ratings of a language pair from which its own mean and deviation are taken; of fewer, those of the whole file.
LEAST_OF_A_PAIR = 20
# What training takes of a rating.
COLUMNS = ("lp", "source", "reference", "candidate", "score", "raw_score")
# Validation ratings that are compared with each other when the ranking loss is measured.
RANKED_TOGETHER = 128


@dataclass
class RatingArguments:
    """What is trained, on which ratings."""

    _argument_group_name: ClassVar[str] = "model and ratings"  # in --help

    model: str = field(metadata={"help": "Encoder, pre-trained BLEURT or scorer: folder, Hub id or embedded name."})
    train_file: str = field(metadata={"help": "Ratings to train on: JSONL, CSV, TSV or Parquet."})
    validation_file: str | None = field(
        default=None, metadata={"help": "Ratings that choose the best checkpoint; by default a part of train_file."}
    )
    validation_ratio: float = field(
        default=0.1, metadata={"help": "That part, no reference or source on both sides (BLEURT, section B.2)."}
    )
    max_length: int | None = field(
        default=None, metadata={"help": "Most tokens of a pair; by default what the model was made for, or 512."}
    )
    layout: str | None = field(
        default=None,
        metadata={
            "help": "What it reads: bleurt, robleurt-src (source, candidate, reference), robleurt-nosrc (candidate, "
            "reference) or reference-free; by default what the model records, or bleurt."
        },
    )
    export_dtype: str = field(
        default="float32", metadata={"help": "Of the stored weights: float32, bfloat16, float16."}
    )
    standardize: bool = field(
        default=True,
        metadata={
            "help": "Standardise ratings that are far from mean 0 and deviation 1, each language pair by itself."
        },
    )
    loss: str = field(default="regression", metadata={"help": "regression (BLEURT, section 3), or ranking."})
    ranking_clip: bool = field(
        default=True, metadata={"help": "Cut predictions to 0..1 in the ranking loss, as the official release does."}
    )

    def __post_init__(self) -> None:
        if self.loss not in ("regression", "ranking"):
            raise ValueError(f"loss must be regression or ranking, found {self.loss!r}")
        if self.export_dtype not in ("float32", "bfloat16", "float16"):
            raise ValueError(f"export_dtype must be float32, bfloat16 or float16, found {self.export_dtype!r}")
        if self.layout not in (None, *LAYOUTS):
            raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, found {self.layout!r}")


@dataclass
class FinetuningArguments(RunArguments):
    """The Trainer's arguments, with the defaults of BLEURT, section B.1."""

    # darr: relative ranks made of the raw scores of validation ratings, by which RoBLEURT is measured (section 3.1)
    MEASURES: ClassVar[tuple[str, ...]] = ("kendall_tau", "pearson_r", "darr", "loss")
    PAPER_STEPS: ClassVar[int] = 40_000

    max_steps: int | None = field(
        default=None,
        metadata={"help": "Steps of training; by default 40,000 (BLEURT, B.1), or as num_train_epochs says."},
    )
    metric_for_best_model: str | None = "kendall_tau"
    greater_is_better: bool | None = True


def validation_measures(
    ratings: RatingArguments, ranks: RelativeRanks | None = None
) -> Callable[[EvalPrediction], dict[str, float]]:
    """Return the function that computes loss, Kendall tau and Pearson r of a validation pass, for the Trainer.

    Args:
        ratings: names the loss.
        ranks: places of validation ratings; with them, daRR is computed too.
    """
    import numpy as np
    import torch

    from bleurt_repro.metric.statistics import darr, kendall_tau, pearson_r
    from bleurt_repro.training.losses import RANKING_RANGE, ranking_loss

    def measure(prediction: EvalPrediction) -> dict[str, float]:
        scores, targets = np.ravel(prediction.predictions), np.ravel(prediction.label_ids)
        if ratings.loss == "regression":
            loss = float(np.mean((scores - targets) ** 2))
        else:
            clip = RANKING_RANGE if ratings.ranking_clip else None
            parts = [torch.as_tensor(values).split(RANKED_TOGETHER) for values in (scores, targets)]
            losses = [ranking_loss(some, targeted, clip).item() for some, targeted in zip(*parts, strict=True)]
            loss = float(np.mean(losses))
        found = {"loss": loss, "kendall_tau": 0.0, "pearson_r": 0.0}
        if np.ptp(scores) > 0:  # a model may be constant at the start: no agreement, but no reason to end the run
            found |= {"kendall_tau": kendall_tau(scores, targets), "pearson_r": pearson_r(scores, targets)}
        return found | ({"darr": darr(*(scores[places] for places in ranks))} if ranks else {})

    return measure


def relative_ranks_of(side: Dataset, layout: Layout) -> RelativeRanks:
    """Find all two candidates of a segment whose raw scores lie 25 points of 100 apart or more (daRR).

    Args:
        side: validation ratings, with raw_score.
        layout: what a segment is: the texts that are read beside the candidate.

    Returns:
        places of the better candidates, and of the worse ones.

    Raises:
        ValueError: if there are none.
    """
    import numpy as np

    from bleurt_repro.datasets_builders.ratings.relative_ranks import MIN_DIFFERENCE

    segments: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    texts = zip(*(side[name] for name in layout.inputs if name != "candidate"), strict=True)
    for place, (segment, raw) in enumerate(zip(texts, side["raw_score"], strict=True)):
        if raw is not None:
            segments.setdefault(segment, []).append((place, raw))
    two = [pair for rated in segments.values() for pair in combinations(rated, 2)]
    ranked = [sorted(pair, key=lambda one: -one[1]) for pair in two if abs(pair[0][1] - pair[1][1]) >= MIN_DIFFERENCE]
    if not ranked:
        raise ValueError(
            "metric_for_best_model darr needs validation ratings with a raw_score, of segments with two candidates that lie "
            f"{MIN_DIFFERENCE:g} points of 100 apart or more, found none: add them, or choose by kendall_tau"
        )
    better, worse = (np.array([pair[i][0] for pair in ranked]) for i in (0, 1))
    return better, worse


def loss_function(ratings: RatingArguments) -> Callable[..., Tensor] | None:
    """Return the loss for the Trainer to take; None for the model's own, squared error."""
    if ratings.loss == "regression":
        return None

    from bleurt_repro.training.losses import RANKING_RANGE, ranking_loss

    clip = RANKING_RANGE if ratings.ranking_clip else None

    def compute(outputs: SequenceClassifierOutput, labels: Tensor, **_: Any) -> Tensor:
        assert outputs.logits is not None
        return ranking_loss(outputs.logits.float().squeeze(-1), labels, clip)

    return compute


def open_model(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Open what fine-tuning starts from; where it has no head of one label, with a new one."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from bleurt_repro.metric.loading.open import find_checkpoint

    folder = find_checkpoint(name)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder,
        num_labels=1,
        problem_type="regression",
        dtype="float32",
        trust_remote_code=False,
        use_safetensors=True,
        ignore_mismatched_sizes=True,  # an entailment classifier's encoder is a good start (RoBLEURT, section 2.1)
    )
    return model, tokenizer


def layout_for(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_length: int | None = None, name: str | None = None
) -> Layout:
    """Return the layout to train with: what the checkpoint records, or the one named, at most as long as asked for.

    Args:
        model: what is trained.
        tokenizer: its own; its family says how many separators stand between two texts.
        max_length: most tokens; by default what the model was made for, or 512.
        name: one of `LAYOUTS`; by default what is recorded, or BLEURT's own.

    Raises:
        ValueError: if the model reads fewer tokens, or records another layout than the one named.
    """
    layout, is_recorded = Layout.from_config(model.config), hasattr(model.config, CONFIG_KEY)
    if is_recorded and name and LAYOUTS[name] != layout.inputs:
        raise ValueError(
            f"the model was made to read {', '.join(layout.inputs)}, but layout {name} is {', '.join(LAYOUTS[name])}: "
            "leave layout out, or begin with a bare encoder"
        )
    if not is_recorded:
        layout = replace(layout, inputs=LAYOUTS[name or "bleurt"], separators=separators_of(tokenizer))
    longest = readable_positions(model.config) or layout.max_length  # a scorer may be trained to read more than it did
    if max_length is not None and max_length > longest:
        raise ValueError(f"max_length {max_length} is more than the {longest} tokens that this model reads")
    return replace(layout, max_length=max_length or layout.max_length)


def standardize_ratings(sides: Mapping[str, Dataset]) -> tuple[dict[str, Dataset], dict[str, Any] | None]:
    """Bring ratings that are far from standardised to mean 0 and deviation 1, those of each language pair by themselves.

    A fresh head predicts about 0, and a trained one standardised ratings (BLEURT, section 5.1): of other ratings the first
    steps teach little but the scale. Validation ratings are transformed by the mean and deviation of the *training* ratings
    of their language pair, as the model's predictions are: so the validation loss is on the scale of the training loss, and
    nothing of the validation ratings enters training.

    Args:
        sides: "train" and "validation", each with "score" and "lp".

    Returns:
        the data sets with the new scores; and what was done, "by" and the "mean", "deviation" and number of "ratings" by
        language pair; None if the training ratings are about standardised already, and all stay as they are.
    """
    import numpy as np

    from bleurt_repro.metric.statistics import standardise

    scores, places = _scores(sides["train"]), _by_language_pair(sides["train"])
    if abs(scores.mean()) <= FARTHEST_MEAN and LEAST_DEVIATION < scores.std() < LARGEST_DEVIATION:
        return dict(sides), None
    own = {name: scores[where] for name, where in places.items() if name and len(where) >= LEAST_OF_A_PAIR}
    own = {name: values for name, values in own.items() if values.std() > 0}
    done = {}
    for kind, side in sides.items():
        values = np.empty(len(side))
        for name, where in _by_language_pair(side).items():
            values[where] = standardise(_scores(side)[where], own.get(name, scores))
        done[kind] = side.remove_columns("score").add_column("score", values)
    pooled = {"all others" if own else "all": scores} if set(places) - set(own) else {}
    groups = {
        name: {"mean": float(values.mean()), "deviation": float(values.std()), "ratings": len(values)}
        for name, values in {**own, **pooled}.items()
    }
    return done, {"by": "lp" if own else "file", "groups": groups}


def _scores(side: Dataset) -> NDArray[np.float64]:
    import numpy as np

    return np.array(side["score"][:], dtype=np.float64)


def _by_language_pair(side: Dataset) -> dict[str, NDArray[np.int64]]:
    """Return the places of the ratings of each language pair; "" stands for none."""
    import numpy as np

    names, places = np.unique([name or "" for name in side["lp"]], return_inverse=True)
    return {str(name): np.flatnonzero(places == i) for i, name in enumerate(names)}


def read_data(ratings: RatingArguments, layout: Layout, seed: int) -> tuple[dict[str, Dataset], dict[str, Any] | None]:
    """Read the ratings to train and to validate on, into Arrow files: millions of them do not fit into lists.

    Returns:
        the data sets "train" and "validation"; and how ratings were standardised, or None if they were not.

    Raises:
        ValueError: if there are too few ratings, or their scores do not vary.
    """
    rows = _read_ratings(ratings.train_file, layout)
    if ratings.validation_file:
        sides = {"train": rows, "validation": _read_ratings(ratings.validation_file, layout)}
    else:
        sides = _split(rows, ratings, seed)
    for name, side in sides.items():
        _check_ratings(name, side, ratings, layout)
    done = None
    if ratings.standardize and ratings.loss == "regression":
        sides, done = standardize_ratings(sides)
    if done:
        warnings.warn(
            f"the ratings of {ratings.train_file} are standardised (mean 0, deviation 1 by {done['by']}), as they are far "
            "from it; --no-standardize leaves them as they are",
            stacklevel=2,
        )
    return {name: side.select_columns([*layout.inputs, "score", "raw_score"]) for name, side in sides.items()}, done


def _read_ratings(path: str, layout: Layout) -> Dataset:
    """Read a file of ratings into an Arrow file in the cache of `datasets`; once, until the file changes."""
    from datasets import Dataset, Features
    from datasets.exceptions import DatasetGenerationError

    from bleurt_repro.datasets_builders.ratings.rating_files import REQUIRED_COLUMNS, ratings_features
    from bleurt_repro.training.results import fingerprint

    # not a list, which `datasets` would take for shards
    required = tuple(name for name in REQUIRED_COLUMNS if name != "reference" or layout.reads_references)
    features = Features({name: ratings_features()[name] for name in COLUMNS})
    arguments = {"path": path, "required": required, "sha256": fingerprint([path])[0]["sha256"]}
    try:
        found = Dataset.from_generator(_each_row, features=features, gen_kwargs=arguments)
    except DatasetGenerationError as error:
        raise error.__cause__ or error from None
    assert isinstance(found, Dataset)
    return found


def _each_row(path: str, required: tuple[str, ...], sha256: str) -> Iterator[dict[str, Any]]:
    """Read the columns of each rating; the hash stands among the arguments because `datasets` knows the data by them."""
    from bleurt_repro.datasets_builders.ratings.rating_files import each_rating

    for rating in each_rating(path, required):
        yield {name: rating[name] for name in COLUMNS}


def _split(rows: Dataset, ratings: RatingArguments, seed: int) -> dict[str, Dataset]:
    """Split ratings into those to train and to validate on, no reference or source on both sides."""
    from bleurt_repro.datasets_builders.ratings.splits import split_without_overlap

    # two ratings at least on each side
    least = max(4, math.ceil(2 / ratings.validation_ratio)) if 0 < ratings.validation_ratio < 1 else 4
    if len(rows) < least:
        raise ValueError(
            f"{ratings.train_file} has {len(rows)} rating(s), too few to set any apart for validation: at least {least} "
            f"are needed with validation_ratio {ratings.validation_ratio:g}, or a --validation-file"
        )
    train, validation = split_without_overlap(cast("Any", rows), ratings.validation_ratio, seed)
    return {"train": rows.select(train), "validation": rows.select(validation)}


def _check_ratings(name: str, side: Dataset, ratings: RatingArguments, layout: Layout) -> None:
    file = ratings.validation_file if name == "validation" and ratings.validation_file else ratings.train_file
    if layout.reads_sources and any(source is None for source in side["source"]):
        raise ValueError(f"the model reads sources, but {name} ratings of {file} have none")
    if len(side) < 2 or _scores(side).min() == _scores(side).max():
        raise ValueError(
            f"the {name} ratings ({len(side)} of {file}) must be at least two with different scores: from equal ones "
            "nothing can be learnt or chosen; give more ratings, or set another part apart with --validation-ratio"
        )


def finetune(
    ratings: RatingArguments, arguments: FinetuningArguments, card: Callable[[Path], None] | None = None
) -> Result:
    """Fine-tune a scorer on ratings, and write it to `arguments.output_dir`.

    Args:
        ratings: what is trained, on which ratings.
        arguments: how, and where the checkpoint goes.
        card: draws the card into the folder of the checkpoint; there is none by default.

    Returns:
        what results.json holds, in every process.

    Raises:
        FileNotFoundError: if there is no such model or file.
        ValueError: if settings and data do not fit together, or the folder holds another run.
        OSError: if the disk is full.
    """
    from bleurt_repro.metric.loading.open import find_checkpoint
    from bleurt_repro.training.results import fingerprint
    from bleurt_repro.training.run import run_folder

    model = find_checkpoint(ratings.model)
    files = fingerprint([path for path in (ratings.train_file, ratings.validation_file) if path])
    with run_folder(arguments, ratings, model, {f"data {file['file']}": file["sha256"] for file in files}):
        return _finetune(model, files, ratings, arguments, card)


def _finetune(
    folder: Path,
    files: list[dict[str, str]],
    ratings: RatingArguments,
    arguments: FinetuningArguments,
    card: Callable[[Path], None] | None,
) -> Result:
    import torch
    from transformers import set_seed

    from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer
    from bleurt_repro.training.collator import PairCollator, encode_texts
    from bleurt_repro.training.run import finish, train, whole_state
    from bleurt_repro.training.trainer import ScorerTrainer

    set_seed(arguments.seed)
    model, tokenizer = open_model(str(folder))
    layout = layout_for(model, tokenizer, ratings.max_length, ratings.layout)
    prepare_scorer(model, tokenizer, layout)
    with arguments.main_process_first(desc="tokenise"):  # the others read what it has written
        texts, standardized = read_data(ratings, layout, arguments.seed)
        data = {
            name: encode_texts(side, tokenizer, layout, keep=["score"], num_proc=arguments.num_proc)
            for name, side in texts.items()
        }
    if standardized:
        getattr(model.config, CONFIG_KEY)["ratings"] = standardized

    ranks = relative_ranks_of(texts["validation"], layout) if arguments.metric_for_best_model == "darr" else None
    trainer = ScorerTrainer(
        model=model,
        args=arguments,
        data_collator=PairCollator(
            tokenizer, {"score": "labels"}, segments=getattr(model.config, "type_vocab_size", 0) > 1
        ),
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        processing_class=tokenizer,
        compute_metrics=validation_measures(ratings, ranks),
        compute_loss_func=loss_function(ratings),
    )
    seconds = train(trainer, arguments)
    state = whole_state(trainer)

    def save(folder: Path) -> None:
        scorer = model
        if trainer.is_fsdp_enabled:  # each process holds a share of `model`: fill a new one
            scorer = type(model)(model.config)
            scorer.load_state_dict(state)
        save_scorer(scorer, tokenizer, folder, getattr(torch, ratings.export_dtype))

    provenance = {
        "files": files,
        **{f"{name}_ratings": len(side) for name, side in data.items()},
        "truncated": sum(sum(side["truncated"]) for side in data.values()),
        "standardized": standardized,
    }
    return finish(trainer, "finetune", ratings, provenance, seconds, save, card)


if __name__ == "__main__":
    run_as_command("finetune")
