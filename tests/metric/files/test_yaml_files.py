"""YAML of settings: values and lines, and what is refused before it costs time or memory."""

from __future__ import annotations

import time

import pytest

from bleurt_repro.metric.files.records import DEEPEST, read_plain_yaml


def read(tmp_path, content):
    path = tmp_path / "run.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_plain_yaml(path)


def test_values_and_their_lines(tmp_path):
    root, values = read(tmp_path, "seed: 1\npivots:\n- {language: fr}\n")
    assert values == {"seed": 1, "pivots": [{"language": "fr"}]}
    assert [key.start_mark.line for key, _ in root.value] == [0, 1]


def test_an_empty_file(tmp_path):
    assert read(tmp_path, "# nothing\n") == (None, None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: &x [1]\nb: *x\n", r"line 2 has an alias \(\*x\): write values out"),
        ("a: " + "[" * (DEEPEST + 1), f"line 1 is nested more than {DEEPEST} deep"),
        ("- " * (DEEPEST + 1) + "1", f"line 1 is nested more than {DEEPEST} deep"),
        ("a: 2020-13-45", "month must be in 1..12"),
        ("a: !!int abc", "invalid literal for int"),
        ("a: !!timestamp abc", "is not YAML"),
        ("a: !!bool abc", "is not YAML"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        (b"a: \xff", "invalid start byte"),
    ],
)
def test_what_is_refused(tmp_path, content, message):
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path, content)
    assert str(error.value).startswith(f"{tmp_path / 'run.yaml'} is not YAML: ")


def test_depth_costs_no_time(tmp_path):
    begun = time.perf_counter()
    with pytest.raises(ValueError, match="nested"):
        read(tmp_path, "[" * 100_000)
    assert time.perf_counter() - begun < 5


def test_as_deep_as_allowed(tmp_path):
    _, values = read(tmp_path, "[" * DEEPEST + "]" * DEEPEST)
    assert str(values) == "[" * DEEPEST + "]" * DEEPEST
