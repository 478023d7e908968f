"""Options of a scorer: what is filled in, and what is refused before a model is loaded."""

from __future__ import annotations

import pytest
import torch

from bleurt_repro import BleurtScorer
from bleurt_repro.cli import main
from bleurt_repro.metric.options import BATCH_TOKENS, DEFAULT_CHECKPOINT, Computing, ScoreOptions


def test_defaults_are_those_of_the_device():
    computing = Computing.from_options(ScoreOptions(device="cpu"))
    assert computing == Computing("torch", torch.device("cpu"), torch.float32, BATCH_TOKENS["cpu"])
    assert ScoreOptions().checkpoint == DEFAULT_CHECKPOINT
    assert Computing.from_options(ScoreOptions(backend="onnx", batch_tokens=7)).batch_tokens == 7


def test_a_scorer_keeps_its_options_and_opens_from_them(tiny_scorer):
    scorer = BleurtScorer(str(tiny_scorer), "cpu", "bfloat16", 100, False)
    assert scorer.options == ScoreOptions(str(tiny_scorer), "cpu", "bfloat16", 100, False)
    assert BleurtScorer.from_options(scorer.options).signature == scorer.signature


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "tensorflow"}, "backend must be one of torch, compile, onnx, onnx-int8, found 'tensorflow'"),
        ({"backend": "onnx", "device": "cuda"}, "computes on the CPU with float32 weights"),
        ({"backend": "onnx", "dtype": "float16"}, "computes on the CPU with float32 weights"),
        ({"device": "abacus"}, "device must be one that torch knows"),
        ({"device": "meta"}, "device 'meta' cannot be used on this machine"),
        ({"dtype": "float64"}, "dtype must be one of float32, bfloat16, float16, auto, found 'float64'"),
        ({"batch_tokens": 0}, "batch_tokens must be a positive number of tokens, found 0"),
    ],
)
def test_options_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Computing.from_options(ScoreOptions(**options))


@pytest.mark.parametrize("instruction", ["_is_avx512_bf16_supported", "_is_amx_tile_supported", None])
def test_auto_is_bfloat16_where_the_processor_has_instructions_for_it(monkeypatch, tiny_scorer, instruction):
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda name=name: name == instruction)
    scorer = BleurtScorer(str(tiny_scorer), device="cpu", dtype="auto")
    dtype = "float32" if instruction is None else "bfloat16"
    assert f"|dtype:{dtype}|" in scorer.signature and scorer.model.dtype == getattr(torch, dtype)
    assert Computing.from_options(ScoreOptions(dtype="auto", backend="onnx")).dtype == torch.float32


@pytest.mark.parametrize("operation", ["linear", "gelu", "layer_norm", "scaled_dot_product_attention"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_an_arithmetic_that_the_processor_lacks(monkeypatch, capsys, tmp_path, tiny_scorer, operation, dtype):
    """One line, before anything is scored."""
    compute = getattr(torch.nn.functional, operation)

    def lacking(rows, *others, **options):
        if rows.dtype != torch.float32:
            raise RuntimeError(f"\"{operation}\" not implemented for 'Half'\nand more lines")
        return compute(rows, *others, **options)

    monkeypatch.setattr(torch.nn.functional, operation, lacking)
    (tmp_path / "r.txt").write_text("a\n")
    with pytest.raises(SystemExit) as stop:
        words = [
            "score",
            "-r",
            str(tmp_path / "r.txt"),
            "-c",
            str(tmp_path / "r.txt"),
            "--checkpoint",
            str(tiny_scorer),
        ]
        main([*words, "--device", "cpu", "--dtype", dtype])
    out, error = capsys.readouterr()
    assert out == ""
    assert stop.value.code == 2 and error.count("\n") == 1
    assert f"device cpu does not compute in {dtype} (" in error and "leave dtype out" in error
