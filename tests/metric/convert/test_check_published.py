"""`convert --check`: a checkpoint by its official name, from the loopback Hub, beside published scores."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from huggingface_hub import HfApi
from setuptools import Distribution

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.metric.convert import convert as conversion
from bleurt_repro.metric.convert.convert import check_published, read_scored_pairs
from bleurt_repro.metric.loading.official_names import OFFICIAL_CHECKPOINTS
from tests.bleurt_pytorch_ports import make_port
from tests.conftest import ROOT
from tests.official_checkpoints import expected_scores

PAIRS = [("the cat sat", "a dog ran"), ("it rains", "it rains"), ("", "believable")]


@pytest.fixture
def published(hub, tmp_path, monkeypatch):
    """BLEURT-20 as a tiny port on the Hub, and a file of the scores that its official graph gives."""
    folder, files = tmp_path / "port", tmp_path / "published"
    variables = make_port(folder, 8, hidden_act="gelu_new")
    scores = expected_scores(BleurtScorer(str(folder)), variables, "tanh", PAIRS)
    files.mkdir()
    rows = [
        {"reference": reference, "candidate": candidate, "score": score}
        for (reference, candidate), score in zip(PAIRS, scores, strict=True)
    ]
    (files / "BLEURT-20.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    HfApi().create_repo("org/port")
    HfApi().upload_folder(repo_id="org/port", folder_path=folder)
    official = dataclasses.replace(OFFICIAL_CHECKPOINTS["BLEURT-20"], hub="org/port", max_length=64)
    monkeypatch.setitem(OFFICIAL_CHECKPOINTS, "BLEURT-20", official)
    monkeypatch.setattr(conversion, "PUBLISHED", files)
    return files / "BLEURT-20.jsonl"


def test_a_name_is_downloaded_converted_and_compared(published, tmp_path, monkeypatch, capsys):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(SystemExit) as ended:
        main(["convert", "--check", "BLEURT-20"])
    assert not ended.value.code
    printed = capsys.readouterr().out.strip()
    assert printed.startswith("BLEURT-20: 3 pairs, largest difference ") and len(printed.splitlines()) == 1
    assert float(printed.split()[-1]) < 2e-5
    assert check_published("bleurt-20").pairs == 3
    assert list((tmp_path / "here").iterdir()) == []


def test_a_zip_of_that_name_too(published, tmp_path):
    archive = shutil.make_archive(str(tmp_path / "BLEURT-20"), "zip", tmp_path / "port")
    assert check_published(archive).largest < 2e-5


@pytest.mark.long
def test_an_official_checkpoint_meets_the_scores_of_the_official_implementation(
    hub, shared_fixtures, tmp_path, monkeypatch
):
    pytest.importorskip("tensorflow", reason="reading official checkpoints takes TensorFlow")
    folder = shared_fixtures / "official_bleurt_tiny"
    HfApi().create_repo("org/official")
    HfApi().upload_folder(repo_id="org/official", folder_path=folder)
    official = dataclasses.replace(OFFICIAL_CHECKPOINTS["bleurt-base-128"], hub="org/official")
    monkeypatch.setitem(OFFICIAL_CHECKPOINTS, "bleurt-base-128", official)
    shutil.copy(folder / "scores.jsonl", tmp_path / "bleurt-base-128.jsonl")
    monkeypatch.setattr(conversion, "PUBLISHED", tmp_path)
    parity = check_published("bleurt-base-128")
    assert (parity.pairs, parity.same_ids) == (33, 33) and parity.largest < 2e-5


def test_other_scores_are_an_error(published):
    lines = published.read_text().splitlines()
    row = json.loads(lines[1])
    published.write_text("\n".join([lines[0], json.dumps({**row, "score": row["score"] + 0.01}), lines[2]]))
    with pytest.raises(ValueError, match=r"scores of BLEURT-20 differ .* largest difference 1.0e-02; limit 0.0001"):
        check_published("BLEURT-20")


def test_a_name_without_published_scores_and_further_options_are_refused(published, capsys):
    with pytest.raises(ValueError, match="no published scores of bleurt-tiny-128: expected BLEURT-20"):
        check_published("bleurt-tiny-128")
    with pytest.raises(SystemExit):
        main(["convert", "--check", "BLEURT-20", "somewhere"])
    assert "writes nothing" in capsys.readouterr().err


def test_the_package_has_scores_of_official_checkpoints(monkeypatch):
    monkeypatch.chdir(ROOT)
    distribution = Distribution()
    distribution.parse_config_files([str(ROOT / "setup.cfg")])
    build = distribution.get_command_obj("build_py")
    build.ensure_finalized()
    build.manifest_files = {}
    packaged = build.find_data_files("bleurt_repro.metric.convert", str(ROOT / "metric" / "convert"))
    assert {Path(file).name for file in packaged} == {file.name for file in conversion.PUBLISHED.iterdir()}
    files = sorted(conversion.PUBLISHED.glob("*.jsonl"))
    assert [file.stem for file in files] == ["BLEURT-20", "bleurt-base-128"]
    for file in files:
        assert OFFICIAL_CHECKPOINTS[file.stem].hub
        assert len(read_scored_pairs(file)) == 2
        assert all("source" in json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
