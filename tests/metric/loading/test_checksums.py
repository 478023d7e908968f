"""Checkpoints, caches and unfinished outputs that were damaged: seen by their hashes, named, never used."""

from __future__ import annotations

import json
import shutil

import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.loading.checksums import check_sums, write_checksums
from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER

PAIR = {"references": ["the cat sat on the mat"], "candidates": ["a dog sat"]}


def flip(path, place: float) -> None:
    """Change one bit at a place between 0, the start, and 1, the end."""
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] ^= 1
    path.write_bytes(content)


@pytest.fixture
def copy(tiny_scorer, tmp_path):
    return shutil.copytree(tiny_scorer, tmp_path / "scorer")


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("place", [0.5, 0.9, 1.0])
def test_one_flipped_bit_is_found(copy, file, place):
    flip(copy / file, place)
    with pytest.raises(ValueError, match=r"checkpoint .*scorer.*(differs from its SHA-256|cannot be opened)"):
        BleurtScorer(str(copy))


def test_a_lost_file_and_a_damaged_record_are_named(copy):
    (copy / "tokenizer_config.json").unlink()
    with pytest.raises(ValueError, match=r"tokenizer_config\.json is missing, and listed in checksums\.json"):
        check_sums(copy)
    (copy / "checksums.json").write_text('{"sha256": 3}')
    with pytest.raises(ValueError, match=r"checksums\.json cannot be read"):
        check_sums(copy)


def test_a_change_of_ones_own_is_said_to_be_allowed(copy, tiny_scorer):
    weights = BleurtScorer(str(tiny_scorer)).model
    weights.classifier.bias.data += 1
    weights.save_pretrained(copy)
    with pytest.raises(ValueError, match=r"or remove .*checksums\.json if the change is yours"):
        BleurtScorer(str(copy))
    (copy / "checksums.json").unlink()
    before = BleurtScorer(str(tiny_scorer), device="cpu").score(**PAIR)
    assert BleurtScorer(str(copy), device="cpu").score(**PAIR) == pytest.approx([before[0] + 1], abs=1e-5)


def test_settings_may_be_edited(copy):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config, indent=8))
    assert BleurtScorer(str(copy)).signature != ""


def test_no_name_in_the_record_leads_out_of_the_folder(copy):
    (copy / "checksums.json").write_text(json.dumps({"sha256": {"../../etc/hostname": "0"}}))
    with pytest.raises(ValueError, match="hostname is missing, and listed"):
        check_sums(copy)


def test_the_embedded_checkpoint_is_recorded(tmp_path):
    folder = EMBEDDED_FOLDER / "bleurt-repro-mini"
    recorded = json.loads((folder / "checksums.json").read_text())["sha256"]
    assert sorted(recorded) == ["model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    check_sums(folder)
    copied = shutil.copytree(folder, tmp_path / "copy")
    write_checksums(copied)
    assert (copied / "checksums.json").read_bytes() == (folder / "checksums.json").read_bytes()
