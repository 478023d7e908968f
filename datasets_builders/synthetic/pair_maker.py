"""Make pairs of segments and compute their signals: perturb, drop words, score, one unit of segments at a time."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bleurt_repro.datasets_builders.open_models import default_device, find_model, identify
from bleurt_repro.datasets_builders.perturbations.back_translation import BackTranslation
from bleurt_repro.datasets_builders.perturbations.mask_filling import MaskFiller
from bleurt_repro.datasets_builders.perturbations.word_dropping import drop_words
from bleurt_repro.datasets_builders.signals import (
    SIGNALS,
    BackTranslationLikelihood,
    BertScore,
    Bleu,
    Entailment,
    Rouge,
    Signal,
)
from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.segments import EXCERPT, Segment, Skipped
from bleurt_repro.datasets_builders.translator import Translator


@dataclass(frozen=True)
class Pair:
    """A reference and a candidate made from it.

    Attributes:
        segment_id: number of the segment in the input.
        reference: text of the segment.
        candidate: perturbed text.
        perturbation: name of the perturbation, such as "mask_filling_scattered" or "back_translation_fr".
        word_dropping: whether words were dropped afterwards.
    """

    segment_id: int
    reference: str
    candidate: str
    perturbation: str
    word_dropping: bool


class Unit(NamedTuple):
    """The result of some segments: pairs, the numbers of each signal, shape (pairs, size), and what was left out."""

    pairs: list[Pair]
    signals: dict[str, np.ndarray]
    skipped: list[Skipped]


class StageClock:
    """Seconds and pairs of each stage of the work."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.pairs: Counter[str] = Counter()

    @contextlib.contextmanager
    def measure(self, stage: str, pairs: int) -> Iterator[None]:
        """Add the time of the block, and a number of pairs, to a stage."""
        start = time.perf_counter()
        yield
        self.seconds[stage] += time.perf_counter() - start
        self.pairs[stage] += pairs


def random_for(seed: int, text: str, purpose: str) -> np.random.Generator:
    """Return a random generator that depends on nothing but the seed, the segment and the purpose.

    Args:
        seed: seed of the whole set.
        text: the segment.
        purpose: name of the decision; the numbers of one decision do not depend on those of another.
    """
    digest = hashlib.blake2b(f"{purpose}\0{text}".encode(), digest_size=8).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "big")])


def model_identities(config: SyntheticConfig) -> dict[str, dict[str, str]]:
    """Find every model of a recipe and identify it, without opening it.

    Args:
        config: the recipe.

    Returns:
        The identity of each model (see `open_models.identify`) by its role.

    Raises:
        FileNotFoundError: if a model cannot be found.
    """
    names = {}
    if config.mask_strategies:
        names["masked language model"] = config.masked_lm
    for language, pair in config.language_pairs().items():
        names[f"translator {config.language}-{language}"] = pair.forward
        names[f"translator {language}-{config.language}"] = pair.backward
    if "bertscore" in config.signals:
        names["BERTscore encoder"] = config.bertscore_model
    if "entailment" in config.signals:
        names["entailment classifier"] = config.entailment_model
    identities: dict[str, dict[str, str]] = {}
    for role, name in names.items():
        if name not in identities:  # a model may have several roles, and hashing a large one takes seconds
            identities[name] = identify(name, find_model(name, role))
    return {role: identities[name] for role, name in names.items()}


class PairMaker:
    """The opened models of a recipe, which make the pairs of one unit of segments after another.

    The result of a unit depends on the recipe and the unit's segments alone: the translators' memories are emptied
    between units, and no batch reaches across two units.

    Args:
        config: the recipe.

    Attributes:
        clock: seconds and pairs of each stage since the last `restart`.
    """

    def __init__(self, config: SyntheticConfig) -> None:
        self.config = config
        self.clock = StageClock()
        work: dict[str, Any] = {"device": config.device, "batch_tokens": config.batch_tokens}
        self.mask_filler = (
            MaskFiller(config.masked_lm, config.beam_size, config.max_masks, config.masks_per_pass, **work)
            if config.mask_strategies
            else None
        )
        self.translators: dict[str, Translator] = {}
        self.round_trips = {
            language: BackTranslation(
                language,
                self._translator(pair.forward, f"{config.language}-{language}", work),
                self._translator(pair.backward, f"{language}-{config.language}", work),
                pair.forward_prefix,
                pair.backward_prefix,
            )
            for language, pair in config.language_pairs().items()
        }
        self.back_translations = [self.round_trips[language] for language in config.pivots]
        self.signals = [self._signal(name, work) for name in config.signals]

    def _translator(self, model: str, direction: str, work: dict[str, Any]) -> Translator:
        if model not in self.translators:
            self.translators[model] = Translator(model, f"translator {direction}", **work)
        return self.translators[model]

    def _signal(self, name: str, work: dict[str, Any]) -> Signal:
        config = self.config
        if name == Bleu.name:
            return Bleu(config.language)
        if name == Rouge.name:
            return Rouge(config.rouge_order, config.rouge_implementation)
        if name == BertScore.name:
            return BertScore(config.bertscore_model, config.bertscore_layers, **work)
        if name == BackTranslationLikelihood.name:
            return BackTranslationLikelihood([self.round_trips[language] for language in config.likelihood_pivots])
        if name == Entailment.name:
            return Entailment(config.entailment_model, config.entailment_labels, **work)
        return SIGNALS[name]()  # all others have no settings in the recipe

    def restart(self) -> None:
        """Set the clock and the counts of truncated texts back to 0."""
        self.clock = StageClock()
        for _, counter in self._counters():
            counter.truncated = 0

    def truncated(self) -> dict[str, int]:
        """Return, for each model, the number of inputs that were truncated to its length since the last `restart`."""
        truncated: Counter[str] = Counter()
        for name, counter in self._counters():
            truncated[name] += counter.truncated
        return dict(truncated)

    def _counters(self) -> list[tuple[str, Any]]:
        counters: list[tuple[str, Any]] = [(f"translator {_display_name(k)}", v) for k, v in self.translators.items()]
        return counters + [(signal.name, signal) for signal in self.signals if isinstance(signal, Entailment)]

    def make(self, segments: Sequence[Segment]) -> Unit:
        """Make the pairs of one unit.

        Args:
            segments: the unit.

        Raises:
            ValueError: if a signal is not finite, naming it and the pair.
        """
        with self._arithmetic():
            return self._make(segments)

    def _arithmetic(self) -> contextlib.AbstractContextManager[Any]:
        import torch

        dtype = getattr(torch, self.config.dtype)
        device = (self.config.device or default_device()).partition(":")[0]
        return torch.autocast(device, dtype) if dtype != torch.float32 else contextlib.nullcontext()

    def _make(self, segments: Sequence[Segment]) -> Unit:
        for translator in self.translators.values():
            translator.forget()
        # 1. Segments that fit all models, and their candidates.
        skipped: list[Skipped] = []
        pairs = self._perturb([segment for segment in segments if self._fits(segment, skipped)], skipped)
        references, candidates = [pair.reference for pair in pairs], [pair.candidate for pair in pairs]
        perturbations = [pair.perturbation for pair in pairs]
        # 2. The signals of all pairs.
        signals = {}
        for signal in self.signals if pairs else ():
            with self.clock.measure(signal.name, len(pairs)):
                signals[signal.name] = signal(references, candidates, perturbations)
            _check_finite(signal.name, signals[signal.name], pairs)
        return Unit(pairs, signals, skipped)

    def _fits(self, segment: Segment, skipped: list[Skipped]) -> bool:
        """Return whether every model that reads whole segments can read all of this one; else add it to `skipped`."""
        readers: list[tuple[str, MaskFiller | Translator]] = [
            (f"translator {_display_name(k)}", v) for k, v in self.translators.items()
        ]
        readers += [("masked language model", self.mask_filler)] if self.mask_filler else []
        for name, reader in readers:
            if reader.count_tokens(segment.text) > reader.max_tokens:
                skipped.append(_skip(segment, f"more than the {reader.max_tokens} tokens that the {name} reads"))
                return False
        return True

    def _perturb(self, segments: Sequence[Segment], skipped: list[Skipped]) -> list[Pair]:
        """Make the candidates of each segment, in the recipe's order, each followed by its copy with words dropped."""
        candidates: dict[tuple[int, str], str] = {}
        perturbations = [self._draw_perturbations(segment.text) for segment in segments]
        # 1. Mask fillings of all segments.
        if self.mask_filler is not None:
            candidates |= self._fill_masks(self.mask_filler, segments, perturbations, skipped)
        # 2. Back-translations of all segments, one language after another.
        for trip in self.back_translations:
            rows = [i for i, names in enumerate(perturbations) if trip.name in names]
            with self.clock.measure(trip.name, len(rows)):
                translations = trip([segments[i].text for i in rows])
            for i, text in zip(rows, translations, strict=True):
                if text.strip():
                    candidates[i, trip.name] = text
                else:
                    skipped.append(_skip(segments[i], f"{trip.name}: came back blank"))
        # 3. All candidates of a segment together, some of them again with words dropped.
        return [
            pair
            for i, segment in enumerate(segments)
            for name in perturbations[i]
            if (i, name) in candidates
            for pair in self._with_dropping(segment, candidates[i, name], name)
        ]

    def _draw_perturbations(self, text: str) -> list[str]:
        """Draw the perturbations of a segment, in the order of the recipe."""
        names = [*self.config.mask_strategies, *(trip.name for trip in self.back_translations)]
        count = self.config.perturbations_per_segment
        if count is None:
            return names
        random = random_for(self.config.seed, text, "perturbations")
        return [names[i] for i in sorted(random.choice(len(names), size=count, replace=False))]

    def _fill_masks(
        self, filler: MaskFiller, segments: Sequence[Segment], perturbations: list[list[str]], skipped: list[Skipped]
    ) -> dict[tuple[int, str], str]:
        """Return the filled texts by the index of their segment and the name of the strategy."""
        masked = {}
        for i, segment in enumerate(segments):
            for name in (name for name in self.config.mask_strategies if name in perturbations[i]):
                masked_text = filler.mask(segment.text, name, random_for(self.config.seed, segment.text, name))
                if masked_text is None:
                    skipped.append(_skip(segment, f"{name}: no word of at most {filler.max_masks} tokens"))
                else:
                    masked[i, name] = masked_text
        with self.clock.measure("mask_filling", len(masked)):
            return dict(zip(masked, filler.fill(list(masked.values())), strict=True))

    def _with_dropping(self, segment: Segment, candidate: str, name: str) -> list[Pair]:
        pairs = [Pair(segment.segment_id, segment.text, candidate, name, word_dropping=False)]
        random = random_for(self.config.seed, segment.text, f"{name} with words dropped")
        if random.random() < self.config.dropping_rate:
            dropped = drop_words(candidate, random)
            pairs.append(Pair(segment.segment_id, segment.text, dropped, name, word_dropping=True))
        return pairs


def _display_name(model: str) -> str:
    """Return the name of a model for what may be published: of a folder, the last part of its path alone."""
    return Path(model).name if Path(model).is_dir() else model


def _skip(segment: Segment, reason: str) -> Skipped:
    return Skipped(segment.row, reason, segment.text[:EXCERPT])


def _check_finite(name: str, numbers: np.ndarray, pairs: Sequence[Pair]) -> None:
    wrong = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    if len(wrong):
        pair = pairs[wrong[0]]
        raise ValueError(
            f"signal {name} must be finite, found {numbers[wrong[0]].tolist()} for reference "
            f"{pair.reference[:EXCERPT]!r} and candidate {pair.candidate[:EXCERPT]!r}: check its model"
        )
