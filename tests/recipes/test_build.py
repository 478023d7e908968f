"""The pipeline that builds checkpoints: a trial of the recipe on small data, resuming, and the mixture."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
import yaml
from scipy.stats import spearmanr, zscore

import build
import mixture
from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main as run_command
from bleurt_repro.training.metrics.baselines import find_baseline
from tests import tiny_robertas
from tests.conftest import ROOT, make_tiny_scorer, make_tiny_tokenizer
from tests.tiny_teachers import SENTENCES

WORDS = "the cat dog sees likes red bread big small Tom Anna house on in a garden".split()


def rating_rows(year, lps, segments, systems="abcdef", **columns):
    """Ratings of systems of which the first leave out fewer words, under the names of the public collections."""
    draw = random.Random(f"{year}{lps}")
    for lp, segment in itertools.product(lps, range(segments)):
        reference = " ".join(draw.choices(WORDS, k=7)) + f" {year} {segment} {lp}."
        for system in systems:
            words = [word for word in reference.split() if draw.random() > systems.index(system) / 8]
            quality = 0.5 - systems.index(system) / 4 + draw.random() / 10
            yield {
                "year": year,
                "lp": lp,
                "system": system,
                "segment_id": segment + 1,
                "source": f"Satz {segment} von {year}, {lp}",
                "reference": reference,
                "candidate": " ".join(words) or "the",
                "raw_score": 90.0 - 12 * systems.index(system),
                "z_score": quality,
                "n_annot": 2,
                **columns,
            }


def write_rows(path: Path, rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))


def parallel_lines():
    for number, words in enumerate(itertools.product(("Tom", "Anna"), ("sees", "likes"), ("big", "small"), WORDS[:3])):
        source = ("tatoeba", "python-docs", "multi30k")[number % 3]
        split = "test" if number % 6 == 4 else "train"
        yield f"{source}\t{split}\t{words[0]} {words[1]} the {words[2]} {words[3]} {number % 7}.\tsatz {' '.join(words[::2])}.\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Small data in the form that the recipe's comments describe."""
    folder = tmp_path_factory.mktemp("data")
    for year in (2015, 2016, 2017, 2018, 2021):
        write_rows(folder / "wmt" / f"{year}.jsonl.gz", rating_rows(year, ("cs-en", "de-en"), 40))
    splits = {"train": 20, "dev": 20, "test": 20}
    rows = [row for s, n in splits.items() for row in rating_rows(2022, (f"{s}-en",), 3 * n, split=s)]
    write_rows(folder / "wmt22.jsonl.gz", rows)
    pairs = ("et-en", "ne-en", "ro-en", "ru-en", "si-en")
    splits = ("train", "test")
    write_rows(folder / "mlqe_pe.jsonl.gz", [row for s in splits for row in rating_rows(2020, pairs, 8, split=s)])
    write_rows(folder / "captions.jsonl.gz", rating_rows(2019, ("en-en",), 10, subset="multiple-annotator"))
    write_rows(folder / "mqm21.jsonl.gz", rating_rows(2021, ("zh-en",), 40, split="test"))
    rows = [
        {
            "input_id": number + 1,
            "mr": f"{number} | is | x",
            "team": team,
            "candidate": " ".join(WORDS[: 3 + len(team) // 2]),
            "references_eval": [" ".join(WORDS[:7])],
            **{aspect: 1 + len(team) / 6 + number / 50 for aspect in ("fluency", "grammar", "semantics")},
        }
        for number, team in itertools.product(range(8), ("adapt", "baseline", "melbourne"))
    ]
    write_rows(folder / "webnlg" / "ratings.jsonl.gz", rows)
    wiki = "".join(f"{number}\tTitle\t{text}\n" for number, text in enumerate(SENTENCES))
    (folder / "wiki.tsv.gz").write_bytes(gzip.compress(wiki.encode()))
    for name in ("en-de", "en-fr"):
        (folder / f"{name}.tsv.gz").write_bytes(gzip.compress("".join(parallel_lines()).encode()))
    (folder / "nli.tsv.gz").write_bytes(gzip.compress("\n".join([*entailment_lines(), ""]).encode()))
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A BERT of two layers with random weights."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("encoders") / "tiny"
    torch.manual_seed(0)
    tokenizer = make_tiny_tokenizer(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    model = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=256, **sizes))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def entailment_lines():
    sources = [
        "mnli-dev(m+mm)", "snli-dev", "breaking-nli", "sick(train+?)", "sick2014", "joci-train",
        "anli-r1-dev(NC)", "anli-r2-dev(NC)", "anli-r3-dev(NC)", "cad-snli",
    ]  # fmt: skip
    for source, number in itertools.product(sources, range(10)):
        for label, word in (("entailment", "an animal"), ("neutral", "a red cat"), ("contradiction", "no cat")):
            split = "test" if source == "breaking-nli" else "train"
            yield "\t".join([source, split, label, f"The cat number {number} of {source} sat.", f"There is {word}."])


class InProcess:
    """A process of `bleurt-repro` that runs here: starting Python and torch anew takes most of a trial's time."""

    commands: list[str] = []

    def __init__(self, words, stdout, **_):
        assert words[:3] == [sys.executable, "-m", "bleurt_repro"]
        self.commands.append(" ".join(words[3:5]))
        try:
            run_command(words[3:])
        except SystemExit as exit:
            self.code = exit.code
            stdout.write(str(exit))

    def wait(self):
        return self.code or 0


@pytest.fixture
def in_process(monkeypatch):
    InProcess.commands = []
    monkeypatch.setattr(build.subprocess, "Popen", InProcess)
    return InProcess.commands


def test_trials_build_base_and_from_its_scores_mini(data, encoder, tmp_path, in_process):
    work = tmp_path / "base"
    # In bfloat16 a tiny model may score all texts alike, which no correlation is measured of.
    settings = [f"encoder={encoder}", "layer=1", "frozen=1", "dtype=float32"]
    build.main("base", data, work, trial=True, set_=settings)
    base = work / "checkpoint" / "bleurt-repro-base"
    card = (base / "README.md").read_text(encoding="utf-8")
    assert "MQM 2021" in card and "Tatoeba" in card
    record = json.loads((work / "build.json").read_text())
    stages = build.read_recipe(ROOT / "recipes" / "base.yaml")["stages"]
    assert [stage["stage"] for stage in record["stages"]] == [stage["name"] for stage in stages]
    assert all(stage["finished"] and stage["seconds"] >= 0 for stage in record["stages"])
    assert set(record["stages"][0]["data"]) == {"wmt"}

    # The same command again runs nothing.
    in_process.clear()
    build.main("base", data, work, trial=True, set_=settings)
    assert in_process == []

    work = tmp_path / "mini"
    build.main("mini", data, work, trial=True, set_=[*settings, f"teacher={base}"])
    mini = work / "checkpoint" / "bleurt-repro-mini"
    assert -3 < BleurtScorer(mini).score(references=["the cat"], candidates=["a cat"])[0] < 3
    results = json.loads((work / "measure" / "mqm21" / "results.json").read_text())
    assert [row["name"] for row in results["rows"]][:2] == ["bleurt-repro-mini", "bleurt-repro-base"]
    rows = [row for part in parts(work / "mixture") for row in part]
    texts = {f"{name}s": [row[name] for row in rows] for name in ("reference", "candidate")}
    scores = BleurtScorer(base, dtype="bfloat16").score(**texts)
    assert [row["score"] for row in rows] == pytest.approx(scores, abs=0.02)


@pytest.mark.parametrize(("parts", "members"), [("1", "{runs}/1"), ("2", "{runs}/1 {runs}/2")])
def test_each_part_has_a_run_and_all_runs_are_averaged(tmp_path, parts, members):
    recipe = build.read_recipe(ROOT / "recipes" / "base.yaml")
    stages = build.Build(recipe, tmp_path, tmp_path, 1, {"parts": parts}).stages
    assert [f"--output-dir {{out}}/{part + 1} " in run for part, run in enumerate(stages["runs"]["side_by_side"])] == [
        True
    ] * int(parts)
    assert stages["checkpoint"]["run"][0].startswith(f"average {members} --scale")
    assert stages["pretrained"]["run"].startswith(f"average {members.replace('runs', 'pretraining')} --output")


@pytest.mark.long
def test_a_trial_of_multi_scores_without_references(data, tmp_path, monkeypatch):
    encoder = tmp_path / "encoder"
    monkeypatch.setitem(tiny_robertas.SIZES, "max_position_embeddings", 300)
    tiny_robertas.make_tiny_encoder(encoder, "xlm-roberta")
    data = shutil.copytree(data, tmp_path / "data")
    pairs = ("en-de", "en-zh")
    write_rows(data / "wmt17_from_en.jsonl.gz", rating_rows(2017, (*pairs, "en-lv"), 60))
    write_rows(data / "wmt18_from_en.jsonl.gz", rating_rows(2018, pairs, 800))
    write_rows(data / "wmt17_to_en.jsonl.gz", rating_rows(2017, ("de-en",), 40))
    write_rows(data / "flores.jsonl.gz", rating_rows(2021, ("bn-hi",), 10))
    write_rows(data / "mqm21-en-de.jsonl.gz", rating_rows(2021, ("en-de",), 20))
    years = {2020: "train", 2021: "test"}  # other texts
    rows = [row for year, split in years.items() for row in rating_rows(year, ("en-de", "et-en"), 40, split=split)]
    write_rows(data / "mlqe_pe.jsonl.gz", rows)
    settings = [f"encoder={encoder}", "layer=1", "frozen=1", "words=--no-words"]
    build.main("multi", data, tmp_path / "work", trial=True, set_=settings)
    scorer = BleurtScorer(tmp_path / "work" / "checkpoint" / "bleurt-repro-multi")
    scores = [
        scorer.score(candidates=["the cat"], **texts)[0]
        for texts in (
            {"references": ["a cat"]},
            {"sources": ["die Katze"]},
            {"references": ["a cat"], "sources": ["x"]},
        )
    ]
    assert len(set(scores)) == 3


def test_a_recipe_that_extends_another_has_its_stages_and_other_settings():
    base, mini = (build.read_recipe(ROOT / "recipes" / f"{name}.yaml") for name in ("base", "mini"))
    assert mini["stages"] == base["stages"]
    assert set(mini["settings"]) == set(base["settings"]) and mini["settings"]["name"] == "bleurt-repro-mini"


def test_a_command_that_fails_stops_the_build_which_then_continues(data, tmp_path, in_process):
    recipe = tmp_path / "recipe.yaml"
    stages = [
        {"name": "roles", "run": "data roles --pairs {400} --output {out}/pairs.jsonl"},
        {"name": "scores", "run": "score --pairs {roles}/nothing.jsonl --output {out}/scores.txt"},
    ]
    recipe.write_text(yaml.safe_dump({"settings": {}, "stages": stages}))
    with pytest.raises(ChildProcessError, match="stage scores failed: see .*scores.log"):
        build.main(str(recipe), data, tmp_path / "work", trial=True)
    assert in_process == ["data roles", "score --pairs"]
    stages[1]["run"] = "data opposites --pairs 2 --output {out}/pairs.jsonl"
    recipe.write_text(yaml.safe_dump({"settings": {}, "stages": stages}))
    in_process.clear()
    build.main(str(recipe), data, tmp_path / "work", trial=True)
    assert in_process == ["data opposites"]
    assert len((tmp_path / "work" / "roles" / "pairs.jsonl").read_text().splitlines()) == 2  # 400, divided


def test_a_stage_is_run_again_when_a_local_file_of_its_settings_changes(data, tmp_path, in_process):
    recipe = tmp_path / "recipe.yaml"
    stages = [
        {"name": "roles", "run": "data roles --pairs 2 --output {out}/pairs.jsonl"},
        {"name": "scores", "run": "score --pairs {roles}/pairs.jsonl --checkpoint {checkpoint} --output {out}/s.txt"},
    ]
    recipe.write_text(yaml.safe_dump({"settings": {"checkpoint": "bleurt-repro-mini"}, "stages": stages}))
    folder = make_tiny_scorer(tmp_path / "tiny")
    for ran in (["data roles", "score --pairs"], []):
        in_process.clear()
        build.main(str(recipe), data, tmp_path / "work", set_=[f"checkpoint={folder}"])
        assert in_process == ran
    (folder / "README.md").write_text("another card")
    build.main(str(recipe), data, tmp_path / "work", set_=[f"checkpoint={folder}"])
    assert in_process == ["score --pairs"]


def test_as_a_command_of_its_own(data, tmp_path):
    command = [
        sys.executable,
        ROOT / "recipes" / "build.py",
        "mini",
        "--data",
        data,
        "--work",
        tmp_path,
        "--until",
        "wmt",
    ]
    run = subprocess.run([*map(str, command), "--trial"], capture_output=True, text=True)
    assert run.returncode == 2 and "--until wmt" in run.stderr and "wmt18" in run.stderr


def test_data_that_are_missing_are_named(tmp_path, in_process):
    with pytest.raises(FileNotFoundError, match=r"wmt is missing: the comments of the recipe say"):
        build.main("mini", tmp_path / "nothing", tmp_path / "work", trial=True)
    assert in_process == []


def test_a_folder_of_something_else_is_left_alone(data, tmp_path, in_process):
    (tmp_path / "wmt18").mkdir()
    (tmp_path / "wmt18" / "thesis.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="wmt18 was not written by this command"):
        build.main("mini", data, tmp_path, trial=True)
    assert (tmp_path / "wmt18" / "thesis.txt").exists()


def test_a_setting_that_the_recipe_has_not(data, tmp_path):
    with pytest.raises(typer.BadParameter, match="--set rate: expected one of name, encoder"):
        build.main("mini", data, tmp_path, set_=["rate=1"])


@pytest.fixture
def ratings_file(tmp_path):
    path = tmp_path / "ratings.jsonl.gz"
    write_rows(path, [*rating_rows(2017, ("cs-en",), 50), *rating_rows(2018, ("de-en",), 50)])
    return path


def mixture_of(path, never=(), **source):
    ratings = [{"name": "all", "kind": "crowd", "file": path, "rows": 200, **source}]
    return {
        "seed": 1, "parts": 2, "deviation": 0.6, "never": list(never), "ratings": ratings, "longer": 20,
    }  # fmt: skip


def parts(folder):
    return [
        [json.loads(line) for line in path.read_text().splitlines()] for path in sorted(folder.glob("part-*.jsonl"))
    ]


def test_ratings_are_on_one_scale_and_in_two_parts(ratings_file, tmp_path):
    mixture.write_mixture(mixture_of(ratings_file), tmp_path)
    first, second = parts(tmp_path)
    assert len(first) == len(second) == 110
    rated = [
        {(row["reference"], row["candidate"], row["score"]) for row in part if row["system"] == "rating"}
        for part in (first, second)
    ]
    assert [len(rows) for rows in rated] == [100, 100] and not rated[0] & rated[1]
    scores = [row["score"] for row in first + second if row["system"] == "rating"]
    assert np.mean(scores) == pytest.approx(0, abs=1e-3) and np.std(scores) == pytest.approx(0.6, abs=1e-2)
    assert {row["weight"] for row in first} == {0.6667}  # two judgements of a crowd: 2 / (2 + 1)


def test_references_of_test_sets_are_not_learnt(ratings_file, tmp_path):
    rows = mixture.read_rows(ratings_file)
    held_out = tmp_path / "held_out.jsonl"
    held_out.write_text("".join(json.dumps(row) + "\n" for row in rows[:300]))
    mixture.write_mixture(mixture_of(ratings_file, never=[held_out]), tmp_path)
    learnt = {row["reference"] for part in parts(tmp_path) for row in part if row["system"] == "rating"}
    assert learnt and not learnt & {row["reference"] for row in rows[:300]}


def test_pairs_get_the_scores_of_metrics(ratings_file, tmp_path):
    sources = [{"name": "all", "file": ratings_file, "first": 150, "rows": 100}]
    mixture.write_mixture(
        {"seed": 1, "parts": 2, "deviation": 0.6, "never": [], "labelled": sources, "metrics": ["chrf++", "sentbleu"]},
        tmp_path,
    )
    rows = [row for part in parts(tmp_path) for row in part]
    texts = [[row[name] for row in rows] for name in ("reference", "candidate")]
    scores = sum(zscore(find_baseline(name)(*texts).scores) for name in ("chrf++", "sentbleu"))
    assert [row["score"] for row in rows] == pytest.approx(0.6 * zscore(scores), abs=1e-4)
    assert {row["reference"] for row in rows} <= {row["reference"] for row in mixture.read_rows(ratings_file)[:150]}


def test_sources_or_references_are_left_out(ratings_file, tmp_path):
    settings = {"without": {"source": 0.4, "reference": 0.25}, "longer": 0}
    mixture.write_mixture({**mixture_of(ratings_file), **settings}, tmp_path)
    rows = [row for part in parts(tmp_path) for row in part]
    assert list(rows[0])[:3] == ["source", "reference", "candidate"]
    assert all(row["source"] or row["reference"] for row in rows)
    assert np.mean([not row["source"] for row in rows]) == pytest.approx(0.4, abs=0.1)
    assert np.mean([not row["reference"] for row in rows]) == pytest.approx(0.25, abs=0.1)


def test_candidates_lose_words_before_they_are_labelled():
    row, random = {"candidate": "a b c d e f"}, np.random.default_rng(0)
    texts = [mixture.with_dropped_words(row, 0.5, random)["candidate"] for _ in range(200)]
    assert all(text and set(text.split()) <= set("abcdef") for text in texts)
    assert 60 < sum(text != row["candidate"] for text in texts) < 120


def test_entailment_pairs_get_the_target_of_their_label(data, tmp_path):
    targets = {"entailment": 0.4, "contradiction": -0.6}
    sources = [{"name": "nli", "file": data / "nli.tsv.gz", "sources": ["snli-dev"], "targets": targets, "rows": 12}]
    mixture.write_mixture({"seed": 1, "parts": 1, "never": [], "constructed": sources}, tmp_path)
    [rows] = parts(tmp_path)
    assert {(row["candidate"], row["score"]) for row in rows} == {
        ("There is an animal.", 0.4),
        ("There is no cat.", -0.6),
    }
    assert all("snli-dev" in row["reference"] for row in rows)


def test_copies_of_references_have_a_target_of_their_own(ratings_file, tmp_path):
    sources = [{"name": "copies", "file": ratings_file, "first": 40, "copies": 1.5, "rows": 5}]
    mixture.write_mixture({"seed": 1, "parts": 1, "never": [], "constructed": sources}, tmp_path)
    [rows] = parts(tmp_path)
    references = {row["reference"] for row in rows}
    assert len(references) == 5 and references <= {row["reference"] for row in mixture.read_rows(ratings_file)[:40]}
    assert all((row["candidate"], row["score"]) == (row["reference"], 1.5) for row in rows)


def test_unrelated_texts_are_references_and_candidates_of_different_pairs(ratings_file, tmp_path):
    sources = [{"name": "copies", "file": ratings_file, "first": 40, "copies": 1.5, "rows": 5}]
    settings = {"seed": 1, "parts": 1, "never": [], "deviation": 0.5, "constructed": sources}
    mixture.write_mixture(settings, tmp_path)
    [without] = parts(tmp_path)
    summary = mixture.write_mixture({**settings, "unrelated": "7"}, tmp_path)
    [rows] = parts(tmp_path)
    unrelated = [row for row in rows if row["candidate"] != row["reference"]]
    assert len(unrelated) == 7 and {row["score"] for row in unrelated} == {mixture.LOST / 2}
    assert {row["candidate"] for row in unrelated} <= {row["candidate"] for row in without}
    assert len(rows) == 12 and all(row in rows for row in without)  # they change nothing else
    assert "unrelated texts | 7" in summary


def test_a_share_of_constructed_pairs_is_drawn(ratings_file, data, tmp_path):
    targets = {"entailment": 0.4, "contradiction": -0.6}
    pairs = [{"name": "nli", "file": data / "nli.tsv.gz", "sources": ["snli-dev"], "targets": targets, "rows": 12}]
    mixed = {**mixture_of(ratings_file), "constructed": pairs, "drawn": "40"}
    for share in ("0.1", "0.3"):
        summary = mixture.write_mixture({**mixed, "share": share}, tmp_path)
        rows = [row for part in parts(tmp_path) for row in part]
        assert len(rows) == 40 and np.mean(["snli-dev" in row["reference"] for row in rows]) == float(share)
        assert summary.endswith(f"{float(share):.1%}")


def test_targets_of_constructed_pairs_do_not_depend_on_length():
    random = np.random.default_rng(1)
    words = random.integers(3, 30, 4000)
    pairs = [{"reference": "cat " * n, "score": 0.8 if random.random() < 6 / (n + 6) else -0.4} for n in words]
    for rows in (pairs, mixture.balance_lengths(pairs, random)):
        correlation = spearmanr([len(row["reference"]) for row in rows], [row["score"] for row in rows]).statistic
        assert (abs(correlation) < 0.06) == (rows is not pairs)
    higher = [{**pair, "score": pair["score"] + 1} for pair in pairs]  # the mean may be any
    assert min(len(mixture.balance_lengths(rows, random)) for rows in (pairs, higher)) > 2000


def test_a_file_is_divided_by_segments(ratings_file):
    rows = mixture.read_rows(ratings_file)
    first, second = (mixture.select(rows, {"hashed": ["source", *limits]}) for limits in ((0, 0.6), (0.6, 1)))
    assert len(first) + len(second) == len(rows) and 0.4 < len(first) / len(rows) < 0.8
    assert not {row["source"] for row in first} & {row["source"] for row in second}


def test_a_source_with_too_few_rows(ratings_file, tmp_path):
    with pytest.raises(ValueError, match="the recipe asks for 200 rows, found 0"):
        mixture.write_mixture(mixture_of(ratings_file, where={"year": [2016]}), tmp_path)


def test_ratings_of_unseen_references_are_held_out(tmp_path):
    rows = [*rating_rows(2018, ("de-en",), 30), *rating_rows(2018, ("cs-en",), 30)]
    rows += [{**row, "z_score": row["z_score"] + 1} for row in rows[:6]]  # one candidate of two systems
    write_rows(tmp_path / "ratings.jsonl.gz", rows)
    source = {"file": tmp_path / "ratings.jsonl.gz", "rows": 20, "least_judgements": 2, "seed": 0}
    mixture.hold_out(source, tmp_path)
    drawn, held_out = (mixture.read_rows(tmp_path / f"{name}.jsonl") for name in ("drawn", "held_out"))
    assert sorted({row["lp"] for row in drawn}) == ["cs-en", "de-en"]
    assert len(drawn) == 20 and sum(row["lp"] == "cs-en" for row in drawn) == 10
    seen = {row["reference"] for row in drawn}
    assert held_out and not seen & {row["reference"] for row in held_out}
    assert len(held_out) == sum(row["reference"] not in seen for row in rows)
    mean = {}
    for row in rows:
        mean.setdefault((row["lp"], row["reference"], row["candidate"]), []).append(row["z_score"])
    assert all(
        row["score"] == pytest.approx(np.mean(mean[row["lp"], row["reference"], row["candidate"]])) for row in drawn
    )


def test_longer_texts_are_of_one_language_pair():
    rows = [
        {"lp": lp, "source": lp, "reference": f"{lp} {i}", "candidate": f"{lp} {i}", "score": 0.5, "weight": 1.0}
        for lp in ("en-de", "zh-en")
        for i in range(9)
    ]
    longer = mixture.join(rows, 60, np.random.default_rng(1))
    assert {len(set(f"{row['source']} {row['candidate']}".split()) & {"en-de", "zh-en"}) for row in longer} == {1}
    assert {row["source"].split()[0] for row in longer} == {"en-de", "zh-en"}
