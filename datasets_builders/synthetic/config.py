"""The recipe of a set of synthetic pairs: one dataclass with the paper's defaults, read from YAML."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from bleurt_repro.datasets_builders.perturbations.mask_filling import BEAM_SIZE, MASKED_LM, MAX_MASKS, STRATEGIES
from bleurt_repro.datasets_builders.perturbations.word_dropping import DROPPING_RATE
from bleurt_repro.datasets_builders.signals import SIGNALS
from bleurt_repro.datasets_builders.signals.bertscore import BERTSCORE_MODEL
from bleurt_repro.datasets_builders.signals.entailment import ENTAILMENT_MODEL
from bleurt_repro.datasets_builders.signals.rouge import ROUGE_IMPLEMENTATIONS, ROUGE_ORDER, ROUGE_SCORE
from bleurt_repro.metric.files.records import read_plain_yaml

CONFIG_FOLDER = Path(__file__).parents[1] / "configs"
DEFAULT_INPUT = "wikimedia/wikipedia"
# Perturbations of a segment, before word dropping. The paper has 6.5 M pairs of 1.8 M segments: with 30 % more by word
# dropping that is 2.8 a segment.
PERTURBATIONS_PER_SEGMENT = 3
DTYPES = ("float32", "bfloat16")


@dataclass(frozen=True)
class Pivot:
    """A language to translate into and back.

    Attributes:
        language: such as "fr".
        forward: model into it; local folder or Hub id.
        backward: model out of it.
        forward_prefix: put before what `forward` reads (">>fr<< " for a model of several target languages).
        backward_prefix: put before what `backward` reads.
    """

    language: str
    forward: str
    backward: str
    forward_prefix: str = ""
    backward_prefix: str = ""


PIVOTS = (
    Pivot("fr", "Helsinki-NLP/opus-mt-en-fr", "Helsinki-NLP/opus-mt-fr-en"),
    Pivot("de", "Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"),
)


@dataclass(frozen=True)
class SyntheticConfig:
    """Everything that decides the pairs and their signals, except the input's text.

    Attributes:
        seed: of all random choices; each segment's own follow from it and the segment's text.
        language: of the segments, for the Moses tokeniser and the card.
        license: of the segments, for the card.
        column: of the input with the text: a name, or in TSV and CSV a number from 1.
        subset: of a dataset ("configuration").
        split: of a dataset.
        split_sentences: cut each text into sentences (see `segments`).
        min_words: shorter segments are skipped.
        max_characters: longer segments are skipped.
        max_segments: stop after so many; all by default.
        mask_strategies: kinds of mask filling.
        perturbations_per_segment: how many of the mask fillings and back-translations a segment gets, chosen at
            random for each; all by default of `null`.
        max_masks: most masks in a text (BLEURT, A.1).
        beam_size: of mask filling (BLEURT, A.1).
        masks_per_pass: masks filled between two runs of the masked language model; 1 in the paper.
        dropping_rate: share of the pairs of which a second one with words dropped is made (BLEURT, A.1).
        masked_lm: model that fills masks.
        pivots: languages to translate into and back; none switches back-translation and its likelihood off.
        signals: their names, see `signals.SIGNALS`.
        rouge_order: N of ROUGE-N.
        rouge_implementation: "rouge-score", or "seq2seq" as in the paper; see `signals.Rouge`.
        bertscore_model: encoder of BERTscore (BLEURT, A.3).
        bertscore_layers: layer that BERTscore compares; the library's choice by default.
        entailment_model: three-label classifier.
        entailment_labels: its labels in the order of its outputs, if its configuration does not name them.
        unit_segments: segments worked on together; batches never reach across units.
        segments_per_part: segments of one Parquet file, the unit of resuming; a multiple of `unit_segments`.
        batch_tokens: padded tokens in one run of a model.
        dtype: arithmetic of the models' products: float32, or bfloat16, which is faster on GPUs and on processors with
            instructions for it; signals then differ in their third digit.
        device: where to compute; the best there is by default.
    """

    seed: int = 0
    language: str = "en"
    license: str = "unknown"
    # Segments
    column: str | None = None
    subset: str | None = None
    split: str = "train"
    split_sentences: bool = False
    min_words: int = 4
    max_characters: int = 600
    max_segments: int | None = None
    # Perturbations
    mask_strategies: tuple[str, ...] = tuple(STRATEGIES)
    perturbations_per_segment: int | None = PERTURBATIONS_PER_SEGMENT
    max_masks: int = MAX_MASKS
    beam_size: int = BEAM_SIZE
    masks_per_pass: int = 1
    dropping_rate: float = DROPPING_RATE
    masked_lm: str = MASKED_LM
    pivots: tuple[Pivot, ...] = PIVOTS
    # Signals
    signals: tuple[str, ...] = tuple(SIGNALS)
    rouge_order: int = ROUGE_ORDER
    rouge_implementation: str = ROUGE_SCORE
    bertscore_model: str = BERTSCORE_MODEL
    bertscore_layers: int | None = None
    entailment_model: str = ENTAILMENT_MODEL
    entailment_labels: tuple[str, ...] | None = None
    # Work
    unit_segments: int = 64
    segments_per_part: int = 512
    batch_tokens: int = 4096
    dtype: str = "float32"
    device: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        self._check_types()
        for name in ("min_words", "max_characters", "max_masks", "beam_size", "masks_per_pass", "unit_segments"):
            _require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        _require(self.batch_tokens >= 64, "batch_tokens", "at least 64", self.batch_tokens)
        known = " or ".join(ROUGE_IMPLEMENTATIONS)
        _require(
            self.rouge_implementation in ROUGE_IMPLEMENTATIONS,
            "rouge_implementation",
            known,
            repr(self.rouge_implementation),
        )
        _require(self.dtype in DTYPES, "dtype", " or ".join(DTYPES), repr(self.dtype))
        _require(0 <= self.dropping_rate <= 1, "dropping_rate", "between 0 and 1", self.dropping_rate)
        unknown = sorted({*self.mask_strategies} - {*STRATEGIES})
        _require(not unknown, "mask_strategies", f"of {', '.join(STRATEGIES)}", unknown)
        unknown = sorted({*self.signals} - {*SIGNALS})
        _require(not unknown, "signals", f"of {', '.join(SIGNALS)}", unknown)
        _require(bool(self.mask_strategies or self.pivots), "mask_strategies and pivots", "not both empty", "none")
        languages = [pivot.language for pivot in self.pivots]
        _require(len({*languages}) == len(languages), "pivots", "of different languages", languages)
        _require(
            bool(self.pivots) or "back_translation_likelihood" not in self.signals,
            "signals",
            "without back_translation_likelihood where there are no pivots",
            list(self.signals),
        )
        count = self.perturbations_per_segment
        most = len(self.mask_strategies) + len(self.pivots)
        _require(count is None or 1 <= count <= most, "perturbations_per_segment", f"1 to {most}, or null", count)
        _require(
            self.segments_per_part >= 1 and self.segments_per_part % self.unit_segments == 0,
            "segments_per_part",
            f"a multiple of unit_segments ({self.unit_segments})",
            self.segments_per_part,
        )

    def _check_types(self) -> None:
        """Refuse values of another type than the default's, which YAML makes easy to write by mistake."""
        for item in fields(self):
            value, expected = getattr(self, item.name), item.type
            kinds: dict[str, Any] = {"int": int, "float": (int, float), "str": str, "bool": bool}
            for name in str(expected).split(" | "):
                if (name == "None" and value is None) or (name.startswith("tuple") and isinstance(value, tuple)):
                    break
                if (
                    name in kinds
                    and isinstance(value, kinds[name])
                    and (name == "bool" or not isinstance(value, bool))
                ):
                    break
            else:
                _require(False, item.name, str(expected), repr(value))

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as plain values; `from_dict` reads them."""
        values = asdict(self)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str = "the recipe") -> SyntheticConfig:
        """Make a recipe from plain values.

        Args:
            values: any of the attributes; lists for tuples, mappings for pivots.
            source: where the values come from, for messages.

        Raises:
            ValueError: at an unknown key or a value out of bounds, naming `source`.
        """
        if not isinstance(values, dict):
            raise ValueError(f"{source} must be keys and values, found {type(values).__name__}")
        _refuse_unknown(values, cls, source)
        values = dict(values)
        try:
            if "pivots" in values:
                values["pivots"] = tuple(_make_pivot(pivot, source) for pivot in values["pivots"] or ())
            for key, value in values.items():
                values[key] = tuple(value) if isinstance(value, list) else value
            return cls(**values)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{source}: {error}") from error

    def with_options(self, translator: str | None = None, **options: Any) -> SyntheticConfig:
        """Replace what is given (not None).

        Args:
            translator: one model of all directions, told the target language by a ">>xx<< " prefix, for every pivot.
            options: any of the attributes.
        """
        given = {key: value for key, value in options.items() if value is not None}
        if translator is not None:
            given["pivots"] = tuple(
                Pivot(pivot.language, translator, translator, f">>{pivot.language}<< ", f">>{self.language}<< ")
                for pivot in self.pivots
            )
        return replace(self, **given)


def read_config(name: str | Path) -> SyntheticConfig:
    """Read a recipe from a YAML file.

    Args:
        name: a file, or the name of one of the recipes that come with the package ("paper", "small").

    Raises:
        FileNotFoundError: if there is no such file or recipe.
        ValueError: if it is no YAML, or has an unknown key.
    """
    path = Path(name)
    if not path.is_file():
        path = CONFIG_FOLDER / f"synthetic_{name}.yaml"
    if not path.is_file():
        known = ", ".join(
            sorted(file.stem.removeprefix("synthetic_") for file in CONFIG_FOLDER.glob("synthetic_*.yaml"))
        )
        raise FileNotFoundError(f"there is no recipe {name}: give a YAML file, or one of {known}")
    _, values = read_plain_yaml(path)
    return SyntheticConfig.from_dict(values or {}, str(path))


def _make_pivot(values: Any, source: str) -> Pivot:
    if not isinstance(values, dict):
        raise ValueError(f"each of pivots must be keys and values, found {values!r}")
    _refuse_unknown(values, Pivot, f"{source}: pivots")
    return Pivot(**values)


def _refuse_unknown(values: dict[str, Any], cls: Any, source: str) -> None:
    known = [item.name for item in fields(cls)]
    unknown = [str(key) for key in values if key not in known]
    if unknown:
        raise ValueError(f"{source} has unknown keys {', '.join(unknown)}: known are {', '.join(known)}")


def _require(holds: bool, name: str, expected: str, found: Any) -> None:
    if not holds:
        raise ValueError(f"{name} must be {expected}, found {found}")
