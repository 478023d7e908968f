from __future__ import annotations

import json

import pytest
from datasets import Features, Value, load_dataset

from bleurt_repro.cli import main
from bleurt_repro.datasets_builders.ratings.export import export_ratings, write_splits
from tests.killed import kill_at_every_operation

FEATURES = Features({"candidate": Value("string"), "score": Value("float64")})
SPLITS = {"train": [{"candidate": "\u00fc\u2028x", "score": None}], "test": [{"score": 0.5, "candidate": "b"}] * 3}


def rating(year, segment, **columns):
    texts = {"source": f"Satz {segment} {year}", "reference": f"Sentence {segment} {year}", "candidate": "A phrase"}
    return {
        "year": year,
        "lp": "de-en",
        "segment_id": segment,
        "system": f"S{segment}",
        **texts,
        "score": 0.5,
        **columns,
    }


def write(path, records):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_folder_opens_as_a_dataset(tmp_path, form):
    folder = tmp_path / "new" / "ratings"
    assert write_splits(SPLITS, FEATURES, folder, form) == {"train": 1, "test": 3}
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", f"test.{form}", f"train.{form}"]
    dataset = load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {name: rows.features for name, rows in dataset.items()} == {"train": FEATURES, "test": FEATURES}
    assert {name: rows.to_list() for name, rows in dataset.items()} == {
        "train": [{"candidate": "\u00fc\u2028x", "score": None}],
        "test": [{"candidate": "b", "score": 0.5}] * 3,
    }


def test_two_folders_of_one_name_are_two_data_sets(tmp_path):
    """`datasets` caches by the folder's name: only the configuration's name tells them apart."""
    datasets = []
    for name, splits in (("a", SPLITS), ("b", {"train": SPLITS["test"]})):
        write_splits(splits, FEATURES, tmp_path / name / "ratings")
        datasets.append(load_dataset(str(tmp_path / name / "ratings"), cache_dir=str(tmp_path / "cache"))["train"])
    assert [len(rows) for rows in datasets] == [1, 3]


def test_columns_stand_in_order_and_text_as_it_is(tmp_path):
    write_splits({"test": SPLITS["test"][:1], "train": SPLITS["train"]}, FEATURES, tmp_path)
    assert (tmp_path / "test.jsonl").read_bytes() == b'{"candidate": "b", "score": 0.5}\n'
    assert (tmp_path / "train.jsonl").read_text() == '{"candidate": "\u00fc\u2028x", "score": null}\n'


def test_splits_of_another_set_are_not_left_beside_it(tmp_path):
    write_splits(SPLITS, FEATURES, tmp_path)
    write_splits(SPLITS, FEATURES, tmp_path)
    with pytest.raises(ValueError, match="has test.jsonl of another set"):
        write_splits({"train": SPLITS["train"]}, FEATURES, tmp_path)
    with pytest.raises(ValueError, match=r"has test.jsonl, train.jsonl of another set"):
        write_splits(SPLITS, FEATURES, tmp_path, "parquet")
    with pytest.raises(ValueError, match="must be jsonl or parquet, found 'csv'"):
        write_splits(SPLITS, FEATURES, tmp_path, "csv")


def test_a_write_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(KeyError):
        write_splits({"train": [{"candidate": "a"}]}, FEATURES, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_ratings_of_ones_own_are_split(tmp_path):
    path = write(tmp_path / "mine.jsonl", [rating(2018, n // 2, segment_id=f"doc:{n}") for n in range(20)])
    assert export_ratings(path, tmp_path / "out", validation_ratio=0.2) == {"train": 16, "validation": 4}
    dataset = load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert not set(dataset["train"]["reference"]) & set(dataset["validation"]["reference"])
    assert dataset["train"].features["segment_id"].dtype == "string"
    assert export_ratings(path, tmp_path / "all", validation_ratio=0) == {"train": 20}


def test_the_command_writes_wmt_ratings_and_ranks(tmp_path, capsys):
    ratings = [rating(year, n, raw_score=10.0 * n) for year in (2015, 2016) for n in range(10)]
    data = str(write(tmp_path / "wmt" / "a.jsonl", ratings).parent)
    main_without_exit(["data", "wmt", "--config-name", "2016", "--data-dir", data, "--output", str(tmp_path / "out")])
    assert capsys.readouterr().out == "train: 9 records\nvalidation: 1 records\ntest: 10 records\n"
    row = json.loads((tmp_path / "out" / "test.jsonl").read_text().splitlines()[3])
    assert row == {**rating(2016, 3, raw_score=30.0), "n_annotations": None}

    write(tmp_path / "wmt" / "a.jsonl", [{**row, "segment_id": 1} for row in ratings])
    options = [
        "--config-name",
        "2016",
        "--data-dir",
        data,
        "--output",
        str(tmp_path / "ranks"),
        "--min-difference",
        "70",
    ]
    main_without_exit(["data", "relative-ranks", *options])
    assert capsys.readouterr().out == "test: 6 records\n"


def test_the_command_writes_ratings_of_ones_own(tmp_path, capsys):
    path = write(tmp_path / "mine.jsonl", [rating(2018, n) for n in range(10)])
    main_without_exit(
        ["data", "ratings", "--input", str(path), "--output", str(tmp_path / "out"), "--format", "parquet"]
    )
    assert capsys.readouterr().out == "train: 9 records\nvalidation: 1 records\n"
    write(path, [rating(2018, 1, score="high")])
    with pytest.raises(SystemExit) as exit:
        main(["data", "ratings", "--input", str(path), "--output", str(tmp_path / "out")])
    assert exit.value.code == 2
    assert capsys.readouterr().err == (
        f"bleurt-repro: error: {path}: 1 bad record(s): line 1: score must be a number, found 'high'\n"
    )


def test_the_command_writes_webnlg_ratings(shared_data, tmp_path, capsys):
    options = ["--data-dir", str(shared_data / "webnlg"), "--output", str(tmp_path / "out")]
    main_without_exit(["data", "webnlg", *options, "--config-name", "by_system", "--training-systems", "2"])
    assert capsys.readouterr().out == "train: 402 records\nvalidation: 44 records\ntest: 1,561 records\n"


def test_a_size_of_another_way_to_split_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as exit:
        main(["data", "webnlg", "--data-dir", "webnlg", "--training-systems", "2", "--output", str(tmp_path / "out")])
    assert exit.value.code == 2
    assert "training_systems needs --config-name by_system, found all" in capsys.readouterr().err


def main_without_exit(arguments):
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 0


WMT = "--config-name 2016 --data-dir wmt"


@pytest.mark.parametrize(
    "options", [f"wmt {WMT}", f"relative-ranks {WMT} --min-difference 10", "webnlg --data-dir webnlg"]
)
def test_files_that_no_export_wrote_stay_unless_asked(options, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ratings = [rating(y, n // 2, system=f"S{n}", raw_score=20.0 * n) for y in (2015, 2016) for n in range(20)]
    write(tmp_path / "wmt" / "a.jsonl", ratings)
    aspects = {"fluency": 1, "grammar": 2, "semantics": 3}
    texts = {"mr": "a | b | c", "references_eval": ["A text."], "candidate": "Text"}
    write(tmp_path / "webnlg" / "a.jsonl", [{"team": "UPF-FORGE", "input_id": 1, **aspects, **texts}])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("my notes")
    command = ["data", *options.split()]
    for output in ("mine", options.split()[-1] if "webnlg" in options else "wmt"):
        before = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        with pytest.raises(SystemExit) as exit:
            main([*command, "--output", output])
        said = capsys.readouterr().err
        assert exit.value.code == 2 and ("did not write" in said or "is the input" in said), said
        assert {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    for output in ("mine", "mine", "new", "new"):
        main_without_exit([*command, "--output", output, *(["--overwrite"] if output == "mine" else [])])


@pytest.mark.long
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_killed_at_any_operation_an_export_is_of_one_run_or_has_no_card(tmp_path, form):
    """New train and old validation sets would share segments."""
    folder = tmp_path / "set"
    ratings = write(tmp_path / "ratings.jsonl", [rating(2017, i) for i in range(40)])

    def export(seed):
        export_ratings(ratings, folder, form, validation_ratio=0.5, seed=seed)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    new, old = export(1), export(0)
    assert len(old) == 3 and all(old[name] != new[name] for name in old)
    seen = []
    for _ in kill_at_every_operation(lambda: export(1)):
        seen.append({path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()})
        # In between the set has no card, which is moved last.
        assert seen[-1] in (old, new) or "README.md" not in seen[-1]
        export(0)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["ratings.jsonl", "set"]
    assert old in seen and new in seen
