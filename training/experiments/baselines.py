"""Metrics that people know, as rows beside a learned one: each gives one score a pair, higher is better.

By the words that the two texts share: sentBLEU, BLEU, chrF++, TER, ROUGE-L, METEOR, and the ratio of lengths. By the
vectors of an encoder: BERTscore, MoverScore, and the cosine of whole sentences. A baseline is a key of `BASELINES`, or a key
of `ENCODER_BASELINES` with an encoder: `bertscore:FOLDER_OR_HUB_ID`, or `bertscore@5:FOLDER_OR_HUB_ID` for layer 5.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.training.experiments.options import check_different, shorten

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF, TER

    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

Values = NDArray[np.float64]

LANGUAGE = "en"
# Of a pair with a blank side, in all baselines with an encoder.
BLANK_SCORE = 0.0
PUNCTUATION = frozenset(string.punctuation)


class Scored(NamedTuple):
    """Scores of one metric, one a pair, and the signature that reproduces them."""

    scores: list[float]
    signature: str


Score = Callable[[Sequence[str], Sequence[str]], Scored]


# By the words that reference and candidate share.


def sentbleu(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute Moses' sentence BLEU on Moses-tokenised text, 0 to 100: the sentBLEU of the WMT Metrics task."""
    from bleurt_repro.datasets_builders.signals.bleu import Bleu

    scores = Bleu()(references, candidates)[:, 0].tolist()
    return Scored(scores, f"sentBLEU|tok:sacremoses-{version('sacremoses')}|case:mixed|smooth:add-one")


def bleu(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute sacreBLEU's sentence BLEU with its own tokenisation and effective order, 0 to 100."""
    from sacrebleu.metrics import BLEU

    return _sacrebleu(BLEU(effective_order=True), references, candidates)


def chrf_plus_plus(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute chrF++ (https://aclanthology.org/W17-4770) by sacreBLEU, 0 to 100."""
    from sacrebleu.metrics import CHRF

    return _sacrebleu(CHRF(word_order=2), references, candidates)


def ter(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute TER by sacreBLEU with its sign turned, so that higher is better: 0 is no edit, -100 one edit a word."""
    from sacrebleu.metrics import TER

    scored = _sacrebleu(TER(), references, candidates)
    return Scored([-score for score in scored.scores], f"-{scored.signature}")


def _sacrebleu(metric: BLEU | CHRF | TER, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    pairs = zip(references, candidates, strict=True)
    scores = [metric.sentence_score(candidate, [reference]).score for reference, candidate in pairs]
    return Scored(scores, f"{type(metric).__name__}|{metric.get_signature()}")


def rouge(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute the F of ROUGE-L (https://aclanthology.org/W04-1013) by `rouge-score`, with stemming, 0 to 1."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    pairs = zip(references, candidates, strict=True)
    scores = [scorer.score(reference, candidate)["rougeL"].fmeasure for reference, candidate in pairs]
    return Scored(scores, f"ROUGE-L|f1|stem:porter|version:{version('rouge-score')}")


def length_ratio(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute the shorter length over the longer one, in characters, 0 to 1: what length alone tells."""
    pairs = [(len(r), len(c)) for r, c in zip(references, candidates, strict=True)]
    return Scored([min(pair) / max(*pair, 1) for pair in pairs], "length_ratio|shorter/longer|unit:character")


def meteor(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute METEOR (https://aclanthology.org/W05-0909) by nltk, 0 to 1, lower-cased, of Moses' tokens.

    Synonyms match if `nltk.download("wordnet")` was run; the signature names the stages that matched.
    """
    from nltk.translate.meteor_score import single_meteor_score

    wordnet, stages = find_wordnet()
    words = tokenize([*references, *candidates])
    scores = [
        float(single_meteor_score(words[reference], words[candidate], wordnet=wordnet)) if candidate.strip() else 0.0
        for reference, candidate in zip(references, candidates, strict=True)
    ]
    parts = ["METEOR", f"stages:{stages}", "case:lower", f"tok:sacremoses-{version('sacremoses')}"]
    return Scored(scores, "|".join([*parts, f"nltk:{version('nltk')}"]))


class NoSynonyms:
    """Stands in for WordNet where its corpus is not installed: no word has a synonym."""

    def synsets(self, _: str) -> list[Any]:
        """Return no sets."""
        return []


def find_wordnet() -> tuple[Any, str]:
    """Return WordNet, or what stands in for it, and the names of METEOR's stages with it."""
    from nltk.corpus import wordnet

    try:
        wordnet.synsets("word")
    except LookupError:
        return NoSynonyms(), "exact+stem"
    return wordnet, "exact+stem+synonym"


def tokenize(texts: Sequence[str]) -> dict[str, list[str]]:
    """Split texts into words as Moses' tokeniser does, each different text once."""
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=LANGUAGE)
    return {text: moses.tokenize(text, escape=False) for text in dict.fromkeys(texts)}


# By the vectors of an encoder.


def bertscore(encoder: str, references: Sequence[str], candidates: Sequence[str], layer: int | None = None) -> Scored:
    """Compute the F of BERTscore (https://arxiv.org/abs/1904.09675), without idf weights or rescaling.

    Args:
        encoder: folder or Hub id.
        references, candidates: the pairs.
        layer: whose vectors are compared; by default the library's choice for encoders it knows, else the last.
    """
    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

    signal = BertScore(encoder, layers=layer)
    return Scored(signal(references, candidates)[:, 2].tolist(), f"BERTscore|f1|{describe(signal)}|idf:no")


def cosine(encoder: str, references: Sequence[str], candidates: Sequence[str], layer: int | None = None) -> Scored:
    """Compute the cosine of the means of the vectors, -1 to 1; 0 where a side is blank.

    Args:
        encoder: folder or Hub id, best one made for sentences (https://arxiv.org/abs/1908.10084).
        references, candidates: the pairs.
        layer: whose vectors; the last by default.
    """
    signal = at_layer(encoder, layer)
    means = sentence_means(signal, [*references, *candidates])
    scores = [
        float(means[reference] @ means[candidate]) if reference in means and candidate in means else BLANK_SCORE
        for reference, candidate in zip(references, candidates, strict=True)
    ]
    return Scored(scores, f"cosine|pooling:mean|{describe(signal)}")


def sentence_means(signal: BertScore, texts: Sequence[str]) -> dict[str, Values]:
    """Compute for each different text that is not blank the mean of its vectors, of length 1."""
    means = {}
    for text, (vectors, _) in signal.encode([text for text in texts if text.strip()]).items():
        mean = vectors.float().mean(dim=0).cpu().numpy()
        means[text] = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return means


def mover_score(
    encoder: str,
    references: Sequence[str],
    candidates: Sequence[str],
    layer: int | None = None,
    words_only: bool = False,
) -> Scored:
    """Compute MoverScore (https://aclanthology.org/D19-1053): 1 minus the earth mover's distance of the word pieces.

    At most 1; 0 where a side is blank. Single word pieces of one layer, of length 1, with Euclidean distances and weights
    by inverse document frequency: the paper's unigram form, but for its averaging of the last five layers.

    Args:
        encoder: folder or Hub id.
        references, candidates: the pairs; either side's document frequencies are counted in its own texts.
        layer: whose vectors; the last by default.
        words_only: leave out punctuation and all pieces of a word but the first, as `moverscore_v2` does, the later code of
            its authors (PyPI's moverscore 1.0.3). That is for tokenizers of BERT's kind, which write such pieces with "##".
    """
    from tqdm import tqdm

    signal = at_layer(encoder, layer)
    encoded = signal.encode([text for text in (*references, *candidates) if text.strip()])
    pieces = {text: signal.pieces(text) for text in encoded}
    weights = [
        inverse_frequencies([pieces[text] for text in side if text in pieces]) for side in (references, candidates)
    ]
    kept = {
        text: [not (words_only and _left_out(piece)) for piece in signal.spelled(own)] for text, own in pieces.items()
    }
    scores = []
    for pair in tqdm(list(zip(references, candidates, strict=True)), desc="moverscore", unit="pair", disable=None):
        if any(text not in encoded for text in pair):
            scores.append(BLANK_SCORE)
            continue
        sides = [
            _points(encoded[text], pieces[text], weight, kept[text])
            for text, weight in zip(pair, weights, strict=True)
        ]
        empty = any(not len(points) for points, _ in sides)
        scores.append(BLANK_SCORE if empty else 1.0 - earth_movers_distance(*sides[0], *sides[1]))
    form = "words" if words_only else "unigrams"
    return Scored(scores, f"MoverScore|{form}|idf:yes|solver:highs|{describe(signal)}")


def _left_out(piece: str) -> bool:
    return "##" in piece or piece in PUNCTUATION


def inverse_frequencies(texts: Sequence[Sequence[int]]) -> dict[int, float]:
    """Compute for each word piece log((n + 1) / (number of the n texts that hold it + 1))."""
    counts = Counter(piece for text in texts for piece in set(text))
    return {piece: float(np.log((len(texts) + 1) / (count + 1))) for piece, count in counts.items()}


def earth_movers_distance(first: Values, first_weights: Values, second: Values, second_weights: Values) -> float:
    """Compute the least cost of moving one set of weighted points onto another.

    Args:
        first, second: points, of shapes (n, size) and (m, size).
        first_weights, second_weights: of shapes (n,) and (m,), not negative; each is scaled to a sum of 1.
    """
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack
    from scipy.spatial.distance import cdist

    costs = cdist(first, second)
    n, m = costs.shape
    leaving = kron(eye_array(n), np.ones((1, m)))
    arriving = kron(np.ones((1, n)), eye_array(m))
    amounts = np.concatenate([_scaled(first_weights), _scaled(second_weights)])
    # the last constraint follows from the others: without it rounding cannot make them contradict each other
    moved = linprog(costs.ravel(), A_eq=vstack([leaving, arriving]).tocsr()[:-1], b_eq=amounts[:-1], method="highs")
    return float(moved.fun)


def _scaled(weights: Values) -> Values:
    """Make weights sum to 1; where all are 0, make them equal."""
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def _points(
    encoded: tuple[Any, Any], pieces: Sequence[int], frequencies: dict[int, float], kept: Sequence[bool]
) -> tuple[Values, Values]:
    """Return the vectors of a text's inner word pieces that are kept, of length 1, and their weights."""
    vectors, inner = encoded[0].double().cpu().numpy(), (encoded[1].cpu().numpy() > 0) & np.array(kept)
    weights = np.array([frequencies[piece] for piece in pieces])
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return (vectors / lengths)[inner], weights[inner]


def at_layer(encoder: str, layer: int | None = None) -> BertScore:
    """Open an encoder for the vectors of one layer, the last by default."""
    from transformers import AutoConfig

    from bleurt_repro.datasets_builders.open_models import find_model
    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

    if layer is None:
        layer = int(AutoConfig.from_pretrained(find_model(encoder, "encoder")).num_hidden_layers)
    return BertScore(encoder, layers=layer)


def describe(signal: BertScore) -> str:
    """Return an encoder's name, the hash of its weights and its layer, for a signature."""
    name = signal.identity["name"]
    shown = Path(name).name if Path(name).is_dir() else name
    return f"encoder:{shown}|sha256:{signal.identity['sha256']}|layer:{signal.layers}"


# By name.

BASELINES: dict[str, Score] = {
    "sentbleu": sentbleu,
    "bleu": bleu,
    "chrf++": chrf_plus_plus,
    "ter": ter,
    "rouge": rouge,
    "meteor": meteor,
    "length_ratio": length_ratio,
}
ENCODER_BASELINES: dict[str, Callable[..., Scored]] = {
    "bertscore": bertscore,
    "moverscore": mover_score,
    "moverscore_v2": partial(mover_score, words_only=True),
    "cosine": cosine,
}


def find_baseline(name: str) -> Score:
    """Find a baseline by its name.

    Args:
        name: a key of `BASELINES`, or `KEY:ENCODER` or `KEY@LAYER:ENCODER` with a key of `ENCODER_BASELINES`.

    Raises:
        ValueError: if there is none, the encoder is missing, or the layer is not a number.
    """
    if name in BASELINES:
        return BASELINES[name]
    asked, _, encoder = name.partition(":")
    key, has_layer, layer = asked.partition("@")
    if key in ENCODER_BASELINES and encoder:
        if has_layer and not layer.isdecimal():
            raise ValueError(f"the layer of {name} must be a number, such as {key}@5:{encoder}, found {layer!r}")
        return partial(ENCODER_BASELINES[key], encoder, **({"layer": int(layer)} if has_layer else {}))
    known = ", ".join([*BASELINES, *(f"{key}:ENCODER" for key in ENCODER_BASELINES)])
    raise ValueError(f"unknown baselines {name}: known are {known}")


def shown_name(name: str) -> str:
    """Return a baseline's name in tables: `bertscore:/here/encoder` is "bertscore (encoder)"."""
    asked, _, encoder = name.partition(":")
    key, has_layer, layer = asked.partition("@")
    shown = f"{Path(encoder).name}, layer {layer}" if has_layer else Path(encoder).name
    return f"{key} ({shown})" if encoder else name


def judged_metrics(checkpoints: Sequence[str], baselines: Sequence[str]) -> list[tuple[str, str, str]]:
    """List the metrics that an experiment judges: "checkpoint" or "baseline", the name given, the name in tables.

    Raises:
        ValueError: if two have one name in tables.
    """
    metrics = [("checkpoint", name, shorten(name)) for name in checkpoints]
    metrics += [("baseline", name, shown_name(name)) for name in baselines]
    check_different([shown for _, _, shown in metrics])
    return metrics
