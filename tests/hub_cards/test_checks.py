"""What is found before anything goes up."""

from __future__ import annotations

import pickle
import shutil

import pytest
import torch
from safetensors.torch import save_file

from bleurt_repro.hub_cards.checks import check_card, check_files
from bleurt_repro.hub_cards.contents import File, gather
from bleurt_repro.hub_cards.publish import prepare

TOKEN = "hf_" + "a1B2" * 9
CARD = "---\nlicense: mit\nlibrary_name: transformers\npipeline_tag: text-classification\n---\n"


def problems(path, content):
    return check_files([File(path, content if isinstance(content, bytes) else content.encode())])


@pytest.mark.parametrize(
    ("path", "content", "problem"),
    [
        ("results.json", '{\n"model": "/home/anna/models/x"}', "results.json, line 2 names a path of this machine (/home/anna)"),
        ("config.json", '{"_name_or_path": "/models/encoder"}', 'config.json, line 1 names an absolute path ("/models/encoder")'),
        ("README.md", "trained from C:\\Users\\anna\\x", "README.md, line 1 names a path of this machine (C:\\Users\\)"),
        ("config.json", "{", "config.json is not JSON"),
        ("README.md", f"token {TOKEN}", "README.md, line 1 holds a Hugging Face token"),
        ("train.jsonl", f'{{"a": 1}}\n{{"reference": "{TOKEN}"}}', "train.jsonl, line 2 holds a Hugging Face token"),
        ("LICENSE", "-----BEGIN RSA PRIVATE KEY-----", "LICENSE, line 1 holds a private key"),
        ("app.py", "key = 'AKIAABCDEFGHIJKLMNOP'", "app.py, line 1 holds an access key"),
        ("x.json", pickle.dumps({"a": 1}), "x.json is a pickle"),
    ],
)  # fmt: skip
def test_what_must_not_go_up(path, content, problem):
    (found, *_) = problems(path, content)
    assert found.startswith(problem)
    assert TOKEN not in found


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("README.md", "see https://host/home/anna/x, ./work/a, ../tmp/b, and/or, path/to/x, POST /score"),
        ("README.md", "`hf_` is how tokens begin"),
        ("vocab.txt", "/home/anna\n"),
        ("train.jsonl", '{"reference": "He wrote to /home/anna."}'),
        ("config.json", '{"a": "/", "b": "n/a", "c": "/ one /"}'),
        ("app.py", "client.predict(api_name='/score')"),
    ],
)
def test_what_may_go_up(path, content):
    assert problems(path, content) == []


def test_ones_own_token_is_known_whatever_it_looks_like(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "strange.token")
    assert problems("README.md", "a strange.token b") == ["README.md, line 1 holds your own token"]


def test_weights_must_open_and_be_finite(tmp_path):
    save_file({"good": torch.zeros(2), "bad": torch.tensor([1.0, float("nan")])}, tmp_path / "nan.safetensors")
    save_file(
        {
            "half": torch.ones(2, dtype=torch.bfloat16),
            "small": torch.ones(2).to(torch.float8_e4m3fn),
            "ids": torch.arange(3),
        },
        tmp_path / "good.safetensors",
    )
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "good.safetensors").read_bytes()[:-1])
    found = [check_files([File(name, tmp_path / name)]) for name in ("nan.safetensors", "good.safetensors", "cut.safetensors")]  # fmt: skip
    assert found[:2] == [["nan.safetensors has NaN or infinite values in bad"], []]
    assert found[2][0].startswith("cut.safetensors cannot be opened (")


def test_everything_wrong_is_reported_at_once(tmp_path, tiny_scorer):
    folder = shutil.copytree(tiny_scorer, tmp_path / "scorer")
    (folder / "pytorch_model.bin").write_bytes(b"x")
    (folder / "config.json").write_text("{}")
    with pytest.raises(ValueError) as error:
        prepare("model", folder)
    for part in (
        "scorer is not fit to publish: ", "pytorch_model.bin is a pickle by its name", "config.json names no model_type",
        "there is no card: `bleurt-repro card FOLDER` writes README.md",
    ):  # fmt: skip
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("removed", "problem"),
    [
        ("model.safetensors", "there are no weights in safetensors"),
        ("config.json", "there is no config.json"),
        ("tokenizer", "there is no tokenizer"),
    ],
)
def test_a_checkpoint_is_whole(tmp_path, tiny_scorer, removed, problem):
    folder = shutil.copytree(tiny_scorer, tmp_path / "scorer")
    (folder / "README.md").write_text(CARD)
    for path in folder.glob(f"{removed}*"):
        path.unlink()
    if removed == "tokenizer":
        (folder / "vocab.txt").unlink()
    with pytest.raises(ValueError, match=problem):
        prepare("model", folder)


def test_what_is_no_part_of_a_checkpoint_is_left_out_and_named(tmp_path, tiny_scorer):
    folder = shutil.copytree(tiny_scorer, tmp_path / "scorer")
    (folder / "README.md").write_text(CARD)
    for name in ("checkpoint-10/optimizer.pt", "checkpoint-10/rng.pth", ".cache/x.json", "notes.docx"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
    files, left_out = prepare("model", folder)
    assert "vocab.txt" in [file.path for file in files]
    assert left_out == [".cache/", "checkpoint-10/", "notes.docx"]


def test_an_empty_folder_and_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder .*: give the folder of the dataset to publish"):
        gather("dataset", tmp_path / "none")
    with pytest.raises(ValueError, match=r"holds no files of a dataset: expected README.md, \*.json"):
        gather("dataset", tmp_path)


@pytest.mark.parametrize(
    ("kind", "card", "others", "problem"),
    [
        ("model", "# no metadata", [], "README.md has no metadata"),
        ("model", "---\na: [\n---\n", [], "the metadata of README.md cannot be read"),
        ("model", "---\nlicense: mit\n---\n", [], "README.md: the metadata have no library_name"),
        ("model", "---\nmodel-index:\n- name: x\n---\n", [], "the metadata of README.md cannot be read"),
        ("dataset", "---\npretty_name: x\n---\n", [], "README.md: the metadata have no license"),
        (
            "dataset",
            "---\nlicense: mit\nconfigs:\n- config_name: a\n  data_files:\n  - split: train\n    path: t.jsonl\n---\n",
            ["u.jsonl"],
            "README.md: configuration a names t.jsonl, which does not exist",
        ),
        ("space", "---\nsdk: flask\n---\n", [], "README.md: sdk must be one of gradio, streamlit, docker, static, found 'flask'"),
        ("space", "---\nsdk: gradio\napp_file: app.py\n---\n", [], "README.md: app_file app.py does not exist"),
    ],
)  # fmt: skip
def test_cards_with_faults(kind, card, others, problem):
    (found, *_) = check_card(kind, [File("README.md", card.encode()), *(File(name, b"") for name in others)])
    assert found.startswith(problem)
