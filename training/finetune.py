"""Fine-tune a scorer on human ratings (BLEURT, sections 3 and B.1).

    bleurt-repro finetune --model MODEL --train-file train.jsonl --validation-file validation.jsonl --output-dir OUT
    bleurt-repro finetune --config finetune_mini --model MODEL --train-file ratings.csv --output-dir OUT [--resume]
    torchrun --nproc-per-node 8 -m bleurt_repro.training.finetune --config finetune_large ...

MODEL is a bare encoder, a pre-trained BLEURT, a converted official checkpoint or any scorer: a folder, a Hub id or an
embedded name. OUT becomes a checkpoint that `BleurtScorer(OUT)` opens, with results.json and curves.png beside it.

From Python (`bleurt_repro.finetune` takes the same arguments, and also draws the card and publishes the checkpoint):

    ratings = RatingArguments(model="encoder", train_file="ratings.csv")
    result = finetune(ratings, FinetuningArguments(output_dir="out", max_steps=1000))
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from bleurt_repro.metric.layout import CONFIG_KEY, LAYOUTS, OPTIONAL, Layout, readable_positions, separators_of
from bleurt_repro.training.arguments import run_as_command
from bleurt_repro.training.run_arguments import RunArguments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from torch import Tensor
    from transformers import EvalPrediction, PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
    from transformers.modeling_outputs import SequenceClassifierOutput

    from bleurt_repro.datasets_builders.ratings.training_ratings import RankIndices
    from bleurt_repro.training.results import Result

    Loss = Callable[[Tensor, Tensor], Tensor]  # of predictions and ratings, both of shape (pairs,)
    Measure = Callable[[EvalPrediction], dict[str, float]]

RANKED_TOGETHER = 128  # validation ratings that are compared with each other when the ranking loss is measured


@dataclass
class RatingArguments:
    """What is trained, on which ratings."""

    _argument_group_name: ClassVar[str] = "model and ratings"  # heading in --help

    model: str = field(
        metadata={"help": "Encoder, pre-trained BLEURT or scorer to start from: folder, Hub id or embedded name."}
    )
    train_file: str = field(metadata={"help": "Ratings to train on: JSONL, CSV, TSV or Parquet."})
    validation_file: str | None = field(
        default=None, metadata={"help": "Ratings that choose the best checkpoint; default: a part of the train file."}
    )
    validation_ratio: float = field(
        default=0.1,
        metadata={"help": "Share of the train file to validate on; no reference or source is on both sides."},
    )
    max_length: int | None = field(
        default=None,
        metadata={"help": "Maximum number of tokens per pair; default: what the model was made for, or 512."},
    )
    layout: str | None = field(
        default=None,
        metadata={
            "help": "Texts that the model reads: bleurt (reference, candidate), robleurt-src (source, candidate, reference), "
            "robleurt-nosrc (candidate, reference), reference-free (source, candidate) or unified (as robleurt-src, but each "
            "rating may lack the source or the reference); default: what the model records, or bleurt."
        },
    )
    export_dtype: str = field(
        default="float32", metadata={"help": "Type of the stored weights: float32, bfloat16 or float16."}
    )
    standardize: bool = field(
        default=True,
        metadata={
            "help": "Standardise scores that are far from mean 0 and deviation 1, separately for each language pair."
        },
    )
    loss: str = field(default="regression", metadata={"help": "Loss: regression (BLEURT, section 3) or ranking."})
    ranking_clip: bool = field(
        default=True,
        metadata={"help": "Cut predictions to 0..1 in the ranking loss, as the official release does."},
    )

    def __post_init__(self) -> None:
        if self.loss not in ("regression", "ranking"):
            raise ValueError(f"loss must be regression or ranking, found {self.loss!r}")
        if self.export_dtype not in ("float32", "bfloat16", "float16"):
            raise ValueError(f"export_dtype must be float32, bfloat16 or float16, found {self.export_dtype!r}")
        if self.layout not in (None, *LAYOUTS):
            raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, found {self.layout!r}")

    @property
    def files(self) -> list[str]:
        """The files of ratings."""
        return [path for path in (self.train_file, self.validation_file) if path]


@dataclass
class FinetuningArguments(RunArguments):
    """The Trainer's arguments, with the defaults of BLEURT, section B.1."""

    CONFIG_PREFIX: ClassVar[str] = "finetune"
    # darr: agreement with relative ranks made of the raw scores of validation ratings, as RoBLEURT reports it (section 3.1)
    MEASURES: ClassVar[tuple[str, ...]] = ("kendall_tau", "pearson_r", "darr", "loss")
    DEFAULT_STEPS: ClassVar[int] = 40_000

    max_steps: int | None = field(
        default=None,
        metadata={"help": "Number of steps; default: 40,000 (BLEURT, B.1) unless --num-train-epochs is given."},
    )
    metric_for_best_model: str | None = "kendall_tau"
    greater_is_better: bool | None = True


def training_layout(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_length: int | None = None, name: str | None = None
) -> Layout:
    """Return the layout to train with: the one that the checkpoint records, or the named one.

    Args:
        model: model to train.
        tokenizer: tokenizer of the model; its family decides how many separators stand between two texts.
        max_length: maximum number of tokens; by default what the model was made for, or 512.
        name: one of `LAYOUTS`; by default the recorded layout, or BLEURT's.

    Raises:
        ValueError: if the model reads fewer tokens, or records a layout other than the named one.
    """
    layout, is_recorded = Layout.from_config(model.config), hasattr(model.config, CONFIG_KEY)
    named = (LAYOUTS[name or "bleurt"], OPTIONAL.get(name or "bleurt", ()))
    if is_recorded and name and named != (layout.inputs, layout.optional):
        raise ValueError(
            f"the model was made to read {_listed(layout.inputs, layout.optional)}, but layout {name} is {_listed(*named)}: "
            "leave layout out, or begin with a bare encoder"
        )
    if not is_recorded:
        layout = replace(layout, inputs=named[0], optional=named[1], separators=separators_of(tokenizer))
    longest = readable_positions(model.config) or layout.max_length  # a scorer may be trained to read more than it did
    if max_length is not None and max_length > longest:
        raise ValueError(f"max_length {max_length} is more than the {longest} tokens that this model reads")
    return replace(layout, max_length=max_length or layout.max_length)


def _listed(inputs: Sequence[str], optional: Sequence[str]) -> str:
    return ", ".join(f"{role} (optional)" if role in optional else role for role in inputs)


def trainer_loss(ranking: Loss) -> Callable[..., Tensor]:
    """Return a loss of predictions and ratings in the form in which the Trainer calls it."""

    def compute(outputs: SequenceClassifierOutput, labels: Tensor, **_: Any) -> Tensor:
        assert outputs.logits is not None
        return ranking(outputs.logits.float().squeeze(-1), labels)

    return compute


def validation_measures(
    ranking: Loss | None = None, ranks: RankIndices | None = None, compute_metrics: Measure | None = None
) -> Measure:
    """Return the function that computes loss, Kendall tau and Pearson r of a validation, for the Trainer.

    Args:
        ranking: loss that was trained; by default the squared error.
        ranks: indices of better and of worse validation ratings; with them, daRR is computed too.
        compute_metrics: function that computes further measures.
    """
    import numpy as np
    import torch

    from bleurt_repro.training.metrics.statistics import darr, kendall_tau, pearson_r

    def measure(prediction: EvalPrediction) -> dict[str, float]:
        scores, targets = np.ravel(prediction.predictions), np.ravel(prediction.label_ids)
        if ranking is None:
            loss = float(np.mean((scores - targets) ** 2))
        else:
            batches = zip(
                *(torch.as_tensor(values).split(RANKED_TOGETHER) for values in (scores, targets)), strict=True
            )
            loss = float(np.mean([ranking(predicted, rated).item() for predicted, rated in batches]))
        measures = {"loss": loss, "kendall_tau": 0.0, "pearson_r": 0.0}
        if np.ptp(scores) > 0:  # a model may be constant at the start: no agreement, but no reason to end the run
            measures |= {"kendall_tau": kendall_tau(scores, targets), "pearson_r": pearson_r(scores, targets)}
        if ranks:
            better, worse = ranks
            measures["darr"] = darr(scores[better], scores[worse])
        return measures | (compute_metrics(prediction) if compute_metrics else {})

    return measure


def finetune(
    ratings: RatingArguments,
    arguments: FinetuningArguments,
    card: Callable[[Path], None] | None = None,
    *,
    callbacks: Sequence[TrainerCallback] = (),
    compute_metrics: Callable[[EvalPrediction], dict[str, float]] | None = None,
) -> Result:
    """Fine-tune a scorer on ratings, and write it to `arguments.output_dir`.

    Args:
        ratings: what is trained, on which ratings.
        arguments: settings of the training, and folder of the result.
        card: function that draws the card into the folder of the checkpoint; by default there is no card.
        callbacks: callbacks for the Trainer.
        compute_metrics: function that computes further validation measures, as the Trainer takes it; loss,
            Kendall tau and Pearson r are always computed.

    Returns:
        what results.json holds, in every process.

    Raises:
        FileNotFoundError: if there is no such model or file.
        ValueError: if settings and data do not fit together, or the folder holds another run.
        OSError: if the disk is full.
    """
    import torch
    from transformers import set_seed

    from bleurt_repro.datasets_builders.ratings.training_ratings import read_training_ratings
    from bleurt_repro.metric.loading.open import open_trainable
    from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer
    from bleurt_repro.training.collator import PairCollator, encode_texts
    from bleurt_repro.training.losses import RANKING_RANGE, ranking_loss
    from bleurt_repro.training.run import finish, gather_state, run_folder, train
    from bleurt_repro.training.trainer import ScorerTrainer
    from bleurt_repro.training.training_references import record_references

    with run_folder(arguments, ratings, ratings.files) as start:
        if start.finished:
            return start.finished

        # The model, and the texts that it reads.
        set_seed(arguments.seed)
        model, tokenizer = open_trainable(start.model)
        layout = training_layout(model, tokenizer, ratings.max_length, ratings.layout)
        prepare_scorer(model, tokenizer, layout)

        # The ratings, as tokens; the other processes read what the first one has written.
        with arguments.main_process_first(desc="tokenise"):
            data = read_training_ratings(
                ratings.train_file,
                ratings.validation_file,
                layout,
                hashes=[file["sha256"] for file in start.files],
                with_ranks=arguments.metric_for_best_model in ("darr", "eval_darr"),
                validation_ratio=ratings.validation_ratio,
                standardize=ratings.standardize and ratings.loss == "regression",
                seed=arguments.seed,
            )
            # Ratings may have weights, in the squared error alone.
            targets = {"score": "labels"}
            if "weight" in data.sides["train"].column_names and ratings.loss == "regression":
                targets["weight"] = "weight"
            encoded = {
                name: encode_texts(side, tokenizer, layout, keep=list(targets), num_proc=arguments.num_proc)
                for name, side in data.sides.items()
            }
        if data.standardized:
            getattr(model.config, CONFIG_KEY)["ratings"] = data.standardized

        # Training. The model itself computes the squared error.
        ranking = None
        if ratings.loss == "ranking":
            ranking = partial(ranking_loss, clip=RANKING_RANGE if ratings.ranking_clip else None)
        trainer = ScorerTrainer(
            model=model,
            args=arguments,
            data_collator=PairCollator(tokenizer, targets, segments=getattr(model.config, "type_vocab_size", 0) > 1),
            train_dataset=encoded["train"],
            eval_dataset=encoded["validation"],
            processing_class=tokenizer,
            compute_loss_func=trainer_loss(ranking) if ranking else None,
            compute_metrics=validation_measures(ranking, data.ranks, compute_metrics),
            callbacks=list(callbacks),
        )
        seconds = train(trainer, arguments)
        state = gather_state(trainer)

        # The result.
        def save(folder: Path) -> None:
            scorer = model  # not needed any more, and so changed in place
            if trainer.is_fsdp_enabled:  # each process holds a share of `model`: fill a new one
                scorer = type(model)(model.config)
                scorer.load_state_dict(state)
            if layout.reads_references:
                # Validation ratings count if they chose the checkpoint.
                names = ("train", "validation") if arguments.load_best_model_at_end else ("train",)
                texts = (text for name in names for text in data.sides[name]["reference"] if text)
                record_references(folder, texts, start.model)
            scorer.to(getattr(torch, ratings.export_dtype))
            save_scorer(scorer, tokenizer, folder)

        record = {
            "files": start.files,
            **{f"{name}_ratings": len(side) for name, side in encoded.items()},
            "truncated": sum(sum(side["truncated"]) for side in encoded.values()),
            "standardized": data.standardized,
        }
        return finish(trainer, "finetune", start.settings, record, seconds, save, card)


if __name__ == "__main__":
    run_as_command("finetune")
