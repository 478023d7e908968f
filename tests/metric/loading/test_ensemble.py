"""Ensembles: the mean of standardised scores, the members' spread, tuned weights, and what does not go together."""

from __future__ import annotations

import json
import pickle
import shutil

import numpy as np
import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main as run
from bleurt_repro.metric.statistics import standardise
from bleurt_repro.training.combine import make_ensemble, tune_weights
from tests.conftest import make_tiny_scorer

REFERENCES = ["the cat sat", "it rains", "hi there", "stock prices fell", "good dog"]
CANDIDATES = ["the cat", "it rains", "bye", "prices fell not", "the dog"]


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    return [str(make_tiny_scorer(folder / f"m{i}", spread=spread)) for i, spread in enumerate((0.3, 0.2, 0.5))]


@pytest.fixture(scope="module")
def validation(tmp_path_factory, members):
    """Ratings that go along with the second member most."""
    words = "the a cat sat on mat it rains dog not good bye hi there".split()
    references = [f"{a} {b}" for a in words[:7] for b in words[7:]]
    candidates = [f"{b} {a}" for a in words[:7] for b in words[7:]]
    first, second = (BleurtScorer(name).score(references=references, candidates=candidates) for name in members[:2])
    scores = 0.2 * standardise(np.array(first)) + 0.8 * standardise(np.array(second))
    path = tmp_path_factory.mktemp("validation") / "validation.jsonl"
    records = [
        {"source": "Hi", "reference": r, "candidate": c, "score": s}
        for r, c, s in zip(references, candidates, scores.tolist(), strict=True)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory, members, validation):
    folder = tmp_path_factory.mktemp("ensembles") / "three"
    make_ensemble(members, validation, folder)
    return folder


def expected(folder):
    """The scores and the spread, by hand from ensemble.json."""
    found = json.loads((folder / "ensemble.json").read_text())["members"]
    rows = []
    for member in found:
        scores = BleurtScorer(str(folder / member["checkpoint"])).score(references=REFERENCES, candidates=CANDIDATES)
        rows.append((np.array(scores) - member["mean"]) / member["std"])
    return np.array([member["weight"] for member in found]) @ np.array(rows), np.std(rows, axis=0)


def test_scores_and_spread(ensemble):
    scorer = BleurtScorer(str(ensemble))
    scores, std = scorer.score(references=REFERENCES, candidates=CANDIDATES, return_std=True)
    assert (type(scorer), len(scorer.members), scorer.gives_std) == (BleurtScorer, 3, True)
    assert scores == pytest.approx(expected(ensemble)[0], abs=1e-5)
    assert std == pytest.approx(expected(ensemble)[1], abs=1e-5)
    assert scorer.score(references=REFERENCES, candidates=CANDIDATES) == scores
    assert min(std) > 0


def test_several_references(ensemble):
    scorer = BleurtScorer(str(ensemble))
    alone = [scorer.compute(references=[r], candidates=["the cat"]) for r in REFERENCES[:2]]
    both = {
        how: scorer.compute(references=[REFERENCES[:2]], candidates=["the cat"], aggregate=how)
        for how in ("max", "mean")
    }
    best = max(alone, key=lambda result: result.scores[0])
    assert both["max"].scores == pytest.approx(best.scores, abs=1e-5)
    assert both["max"].std == pytest.approx(best.std, abs=1e-5)
    assert both["mean"].scores[0] == pytest.approx(sum(result.scores[0] for result in alone) / 2, abs=1e-5)


def test_positions_pickles_and_no_candidates(ensemble):
    scorer = BleurtScorer(str(ensemble), "cpu")
    again = pickle.loads(pickle.dumps(scorer))
    assert again.score(references=REFERENCES, candidates=CANDIDATES) == scorer.score(
        references=REFERENCES, candidates=CANDIDATES
    )
    assert scorer.compute(references=[], candidates=[]).scores == []


def test_the_signature_covers_the_members(ensemble, tmp_path):
    before = BleurtScorer(str(ensemble)).signature
    assert before.startswith("checkpoint:three|hash:")
    copy = shutil.copytree(ensemble, tmp_path / "three")
    content = json.loads((copy / "ensemble.json").read_text())
    content["members"][0]["mean"] += 1
    (copy / "ensemble.json").write_text(json.dumps(content))
    assert BleurtScorer(str(copy)).signature != before


def test_weights_are_tuned_on_validation(ensemble):
    record = json.loads((ensemble / "results.json").read_text())
    weights = [member["weight"] for member in record["ensemble"]]
    assert weights == pytest.approx([0.2, 0.8, 0.0], abs=0.01)
    assert record["tuned"]["pearson_r"] == pytest.approx(1)
    assert record["tuned"]["kendall_tau"] > max(member["kendall_tau"] for member in record["ensemble"])
    assert record["equal_weights"]["kendall_tau"] < record["tuned"]["kendall_tau"]
    assert record["validation"]["ratings"] == 49


def test_no_weight_is_negative():
    random = np.random.default_rng(0)
    truth, noise = random.standard_normal((2, 200))
    weights = tune_weights(standardise(np.array([truth, -truth + 0.1 * noise])), truth)
    assert weights == pytest.approx([1, 0])
    assert tune_weights(standardise(np.array([-truth, -truth])), truth) == pytest.approx([0.5, 0.5])


def test_on_the_command_line(members, validation, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        run(["ensemble", *members[:2], "--validation", str(validation), "--output", str(tmp_path / "out")])
    assert ended.value.code == 0
    assert "m0: weight 0.2" in capsys.readouterr().out
    for name, lines in (("refs", REFERENCES), ("hyps", CANDIDATES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    words = ["score", "--checkpoint", str(tmp_path / "out"), "--references", str(tmp_path / "refs")]
    words += ["--candidates", str(tmp_path / "hyps"), "--json"]
    scorer = BleurtScorer(str(tmp_path / "out"))
    result = scorer.compute(references=REFERENCES, candidates=CANDIDATES)
    for more in ([], ["--output", str(tmp_path / "scores.json")]):
        with pytest.raises(SystemExit):
            run([*words, *more])
        printed = capsys.readouterr().out if not more else (tmp_path / "scores.json").read_text()
        found = json.loads(printed)
        assert found["scores"] == pytest.approx(result.scores, abs=1e-6)
        assert found["std"] == pytest.approx(result.std, abs=1e-6)


def test_through_evaluate(ensemble):
    import evaluate

    from tests.conftest import SPACE

    found = evaluate.load(str(SPACE), checkpoint=str(ensemble)).compute(
        predictions=CANDIDATES, references=REFERENCES, return_std=True
    )
    assert found["std"] == pytest.approx(expected(ensemble)[1], abs=1e-5)


def test_experiments_score_with_an_ensemble(ensemble, tmp_path):
    from bleurt_repro.training.metrics.cells import Cells
    from bleurt_repro.training.metrics.rows import Texts, score_checkpoint

    row = score_checkpoint(str(ensemble), Texts(REFERENCES, CANDIDATES), Cells(tmp_path))
    assert row.vectors[0] == pytest.approx(expected(ensemble)[0], abs=1e-5)


@pytest.fixture(scope="module")
def source_member(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source") / "src"
    return str(make_tiny_scorer(folder, inputs=("source", "candidate", "reference")))


def test_members_that_read_different_texts(members, source_member, validation, tmp_path):
    with pytest.raises(
        ValueError, match=r"must read the same texts, but .*m0 reads reference, candidate; .*src reads"
    ):
        make_ensemble([members[0], source_member], validation, tmp_path / "out")
    make_ensemble([members[0], source_member], validation, tmp_path / "out", weights=[1, 1], mixed_layouts=True)
    scorer = BleurtScorer(str(tmp_path / "out"))
    assert set(scorer.layout.inputs) == {"source", "reference", "candidate"}
    scores = scorer.score(references=REFERENCES, candidates=CANDIDATES, sources=["Hi"] * 5)
    first, second = json.loads((tmp_path / "out" / "ensemble.json").read_text())["members"]
    own = BleurtScorer(members[0]).score(references=REFERENCES, candidates=CANDIDATES)
    other = BleurtScorer(source_member).score(references=REFERENCES, candidates=CANDIDATES, sources=["Hi"] * 5)
    by_hand = [
        (a - first["mean"]) / first["std"] / 2 + (b - second["mean"]) / second["std"] / 2
        for a, b in zip(own, other, strict=True)
    ]
    assert scores == pytest.approx(by_hand, abs=1e-5)
    with pytest.raises(ValueError, match="reads the source of each candidate"):
        scorer.score(references=REFERENCES, candidates=CANDIDATES)


def changed(ensemble, tmp_path, change):
    copy = shutil.copytree(ensemble, tmp_path / "changed")
    content = json.loads((copy / "ensemble.json").read_text())
    change(copy, content)
    (copy / "ensemble.json").write_text(json.dumps(content))
    return str(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder, content: shutil.rmtree(folder / "m1"), "lacks its member m1: unknown checkpoint 'm1'"),
        (lambda folder, content: content.update(members=content["members"][:1]), "at least two members, found 1"),
        (lambda folder, content: content["members"][0].update(weight=0.9), "weights .* must add up to 1"),
        (lambda folder, content: content["members"][0].update(weight=-0.1), "must have a weight of 0 or more"),
        (lambda folder, content: content["members"][0].pop("std"), "is no ensemble .*std"),
        (lambda folder, content: content.pop("members"), "is no ensemble .*members"),
        (
            lambda folder, content: content["members"][2].update(hash="0" * 12),
            "m2 of ensemble .* has hash .* made of 0",
        ),
        (
            lambda folder, content: (folder / "m0" / "ensemble.json").write_text("{}"),
            "m0 of ensemble .* is an ensemble: members are single checkpoints",
        ),
    ],
)
def test_an_ensemble_that_cannot_be_opened(ensemble, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        BleurtScorer(changed(ensemble, tmp_path, change))


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ([0], {}, "at least two different checkpoints, found"),
        ([0, 0], {}, "at least two different checkpoints"),
        ([0, "ensemble"], {}, "is an ensemble: members are single checkpoints"),
        ([0, 1], {"weights": [1]}, "one finite weight of 0 or more for each of the 2 members"),
        ([0, 1], {"weights": [1, -1]}, "one finite weight of 0 or more"),
    ],
)
def test_an_ensemble_that_cannot_be_made(members, ensemble, validation, tmp_path, names, options, message):
    chosen = [str(ensemble) if name == "ensemble" else members[name] for name in names]
    with pytest.raises(ValueError, match=message):
        make_ensemble(chosen, validation, tmp_path / "out", **options)


def test_one_model_has_no_spread(members, ensemble):
    with pytest.raises(ValueError, match="is one model: return_std takes an ensemble"):
        BleurtScorer(members[0]).score(references=["a"], candidates=["a"], return_std=True)
    with pytest.raises(ValueError, match="three has no calibration"):
        BleurtScorer(str(ensemble)).score(references=["a"], candidates=["a"], calibrated=True)


def test_an_ensemble_is_no_model(ensemble, members, tmp_path):
    from bleurt_repro.training.combine import average_scorers

    with pytest.raises(ValueError, match="is an ensemble, which can score but is no model: give one of its members"):
        average_scorers([str(ensemble), members[0]], tmp_path / "out")
