"""Files of any size: windows, shards, a kill in the middle, and what lies beside the output."""

from __future__ import annotations

import contextlib
import json
import re

import numpy as np
import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.bulk import scoring as module
from bleurt_repro.metric.bulk.resumable_output import PartialOutput
from bleurt_repro.metric.bulk.scoring import score_files
from bleurt_repro.metric.files import texts as texts_module
from bleurt_repro.metric.files.texts import PairStream
from bleurt_repro.metric.options import ScoreOptions

WORDS = "the cat sat on a mat it rains dog good bye hi there stock prices fell".split()
COUNT = 50


@pytest.fixture
def pairs(tmp_path):
    """Pairs as a JSONL file and as lists; every third has two references."""
    rows = []
    for n in range(COUNT):
        references = [" ".join(WORDS[n % 7 :]), "good bye"][: 1 + (n % 3 == 0)]
        rows.append({"references": references, "candidate": " ".join(WORDS[: n % 13])})
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"references": [row["references"] for row in rows], "candidates": [row["candidate"] for row in rows]}


@pytest.fixture
def score(tmp_path, tiny_scorer, pairs, monkeypatch):
    monkeypatch.setitem(module.WINDOWS, "cpu", 8)

    def call(output="scores.txt", **options):
        files = {"references": None, "candidates": None, "sources": None, "pairs": str(tmp_path / "pairs.jsonl")}
        settings = ScoreOptions(str(tiny_scorer), aggregate=options.pop("aggregate", "max"))
        call.summary = score_files(settings, **{**files, "output": str(tmp_path / output), **options})
        return tmp_path / output

    return call


@pytest.fixture
def expected(tiny_scorer, pairs):
    return BleurtScorer(str(tiny_scorer), device="cpu").score(**pairs)


def read(path) -> list[float]:
    return [float(line) for line in path.read_text().splitlines()]


def test_windows_keep_order_and_leave_nothing_beside_the_output(score, expected, tmp_path):
    assert read(score()) == pytest.approx(expected, abs=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith((".", "s"))) == ["scores.txt"]
    result = json.loads(score("scores.json", as_json=True).read_text())
    assert result["scores"] == pytest.approx(expected, abs=1e-5)
    assert result["mean_score"] == pytest.approx(sum(expected) / COUNT, abs=1e-5)


def test_the_summary_is_of_all_windows(score, expected):
    """The interval is the bootstrap's in the limit: the standard error is the deviation over the root of the number."""
    half = 1.959964 * np.std(expected) / COUNT**0.5
    mean = np.mean(expected)
    result = json.loads(score("scores.json", as_json=True).read_text())
    assert (result["low"], result["high"]) == pytest.approx((mean - half, mean + half), abs=1e-5)
    figures = re.fullmatch(r"mean (\S+) \(95% interval (\S+) to (\S+)\), 50 segments, (checkpoint:.*)", score.summary)
    assert figures.groups() == (
        *(f"{result[name]:.4f}" for name in ("mean_score", "low", "high")),
        result["signature"],
    )
    score("scores.txt", system="ours")
    assert score.summary == figures[0]


def test_a_share_says_that_its_summary_is_of_a_share(score, expected):
    with pytest.warns(UserWarning, match="share 1 of 3"):
        score(num_shards=3, shard_index=1)
    assert score.summary.startswith(f"share 1 of 3: mean {np.mean(expected[16:33]):.4f} (")
    assert ", 17 segments, checkpoint:" in score.summary


@pytest.mark.parametrize(
    ("count", "summary"), [(0, "no segments, checkpoint:"), (1, r"mean \S+ \(no interval\), 1 segment, checkpoint:")]
)
def test_too_few_segments_for_an_interval(score, tmp_path, count, summary):
    (tmp_path / "pairs.jsonl").write_text('{"reference": "cat", "candidate": "dog"}\n' * count)
    result = json.loads(score("scores.json", as_json=True).read_text())
    assert (result["low"], result["high"]) == (None, None) and re.match(summary, score.summary)


def test_truncated_pairs_of_all_windows_are_counted_once(score, tmp_path):
    rows = [{"reference": "cat " * (100 if n % 10 == 0 else 1), "candidate": "cat"} for n in range(30)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.warns(UserWarning, match="3 of 30 pairs were longer than the 64 tokens") as said:
        score()
    assert len(said) == 1


def test_shards_together_are_the_whole(score, expected, tmp_path):
    for index in (0, 1, 2):
        with pytest.warns(UserWarning, match=rf"share {index} of 3: 1[67] of 50 records are scored, from record"):
            score(num_shards=3, shard_index=index)
    parts = [tmp_path / f"scores-{index:05d}-of-00003.txt" for index in range(3)]
    assert [len(read(part)) for part in parts] == [16, 17, 17]
    assert sum(map(read, parts), []) == pytest.approx(expected, abs=1e-5)


def test_a_launcher_around_a_run_does_not_cut_its_input(score, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with pytest.warns(UserWarning, match="WORLD_SIZE is 2 in the environment"):
        assert read(score()) == pytest.approx(expected, abs=1e-5)
    with pytest.warns(UserWarning, match="share 1 of 2: 25 of 50 records are scored, from record 26 on"):
        score("s.json", num_shards="auto", as_json=True)
    result = json.loads((tmp_path / "s-00001-of-00002.json").read_text())
    assert result["scores"] == pytest.approx(expected[25:], abs=1e-5)
    assert result["shard"] == {"index": 1, "count": 2, "first_record": 25, "records": 25, "of": 50}


def _cut(path):
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:30]))


def _edit(path):
    path.write_text(path.read_text().replace("good bye", "good day"))


def _grow(path):
    with path.open("a") as file:
        file.write(json.dumps({"reference": "a", "candidate": "b"}) + "\n")


def _spoil(path):
    path.write_text(path.read_text()[:-20])


@pytest.mark.parametrize("change", [_cut, _edit, _grow, _spoil])
@pytest.mark.parametrize("block", [10, 16])
def test_an_input_that_changes_while_it_is_read(score, tmp_path, monkeypatch, change, block):
    whole = score("whole.txt").read_bytes()
    monkeypatch.setattr(texts_module, "SMALL", 0)
    monkeypatch.setattr(texts_module, "BLOCK", block)
    original = (tmp_path / "pairs.jsonl").read_bytes()
    calls, compute = [], BleurtScorer.compute_quietly

    def changes(self, **texts):
        calls.append(texts)
        if len(calls) == 2:
            change(tmp_path / "pairs.jsonl")
        return compute(self, **texts)

    monkeypatch.setattr(BleurtScorer, "compute_quietly", changes)
    with pytest.raises(ValueError, match="the input changed while it was read"):
        score()
    assert not (tmp_path / "scores.txt").exists()
    (tmp_path / "pairs.jsonl").write_bytes(original)
    with pytest.warns(UserWarning, match="resuming"):  # what was scored before is of the input that was checked
        assert score().read_bytes() == whole


@pytest.mark.parametrize("change", [_cut, _edit, _grow, _spoil])
def test_a_worker_of_ray_refuses_an_input_that_has_changed(tmp_path, pairs, tiny_scorer, change):
    files = {"pairs": str(tmp_path / "pairs.jsonl")}
    with PairStream(**files) as stream:
        survey = stream.survey()
    worker = module._RayScorer(files, survey, ScoreOptions(str(tiny_scorer)), "cpu")
    assert len(worker(10, 20).scores) == 10
    change(tmp_path / "pairs.jsonl")
    with pytest.raises(ValueError, match="the input changed while it was read"):
        module._RayScorer(files, survey, ScoreOptions(str(tiny_scorer)), "cpu")(40, 50)


def test_pairs_of_several_references_have_blank_ones_left_out(score, tmp_path, tiny_scorer):
    rows = [
        {"references": ["the cat sat", " ", ""], "candidate": "a dog"},
        {"reference": " ", "candidate": "a dog"},
    ] * 5
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.warns(UserWarning, match="5 of 10 pairs have a blank reference") as caught:
        result = json.loads(score("s.json", as_json=True).read_text())
    assert result["warnings"] == [str(warning.message) for warning in caught]
    expected = BleurtScorer(str(tiny_scorer)).score(references=["the cat sat"], candidates=["a dog"])
    assert result["scores"][::2] == pytest.approx(expected * 5, abs=1e-5)


def test_a_killed_run_goes_on_to_the_same_bytes(score, tmp_path, monkeypatch, tiny_scorer):
    whole = score("whole.txt").read_bytes()
    summary = score.summary
    calls, compute = [], BleurtScorer.compute_quietly

    def dies(self, **texts):
        calls.append(len(texts["candidates"]))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return compute(self, **texts)

    monkeypatch.setattr(BleurtScorer, "compute_quietly", dies)
    with pytest.raises(KeyboardInterrupt):
        score()
    assert not (tmp_path / "scores.txt").exists()
    with (tmp_path / ".scores.txt.partial").open("ab") as file:
        file.write(b"0.12")  # as if killed within a write
    with pytest.warns(UserWarning, match=r"resuming the unfinished scores\.txt after 24 records"):
        assert score().read_bytes() == whole
    assert score.summary == summary
    assert sum(calls) == COUNT + 8
    monkeypatch.setattr(BleurtScorer, "compute_quietly", compute)


@pytest.mark.parametrize("change", ["input", "aggregate"])
def test_another_run_does_not_go_on_with_it(score, tmp_path, monkeypatch, change):
    compute = BleurtScorer.compute_quietly
    done = []
    monkeypatch.setattr(
        BleurtScorer,
        "compute_quietly",
        lambda self, **texts: done.append(1) or (compute(self, **texts) if len(done) < 3 else 1 / 0),
    )
    with pytest.raises(ZeroDivisionError):
        score()
    monkeypatch.setattr(BleurtScorer, "compute_quietly", compute)
    options = {}
    if change == "input":
        lines = (tmp_path / "pairs.jsonl").read_text().splitlines(keepends=True)
        (tmp_path / "pairs.jsonl").write_text("".join([*lines[:-1], '{"reference": "a", "candidate": "b"}\n']))
    else:
        options = {"aggregate": "mean"}
    with pytest.warns(UserWarning, match="other settings: started again"):
        written = score(**options).read_bytes()
    assert written == score("again.txt", **options).read_bytes()


@pytest.mark.parametrize("damaged", ["lines", "counts", "journal"])
def test_a_damaged_unfinished_output_is_begun_anew(score, tmp_path, monkeypatch, damaged):
    whole = score("whole.txt").read_bytes()
    compute, done = BleurtScorer.compute_quietly, []
    with monkeypatch.context() as patch:
        patch.setattr(
            BleurtScorer,
            "compute_quietly",
            lambda self, **texts: done.append(1) or (compute(self, **texts) if len(done) < 3 else 1 / 0),
        )
        with pytest.raises(ZeroDivisionError):
            score()
    if damaged == "lines":
        lines = (tmp_path / ".scores.txt.partial").read_bytes()
        (tmp_path / ".scores.txt.partial").write_bytes(lines[:40].translate(bytes.maketrans(b"1", b"2")) + lines[40:])
    else:
        journal = (tmp_path / ".scores.txt.partial.json").read_text()
        changed = journal.replace('"records": 16', '"records": 8') if damaged == "counts" else journal[:-9]
        (tmp_path / ".scores.txt.partial.json").write_text(changed)
    with pytest.warns(UserWarning, match=r"the unfinished scores\.txt is damaged: started again"):
        assert score().read_bytes() == whole


def test_two_processes_do_not_write_one_output(score, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    with (tmp_path / ".scores.txt.partial").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match=r"another process is writing .*scores\.txt"):
            score()


@pytest.mark.parametrize("leaves_a_new_one", [False, True])
def test_an_output_that_another_process_finishes_at_this_moment_stays_whole(tmp_path, monkeypatch, leaves_a_new_one):
    fcntl = pytest.importorskip("fcntl")
    output, partial, lock, locked = tmp_path / "s.txt", tmp_path / ".s.txt.partial", fcntl.flock, []
    partial.write_text("0.1\n0.2\n")

    def lock_late(file, flags):
        if not locked:
            partial.rename(output)
            if leaves_a_new_one:
                partial.touch()
        locked.append(file)
        lock(file, flags)

    monkeypatch.setattr(fcntl, "flock", lock_late)
    with contextlib.closing(PartialOutput(output, {})) as unfinished:
        assert output.read_text() == "0.1\n0.2\n" and len(locked) == 2
        unfinished.add("0.3\n", records=1)
        unfinished.finish()
    assert output.read_text() == "0.3\n"
