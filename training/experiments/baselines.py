"""Metrics that people know, to stand beside a learned one: each gives one score a pair, higher is better.

A baseline is a key of `BASELINES`, or a key of `ENCODER_BASELINES` with an encoder: `bertscore:FOLDER_OR_HUB_ID`.

METEOR (https://aclanthology.org/W05-0909) by nltk, with synonyms where WordNet is installed.

Baselines that compare an encoder's vectors: BERTscore and the cosine of whole sentences.

MoverScore (https://aclanthology.org/D19-1053): how far the candidate's words must move to become the reference's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import numpy
    from sacrebleu.metrics import BLEU, CHRF, TER

    from bleurt_repro.datasets_builders.signals.bertscore import BertScore


class NoSynonyms:
    """Stands in for WordNet where its corpus is not installed: no word has a synonym."""

    def synsets(self, _: str) -> list[Any]:
        """Give no sets."""
        return []


def meteor(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Give the METEOR of each pair, 0 to 1, lower-cased, of Moses' tokens.

    WordNet is used if `nltk.download("wordnet")` was run; the signature says which stages matched.
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


def find_wordnet() -> tuple[Any, str]:
    """Give WordNet, or what stands in for it, and the name of METEOR's stages with it."""
    from nltk.corpus import wordnet

    try:
        wordnet.synsets("word")
    except LookupError:
        return NoSynonyms(), "exact+stem"
    return wordnet, "exact+stem+synonym"


# Of a pair with a blank side, as in BERTscore.
BLANK_SCORE = 0.0


def bertscore(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """F of BERTscore (https://arxiv.org/abs/1904.09675), without idf weights or rescaling.

    Args:
        encoder: folder or Hub id; the layer is the library's choice for those it knows, else the last.
        references, candidates: the pairs.
    """
    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

    signal = BertScore(encoder)
    return Scored(signal(references, candidates)[:, 2].tolist(), f"BERTscore|f1|{describe(signal)}|idf:no")


def cosine(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Cosine of the means of the last layer's vectors, -1 to 1; 0 where a side is blank.

    Args:
        encoder: folder or Hub id, best one made for sentences (https://arxiv.org/abs/1908.10084).
        references, candidates: the pairs.
    """
    signal = last_layer(encoder)
    means = sentence_means(signal, [*references, *candidates])
    scores = [
        float(means[reference] @ means[candidate]) if reference in means and candidate in means else BLANK_SCORE
        for reference, candidate in zip(references, candidates, strict=True)
    ]
    return Scored(scores, f"cosine|pooling:mean|{describe(signal)}")


def sentence_means(signal: BertScore, texts: Sequence[str]) -> dict[str, numpy.ndarray]:
    """Give each different text that is not blank the mean of its vectors, of length 1."""
    import numpy as np

    means = {}
    for text, (vectors, _) in signal.encode([text for text in texts if text.strip()]).items():
        mean = vectors.float().mean(dim=0).cpu().numpy()
        means[text] = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return means


def last_layer(encoder: str) -> BertScore:
    """Open an encoder to give the vectors of its last layer."""
    from transformers import AutoConfig

    from bleurt_repro.datasets_builders.open_models import find_model
    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

    layers = int(AutoConfig.from_pretrained(find_model(encoder, "encoder")).num_hidden_layers)
    return BertScore(encoder, layers=layers)


def describe(signal: BertScore) -> str:
    """Name an encoder, the hash of its weights and its layer, for a signature."""
    name = signal.identity["name"]
    shown = Path(name).name if Path(name).is_dir() else name
    return f"encoder:{shown}|sha256:{signal.identity['sha256']}|layer:{signal.layers}"


Values = NDArray[np.float64]


def mover_score(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """One minus the earth mover's distance of the two texts' word pieces, at most 1; 0 where a side is blank.

    Single word pieces of the last layer, of length 1, with Euclidean distances and weights by inverse document
    frequency: the paper's unigram form, but for its averaging of the last five layers.

    Args:
        encoder: folder or Hub id.
        references, candidates: the pairs; either side's document frequencies are counted in its own texts.
    """
    from tqdm import tqdm

    signal = last_layer(encoder)
    encoded = signal.encode([text for text in (*references, *candidates) if text.strip()])
    pieces = {text: signal.pieces(text) for text in encoded}
    weights = [
        inverse_frequencies([pieces[text] for text in side if text in pieces]) for side in (references, candidates)
    ]
    scores = []
    for pair in tqdm(list(zip(references, candidates, strict=True)), desc="moverscore", unit="pair", disable=None):
        if any(text not in encoded for text in pair):
            scores.append(0.0)
            continue
        sides = [_side(encoded[text], pieces[text], weight) for text, weight in zip(pair, weights, strict=True)]
        scores.append(1.0 - earth_movers_distance(*sides[0], *sides[1]))
    return Scored(scores, f"MoverScore|unigrams|idf:yes|solver:highs|{describe(signal)}")


def inverse_frequencies(texts: Sequence[Sequence[int]]) -> dict[int, float]:
    """Give each word piece log((n + 1) / (number of the n texts that hold it + 1))."""
    counts = Counter(piece for text in texts for piece in set(text))
    return {piece: float(np.log((len(texts) + 1) / (count + 1))) for piece, count in counts.items()}


def earth_movers_distance(first: Values, first_weights: Values, second: Values, second_weights: Values) -> float:
    """Give the least cost of moving one set of weighted points onto another.

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


def _side(encoded: tuple[Any, Any], pieces: Sequence[int], frequencies: dict[int, float]) -> tuple[Values, Values]:
    vectors, inner = encoded[0].double().cpu().numpy(), encoded[1].cpu().numpy() > 0
    weights = np.array([frequencies[piece] for piece in pieces])
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return (vectors / lengths)[inner], weights[inner]


LANGUAGE = "en"


class Scored(NamedTuple):
    """Scores of one metric, one a pair, and the signature that reproduces them."""

    scores: list[float]
    signature: str


def sentbleu(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Moses' sentence BLEU on Moses-tokenised text, 0 to 100: the sentBLEU of the WMT Metrics task."""
    from bleurt_repro.datasets_builders.signals.bleu import Bleu

    scores = Bleu()(references, candidates)[:, 0].tolist()
    return Scored(scores, f"sentBLEU|tok:sacremoses-{version('sacremoses')}|case:mixed|smooth:add-one")


def bleu(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """SacreBLEU's sentence BLEU with its own tokenisation and effective order, 0 to 100."""
    from sacrebleu.metrics import BLEU

    return _sacrebleu(BLEU(effective_order=True), references, candidates)


def chrf_plus_plus(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """chrF++ (https://aclanthology.org/W17-4770) by sacreBLEU, 0 to 100."""
    from sacrebleu.metrics import CHRF

    return _sacrebleu(CHRF(word_order=2), references, candidates)


def ter(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """TER by sacreBLEU with its sign turned, so that higher is better: 0 is no edit, -100 one edit a word."""
    from sacrebleu.metrics import TER

    scored = _sacrebleu(TER(), references, candidates)
    return Scored([-score for score in scored.scores], f"-{scored.signature}")


def rouge(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """F of ROUGE-L (https://aclanthology.org/W04-1013) by `rouge-score`, with stemming, 0 to 1."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    pairs = zip(references, candidates, strict=True)
    scores = [scorer.score(reference, candidate)["rougeL"].fmeasure for reference, candidate in pairs]
    return Scored(scores, f"ROUGE-L|f1|stem:porter|version:{version('rouge-score')}")


def length_ratio(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """The shorter length over the longer one, in characters, 0 to 1: what knows nothing but length reaches."""
    pairs = [(len(r), len(c)) for r, c in zip(references, candidates, strict=True)]
    return Scored([min(pair) / max(*pair, 1) for pair in pairs], "length_ratio|shorter/longer|unit:character")


def _meteor(references: Sequence[str], candidates: Sequence[str]) -> Scored:

    return meteor(references, candidates)


def _bertscore(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:

    return bertscore(encoder, references, candidates)


def _mover_score(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:

    return mover_score(encoder, references, candidates)


def _cosine(encoder: str, references: Sequence[str], candidates: Sequence[str]) -> Scored:

    return cosine(encoder, references, candidates)


Score = Callable[[Sequence[str], Sequence[str]], Scored]

BASELINES: dict[str, Score] = {
    "sentbleu": sentbleu,
    "bleu": bleu,
    "chrf++": chrf_plus_plus,
    "ter": ter,
    "rouge": rouge,
    "meteor": _meteor,
    "length_ratio": length_ratio,
}
ENCODER_BASELINES: dict[str, Callable[[str, Sequence[str], Sequence[str]], Scored]] = {
    "bertscore": _bertscore,
    "moverscore": _mover_score,
    "cosine": _cosine,
}


def find_baseline(name: str) -> Score:
    """Find a baseline by its name.

    Args:
        name: a key of `BASELINES`, or `KEY:ENCODER` with a key of `ENCODER_BASELINES`.

    Raises:
        ValueError: if there is none, or the encoder is missing.
    """
    key, _, encoder = name.partition(":")
    if name in BASELINES:
        return BASELINES[name]
    if key in ENCODER_BASELINES and encoder:
        return partial(ENCODER_BASELINES[key], encoder)
    known = ", ".join([*BASELINES, *(f"{key}:ENCODER" for key in ENCODER_BASELINES)])
    raise ValueError(f"unknown baselines {name}: known are {known}")


def shown_name(name: str) -> str:
    """Name a baseline in tables: `bertscore:/here/encoder` as "bertscore (encoder)"."""
    key, _, encoder = name.partition(":")
    return f"{key} ({Path(encoder).name})" if encoder else name


def tokenize(texts: Sequence[str]) -> dict[str, list[str]]:
    """Part texts into words as Moses' tokeniser does, each different text once."""
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=LANGUAGE)
    return {text: moses.tokenize(text, escape=False) for text in dict.fromkeys(texts)}


def _sacrebleu(metric: BLEU | CHRF | TER, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    pairs = zip(references, candidates, strict=True)
    scores = [metric.sentence_score(candidate, [reference]).score for reference, candidate in pairs]
    return Scored(scores, f"{type(metric).__name__}|{metric.get_signature()}")
