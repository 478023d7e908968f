"""Ratings of MLQE-PE: ratings joined with post-edits by line, splits, and what a wrong file says."""

from __future__ import annotations

import json

import pytest

from bleurt_repro.cli import main
from bleurt_repro.datasets_builders.ratings.mlqe import LANGUAGE_PAIRS, MlqePe, mlqe_sources

HEADER = "index\toriginal\ttranslation\tscores\tmean\tz_scores\tz_mean\tmodel_scores"
FOLDERS = {"train": "-train", "dev": "-dev", "test20": ""}


def put_pair(folder, lp, word):
    """Write own sentences in the layout of the unpacked archives, two per split."""
    for prefix, ending in FOLDERS.items():
        ratings = folder / f"direct-assessments/{prefix.removesuffix('20')}/{lp}{ending}"
        edits = folder / f"post-editing/{prefix.removesuffix('20')}/{lp}{ending or '-test20'}"
        for path in (ratings, edits):
            path.mkdir(parents=True)
        lines = [
            f'0\tOriginal 1.\t"{word} {prefix}, one.\t[90, 70.5, 80]\t80.1667\t[1.0, 0.5, 0.8]\t0.7667\t-0.3',
            f"1\tOriginal 2.\t{word} {prefix}, two.\t[10, 20]\t15.0\t[-1.0, -2.0]\t-1.5\t-0.9",
        ]
        name = f"{prefix}.{lp.replace('-', '')}.df.short.tsv"
        (ratings / name).write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
        (edits / f"{prefix}.pe").write_text(f"{word} {prefix} , one .\n{word} {prefix} , 2 .\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    put_pair(tmp_path / "data", "de-en", "Other")
    put_pair(tmp_path / "data", "ro-en", "Text")
    return tmp_path / "data"


def test_ratings_are_joined_with_post_edits(folder):
    splits = MlqePe("ro-en", data_dir=folder).splits()
    assert {name: [row["segment_id"] for row in rows] for name, rows in splits.items()} == {
        "train": [1, 2],
        "validation": [1, 2],
        "test": [1, 2],
    }
    assert splits["validation"][0] == {
        "year": 2020,
        "lp": "ro-en",
        "segment_id": 1,
        "system": "mlqe-nmt",
        "source": "Original 1.",
        "reference": "Text dev , one .",
        "candidate": '"Text dev, one.',
        "score": 0.7667,
        "raw_score": 80.1667,
        "n_annotations": 3,
    }


def test_the_dataset_has_the_rows_and_says_what_they_are(folder, tmp_path):
    builder = MlqePe("ro-en", data_dir=folder, cache_dir=str(tmp_path / "cache"))
    builder.download_and_prepare()
    assert {name: rows.to_list() for name, rows in builder.as_dataset().items()} == builder.splits()
    assert (builder.info.license, str(builder.info.version)) == ("cc0-1.0", "1.1.0")
    assert all((builder.info.description, builder.info.homepage, builder.info.citation))


def test_the_command_writes_the_splits(folder, tmp_path):
    with pytest.raises(SystemExit) as end:
        main(["data", "mlqe", "--config-name", "ro-en", "--data-dir", str(folder), "--output", str(tmp_path / "out")])
    assert end.value.code == 0
    rows = [json.loads(line) for line in (tmp_path / "out/test.jsonl").read_text().splitlines()]
    assert [row["n_annotations"] for row in rows] == [3, 2]


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("train.roen.df.short.tsv", "2\tOnly three.\tfields", "3 ratings, but there are 2 post-edits"),
        ("train.pe", "One more .", "2 ratings, but there are 3 post-edits"),
    ],
)
def test_another_number_of_lines_is_refused(folder, name, line, message):
    [file] = [path for path in folder.rglob(name) if "ro-en" in str(path)]
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(ValueError, match=message):
        MlqePe("ro-en", data_dir=folder).splits()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("80.1667", "high", r"line 2: raw_score must be a number, found 'high'"),
        ("[90, 70.5, 80]", "[90", r"line 2: Expecting"),
        ("-1.5\t-0.9", "-1.5", r"line 3: expected 8 columns, found 7"),
        ("z_mean", "z", r"no column z_mean; found index, original"),
    ],
)
def test_a_bad_line_is_named(folder, old, new, message):
    [file] = folder.rglob("train.roen.df.short.tsv")
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        MlqePe("ro-en", data_dir=folder).splits()


def test_a_missing_file_is_named(folder):
    with pytest.raises(FileNotFoundError, match=r"no file train.neen.df.short.tsv in a folder ne-en\* under .*data"):
        MlqePe("ne-en", data_dir=folder).splits()


@pytest.mark.parametrize("lp", LANGUAGE_PAIRS)
def test_each_pair_has_six_archives(lp):
    sources = mlqe_sources(lp)
    assert len({source.url for source in sources}) == len({source.path for source in sources}) == 6
    assert all(source.url.endswith(f"data/{source.path.removeprefix('mlqe-pe/')}") for source in sources)
