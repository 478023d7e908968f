"""What must not change a score: real WMT pairs through the embedded checkpoint, in other orders, batches and ways."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
import warnings

import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.datasets_builders.ratings.wmt_sources import read_wmt
from bleurt_repro.metric.bulk.scoring import score_files
from bleurt_repro.metric.forward.onnx import LIBRARIES
from bleurt_repro.metric.forward.plain import PlainForward
from bleurt_repro.metric.options import ScoreOptions

# float32, as the documents promise: neighbours, batches, padding and the exact ONNX graph change no more than this.
EXACT = 1e-5
# int8 is not exact: its mean error, and the largest.
INT8_MEAN, INT8_LARGEST = 0.05, 0.5

needs_onnx = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in LIBRARIES), reason="needs the onnx extra"
)
pytestmark = pytest.mark.filterwarnings("ignore:.*longer than the 128 tokens")


@pytest.fixture(scope="module", params=[24, pytest.param(1000, marks=pytest.mark.long)])
def pairs(request, shared_data):
    """Return pairs of 2017, drawn with a fixed seed."""
    rows = read_wmt(shared_data / "wmt" / "wmt17_daseg_to_en.jsonl.gz")
    sample = random.Random(11).sample(rows, request.param)
    return {"references": [row["reference"] for row in sample], "candidates": [row["candidate"] for row in sample]}


@pytest.fixture(scope="module")
def scorer():
    return BleurtScorer(device="cpu")


@pytest.fixture(scope="module")
def expected(scorer, pairs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return scorer.score(**pairs)


def gap(scores, expected) -> float:
    """The largest difference; it is written out, so that the documents can state it (pytest -rP)."""
    assert len(scores) == len(expected)
    largest = max(abs(a - b) for a, b in zip(scores, expected, strict=True))
    sys.stdout.write(f"largest difference over {len(scores)} pairs: {largest:.2e}\n")
    return largest


def test_permuted_pairs_have_permuted_scores(scorer, pairs, expected):
    order = random.Random(3).sample(range(len(expected)), len(expected))
    permuted = {name: [texts[i] for i in order] for name, texts in pairs.items()}
    assert gap(scorer.score(**permuted), [expected[i] for i in order]) < EXACT


@pytest.mark.parametrize("tokens", [1, 300])
def test_the_batch_changes_nothing(tokens, pairs, expected):
    assert gap(BleurtScorer(device="cpu", batch_tokens=tokens).score(**pairs), expected) < EXACT


def test_padding_changes_nothing(scorer, pairs, expected, monkeypatch):
    plain = PlainForward(scorer.model, scorer.tokenizer.pad_token_id)
    monkeypatch.setattr(scorer.members[0], "forward", lambda: plain)
    assert gap(scorer.score(**pairs), expected) < EXACT


def test_shards_change_nothing(pairs, expected, tmp_path):
    rows = zip(*pairs.values(), strict=True)
    lines = [json.dumps({"reference": reference, "candidate": candidate}) for reference, candidate in rows]
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines))
    scores = []
    for index in range(3):
        with pytest.warns(UserWarning, match=f"share {index} of 3"):
            score_files(
                ScoreOptions(device="cpu"),
                pairs=str(tmp_path / "pairs.jsonl"),
                output=str(tmp_path / "scores.txt"),
                num_shards=3,
                shard_index=index,
            )
        scores += map(float, (tmp_path / f"scores-{index:05d}-of-00003.txt").read_text().split())
    assert gap(scores, expected) < EXACT


@needs_onnx
@pytest.mark.long
def test_the_exact_graph_changes_nothing(pairs, expected):
    assert gap(BleurtScorer(backend="onnx").score(**pairs), expected) < EXACT


@needs_onnx
@pytest.mark.long
def test_the_int8_graph_is_near(pairs, expected):
    scores = BleurtScorer(backend="onnx-int8").score(**pairs)
    mean = sum(abs(a - b) for a, b in zip(scores, expected, strict=True)) / len(scores)
    sys.stdout.write(f"mean difference: {mean:.2e}\n")
    assert mean < INT8_MEAN and gap(scores, expected) < INT8_LARGEST


def test_duplicates_score_equal_to_the_bit(scorer, pairs):
    thrice = {name: texts * 3 for name, texts in pairs.items()}
    scores = scorer.score(**thrice)
    count = len(scores) // 3
    assert scores[:count] == scores[count : 2 * count] == scores[2 * count :]


BAD_ROWS = {
    "empty": ("", ""),
    "control characters": ("\x00\x1b[2J\u202e\ufeff", "\x00"),
    "half a character": ("\ud800", "\udfff\ud800"),
    "very long": ("word " * 20_000, "x" * 100_000),
    "special tokens": ("[CLS] [SEP] [PAD] [MASK]", "<s></s>"),
}


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS)
def test_one_bad_row_changes_no_other_score(bad, scorer, pairs, expected):
    middle = len(expected) // 2
    references, candidates = (list(texts) for texts in pairs.values())
    references.insert(middle, bad[0])
    candidates.insert(middle, bad[1])
    scores = scorer.score(references=references, candidates=candidates)
    del scores[middle]
    assert gap(scores, expected) < EXACT


def test_a_row_that_is_no_text_is_named_before_anything_is_scored(scorer, pairs):
    references = [*pairs["references"][:7], None, *pairs["references"][7:]]
    with pytest.raises(TypeError, match=r"references\[7\]"):
        scorer.score(references=references, candidates=[*pairs["candidates"], "x"])
