"""RoBLEURT's layouts: token ids in the paper's format, training in each, and one clear error for what does not fit."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.forward.encoding import PairEncoder
from bleurt_repro.metric.layout import LAYOUTS, OPTIONAL, Layout, readable_positions, separators_of
from bleurt_repro.metric.loading.open import open_trainable
from bleurt_repro.training.finetune import training_layout
from tests.conftest import make_tiny_scorer, make_tiny_tokenizer
from tests.tiny_robertas import make_tiny_encoder
from tests.tiny_training import finetune

SOURCE, CANDIDATE, REFERENCE = "der Hund", "the dog", "the cat sat"
BOS, EOS = 0, 2


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoders")
    return {name: make_tiny_encoder(folder / name, name) for name in ("roberta", "xlm-roberta", "mpnet")}


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "mpnet"])
@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("robleurt-src", (SOURCE, CANDIDATE, REFERENCE)),
        ("robleurt-nosrc", (CANDIDATE, REFERENCE)),
        ("reference-free", (SOURCE, CANDIDATE)),
        ("bleurt", (REFERENCE, CANDIDATE)),
    ],
)
def test_token_ids_are_in_the_format_of_the_paper(encoders, family, name, texts):
    model, tokenizer = open_trainable(encoders[family])
    layout = training_layout(model, tokenizer, name=name)
    encoder = PairEncoder(tokenizer, layout)
    tokens = encoder.tokenize(texts)
    # <s> src </s> </s> hyp </s> </s> ref </s> (RoBLEURT, equations 1 and 2)
    expected = [BOS]
    for i, text in enumerate(texts):
        expected += [*([EOS] if i else []), *tokenizer(text, add_special_tokens=False)["input_ids"], EOS]
    assert list(encoder.encode([tokens[text] for text in texts]).ids) == expected
    if len(texts) == 2:  # the tokenizer's own input of two texts
        assert tokenizer(*texts)["input_ids"] == expected
    assert (layout.separators, layout.max_length) == (2, 64)


def test_bert_has_one_separator(tmp_path):
    assert separators_of(make_tiny_tokenizer(tmp_path)) == 1


@pytest.mark.parametrize("family", ["xlm-roberta", "mpnet"])
def test_positions_that_begin_after_the_padding(encoders, family):
    model, _ = open_trainable(encoders[family])
    assert (model.config.max_position_embeddings, readable_positions(model.config)) == (66, 64)
    model(torch.full((1, 64), 5))
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, 65), 5))


@pytest.mark.parametrize(("max_length", "message"), [(65, "more than the 64 tokens"), (64, None)])
def test_the_longest_input(encoders, max_length, message):
    model, tokenizer = open_trainable(encoders["roberta"])
    if message is None:
        assert training_layout(model, tokenizer, max_length).max_length == max_length
    else:
        with pytest.raises(ValueError, match=message):
            training_layout(model, tokenizer, max_length)


def test_a_recorded_layout_must_agree(tiny_source_scorer):
    model, tokenizer = open_trainable(tiny_source_scorer)
    assert training_layout(model, tokenizer, name="robleurt-src") == training_layout(model, tokenizer)
    with pytest.raises(ValueError, match=r"made to read source, candidate, reference, but layout robleurt-nosrc is"):
        training_layout(model, tokenizer, name="robleurt-nosrc")
    with pytest.raises(
        ValueError, match=r"but layout unified is source \(optional\), candidate, reference \(optional\)"
    ):
        training_layout(model, tokenizer, name="unified")


def ratings(path, reference=True):
    words = "the cat sat on mat it rains dog".split()
    records = [
        {
            "source": f"der {a}",
            "candidate": f"the {b}",
            "score": float(a == b),
            **({"reference": f"the {a}"} if reference else {}),
        }
        for a in words
        for b in words
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


TEXTS = {"references": [REFERENCE], "sources": [SOURCE]}


@pytest.mark.parametrize(
    ("family", "name"),
    [("xlm-roberta", "robleurt-src"), ("roberta", "robleurt-nosrc"), ("xlm-roberta", "reference-free")],
)
def test_training_records_the_layout_and_the_scorer_reads_it(encoders, tmp_path, family, name):
    file = ratings(tmp_path / "ratings.jsonl", reference=name != "reference-free")
    words = ["--model", encoders[family], "--train_file", file, "--validation_ratio", "0.3", "--output_dir"]
    words += [tmp_path / "out", "--layout", name, "--max_steps", "2", "--eval_steps", "2", "--save_steps", "2"]
    words += ["--per_device_train_batch_size", "8", "--disable_tqdm", "true"]
    finetune(list(map(str, words)))
    scorer = BleurtScorer(str(tmp_path / "out"))
    assert scorer.layout == Layout(LAYOUTS[name], 64, 2)
    arguments = {role: value for role, value in TEXTS.items() if role.removesuffix("s") in LAYOUTS[name]}
    assert len(scorer.score(candidates=[CANDIDATE], **arguments)) == 1


def test_a_layout_of_no_name(encoders, tmp_path):
    with pytest.raises(ValueError, match="layout must be one of bleurt, robleurt-src"):
        finetune(
            ["--model", str(encoders["roberta"]), "--train_file", "x.jsonl", "--output_dir", "o", "--layout", "src"]
        )


@pytest.fixture(scope="module")
def scorers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layouts")
    return {
        name: BleurtScorer(str(make_tiny_scorer(folder / name, inputs=inputs, optional=OPTIONAL.get(name, ()))))
        for name, inputs in LAYOUTS.items()
    }


@pytest.mark.parametrize(
    ("name", "texts", "message"),
    [
        ("robleurt-src", ["references"], "robleurt-src reads the source of each candidate: give sources"),
        ("robleurt-src", ["sources"], "robleurt-src reads the reference of each candidate: give references"),
        ("robleurt-nosrc", ["references", "sources"], "robleurt-nosrc reads no sources: leave sources out"),
        ("bleurt", ["references", "sources"], "bleurt reads no sources: leave sources out"),
        ("bleurt", [], "bleurt reads the reference of each candidate: give references"),
        ("reference-free", ["references", "sources"], "reference-free reads no references: leave references out"),
        ("reference-free", [], "reference-free reads the source of each candidate: give sources"),
        ("unified", [], "unified reads a reference, a source, or both: give references"),
    ],
)
def test_inputs_that_do_not_fit(scorers, name, texts, message):
    with pytest.raises(ValueError, match=message):
        scorers[name].score(candidates=[CANDIDATE], **{role: TEXTS[role] for role in texts})


def test_reference_free_on_the_command_line(scorers, tmp_path, capsys):
    from bleurt_repro.cli import main as run

    scorer = scorers["reference-free"]
    expected = scorer.score(sources=[SOURCE, "Hi"], candidates=[CANDIDATE, "bye"])
    (tmp_path / "src.txt").write_text(f"{SOURCE}\nHi\n")
    (tmp_path / "hyp.txt").write_text(f"{CANDIDATE}\nbye\n")
    records = [{"source": SOURCE, "candidate": CANDIDATE}, {"source": "Hi", "candidate": "bye"}]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for words in (
        ["--sources", str(tmp_path / "src.txt"), "--candidates", str(tmp_path / "hyp.txt")],
        ["--pairs", str(tmp_path / "pairs.jsonl")],
    ):
        with pytest.raises(SystemExit) as ended:
            run(["score", "--checkpoint", str(scorer.folder), *words])
        assert ended.value.code == 0
        printed = [float(line) for line in capsys.readouterr().out.split()]
        assert printed == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"source": "Hi", "candidate": "bye"}, "reads the reference of each candidate"),
        ({"source": "Hi", "candidate": "bye", "reference": "by"}, "reads no sources"),
    ],
)
def test_the_command_line_says_what_does_not_fit(scorers, tmp_path, capsys, record, message):
    from bleurt_repro.cli import main as run

    (tmp_path / "pairs.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(SystemExit) as ended:
        run(["score", "--checkpoint", str(scorers["bleurt"].folder), "--pairs", str(tmp_path / "pairs.jsonl")])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_records_of_which_some_have_no_reference(tmp_path, capsys):
    from bleurt_repro.cli import main as run

    records = [{"source": "a", "candidate": "b"}, {"source": "a", "candidate": "b", "reference": "c"}]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(SystemExit):
        run(["score", "--pairs", str(tmp_path / "pairs.jsonl")])
    assert 'record 1 has no "reference" but others have one' in capsys.readouterr().err


def test_reference_free_through_evaluate(scorers):
    import evaluate

    from tests.conftest import SPACE

    scorer = scorers["reference-free"]
    metric = evaluate.load(str(SPACE), checkpoint=str(scorer.folder))
    result = metric.compute(predictions=[CANDIDATE], sources=[SOURCE])
    assert result["scores"] == scorer.score(candidates=[CANDIDATE], sources=[SOURCE])
    with pytest.raises(ValueError, match="reads no references: leave references out"):
        metric.compute(predictions=[CANDIDATE], sources=[SOURCE], references=[REFERENCE])


def test_the_demo_needs_references(scorers):
    scoring = pytest.importorskip("bleurt_repro.metric.demo.shared_scorer", reason="the demo needs Gradio")
    with pytest.raises(ValueError, match="reads no references, which the demo needs"):
        scoring.SharedScorer(str(scorers["reference-free"].folder), None)


def test_the_demo_asks_for_the_source(scorers):
    pair_tab = pytest.importorskip("bleurt_repro.metric.demo.pair_tab", reason="the demo needs Gradio")
    scoring = pytest.importorskip("bleurt_repro.metric.demo.shared_scorer")
    shared = scoring.SharedScorer(str(scorers["robleurt-src"].folder), None)
    with pytest.raises(ValueError, match="give the source, too"):
        pair_tab.score_pair(shared, [REFERENCE], CANDIDATE, " ")


# One model for references, sources, or both.


def test_a_unified_checkpoint_takes_what_there_is(scorers):
    scorer = scorers["unified"]
    results = {
        inputs: scorer.compute(candidates=[CANDIDATE], **{role: TEXTS[role] for role in inputs})
        for inputs in (("references",), ("sources",), ("references", "sources"))
    }
    assert len({result.scores[0] for result in results.values()}) == 3
    assert [result.signature.split("|")[2] for result in results.values()] == [
        "inputs:candidate+reference",
        "inputs:source+candidate",
        "inputs:source+candidate+reference",
    ]
    encoder = scorer.members[0].encoder
    [encoded] = encoder.encode_all([("", CANDIDATE, REFERENCE)])
    cls, sep = (scorer.tokenizer.convert_tokens_to_ids(token) for token in ("[CLS]", "[SEP]"))
    ids = [scorer.tokenizer(text, add_special_tokens=False)["input_ids"] for text in (CANDIDATE, REFERENCE)]
    assert list(encoded.ids) == [cls, sep, *ids[0], sep, *ids[1], sep]
    rows = [{"candidate": CANDIDATE, "source": SOURCE}, {"candidate": "a", "source": "b"}]
    assert scorer.score_rows(rows)[0] == pytest.approx(results["sources",].scores[0], abs=1e-6)
    with pytest.raises(ValueError, match="row 1 has no 'source', which checkpoint .*unified reads"):
        scorer.score_rows([rows[0], {"candidate": "a", "reference": "b"}])


def test_a_unified_checkpoint_through_evaluate(scorers):
    import evaluate

    from tests.conftest import SPACE

    scorer = scorers["unified"]
    metric = evaluate.load(str(SPACE), checkpoint=str(scorer.folder))
    for roles in (["references"], ["sources"], ["references", "sources"]):
        texts = {role: TEXTS[role] for role in roles}
        result = metric.compute(predictions=[CANDIDATE], **texts)
        assert result["scores"] == scorer.score(candidates=[CANDIDATE], **texts)


def test_agreement_of_a_unified_checkpoint_is_measured_with_each_input(scorers, tmp_path):
    from bleurt_repro.training.experiments.agreement import AgreementOptions, run_agreement
    from bleurt_repro.training.metrics.options import MetricOptions

    scorer, words = scorers["unified"], "the cat a dog sat".split()
    records = [
        {"source": SOURCE, "reference": REFERENCE, "candidate": " ".join(words[:n]), "score": n, "lp": "de-en"}
        for n in range(1, len(words) + 1)
    ]
    (tmp_path / "ratings.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
    options = AgreementOptions(str(tmp_path / "out"), ratings=str(tmp_path / "ratings.jsonl"), measures=["pearson_r"])
    rows = run_agreement(options, MetricOptions(checkpoint=[str(scorer.folder)], resamples=0))["rows"]
    assert [row["name"] for row in rows] == ["unified", "unified (reference)", "unified (source)"]
    for row, roles in zip(rows, (["sources", "references"], ["references"], ["sources"]), strict=True):
        texts = {"candidates": [record["candidate"] for record in records]}
        texts |= {role: [record[role[:-1]] for record in records] for role in roles}
        r = np.corrcoef(scorer.score(**texts), range(len(records)))[0, 1]
        assert row["average"]["pearson_r"] == pytest.approx(r, abs=1e-4)


@pytest.mark.parametrize("role", ["reference", "source"])
def test_a_unified_checkpoint_on_the_command_line(scorers, tmp_path, capsys, role):
    from bleurt_repro.cli import main as run

    scorer, text = scorers["unified"], {"reference": REFERENCE, "source": SOURCE}[role]
    (tmp_path / "pairs.jsonl").write_text(json.dumps({role: text, "candidate": CANDIDATE}) + "\n")
    words = ["score", "--checkpoint", str(scorer.folder), "--json", "--pairs", str(tmp_path / "pairs.jsonl")]
    with pytest.raises(SystemExit):
        run(words)
    expected = scorer.compute(candidates=[CANDIDATE], **{f"{role}s": [text]})
    printed = json.loads(capsys.readouterr().out)
    assert printed["scores"] == pytest.approx(expected.scores, abs=1e-6)
    assert printed["signature"].split("|")[1:] == expected.signature.split("|")[1:]


def test_a_unified_checkpoint_learns_from_ratings_that_lack_a_text(encoders, tmp_path):
    rows = [json.loads(line) for line in ratings(tmp_path / "all.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows):
        if number % 3 < 2:
            row[("source", "reference")[number % 3]] = ""
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--model", encoders["xlm-roberta"], "--train_file", file, "--validation_ratio", "0.3", "--output_dir"]
    words += [tmp_path / "out", "--layout", "unified", "--max_steps", "2", "--eval_steps", "2", "--save_steps", "2"]
    words += ["--per_device_train_batch_size", "8", "--disable_tqdm", "true"]
    finetune(list(map(str, words)))
    scorer = BleurtScorer(str(tmp_path / "out"))
    assert scorer.layout == Layout(LAYOUTS["unified"], 64, 2, OPTIONAL["unified"])
    assert len(scorer.score(candidates=[CANDIDATE], sources=[SOURCE])) == 1
    rows[5] |= {"source": "", "reference": ""}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match="rating 6 has neither source nor reference"):
        finetune([*map(str, words), "--overwrite"])


def test_the_demo_of_a_unified_checkpoint_needs_no_source(scorers):
    pair_tab = pytest.importorskip("bleurt_repro.metric.demo.pair_tab", reason="the demo needs Gradio")
    scoring = pytest.importorskip("bleurt_repro.metric.demo.shared_scorer")
    shared = scoring.SharedScorer(str(scorers["unified"].folder), None)
    without, both = (pair_tab.score_pair(shared, [REFERENCE], CANDIDATE, source) for source in ("", SOURCE))
    assert "inputs:candidate+reference|" in without.signature and "source+candidate+reference" in both.signature
