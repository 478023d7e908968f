"""Segments: cleaning, limits, duplicates, and the account of what was left out."""

from __future__ import annotations

from types import SimpleNamespace

import huggingface_hub
import pytest

from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig
from bleurt_repro.datasets_builders.synthetic.segments import Segment, Segments, Skipped, count_reasons


def segments(tmp_path, content, **options):
    path = tmp_path / "input.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Segments(str(path), SyntheticConfig(min_words=2, max_characters=40, **options))


def test_what_is_kept_and_what_is_not(tmp_path):
    lines = [
        b"  two\twords \xc2\xa0here ",
        b"... --- !!!",
        b"",
        b"single",
        b"x " * 10_000,
        b"caf\xe9 au lait",
        b"two words here",
        b"Two words here",
    ]
    result = segments(tmp_path, b"\n".join(lines))
    assert list(result) == [Segment(0, 1, "two words here"), Segment(1, 8, "Two words here")]
    assert result.rows == 8
    assert [(item.row, item.reason) for item in result.skipped] == [
        (2, "no words"),
        (3, "no words"),
        (4, "fewer than 2 words"),
        (5, "longer than 40 characters"),
        (6, "not UTF-8 (byte 4)"),
        (7, "duplicate of row 1"),
    ]
    assert result.skipped[3].text == ("x " * 40)
    assert list(result) == list(result)  # reading again starts anew
    assert len(result.skipped) == 6


def test_a_limit_stops_reading(tmp_path):
    result = segments(tmp_path, "one two\nthree four\nfive six\n", max_segments=2)
    assert [segment.text for segment in result] == ["one two", "three four"]
    assert result.rows == 2


def test_sentences_can_be_cut(tmp_path):
    result = segments(tmp_path, "It rained. We stayed in.\nA heading\n\n", split_sentences=True)
    assert list(result) == [Segment(0, 1, "It rained."), Segment(1, 1, "We stayed in.")]
    assert result.skipped == [Skipped(2, "lines that end no sentence (1)", "A heading")]
    assert count_reasons(result.skipped) == "1 lines that end no sentence"


def test_an_input_of_nothing_usable_says_why(tmp_path):
    with pytest.raises(ValueError, match="none of its 3 rows is usable: 2 no words, 1 fewer than 2 words"):
        list(segments(tmp_path, "?\n!\none\n"))


def test_half_of_a_surrogate_pair_is_not_utf8(tmp_path):
    path = tmp_path / "input.jsonl"
    path.write_text('{"text": "one \\ud800 two"}\n{"text": "one two"}\n')
    result = Segments(str(path), SyntheticConfig(min_words=2))
    assert [segment.text for segment in result] == ["one two"]
    assert result.skipped[0].reason == "not UTF-8 (half of a surrogate pair)"
    result.skipped[0].text.encode()


def test_reasons_are_counted_without_their_places():
    skipped = [Skipped(i, f"duplicate of row {i}", "") for i in range(3)] + [Skipped(9, "not UTF-8 (byte 7)", "")]
    assert count_reasons(skipped) == "3 duplicate, 1 not UTF-8"


def test_a_file_is_known_by_its_content(tmp_path):
    first = segments(tmp_path, "one two\n").identity()
    assert first["name"] == "input.txt" and first != segments(tmp_path, "one three\n").identity()


def test_a_dataset_of_the_hub_is_known_by_its_commit(monkeypatch, tmp_path):
    requests = []

    class Api:
        def dataset_info(self, repo_id, revision=None):
            requests.append((repo_id, revision))
            return SimpleNamespace(sha="abc")

    assert Segments("org/name", SyntheticConfig()).identity()["revision"] is None  # out of reach
    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    assert Segments("org/name@main", SyntheticConfig()).identity()["revision"] == "abc"
    assert Segments("org/name", SyntheticConfig()).identity()["revision"] == "abc"
    assert requests == [("org/name", "main"), ("org/name", None)]
    assert Segments(str(tmp_path), SyntheticConfig()).identity()["revision"] is None
