"""The recipe of a set of synthetic pairs: one dataclass with the paper's defaults, read from YAML."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from bleurt_repro.datasets_builders.perturbations.mask_filling import BEAM_SIZE, MASKED_LM, MAX_MASKS, STRATEGIES
from bleurt_repro.datasets_builders.perturbations.word_dropping import DROPPING_RATE
from bleurt_repro.datasets_builders.signals import SIGNALS
from bleurt_repro.datasets_builders.signals.bertscore import BERTSCORE_MODEL
from bleurt_repro.datasets_builders.signals.entailment import ENTAILMENT_MODEL
from bleurt_repro.datasets_builders.signals.rouge import ROUGE_IMPLEMENTATIONS, ROUGE_ORDER, SEQ2SEQ
from bleurt_repro.metric.files.records import read_plain_yaml

CONFIG_FOLDER = Path(__file__).parents[1] / "configs"
DEFAULT_INPUT = "wikimedia/wikipedia"
DTYPES = ("float32", "bfloat16")
LIKELIHOOD = "back_translation_likelihood"


@dataclass(frozen=True)
class LanguagePair:
    """The translation models into another language and back.

    Attributes:
        language: the other language, such as "fr".
        forward: model into it; local folder or Hub id.
        backward: model out of it; local folder or Hub id.
        forward_prefix: prefix of what `forward` reads (">>fr<< " for a model of several target languages).
        backward_prefix: prefix of what `backward` reads.
    """

    language: str
    forward: str
    backward: str
    forward_prefix: str = ""
    backward_prefix: str = ""


# BLEURT, A.1: candidates are back-translated through German. A.3: likelihoods are those of French and German.
TRANSLATORS = (
    LanguagePair("fr", "Helsinki-NLP/opus-mt-en-fr", "Helsinki-NLP/opus-mt-fr-en"),
    LanguagePair("de", "Helsinki-NLP/opus-mt-en-de", "Helsinki-NLP/opus-mt-de-en"),
)
PIVOTS = ("de",)
LIKELIHOOD_PIVOTS = ("fr", "de")


@dataclass(frozen=True)
class SyntheticConfig:
    """Everything that decides the pairs and their signals, except the input's text.

    Attributes:
        seed: seed of all random choices; those of a segment depend on it and on the segment's text.
        language: language of the segments, for the Moses tokeniser and the card.
        license: licence of the segments, for the card.
        column: column of the input with the text: a name, or in TSV and CSV a number from 1.
        subset: subset ("configuration") of a dataset.
        split: split of a dataset.
        split_sentences: whether to cut each text into sentences (see `segments`).
        min_words: length of the shortest segments in words.
        max_characters: length of the longest segments in characters.
        max_segments: number of segments after which to stop; default: all.
        mask_strategies: ways to choose the words that mask filling replaces.
        perturbations_per_segment: number of the mask fillings and back-translations that a segment gets, drawn at
            random for each; default: all of them.
        max_masks: largest number of masks in a text (BLEURT, A.1).
        beam_size: beam size of mask filling (BLEURT, A.1).
        masks_per_pass: number of masks filled between two runs of the masked language model; 1 in the paper.
        dropping_rate: share of the pairs of which a copy with words dropped is added (BLEURT, A.1).
        masked_lm: model that fills masks.
        translators: translation models, a pair for each language that the next two options name.
        pivots: languages that candidates are back-translated through; none switches back-translation off.
        likelihood_pivots: languages of the back-translation likelihood.
        signals: names of the signals, of those in `signals.SIGNALS`; by default those of the paper.
        rouge_order: N of ROUGE-N.
        rouge_implementation: "seq2seq" as in the paper, or "rouge-score"; see `signals.Rouge`.
        bertscore_model: encoder of BERTScore (BLEURT, A.3).
        bertscore_layers: layer that BERTScore compares; default: the library's choice.
        entailment_model: classifier of three labels.
        entailment_labels: its labels in the order of its outputs, if its configuration does not name them.
        unit_segments: number of segments worked on together; batches never reach across units.
        segments_per_part: number of segments of a Parquet file, the unit of resuming; a multiple of `unit_segments`.
        batch_tokens: number of padded tokens in one run of a model.
        dtype: arithmetic of the models' matrix products: float32, or bfloat16, which is faster on GPUs and on
            processors with instructions for it; signals then differ in their third digit.
        device: device of the models; default: the best one available.
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
    perturbations_per_segment: int | None = None
    max_masks: int = MAX_MASKS
    beam_size: int = BEAM_SIZE
    masks_per_pass: int = 1
    dropping_rate: float = DROPPING_RATE
    masked_lm: str = MASKED_LM
    translators: tuple[LanguagePair, ...] = TRANSLATORS
    pivots: tuple[str, ...] = PIVOTS
    # Signals
    likelihood_pivots: tuple[str, ...] = LIKELIHOOD_PIVOTS
    # BLEURT, table 1
    signals: tuple[str, ...] = ("bleu", "rouge", "bertscore", LIKELIHOOD, "entailment", "back_translation_flag")
    rouge_order: int = ROUGE_ORDER
    rouge_implementation: str = SEQ2SEQ
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
        for name, expected in get_type_hints(SyntheticConfig).items():
            value = getattr(self, name)
            type_name = expected.__name__ if isinstance(expected, type) else expected
            _require(_is_instance(value, expected), name, type_name, repr(value))
        for name in ("min_words", "max_characters", "max_masks", "beam_size", "masks_per_pass", "unit_segments"):
            _require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        _require(self.batch_tokens >= 64, "batch_tokens", "at least 64", self.batch_tokens)
        _require(0 <= self.dropping_rate <= 1, "dropping_rate", "between 0 and 1", self.dropping_rate)
        languages = [pair.language for pair in self.translators]
        _require(len({*languages}) == len(languages), "translators", "of different languages", languages)
        for name, choices in (
            ("rouge_implementation", ROUGE_IMPLEMENTATIONS),
            ("dtype", DTYPES),
            ("mask_strategies", STRATEGIES),
            ("signals", SIGNALS),
            ("pivots", languages),
            ("likelihood_pivots", languages),
        ):
            value = getattr(self, name)
            unknown = [choice for choice in ((value,) if isinstance(value, str) else value) if choice not in choices]
            _require(not unknown, name, f"of {', '.join(choices) or 'the languages of translators'}", unknown)
        _require(bool(self.mask_strategies or self.pivots), "mask_strategies and pivots", "not both empty", "none")
        _require(
            bool(self.likelihood_pivots) or LIKELIHOOD not in self.signals,
            "signals",
            f"without {LIKELIHOOD} if there are no likelihood_pivots",
            list(self.signals),
        )
        count, most = self.perturbations_per_segment, len(self.mask_strategies) + len(self.pivots)
        _require(count is None or 1 <= count <= most, "perturbations_per_segment", f"1 to {most}, or null", count)
        _require(
            self.segments_per_part >= 1 and self.segments_per_part % self.unit_segments == 0,
            "segments_per_part",
            f"a multiple of unit_segments ({self.unit_segments})",
            self.segments_per_part,
        )

    def language_pairs(self) -> dict[str, LanguagePair]:
        """Return the translators that pivots and likelihoods need, by language, in the order of `translators`."""
        needed = {*self.pivots, *(self.likelihood_pivots if LIKELIHOOD in self.signals else ())}
        return {pair.language: pair for pair in self.translators if pair.language in needed}

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as plain values, which `from_dict` reads."""
        values = asdict(self)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str = "the recipe") -> SyntheticConfig:
        """Make a recipe from plain values.

        Args:
            values: any of the attributes; lists for tuples, mappings for translators.
            source: name of the file, for messages.

        Raises:
            ValueError: if a key is unknown or a value is not allowed; the message names `source`.
        """
        if not isinstance(values, dict):
            raise ValueError(f"{source} must be keys and values, found {type(values).__name__}")
        _refuse_unknown_keys(values, cls, source)
        values = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        try:
            if "translators" in values:
                values["translators"] = tuple(_language_pair(pair, source) for pair in values["translators"] or ())
            return cls(**values)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{source}: {error}") from error

    def with_options(self, translator: str | None = None, **options: Any) -> SyntheticConfig:
        """Return a copy with some options replaced.

        Args:
            translator: one model of all directions, told the target language by a ">>xx<< " prefix, for every
                language.
            options: any of the attributes; those that are None stay as they are.
        """
        changes = {key: value for key, value in options.items() if value is not None}
        if translator is not None:
            changes["translators"] = tuple(
                LanguagePair(pair.language, translator, translator, f">>{pair.language}<< ", f">>{self.language}<< ")
                for pair in self.translators
            )
        return replace(self, **changes)


def read_config(name: str | Path) -> SyntheticConfig:
    """Read a recipe from a YAML file.

    Args:
        name: file, or the name of one of the recipes in the package ("paper", "small").

    Raises:
        FileNotFoundError: if there is no such file or recipe.
        ValueError: if the file is not YAML, or has an unknown key.
    """
    path = Path(name)
    if not path.is_file():
        path = CONFIG_FOLDER / f"synthetic_{name}.yaml"
    if not path.is_file():
        recipes = sorted(file.stem.removeprefix("synthetic_") for file in CONFIG_FOLDER.glob("synthetic_*.yaml"))
        raise FileNotFoundError(f"there is no recipe {name}: give a YAML file, or one of {', '.join(recipes)}")
    _, values = read_plain_yaml(path)
    return SyntheticConfig.from_dict(values or {}, str(path))


def _language_pair(values: Any, source: str) -> LanguagePair:
    if not isinstance(values, dict):
        raise ValueError(f"each of translators must be keys and values, found {values!r}")
    _refuse_unknown_keys(values, LanguagePair, f"{source}: translators")
    return LanguagePair(**values)


def _refuse_unknown_keys(values: dict[str, Any], cls: Any, source: str) -> None:
    names = [attribute.name for attribute in fields(cls)]
    unknown = [str(key) for key in values if key not in names]
    if unknown:
        raise ValueError(f"{source} has unknown keys {', '.join(unknown)}: expected any of {', '.join(names)}")


def _is_instance(value: Any, expected: Any) -> bool:
    """Return whether a value from YAML, where types are easily mistaken, has the type of an attribute."""
    if isinstance(expected, UnionType):
        return any(_is_instance(value, alternative) for alternative in get_args(expected))
    if get_origin(expected) is tuple:
        return isinstance(value, tuple) and all(_is_instance(element, get_args(expected)[0]) for element in value)
    if isinstance(value, bool):
        return expected is bool
    return isinstance(value, (int, float) if expected is float else expected)


def _require(holds: bool, name: str, expected: Any, value: Any) -> None:
    if not holds:
        raise ValueError(f"{name} must be {expected}, found {value}")
