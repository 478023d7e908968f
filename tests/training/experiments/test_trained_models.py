"""Models that experiments train: their files."""

from __future__ import annotations


def test_ratings_are_written_once_by_the_one_writer(tmp_path, monkeypatch):
    from bleurt_repro.metric.files import writing
    from bleurt_repro.training.experiments.trained_models import write_ratings

    writes, write = [], writing.write_json_lines
    monkeypatch.setattr(writing, "write_json_lines", lambda *given: (writes.append(given[0]), write(*given)))
    rows, path = [{"reference": "é", "score": 1.0}], tmp_path / "new" / "ratings.jsonl"
    for some in (rows, rows, [*rows, *rows]):
        assert write_ratings(path, some).read_text(encoding="utf-8") == '{"reference": "é", "score": 1.0}\n' * len(
            some
        )
    assert writes == [path, path]
