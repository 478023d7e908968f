"""Baselines on sentences whose scores can be computed by hand, and on encoders of random weights."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoModel, AutoTokenizer

from bleurt_repro.training.metrics.baselines import (
    BASELINES,
    earth_movers_distance,
    find_baseline,
    find_wordnet,
    inverse_frequencies,
    table_name,
)

REFERENCE = "the cat sat on the mat"


@pytest.mark.parametrize(
    ("name", "candidate", "score"),
    [
        ("sentbleu", REFERENCE, 100.0),
        ("bleu", REFERENCE, 100.0),
        ("chrf++", REFERENCE, 100.0),
        ("chrf++", "", 0.0),
        ("ter", REFERENCE, 0.0),
        ("ter", "the cat sat on a mat", -100 / 6),  # one of six words
        ("rouge", REFERENCE, 1.0),
        ("rouge", "the cat", 0.5),  # precision 1, recall 1/3
        ("meteor", "", 0.0),
        ("meteor", REFERENCE, 1 - 0.5 * (1 / 6) ** 3),  # one chunk of six matches
        ("length_ratio", "the cat sat", 0.5),
        ("length_ratio", "", 0.0),
        ("brevity", "any text", -22.0),
    ],
)
def test_scores_by_hand(name, candidate, score):
    scored = BASELINES[name]([REFERENCE], [candidate])
    assert scored.scores == pytest.approx([score])
    assert scored.signature


def test_meteor_says_whether_it_had_synonyms():
    _, stages = find_wordnet()
    assert f"stages:{stages}" in BASELINES["meteor"]([REFERENCE], [REFERENCE]).signature
    # "cats" matches "cat" by its stem
    assert BASELINES["meteor"]([REFERENCE], ["the cats sat on the mat"]).scores[0] > 0.9


@pytest.mark.parametrize("name", ["bertscore", "moverscore", "moverscore_v2", "cosine"])
def test_encoders_prefer_what_is_there(name, tiny_scorer):
    scored = find_baseline(f"{name}:{tiny_scorer}")([REFERENCE] * 3, [REFERENCE, "it rains dog", ""])
    same, other, blank = scored.scores
    assert same == pytest.approx(1.0, abs=1e-5) and other < same and blank == 0
    assert "layer:2" in scored.signature and "tiny" in scored.signature


def test_the_layer_of_an_encoder_can_be_chosen(tiny_scorer):
    first, last, default = (
        find_baseline(f"{name}:{tiny_scorer}")([REFERENCE], ["it rains dog"])
        for name in ("bertscore@1", "bertscore@2", "bertscore")
    )
    assert "layer:1" in first.signature and first.scores != last.scores
    assert last == default
    assert table_name(f"bertscore@1:{tiny_scorer}") == f"bertscore ({tiny_scorer.name}, layer 1)"
    with pytest.raises(ValueError, match="the layer of bertscore@x:tiny must be a number"):
        find_baseline("bertscore@x:tiny")


def test_earth_movers_distance_by_hand():
    line = np.array([[0.0], [1.0], [3.0]])
    # 1/2 stays at 0; 1/2 goes from 1 to 3
    distance = earth_movers_distance(line[:2], np.ones(2), line[[0, 2]], np.array([2.0, 2.0]))
    assert distance == pytest.approx(1.0)
    assert earth_movers_distance(line[:1], np.zeros(1), line[2:], np.ones(1)) == pytest.approx(3.0)


def test_moverscore_v2_leaves_out_punctuation_and_inner_pieces(tiny_scorer):
    # "sats" is "sat" and "##s"; a text of punctuation alone has no words
    texts = ["the cat sats !", "it rains", "?"], ["the cat sat", "it rains .", "it rains"]
    words, pieces = (find_baseline(f"{name}:{tiny_scorer}")(*texts) for name in ("moverscore_v2", "moverscore"))
    assert words.scores[1:] != pieces.scores[1:] and words.scores[2] == 0
    assert words.scores[0] != pieces.scores[0] and words.scores[0] <= 1
    assert "|words|" in words.signature and "|unigrams|" in pieces.signature


@pytest.fixture
def published_mover_score(tiny_scorer, monkeypatch):
    """The module `moverscore_v2` on the tiny encoder: on import it opens DistilBERT on a GPU, with transformers 2."""
    pytest.importorskip("pyemd", reason="needs pyemd, which moverscore needs")
    found = importlib.util.find_spec("moverscore_v2")
    if found is None:
        pytest.skip("needs moverscore: pip install --no-deps moverscore==1.0.3")
    source = Path(found.origin).read_text(encoding="utf-8")
    opening = source[source.index("from transformers import *") : source.index("def truncate")]
    module = types.ModuleType("moverscore_v2")
    exec(source.replace(opening, "").replace("np.float)", "float)"), module.__dict__)
    tokenizer = AutoTokenizer.from_pretrained(tiny_scorer)
    tokenizer.max_len = 64
    encoder = AutoModel.from_pretrained(tiny_scorer).eval()

    def model(input_ids, attention_mask):
        given = {"input_ids": input_ids, "attention_mask": attention_mask, "output_hidden_states": True}
        return None, encoder(**given).hidden_states, None

    model.eval = encoder.eval
    module.tokenizer, module.model = tokenizer, model
    monkeypatch.setitem(sys.modules, "moverscore_v2", module)  # its pool of processes finds its functions by name

    def score(references, candidates):
        frequencies = [module.get_idf_dict(texts, nthreads=1) for texts in (references, candidates)]
        return module.word_mover_score(references, candidates, *frequencies, device="cpu")

    return score


def test_moverscore_v2_is_its_authors(published_mover_score, tiny_scorer):
    references = ["the cat sat on the mat .", "it rains , good bye !", "hi there dogs", "stock prices fell", "a cat"]
    candidates = ["a cats sat on mats", "it rained ; good bye", "hi there , dog", "the prices fell", "not a dog !"]
    ours = find_baseline(f"moverscore_v2:{tiny_scorer}")(references, candidates).scores
    assert ours == pytest.approx(published_mover_score(references, candidates), abs=1e-5)
    assert len(set(ours)) == len(ours)


def test_inverse_frequencies_by_hand():
    found = inverse_frequencies([[5, 6], [5, 5]])
    assert found == pytest.approx({5: 0.0, 6: np.log(3 / 2)})


@pytest.mark.parametrize("name", ["bleurgh", "bertscore", "bertscore:", "bleu:encoder"])
def test_unknown_names(name):
    with pytest.raises(ValueError, match=f"unknown baseline {name}: available are sentbleu, .*cosine:ENCODER"):
        find_baseline(name)
