"""RemBERT, the encoder of BLEURT-20, against the official graph written out independently in double precision."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.convert.convert import MAX_DIFFERENCE, convert
from tests.official_checkpoints import (
    PAIRS,
    SENTENCES,
    SIZES,
    expected_scores,
    make_official_rembert,
)

pytestmark = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="writing an official checkpoint takes TensorFlow"
)
PAIRED = [*PAIRS, *zip(SENTENCES, [*SENTENCES[1:], ""], strict=True)]
# deeper and wider than the stand-in of the other tests
LARGER = {
    **SIZES, "hidden_size": 96, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 192,
    "max_position_embeddings": 128,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # some pairs are longer than the checkpoint reads, on purpose
@pytest.mark.parametrize(("gelu", "other_gelu"), [("tanh", "erf"), ("erf", "tanh")])
@pytest.mark.parametrize(("sizes", "embedding"), [(SIZES, 8), (LARGER, 24)], ids=["2 layers", "6 layers"])
def test_rembert_scores_as_the_official_graph(sizes, embedding, gelu, other_gelu, tmp_path):
    variables = make_official_rembert(tmp_path / "official", embedding=embedding, seed=0, sizes=sizes)
    convert(str(tmp_path / "official"), str(tmp_path / "converted"), gelu=gelu)
    scorer = BleurtScorer(str(tmp_path / "converted"), device="cpu")
    scores = scorer.score(references=[r for r, _ in PAIRED], candidates=[c for _, c in PAIRED])

    def largest_difference(graph):
        expected = expected_scores(scorer, variables, graph, PAIRED, sizes)
        return max(abs(a - b) for a, b in zip(scores, expected, strict=True))

    assert largest_difference(gelu) < MAX_DIFFERENCE < largest_difference(other_gelu)
    assert max(scores) - min(scores) > 0.1  # scores that are all alike would agree with anything
