"""What the benchmarks write: command, unit, machine and versions in each file; each peer as its documentation runs it."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import sys
from pathlib import Path

import pytest

from bleurt_repro import BleurtScorer
from tests.tiny_robertas import make_tiny_encoder

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAIRS = [
    ("the cat sat on the mat", "a cat was on the mat"),
    ("it rained", "it was dry all day"),
    ("no", "no one came"),
]


@pytest.fixture
def load(monkeypatch):
    """Return a function that imports a benchmark's file, which stands beside those it imports."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for name in [
        name
        for name, module in sys.modules.items()
        if Path(getattr(module, "__file__", None) or "/").parent == BENCHMARKS
    ]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def scorer(tiny_scorer):
    return BleurtScorer(str(tiny_scorer), device="cpu", progress=False)


def test_every_file_has_its_command_unit_machine_and_versions(load, tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys, "argv", ["/somewhere/benchmarks/speed.py", "--output", "/home/me/speed.json", "--minutes", "20"]
    )
    written = load("machine").write_result(
        tmp_path / "new" / "speed.json", "speed", {"pairs": "pairs scored"}, {"pairs": 7}
    )
    record = json.loads((tmp_path / "new" / "speed.json").read_text())
    assert record == written
    assert record["command"].endswith("python benchmarks/speed.py --output speed.json --minutes 20")
    assert record["kind"] == "speed" and record["unit"] == {"pairs": "pairs scored"} and record["pairs"] == 7
    assert record["machine"]["processor"] and record["machine"]["cores"] == os.cpu_count()
    assert {"bleurt_repro", "python", "torch", "transformers"} <= set(record["versions"])


def test_the_command_names_the_core_that_the_process_is_held_to(load, monkeypatch):
    command = load("machine").command
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2}, raising=False)
    assert (
        command(["x/scoring.py", "--pairs", "/a/b.jsonl"])
        == "taskset -c 2 python benchmarks/scoring.py --pairs b.jsonl"
    )
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert command(["x/scoring.py", "--pairs", "/a/b.jsonl"]) == "python benchmarks/scoring.py --pairs b.jsonl"


@pytest.mark.parametrize("name", ["scaling", "scoring", "training"])
def test_every_benchmark_writes_by_that_function_and_names_its_units(name):
    text = (BENCHMARKS / f"{name}.py").read_text()
    assert text.count("write_result(") == 1 and "UNITS = {" in text and "json.dumps(results," not in text


def test_peers_run_as_documented_and_simulations_are_called_so(load, scorer, monkeypatch):
    strategies = load("strategies")
    monkeypatch.setattr(scorer.model.config, "max_position_embeddings", 512)
    ways = {way.name: way for way in strategies.peers(scorer)}
    assert {name: (way.how, way.setting) for name, way in ways.items()} == {
        "evaluate's bleurt, its default": ("simulated", "padded to 128, batches of 16"),
        "official BLEURT, a 512-token checkpoint": ("simulated", "padded to 512, batches of 16"),
        "official BLEURT, length batching": ("simulated", "sorted, batches of 16"),
        "transformers, plain loop": ("run", "given order, batches of 32"),
    }
    lengths = [5, 30, 7] * 12
    assert [way.padded_tokens(lengths) for way in ways.values()] == [
        36 * 128,
        36 * 512,
        16 * 30 + 16 * 7 + 4 * 5,
        36 * 30,
    ]


@pytest.mark.parametrize("name", ["comet", "metricx"])
def test_peers_of_another_architecture_score_every_pair(load, scorer, monkeypatch, name):
    strategies = load("strategies")
    monkeypatch.setattr(strategies, "PIECES", 300)
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    monkeypatch.setattr(strategies, "XLM_R_LARGE", small)
    small = {"d_model": 32, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2, "d_kv": 16}
    monkeypatch.setattr(strategies, "MT5_LARGE", small)
    way = getattr(strategies, name)(scorer)
    scores = way.score(PAIRS)
    assert way.how == "random weights" and len(scores) == len(PAIRS) and all(map(math.isfinite, scores))


def test_random_weights_take_the_checkpoints_architecture(load, tmp_path, monkeypatch):
    scoring, strategies = load("scoring"), load("strategies")
    monkeypatch.setitem(scoring.SIZES, "base", (2, 64))
    encoder = make_tiny_encoder(tmp_path / "encoder", "mpnet")
    options = argparse.Namespace(size="base", seed=0, checkpoint=str(encoder))
    scorer = BleurtScorer(scoring.random_checkpoint(options, tmp_path / "made"), device="cpu", progress=False)
    config = scorer.model.config
    assert (type(scorer.model).__name__, config.num_hidden_layers, config.hidden_size, config.intermediate_size) == (
        "MPNetForSequenceClassification", 2, 64, 256,
    )  # fmt: skip
    assert (scorer.layout.separators, scorer.layout.max_length) == (2, 64)
    expected = strategies.ours("ours, exact", scorer, "float32").score(PAIRS)
    for way in strategies.peers(scorer):
        assert way.score(PAIRS) == pytest.approx(expected, abs=1e-5), way.name


def test_all_ways_of_the_same_model_agree(load, scorer):
    strategies = load("strategies")
    expected = strategies.ours("ours, exact", scorer, "float32").score(PAIRS)
    ways = strategies.peers(scorer)
    assert len(ways) >= 2
    for way in ways:
        assert way.score(PAIRS) == pytest.approx(expected, abs=1e-5), way.name


def test_bertscore_computes_in_float32_though_the_encoder_is_stored_in_float16(load, scorer, tmp_path):
    pytest.importorskip("bert_score")
    import torch
    from bert_score import BERTScorer
    from transformers import AutoModel

    scorer.model.base_model.half().save_pretrained(tmp_path)
    scorer.model.base_model.float()
    scorer.tokenizer.save_pretrained(tmp_path)
    assert AutoModel.from_pretrained(tmp_path).dtype == torch.float16
    scorers = []
    initialise = BERTScorer.__init__

    def remember(self, *arguments, **options):
        initialise(self, *arguments, **options)
        scorers.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BERTScorer, "__init__", remember)
        way = load("strategies").bert_score(str(tmp_path), scorer.model.config.num_hidden_layers, "cpu")
    assert {weight.dtype for weight in scorers[0]._model.parameters()} == {torch.float32}
    assert len(way.score(PAIRS)) == 3 and (way.how, way.setting) == (
        "run",
        f"float32, layer {scorer.model.config.num_hidden_layers}, its batches of 64",
    )


def test_bertscore_compares_the_layer_that_is_asked_for(load, scorer):
    pytest.importorskip("bert_score")
    options = argparse.Namespace(
        device="cpu", bertscore_layer=1, large_peers=False, only=["bert-score, the same encoder"]
    )
    (way,) = load("scoring").ways(options, str(scorer.folder))
    assert way.setting == "float32, layer 1, its batches of 64" and len(way.score(PAIRS)) == len(PAIRS)


def test_the_table_says_which_peer_ran_how(load, scorer, tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(
        "".join(json.dumps({"reference": reference, "candidate": candidate}) + "\n" for reference, candidate in PAIRS)
    )
    scoring, report = load("scoring"), load("report")
    options = argparse.Namespace(
        pairs=str(pairs), output="out", checkpoint=str(scorer.folder), size=None, sample=3, slow_sample=2, rounds=1,
        threads=1, device="cpu", only=["ours, exact", "transformers, plain loop"], seed=0, memory_of=None,
        large_peers=False, bertscore_layer=None,
    )  # fmt: skip
    measured = scoring.measure(options, options.checkpoint, scoring.sample(options))
    measured["memory_mb"] = {way["name"]: {"loaded": 1.0, "scoring": 2.0} for way in measured["ways"]}
    results = load("machine").write_result(tmp_path / "speed.json", "scoring", scoring.UNITS, measured)
    lines = report.table(results).splitlines()
    head = [cell.strip() for cell in next(line for line in lines if line.startswith("| way")).split("|")]
    rows = [
        dict(zip(head, (cell.strip() for cell in line.split("|")), strict=True))
        for line in lines
        if " | run | " in line
    ]
    assert {row["way"]: row["setting"] for row in rows} == {
        "transformers, plain loop": "given order, batches of 32",
        "ours, exact": "float32, no padding",
    }
    without = report.table({**results, "memory_mb": {}}).splitlines()  # as on a GPU
    assert [line.split("|")[-2].strip() for line in without if " | run | " in line] == ["", ""]
    assert lines[0] == f"`{results['command']}`" and lines[2].startswith(f"{scorer.folder.name}, ")


def test_choosing_compares_each_way_with_all_pairs(load, scorer):
    module = load("choosing")
    samples = ["the cat sat", "a cat sat", "the cat sat", "it rained", "no one came", "a dog sat on the mat"]
    rows = [{"candidates": samples * 2, "reference": "the cat sat on it"}] * 2
    results, signatures = module.measure(rows, scorer, exact_sample=1, slow_sample=1, judge="rouge")
    assert (results["segments"], results["samples_per_segment"], results["different_samples"]) == (2, 12, 5)
    exact, pruned, naive, by_chrf = results["ways"]
    assert exact["name"] == module.OURS and exact["pairs"] == 25 and exact["share_of_pairs"] == 25 / 144
    assert (exact["same_choice"], exact["loss"], naive["same_choice"], naive["loss"]) == (1.0, 0, 1.0, 0)
    assert naive["pairs"] == by_chrf["pairs"] == 144 and naive["segments"] == exact["segments"] == 1
    assert (pruned["segments"], pruned["compared"]) == (2, 1)
    assert pruned["pairs"] <= 25 and pruned["loss"] >= -1e-6
    assert set(results["quality"]) == {"the first sample", module.PRUNED, module.BY_CHRF}
    assert set(signatures) == {"judge"} and all(0 < row["judge"] <= 100 for row in results["quality"].values())
    assert all(way["cpu_seconds"] > 0 for way in results["ways"])


def test_the_page_on_choosing_shows_the_figures_of_its_results():
    docs = BENCHMARKS.parent / "docs"
    page = " ".join((docs / "how-to" / "choose.md").read_text(encoding="utf-8").split())
    results = json.loads((docs / "results" / "choosing-mini.json").read_text(encoding="utf-8"))
    for way in results["ways"]:
        same = "" if way["same_choice"] is None else f"{way['same_choice']:.0%}".replace("%", " %")
        share = f"{way['share_of_time']:.1%}".replace("%", " %")
        assert f"| {way['pairs']:.0f} | {way['cpu_seconds']:.1f} | {share} | {same} |".replace("  ", " ") in page
    for quality in results["quality"].values():
        assert f"| {quality['bleu']:.1f} | {quality['chrf']:.1f} | {quality['judge']:.1f} |" in page
