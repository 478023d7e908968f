"""Entailment data as pairs to learn scores from: which are drawn, and how a model's scores of them move."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "entailment_pairs.py"
NLI = [
    ("snli-dev", "train", "entailment", "A dog runs.", "An animal moves."),
    ("snli-dev", "train", "contradiction", "A dog runs.", "A dog sleeps."),
    ("cad-snli", "train", "neutral", "A dog runs.", "A brown dog runs."),
    ("snli-dev", "train", "entailment", "It rains.", "There is rain."),  # nothing contradicts it
    ("qnli-dev", "train", "contradiction", "It rains.", "It is dry."),  # another source
]


@pytest.fixture(scope="module")
def main():
    return runpy.run_path(str(RECIPE))["main"]


@pytest.fixture
def nli(tmp_path):
    path = tmp_path / "nli.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in NLI), encoding="utf-8")
    return path


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_premises_with_both_are_drawn_and_their_scores_moved(main, nli, tmp_path):
    output = tmp_path / "pairs.jsonl"
    main(nli=nli, output=output)
    drawn = read(output)
    assert [(row["candidate"], row["system"]) for row in drawn] == [
        ("An animal moves.", "nli: entailment"),
        ("A dog sleeps.", "nli: contradiction"),
        ("A brown dog runs.", "nli: neutral"),
    ]
    assert all("score" not in row for row in drawn)
    (tmp_path / "scores.txt").write_text("0.2\n-1.8\n0.5\n")
    main(nli=nli, output=output, scores=tmp_path / "scores.txt")
    # -1.8 - 0.7 is below what people give
    assert [row["score"] for row in read(output)] == pytest.approx([0.3, -2.0, 0.4])
    main(nli=nli, output=output, pairs=2)
    assert read(output) == drawn[:2]


def test_an_entailed_hypothesis_is_turned_and_scores_less_by_so_much_at_least(main, nli, tmp_path):
    nli.write_text(
        "snli-dev\ttrain\tentailment\tShe ran home.\tA girl was in the street.\n"
        "snli-dev\ttrain\tcontradiction\tShe ran home.\tShe slept.\n"
        "snli-dev\ttrain\tentailment\tShe ran home.\tLungs hurt.\n"  # no word of it turns it
    )
    output, scores = tmp_path / "pairs.jsonl", tmp_path / "scores.txt"
    main(nli=nli, output=output, turned=0.4)
    rows = read(output)
    assert [row["system"] for row in rows].count("nli: turned") == 1
    at = [row["system"] for row in rows].index("nli: turned")
    before, text = rows[at - 1]["candidate"], rows[at]["candidate"]
    assert before == "A girl was in the street." and text != before
    assert len(set(text.split()) ^ set(before.split())) <= 2  # one word put in, or one for another
    for own, expected in ((0.1, -0.2), (-0.9, -0.9)):
        given = [0.5] * len(rows)
        given[at - 1], given[at] = 0.2, own
        scores.write_text("".join(f"{score}\n" for score in given))
        main(nli=nli, output=output, scores=scores, turned=0.4)
        moved = read(output)
        assert moved[at - 1]["score"] == pytest.approx(0.3) and moved[at]["score"] == pytest.approx(expected)
    main(nli=nli, output=output)
    assert len(read(output)) == 3


def test_wrong_input(main, nli, tmp_path):
    broken = tmp_path / "broken.tsv"
    broken.write_text(nli.read_text() + "snli-dev\ttrain\tentailment\n")
    with pytest.raises(ValueError, match=f"{broken}.*line 6"):
        main(nli=broken, output=tmp_path / "out.jsonl")
    (tmp_path / "scores.txt").write_text("0.2\n")
    with pytest.raises(ValueError, match="3 entailment pairs"):
        main(nli=nli, output=tmp_path / "out.jsonl", scores=tmp_path / "scores.txt")
