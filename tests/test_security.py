"""Hostile files do nothing: no code of a checkpoint runs, no link is written through, no template is evaluated."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import pytest

from bleurt_repro.hub_cards.checks import check_files
from bleurt_repro.hub_cards.contents import File
from bleurt_repro.metric.bulk.resumable_output import PartialOutput
from bleurt_repro.metric.convert.convert import convert
from bleurt_repro.metric.files.writing import write_bytes
from bleurt_repro.metric.loading.ensemble import ENSEMBLE_FILE, read_ensemble
from bleurt_repro.metric.loading.open import load_checkpoint


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self):
        return os.mkdir, (str(self.file),)


@pytest.fixture
def trap(tmp_path):
    return tmp_path / "sprung"


@pytest.fixture
def folder(tiny_scorer, tmp_path):
    copied = shutil.copytree(tiny_scorer, tmp_path / "checkpoint")
    (copied / "checksums.json").unlink(missing_ok=True)  # who changes a checkpoint to do harm changes these too
    return copied


def test_the_trap_works(trap):
    pickle.loads(pickle.dumps(Trap(trap)))
    assert trap.is_dir()


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "model.pt", "model.ckpt", "training_args.bin", "model.safetensors"]
)
@pytest.mark.parametrize("alone", [True, False])
def test_no_pickle_of_a_checkpoint_is_opened(folder, trap, name, alone):
    if alone:
        (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Trap(trap)))
    if alone or name == "model.safetensors":
        refusal = {"training_args.bin": "a pickle", "model.safetensors": "cannot be opened"}
        with pytest.raises(ValueError, match=refusal.get(name, f"only {name}, a pickle, which is never opened")):
            load_checkpoint(str(folder))
    else:
        load_checkpoint(str(folder))
    assert not trap.exists()


@pytest.mark.parametrize("model_type", ["bert", "mischief"])
def test_no_code_of_a_checkpoint_is_run(folder, trap, model_type):
    code = f"import os\nos.mkdir({str(trap)!r})\n"
    for module in ("configuration_mischief", "modeling_mischief", "tokenization_mischief"):
        (folder / f"{module}.py").write_text(code)
    config = json.loads((folder / "config.json").read_text())
    config["model_type"] = model_type
    config["auto_map"] = {
        "AutoConfig": "configuration_mischief.Config",
        "AutoModelForSequenceClassification": "modeling_mischief.Model",
    }
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer["auto_map"] = {"AutoTokenizer": ["tokenization_mischief.Tokenizer", None]}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    if model_type == "bert":
        load_checkpoint(str(folder))
    else:
        with pytest.raises(ValueError, match="cannot be opened"):
            load_checkpoint(str(folder))
    assert not trap.exists()


@pytest.mark.parametrize(
    "name", ["../bert_config.json", "/etc/passwd", "..\\bert_config.json", "sub/bert_config.json"]
)
def test_official_settings_name_no_files_elsewhere(tmp_path, name):
    folder = tmp_path / "official"
    folder.mkdir()
    (folder / "bleurt_config.json").write_text(json.dumps({"bert_config_file": name, "max_seq_length": 8}))
    with pytest.raises(ValueError, match="which is no plain file name"):
        convert(str(folder), str(tmp_path / "made"))


@pytest.mark.parametrize("member", ["/etc", "../elsewhere", "a/../../b", "~/models", "..\\elsewhere", ""])
def test_members_of_an_ensemble_lie_beside_it(tmp_path, member):
    described = {"checkpoint": member, "hash": "0", "weight": 0.5, "mean": 0.0, "std": 1.0}
    (tmp_path / ENSEMBLE_FILE).write_text(json.dumps({"members": [described, {**described, "checkpoint": "b"}]}))
    with pytest.raises(ValueError, match="must be a folder beside ensemble.json"):
        read_ensemble(tmp_path)


def test_an_output_that_is_a_link_is_replaced_and_not_written_through(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "scores.txt").symlink_to(tmp_path / "precious")
    write_bytes(tmp_path / "scores.txt", b"0.5\n")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "scores.txt").read_text() == "0.5\n" and not (tmp_path / "scores.txt").is_symlink()


@pytest.mark.parametrize("name", [".scores.txt.partial", ".scores.txt.partial.json"])
def test_a_link_where_scores_are_collected_is_refused(tmp_path, name):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / name).symlink_to(tmp_path / "precious")
    with pytest.raises(ValueError, match=f"{name} is a link"):
        PartialOutput(tmp_path / "scores.txt", {})
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_link_is_not_published(tmp_path):
    (tmp_path / "diary.txt").write_text("dear diary")
    (tmp_path / "vocab.txt").symlink_to(tmp_path / "diary.txt")
    problems = check_files([File("vocab.txt", tmp_path / "vocab.txt")])
    assert problems == ["vocab.txt is a link, and its target may be private: replace it by the file itself"]


MISCHIEF = "x {{ 7 * 191 }} {% for i in range(9) %}!{% endfor %}\n---\nlicense: mischief\n---\n| <script>"


def test_a_card_evaluates_nothing_that_it_shows(tmp_path):
    from huggingface_hub import DatasetCard

    from bleurt_repro.hub_cards.dataset_card import draw_dataset_card

    header = "---\nconfigs:\n- config_name: a\n  data_files:\n  - split: train\n    path: t.jsonl\n---\n"
    (tmp_path / "README.md").write_text(header)
    rating = {"reference": "a", "candidate": "b", "score": 1, "lp": MISCHIEF, "year": "{{ 7 * 191 }}"}
    (tmp_path / "t.jsonl").write_text(json.dumps(rating) + "\n")
    card = draw_dataset_card(tmp_path, title=MISCHIEF, license="cc0-1.0", recipe=MISCHIEF, data_terms=MISCHIEF)
    assert "{{ 7 * 191 }}" in card and "{% for i" in card and "1337" not in card
    data = DatasetCard(card).data
    assert (data.license, data.pretty_name) == ("cc0-1.0", MISCHIEF)
    [row] = [line for line in card.splitlines() if line.startswith("| train")]
    assert r"\| <script>" in row and row.endswith("|")


def test_the_page_shows_cards_of_checkpoints_without_what_runs_or_fetches(tiny_scorer, tmp_path):
    import gradio as gr

    from bleurt_repro import BleurtScorer
    from bleurt_repro.metric.demo.page import build_about_tab

    folder = shutil.copytree(tiny_scorer, tmp_path / "checkpoint")
    (folder / "README.md").write_text(f"# name\n\nWhat it is. {MISCHIEF}\n\n<form action=https://x.org></form>\n")
    with gr.Blocks() as page:
        build_about_tab(BleurtScorer(str(folder), device="cpu"))
    [card] = [block for block in page.blocks.values() if block.elem_id == "card"]
    assert "What it is." in card.value and "<script" not in card.value and "<form" not in card.value
    assert all(block.sanitize_html for block in page.blocks.values() if isinstance(block, gr.Markdown))


def test_the_queue_of_the_demo_is_bounded(tiny_scorer):
    from bleurt_repro.metric.demo.page import build_page
    from bleurt_repro.metric.demo.visitor_input import WAITING

    page = build_page(str(tiny_scorer), "cpu")
    assert page._queue.max_size == WAITING
    limits = {block.concurrency_limit for block in page.fns.values() if block.concurrency_id in ("score", "compare")}
    assert limits == {1}
