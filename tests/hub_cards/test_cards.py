"""Cards: drawn from results alone, with metadata that round-trips, and honest about what was not measured."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from jinja2 import Environment, meta
from transformers import AutoModelForSequenceClassification

from bleurt_repro import BleurtScorer, register
from bleurt_repro.cli import main as run_command
from bleurt_repro.hub_cards import cards, dataset_card, space
from bleurt_repro.hub_cards.cards import TEMPLATES, draw_model_card, fill_in
from bleurt_repro.metric.install import install_command
from bleurt_repro.metric.loading.find import IN_CLONES
from bleurt_repro.training.experiments.adversarial import AdversarialOptions, run_adversarial
from bleurt_repro.training.experiments.agreement import AgreementOptions, run_agreement
from bleurt_repro.training.metrics.options import MetricOptions
from bleurt_repro.training.training_references import TrainingReferences
from tests.conftest import ROOT
from tests.tiny_experiments import REFERENCE, write_ratings

RUN = {
    "kind": "finetune",
    "data": {"train_ratings": 8543, "validation_ratings": 949},
    "best": {"measure": "kendall_tau", "value": 0.51234, "step": 801},
    "steps": 801,
    "epochs": 3.0,
    "seconds": 606.7,
    "examples_per_second": 42.2,
    "settings": {"model": "tiny-encoder", "learning_rate": 1e-4, "seed": 1},
}


def given(function):
    """Name what a function fills its template with."""
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(function))) if isinstance(node, ast.Call)]
    (call,) = [call for call in calls if getattr(call.func, "attr", None) == "from_template"]
    return {"card_data", *(keyword.arg for keyword in call.keywords)}


GIVEN = {
    "model_card.md": given(cards.draw_model_card),
    "ratings_card.md": given(dataset_card.draw_dataset_card),
    "space_card.md": given(space.draw_space_card),
}


@pytest.fixture
def measured(tmp_path, tiny_scorer):
    folder = shutil.copytree(tiny_scorer, tmp_path / "my-scorer")
    ratings = write_ratings(tmp_path / "wmt.jsonl", [0, 1, 2, 3], pairs=("de-en", "fi-en"))
    run_agreement(
        AgreementOptions(str(tmp_path / "agreement"), ratings=str(ratings)),
        MetricOptions(checkpoint=[str(folder)], baselines=["chrf++"], resamples=20),
    )
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    return folder, tmp_path / "run.json", tmp_path / "agreement" / "results.json"


def cells(card, first):
    """Return the cells of the table row that begins with a text."""
    (line,) = [line for line in card.splitlines() if re.match(rf"\| {re.escape(first)} +\|", line)]
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_every_figure_of_a_card_is_that_of_a_results_file(measured):
    folder, run, results = measured
    card = draw_model_card(folder, training=[run], results=[results])
    for row in json.loads(results.read_text())["rows"]:
        tau, (low, high) = row["average"]["kendall_tau"], row["average_intervals"]["kendall_tau"]
        assert cells(card, row["name"])[1:3] == [f"{100 * tau:.1f}", f"{100 * low:.1f}–{100 * high:.1f}"]
    assert cells(card, "Fine-tuning") == ["Fine-tuning", "`tiny-encoder`", "8,543", "3", "0.0001", "1", "0.512"]
    assert "checkpoint:my-scorer|hash:" in card
    assert "{{" not in card.replace("{{BLEURT}", "")


def test_a_card_says_that_ratings_were_trained_on(measured, tmp_path):
    folder, run, results = measured
    assert "too high" not in draw_model_card(folder, training=[run], results=[results])
    TrainingReferences.from_texts([REFERENCE, "another"]).write(folder)
    with pytest.warns(UserWarning, match="my-scorer was fine-tuned on 1 of the 1 different references"):
        run_agreement(
            AgreementOptions(str(tmp_path / "again"), ratings=str(tmp_path / "wmt.jsonl")),
            MetricOptions(checkpoint=[str(folder)], baselines=["chrf++"], resamples=20),
        )
    card = draw_model_card(folder, training=[run], results=[tmp_path / "again" / "results.json"])
    assert "my-scorer was fine-tuned on 1 of the 1 different references of these ratings" in card.replace("\n", " ")
    # Of another checkpoint in the same results, that is said on its own card only.
    again = json.loads((tmp_path / "again" / "results.json").read_text())
    other = {**again["rows"][0], "name": "other", "signature": "checkpoint:other|hash:000000000000"}
    again["rows"] += [other, {**again["rows"][0], "name": "my-scorer (reference)"}]  # without the sources
    (tmp_path / "two.json").write_text(json.dumps(again))
    card = draw_model_card(folder, training=[run], results=[tmp_path / "two.json"])
    assert "other was" not in card and len(cells(card, "my-scorer (reference)")) == 3


def test_the_metadata_round_trip(measured):
    folder, run, results = measured
    card = ModelCard(draw_model_card(folder, training=[run], results=[results], repo_id="org/my-scorer"))
    assert card.data.library_name == "transformers"
    values = {(item.dataset_config, item.metric_type): item.metric_value for item in card.data.eval_results}
    row = json.loads(results.read_text())["rows"][0]
    expected = {(lp, m): round(f["value"], 6) for lp, figures in row["groups"].items() for m, f in figures.items()}
    assert values == expected | {("average", m): round(value, 6) for m, value in row["average"].items()}
    assert 'evaluate.load("bleurt_repro", "org/my-scorer")' in card.content


def test_what_was_not_measured_is_stated(tiny_scorer):
    card = draw_model_card(tiny_scorer)
    assert (
        "Not measured: agreement with human ratings, reliability of differences between systems, data-to-text, "
        in card
    )
    assert "Not recorded." in card
    assert ModelCard(card).data.eval_results is None


def test_the_front_matter_names_where_it_comes_from(tiny_scorer):
    card = draw_model_card(tiny_scorer, base_model="org/encoder", datasets=["org/a", "org/b"], license="mit")
    data = ModelCard(card).data
    assert (data.base_model, data.datasets, data.license) == ("org/encoder", ["org/a", "org/b"], "mit")


def test_the_languages_of_a_multilingual_checkpoint(tiny_scorer, tmp_path):
    assert ModelCard(draw_model_card(tiny_scorer)).data.language == "en"
    output = tmp_path / "README.md"
    options = ["--language", "cs de", "--known-language", "el", "--output", str(output)]
    with pytest.raises(SystemExit) as stopped:
        run_command(["card", str(tiny_scorer), *options])
    assert not stopped.value.code
    card = output.read_text(encoding="utf-8")
    assert ModelCard(card).data.language == ["cs", "de", "el"]
    assert cells(card, "in the ratings that it learned from")[-1] == "cs, de"
    assert cells(card, "known to the encoder alone")[-1] == "el"
    assert "difference.\n\n| languages" in card and "gives a warning.\n\n## Evaluation" in card
    assert "difference.\n\n## Evaluation" in draw_model_card(tiny_scorer)


def test_a_unified_checkpoint_says_what_can_be_left_out(tiny_source_scorer, tmp_path):
    folder = shutil.copytree(tiny_source_scorer, tmp_path / "unified")
    config = json.loads((folder / "config.json").read_text())
    config["bleurt"]["optional"] = ["source", "reference"]
    (folder / "config.json").write_text(json.dumps(config))
    card = draw_model_card(folder)
    assert "it reads the candidate beside the reference, the source, or both" in " ".join(card.split())
    assert "# references or sources can be left out" in card


def test_what_a_reader_needs_first_comes_first(measured):
    folder, run, results = measured
    card = draw_model_card(folder, training=[run], results=[results])
    headings = [line[3:] for line in card.splitlines() if line.startswith("## ")]
    assert headings == [
        "Install", "Usage", "Summary", "Scores", "Intended use and limitations", "Evaluation", "Training", "Licence and data",
        "Citation",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["bleurt-repro-mini", *IN_CLONES])
def test_the_cards_of_the_shipped_checkpoints_have_at_most_800_words(name):
    path = ROOT / "metric" / "checkpoint" / name / "README.md"
    if not path.is_file():
        pytest.skip("needs a clone")
    text = re.sub("<!--.*?-->", "", ModelCard(path.read_text(encoding="utf-8")).text, flags=re.DOTALL)
    assert len([word for word in text.split() if re.search(r"\w", word)]) <= 800


def test_how_often_it_is_fooled_is_shown_beside_the_baselines(measured, tmp_path):
    folder, _, _ = measured
    rows = [
        {"reference": f"In May {i} million men came.", "candidate": f"Men {i}", "score": 0.1, "lp": "de-en"}
        for i in range(2, 6)
    ]
    ratings = tmp_path / "fooled.jsonl"
    ratings.write_text("".join(json.dumps(row) + "\n" for row in rows))
    output = tmp_path / "adversarial"
    run_adversarial(
        AdversarialOptions(str(ratings), str(output), [str(folder)], ["chrf++"], most_references=3, random_words=2)
    )
    card = draw_model_card(folder, results=[output / "results.json"])
    chrf = next(row for row in json.loads((output / "results.json").read_text())["rows"] if row["kind"] == "baseline")
    share = chrf["kinds"]["random_word"]["above_output"]["share"]
    assert cells(card, "reference with one random word")[-1] == f"{100 * share:.1f}"
    assert "adversarial candidates" not in card[card.index("Not measured: ") :]


def test_how_reliable_preferences_are_is_shown(tiny_scorer, tmp_path):
    found = json.loads((ROOT / "docs" / "results" / "reliability-mini.json").read_text())
    (tmp_path / "other.json").write_text(json.dumps(found))
    with pytest.raises(ValueError, match="have no row of the checkpoint with hash"):
        draw_model_card(tiny_scorer, results=[tmp_path / "other.json"])
    found["signatures"] = {"tiny": BleurtScorer(str(tiny_scorer)).signature}
    next(iter(found["tests"].values()))["preference"]["ece"] = 0.234
    (tmp_path / "own.json").write_text(json.dumps(found))
    card = draw_model_card(tiny_scorer, results=[tmp_path / "own.json"])
    section = card[card.index("### Differences between systems") : card.index("Not measured: ")]
    assert "held-out ratings: 0.234" in section
    needed = found["fitted"]["preference"]["needed"]["0.9"]["2000"]
    assert f"| {needed:.3f} " in section and found["command"] in section


def test_results_of_other_weights_are_refused(measured, tiny_source_scorer):
    _, _, results = measured
    with pytest.raises(ValueError, match="have no row of the checkpoint with hash"):
        draw_model_card(tiny_source_scorer, results=[results])


def test_a_file_that_holds_no_results(measured, tmp_path):
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ValueError, match=r"bad\.json is not a results file"):
        draw_model_card(measured[0], training=[tmp_path / "bad.json"])


def code_of(card, folder):
    """Read a card's code blocks: the shell's lines, and the programs with what they show that they print."""
    blocks = re.findall(r"```(sh|python)\n(.*?)```", card.replace("path/to/" + folder.name, str(folder)), re.DOTALL)
    (kind, shell), *programs = blocks
    assert kind == "sh"
    shown = [(program, re.findall(r"^print\(.*\)  # (.*)$", program, re.MULTILINE)) for _, program in programs]
    assert all(values for _, values in shown)
    return shell.splitlines(), shown


def printed(program, capsys):
    """Run a program in this process."""
    capsys.readouterr()
    exec(program, {})
    return capsys.readouterr().out.splitlines()


@pytest.mark.long
def test_the_code_of_a_card_runs_for_a_stranger(tiny_scorer, tmp_path):
    """In processes of their own, line by line as the card has it; the package itself is installed here already."""
    (install, *shell), programs = code_of(draw_model_card(tiny_scorer), tiny_scorer)
    assert install == f"{install_command()}  # in a clone of the repository"
    environment = {
        **os.environ,
        "HF_HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for line in shell:
        subprocess.run(line, shell=True, env=environment, cwd=tmp_path, check=True)
    assert len(programs) == 2  # through evaluate, and with transformers alone
    for program, shown in programs:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stdout.splitlines() == shown, done.stderr


def test_a_checkpoint_that_opens_in_float16_is_shown_in_float32(tiny_scorer, tmp_path, capsys):
    folder = shutil.copytree(tiny_scorer, tmp_path / "half")
    AutoModelForSequenceClassification.from_pretrained(folder, dtype="float16").save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "float16"}))
    (folder / "checksums.json").unlink()
    _, (_, (program, shown)) = code_of(draw_model_card(folder), folder)
    assert 'dtype="float32")' in program and shown[0] == "torch.float32"
    assert printed(program, capsys) == shown


@pytest.mark.filterwarnings("ignore:1 of 1 pairs")
def test_a_checkpoint_that_reads_sources_is_not_shown_as_a_pair(tiny_source_scorer, capsys):
    card = draw_model_card(tiny_source_scorer)
    assert "It needs the package: a tokenizer of `transformers` alone" in card and "AutoTokenizer" not in card
    register()
    _, ((program, shown),) = code_of(card, tiny_source_scorer)
    assert "sources=[" in program
    assert printed(program, capsys) == shown


def test_the_address_of_the_package_is_one_that_works(tiny_scorer, monkeypatch):
    assert "pip install -c constraints.txt .  # in a clone" in draw_model_card(tiny_scorer)
    known = "git+https://host/org/name"
    line = f'pip install "bleurt-repro @ {known}"\n'
    assert line in draw_model_card(tiny_scorer, source=known)
    # A card that was drawn before the address was known gets it when it is published.
    with pytest.raises(ValueError, match="the card must say where pip installs the package from"):
        fill_in(draw_model_card(tiny_scorer), tiny_scorer, "org/name")
    card = fill_in(draw_model_card(tiny_scorer), tiny_scorer, "org/name", known)
    assert line in card and "constraints.txt" not in card and "path/to/" not in card
    monkeypatch.setenv("BLEURT_REPRO_SOURCE", known)
    assert line in draw_model_card(tiny_scorer)


def test_the_card_of_a_pre_trained_encoder_says_that_its_scores_mean_nothing(tiny_scorer, tmp_path):
    run = {**RUN, "data": {"pairs": {"folder": "pairs", "parts": ["a", "b"]}, "train_pairs": 99, "signals": ["bleu", "rouge"]}}  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps({**run, "best": {"measure": "loss", "value": None, "step": 0}}))
    card = draw_model_card(tiny_scorer, training=[tmp_path / "run.json"])
    assert "**Its scores mean nothing yet**: it was pre-trained on synthetic pairs" in card
    assert cells(card, "Pre-training")[1:] == ["`tiny-encoder`", "99", "3", "0.0001", "1", "-"]


def test_the_runs_of_an_average_share_a_row(tiny_scorer, tmp_path):
    runs = [RUN, {**RUN, "best": {"measure": "kendall_tau", "value": 0.4, "step": 801}}]
    members = [{"checkpoint": name, "weight": 0.5, "training": run} for name, run in zip("ab", runs, strict=True)]
    (tmp_path / "average.json").write_text(json.dumps({"kind": "average", "average": members}))
    card = draw_model_card(tiny_scorer, training=[tmp_path / "average.json"])
    assert cells(card, "Fine-tuning")[-2:] == ["2", "0.512, 0.400"]
    (tmp_path / "average.json").write_text(
        json.dumps({"kind": "average", "average": [{**members[0], "training": None}]})
    )
    with pytest.raises(ValueError, match="the training of a, a member of the average, is not recorded"):
        draw_model_card(tiny_scorer, training=[tmp_path / "average.json"])


def test_the_templates_ask_for_nothing_that_is_not_given(tiny_scorer):
    """Jinja leaves a gap where a name is unknown; no card has one, whatever is measured of it."""
    for path in TEMPLATES.glob("*.md"):
        names = meta.find_undeclared_variables(Environment().parse(path.read_text()))
        assert names <= GIVEN[path.name], path.name
