"""Builders read as many ratings as were published, all of them unchanged.

The official archives of these years are too large to come along. Files in their layout are written from the collected
ratings, so these tests show that no row is lost or changed on the way, not that the archives look like this.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict

import pytest

from bleurt_repro.datasets_builders.ratings.mlqe import LANGUAGE_PAIRS, SPLITS, MlqePe
from bleurt_repro.datasets_builders.ratings.wmt_archives import read_archives

pytestmark = pytest.mark.long


def collected(shared_data, name):
    path = shared_data / "ratings" / name
    if not path.is_file():
        pytest.skip(f"no {name}")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("year", "name", "count"),
    [(2017, "wmt17_da_from_en.jsonl.gz", 70_282), (2018, "wmt18_da_from_en.jsonl.gz", 90_210)],
)
def test_ratings_out_of_english(shared_data, tmp_path, year, name, count):
    rows = collected(shared_data, name)
    by_pair = defaultdict(list)
    for row in rows:
        by_pair[row["lp"]].append(row)
    for lp, ratings in by_pair.items():
        source, target = lp.split("-")
        texts = defaultdict(lambda: ["-"] * max(row["segment_id"] for row in ratings))  # noqa: B023
        for row in ratings:
            line = row["segment_id"] - 1
            texts[f"newstest{year}-{source}{target}-src.{source}"][line] = row["source"]
            texts[f"newstest{year}-{source}{target}-ref.{target}"][line] = row["reference"]
            texts[f"newstest{year}.{row['system']}.{lp}"][line] = row["candidate"]
        for file, lines in texts.items():
            write_lines(tmp_path / "texts" / file, lines)
        columns = ("system", "segment_id", "raw_score", "z_score", "n_annot")
        lines = [" ".join(str(row[column]) for column in columns) for row in ratings]
        folder = tmp_path / f"newstest{year}-humaneval" / "analysis"
        write_lines(folder / f"ad-seg-scores-{lp}.csv", ["SYS SID RAW.SCR Z.SCR N", *lines])
    read = read_archives(tmp_path, lambda lp: lp.startswith("en-"))
    assert len(read) == len(rows) == count
    names = {"score": "z_score", "n_annotations": "n_annot"}
    columns = ("lp", "system", "segment_id", "source", "reference", "candidate", "raw_score", "score", "n_annotations")
    expected = {tuple(_stripped(row[names.get(column, column)]) for column in columns) for row in rows}
    assert {tuple(row[column] for column in columns) for row in read} == expected


def test_mlqe_pe(shared_data, tmp_path):
    rows = collected(shared_data, "mlqe_pe_2020.jsonl.gz")
    splits = {"train": "train", "validation": "dev", "test": "test"}
    for lp in LANGUAGE_PAIRS:
        for split, (folder, prefix) in SPLITS.items():
            ratings = [row for row in rows if row["lp"] == lp and row["split"] == splits[split]]
            columns = ("source", "candidate", "scores", "raw_score", "z_score")
            lines = ["\t".join(str(row[column]) for column in columns) for row in ratings]
            header = "\t".join(("original", "translation", "scores", "mean", "z_mean"))
            tables = tmp_path / "direct-assessments" / folder / f"{lp}-{folder}"
            write_lines(tables / f"{prefix}.{lp.replace('-', '')}.df.short.tsv", [header, *lines])
            post_edits = tmp_path / "post-editing" / folder / f"{lp}-{folder}"
            write_lines(post_edits / f"{prefix}.pe", [row["reference"] for row in ratings])
    for lp in LANGUAGE_PAIRS:
        read = MlqePe(lp, data_dir=tmp_path).splits()
        assert {split: len(ratings) for split, ratings in read.items()} == {
            "train": 7000,
            "validation": 1000,
            "test": 1000,
        }
        expected = [row for row in rows if row["lp"] == lp]
        assert sum(row["score"] for split in read.values() for row in split) == pytest.approx(
            sum(row["z_score"] for row in expected)
        )
        assert {row["candidate"] for split in read.values() for row in split} == {
            _stripped(row["candidate"]) for row in expected
        }


def _stripped(value):
    return value.strip().removeprefix("\ufeff") if isinstance(value, str) else value
