"""Scoring and making pairs on Ray: the same bytes as without, also when a worker is killed; the same messages."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.datasets_builders.synthetic import make
from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.metric.bulk import scoring
from bleurt_repro.metric.bulk.ray_engine import Ahead, RayEngine
from bleurt_repro.metric.options import ScoreOptions
from tests.tiny_teachers import SENTENCES

WORDS = "the cat sat on a mat it rains dog good bye hi there stock prices fell".split()
COUNT = 60


@pytest.fixture(scope="module")
def cluster():
    """A Ray for all tests that need one: it takes seconds to start."""
    ray = pytest.importorskip("ray", reason="Ray is not installed (the extra ray)")
    # its workers yield to all others by default, and would crawl beside the suite's other processes
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    options = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    ray.init(address="local", num_cpus=2, object_store_memory=2**27, _node_ip_address="127.0.0.1", **options)
    yield
    ray.shutdown()


@pytest.fixture
def pairs(tmp_path):
    """Pairs as JSON lines; every third has two references."""
    rows = []
    for n in range(COUNT):
        references = [" ".join(WORDS[n % 7 :]), "good bye"][: 1 + (n % 3 == 0)]
        rows.append({"references": references, "candidate": " ".join(WORDS[: n % 13]) + f" {n}"})
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(tmp_path / "pairs.jsonl")


@pytest.fixture
def score(tmp_path, tiny_scorer, monkeypatch):
    monkeypatch.setitem(scoring.WINDOWS, "cpu", 8)

    def call(pairs, output="scores.txt", engine=None, checkpoint=tiny_scorer, **options) -> Path:
        settings = ScoreOptions(str(checkpoint), device=options.pop("device", None))
        scoring.score_files(settings, pairs=pairs, output=str(tmp_path / output), engine=engine, **options)
        return tmp_path / output

    return call


@pytest.mark.long
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_scores_are_those_of_one_process_in_the_same_order(cluster, pairs, score, tmp_path, form):
    if form == "parquet":
        import pyarrow.json
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.json.read_json(pairs), tmp_path / "pairs.parquet")
        pairs = str(tmp_path / "pairs.parquet")
    alone = score(pairs, "alone.json", as_json=True)
    assert score(pairs, "ray.json", RayEngine(workers=2), as_json=True).read_bytes() == alone.read_bytes()
    assert len(json.loads(alone.read_text())["scores"]) == COUNT


@pytest.mark.long
def test_rows_with_high_scores_are_those_of_one_process(cluster, pairs, score):
    median = sorted(map(float, score(pairs).read_text().splitlines()))[COUNT // 2]
    alone = score(pairs, "alone.jsonl", keep_above=median).read_bytes()
    assert score(pairs, "ray.jsonl", RayEngine(workers=2), keep_above=median).read_bytes() == alone
    assert len(alone.splitlines()) == COUNT // 2


class DiesInTheMiddle(scoring._RayScorer):
    """A worker that is killed, once in a run, before it scores its window."""

    def __call__(self, first: int, last: int):
        _die_once(Path(self._files["pairs"]), first >= COUNT // 2)
        return super().__call__(first, last)

    def __init__(self, files, **arguments) -> None:
        super().__init__(files, **arguments)
        self._files = files


def _die_once(beside: Path, now: bool) -> None:
    died = beside.with_suffix(".died")
    if now and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_a_worker_that_is_killed_costs_nothing(cluster, pairs, score, tmp_path, monkeypatch):
    alone = score(pairs, "alone.txt")
    monkeypatch.setattr(scoring, "_RayScorer", DiesInTheMiddle)
    assert score(pairs, "ray.txt", RayEngine(workers=2)).read_bytes() == alone.read_bytes()
    assert (tmp_path / "pairs.died").exists()


@pytest.mark.long
def test_a_run_that_was_stopped_is_resumed_by_either_engine(cluster, pairs, score, monkeypatch):
    whole = score(pairs, "whole.txt").read_bytes()
    compute, done = BleurtScorer.compute_quietly, []
    with monkeypatch.context() as patch:
        patch.setattr(
            BleurtScorer,
            "compute_quietly",
            lambda self, **texts: done.append(1) or (compute(self, **texts) if len(done) < 4 else 1 / 0),
        )
        with pytest.raises(ZeroDivisionError):
            score(pairs)
    with pytest.warns(UserWarning, match=r"resuming the unfinished scores\.txt after 24 records"):
        assert score(pairs, engine=RayEngine(workers=1)).read_bytes() == whole


@pytest.mark.long
def test_what_a_worker_raises_is_what_one_process_raises(cluster, pairs, score, tiny_source_scorer):
    messages = []
    for engine in (None, RayEngine(workers=1)):
        with pytest.raises(ValueError, match="sources") as raised:
            score(pairs, engine=engine, checkpoint=tiny_source_scorer)
        messages.append((type(raised.value), str(raised.value)))
    assert messages[0] == messages[1]
    assert "in compute_quietly" in str(raised.value.__cause__), "where it was raised"


class Dies:
    """A worker that never survives."""

    def __init__(self, device: str) -> None:
        assert device == "cpu"

    def __call__(self, first: int, last: int) -> None:
        os._exit(1)


@pytest.mark.long
def test_a_piece_that_ends_every_worker_ends_the_run(cluster):
    with pytest.raises(ValueError, match="Ray could not finish the work"):
        list(RayEngine(workers=1).map(Dies, [(0, 1)], None))


@pytest.mark.long
def test_what_a_cluster_does_not_have(cluster):
    with pytest.raises(ValueError, match="Ray has no GPUs: give --workers to wait"):
        list(RayEngine().map(Dies, [(0, 1)], "cuda"))
    with pytest.warns(UserWarning, match="Ray has 2 cores for 3 workers"):
        assert RayEngine(workers=3)._sizes(None, 9) == (False, 3)
    assert RayEngine(workers=3)._sizes("cpu", 1) == (False, 1)
    assert RayEngine()._sizes("cpu", 9) == (False, 2)


@pytest.fixture(scope="module")
def recipe(tiny_teachers):
    small = SyntheticConfig(device="cpu", beam_size=1, max_masks=3, unit_segments=2, segments_per_part=4)
    return small.with_options(**tiny_teachers.options())


class PartMakerThatDies(make._RayPartMaker):
    """A worker that is killed, once in a run, before it makes its part."""

    def __init__(self, source: str, **arguments) -> None:
        super().__init__(source, **arguments)
        self._source = Path(source)

    def __call__(self, first: int, last: int):
        _die_once(self._source, first > 0)
        return super().__call__(first, last)


@pytest.mark.long
def test_pairs_are_those_of_one_process_though_a_worker_is_killed(cluster, recipe, tmp_path, monkeypatch):
    text = tmp_path / "text.txt"
    text.write_text("\n".join([*SENTENCES, "...", SENTENCES[0]]))
    report = make.make_synthetic_pairs(str(text), tmp_path / "alone", recipe)
    monkeypatch.setattr(make, "_RayPartMaker", PartMakerThatDies)
    again = make.make_synthetic_pairs(str(text), tmp_path / "ray", recipe, engine=RayEngine(workers=2))
    assert text.with_suffix(".died").exists()
    names = [*sorted(path.name for path in (tmp_path / "alone" / "data").iterdir())]
    assert len(names) == 3
    for name in ("dataset_info.json", "skipped.jsonl", "recipe.json", *(f"data/{name}" for name in names)):
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes(), name
    assert again["pairs"] == report["pairs"]


def test_a_bad_record_is_named_before_ray_starts(pairs, score, monkeypatch):
    monkeypatch.setattr(RayEngine, "map", lambda *_, **__: pytest.fail("Ray was started"))
    with open(pairs, "a") as file:
        file.write('{"candidate": 3, "reference": "a"}\n')
    with pytest.raises(ValueError, match=r"pairs\.jsonl, line 61: candidate must be a string, found 3"):
        score(pairs, engine=RayEngine())


def test_what_ray_cannot_do_is_refused(pairs, score, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="reads the input in each worker: expected a file, found standard input"):
        score("-", engine=RayEngine())
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"expected a file, found .*pipe"):
        score(str(tmp_path / "pipe"), engine=RayEngine())
    with pytest.raises(ValueError, match="engine ray shares out the work itself"):
        score(pairs, engine=RayEngine(), num_shards=2, shard_index=0)
    for words, message in [
        (("local", "auto", None), "need --engine ray"),
        (("dask", None, None), "engine must be one of local, ray, found 'dask'"),
        (("ray", None, 0), "workers must be a positive number of processes, found 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            RayEngine.from_options(*words)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"engine ray needs ray.*: `pip install .*\[ray\]"):
        RayEngine.from_options("ray", None, None)


def test_runs_of_an_input_in_ascending_order_cost_one_pass():
    begun = []
    ahead = Ahead(lambda: begun.append(1) or iter(range(10)))
    assert [ahead.run(0, 2), ahead.run(4, 6), ahead.run(6, 8)] == [[0, 1], [4, 5], [6, 7]] and len(begun) == 1
    assert ahead.run(2, 4) == [2, 3] and len(begun) == 2
    with pytest.raises(ValueError, match="items 8 to 12 of the input are gone: it has changed"):
        ahead.run(8, 12)


@pytest.mark.long
def test_the_command_works_on_a_cluster_that_is_there_and_leaves_it(cluster, pairs, score, tiny_scorer, tmp_path):
    import ray

    address = ray.get_runtime_context().gcs_address
    alone = score(pairs, "alone.txt")
    command = [
        sys.executable,
        "-m",
        "bleurt_repro",
        "score",
        "--checkpoint",
        str(tiny_scorer),
        "--pairs",
        "pairs.jsonl",
    ]
    command += ["--output", "ray.txt", "--engine", "ray", "--address", address, "--workers", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "")
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("mean ")
    assert [float(line) for line in (tmp_path / "ray.txt").read_text().split()] == pytest.approx(
        [float(line) for line in alone.read_text().split()], abs=1e-5
    )
    assert ray.cluster_resources()["CPU"] == 2


@pytest.mark.long
def test_a_ray_of_its_own_asks_for_a_token():
    pytest.importorskip("ray", reason="Ray is not installed (the extra ray)")
    code = """if True:
        import os
        from bleurt_repro.metric.bulk import ray_engine
        ray_engine._require_token("auto")  # Ray is not imported yet
        print(os.environ.get("RAY_AUTH_MODE"))
        ray_engine.RayEngine.from_options("ray", None, None)
        print(os.environ.get("RAY_AUTH_MODE"), len(os.environ.get("RAY_AUTH_TOKEN", "")))
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["None", "token", "64"], done.stderr


def test_a_cluster_that_is_not_there(monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed (the extra ray)")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ValueError, match="Ray could not be reached at 127.0.0.1:1: .*refused"):
        list(RayEngine(address="127.0.0.1:1").map(Dies, [(0, 1)], None))


@pytest.mark.long
def test_the_command_starts_a_ray_of_its_own_and_ends_it(pairs, tiny_scorer, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed (the extra ray)")
    alone = tmp_path / "alone.txt"
    options = ["score", "--checkpoint", str(tiny_scorer), "--pairs", pairs, "--device", "cpu", "--output"]
    with pytest.raises(SystemExit) as ended:
        main([*options, str(alone)])
    assert ended.value.code == 0
    command = [sys.executable, "-m", "bleurt_repro", *options, "ray.txt", "--engine", "ray", "--workers", "1"]
    mark = f"STARTED_BY={tmp_path}"
    environment = {**os.environ, "STARTED_BY": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "")
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("mean ")
    assert [float(line) for line in (tmp_path / "ray.txt").read_text().split()] == pytest.approx(
        [float(line) for line in alone.read_text().split()], abs=1e-5
    )
    deadline = time.monotonic() + 30
    while (left := _processes(mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left


def _processes(mark: str) -> list[bytes]:
    """The command lines of the processes that have inherited a variable."""
    workers = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                workers.append((folder / "cmdline").read_bytes())
        except OSError:  # gone, or another user's
            continue
    return workers
