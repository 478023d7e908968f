"""The score cache: what was scored once is not scored again, whoever asks."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing

import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.forward.score_cache import ScoreCache, Scored, pair_key

TEXTS = {"references": ["the cat sat", "it rains", "it rains"], "candidates": ["a cat", "good bye", "good bye"]}


def test_what_is_added_is_found(tmp_path):
    cache = ScoreCache(tmp_path / "new" / "folder", "settings")
    results = {("a", str(n)): Scored(n / 7, n % 2 == 0) for n in range(2000)}
    cache.add(results)
    assert ScoreCache(tmp_path / "new" / "folder", "settings").find([*results, ("b", "a")]) == results
    assert ScoreCache(tmp_path / "new" / "folder", "others").find(list(results)) == {}


def test_keys_tell_texts_apart():
    assert (
        len({pair_key(item) for item in [("ab", "c"), ("a", "bc"), ("c", "ab"), ("ab", "c", ""), ("ab", "\ud800")]})
        == 5
    )


def test_the_scorer_reads_and_writes_it(tmp_path, tiny_scorer, monkeypatch):
    plain = BleurtScorer(str(tiny_scorer), device="cpu")
    first = BleurtScorer(str(tiny_scorer), device="cpu", cache=tmp_path)
    expected = first.compute(**TEXTS)
    assert expected.scores == plain.score(**TEXTS)
    again = BleurtScorer(str(tiny_scorer), device="cpu", cache=str(tmp_path))
    monkeypatch.setattr(again.members[0], "forward", None)  # nothing is left to compute
    assert again.compute(**TEXTS, aggregate="max") == expected
    assert len(list(tmp_path.glob("*.sqlite"))) == 1
    BleurtScorer(str(tiny_scorer), device="cpu", dtype="bfloat16", cache=tmp_path).score(**TEXTS)
    assert len(list(tmp_path.glob("*.sqlite"))) == 2


def test_truncation_is_said_of_cached_pairs_too(tmp_path, tiny_scorer):
    long = {"references": ["cat " * 100], "candidates": ["a cat"]}
    for _ in range(2):
        with pytest.warns(UserWarning, match="1 of 1 pairs were longer"):
            BleurtScorer(str(tiny_scorer), device="cpu", cache=tmp_path).score(**long)


def test_many_writers_lose_nothing(tmp_path):
    code = (
        "import sys\n"
        "from bleurt_repro.metric.forward.score_cache import ScoreCache, Scored\n"
        "cache, own = ScoreCache(sys.argv[1], 's'), int(sys.argv[2])\n"
        "for n in range(40): cache.add({(str(n), str(k)): Scored(float(n * k), False) for k in range(own, own + 30)})"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(10 * own)]) for own in range(4)]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * 4
    expected = {(str(n), str(k)): Scored(float(n * k), False) for n in range(40) for k in range(60)}
    assert ScoreCache(tmp_path, "s").find(list(expected)) == expected


def test_a_damaged_file_is_named(tmp_path):
    path = ScoreCache(tmp_path, "s").path
    for leftover in tmp_path.iterdir():
        leftover.unlink()
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(OSError, match=r"score cache .*sqlite cannot be used .*: delete the file if it is damaged"):
        ScoreCache(tmp_path, "s")


def test_a_damaged_score_is_scored_anew(tmp_path, tiny_scorer):
    expected = BleurtScorer(str(tiny_scorer), device="cpu", cache=tmp_path).score(**TEXTS)
    with sqlite3.connect(next(tmp_path.glob("*.sqlite"))) as database:
        database.execute("UPDATE scores SET score = score + 1 WHERE pair = (SELECT min(pair) FROM scores)")
    database.close()
    with pytest.warns(UserWarning, match=r"1 scores in .*\.sqlite are damaged: these pairs are scored anew"):
        assert BleurtScorer(str(tiny_scorer), device="cpu", cache=tmp_path).score(**TEXTS) == pytest.approx(expected)
    with warnings.catch_warnings():  # and put in its place
        warnings.simplefilter("error")
        again = BleurtScorer(str(tiny_scorer), device="cpu", cache=tmp_path).score(**TEXTS)
    assert again == pytest.approx(expected)


class Crowded(sqlite3.Connection):
    """Turned away three times when it asks for write-ahead logging, as SQLite does with several who ask at once."""

    asked = 0

    def execute(self, statement, *arguments):
        if "journal_mode" in statement:
            Crowded.asked += 1
            if Crowded.asked <= 3:
                raise sqlite3.OperationalError("database is locked")
        return super().execute(statement, *arguments)


def test_who_opens_a_new_file_together_with_others_tries_again(tmp_path, monkeypatch):
    monkeypatch.setattr(Crowded, "asked", 0)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **options: connect(*given, **options, factory=Crowded))
    cache = ScoreCache(tmp_path, "settings")
    assert Crowded.asked == 4
    with closing(connect(cache.path)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_that_stays_locked_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(Crowded, "asked", -10_000)
    monkeypatch.setattr("bleurt_repro.metric.forward.score_cache.WAIT_SECONDS", 0.1)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **options: connect(*given, **options, factory=Crowded))
    with pytest.raises(OSError, match="cannot be used .database is locked."):
        ScoreCache(tmp_path, "settings")
