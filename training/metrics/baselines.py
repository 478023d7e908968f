"""Baselines: well-known metrics to compare a learned metric with. Each gives one score per pair; higher is better.

sentBLEU, BLEU, chrF++, TER, ROUGE-L, METEOR and the ratio of lengths compare words or characters; BERTScore, MoverScore
and the cosine of sentence vectors compare the vectors of an encoder; brevity does not read the candidate. A baseline is
a key of `BASELINES`, or a key of `ENCODER_BASELINES` with an encoder: `bertscore:FOLDER_OR_HUB_ID`, or
`bertscore@5:FOLDER_OR_HUB_ID` for layer 5. To add one, write its function and enter it in one of these dictionaries.
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

from bleurt_repro.metric.statistics import Values

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF, TER

    from bleurt_repro.datasets_builders.signals.bertscore import BertScore


LANGUAGE = "en"
BLANK_SCORE = 0.0  # score of a pair with a blank side, in all baselines that use an encoder
PUNCTUATION = frozenset(string.punctuation)


class Scored(NamedTuple):
    """One score per pair, and the signature that reproduces the scores."""

    scores: list[float]
    signature: str


Score = Callable[[Sequence[str], Sequence[str]], Scored]


# --- metrics of words and characters -------------------------------------------------------------------------------


def sentbleu(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute Moses' sentence BLEU of Moses-tokenised text, 0 to 100: the sentBLEU of the WMT Metrics task."""
    from bleurt_repro.datasets_builders.signals.bleu import Bleu

    scores = Bleu()(references, candidates)[:, 0].tolist()
    return Scored(scores, f"sentBLEU|tok:sacremoses-{version('sacremoses')}|case:mixed|smooth:add-one")


def bleu(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute sacreBLEU's sentence BLEU with its tokeniser for the references' language and effective order, 0 to 100."""
    from sacrebleu.metrics import BLEU

    from bleurt_repro.metric.compare.overlap import bleu_tokenizer

    tokenizer = bleu_tokenizer([[reference] for reference in references])
    return _sacrebleu(BLEU(effective_order=True, tokenize=tokenizer), references, candidates)


def chrf_plus_plus(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute chrF++ (https://aclanthology.org/W17-4770) by sacreBLEU, 0 to 100."""
    from sacrebleu.metrics import CHRF

    return _sacrebleu(CHRF(word_order=2), references, candidates)


def ter(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute the negative TER by sacreBLEU, so that higher is better: 0 is no edit, -100 one edit per word."""
    from sacrebleu.metrics import TER

    scored = _sacrebleu(TER(), references, candidates)
    return Scored([-score for score in scored.scores], f"-{scored.signature}")


def _sacrebleu(metric: BLEU | CHRF | TER, references: Sequence[str], candidates: Sequence[str]) -> Scored:
    pairs = zip(references, candidates, strict=True)
    scores = [metric.sentence_score(candidate, [reference]).score for reference, candidate in pairs]
    return Scored(scores, f"{type(metric).__name__}|{metric.get_signature()}")


def rouge(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute the F1 of ROUGE-L (https://aclanthology.org/W04-1013) by `rouge-score`, with stemming, 0 to 1."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    pairs = zip(references, candidates, strict=True)
    scores = [scorer.score(reference, candidate)["rougeL"].fmeasure for reference, candidate in pairs]
    return Scored(scores, f"ROUGE-L|f1|stem:porter|version:{version('rouge-score')}")


def length_ratio(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute the shorter length divided by the longer one, in characters, 0 to 1."""
    pairs = [(len(r), len(c)) for r, c in zip(references, candidates, strict=True)]
    return Scored([min(pair) / max(*pair, 1) for pair in pairs], "length_ratio|shorter/longer|unit:character")


def brevity(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute minus the length of the reference, in characters.

    A control, which does not read the candidate. It shows how much of an agreement is due to the length of the texts:
    raters who count errors find more of them in longer texts.
    """
    return Scored(
        [-float(len(reference)) for reference in references], "brevity|-length of the reference|unit:character"
    )


def meteor(references: Sequence[str], candidates: Sequence[str]) -> Scored:
    """Compute METEOR (https://aclanthology.org/W05-0909) by nltk, 0 to 1, of lower-cased Moses tokens.

    Synonyms match if `nltk.download("wordnet")` was run; the signature names the stages of matching.
    """
    from nltk.translate.meteor_score import single_meteor_score

    wordnet, stages = find_wordnet()
    tokens = tokenize([*references, *candidates])
    scores = [
        float(single_meteor_score(tokens[reference], tokens[candidate], wordnet=wordnet)) if candidate.strip() else 0.0
        for reference, candidate in zip(references, candidates, strict=True)
    ]
    tokenizer, library = f"tok:sacremoses-{version('sacremoses')}", f"nltk:{version('nltk')}"
    return Scored(scores, "|".join(["METEOR", f"stages:{stages}", "case:lower", tokenizer, library]))


class NoSynonyms:
    """Replacement for WordNet where its corpus is not installed: no word has a synonym."""

    def synsets(self, _: str) -> list[Any]:
        """Return an empty list."""
        return []


def find_wordnet() -> tuple[Any, str]:
    """Return WordNet or its replacement, and the names of METEOR's stages of matching with it."""
    from nltk.corpus import wordnet

    try:
        wordnet.synsets("word")
    except LookupError:
        return NoSynonyms(), "exact+stem"
    return wordnet, "exact+stem+synonym"


def tokenize(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the Moses tokens of each different text."""
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=LANGUAGE)
    return {text: moses.tokenize(text, escape=False) for text in dict.fromkeys(texts)}


# --- metrics of an encoder's vectors -------------------------------------------------------------------------------


def bertscore(encoder: str, references: Sequence[str], candidates: Sequence[str], layer: int | None = None) -> Scored:
    """Compute the F1 of BERTScore (https://arxiv.org/abs/1904.09675), without idf weights or rescaling.

    Args:
        encoder: folder or Hub id.
        references, candidates: texts of the pairs.
        layer: layer whose vectors are compared; by default the one that bert-score lists for the encoder, or the last.
    """
    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

    signal = BertScore(encoder, layers=layer)
    return Scored(signal(references, candidates)[:, 2].tolist(), f"BERTscore|f1|{describe(signal)}|idf:no")


def cosine(encoder: str, references: Sequence[str], candidates: Sequence[str], layer: int | None = None) -> Scored:
    """Compute the cosine of the two mean vectors, -1 to 1; 0 where a side is blank.

    Args:
        encoder: folder or Hub id, best of a sentence encoder (https://arxiv.org/abs/1908.10084).
        references, candidates: texts of the pairs.
        layer: layer whose vectors are averaged; the last by default.
    """
    signal = at_layer(encoder, layer)
    means = sentence_means(signal, [*references, *candidates])
    scores = [
        float(means[reference] @ means[candidate]) if reference in means and candidate in means else BLANK_SCORE
        for reference, candidate in zip(references, candidates, strict=True)
    ]
    return Scored(scores, f"cosine|pooling:mean|{describe(signal)}")


def sentence_means(signal: BertScore, texts: Sequence[str]) -> dict[str, Values]:
    """Compute the mean vector of each different text that is not blank, scaled to length 1."""
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

    Scores are at most 1, and 0 where a side is blank. This is the unigram form of the paper: vectors of single word pieces,
    scaled to length 1, with Euclidean distances and weights by inverse document frequency. The paper averages the last
    five layers; here the vectors are of one layer.

    Args:
        encoder: folder or Hub id.
        references, candidates: texts of the pairs; document frequencies are counted separately for each side.
        layer: layer whose vectors are compared; the last by default.
        words_only: leave out punctuation and all pieces of a word but the first, as `moverscore_v2` does, the later code
            of the authors (moverscore 1.0.3 on PyPI). It needs a tokenizer that marks such pieces by "##", as BERT's does.
    """
    from tqdm import tqdm

    # Each different text is encoded once; a blank one has no vectors.
    signal = at_layer(encoder, layer)
    encoded = signal.encode([text for text in (*references, *candidates) if text.strip()])
    pieces = {text: signal.pieces(text) for text in encoded}
    weights = [
        inverse_frequencies([pieces[text] for text in side if text in pieces]) for side in (references, candidates)
    ]
    masks = {
        text: [not (words_only and _is_left_out(piece)) for piece in signal.spelled(ids)]
        for text, ids in pieces.items()
    }
    # One optimal transport problem per pair.
    scores = []
    for pair in tqdm(list(zip(references, candidates, strict=True)), desc="moverscore", unit="pair", disable=None):
        if any(text not in encoded for text in pair):
            scores.append(BLANK_SCORE)
            continue
        sides = [
            _weighted_vectors(encoded[text], pieces[text], weight, masks[text])
            for text, weight in zip(pair, weights, strict=True)
        ]
        empty = any(not len(vectors) for vectors, _ in sides)
        scores.append(BLANK_SCORE if empty else 1.0 - earth_movers_distance(*sides[0], *sides[1]))
    form = "words" if words_only else "unigrams"
    return Scored(scores, f"MoverScore|{form}|idf:yes|solver:highs|{describe(signal)}")


def _is_left_out(piece: str) -> bool:
    return "##" in piece or piece in PUNCTUATION


def inverse_frequencies(texts: Sequence[Sequence[int]]) -> dict[int, float]:
    """Compute log((n + 1) / (m + 1)) of each word piece that occurs in m of the n texts."""
    counts = Counter(piece for text in texts for piece in set(text))
    return {piece: float(np.log((len(texts) + 1) / (count + 1))) for piece, count in counts.items()}


def earth_movers_distance(first: Values, first_weights: Values, second: Values, second_weights: Values) -> float:
    """Compute the lowest cost of moving one set of weighted points onto another, as a linear programme.

    Args:
        first, second: points, shapes (n, size) and (m, size).
        first_weights, second_weights: weights, shapes (n,) and (m,), not negative; each side is scaled to a sum of 1.
    """
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, kron, vstack
    from scipy.spatial.distance import cdist

    costs = cdist(first, second)
    n, m = costs.shape
    # The unknowns are the n x m flows. The flows from each point, and those to each point, must add up to its weight.
    leaving = kron(eye_array(n), np.ones((1, m)))
    arriving = kron(np.ones((1, n)), eye_array(m))
    amounts = np.concatenate([_scale(first_weights), _scale(second_weights)])
    # The last constraint follows from the others: without it rounding cannot make them contradict each other.
    solution = linprog(costs.ravel(), A_eq=vstack([leaving, arriving]).tocsr()[:-1], b_eq=amounts[:-1], method="highs")
    return float(solution.fun)


def _scale(weights: Values) -> Values:
    """Scale weights to a sum of 1; weights that are all 0 become equal."""
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def _weighted_vectors(
    encoded: tuple[Any, Any], pieces: Sequence[int], frequencies: dict[int, float], mask: Sequence[bool]
) -> tuple[Values, Values]:
    """Return the vectors of a text's word pieces, scaled to length 1, and their weights.

    Args:
        encoded: vectors, shape (pieces, size), and which of them are not of special tokens, shape (pieces,).
        pieces: ids of the word pieces.
        frequencies: inverse document frequency by id.
        mask: which pieces to return.
    """
    vectors, inner = encoded[0].double().cpu().numpy(), (encoded[1].cpu().numpy() > 0) & np.array(mask)
    weights = np.array([frequencies[piece] for piece in pieces])
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return (vectors / lengths)[inner], weights[inner]


def at_layer(encoder: str, layer: int | None = None) -> BertScore:
    """Return the BERTScore signal of one layer of an encoder, the last by default."""
    from transformers import AutoConfig

    from bleurt_repro.datasets_builders.open_models import find_model
    from bleurt_repro.datasets_builders.signals.bertscore import BertScore

    if layer is None:
        layer = int(AutoConfig.from_pretrained(find_model(encoder, "encoder")).num_hidden_layers)
    return BertScore(encoder, layers=layer)


def describe(signal: BertScore) -> str:
    """Return the part of a signature that names an encoder, the hash of its weights and its layer."""
    name = signal.identity["name"]
    short_name = Path(name).name if Path(name).is_dir() else name
    return f"encoder:{short_name}|sha256:{signal.identity['sha256']}|layer:{signal.layers}"


# --- baselines by name ---------------------------------------------------------------------------------------------

BASELINES: dict[str, Score] = {
    "sentbleu": sentbleu,
    "bleu": bleu,
    "chrf++": chrf_plus_plus,
    "ter": ter,
    "rouge": rouge,
    "meteor": meteor,
    "length_ratio": length_ratio,
    "brevity": brevity,
}
ENCODER_BASELINES: dict[str, Callable[..., Scored]] = {
    "bertscore": bertscore,
    "moverscore": mover_score,
    "moverscore_v2": partial(mover_score, words_only=True),
    "cosine": cosine,
}
BASELINE_NAMES = (*BASELINES, *(f"{key}:ENCODER" for key in ENCODER_BASELINES))  # as a user writes them


def find_baseline(name: str) -> Score:
    """Return the function of a baseline.

    Args:
        name: key of `BASELINES`, or `KEY:ENCODER` or `KEY@LAYER:ENCODER` with a key of `ENCODER_BASELINES`.

    Raises:
        ValueError: if there is no such baseline, the encoder is missing, or the layer is not a number.
    """
    if name in BASELINES:
        return BASELINES[name]
    key, layer, encoder = _split_name(name)
    if key in ENCODER_BASELINES and encoder:
        if layer is not None and not layer.isdecimal():
            raise ValueError(f"the layer of {name} must be a number, such as {key}@5:{encoder}, found {layer!r}")
        return partial(ENCODER_BASELINES[key], encoder, **({} if layer is None else {"layer": int(layer)}))
    raise ValueError(f"unknown baseline {name}: available are {', '.join(BASELINE_NAMES)}")


def table_name(name: str) -> str:
    """Return the name of a baseline in tables: "bertscore (encoder)" for `bertscore:/folder/encoder`."""
    key, layer, encoder = _split_name(name)
    if not encoder:
        return name
    return f"{key} ({Path(encoder).name}{'' if layer is None else f', layer {layer}'})"


def _split_name(name: str) -> tuple[str, str | None, str]:
    """Split `KEY@LAYER:ENCODER` into key, layer (None if there is none) and encoder ("" if there is none)."""
    start, _, encoder = name.partition(":")
    key, separator, layer = start.partition("@")
    return key, layer if separator else None, encoder
