"""The checkpoints of the repository: size, sense of order, cards, and real pairs through each way of scoring."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER
from bleurt_repro.training.experiments.minimal_pairs import TABLES, read_minimal_pairs
from tests.real_data import wmt_ratings

FOLDER, BASE = EMBEDDED_FOLDER / "bleurt-repro-mini", EMBEDDED_FOLDER / "bleurt-repro-base"
RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"
REFERENCE = "The cat sat on the mat."


@pytest.fixture(scope="module")
def scorer():
    return BleurtScorer(device="cpu")


@pytest.fixture(scope="module")
def base():
    if not BASE.exists():
        pytest.skip("bleurt-repro-base is in clones only")
    return BleurtScorer("bleurt-repro-base", device="cpu")


def test_it_is_small_and_its_matrices_are_stored_in_8_bits():
    weights = FOLDER / "model.safetensors"
    assert weights.stat().st_size <= 24_000_000
    with safe_open(weights, "pt") as file:
        kinds = [file.get_slice(name).get_dtype() for name in file.keys()]  # noqa: SIM118
    # One of the 41 matrices has numbers too small for 8 bits.
    assert (kinds.count("F8_E4M3"), kinds.count("BF16"), kinds.count("F32")) == (40, 1, len(kinds) - 41)


def test_the_larger_one_is_stored_in_small_shards_of_bytes(base):
    shards = sorted(BASE.glob("*.safetensors"))
    assert sum(shard.stat().st_size for shard in shards) <= 111_000_000
    assert max(shard.stat().st_size for shard in shards) <= 45_000_000
    kinds = set()
    for shard in shards:
        with safe_open(shard, "pt") as file:
            kinds |= {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
    assert kinds == {"F8_E4M3", "F32"}


def test_plain_transformers_scores_as_the_larger_one_does(base):
    tokenizer = AutoTokenizer.from_pretrained(BASE)
    model = AutoModelForSequenceClassification.from_pretrained(BASE).eval()
    assert model.dtype == torch.float32
    candidates = [
        "A cat was sitting on the mat.",
        "",
        "Stock prices fell sharply on Monday, as many had expected. " * 3,
    ]
    inputs = tokenizer([REFERENCE] * 3, candidates, padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = model(**inputs).logits[:, 0].tolist()
    assert base.score(references=[REFERENCE] * 3, candidates=candidates) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["scorer", "base"])
def test_scores_fall_from_identical_to_unrelated(name, request):
    scorer = request.getfixturevalue(name)
    candidates = [
        REFERENCE,
        "A cat was sitting on the mat.",
        "The cat did not sit on the mat.",
        "Stock prices fell sharply on Monday.",
    ]
    scores = scorer.score(references=[REFERENCE] * 4, candidates=candidates)
    assert scores == sorted(scores, reverse=True)
    assert min(better - worse for better, worse in zip(scores, scores[1:], strict=False)) > 0.02


def test_neighbours_change_a_score_by_less_than_1e_5(scorer):
    texts = [f"{REFERENCE} {'It rained all day. ' * (i % 7)}" for i in range(14)]
    together = scorer.score(references=[REFERENCE] * len(texts), candidates=texts)
    alone = [scorer.score(references=[REFERENCE], candidates=[text])[0] for text in texts]
    assert together == pytest.approx(alone, abs=1e-5)


@pytest.mark.parametrize(("name", "folder", "file"), [("scorer", FOLDER, "wmt22"), ("base", BASE, "wmt22")])
def test_the_card_holds_the_figures_of_the_results(name, folder, file, request):
    scorer = request.getfixturevalue(name)
    card = (folder / "README.md").read_text()
    results = json.loads((RESULTS / f"{file}.json").read_text())
    row = next(row for row in results["rows"] if row["name"] == folder.name)
    assert scorer.signature.split("|")[1] in row["signature"]  # the hash: measured on these very weights
    for figures in row["groups"].values():
        assert f"value: {round(figures['kendall_tau']['value'], 6)}" in card
    assert scorer.signature in card
    assert f'AutoTokenizer.from_pretrained("path/to/{folder.name}")' in card  # plain transformers reads what it reads


def test_the_readme_shows_this_checkpoints_signature(scorer):
    assert scorer.signature in (Path(__file__).resolve().parents[3] / "README.md").read_text()


@pytest.mark.long
def test_the_command_line_agrees_with_python_on_all_wmt17_pairs(scorer, shared_data, tmp_path):
    rows = [row for row in wmt_ratings(shared_data / "wmt") if row["year"] == 2017]
    assert len(rows) == 3920
    with (tmp_path / "pairs.jsonl").open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({"reference": row["reference"], "candidate": row["candidate"]}) + "\n")
    with pytest.raises(SystemExit) as stop:
        main(["score", "--pairs", str(tmp_path / "pairs.jsonl"), "--output", str(tmp_path / "scores.txt")])
    assert not stop.value.code
    written = [float(line) for line in (tmp_path / "scores.txt").read_text().splitlines()]
    texts = {"references": [row["reference"] for row in rows], "candidates": [row["candidate"] for row in rows]}
    assert written == pytest.approx(scorer.score(**texts), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "step"),
    [("scorer", 12), *(pytest.param(name, 1, marks=pytest.mark.long) for name in ("scorer", "base"))],
)
def test_the_reference_itself_scores_highest(name, step, request):
    """Of everyday sentences, too: once copies of those like the templates of `data roles` scored low."""
    scorer = request.getfixturevalue(name)
    pairs = [pair for path in TABLES.values() for pair in read_minimal_pairs(path)][::step]
    references = [pair.reference for pair in pairs]
    itself, better, worse = (
        scorer.score(references=references, candidates=texts)
        for texts in (references, [pair.better for pair in pairs], [pair.worse for pair in pairs])
    )
    assert np.quantile(itself, 0.01) > 0.9  # of all but a few: base gives a copy of two sentences 0.13, mini 0.5
    first = [one > max(others) for one, *others in zip(itself, better, worse, strict=True)]
    # The encoder has no upper case: candidates that differ in casing alone tie.
    assert sum(first) / len(first) > 0.95
