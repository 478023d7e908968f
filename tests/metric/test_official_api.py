"""The habits of the official library, which code that moves here keeps."""

from __future__ import annotations

import warnings

import pytest
import torch

import bleurt_repro
from bleurt_repro import BleurtScorer
from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER, find_checkpoint
from bleurt_repro.metric.options import choose_device
from tests.conftest import ROOT

TEXTS = {"references": ["it rains", "a cat sat", "good bye"], "candidates": ["it rains", "the dog", "hi there"]}


@pytest.fixture
def scorer(tiny_scorer):
    return BleurtScorer(str(tiny_scorer), device="cpu")


def test_no_checkpoint_is_the_default_one():
    assert BleurtScorer(None).checkpoint == BleurtScorer().checkpoint == "bleurt-repro-mini"


def test_the_scorer_that_sorts_by_length_is_ours(tiny_scorer):
    assert bleurt_repro.LengthBatchingBleurtScorer is BleurtScorer
    with pytest.raises(AttributeError, match="it offers BleurtScorer, LengthBatchingBleurtScorer"):
        _ = bleurt_repro.BleurtScorers


# The official README's example, https://github.com/google-research/bleurt#python-api
OFFICIAL_EXAMPLE = """
from bleurt import score

checkpoint = "bleurt/test_checkpoint"
references = ["This is a test."]
candidates = ["This is the test."]

scorer = score.BleurtScorer(checkpoint)
scores = scorer.score(references=references, candidates=candidates)
assert isinstance(scores, list) and len(scores) == 1
"""


@pytest.mark.parametrize("name", ["BleurtScorer", "LengthBatchingBleurtScorer"])
def test_official_code_runs_with_the_import_that_the_readme_names(name, tiny_scorer, tmp_path, monkeypatch):
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "runs with `import bleurt_repro as score` instead of `from bleurt import score`" in readme
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bleurt").mkdir()
    (tmp_path / "bleurt" / "test_checkpoint").symlink_to(tiny_scorer)
    code = OFFICIAL_EXAMPLE.replace("from bleurt import score", "import bleurt_repro as score")
    names = {}
    exec(code.replace("BleurtScorer", name), names)
    expected = BleurtScorer(str(tiny_scorer)).score(references=names["references"], candidates=names["candidates"])
    assert names["scores"] == expected
    # what else its `score` takes, by name only
    texts = {"references": names["references"], "candidates": names["candidates"], "batch_size": 16}
    assert names["scorer"].score(**texts) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_batch_size_bounds_batches(scorer, monkeypatch, size):
    sizes, forward = [], scorer.members[0].forward()
    monkeypatch.setattr(scorer.members[0], "forward", lambda: lambda batch: sizes.append(len(batch)) or forward(batch))
    expected = scorer.score(**TEXTS)
    sizes.clear()
    assert scorer.score(**TEXTS, batch_size=size) == pytest.approx(expected, abs=1e-5)
    assert max(sizes) == min(size, 3) and sum(sizes) == 3
    for bad in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="batch_size must be a positive number of pairs"):
            scorer.score(**TEXTS, batch_size=bad)


def test_positional_texts_are_refused_with_the_names(scorer):
    for function in (scorer.score, scorer.compute):
        with pytest.raises(TypeError, match=r"texts are given by name: references=\[\.\.\.\], candidates=\[\.\.\.\]"):
            function(["a"], ["a"])
    with pytest.raises(TypeError, match="candidates must be a list of strings, found NoneType"):
        scorer.score(references=["a"])


def test_closing(tiny_scorer):
    with BleurtScorer(str(tiny_scorer)) as scorer:
        assert len(scorer.score(**TEXTS)) == 3
    with pytest.raises(ValueError, match="this scorer was closed"):
        scorer.score(**TEXTS)
    scorer.close()


def test_names_in_any_case(tmp_path, monkeypatch):
    assert find_checkpoint("BLEURT-Repro-Mini") == EMBEDDED_FOLDER / "bleurt-repro-mini"
    assert BleurtScorer("BLEURT-REPRO-MINI").signature == BleurtScorer().signature
    with pytest.raises(ValueError, match="checkpoint BLEURT-20-D3 has no safe copy"):
        find_checkpoint("bleurt-20-d3")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Bleurt-Repro-Mini").mkdir()
    assert find_checkpoint("Bleurt-Repro-Mini").samefile(tmp_path / "Bleurt-Repro-Mini")


@pytest.mark.parametrize(
    "device", ["cuda:99", *([] if torch.cuda.is_available() else ["cuda"]), "xla", "meta", "mps:7"]
)
def test_a_device_that_is_not_there_is_named_in_one_line(device):
    with pytest.raises(
        ValueError, match=f"device '{device}' cannot be used on this machine .*leave it out, or give cpu"
    ):
        choose_device(device)


def test_truncation_is_warned_of_in_every_call(tiny_scorer):
    """Python shows a warning of one line of code once, unless it is told otherwise."""
    scorer = BleurtScorer(str(tiny_scorer))
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        warnings.simplefilter("default")
        for _ in range(3):
            scorer.score(references=["cat " * 100], candidates=["a cat"])
    assert [str(warning.message).partition(" tokens")[0] for warning in caught] == [
        "1 of 1 pairs were longer than the 64"
    ] * 3
