"""The training set of the embedded checkpoint: labels on the scale of ratings, longer texts, and the rounds."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
import typer

RECIPES = Path(__file__).resolve().parents[2] / "recipes"


def recipe(name):
    return runpy.run_path(str(RECIPES / name))


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def rated(i, score, **more):
    return {
        "year": 2018,
        "system": "a",
        "reference": f"Reference {i}.",
        "candidate": f"Text {i}.",
        "score": score,
        **more,
    }


@pytest.fixture
def files(tmp_path):
    ratings = [rated(i, 0.5 * (-1) ** i) for i in range(10)]
    ratings += [rated(20, 0.3, year=2017), rated(0, 1.4, candidate="Reference 0.", system="anchor: identical")]
    ratings += [rated(1, -1.9, candidate="", system="anchor: empty")]
    labels = [rated(i, 2.0 * (-1) ** i, system=None) for i in range(10)] + [rated(30, 0.0), rated(31, -9.0)]
    labels = [{name: row[name] for name in ("reference", "candidate", "score")} for row in labels]
    contrasts = [rated(40, 0.8, system="contrast: same")]
    return {
        "ratings": write(tmp_path / "anchored.jsonl", ratings),
        "labels": [write(tmp_path / "labels.jsonl", labels)],
        "contrasts": write(tmp_path / "contrasts.jsonl", contrasts),
        "output": tmp_path / "train.jsonl",
    }


def test_ratings_without_labels_stay_as_they_are(files):
    recipe("training_set.py")["main"](ratings=files["ratings"], output=files["output"], joined=0)
    assert [row["score"] for row in read(files["output"])] == [row["score"] for row in read(files["ratings"])]


def test_labels_get_the_scale_of_the_ratings_they_share(files):
    recipe("training_set.py")["main"](**files, joined=0)
    score = {(row["reference"], row["candidate"]): row["score"] for row in read(files["output"])}
    # Labels of 2 and -2 and ratings of 0.5 and -0.5 of the same pairs: both have mean 0, and so a label of 2 is worth 0.5.
    assert score["Reference 4.", "Text 4."] == pytest.approx(0.5)
    assert score["Reference 30.", "Text 30."] == pytest.approx(0.0)
    assert score["Reference 31.", "Text 31."] == -2.0  # nobody rates as low as -2.25
    assert score["Reference 20.", "Text 20."] == 0.3
    assert score["Reference 0.", "Reference 0."] == 1.4
    assert score["Reference 40.", "Text 40."] == 0.8
    assert len(score) == 10 + 1 + 2 + 2 + 1


def test_labels_on_the_scale_of_ratings_are_taken_as_they_are(files):
    recipe("training_set.py")["main"](**files, joined=0, scaled=True)
    score = {(row["reference"], row["candidate"]): row["score"] for row in read(files["output"])}
    assert score["Reference 4.", "Text 4."] == pytest.approx((0.5 + 1.5) / 2)  # a label of 2.0 is brought back to 1.5
    assert score["Reference 30.", "Text 30."] == 0.0


def test_labels_get_the_scale_of_other_scores(files, tmp_path):
    labels = read(files["labels"][0])
    scores = tmp_path / "scores.txt"
    scores.write_text("".join(f"{0.1 * i - 0.4}\n" for i in range(len(labels))))
    extremes = [row for row in read(files["ratings"]) if row["system"].startswith("anchor")]
    write(files["ratings"], extremes)
    recipe("training_set.py")["main"](**files, like=scores, joined=0)
    score = {(row["reference"], row["candidate"]): row["score"] for row in read(files["output"])}
    found = np.array([score[row["reference"], row["candidate"]] for row in labels])
    wanted = 0.1 * np.arange(len(labels)) - 0.4
    given = np.array([row["score"] for row in labels])
    assert [found.mean(), found.std()] == pytest.approx([wanted.mean(), wanted.std()])
    assert np.corrcoef(found, given)[0, 1] == pytest.approx(1)
    with pytest.raises(ValueError, match="labels"):
        scores.write_text("0.1\n")
        recipe("training_set.py")["main"](**files, like=scores, joined=0)


def test_two_scales_for_labels_are_refused(files, tmp_path):
    with pytest.raises(typer.BadParameter, match="name one of the two"):
        recipe("training_set.py")["main"](**files, scaled=True, like=tmp_path / "scores.txt", joined=0)


def test_a_rating_and_a_label_that_disagree_are_averaged(files):
    rows = read(files["labels"][0])
    rows[0]["score"], rows[1]["score"] = rows[1]["score"], rows[0]["score"]  # the same mean and deviation
    write(files["labels"][0], rows)
    recipe("training_set.py")["main"](**files, joined=0)
    score = {(row["reference"], row["candidate"]): row["score"] for row in read(files["output"])}
    assert score["Reference 0.", "Text 0."] == pytest.approx(0.0)
    assert score["Reference 2.", "Text 2."] == pytest.approx(0.5)


def test_each_file_of_labels_gets_its_own_scale_and_the_first_counts(files, tmp_path):
    others = [rated(i, 7.0 * (-1) ** i + 3) for i in range(6)] + [rated(30, 10.0), rated(32, -4.0)]
    files["labels"].append(write(tmp_path / "others.jsonl", others))
    recipe("training_set.py")["main"](**files, joined=0)
    score = {(row["reference"], row["candidate"]): row["score"] for row in read(files["output"])}
    assert score["Reference 30.", "Text 30."] == pytest.approx(0.0)  # the first file's, not 0.5
    assert score["Reference 32.", "Text 32."] == pytest.approx(-0.5)


def test_labels_of_other_pairs_alone_have_no_scale(files):
    write(files["labels"][0], [rated(30, 0.0), rated(31, 1.0)])
    with pytest.raises(typer.BadParameter, match="at least two give labels their scale"):
        recipe("training_set.py")["main"](**files, joined=0)


def test_contrasts_take_a_teachers_scores(files, tmp_path):
    scores = tmp_path / "scores.txt"
    scores.write_text("-2.5\n")
    recipe("training_set.py")["main"](**files, contrast_scores=scores, joined=0)
    assert [row["score"] for row in read(files["output"]) if row["reference"] == "Reference 40."] == [-2.0]
    scores.write_text("0.1\n0.2\n")
    with pytest.raises(ValueError, match="a finite number for each of 1 contrasts, found 2"):
        recipe("training_set.py")["main"](**files, contrast_scores=scores, joined=0)


def test_longer_texts_are_the_mean_of_their_parts(files):
    script = recipe("training_set.py")
    rows = [rated(i, float(i)) for i in range(4)]
    made = script["join"](rows, 400, np.random.default_rng(0))
    kinds = set()
    for row in made:
        parts = [rows[int(word[0])] for word in row["reference"].split("Reference ")[1:]]
        shown = [int(word[0]) for word in row["candidate"].split("Text ")[1:]]
        meant = [int(part["score"]) for part in parts]
        if sorted(shown) == sorted(meant):
            kinds.add("whole" if shown == meant else "reordered")
            # a part in whose place another's stood by chance the same counts as lost
            assert row["score"] <= np.mean(meant) + 1e-9
        else:
            kinds.add("missing" if len(shown) < len(meant) else "strange")
            assert row["score"] < np.mean(meant)
        assert 2 <= len(parts) <= script["MOST_SEGMENTS"]
    assert kinds == {"whole", "reordered", "missing", "strange"}


def test_a_round_adds_both_extremes_and_further_contrasts(files, tmp_path):
    recipe("training_set.py")["main"](**files, joined=0)
    recipe("training_round.py")["main"](
        files["output"], tmp_path / "last.jsonl", number=5, identical=3, empty=4, contrasts=files["contrasts"]
    )
    rows = read(tmp_path / "last.jsonl")
    contrasts = read(files["contrasts"])
    assert len(rows) == 5 + 3 + 4 + len(contrasts)
    assert all(row["candidate"] == row["reference"] and row["score"] == 1.4 for row in rows[5:8])
    assert all(row["candidate"] == "" and row["score"] == -1.9 for row in rows[8:12])
    assert len({row["reference"] for row in rows[5:8]}) == 3
    assert [row["candidate"] for row in rows[12:]] == [row["candidate"] for row in contrasts]


def test_a_round_can_give_empty_candidates_another_score(files, tmp_path):
    recipe("training_set.py")["main"](**files, joined=0)
    recipe("training_round.py")["main"](
        files["output"], tmp_path / "last.jsonl", number=1000, identical=3, empty=4, empty_score=-2.6
    )
    rows = read(tmp_path / "last.jsonl")
    empty = [row for row in rows if row["candidate"] == ""]
    assert len(empty) > 4 and {row["score"] for row in empty} == {-2.6}
    assert all(row["score"] != -2.6 for row in rows if row["candidate"])


def test_a_round_without_anchors_has_no_score_for_extremes(tmp_path):
    write(tmp_path / "train.jsonl", [rated(0, 0.9, reference="The cat sat.", candidate="A cat sat!")])
    main = recipe("training_round.py")["main"]
    with pytest.raises(typer.BadParameter, match="anchor: empty"):
        main(tmp_path / "train.jsonl", tmp_path / "round.jsonl", identical=0, empty=1)
    main(tmp_path / "train.jsonl", tmp_path / "round.jsonl", identical=0, empty=0)
    assert len(read(tmp_path / "round.jsonl")) == 1


def test_a_round_takes_all_outputs_near_their_reference(tmp_path):
    near = [
        rated(0, 0.9, reference="The cat sat.", candidate="A cat sat!"),
        rated(0, 0.8, reference="Go on", candidate="on"),
    ]
    others = [
        rated(0, 0.7, reference="The cat sat.", candidate="the cat SAT."),  # only the casing
        rated(0, 0.1, reference="The cat sat.", candidate="A dog sat!"),
        rated(0, 1.4, reference="Go on", candidate="Go on", system="anchor: identical"),
        rated(0, -1.9, reference="Go on", candidate="", system="anchor: empty"),
        rated(0, 0.2, reference="Go on", candidate="Go", system="contrast: omission"),
    ]
    train = write(tmp_path / "train.jsonl", near + others)
    nothing_else = {"number": 0, "identical": 0, "empty": 0}
    recipe("training_round.py")["main"](train, tmp_path / "last.jsonl", **nothing_else, near=4)
    assert [row["candidate"] for row in read(tmp_path / "last.jsonl")] == [row["candidate"] for row in near]
    recipe("training_round.py")["main"](train, tmp_path / "last.jsonl", **nothing_else, near=1)
    assert [row["candidate"] for row in read(tmp_path / "last.jsonl")] == ["on"]


def test_a_round_repeats_references_of_contrasts(tmp_path):
    anchors = [rated(0, 1.4, candidate="Reference 0.", system="anchor: identical")]
    anchors += [rated(1, -1.9, candidate="", system="anchor: empty")]
    train = write(tmp_path / "train.jsonl", anchors)
    contrasts = write(
        tmp_path / "contrasts.jsonl", [rated(40 + i // 2, 0.8, system="contrast: kept") for i in range(6)]
    )
    script = recipe("training_round.py")["main"]
    for asked, found in ((2, 2), (9, 3)):  # there are three different references
        script(
            train,
            tmp_path / "last.jsonl",
            number=0,
            identical=0,
            empty=0,
            identical_contrasts=asked,
            contrasts=contrasts,
        )
        rows = read(tmp_path / "last.jsonl")
        same = rows[:-6]
        assert len(same) == len({row["reference"] for row in same}) == found
        assert all(row["candidate"] == row["reference"] and row["score"] == 1.4 for row in same)
        assert {row["reference"] for row in same} <= {row["reference"] for row in rows[-6:]}


def test_a_round_repeats_texts_but_for_those_whose_second_half_would_not_be_read(tmp_path):
    script = recipe("training_round.py")
    fits, too_long = ("word " * (script["MOST_WORDS_TWICE"] + more) for more in (0, 1))
    anchors = [rated(0, 1.4, reference=text, candidate=text, system="anchor: identical") for text in (fits, too_long)]
    anchors += [rated(1, -1.9, candidate="", system="anchor: empty")]
    train = write(tmp_path / "train.jsonl", anchors)
    script["main"](train, tmp_path / "last.jsonl", number=0, identical=0, empty=0, repeated=9)
    rows = read(tmp_path / "last.jsonl")
    assert {row["reference"] for row in rows} == {fits, "Reference 1."}
    for row in rows:
        assert row["candidate"] == f"{row['reference']} {row['reference']}"
        assert row["score"] == script["REPEATED"] < 0
        assert row["system"] == "contrast: repeated"
