"""Metrics of word and letter overlap to compare a learned metric with: sentence BLEU, BLEU and chrF++ by sacreBLEU."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bleurt_repro.metric.forward.unread import CJK, script_of
from bleurt_repro.metric.inputs import without_blanks

# Words per n-gram up to which chrF++ counts words beside letters.
WORD_ORDER = 2
# Scripts that put no spaces between words; Japanese differs from Chinese by its syllabaries.
WITHOUT_SPACES = (CJK, "Thai", "Lao", "Khmer", "Myanmar")
FIRST_KANA, LAST_KANA = "\u3040", "\u30ff"


@dataclass(frozen=True)
class Overlap:
    """Overlap metrics of one system, each from 0 to 100.

    Attributes:
        sentence_bleu: sentence BLEU of each segment: effective order, exponential smoothing (sacreBLEU's default; method 3
            of Chen and Cherry, 2014, https://aclanthology.org/W14-3346).
        mean_sentence_bleu: mean of the sentence BLEU.
        bleu: corpus BLEU (https://aclanthology.org/P02-1040).
        chrf_plus_plus: corpus chrF++ (https://aclanthology.org/W17-4770).
        precisions: modified n-gram precisions of corpus BLEU, from unigrams to 4-grams, without smoothing.
        brevity_penalty: factor of corpus BLEU from 0 to 1, below 1 if the candidates together have fewer tokens than the
            references of the closest length.
        signatures: sacreBLEU's signature of each metric, by name.
    """

    sentence_bleu: list[float]
    mean_sentence_bleu: float
    bleu: float
    chrf_plus_plus: float
    precisions: tuple[float, ...]
    brevity_penalty: float
    signatures: dict[str, str]


@dataclass(frozen=True)
class MetricScore:
    """Score of a system by one metric, and its test against the first system.

    Attributes:
        score: score on the test set.
        low, high: ends of its bootstrap interval; None for a single segment.
        p_value: two-sided p of the difference from the first system; None for that system and for a single segment.
    """

    score: float
    low: float | None
    high: float | None
    p_value: float | None


def overlap(references: Sequence[Sequence[str]], candidates: Sequence[str]) -> Overlap:
    """Compute the overlap of a system's candidates with their references.

    Args:
        references: one list of references per candidate, of any length from one. A blank reference is left out if the
            candidate has another one, as in `BleurtScorer`.
        candidates: texts of the system, at least one.
    """
    from sacrebleu.metrics import BLEU, CHRF

    references = [without_blanks(list(texts)) for texts in references]  # sacreBLEU leaves out empty ones alone
    # force: otherwise sacreBLEU warns once per system about text that looks tokenised.
    tokenizer = bleu_tokenizer(references)
    sentence = BLEU(effective_order=True, force=True, tokenize=tokenizer)
    corpus, letters = BLEU(force=True, tokenize=tokenizer), CHRF(word_order=WORD_ORDER)
    pairs = zip(references, candidates, strict=True)
    sentences = [sentence.sentence_score(candidate, list(texts)).score for texts, candidate in pairs]
    streams = _streams(references)
    bleu = corpus.corpus_score(candidates, streams)
    return Overlap(
        sentence_bleu=sentences,
        mean_sentence_bleu=sum(sentences) / len(sentences),
        bleu=bleu.score,
        chrf_plus_plus=letters.corpus_score(candidates, streams).score,
        precisions=tuple(
            100 * count / total if total else 0.0 for count, total in zip(bleu.counts, bleu.totals, strict=True)
        ),
        brevity_penalty=bleu.bp,
        signatures={
            "sentence BLEU": str(sentence.get_signature()),
            "BLEU": str(corpus.get_signature()),
            "chrF++": str(letters.get_signature()),
        },
    )


def overlap_tests(
    references: Sequence[Sequence[str]], systems: Mapping[str, Sequence[str]]
) -> dict[str, tuple[list[MetricScore], str]]:
    """Test BLEU and chrF++ of systems against those of the first one, by sacreBLEU's `--paired-ar`.

    sacreBLEU takes its seed from the variable SACREBLEU_SEED, 12345 by default, and draws 10,000 random exchanges and 1,000
    resamples for the intervals.

    Args:
        references: one list of references per segment, as in `overlap`.
        systems: candidates of each system by its name.

    Returns:
        one test per system, and sacreBLEU's signature of all, by the name of the metric.
    """
    from sacrebleu.metrics import BLEU, CHRF
    from sacrebleu.significance import PairedTest

    references = [without_blanks(list(texts)) for texts in references]
    streams = _streams(references)
    metrics = {"BLEU": BLEU(force=True, tokenize=bleu_tokenizer(references)), "chrF++": CHRF(word_order=WORD_ORDER)}
    # An `n_ar_confidence` of 0 asks for intervals with the default number of resamples.
    signatures, results = PairedTest(list(systems.items()), metrics, streams, "ar", n_ar_confidence=0)()
    tests = {}
    # sacreBLEU renames the metrics, such as chrF2++, but keeps their order.
    for name, key in zip(metrics, signatures, strict=True):
        scores = [_test(result, len(references)) for result in results[key]]
        tests[name] = (scores, str(signatures[key]))
    return tests


def bleu_tokenizer(references: Sequence[Sequence[str]]) -> str:
    """Return sacreBLEU's tokenizer for BLEU in the language of the references, by the script of most letters.

    Args:
        references: one list of references per segment.

    Returns:
        "zh" for Chinese, "char" for Japanese, Thai and others without spaces, which need further packages for words, and
        sacreBLEU's default "13a" for all others.
    """
    characters = Counter(itertools.chain.from_iterable(itertools.chain.from_iterable(references)))
    scripts: Counter[str] = Counter()
    for character, count in characters.items():
        scripts[script_of(character) or ""] += count
    del scripts[""]
    if 2 * sum(scripts[script] for script in WITHOUT_SPACES) <= scripts.total():
        return "13a"
    kana = sum(count for character, count in characters.items() if FIRST_KANA <= character <= LAST_KANA)
    return "zh" if 20 * kana < scripts[CJK] else "char"


def _test(result: Any, segments: int) -> MetricScore:
    """Return a result of sacreBLEU, whose interval is the mean of the resamples plus or minus half of its width."""
    if segments < 2:
        return MetricScore(result.score, None, None, None)
    return MetricScore(result.score, result.mean - result.ci, result.mean + result.ci, result.p_value)


def _streams(references: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the first references of all segments, the second ones, and so on; None for a segment with fewer."""
    return [list(stream) for stream in itertools.zip_longest(*references)]
