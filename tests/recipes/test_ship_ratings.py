"""The ratings that the embedded checkpoint is trained on: which of 2018 are taken, how they are shrunk, what is held out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "recipes" / "ship_ratings.py"


def rating(lp, segment, score, judgements, system="a", candidate=None):
    text = candidate or f"candidate {segment} of {system}"
    return {
        "lp": lp,
        "system": system,
        "reference": f"reference {segment} from {lp}",
        "candidate": text,
        "score": score,
        "n_annotations": judgements,
    }


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def written(tmp_path):
    ratings = [rating(lp, i, 1.0, 2) for lp in ("de-en", "zh-en") for i in range(6)]
    ratings += [rating("cs-en", 0, 1.0, 2, candidate="same"), rating("cs-en", 0, 0.0, 3, "b", "same")]
    ratings += [rating("cs-en", 1, -9.0, 2), rating("cs-en", 2, 1.0, 1), rating("cs-en", 1, 1.0, 1, "c")]
    write(tmp_path / "test.jsonl", ratings)
    write(tmp_path / "train.jsonl", [rating("ru-en", 0, 0.3, None)])
    output, held_out = tmp_path / "ratings.jsonl", tmp_path / "held_out.jsonl"
    command = [sys.executable, str(SCRIPT), "--wmt2018", str(tmp_path), "--number", "8"]
    subprocess.run([*command, "--output", str(output), "--held-out", str(held_out)], check=True)
    return read(output), read(held_out)


def test_all_ratings_of_earlier_years_and_some_of_2018_evenly_over_language_pairs(written):
    train, _ = written
    assert [row["lp"] for row in train] == ["ru-en", *["cs-en"] * 2, *["de-en"] * 3, *["zh-en"] * 3]


def test_ratings_of_2018_are_averaged_shrunk_and_cut_and_single_judgements_left_out(written):
    scores = {(row["lp"], row["candidate"]): row["score"] for row in written[0]}
    assert scores["ru-en", "candidate 0 of a"] == 0.3
    assert scores["cs-en", "same"] == pytest.approx(0.7 * 0.5)
    assert scores["cs-en", "candidate 1 of a"] == -1.5
    assert scores["de-en", next(text for lp, text in scores if lp == "de-en")] == 0.7
    assert ("cs-en", "candidate 2 of a") not in scores


def test_what_is_held_out_shares_no_reference(written):
    train, held_out = written
    assert len(held_out) == 7
    assert {row["reference"] for row in train}.isdisjoint(row["reference"] for row in held_out)
    assert ("cs-en", "candidate 2 of a", 1.0) in {(row["lp"], row["candidate"], row["score"]) for row in held_out}


def test_single_judgements_join_in_on_request_and_some_references_never(tmp_path):
    write(tmp_path / "train.jsonl", [rating("ru-en", 0, 0.3, None)])
    write(
        tmp_path / "test.jsonl", [rating("cs-en", i, 1.0, judgements) for i, judgements in enumerate([1, 2, 1, None])]
    )
    write(tmp_path / "never.jsonl", [rating("cs-en", 2, 0.0, 2, "another system")])
    options = ["--number", "9", "--least-judgements", "1", "--never", str(tmp_path / "never.jsonl")]
    command = [sys.executable, str(SCRIPT), "--wmt2018", str(tmp_path), *options]
    subprocess.run([*command, "--output", str(tmp_path / "ratings.jsonl")], check=True)
    taken = [row["candidate"] for row in read(tmp_path / "ratings.jsonl")]
    assert taken == ["candidate 0 of a", "candidate 0 of a", "candidate 1 of a"]
