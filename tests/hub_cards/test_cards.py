"""Cards: drawn from results alone, with metadata that round-trips, and honest about what was not measured."""

from __future__ import annotations

import json
import shutil

import pytest
from huggingface_hub import ModelCard

from bleurt_repro import BleurtScorer
from bleurt_repro.hub_cards.cards import draw_model_card
from bleurt_repro.training.experiments import agreement
from tests.tiny_experiments import write_ratings

RUN = {
    "data": {"train_ratings": 8543, "validation_ratings": 949},
    "best": {"measure": "kendall_tau", "value": 0.51234, "step": 801},
    "steps": 801,
    "epochs": 3.0,
    "seconds": 606.7,
    "examples_per_second": 42.2,
    "settings": {"model": "tiny-encoder", "learning_rate": 1e-4, "seed": 1},
}


@pytest.fixture
def measured(tmp_path, tiny_scorer):
    folder = shutil.copytree(tiny_scorer, tmp_path / "my-scorer")
    ratings = write_ratings(tmp_path / "wmt.jsonl", [0, 1, 2, 3], pairs=("de-en", "fi-en"))
    agreement.run(
        output=tmp_path / "agreement", ratings=ratings, checkpoints=[str(folder)], baselines=["chrf++"], resamples=20
    )
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    return folder, tmp_path / "run.json", tmp_path / "agreement" / "results.json"


def test_every_figure_of_a_card_is_that_of_a_results_file(measured):
    folder, run, results = measured
    card = draw_model_card(folder, training=[run], agreement=[results])
    table = agreement.draw_table(json.loads(results.read_text()))
    assert table in card
    assert "8,543 ratings, 3 epochs, 801 steps in 10 minutes (42.2 a second)" in card
    assert "best validation kendall tau 0.512 at step 801" in card
    assert "| learning_rate | 0.0001 |" in card
    assert "checkpoint:my-scorer|hash:" in card
    assert "{{" not in card.replace("{{BLEURT}", "")
    for number in ("0.51234",):
        assert number not in card


def test_the_metadata_round_trip(measured):
    folder, run, results = measured
    card = ModelCard(draw_model_card(folder, training=[run], agreement=[results], repo_id="org/my-scorer"))
    assert card.data.library_name == "transformers"
    values = {(item.dataset_config, item.metric_type): item.metric_value for item in card.data.eval_results}
    rows = json.loads(results.read_text())["rows"][0]["groups"]
    assert values == {(lp, m): round(f["value"], 4) for lp, figures in rows.items() for m, f in figures.items()}
    assert 'evaluate.load("bleurt_repro", "org/my-scorer")' in card.content


def test_what_was_not_measured_is_said(tiny_scorer):
    card = draw_model_card(tiny_scorer)
    assert "Not measured." in card
    assert "Not recorded." in card
    assert ModelCard(card).data.eval_results is None


def test_results_of_other_weights_are_refused(measured, tiny_source_scorer):
    _, _, results = measured
    with pytest.raises(ValueError, match="have no row of the checkpoint with hash"):
        draw_model_card(tiny_source_scorer, agreement=[results])


def test_a_file_that_holds_no_results(measured, tmp_path):
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ValueError, match=r"bad\.json is no results file"):
        draw_model_card(measured[0], training=[tmp_path / "bad.json"])


def test_the_quick_start_for_transformers_gives_the_scorers_own_score(tiny_scorer):
    card = draw_model_card(tiny_scorer)
    (code,) = [
        part.split("```")[0] for part in card.split("```python\n")[1:] if "transformers" in part.split("```")[0]
    ]
    names: dict = {}
    exec(code.replace("path/to/tiny", str(tiny_scorer)), names)
    pair = {"references": ["The cat sat on the mat."], "candidates": ["A cat was sitting on the mat."]}
    assert names["score"] == pytest.approx(BleurtScorer(str(tiny_scorer)).score(**pair)[0], abs=1e-5)


def test_a_checkpoint_that_reads_sources_is_not_shown_as_a_pair(tiny_source_scorer):
    card = draw_model_card(tiny_source_scorer)
    assert "It reads source, candidate, reference, in this order" in card
    assert "AutoTokenizer" not in card and "sources=[" in card


def test_pre_training_names_its_signals_and_says_that_nothing_is_scored_yet(tiny_scorer, tmp_path):
    run = {**RUN, "data": {"pairs": {"folder": "pairs", "parts": ["a", "b"]}, "train_pairs": 99, "signals": ["bleu", "rouge"]}}  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps({**run, "best": {"measure": "loss", "value": None, "step": 0}}))
    card = draw_model_card(tiny_scorer, training=[tmp_path / "run.json"])
    assert "Nothing yet: it was pre-trained on synthetic pairs, and its head is new." in card
    assert "signals: bleu, rouge" in card and "validation not measured" in card
