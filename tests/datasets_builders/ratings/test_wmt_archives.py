from __future__ import annotations

import pytest

from bleurt_repro.datasets_builders.ratings.wmt import WmtRatings
from bleurt_repro.datasets_builders.ratings.wmt_archives import read_archives
from bleurt_repro.datasets_builders.ratings.wmt_sources import read_wmt, source_fingerprint


def put(folder, path, *lines):
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def put_daseg(folder, year, lp, scores):
    prefix = {2015: "DAseg-wmt-newstest2015/newstest2015", 2016: "DAseg-wmt-newstest2016/DAseg.newstest2016"}[year]
    for column in ("source", "reference", "mt-system"):
        put(folder, f"{prefix}.{column}.{lp}", *(f"{column} {n} of {lp} {year} " for n in range(1, len(scores) + 1)))
    put(folder, f"{prefix}.human.{lp}", *map(str, scores))


def put_texts(folder, year, lp, systems):
    source, target = lp.split("-")
    put(folder, f"txt/sources/newstest{year}-{source}{target}-src.{source}", "Quelle 1", "Quelle 2")
    put(folder, f"txt/references/newstest{year}-{source}{target}-ref.{target}", "Spring 1", "Spring 2")
    for system in systems:
        name = f"txt/system-outputs/newstest{year}/{lp}/newstest{year}.{system}.{lp}"
        put(folder, name, f"Well 1 by {system}", f"Well 2 by {system}")


@pytest.fixture
def archives(tmp_path):
    """Own sentences in the layout of the archives of 2015 to 2019."""
    put_daseg(tmp_path, 2015, "fi-en", [0.5, -0.25])
    put_daseg(tmp_path, 2016, "ru-en", [1.5])
    put_daseg(tmp_path, 2016, "en-ru", [1.5])
    put_texts(
        tmp_path / "input/wmt17-metrics-task-no-hybrids/wmt17-submitted-data", 2017, "de-en", ["A.1", "B-nmt.22"]
    )
    put(
        tmp_path,
        "manual-evaluation/DA-seglevel.csv",
        "LP DATA SYSTEM SID HUMAN",
        "de-en newstest2017 B-nmt.22 2 -0.75",
        "de-en newstest2017 A.1+B-nmt.22 1 0.25",
        "en-zh newstest2017 Untold.3 1 0.25",
    )
    put_texts(tmp_path / "wmt18-metrics-task-nohybrids", 2018, "cs-en", ["online-A.0"])
    put(
        tmp_path,
        "newstest2018-humaneval/analysis/ad-seg-scores-cs-en.csv",
        "SYS SID RAW.SCR Z.SCR N",
        "HUMAN 1 99 1.5 1 ",
        "online-A.0 2 89.5 0.96 2 ",
    )
    put(tmp_path, "newstest2016-humaneval/analysis/ad-seg-scores-ru-en.csv", "SYS SID RAW Z N", "C.3 1 50 0 1")
    return tmp_path


def values(ratings, *columns):
    return [tuple(rating[column] for column in columns) for rating in ratings]


def test_all_years_are_read(archives):
    ratings = read_wmt(archives)
    assert values(ratings, "year", "lp", "segment_id", "system", "score", "raw_score", "n_annotations") == [
        (2015, "fi-en", 1, None, 0.5, None, None),
        (2015, "fi-en", 2, None, -0.25, None, None),
        (2016, "ru-en", 1, None, 1.5, None, None),
        (2017, "de-en", 2, "B-nmt.22", -0.75, None, None),
        (2017, "de-en", 1, "A.1+B-nmt.22", 0.25, None, None),
        (2018, "cs-en", 2, "online-A.0", 0.96, 89.5, 2),
    ]
    assert values(ratings, "source", "reference", "candidate")[1:] == [
        ("source 2 of fi-en 2015", "reference 2 of fi-en 2015", "mt-system 2 of fi-en 2015"),
        ("source 1 of ru-en 2016", "reference 1 of ru-en 2016", "mt-system 1 of ru-en 2016"),
        ("Quelle 2", "Spring 2", "Well 2 by B-nmt.22"),
        ("Quelle 1", "Spring 1", "Well 1 by A.1"),
        ("Quelle 2", "Spring 2", "Well 2 by online-A.0"),
    ]


def test_the_builder_trains_on_them(archives):
    splits = WmtRatings("2018", data_dir=archives, validation_ratio=0).splits()
    assert values(splits["train"], "system") == [(None,), (None,), (None,), ("B-nmt.22",), ("A.1",), ("B-nmt.22",)]
    assert values(splits["test"], "candidate") == [("Well 2 by online-A.0",)]


def test_only_the_language_pairs_wanted_need_texts(archives):
    assert {rating["lp"] for rating in read_wmt(archives, language_pairs=["fi-en", "cs-en"])} == {"fi-en", "cs-en"}
    with pytest.raises(ValueError, match="no ratings of tr-en in .*; found cs-en, de-en, en-ru, en-zh, fi-en, ru-en"):
        read_wmt(archives, language_pairs=["tr-en"])
    with pytest.raises(FileNotFoundError, match="no file newstest2017-enzh-src.en"):
        read_wmt(archives, language_pairs=["en-zh"])


def test_out_of_english_the_ratings_of_the_news_task_are_read(archives):
    for year in (2017, 2018):
        put_texts(archives / f"texts{year}", year, "en-zh", ["Told.3"])
        file = f"newstest{year}-humaneval/analysis/ad-seg-scores-en-zh.csv"
        put(archives, file, "SYS SID RAW.SCR Z.SCR N", f"Told.3 2 7{year % 10} -0.5 3")
    put(archives, "newstest2017-humaneval/analysis/ad-seg-scores-de-en.csv", "SYS SID RAW.SCR Z.SCR N", "A.1 1 9 9 1")
    ratings = read_wmt(archives, language_pairs=["en-*", "de-en"])
    assert values(ratings, "year", "lp", "segment_id", "score", "raw_score", "candidate")[1:] == [
        (2017, "de-en", 2, -0.75, None, "Well 2 by B-nmt.22"),
        (2017, "de-en", 1, 0.25, None, "Well 1 by A.1"),
        (2017, "en-zh", 2, -0.5, 77.0, "Well 2 by Told.3"),
        (2018, "en-zh", 2, -0.5, 78.0, "Well 2 by Told.3"),
    ]
    splits = WmtRatings("2018", data_dir=archives, language_pairs="en-zh", validation_ratio=0).splits()
    assert {name: values(rows, "year") for name, rows in splits.items()} == {"train": [(2017,)], "test": [(2018,)]}


def test_the_fingerprint_follows_the_texts(archives):
    before = source_fingerprint(archives)
    put(archives, "wmt18-metrics-task-nohybrids/txt/sources/newstest2018-csen-src.cs", "Zdroj 1", "Zdroj 2")
    assert source_fingerprint(archives) != before


def test_names_of_2019_are_matched(tmp_path):
    systems = ["Helsinki_NLP.6889", "UAlacant_-_NMT+RBMT.6722"]
    put_texts(tmp_path, 2019, "zh-en", systems)
    put(
        tmp_path,
        "newstest2019-humaneval/turkle-sntlevel-humaneval-newstest2019/analysis/ad-seg-scores-zh-en.csv",
        "SYS SID RAW.SCR Z.SCR N",
        "Helsinki-NLP.6889.zh-en 1 80 0.5 1",
        "UAlacant_-_NM 2 70 0.25 1",
        "RBMT.6722 2 70 0.25 1",
    )
    put(tmp_path, "newstest2019-humaneval/other/analysis/ad-seg-scores-zh-en.csv", "SYS SID RAW.SCR Z.SCR N")
    assert values(read_archives(tmp_path), "system", "candidate") == [
        ("Helsinki-NLP.6889", "Well 1 by Helsinki_NLP.6889"),
        ("UAlacant_-_NMT+RBMT.6722", "Well 2 by UAlacant_-_NMT+RBMT.6722"),
    ]


def test_two_files_of_one_pair_are_refused(archives):
    put(archives, "newstest2018-humaneval/copy/ad-seg-scores-cs-en.csv", "SYS SID RAW.SCR Z.SCR N")
    with pytest.raises(ValueError, match="two files of ratings of cs-en, 2018: .*copy.*; remove one"):
        read_wmt(archives)


@pytest.mark.parametrize("reference", ["NO REFERENCE AVAILABLE", " "])
def test_segments_without_a_reference_are_counted(archives, reference):
    path = "wmt18-metrics-task-nohybrids/txt/references/newstest2018-csen-ref.en"
    put(archives, path, "Spring 1", reference)
    with pytest.warns(UserWarning, match="left out 1 ratings without a reference"):
        assert {rating["year"] for rating in read_wmt(archives)} == {2015, 2016, 2017}


@pytest.mark.parametrize(
    ("path", "lines", "message"),
    [
        ("DAseg-wmt-newstest2015/newstest2015.human.fi-en", ["1"], "equally long, found source 2, .* human 1 lines"),
        ("DAseg-wmt-newstest2015/newstest2015.human.fi-en", ["1", "x"], "fi-en, line 2: score must be a number"),
        (
            "manual-evaluation/DA-seglevel.csv",
            ["LP", "de-en A.1 2"],
            r"DA-seglevel\.csv, line 2: expected 5 fields, found 3",
        ),
        (
            "manual-evaluation/DA-seglevel.csv",
            ["LP", "de-en newstest2017 A.1 3 0.5"],
            "line 2: no segment 3 in the texts",
        ),
        (
            "manual-evaluation/DA-seglevel.csv",
            ["LP", "de-en newstest2017 A.1 0 0.5"],
            "line 2: no segment 0 in the texts",
        ),
        (
            "manual-evaluation/DA-seglevel.csv",
            ["LP", "de-en test A.1 1 0.5"],
            "line 2: expected newstestYEAR, found test",
        ),
        (
            "newstest2018-humaneval/analysis/ad-seg-scores-cs-en.csv",
            ["S", "online-A.0 1 90 nan 1"],
            "line 2: score must be",
        ),
    ],
)
def test_a_bad_line_is_named(archives, path, lines, message):
    put(archives, path, *lines)
    with pytest.raises(ValueError, match=message):
        read_wmt(archives)


def test_a_byte_that_is_no_text_is_named(archives):
    file = archives / "DAseg-wmt-newstest2016" / "DAseg.newstest2016.source.ru-en"
    file.write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="source.ru-en, line 1: not UTF-8"):
        read_wmt(archives)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("newstest2018-csen-src.cs", "no file newstest2018-csen-src.cs anywhere beside the ratings"),
        (
            "newstest2018.online-A.0.cs-en",
            r"line 3: no output of online-A.0; looked for newstest2018.online-A.0.cs-en",
        ),
        ("DAseg.newstest2016.mt-system.ru-en", "no file .*DAseg.newstest2016.mt-system.ru-en"),
    ],
)
def test_a_text_that_is_missing_is_named(archives, name, message):
    next(archives.rglob(name)).unlink()
    with pytest.raises(FileNotFoundError, match=message):
        read_wmt(archives)
