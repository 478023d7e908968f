from __future__ import annotations

import csv
import json
from collections import Counter
from functools import cache

import pytest

from bleurt_repro.datasets_builders.ratings.webnlg import (
    PAPER_INPUTS,
    TRAINING_SYSTEMS,
    WebNlgRatings,
    pairs_with_references,
    read_webnlg,
    split_by_input,
    split_by_system,
)

real_rows = cache(read_webnlg)


def record(input_id=1, team="adapt", **columns):
    base = {
        "input_id": input_id,
        "mr": f"Fox_{input_id} | sleepsIn | Den",
        "team": team,
        "triplesize": "1triple",
        "category": "Animal",
        "seen": "unseen",
        "candidate": f"fox {input_id} by {team} .",
        "missing_output": False,
        "references": [f"Fox {input_id} sleeps."],
        "references_eval": [f"fox {input_id} sleeps .", f"the fox {input_id} is asleep ."],
        "fluency": 2.5,
        "grammar": 3.0,
        "semantics": 1.5,
    }
    return {**base, **columns}


def write(folder, records):
    (folder / "ratings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
    return folder


def inputs(rows):
    return {row["segment_id"] for row in rows}


def test_nine_systems_wrote_about_223_inputs(shared_data):
    rows = real_rows(shared_data / "webnlg")
    assert len(rows) == 2_007
    assert Counter(row["system"] for row in rows) == dict.fromkeys(TRAINING_SYSTEMS, 223)
    assert len(inputs(rows)) == 223
    assert Counter(row["system"] for row in rows if row["missing_output"]) == {"vietnam": 168, "tilburg-pipe": 25}
    assert {len(row["references"]) for row in rows} == {1, 2, 3}
    assert all(1 <= row[aspect] <= 3 for row in rows for aspect in ("fluency", "grammar", "semantics"))
    assert len(pairs_with_references(rows, "fluency")) == 4_772


@pytest.mark.parametrize(
    ("systems", "rows", "pairs"), [(0, 0, 0), (2, 446, 1_174), (3, 669, 1_317), (5, 1_115, 2_424)]
)
def test_the_split_by_system_has_the_sizes_of_the_paper(shared_data, systems, rows, pairs):
    splits = split_by_system(real_rows(shared_data / "webnlg"), systems)
    training = splits.get("train", []) + splits.get("validation", [])
    assert (len(training), len(pairs_with_references(training, "grammar"))) == (rows, pairs)
    assert {row["system"] for row in training} == set(TRAINING_SYSTEMS[:systems])
    assert {row["system"] for row in splits["test"]} == set(TRAINING_SYSTEMS[systems:])
    assert not inputs(splits.get("train", [])) & inputs(splits.get("validation", []))


@pytest.mark.parametrize("number", PAPER_INPUTS)
def test_the_split_by_input_has_the_sizes_of_the_paper(shared_data, number):
    splits = split_by_input(real_rows(shared_data / "webnlg"), number)
    split_rows = [splits.get(name, []) for name in ("train", "validation", "test")]
    assert sum(map(len, split_rows)) == 2_007
    assert len(inputs(split_rows[0])) + len(inputs(split_rows[1])) == number
    assert len(inputs(split_rows[2])) == 223 - number
    texts = [{text for row in rows for text in (row["source"], *row["references"])} for rows in split_rows]
    assert not texts[0] & texts[1] and not (texts[0] | texts[1]) & texts[2]


def test_a_larger_training_set_holds_the_smaller(shared_data):
    rows = real_rows(shared_data / "webnlg")

    def chosen(number, seed=0):
        return inputs(split_by_input(rows, number, 0, seed)["train"])

    assert chosen(38) < chosen(66) < chosen(122)
    assert chosen(38) == chosen(38) != chosen(38, seed=1)


def test_records_become_rows(tmp_path):
    (row,) = read_webnlg(write(tmp_path, [record(7, "vietnam"), record(7, "webnlg")]))
    assert row == {
        "segment_id": 7,
        "system": "vietnam",
        "source": "Fox_7 | sleepsIn | Den",
        "references": ["fox 7 sleeps .", "the fox 7 is asleep ."],
        "references_text": ["Fox 7 sleeps."],
        "candidate": "fox 7 by vietnam .",
        "missing_output": False,
        "category": "Animal",
        "seen": False,
        "triples": 1,
        "fluency": 2.5,
        "grammar": 3.0,
        "semantics": 1.5,
    }
    assert pairs_with_references([row], "semantics")[1] == {
        "segment_id": 7,
        "system": "vietnam",
        "source": "Fox_7 | sleepsIn | Den",
        "candidate": "fox 7 by vietnam .",
        "reference": "the fox 7 is asleep .",
        "score": 1.5,
    }


def test_the_official_package_gives_the_same_rows(tmp_path):
    package = tmp_path / "webnlg-human-evaluation"
    package.mkdir()
    columns = ["id", "mr", "team", "text", "category", "type", "bleu", "systemtype", "triplesize"]
    scores = ["fluency", "grammar", "semantics"]
    records = [record(30, "vietnam", candidate="null"), record(12, "adapt"), record(12, "webnlg")]
    with open(package / "all_data_final_averaged.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, *scores])
        for number, row in enumerate(records):
            cells = [row["category"], row["seen"], 0.5, "neural", row["triplesize"], *(row[score] for score in scores)]
            writer.writerow([number, row["mr"], row["team"], row["candidate"] + "\n", *cells])
    (package / "MRs.txt").write_text("Fox_12 | sleepsIn | Den\nFox_30 | sleepsIn | Den\n")
    (package / "sample-ids.txt").write_text("12\n30\n")
    (package / "gold-sample-reference0.lex").write_text("fox 12 sleeps .\nfox 30 sleeps .\n")
    (package / "gold-sample-reference1.lex").write_text("the fox 12 is asleep .\n\n")
    first, second = read_webnlg(tmp_path)
    assert first == {**read_webnlg(write(tmp_path, [record(12)]) / "ratings.jsonl")[0], "references_text": []}
    assert (second["references"], second["missing_output"]) == (["fox 30 sleeps ."], True)
    (package / "sample-ids.txt").write_text("12\n")
    with pytest.raises(ValueError, match="must be equally long"):
        read_webnlg(tmp_path)


def test_the_builder_gives_a_dataset_dict(tmp_path):
    teams = TRAINING_SYSTEMS[:3]
    folder = write(tmp_path, [record(n, team, missing_output=team == "vietnam") for n in range(20) for team in teams])
    cache_dir = str(tmp_path / "cache")
    builder = WebNlgRatings("by_input", data_dir=folder, training_inputs=10, cache_dir=cache_dir)
    builder.download_and_prepare()
    dataset = builder.as_dataset()
    assert {name: rows.num_rows for name, rows in dataset.items()} == {"train": 27, "validation": 3, "test": 30}
    assert dataset["test"][0]["references"] == [
        f"fox {dataset['test'][0]['segment_id']} sleeps .",
        f"the fox {dataset['test'][0]['segment_id']} is asleep .",
    ]
    builder = WebNlgRatings(data_dir=folder, drop_missing_outputs=True, cache_dir=cache_dir)
    assert {name: len(rows) for name, rows in builder.splits().items()} == {"test": 40}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fluency": "good"}, r"ratings\.jsonl, line 2: fluency, grammar, semantics and input_id must be numbers"),
        ({"grammar": None}, r"ratings\.jsonl, line 2: no grammar"),
        ({"references_eval": []}, r"ratings\.jsonl, line 2: no reference"),
    ],
)
def test_a_bad_record_is_named(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        read_webnlg(write(tmp_path, [record(), {**record(2), **change}]))


def test_wrong_questions_are_refused(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no files of WebNLG ratings in .*: looked for .*all_data_final_averaged"
    ):
        read_webnlg(tmp_path)
    rows = read_webnlg(write(tmp_path, [record(n) for n in range(3)]))
    with pytest.raises(ValueError, match="cannot train on 4 of 3 values of segment_id"):
        split_by_input(rows, 4)
    with pytest.raises(ValueError, match="unknown systems rosy; expected adapt, "):
        split_by_system([{**rows[0], "system": "rosy"}], 1)
    with pytest.raises(ValueError, match="the aspect must be one of fluency, grammar, semantics, found 'score'"):
        pairs_with_references(rows, "score")
