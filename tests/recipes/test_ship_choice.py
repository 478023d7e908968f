"""The figures that checkpoints are chosen by: one row each, from the scores of its ratings."""

from __future__ import annotations

import json
import runpy

import numpy as np
import pytest
from scipy.stats import kendalltau

from bleurt_repro import BleurtScorer
from tests.conftest import ROOT

WORDS = "the cat sat on mat it rains dog not good".split()


def rating(i, year=2018, lp="de-en", judgements=2):
    reference, candidate = " ".join(WORDS[: 2 + i % 7]), " ".join(WORDS[i % 5 : i % 5 + 4])
    return {
        "year": year, "lp": lp, "reference": reference, "candidate": candidate, "score": float((7 * i) % 11),
        "n_annotations": judgements,
    }  # fmt: skip


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_row_of_kendall_tau_for_each_checkpoint(tiny_scorer, tmp_path, capsys, monkeypatch):
    validation = [rating(i, year) for year in (2015, 2016) for i in range(12)]
    write(tmp_path / "validation.jsonl", validation)
    once = [rating(i, lp="fi-en", judgements=1) for i in range(5)]
    held_out = [rating(i, lp=lp) for lp in ("de-en", "zh-en") for i in range(9)]
    outputs = [
        {"references": [WORDS[0], " ".join(WORDS[:i])], "candidate": " ".join(WORDS[-i:]), "missing_output": False}
        | {aspect: float((3 * i) % 7) for aspect in ("fluency", "grammar", "semantics")}
        for i in range(1, 10)
    ]
    main = runpy.run_path(str(ROOT / "recipes" / "ship_choice.py"))["main"]
    monkeypatch.setitem(main.__globals__, "read_webnlg", lambda _: [*outputs, {"missing_output": True}])
    held_out_file = write(tmp_path / "held_out.jsonl", [*once, *held_out])
    rest = tmp_path / "rest.jsonl"
    main([str(tiny_scorer)], wmt2018=tmp_path, held_out=held_out_file, webnlg=tmp_path, rest=rest)
    row = [cell.strip() for cell in capsys.readouterr().out.splitlines()[-1].strip("|").split("|")]

    def tau(rows):
        return kendalltau(BleurtScorer(str(tiny_scorer)).score_rows(rows), [row["score"] for row in rows]).statistic

    by_year = np.mean([tau(validation[:12]), tau(validation[12:])])
    by_pair = np.mean([tau(held_out[:9]), tau(held_out[9:])])
    assert row[0] == "tiny"
    assert [float(cell) for cell in row[1:4]] == pytest.approx(
        [100 * value for value in (tau(validation), by_year, by_pair)], abs=0.051
    )
    assert len(row) == 7
    seen = {(row["reference"], row["candidate"]) for row in held_out}
    left = [json.loads(line) for line in rest.read_text().splitlines()]
    assert left == [row for row in once if (row["reference"], row["candidate"]) not in seen]
