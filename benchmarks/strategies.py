"""The ways to score the same pairs that `scoring.py` compares: each peer as its own documentation runs it, and ours."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.forward.encoding import Encoded
from bleurt_repro.metric.forward.plain import PlainForward
from bleurt_repro.metric.layout import readable_positions

Pair = tuple[str, str]


class Strategy(NamedTuple):
    """One way to score.

    Attributes:
        name: of the way.
        how: "run", if it is the software itself that runs, "simulated", if its batches and padding do on our model, or
            "random weights", if they do on a model of its architecture and size.
        setting: what the documentation of the software says: length, batches, arithmetic.
        score: scores pairs.
        padded_tokens: returns the tokens it computes on for pairs of given lengths.
        slow: whether it scores the first pairs of the sample only.
        comparable: whether its scores are those of the same model.
        dtype: arithmetic of its matrix products.
    """

    name: str
    how: str
    setting: str
    score: Callable[[Sequence[Pair]], list[float]]
    padded_tokens: Callable[[Sequence[int]], int]
    slow: bool = False
    comparable: bool = True
    dtype: torch.dtype = torch.float32


# Official BLEURT scores batches of 16 in the given order and pads each pair to the checkpoint's length; `evaluate`'s own
# bleurt calls it, with a checkpoint of 128 tokens unless told otherwise. With length batching it sorts the pairs and pads
# to the longest of each batch: https://github.com/google-research/bleurt/blob/master/bleurt/score.py
OFFICIAL_BATCH = 16
# A `transformers` model in a plain loop; 32 is what its users choose most often, the library has no default.
PLAIN_BATCH = 32
PLAIN = "transformers, plain loop"
# Of such a loop on a GPU, which small batches do not fill: the best one counts.
GPU_BATCHES = (16, 64, 256, 1024)
BERT_SCORE = "bert-score, the same encoder"
PREPARATION = "ours, without the model"
# COMET encodes source, candidate and reference one by one, sorts by length, and takes batches of 16; wmt22-comet-da is
# XLM-R large, all of whose layers are mixed and averaged: https://github.com/Unbabel/COMET. A GPU also gets larger ones.
COMET, COMET_BATCH, COMET_GPU_BATCH = "COMET, wmt22-comet-da", 16, 128
# MetricX reads "candidate: ... reference: ..." and takes the first step of mT5's decoder; its README gives batches of 1, and
# the Large models for best speed: https://github.com/google-research/metricx
METRICX = "MetricX-23-Large"
XLM_R_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
MT5_LARGE = {"d_model": 1024, "d_ff": 2816, "num_layers": 24, "num_decoder_layers": 24, "num_heads": 16}
PIECES = 250_002  # of both vocabularies, about


def in_order(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Return batches of a number of pairs in the given order."""
    return [list(range(start, min(start + size, len(lengths)))) for start in range(0, len(lengths), size)]


def by_length(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Return batches of a number of pairs in order of length, as the official length batching makes them."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return [order[start : start + size] for start in range(0, len(order), size)]


class _Plan(NamedTuple):
    how: str
    setting: str
    batches: Callable[[Sequence[int]], list[list[int]]]
    fixed: int | None


_OFFICIAL = functools.partial(in_order, size=OFFICIAL_BATCH)
PLANS = {
    "evaluate's bleurt, its default": _Plan("simulated", "padded to 128, batches of 16", _OFFICIAL, 128),
    "official BLEURT, a 512-token checkpoint": _Plan("simulated", "padded to 512, batches of 16", _OFFICIAL, 512),
    "official BLEURT, length batching": _Plan(
        "simulated", "sorted, batches of 16", functools.partial(by_length, size=OFFICIAL_BATCH), None
    ),
    PLAIN: _Plan("run", "given order, batches of 32", functools.partial(in_order, size=PLAIN_BATCH), None),
}
GPU_PLANS = {
    f"transformers, sorted, batches of {size}": _Plan(
        "run", f"sorted, batches of {size}", functools.partial(by_length, size=size), None
    )
    for size in GPU_BATCHES
}


def peers(scorer: BleurtScorer) -> list[Strategy]:
    """Return what others do, with the scorer's own `transformers` model and tokens, as their documentation runs it.

    On a GPU also in half precision, if that is the scorer's.
    """
    dtype = scorer.model.dtype
    precision = str(dtype).removeprefix("torch.")
    plans = PLANS if scorer.device.type == "cpu" else {**PLANS, **GPU_PLANS} if dtype == torch.float32 else GPU_PLANS
    return [
        Strategy(
            name if dtype == torch.float32 else f"{name}, {precision}",
            plan.how,
            plan.setting if dtype == torch.float32 else f"{precision}, {plan.setting}",
            functools.partial(_score, scorer, plan.batches, plan.fixed),
            functools.partial(_padded_tokens, plan.batches, plan.fixed),
            slow=plan.fixed is not None,
            dtype=dtype,
        )
        for name, plan in plans.items()
        if plan.fixed is None or plan.fixed <= (readable_positions(scorer.model.config) or plan.fixed)
    ]


def ours(name: str, scorer: BleurtScorer, setting: str, dtype: torch.dtype = torch.float32) -> Strategy:
    """Return our scorer as it is."""

    def score(pairs: Sequence[Pair]) -> list[float]:
        references, candidates = zip(*pairs, strict=True)
        return scorer.score(references=references, candidates=candidates)

    return Strategy(name, "run", setting, score, sum, dtype=dtype)


def preparation(scorer: BleurtScorer) -> Strategy:
    """Return our scorer with a model that costs nothing: what the processor does for a GPU."""
    (member,) = scorer.members
    forward = member.forward

    def score(pairs: Sequence[Pair]) -> list[float]:
        references, candidates = zip(*pairs, strict=True)
        member.forward = lambda: lambda batch: torch.zeros(len(batch))
        try:
            return scorer.score(references=references, candidates=candidates)
        finally:
            member.forward = forward

    return Strategy(PREPARATION, "run", "checks, tokens and batches", score, sum, comparable=False)


def bert_score(encoder: str, layers: int, device: str) -> Strategy:
    """Return BERTscore by its own package, on the same encoder; its scores are no BLEURT scores.

    The package computes in float32 with the models it names. `transformers` would open an encoder whose weights are stored in
    float16 in that arithmetic, which takes several times as long on a CPU, so the weights are converted.
    """
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=encoder, num_layers=layers, device=device)
    scorer._model.float()

    def score(pairs: Sequence[Pair]) -> list[float]:
        references, candidates = ([text or "." for text in texts] for texts in zip(*pairs, strict=True))
        return scorer.score(candidates, references)[2].tolist()

    return Strategy(BERT_SCORE, "run", f"float32, layer {layers}, its batches of 64", score, sum, comparable=False)


class _Ids:
    """Stands for the tokens of texts: as many as the scorer's tokenizer makes of them, with numbers of no meaning."""

    def __init__(self, scorer: BleurtScorer) -> None:
        self._encoder, self._random = scorer.members[0].encoder, torch.Generator().manual_seed(0)
        self._device = scorer.device

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text, two special ones included."""
        tokens = self._encoder.tokenize(texts)
        return [len(tokens[text]) + 2 for text in texts]

    def batch(self, lengths: Sequence[int]) -> dict[str, torch.Tensor]:
        """Return a padded batch of such lengths, on the scorer's device."""
        mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
        ids = torch.randint(5, PIECES, mask.shape, generator=self._random)
        batch = {"input_ids": torch.where(mask, ids, 1), "attention_mask": mask.long()}
        return {name: tensor.to(self._device) for name, tensor in batch.items()}


def comet(scorer: BleurtScorer) -> Strategy:
    """Return a model of COMET's architecture with random weights; the source is taken to be as long as the reference."""
    device = scorer.device
    size = COMET_BATCH if device.type == "cpu" else COMET_GPU_BATCH
    from transformers import XLMRobertaConfig, XLMRobertaModel

    config = XLMRobertaConfig(vocab_size=PIECES, max_position_embeddings=514, type_vocab_size=1, **XLM_R_LARGE)
    encoder = XLMRobertaModel(config, add_pooling_layer=False).eval().to(device)
    texts, width = _Ids(scorer), config.hidden_size
    mix = torch.full((config.num_hidden_layers + 1, 1, 1, 1), 1 / (config.num_hidden_layers + 1), device=device)
    head = torch.nn.Sequential(
        *(torch.nn.Linear(6 * width, 3072), torch.nn.Tanh(), torch.nn.Linear(3072, 1024), torch.nn.Tanh()),
        torch.nn.Linear(1024, 1),
    ).to(device)

    def embed(lengths: Sequence[int]) -> torch.Tensor:
        inputs = texts.batch(lengths)
        layers = torch.stack(encoder(**inputs, output_hidden_states=True).hidden_states)
        mask = inputs["attention_mask"][..., None]
        return ((mix * layers).sum(0) * mask).sum(1) / mask.sum(1)

    def score(pairs: Sequence[Pair]) -> list[float]:
        references, candidates = (texts.lengths(column) for column in zip(*pairs, strict=True))
        scores = [0.0] * len(pairs)
        with torch.inference_mode():
            for batch in by_length(candidates, size):
                first, second = (embed([lengths[i] for i in batch]) for lengths in (candidates, references))
                source = embed([references[i] for i in batch])
                features = [
                    second,
                    first,
                    first * second,
                    (first - second).abs(),
                    first * source,
                    (first - source).abs(),
                ]
                for i, score in zip(batch, head(torch.cat(features, 1))[:, 0].tolist(), strict=True):
                    scores[i] = score
        return scores

    return Strategy(
        COMET, "random weights", f"XLM-R large, three texts, sorted, batches of {size}", score, sum, True, False
    )


def metricx(scorer: BleurtScorer) -> Strategy:
    """Return a model of MetricX's architecture with random weights."""
    from transformers import MT5Config, MT5ForConditionalGeneration

    config = MT5Config(vocab_size=PIECES, **MT5_LARGE)
    model, texts = MT5ForConditionalGeneration(config).eval(), _Ids(scorer)

    def score(pairs: Sequence[Pair]) -> list[float]:
        lengths = texts.lengths([f"candidate: {candidate} reference: {reference}" for reference, candidate in pairs])
        start = torch.zeros(1, 1, dtype=torch.long)
        with torch.inference_mode():
            outputs = [model(**texts.batch([length - 2]), decoder_input_ids=start).logits for length in lengths]
        return [logits[0, 0, -1].item() for logits in outputs]

    return Strategy(METRICX, "random weights", "mT5 large, given order, batches of 1", score, sum, True, False)


def encode(scorer: BleurtScorer, pairs: Sequence[Pair]) -> list[Encoded]:
    """Tokenise pairs as the scorer does."""
    return scorer.members[0].encoder.encode_all([(reference, candidate) for reference, candidate in pairs])


class _Fixed(PlainForward):
    """Runs the model's own forward pass over batches of one fixed length, or of the longest pair's."""

    def __init__(self, scorer: BleurtScorer, length: int | None) -> None:
        super().__init__(scorer.model, scorer.tokenizer.pad_token_id)
        self._length = length

    def _padded(self, pairs: Sequence[Encoded]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        ids, mask, segments = super()._padded(pairs)
        room = (0, max(0, (self._length or 0) - ids.shape[1]))
        return (
            torch.nn.functional.pad(ids, room, value=self._padding_id),
            torch.nn.functional.pad(mask, room),
            torch.nn.functional.pad(segments, room),
        )


def _score(
    scorer: BleurtScorer,
    plan: Callable[[Sequence[int]], list[list[int]]],
    fixed: int | None,
    pairs: Sequence[Pair],
) -> list[float]:
    encoded = encode(scorer, pairs)
    forward, scores = _Fixed(scorer, fixed), [0.0] * len(pairs)
    with torch.inference_mode():
        for batch in plan([len(pair.ids) for pair in encoded]):
            for i, score in zip(batch, forward([encoded[i] for i in batch]).tolist(), strict=True):
                scores[i] = score
    return scores


def _padded_tokens(plan: Callable[[Sequence[int]], list[list[int]]], fixed: int | None, lengths: Sequence[int]) -> int:
    return sum(len(batch) * max(fixed or 0, *(lengths[i] for i in batch)) for batch in plan(lengths))
