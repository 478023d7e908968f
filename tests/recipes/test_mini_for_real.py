"""The scripts from text to checkpoints, every command run for real: tiny models, made-up text, two steps each."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

from bleurt_repro import BleurtScorer
from bleurt_repro.training.results import Result
from tests.conftest import ROOT, make_tiny_tokenizer
from tests.forked_commands import commands_in
from tests.tiny_teachers import SENTENCES

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("sh") is None, reason="the recipe is a shell script")]

# Each word with two translations of it; "big" and "large" have one in common, and so sentences with one meaning.
WORDS = {
    "the": ("le", "der"), "big": ("grand", "gross"), "large": ("grand", "gross"), "small": ("petit", "klein"),
    "cat": ("chat", "Katze"), "dog": ("chien", "Hund"), "sees": ("voit", "sieht"), "likes": ("aime", "mag"),
    "red": ("rouge", "rot"), "bread": ("pain", "Brot"), "Tom": ("Tom", "Tom"), "Anna": ("Anna", "Anna"),
}  # fmt: skip
PEOPLE, VERBS, SIZES, THINGS = ("Tom", "Anna"), ("sees", "likes"), ("big", "large", "small"), ("cat", "dog", "bread")
STEPS = {"max_steps": 2, "save_steps": 2, "logging_steps": 1, "disable_tqdm": True}
CONFIGURATIONS = {
    "TEACHER_MASKED_LM": {**STEPS, "held_out_texts": 2, "max_length": 48, "max_texts": 100},
    "TEACHER_TRANSLATOR": {
        **STEPS, "vocabulary_size": 330, "width": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1,
        "batch_tokens": 256, "max_length": 32,
    },
    "TEACHER_ENTAILMENT": {**STEPS, "held_out_pairs": 6, "max_length": 48},
    "PRETRAIN": {**STEPS, "eval_steps": 2, "global_batch_size": 8, "validation_segments": 1},
    "FINETUNE": {**STEPS, "eval_steps": 2, "per_device_train_batch_size": 16, "learning_rate": 1e-3},
    "RECIPE": {"device": "cpu", "beam_size": 1, "max_masks": 2, "unit_segments": 2, "segments_per_part": 2},
}  # fmt: skip


def write_lines(path: Path, lines) -> None:
    text = "".join(f"{line}\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode())) if path.suffix == ".gz" else path.write_text(text)


def parallel_lines(place: int):
    """Every sentence of these words, and its translation into the first or second language."""
    for number, words in enumerate(itertools.product(PEOPLE, VERBS, ["the"], SIZES, THINGS)):
        source = ("tatoeba", "python-docs", "multi30k")[number % 3]
        split = "test" if number % 12 == 5 else "train"
        yield "\t".join([source, split, " ".join(words) + ".", " ".join(WORDS[word][place] for word in words) + "."])


def entailment_lines():
    sources = [
        "mnli-dev(m+mm)", "snli-dev", "cad-snli", "breaking-nli", "sick(train+?)", "sick2014", "joci-train",
        "anli-r1-dev(NC)", "anli-r2-dev(NC)", "anli-r3-dev(NC)",
    ]  # fmt: skip
    for source, number in itertools.product(sources, range(6)):
        for label, word in (("entailment", "an animal"), ("neutral", "a red cat"), ("contradiction", "no cat")):
            split = "test" if source == "breaking-nli" else "train"
            yield "\t".join([source, split, label, f"The cat number {number} of {source} sat.", f"There is {word}."])


def rating_lines():
    """Ratings of 2015 to 2018: six systems, of which the first leave out fewer words."""
    draw = random.Random(0)
    for year, lp, segment in itertools.product(range(2015, 2019), ("cs-en", "de-en"), range(35)):
        words = ["In", str(year), draw.choice(PEOPLE), draw.choice(VERBS), str(segment), draw.choice(THINGS), lp]
        for system in range(6):
            kept = [word for word in words if draw.random() > system / 8]
            yield json.dumps(
                {
                    "year": year,
                    "lp": lp,
                    "segment_id": segment,
                    "system": "abcdef"[system],
                    "source": f"Satz {segment} von {year}, {lp}",
                    "reference": " ".join(words) + ".",
                    "candidate": " ".join(kept) + ".",
                    "score": 0.5 - system / 4 + draw.random() / 10,
                    "raw_score": 90.0 - 12 * system,
                    "n_annotations": 2,
                }
            )


def webnlg_lines():
    for number, team in itertools.product(range(8), ("adapt", "baseline", "melbourne")):
        words = ["the", "cat", "sat", "on", "mat", str(number)]
        length = 2 + len(team) // 2
        yield json.dumps(
            {
                "input_id": number + 1,
                "mr": f"{number} | is | x",
                "team": team,
                "candidate": " ".join(words[:length]),
                "references_eval": [" ".join(words)],
                "fluency": 1 + length / 4 + number / 100,
                "grammar": 1 + length / 4,
                "semantics": 3 - length / 4 + number / 50,
            }
        )


def make_data(folder: Path) -> Path:
    for name in ("wmt", "webnlg"):
        (folder / name).mkdir(parents=True)
    write_lines(folder / "wiki.tsv.gz", (f"{i}\tTitle {i}\t{text}" for i, text in enumerate(SENTENCES)))
    write_lines(folder / "en-fr.tsv.gz", parallel_lines(0))
    write_lines(folder / "en-de.tsv.gz", parallel_lines(1))
    write_lines(folder / "nli.tsv.gz", entailment_lines())
    write_lines(folder / "wmt" / "ratings.jsonl", rating_lines())
    write_lines(folder / "webnlg" / "ratings.jsonl", webnlg_lines())
    return folder


def make_encoder(folder: Path, width: int) -> str:
    """A BERT of two layers with random weights."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(width)
    tokenizer = make_tiny_tokenizer(folder)
    sizes = {"hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=256, **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """The folder that mini.sh worked in, and what runs another script in it."""
    folder = tmp_path_factory.mktemp("chain")
    settings = {
        "DATA": str(make_data(folder / "data")),
        "WORK": str(folder / "work"),
        "ENCODER": make_encoder(folder / "encoder", 32),
        "LARGER": make_encoder(folder / "larger", 48),
        "LAYER": "1",
        "SEGMENTS": "4",
        "SEEDS": "1",
        "DIVISOR": "500",
    }
    for name, content in CONFIGURATIONS.items():
        settings[name] = str(folder / f"{name}.yaml")
        Path(settings[name]).write_text(yaml.safe_dump(content))
    with commands_in(folder / "server") as programs:

        def run(script: str, **own: str) -> None:
            environment = {**os.environ, **settings, **own, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
            words = ["sh", str(ROOT / "recipes" / script)]
            done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=1800)
            logs = "".join(log.read_text() for log in (folder / "work").rglob("*.log"))
            assert done.returncode == 0, f"{logs}{done.stdout}{done.stderr}"

        run("mini.sh")
        yield folder / "work", run


def test_the_whole_chain_makes_a_checkpoint_and_its_figures(chain):
    work, _ = chain
    tuned = [path.parent for path in work.rglob("results.json") if json.loads(path.read_text())["kind"] == "finetune"]
    assert len(tuned) == 2 + 2 + 1 + 5 * 2  # protocol models, taught ones, the larger teacher, five rounds of two
    lengths = [json.loads((folder / "results.json").read_text()) for folder in tuned]
    # the two steps of the tests' settings, but where the script names passes
    assert all(found["steps"] == 2 or found["epochs"] in (1, 2) for found in lengths)

    shipped = work / "embedded" / "bleurt-repro-mini"
    scorer = BleurtScorer(str(shipped))
    assert scorer.calibration is not None and scorer.layout.max_length == 256
    for name in ("sanity", "agreement", "webnlg"):
        results = Result.read(work / "embedded" / name)
        assert results.kind == name and results.signatures["bleurt-repro-mini"] == scorer.signature
    # weights are those of the last two runs, in half precision
    opened = [load_file(work / "embedded" / run / "model.safetensors") for run in ("run-71", "run-72")]
    name = "classifier.weight"
    mean = (opened[0][name].float() + opened[1][name].float()) / 2
    torch.testing.assert_close(load_file(shipped / "model.safetensors")[name], mean.half())


@pytest.mark.long
def test_the_base_size_takes_over_the_pairs_and_makes_a_checkpoint_in_float8(chain):
    work, run = chain
    encoder = make_encoder(work.parent / "base-encoder", 48)
    run("base.sh", SEEDS="1 2", ENCODER=encoder)
    shipped = work / "base" / "bleurt-repro-base"
    scorer = BleurtScorer(str(shipped))
    assert scorer.calibration is not None and scorer.layout.max_length == 256
    kinds = {tensor.dtype for path in shipped.glob("*.safetensors") for tensor in load_file(path).values()}
    assert torch.float8_e4m3fn in kinds
    for name in ("sanity", "adversarial", "agreement", "webnlg"):
        assert Result.read(work / "base" / name).signatures["bleurt-repro-base"] == scorer.signature
    for year in (2017, 2018):
        rows = Result.read(work / "base" / f"agreement-{year}")["rows"]
        assert len([row for row in rows if row["kind"] == "checkpoint"]) == 2 * 3  # two seeds and their mean, twice

    # it learns again: labels of both models on its own scale, made pairs with the scores they have, empty candidates with less
    run("base_again.sh", ENCODER=encoder, FROZEN="1")
    again = work / "base-again"
    held = {json.loads(line)["reference"] for line in (work / "base" / "held_out.jsonl").read_text().splitlines()}
    for seed in (1, 2):
        rows = [json.loads(line) for line in (again / f"train-{seed}.jsonl").read_text().splitlines()]
        assert {row["score"] for row in rows if row["system"] == "anchor: empty"} == {-2.6}
        assert not held & {row["reference"] for row in rows if row["system"] == "label"}
        others = [json.loads(line) for line in (again / f"train-{seed}-scored.jsonl").read_text().splitlines()]
        own = BleurtScorer(str(shipped), dtype="bfloat16").score_rows(others)
        assert [row["score"] for row in others] == pytest.approx(own, abs=0.05)
    own = [float(line) for line in (again / "outputs.txt").read_text().split()]
    labels = [row["score"] for row in rows if row["system"] == "label"]
    assert labels and min(own) - 2 < min(labels) and max(labels) < max(own) + 2

    # last passes: the lower layer stays as it was
    shipped = again / "bleurt-repro-base"
    run("base_copies.sh", ENCODER=encoder, FROZEN="1", START=str(shipped))
    copies = work / "base-copies" / "bleurt-repro-base"
    drawn_from, drawn = (
        {json.loads(line)["system"] for line in (work / "base-copies" / f"{name}.jsonl").read_text().splitlines()}
        for name in ("train", "train-151")
    )
    assert {"anchor: identical", "anchor: empty", "label"} <= drawn_from
    assert {"anchor: identical", "anchor: empty", "contrast: repeated"} <= drawn
    last = [json.loads(line) for line in (work / "base-copies" / "train-181.jsonl").read_text().splitlines()]
    assert {row["score"] for row in last if row["system"] == "anchor: identical"} == {2.1}
    turned, scored = (
        [json.loads(line) for line in (work / "base-copies" / f"turned{end}.jsonl").read_text().splitlines()]
        for end in ("", "-scored")
    )
    given = BleurtScorer(str(work / "base-copies" / "between"), dtype="bfloat16").score_rows(turned)
    lowered = [min(score, (score + row["score"]) / 2) for row, score in zip(turned, given, strict=True)]
    assert [row["score"] for row in scored] == pytest.approx(lowered, abs=0.05)
    weights, before = (
        {name: tensor.float() for path in folder.glob("*.safetensors") for name, tensor in load_file(path).items()}
        for folder in (copies, shipped)
    )
    lower, upper = ([name for name in before if f"layer.{number}." in name] for number in (0, 1))
    assert lower and all(torch.equal(weights[name], before[name]) for name in lower)
    assert not all(torch.equal(weights[name], before[name]) for name in upper)
    assert Result.read(work / "base-copies" / "adversarial").signatures["bleurt-repro-base"] != scorer.signature

    # the ends of the scale: the head stays as it was, too
    run("base_ends.sh", ENCODER=encoder, FROZEN="1", DEEPER="0")
    ends = work / "base-ends"
    first, moved, paraphrased = (
        [json.loads(line) for line in (ends / f"{name}.jsonl").read_text().splitlines()]
        for name in ("train", "train-205", "train-209")
    )
    assert {row["score"] for row in first if row["candidate"] == ""} == {-2.6}
    assert {"anchor: identical", "anchor: empty", "anchor: unrelated"} <= {row["system"] for row in first}
    assert "nli: turned" in {row["system"] for row in moved}
    # entailed hypotheses and paraphrases have more than the checkpoint before gives them, contradicted ones less
    by = {"nli: entailment": 0.1, "nli: contradiction": -0.5, "contrast: paraphrase kept": 0.2}
    raised = [row for row in moved + paraphrased if row["system"] in by]
    assert {row["system"] for row in raised} == {*by}
    given = BleurtScorer(str(copies), dtype="bfloat16").score_rows(raised)
    expected = [score + by[row["system"]] for row, score in zip(raised, given, strict=True)]
    assert [row["score"] for row in raised] == pytest.approx(np.clip(expected, -2.0, 1.5), abs=0.05)
    kept, turned = (
        {row["reference"]: row["score"] for row in paraphrased if row["system"] == f"contrast: paraphrase {kind}"}
        for kind in ("kept", "turned")
    )
    assert all(turned[text] <= kept[text] - 0.2 - 0.7 + 0.001 for text in kept)
    # what stands near a copy gets no more than at first
    lowered = [json.loads(line) for line in (ends / "train-217.jsonl").read_text().splitlines()]
    assert "contrast: repeated" in {row["system"] for row in lowered}
    near = [json.loads(line) for line in (ends / "near-217-scored.jsonl").read_text().splitlines()]
    given = BleurtScorer(str(copies), dtype="bfloat16").score_rows(near)
    assert all(row["score"] < score + 0.05 for row, score in zip(near, given, strict=True))
    assert {(row["reference"], row["candidate"]) for row in near} <= {
        (row["reference"], row["candidate"]) for row in lowered
    }
    # the last two passes read all kinds at once
    for number in (231, 233):
        rows = [json.loads(line) for line in (ends / f"train-{number}.jsonl").read_text().splitlines()]
        assert {"anchor: identical", "anchor: empty", "contrast: repeated"} <= {row["system"] for row in rows}
    # four passes of the upper layers, then one of the lower ones, too
    fourth, last = (
        {name: tensor.float() for path in folder.glob("*.safetensors") for name, tensor in load_file(path).items()}
        for folder in (ends / "mean-209", ends / "bleurt-repro-base")
    )
    head, embeddings = ({name for name in weights if part in name} for part in ("classifier", "embeddings"))
    for after, stay, move in ((fourth, head | embeddings | {*lower}, upper), (last, head, lower)):
        same = {name for name in weights if torch.equal(weights[name], after[name])}
        assert head and embeddings and stay <= same and not same.issuperset(move)
    hashes = {
        Result.read(folder / "adversarial").signatures["bleurt-repro-base"] for folder in (ends, work / "base-copies")
    }
    assert len(hashes) == 2


@pytest.mark.long
def test_the_larger_model_teaches_itself_and_then_the_small_one(chain):
    work, run = chain
    run("taught.sh", SEEDS="1 2")
    taught = work / "taught"
    rows = [json.loads(line) for line in (taught / "all-train.jsonl").read_text().splitlines()]
    held = {
        json.loads(line)["reference"]
        for side in ("validation", "test")
        for line in (work / "wmt2017" / f"{side}.jsonl").read_text().splitlines()
    }
    assert rows and not held & {row["reference"] for row in rows}
    parts = [
        [json.loads(line) for line in (taught / f"short-{part}.jsonl").read_text().splitlines()] for part in (1, 2)
    ]
    rated = [(row["reference"], row["candidate"]) for row in rows if row["system"] != "label"]
    for part in parts:
        assert sorted((r["reference"], r["candidate"]) for r in part if r["system"] != "label") == sorted(rated)
    names = [row["name"] for row in Result.read(taught / "agreement")["rows"]]
    assert names == ["teacher-1", "teacher-2", "teacher", "three-last-4", "three-last-5", "three"]
    three, *runs = (
        load_file(taught / name / "model.safetensors")["classifier.weight"].float()
        for name in ("three", "three-last-4", "three-last-5")
    )
    torch.testing.assert_close(three, sum(runs) / 2)


@pytest.mark.long
def test_the_small_model_learns_again_from_the_larger_one_and_what_a_copy_is(chain):
    work, run = chain
    start, larger = work / "embedded" / "bleurt-repro-mini", work / "embedded" / "run-71"
    run("mini_again.sh", LARGER=str(larger), FEWEST_TEXTS="1")
    again = work / "again"
    # labels are the larger model's scores, and no pair of a held-out reference has one
    rows = [json.loads(line) for line in (again / "outputs-scored.jsonl").read_text().splitlines()]
    scores = BleurtScorer(str(larger), dtype="bfloat16").score_rows(rows)
    assert [row["score"] for row in rows] == pytest.approx(scores, abs=0.05)
    held = {json.loads(line)["reference"] for line in (work / "embedded" / "held_out.jsonl").read_text().splitlines()}
    assert rows and not held & {row["reference"] for row in rows}
    # what is between the start and the first pass is their mean
    between, first, before = (
        load_file(folder / "model.safetensors")["classifier.weight"].float()
        for folder in (again / "between", again / "first", start)
    )
    torch.testing.assert_close(between, (first + before) / 2)
    shipped = BleurtScorer(str(again / "bleurt-repro-mini"))
    assert shipped.calibration is not None and shipped.layout.max_length == 256
    for name in ("sanity", "adversarial", "agreement", "webnlg"):
        assert Result.read(again / name).signatures["bleurt-repro-mini"] == shipped.signature

    run("mini_copies.sh", LARGER=str(larger), LARGER_ENCODER=str(work.parent / "larger"))
    copies = work / "copies"
    labelled = [json.loads(line) for line in (copies / "pairs.jsonl").read_text().splitlines()]
    assert labelled and not held & {row["reference"] for row in labelled}
    for seed in (111, 121, 122):
        rows = [json.loads(line) for line in (copies / f"train-{seed}.jsonl").read_text().splitlines()]
        kinds = {row["system"] for row in rows}
        assert {"anchor: identical", "anchor: empty", "contrast: repeated", "contrast: roles turned"} <= kinds
    shipped = BleurtScorer(str(copies / "bleurt-repro-mini"))
    assert shipped.calibration is not None and shipped.layout.max_length == 256
    for name in ("sanity", "adversarial", "agreement", "webnlg"):
        assert Result.read(copies / name).signatures["bleurt-repro-mini"] == shipped.signature

    run("mini_last.sh", LARGER=str(larger), LARGER_ENCODER=str(work.parent / "larger"))
    last = work / "last"
    labelled = [json.loads(line) for line in (last / "outputs.jsonl").read_text().splitlines()]
    assert labelled and not held & {row["reference"] for row in labelled}
    others = [json.loads(line) for line in (last / "others-161-scored.jsonl").read_text().splitlines()]
    assert [row["score"] for row in others] == pytest.approx(shipped.score_rows(others), abs=1e-4)
    kinds = {json.loads(line)["system"] for line in (last / "train-161.jsonl").read_text().splitlines()}
    assert {"label", "anchor: identical", "anchor: empty", "contrast: repeated"} <= kinds
    shipped = BleurtScorer(str(last / "bleurt-repro-mini"))
    assert shipped.calibration is not None and shipped.layout.max_length == 256
    for name in ("sanity", "adversarial", "agreement", "webnlg"):
        assert Result.read(last / name).signatures["bleurt-repro-mini"] == shipped.signature
