"""Pairs to label: which are taken, which are left out, and BERTscore beside them."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
import typer

from bleurt_repro.datasets_builders.signals.bertscore import BertScore

SCRIPT = runpy.run_path(str(Path(__file__).resolve().parents[2] / "recipes" / "pairs_to_label.py"))


def write(path, pairs):
    path.write_text("".join(json.dumps({"reference": a, "candidate": b, "score": 0.5}) + "\n" for a, b in pairs))
    return path


def read(path):
    return [(row["reference"], row["candidate"]) for row in map(json.loads, path.read_text().splitlines())]


@pytest.fixture
def sources(tmp_path):
    outputs = [(f"R {i}", f"C {i} {j}") for i in range(20) for j in range(5)]
    return {
        "rated": [write(tmp_path / "rated.jsonl", [("R 0", "mine"), ("Held", "mine")])],
        "outputs": write(tmp_path / "outputs.jsonl", [*outputs, ("R 0", " "), ("Held", "C"), ("R 1", "C 1 0")]),
        "held_out": [write(tmp_path / "held_out.jsonl", [("Held", "anything")])],
        "contrasts": write(tmp_path / "contrasts.jsonl", [("A", "not A")]),
        "output": tmp_path / "triples.jsonl",
    }


def test_outputs_are_spread_over_references_and_held_out_ones_stay_out(sources):
    SCRIPT["main"](**sources, most_outputs=30, per_reference=2)
    pairs = read(sources["output"])
    assert len(pairs) == len(set(pairs)) == 30 + 1 + 1
    assert {("R 0", "mine"), ("A", "not A")} < set(pairs)
    assert not [pair for pair in pairs if pair[0] == "Held" or not pair[1].strip()]
    drawn = [reference for reference, candidate in pairs if candidate.startswith("C ")]
    assert max(drawn.count(reference) for reference in drawn) == 2
    before = sources["output"].read_bytes()
    SCRIPT["main"](**sources, most_outputs=30, per_reference=2)
    assert sources["output"].read_bytes() == before
    SCRIPT["main"](**sources, most_outputs=30, per_reference=2, seed=1)
    assert sources["output"].read_bytes() != before


def test_two_outputs_of_one_reference_are_put_beside_each_other(sources, tmp_path):
    SCRIPT["main"](**sources, most_outputs=0, crossed=300)
    pairs = [pair for pair in read(sources["output"]) if pair[0].startswith("C ")]
    assert len(pairs) == 300 and len(set(pairs)) > 150
    assert all(first != second and first.split()[1] == second.split()[1] for first, second in pairs)
    sources["outputs"] = write(tmp_path / "single.jsonl", [("R 0", "C"), ("Held", "C"), ("Held", "D")])
    with pytest.raises(typer.BadParameter, match="no reference has two different outputs"):
        SCRIPT["main"](**sources, crossed=1)


def test_the_number_of_pairs_is_cut_after_they_are_mixed(sources):
    SCRIPT["main"](**sources, most_outputs=30, per_reference=2)
    pairs = read(sources["output"])
    SCRIPT["main"](**sources, most_outputs=30, per_reference=2, most=11)
    assert read(sources["output"]) == pairs[:11]


def test_pairs_with_a_label_stay_out(sources, tmp_path):
    known = tmp_path / "known.jsonl"
    known.write_text(json.dumps({"reference": "R 3", "candidate": "C 3 1"}) + "\n")
    SCRIPT["main"](**sources, most_outputs=200, per_reference=9, known=[known, sources["contrasts"]])
    pairs = read(sources["output"])
    assert len([pair for pair in pairs if pair[1].startswith("C ")]) == 20 * 5 - 1
    assert ("R 3", "C 3 1") not in pairs and ("R 3", "C 3 2") in pairs


def test_entailment_pairs_of_sources_anybody_may_use(tmp_path):
    rows = [("cad-snli", "p", "h"), ("sick(train+?)", "no", "no"), ("snli-dev", "q", "i")]
    (tmp_path / "nli.tsv").write_text("".join(f"{source}\ttrain\t0\t{a}\t{b}\n" for source, a, b in rows))
    SCRIPT["main"](tmp_path / "out.jsonl", nli=tmp_path / "nli.tsv")
    assert sorted(read(tmp_path / "out.jsonl")) == [("p", "h"), ("q", "i")]


def test_scores_are_bertscore_line_by_line(sources, tiny_teachers, tmp_path):
    encoder = str(tiny_teachers.masked_lm)
    with pytest.raises(typer.BadParameter, match="--scores needs --encoder"):
        SCRIPT["main"](**sources, scores=tmp_path / "scores.txt")
    SCRIPT["main"](**sources, encoder=encoder, layer=1, scores=tmp_path / "scores.txt")
    pairs = read(sources["output"])
    expected = BertScore(encoder, layers=1)([a for a, _ in pairs], [b for _, b in pairs])[:, 2]
    found = np.loadtxt(tmp_path / "scores.txt")
    assert np.abs(found - expected).max() < 0.02  # bfloat16
    assert len(set(found)) > 20
